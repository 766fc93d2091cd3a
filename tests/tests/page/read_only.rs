//! The page cannot write: neither do its sources name a write, nor do its servers take one.

use std::collections::BTreeMap;
use std::time::Duration;

use mysql_async::prelude::Queryable as _;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use tollgate::control::Control;
use tollgate::ledger::{ClaimError, LedgerFault};
use tollgate::target::{SessionContract, Target};
use tollgate_tests::chain::{
    CONTROL_PASSWORD, CONTROL_USER, Chain, TARGET, TARGET_PASSWORD, TARGET_USER,
};
use tollgate_tests::cli::run;
use tollgate_tests::over_servers;
use tollgate_tests::page::{InUse, LEDGER, Served};
use tollgate_tests::place::forward;
use tollgate_tests::process::tollgate;
use tollgate_tests::server::Flavour;
use tollgate_tests::source::{repository, sources};

/// The functions of the library that write to a server, and those with which anything can be sent.
const WRITES: &[&str] = &[
    "abandon",
    "bootstrap",
    "claim",
    "compensate",
    "complete",
    "conn",
    "exec_drop",
    "execute",
    "fail",
    "give_back",
    "kill_session",
    "prune",
    "query",
    "query_drop",
    "query_first",
    "query_iter",
    "record",
    "release",
    "renew",
    "resume",
    "retry",
    "submit",
];

/// What can carry out a step.
const WRITERS: &[&str] = &["ExecutorRegistry", "SqlJdbcV1", "DryRunV1", "Executor", "Worker"];

/// What is called or made of arguments, and every name.
#[derive(Default)]
struct Names {
    called: Vec<String>,
    all: Vec<String>,
}

impl Names {
    fn read(&mut self, tokens: TokenStream) {
        let mut before = None;
        for token in tokens {
            match token {
                TokenTree::Group(group) => {
                    if group.delimiter() == Delimiter::Parenthesis {
                        self.called.extend(before.take());
                    }
                    self.read(group.stream());
                    before = None;
                }
                TokenTree::Ident(name) => {
                    before = Some(name.to_string());
                    self.all.push(name.to_string());
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => before = None,
            }
        }
    }
}

#[test]
fn the_pages_sources_name_no_write() {
    let mut seen = Names::default();
    for source in sources(&repository().join("host/src/web")) {
        let mut found = Names::default();
        found.read(source.tokens.clone());
        for name in &found.called {
            assert!(!WRITES.contains(&name.as_str()), "{}: `{name}`", source.path.display());
        }
        for name in &found.all {
            assert!(!WRITERS.contains(&name.as_str()), "{}: `{name}`", source.path.display());
        }
        seen.called.extend(found.called);
    }
    for read in ["read_only", "list", "unsettled", "needing_attention"] {
        assert!(
            seen.called.iter().any(|it| it == read),
            "`{read}` is not seen: the scan is broken"
        );
    }
    // Each of them is a name of the library, or the list means nothing.
    let mut library = Names::default();
    for source in sources(&repository().join("host/src")) {
        library.read(source.tokens.clone());
    }
    for write in WRITES {
        assert!(library.called.iter().any(|name| name == write), "nothing is called `{write}`");
    }
    for writer in WRITERS {
        assert!(library.all.iter().any(|name| name == writer), "nothing is called `{writer}`");
    }
}

#[tokio::test]
async fn the_server_itself_refuses_a_write_in_the_pages_sessions() {
    for flavour in Flavour::available() {
        let chain = Chain::on(flavour.start()).await;
        chain.control().await;
        let config = chain.config(&[]);
        let target = Target::new(config.sql_target.as_ref().unwrap()).read_only();
        let mut connection = target.open(&SessionContract::default()).await.unwrap();
        let ledger = tollgate::ledger::Ledger::default();
        let refused = ledger.claim(&mut connection, &forward("never")).await;
        let Err(ClaimError::Fault(LedgerFault::Refused { code: 1792, .. })) = refused else {
            panic!("{flavour}: {refused:?}");
        };
        connection.close().await;
        let control = Control::new(config.control.as_ref().unwrap()).read_only();
        let mut connection = control.open().await.unwrap();
        for statement in ["DELETE FROM factory_plugin_control_outbox", "CREATE TABLE t (id INT)"] {
            let refused = connection.conn().query_drop(statement).await;
            let Err(mysql_async::Error::Server(error)) = refused else {
                panic!("{flavour}: {refused:?}");
            };
            assert_eq!(error.code, 1792, "{flavour}: {statement}");
        }
        connection.close().await;
    }
}

/// What steps need is not known by such an account: the page says that, and neither that it is there nor
/// that it is missing. A command that carries out steps under it says what is missing.
async fn an_account_that_may_only_read_is_enough(flavour: Flavour) {
    let folder = tempfile::tempdir().unwrap();
    let chain = Chain::start_on(flavour.builder()).await;
    chain.control().await;
    let catalog = TARGET.replace('_', r"\_");
    chain
        .server
        .execute(&[
            &format!("DROP USER '{TARGET_USER}'@'%'"),
            &format!("CREATE USER '{TARGET_USER}'@'%' IDENTIFIED BY '{TARGET_PASSWORD}'"),
            &format!("GRANT SELECT ON `{catalog}`.* TO '{TARGET_USER}'@'%'"),
            &format!("DROP USER '{CONTROL_USER}'@'%'"),
            &format!("CREATE USER '{CONTROL_USER}'@'%' IDENTIFIED BY '{CONTROL_PASSWORD}'"),
            &format!(r"GRANT SELECT ON `control\_plane`.* TO '{CONTROL_USER}'@'%'"),
        ])
        .await;
    let served = Served::start(&chain, &[], &[], &folder.path().join("log"));
    let page = served.get("/").body;
    assert!(page.contains("SQL target: <strong>ready</strong>"), "{page}");
    assert!(page.contains("Nothing needs attention."), "{page}");
    assert!(served.get("/executions").body.contains("No execution yet"));
    assert!(served.get("/outbox").body.contains("Nothing is enqueued"));
    assert!(page.contains("account-reads-only"), "{page}");
    assert_eq!(served.get("/readyz").status, 200);
    let status = run(&mut tollgate(&chain, &[], &["status"]));
    assert_eq!(status.code(), Some(1), "{}", status.stdout);
    let lacks =
        "grants-missing: the target's account lacks rights in the catalog: INSERT, UPDATE, ";
    assert!(status.stdout.contains(lacks), "{}", status.stdout);
    for reads in [&["receipts"][..], &["outbox", "reconcile"]] {
        let read = run(&mut tollgate(&chain, &[], reads));
        assert_eq!(read.code(), Some(0), "{reads:?}: {}", read.stderr);
    }
    // With one right more it is the account of steps, and lacks the others.
    let one = format!("GRANT INSERT ON `{catalog}`.* TO '{TARGET_USER}'@'%'");
    chain.server.execute(&[&one]).await;
    let log = folder.path().join("more");
    let page = Served::start(&chain, &[], &[], &log).get("/").body;
    assert!(page.contains("SQL target: <strong>incomplete</strong>"), "{page}");
    assert!(page.contains("grants-missing"), "{page}");
}
over_servers!(an_account_that_may_only_read_is_enough);

/// What takes longer than anybody waits, whoever asks. It does not notice that its client is gone, as a
/// sleep does.
const ENDLESS: &str = "SELECT COUNT(*) FROM information_schema.columns a, \
                       information_schema.columns b, information_schema.columns c, \
                       information_schema.columns d";

#[tokio::test]
async fn the_server_itself_ends_a_read_that_nobody_waits_for() {
    for flavour in Flavour::available() {
        let chain = Chain::on(flavour.start()).await;
        chain.control().await;
        let config = chain.config(&[]);
        let target = Target::new(config.sql_target.as_ref().unwrap());
        let looking = target.clone().read_only().open(&SessionContract::default()).await.unwrap();
        let working = target.open(&SessionContract::default()).await.unwrap();
        let bounds = |name: &str| {
            let value = |settings: &BTreeMap<String, String>| settings.get(name).cloned();
            (value(looking.settings()), value(working.settings()))
        };
        let number = |value: Option<String>| value.map(|it| it.parse::<f64>().unwrap());
        let (seconds, milliseconds) = (bounds("max_statement_time"), bounds("max_execution_time"));
        let error = match flavour {
            Flavour::MariaDb => {
                assert_eq!((number(seconds.0), number(seconds.1)), (Some(5.0), Some(900.0)));
                1969
            }
            Flavour::Mysql9 => {
                assert_eq!((number(milliseconds.0), milliseconds.1), (Some(5000.0), None));
                3024
            }
            // It has neither, as docs/operations.md says.
            Flavour::Mysql56 => {
                assert_eq!((seconds, milliseconds), ((None, None), (None, None)));
                continue;
            }
        };
        looking.close().await;
        working.close().await;
        let control = Control::new(config.control.as_ref().unwrap()).read_only();
        let mut connection = control.open().await.unwrap();
        // Otherwise it would go on for days.
        let ended = connection.conn().query_drop(ENDLESS);
        let ended = tokio::time::timeout(Duration::from_mins(1), ended).await;
        let Ok(Err(mysql_async::Error::Server(ended))) = ended else {
            panic!("{flavour}: {ended:?}");
        };
        assert_eq!(ended.code, error, "{flavour}: {ended:?}");
    }
}

#[tokio::test]
async fn a_read_that_the_page_gave_up_does_not_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let in_use = InUse::start().await;
    let aside = format!("{LEDGER}_aside");
    let endless = format!(
        "CREATE VIEW {LEDGER} AS SELECT a.* FROM {aside} a, \
         (SELECT BENCHMARK(1000000000000, MD5('a')) AS counted) b WHERE b.counted = 0"
    );
    in_use.chain.admin_run(&format!("RENAME TABLE {LEDGER} TO {aside}")).await;
    in_use.chain.admin_run(&endless).await;
    let served = Served::start(&in_use.chain, &[], &[], &folder.path().join("log"));
    let page = served.get("/executions?state=failed").body;
    // The server answers: it is the read that does not end.
    assert!(page.contains("target-statement-timeout"), "{page}");
    assert!(page.contains("SHOW PROCESSLIST") && !page.contains("firewall"), "{page}");
    in_use.chain.server.assert_session_count(TARGET_USER, 0).await;
}
