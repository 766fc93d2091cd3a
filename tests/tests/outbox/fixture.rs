//! A private server with a control catalog and an empty outbox.

use std::collections::BTreeMap;
use std::time::Duration;

use mysql_async::prelude::{FromRow, Queryable as _};
use tollgate::config::Config;
use tollgate::control::{Control, ControlConnection};
use tollgate::ids::{ExecutorCode, ExternalReceipt};
use tollgate::outbox::{
    Claim, ExecutorChoice, Outbox, OutboxOptions, Reason, Report, Submitted, bootstrap,
};
use tollgate::plan::{
    Contribution, InstalledRelease, Payload, Plan, PlanError, PlanProblem, publish,
};
use tollgate_tests::server::{Flavour, PrivateServer};

const CATALOG: &str = "control_plane";

pub(crate) struct Fixture {
    pub(crate) server: PrivateServer,
    pub(crate) control: Control,
    pub(crate) outbox: Outbox,
}

impl Fixture {
    pub(crate) async fn start(flavour: Flavour) -> Self {
        Self::on(flavour.start()).await
    }

    pub(crate) async fn on(server: PrivateServer) -> Self {
        server.create_catalog(CATALOG).await;
        let grants = "ALL PRIVILEGES ON `control\\_plane`.*";
        server.create_account("tollgate_control", "secret", &[grants]).await;
        let variables: BTreeMap<String, String> = [
            ("FACTORY_PLUGIN_CONTROL_JDBC_URL", server.jdbc_url(CATALOG).as_str()),
            ("FACTORY_PLUGIN_CONTROL_USERNAME", "tollgate_control"),
            ("FACTORY_PLUGIN_CONTROL_PASSWORD", "secret"),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
        let config = Config::from_source(variables).unwrap();
        let control = Control::new(config.control.as_ref().unwrap());
        let fixture = Self { server, control, outbox: Outbox::default() };
        let mut connection = fixture.open().await;
        assert!(bootstrap(&mut connection).await.unwrap());
        assert!(!bootstrap(&mut connection).await.unwrap(), "it was there already");
        fixture
    }

    pub(crate) async fn open(&self) -> ControlConnection {
        self.control.open().await.unwrap()
    }

    /// The same outbox under another environment.
    pub(crate) fn elsewhere(&self, environment: &str) -> Outbox {
        let environment = Some(environment.parse().unwrap());
        Outbox::new(OutboxOptions { environment, ..self.outbox.options().clone() })
    }

    /// An outbox whose claims are over at once.
    pub(crate) fn hasty(&self) -> Outbox {
        let options =
            OutboxOptions { lease: Duration::from_millis(1), ..self.outbox.options().clone() };
        Outbox::new(options)
    }

    pub(crate) async fn submit(&self, plan: &Plan) {
        let submitted = self.outbox.submit(&mut self.open().await, plan, &sql()).await.unwrap();
        let step_count = plan.steps().len();
        assert_eq!(submitted, Submitted::Enqueued { step_count });
    }

    pub(crate) async fn claim(&self) -> Option<Claim> {
        self.outbox.claim(&mut self.open().await).await.unwrap()
    }

    /// The key of the next step that is due, now claimed.
    pub(crate) async fn claimed(&self) -> Option<String> {
        self.claim().await.map(|claim| claim.step().key.to_string())
    }

    pub(crate) async fn record(&self, claim: &Claim, report: &Report) {
        self.outbox.record(&mut self.open().await, claim, report).await.unwrap().unwrap();
    }

    /// Claims what is due and reports it applied; the keys, in order.
    pub(crate) async fn apply(&self, count: usize) -> Vec<String> {
        let mut keys = Vec::new();
        for _ in 0..count {
            let Some(claim) = self.claim().await else { break };
            self.record(&claim, &applied(&claim)).await;
            keys.push(claim.step().key.to_string());
        }
        keys
    }

    pub(crate) async fn rows<T: FromRow + Send + 'static>(&self, query: &str) -> Vec<T> {
        let mut admin = self.server.admin().await;
        admin.query_drop(format!("USE {CATALOG}")).await.unwrap();
        let rows = admin.query(query).await.unwrap();
        admin.disconnect().await.unwrap();
        rows
    }

    pub(crate) async fn run(&self, statement: &str) {
        self.server.execute(&[&format!("USE {CATALOG}"), statement]).await;
    }

    /// Step keys with their status, in the order of enqueueing.
    pub(crate) async fn statuses(&self) -> Vec<(String, String)> {
        self.rows(
            "SELECT step_idempotency_key, status FROM factory_plugin_control_outbox ORDER BY id",
        )
        .await
    }

    /// Makes every waiting time be over.
    pub(crate) async fn let_time_pass(&self) {
        self.run(
            "UPDATE factory_plugin_control_outbox SET not_before = UTC_TIMESTAMP(6) \
             - INTERVAL 1 SECOND WHERE status = 'PENDING'",
        )
        .await;
    }

    /// Makes every claim be abandoned.
    pub(crate) async fn let_leases_end(&self) {
        self.run(
            "UPDATE factory_plugin_control_outbox SET not_before = UTC_TIMESTAMP(6) \
             - INTERVAL 1 SECOND, lease_deadline = not_before WHERE status = 'CLAIMED'",
        )
        .await;
    }
}

/// The executor that has effects.
pub(crate) fn sql() -> ExecutorChoice {
    ExecutorChoice { sql: ExecutorCode::sql_jdbc_v1() }
}

pub(crate) fn applied(claim: &Claim) -> Report {
    let environment = "preview".parse().unwrap();
    Report::Applied(ExternalReceipt::sql(&environment, &claim.step().key))
}

pub(crate) fn failed() -> Report {
    Report::Failed(Reason::new("statement-failed", "a lock"))
}

/// The plan with one of its keys in place of another, and the fingerprint that follows: as somebody
/// else may have published it.
pub(crate) fn with_key(document: &str, key: &str, other: &str) -> Plan {
    let document = document.replace(&format!("\"{key}\""), &format!("\"{other}\""));
    let error = Plan::parse(document.as_bytes()).unwrap_err();
    let PlanError::Contradiction(problems) = error else { panic!("{error}") };
    let [PlanProblem::Fingerprint { recorded, computed }] = problems.as_slice() else {
        panic!("{problems:?}")
    };
    let document = document.replace(&recorded.to_string(), &computed.to_string());
    Plan::parse(document.as_bytes()).unwrap()
}

/// A plan of so many steps `<code>:1`, …, each with a compensation.
pub(crate) fn plan(code: &str, step_count: usize) -> Plan {
    plan_with(code, step_count, |_| true)
}

/// The same, with compensations only where they are wanted; steps are numbered from 1.
pub(crate) fn plan_with(code: &str, step_count: usize, has_undo: impl Fn(usize) -> bool) -> Plan {
    Plan::parse(document(code, step_count, has_undo).as_bytes()).unwrap()
}

/// The document of such a plan.
pub(crate) fn document(code: &str, step_count: usize, has_undo: impl Fn(usize) -> bool) -> String {
    let contributions = (1..=step_count).map(|number| Contribution {
        key: format!("c{number}").parse().unwrap(),
        kind: "DATABASE_MIGRATION".parse().unwrap(),
        target: "sql".parse().unwrap(),
        idempotent: true,
        forward: Payload::new(format!("DROP TABLE IF EXISTS t{number}").into_bytes()),
        compensation: has_undo(number)
            .then(|| Payload::new(format!("DROP TABLE IF EXISTS u{number}").into_bytes())),
    });
    let release = tollgate::ids::PluginRelease {
        code: "orders".parse().unwrap(),
        version: "1.0.0".parse().unwrap(),
    };
    let release = InstalledRelease::new(release, contributions).unwrap();
    publish(&code.parse().unwrap(), &[release]).unwrap()
}
