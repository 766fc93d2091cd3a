//! Every metric there is. `docs/metrics.md` has the same list, and a test holds the two together.

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, from the start of the process.
    Counter,
    /// A distribution of seconds.
    Seconds,
    /// Goes up and down.
    Gauge,
}

/// A metric.
#[derive(Debug)]
pub struct Listed {
    /// Its name, as it is asked for.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
    /// Whether the process counts it; otherwise `tollgate serve` reads it from the servers, or a
    /// worker from itself, when it is asked for.
    pub is_of_process: bool,
}

impl Listed {
    /// The name above its samples: without what the format adds to a counter's.
    pub fn family_name(&self) -> &'static str {
        match self.kind {
            Kind::Counter => self.name.strip_suffix("_total").unwrap_or(self.name),
            Kind::Seconds | Kind::Gauge => self.name,
        }
    }

    /// The name as it is registered: the format adds `_total` to counters and a unit's name.
    pub(super) fn bare_name(&self) -> &'static str {
        let suffix = match self.kind {
            Kind::Counter => "_total",
            Kind::Seconds => "_seconds",
            Kind::Gauge => "",
        };
        self.name.strip_suffix(suffix).unwrap_or(self.name)
    }

    /// The kind as documentation names it.
    pub const fn kind_name(&self) -> &'static str {
        match self.kind {
            Kind::Counter => "counter",
            Kind::Seconds => "histogram",
            Kind::Gauge => "gauge",
        }
    }
}

macro_rules! metrics {
    ($($constant:ident = $name:literal, $kind:ident, [$($label:literal),*], $of_process:literal, $help:literal;)*) => {
        $(pub(crate) const $constant: Listed = Listed {
            name: $name,
            kind: Kind::$kind,
            labels: &[$($label),*],
            help: $help,
            is_of_process: $of_process,
        };)*

        /// Every metric, in the order of its documentation.
        pub const LIST: &[&Listed] = &[$(&$constant),*];
    };
}

metrics! {
    DECISIONS = "tollgate_decisions_total", Counter, ["outcome", "code"], true,
        "Decisions of the policy: allow, deny or error, with the first error's code";
    DECISION_SECONDS = "tollgate_decision_seconds", Seconds, [], true,
        "Time a decision took";
    CLAIMS = "tollgate_claims_total", Counter, ["result"], true,
        "Claims of receipts by their answer";
    STEPS = "tollgate_steps_total", Counter, ["executor", "outcome", "code"], true,
        "Executions that ended: applied, not-applied or indeterminate, with the reason's code";
    LEASE_RENEWALS = "tollgate_lease_renewals_total", Counter, ["lease", "result"], true,
        "Renewals of leases, of receipts and of deliveries: renewed, lost or error";
    TAKEOVERS = "tollgate_takeovers_total", Counter, [], true,
        "Steps taken over from a holder whose lease was over";
    ZOMBIES_KILLED = "tollgate_zombies_killed_total", Counter, [], true,
        "Sessions of earlier holders that were killed on the target";
    TARGET_OPENS = "tollgate_target_opens_total", Counter, ["result"], true,
        "Target connections opened and verified, or the code of what did not hold";
    TARGET_OPEN_SECONDS = "tollgate_target_open_seconds", Seconds, [], true,
        "Time that opening and verifying a target connection took";
    TARGET_SESSIONS = "tollgate_target_sessions", Gauge, [], true,
        "Target sessions of this process that are open now";
    TARGET_SESSIONS_IDLE = "tollgate_target_sessions_idle", Gauge, [], true,
        "Of them, sessions that are kept for the next step";
    BUILD_INFO = "tollgate_build_info", Gauge, ["version"], false,
        "Always 1: the version of this process";
    WORKER_READY = "tollgate_worker_ready", Gauge, [], false,
        "Of a worker: 1 when it works, 0 while it drains or is cut off";
    SQL_TARGET = "tollgate_sql_target", Gauge, ["state"], false,
        "1 for the state the SQL target is in: disabled, incomplete or ready; 0 for the others";
    POLICY_INFO = "tollgate_policy_info", Gauge, ["name", "version", "digest"], false,
        "Always 1: the policy that decides for sql-jdbc:v1";
    SOURCE_UP = "tollgate_source_up", Gauge, ["source"], false,
        "1 when the figures of target or control could be read just now, else 0";
    EXECUTIONS = "tollgate_executions", Gauge, ["state"], false,
        "Receipts in the ledger by what can be said of them now";
    EXECUTIONS_EDITED = "tollgate_executions_edited", Gauge, [], false,
        "Of them, receipts that were edited by hand: their steps are refused";
    OUTBOX_STEPS = "tollgate_outbox_steps", Gauge, ["status"], false,
        "Steps in the outbox by status: the sum of WAITING, PENDING and CLAIMED is its depth";
    OUTBOX_OLDEST_DUE = "tollgate_outbox_oldest_due_seconds", Gauge, [], false,
        "How long the step that is due longest, or whose claim ended longest ago, waits; 0 when none does";
}
