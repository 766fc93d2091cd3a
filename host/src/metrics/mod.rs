//! What this process did, counted, in the format Prometheus reads.
//!
//! One set of counters a process: whatever a worker does, wherever in the library, is in it. Counting
//! costs an atomic addition and never fails. Names and labels are stable, and listed in
//! `docs/metrics.md`; no label holds a name of a plugin, a step or a server.

mod codes;
mod known;
pub(crate) mod list;

use std::sync::LazyLock;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry, Unit};

use codes::Codes;
pub use list::{Kind, LIST, Listed};

/// The media type of what [`Metrics::encode`] gives.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The executors that come with Tollgate.
const SQL_JDBC: &str = "sql-jdbc:v1";
const DRY_RUN: &str = "dry-run:v1";

/// From a payload's usual fraction of a millisecond to the second a decision may take.
const DECISION_SECONDS: [f64; 10] = [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.02, 0.1, 0.5, 1.0, 2.0];

/// From a server beside this one to the bound of opening.
const OPEN_SECONDS: [f64; 9] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.0, 10.0, 30.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
    code: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StepLabels {
    executor: String,
    outcome: &'static str,
    code: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RenewalLabels {
    lease: &'static str,
    result: &'static str,
}

/// The counters of this process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    decision_codes: Codes,
    step_executors: Codes,
    step_codes: Codes,
    decisions: Family<OutcomeLabels, Counter>,
    decision_seconds: Histogram,
    claims: Family<ResultLabels, Counter>,
    steps: Family<StepLabels, Counter>,
    renewals: Family<RenewalLabels, Counter>,
    takeovers: Counter,
    sessions_killed: Counter,
    target_opens: Family<ResultLabels, Counter>,
    target_open_seconds: Histogram,
    target_sessions: Gauge,
    target_sessions_idle: Gauge,
}

/// Which lease was renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenewedLease {
    /// That of a receipt, on the target.
    Receipt,
    /// That of a claim in the outbox.
    Delivery,
}

impl RenewedLease {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Receipt => "receipt",
            Self::Delivery => "delivery",
        }
    }
}

static METRICS: LazyLock<Metrics> = LazyLock::new(Metrics::new);

/// The counters of this process.
pub fn metrics() -> &'static Metrics {
    &METRICS
}

impl Metrics {
    fn new() -> Self {
        let mut new = Self {
            registry: Registry::default(),
            decision_codes: Codes::knowing(known::NO_DECISION.iter().copied().chain([""])),
            step_executors: Codes::knowing([SQL_JDBC, DRY_RUN]),
            step_codes: Codes::knowing(
                not_applied().chain(known::INDETERMINATE).copied().chain([""]),
            ),
            decisions: Family::default(),
            decision_seconds: Histogram::new(DECISION_SECONDS),
            claims: Family::default(),
            steps: Family::default(),
            renewals: Family::default(),
            takeovers: Counter::default(),
            sessions_killed: Counter::default(),
            target_opens: Family::default(),
            target_open_seconds: Histogram::new(OPEN_SECONDS),
            target_sessions: Gauge::default(),
            target_sessions_idle: Gauge::default(),
        };
        let registry = &mut new.registry;
        register(registry, &list::DECISIONS, new.decisions.clone());
        register(registry, &list::DECISION_SECONDS, new.decision_seconds.clone());
        register(registry, &list::CLAIMS, new.claims.clone());
        register(registry, &list::STEPS, new.steps.clone());
        register(registry, &list::LEASE_RENEWALS, new.renewals.clone());
        register(registry, &list::TAKEOVERS, new.takeovers.clone());
        register(registry, &list::ZOMBIES_KILLED, new.sessions_killed.clone());
        register(registry, &list::TARGET_OPENS, new.target_opens.clone());
        register(registry, &list::TARGET_OPEN_SECONDS, new.target_open_seconds.clone());
        register(registry, &list::TARGET_SESSIONS, new.target_sessions.clone());
        register(registry, &list::TARGET_SESSIONS_IDLE, new.target_sessions_idle.clone());
        new.begin();
        new
    }

    /// Makes every counter whose labels are known begin at 0.
    fn begin(&self) {
        let no_decision = known::NO_DECISION.iter().map(|code| ("error", *code));
        for (outcome, code) in no_decision.chain([("allow", "")]) {
            drop(self.decisions.get_or_create(&OutcomeLabels { outcome, code: code.to_owned() }));
        }
        for result in known::CLAIMS {
            drop(self.claims.get_or_create(&ResultLabels { result }));
        }
        for lease in [RenewedLease::Receipt, RenewedLease::Delivery] {
            for result in known::RENEWALS {
                let lease = lease.as_str();
                drop(self.renewals.get_or_create(&RenewalLabels { lease, result }));
            }
        }
        for result in known::SERVERS.iter().chain(known::ISOLATION).chain(&["opened"]) {
            drop(self.target_opens.get_or_create(&ResultLabels { result }));
        }
        for (executor, outcome, code) in steps() {
            let (executor, code) = (executor.to_owned(), code.to_owned());
            drop(self.steps.get_or_create(&StepLabels { executor, outcome, code }));
        }
    }

    /// A policy decided, or did not: `allow`, `deny` or `error`, with the first error's code.
    pub fn decision(&self, outcome: &'static str, code: &str, took: Duration) {
        let labels = OutcomeLabels { outcome, code: self.decision_codes.label(code) };
        self.decisions.get_or_create(&labels).inc();
        self.decision_seconds.observe(took.as_secs_f64());
    }

    /// A claim of a receipt was answered.
    pub fn claim(&self, result: &'static str) {
        self.claims.get_or_create(&ResultLabels { result }).inc();
    }

    /// An execution ended.
    pub fn step(&self, executor: &str, outcome: &'static str, code: &str) {
        let executor = self.step_executors.label(executor);
        let code = self.step_codes.label(code);
        self.steps.get_or_create(&StepLabels { executor, outcome, code }).inc();
    }

    /// A lease was renewed: `renewed`, `lost` or `error`.
    pub fn renewal(&self, lease: RenewedLease, result: &'static str) {
        let lease = lease.as_str();
        self.renewals.get_or_create(&RenewalLabels { lease, result }).inc();
    }

    /// A step was taken over from a holder whose lease was over.
    pub fn takeover(&self) {
        self.takeovers.inc();
    }

    /// The session of an earlier holder was killed.
    pub fn session_killed(&self) {
        self.sessions_killed.inc();
    }

    /// Opening a target connection ended: `opened`, or the error's code.
    pub fn target_opened(&self, result: &'static str, took: Duration) {
        self.target_opens.get_or_create(&ResultLabels { result }).inc();
        self.target_open_seconds.observe(took.as_secs_f64());
    }

    /// A target session is open for as long as this is kept.
    pub fn target_session(&'static self) -> OpenSession {
        self.target_sessions.inc();
        OpenSession(&self.target_sessions)
    }

    /// A target session is kept for the next step for as long as this is kept.
    pub fn idle_target_session(&'static self) -> OpenSession {
        self.target_sessions_idle.inc();
        OpenSession(&self.target_sessions_idle)
    }

    /// Everything in the text format that Prometheus reads, with what `beside` holds.
    ///
    /// # Errors
    ///
    /// A metric cannot be written, which none of ours is.
    pub fn encode(&self, beside: &Registry) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode_registry(&mut text, &self.registry)?;
        encode_registry(&mut text, beside)?;
        encode_eof(&mut text)?;
        Ok(text)
    }
}

/// Why `sql-jdbc:v1` does not apply a step.
fn not_applied() -> impl Iterator<Item = &'static &'static str> {
    known::NOT_ADMITTED
        .iter()
        .chain(known::NOT_APPLIED)
        .chain(known::LEDGER)
        .chain(known::SERVERS)
        .chain(known::ISOLATION)
}

/// What can come of a step of our executors, with its code.
fn steps() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let applied = [(SQL_JDBC, "applied", ""), (DRY_RUN, "applied", "")];
    let refused = not_applied().map(|code| (SQL_JDBC, "not-applied", *code));
    let unknown = known::INDETERMINATE.iter().map(|code| (SQL_JDBC, "indeterminate", *code));
    let undone = known::NOT_ADMITTED.iter().map(|code| (DRY_RUN, "not-applied", *code));
    applied.into_iter().chain(refused).chain(unknown).chain(undone)
}

/// Registers a metric under its listed name.
pub(crate) fn register(registry: &mut Registry, listed: &Listed, metric: impl Metric) {
    match listed.kind {
        Kind::Seconds => {
            registry.register_with_unit(listed.bare_name(), listed.help, Unit::Seconds, metric);
        }
        Kind::Counter | Kind::Gauge => {
            registry.register(listed.bare_name(), listed.help, metric);
        }
    }
}

/// Counts a session until it is dropped.
#[derive(Debug)]
pub struct OpenSession(&'static Gauge);

impl Drop for OpenSession {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_what_is_listed() {
        let metrics = Metrics::new();
        metrics.decision("deny", "unsupported-statement", Duration::from_millis(3));
        metrics.decision("allow", "", Duration::from_micros(300));
        metrics.claim("granted");
        metrics.step("sql-jdbc:v1", "applied", "");
        metrics.renewal(RenewedLease::Receipt, "renewed");
        metrics.takeover();
        metrics.session_killed();
        metrics.target_opened("opened", Duration::from_millis(20));
        let text = metrics.encode(&Registry::default()).unwrap();
        let of_process = LIST.iter().filter(|listed| listed.is_of_process);
        for listed in of_process.clone() {
            let help = format!("# HELP {} {}", listed.family_name(), listed.help);
            assert!(text.contains(&help), "no `{help}` in:\n{text}");
            let sample = text.lines().any(|line| line.starts_with(listed.name));
            assert!(sample, "no sample of `{}` in:\n{text}", listed.name);
        }
        assert_eq!(text.matches("# HELP").count(), of_process.count(), "{text}");
        assert!(text.contains(
            "tollgate_decisions_total{outcome=\"deny\",code=\"unsupported-statement\"} 1\n"
        ));
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn codes_are_bounded_each_label_by_itself() {
        let metrics = Metrics::new();
        for number in 0..codes::CODES_MAX + 50 {
            metrics.decision("deny", &format!("made-up-{number}"), Duration::ZERO);
        }
        let text = metrics.encode(&Registry::default()).unwrap();
        assert!(text.contains("{outcome=\"deny\",code=\"other\"} 50\n"), "{text}");
        // What is known beforehand is counted as itself, and other labels have room.
        metrics.decision("error", "fuel", Duration::ZERO);
        metrics.step("embedded:v1", "not-applied", "of-its-own");
        let text = metrics.encode(&Registry::default()).unwrap();
        assert!(text.contains("{outcome=\"error\",code=\"fuel\"} 1\n"), "{text}");
        let own = "{executor=\"embedded:v1\",outcome=\"not-applied\",code=\"of-its-own\"} 1\n";
        assert!(text.contains(own), "{text}");
    }

    #[test]
    fn what_may_happen_is_counted_from_the_start() {
        let text = Metrics::new().encode(&Registry::default()).unwrap();
        let fresh: Vec<&str> = text.lines().filter(|line| line.starts_with("tollgate_")).collect();
        for line in &fresh {
            assert!(line.ends_with(" 0") || line.ends_with(" 0.0"), "{line}");
        }
        // Every counter has a sample, and the one that an alert is about.
        for listed in LIST.iter().filter(|it| it.is_of_process && it.kind == Kind::Counter) {
            assert!(fresh.iter().any(|line| line.starts_with(listed.name)), "{}", listed.name);
        }
        let alerted = "tollgate_steps_total{executor=\"sql-jdbc:v1\",outcome=\"indeterminate\",\
                       code=\"lease-lost\"} 0";
        assert!(fresh.contains(&alerted), "{text}");
    }
}
