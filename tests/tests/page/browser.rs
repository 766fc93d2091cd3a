//! The page in a real browser: `tests/browser/run.mjs` looks, this sets up what it looks at.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::json;
use tollgate_tests::chain::{Chain, TARGET};
use tollgate_tests::cli::target_folder;
use tollgate_tests::page::{InUse, SECRETS, Served};

/// Where `script/test-page` says the browser is. Without it nothing is looked at: a browser is a
/// quarter of a gigabyte, which the short form of `script/test` does not install.
const BROWSER: &str = "TOLLGATE_BROWSER";

#[tokio::test]
async fn a_browser_sees_what_an_operator_needs() {
    let Some(browser) = std::env::var_os(BROWSER) else {
        println!("not looked at: script/test-page sets {BROWSER}");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let log = |name: &str| folder.path().join(name);
    let in_use = InUse::start().await;
    in_use.add_many("bulk", 10_000).await;
    // Hostile, and as long as the ledger keeps.
    let error = format!("<script>alert(1)</script> \u{202e}gnol {}", "very long ".repeat(95));
    in_use.change("summer-7:5", &format!("last_error = '{error}'")).await;
    for key in [".", ".."] {
        in_use.copy(&format!("'{key}'"), "").await;
        let again = "status = 'FAILED', external_receipt = NULL, completed_at = NULL, \
                     execution_count = 20, generation = 60, last_error_code = 'statement-budget', \
                     last_error = 'statement 2 was not done within 900 s'";
        in_use.change(key, again).await;
    }
    let empty = Chain::start().await;
    empty.control().await;
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_url = format!("jdbc:mysql://{}/{TARGET}", silent.local_addr().unwrap());

    let releases = in_use.releases();
    let with = &["--releases", &*releases];
    let wrong: &[(&str, &str)] = &[("SQL_TARGET_PASSWORD", "canary-wrong")];
    let broken: &[(&str, &str)] =
        &[("SQL_TARGET_RECEIPT_LEASE_SECONDS", "5"), ("SQL_TARGET_ENABLD", "true")];
    let ready = Served::start(&in_use.chain, &[], with, &log("ready"));
    let disabled =
        Served::start(&in_use.chain, &[("SQL_TARGET_ENABLED", "false")], &[], &log("disabled"));
    let incomplete = Served::start(&in_use.chain, wrong, &[], &log("incomplete"));
    let broken = Served::start(&in_use.chain, broken, &[], &log("broken"));
    let waiting = [("SQL_TARGET_JDBC_URL", silent_url.as_str())];
    let waiting = Served::start(&in_use.chain, &waiting, &[], &log("waiting"));
    let unused = Served::start(&empty, &[], &[], &log("empty"));
    let request = json!({
        "browser": browser.to_string_lossy(),
        "modules": std::env::var("TOLLGATE_BROWSER_MODULES").unwrap(),
        "screenshots": screenshots(),
        "secrets": SECRETS.iter().filter(|it| **it != "127.0.0.1").collect::<Vec<_>>(),
        "urls": {
            "ready": ready.url(), "disabled": disabled.url(), "incomplete": incomplete.url(),
            "broken": broken.url(), "waiting": waiting.url(), "empty": unused.url(),
        },
    });

    let script = tollgate_tests::source::repository().join("tests/browser/run.mjs");
    let mut node = Command::new("node")
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node starts");
    let mut input = node.stdin.take().unwrap();
    writeln!(input, "{request}").unwrap();
    let mut last = String::new();
    for line in BufReader::new(node.stdout.take().unwrap()).lines() {
        last = line.unwrap();
        println!("{last}");
        // It asks for receipts that are added between two of its pages.
        if let Some(word) = last.strip_prefix("add ") {
            in_use.add_many(word, 75).await;
            writeln!(input, "added").unwrap();
        }
    }
    drop(input);
    assert!(node.wait().unwrap().success(), "the browser found something; see above");
    assert!(last.starts_with("all of it holds"), "{last}");
}

/// Where pictures go, for people to look at.
fn screenshots() -> PathBuf {
    let folder = target_folder().join("page-screenshots");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
