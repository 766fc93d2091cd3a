//! Delivering again what a person has mended.

use mysql_async::Value;

use super::Outbox;
use super::fault::{OutboxFault, Runs};
use super::shape;
use super::sql::{self, TABLE};
use super::status::Status;
use crate::blame::Blame;
use crate::control::ControlConnection;
use crate::ids::StepKey;
use crate::plan::PlanCode;

/// The step is due again, with its failures forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retried;

/// Which of the steps that need attention are meant; by default all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AttentionFilter {
    /// Of this plan.
    pub plan: Option<PlanCode>,
    /// With this code as their last error.
    pub code: Option<String>,
}

/// The step is not delivered again; nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RetryError {
    /// There is no such step.
    #[error("no step in the outbox has the key `{0}`")]
    Unknown(StepKey),
    /// It does not need a person.
    #[error("step `{key}` does not need attention: it is {status}")]
    OtherStatus {
        /// The step.
        key: StepKey,
        /// Where it is.
        status: Status,
    },
    /// The control server did not answer as it should.
    #[error("the step was not made due again")]
    Fault(#[source] OutboxFault),
}

impl From<OutboxFault> for RetryError {
    fn from(fault: OutboxFault) -> Self {
        Self::Fault(fault)
    }
}

impl RetryError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "step-unknown",
            Self::OtherStatus { .. } => "attention-not-needed",
            Self::Fault(fault) => fault.code(),
        }
    }

    /// Who can do something about it.
    pub const fn blame(&self) -> Blame {
        match self {
            Self::Unknown(_) | Self::OtherStatus { .. } => Blame::Caller,
            Self::Fault(fault) => fault.blame(),
        }
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "run `tollgate outbox` to see what needs attention",
            Self::OtherStatus { .. } => {
                "there is nothing to do; `tollgate outbox` shows where it is"
            }
            Self::Fault(fault) => fault.help(),
        }
    }
}

impl Outbox {
    /// The keys of the steps that need attention, in order of their enqueueing.
    ///
    /// # Errors
    ///
    /// The control server did not answer as it should.
    pub async fn attention_keys(
        &self,
        connection: &mut ControlConnection,
        filter: &AttentionFilter,
    ) -> Result<Vec<StepKey>, OutboxFault> {
        let mut query =
            format!("SELECT step_idempotency_key FROM {TABLE} WHERE status = 'NEEDS_ATTENTION'");
        let mut values: Vec<Value> = Vec::new();
        if let Some(plan) = &filter.plan {
            query.push_str(" AND plan_code = ?");
            values.push(plan.as_str().into());
        }
        if let Some(code) = &filter.code {
            query.push_str(" AND last_error_code = ?");
            values.push(code.as_str().into());
        }
        query.push_str(" ORDER BY id");
        let rows = sql::rows(connection, &query, values).await?;
        rows.iter().map(|row| Ok(row.required("step_idempotency_key")?)).collect()
    }

    /// Makes a step that needs attention due now, with as many attempts as a new one.
    ///
    /// # Errors
    ///
    /// There is no such step, it needs no attention, or the control server did not answer as it
    /// should.
    pub async fn retry(
        &self,
        connection: &mut ControlConnection,
        key: &StepKey,
    ) -> Result<Retried, RetryError> {
        shape::ensure(connection).await?;
        let statement = format!(
            "UPDATE {TABLE} SET status = 'PENDING', failure_count = 0, lost_count = 0, \
             not_before = UTC_TIMESTAMP(6), updated_at = UTC_TIMESTAMP(6) \
             WHERE step_idempotency_key = ? AND status = 'NEEDS_ATTENTION'"
        );
        let mut runs = Runs::default();
        loop {
            match sql::change(connection, &statement, vec![key.as_str().into()]).await {
                Ok(0) => return Err(why_not(connection, key).await?),
                Ok(_) => return Ok(Retried),
                Err(fault) if runs.again(&fault).await => {}
                Err(fault) => return Err(fault.into()),
            }
        }
    }
}

async fn why_not(
    connection: &mut ControlConnection,
    key: &StepKey,
) -> Result<RetryError, OutboxFault> {
    let query = format!("SELECT status FROM {TABLE} WHERE step_idempotency_key = ?");
    let found = sql::rows(connection, &query, vec![key.as_str().into()]).await?;
    let key = key.clone();
    Ok(match found.first() {
        None => RetryError::Unknown(key),
        Some(row) => RetryError::OtherStatus { key, status: row.required("status")? },
    })
}
