//! The page cannot write: neither do its sources name a write, nor do its servers take one.

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
use tollgate_tests::page::Served;
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
