//! Where the status value comes from: the configuration, the policy, and a look at the target.

use std::time::Duration;

use super::probe::TargetProbe;
use super::registry::ExecutorUnavailable;
use super::status::{Missing, PolicyStatus, RegistryStatus, SqlTargetState};
use crate::config::Config;
use crate::ids::ExecutorCode;
use crate::policy::Policy;
use crate::target::Target;

/// Reads the status without any executor: it can look at the target and nothing else, so whoever
/// only shows the status holds nothing to run a payload with.
#[derive(Debug)]
pub struct StatusReader {
    executor: ExecutorCode,
    policy: Option<PolicyStatus>,
    target: Option<TargetProbe>,
}

impl StatusReader {
    /// The status of a configuration under the policy pinned to `sql-jdbc:v1`, whose account is the one
    /// that carries out steps. Nothing is connected yet.
    pub fn new(config: &Config, policy: &Policy) -> Self {
        Self::of(config, policy, Target::looked_at)
    }

    /// The same for whoever only shows the status and may have accounts of its own that can do nothing
    /// but read. Then what the one that carries out steps may do is not known, which is a warning.
    pub fn watching(config: &Config, policy: &Policy) -> Self {
        Self::of(config, policy, Target::watched)
    }

    fn of(config: &Config, policy: &Policy, looked_at: fn(Target) -> Target) -> Self {
        let target = config.sql_target.as_ref();
        let target = target.map(|target| TargetProbe::new(looked_at(Target::new(target)), policy));
        Self {
            executor: config.executor.clone(),
            policy: Some(PolicyStatus::from(policy.pin())),
            target,
        }
    }

    /// Without a target and without a policy.
    pub(super) fn bare(executor: ExecutorCode) -> Self {
        Self { executor, policy: None, target: None }
    }

    /// The executor that steps are given to.
    pub fn executor(&self) -> &ExecutorCode {
        &self.executor
    }

    /// The policy that decides for `sql-jdbc:v1`.
    pub fn policy(&self) -> Option<&PolicyStatus> {
        self.policy.as_ref()
    }

    /// What was missing when the target was last looked at, and how long ago that was, for whoever does not
    /// wait for a look. Nothing when it was ready: that may be over.
    pub fn last_missing(&self) -> Option<(RegistryStatus, Duration)> {
        let (state, age) = self.target.as_ref()?.known()?;
        let is_missing = matches!(state, SqlTargetState::Incomplete { .. });
        is_missing.then(|| (self.status_of(state, vec![ExecutorCode::dry_run_v1()]), age))
    }

    /// Whether the target was ever found ready; nothing while it is disabled.
    pub(super) fn was_ready(&self) -> Option<bool> {
        self.target.as_ref().map(TargetProbe::was_ready)
    }

    /// The status of an installation as Tollgate sets it up. Looks at the target, for
    /// [`STATUS_BUDGET`](super::STATUS_BUDGET) at most; what was found is given again for a second.
    pub async fn status(&self) -> RegistryStatus {
        self.status_with(vec![ExecutorCode::dry_run_v1()]).await
    }

    /// The status with these executors besides `sql-jdbc:v1`, which is installed once its target
    /// was ready.
    pub(super) async fn status_with(&self, executors: Vec<ExecutorCode>) -> RegistryStatus {
        let sql_target = match &self.target {
            None => SqlTargetState::Disabled,
            Some(target) => target.state().await,
        };
        self.status_of(sql_target, executors)
    }

    fn status_of(
        &self,
        sql_target: SqlTargetState,
        mut executors: Vec<ExecutorCode>,
    ) -> RegistryStatus {
        if self.was_ready() == Some(true) {
            executors.push(ExecutorCode::sql_jdbc_v1());
        }
        executors.sort();
        executors.dedup();
        RegistryStatus {
            executor: self.executor.clone(),
            executor_missing: self.executor_missing(&executors),
            executors,
            sql_target,
            environment: self.target.as_ref().map(|target| target.environment().clone()),
            catalog: self.target.as_ref().map(|target| target.catalog().clone()),
            policy: self.policy.clone(),
        }
    }

    /// Why the configured executor is none of the installed ones. Of a target that is incomplete, the
    /// target's own state says all of it.
    fn executor_missing(&self, installed: &[ExecutorCode]) -> Option<Missing> {
        if installed.contains(&self.executor) {
            return None;
        }
        let code = self.executor.clone();
        let (key, error) = if code != ExecutorCode::sql_jdbc_v1() {
            ("executor-unknown", ExecutorUnavailable::Unknown(code))
        } else if self.target.is_none() {
            ("executor-target-disabled", ExecutorUnavailable::TargetDisabled(code))
        } else {
            return None;
        };
        let installed: Vec<&str> = installed.iter().map(ExecutorCode::as_str).collect();
        let message = format!("{error}; installed are {}", installed.join(", "));
        Some(Missing::new(key, message, error.help()))
    }
}
