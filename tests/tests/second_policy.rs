//! The host does not depend on our policy: another one, written apart from it, is built, pinned,
//! asked and executed by the same program.

use std::fs;

use serde_json::json;
use tollgate::audit::Auditor;
use tollgate::digest::Digest;
use tollgate::policy::{
    Backend, CompileCache, Outcome, PolicyRuntime, PolicyStore, RuntimeOptions,
};
use tollgate_tests::corpus;
use tollgate_tests::desk::{self, Desk};
use tollgate_tests::installation::{Installation, json};
use tollgate_tests::second_policy::DropOnly;

#[test]
fn the_same_source_gives_the_same_bytes() {
    let policy = DropOnly::build();
    let first = Digest::of(fs::read(policy.component()).unwrap());
    let check = policy.script(&["--check"]);
    assert_eq!(check.code(), Some(0), "{check:?}");
    assert!(check.stdout.contains("the source gives the pinned bytes"), "{check:?}");
    assert_eq!(Digest::of(fs::read(DropOnly::build().component()).unwrap()), first);

    let mut damaged = fs::read(policy.component()).unwrap();
    *damaged.last_mut().unwrap() ^= 1;
    fs::write(policy.component(), damaged).unwrap();
    assert_eq!(policy.script(&["--check"]).code(), Some(4));
}

#[test]
fn it_is_listed_inspected_and_asked_like_any_other() {
    let (desk, policy) = (Desk::new(), DropOnly::build());
    let store = policy.store().to_str().unwrap();
    let digest = Digest::of(fs::read(policy.component()).unwrap()).to_string();
    let listed = json(&desk.run(&["policy", "list", "--store", store, "--format", "json"]));
    assert_eq!((&listed["name"], &listed["digest"]), (&json!("drop-only"), &json!(digest)));
    let inspected = json(&desk.run(&["policy", "inspect", "--store", store, "--format", "json"]));
    assert_eq!(inspected["imports"], json!([]));
    assert_eq!(inspected["exports"], json!(["tollgate:policy/gate@1.0.0"]));
    assert_eq!(inspected["version"], "0.1.0");

    desk.write("drop.sql", "DROP TABLE IF EXISTS a, `b`;");
    desk.write("insert.sql", "INSERT IGNORE INTO a (id) VALUES (1);");
    let check = |arguments: &[&str], payload: &str| {
        let run = desk.run(&[&["check", "--format", "json", payload], arguments].concat());
        json(&run)
    };
    let allowed = check(&["--store", store], "drop.sql");
    assert_eq!(allowed["policy"]["digest"], digest);
    assert_eq!(
        allowed["statements"][0]["text"],
        "DROP TABLE IF EXISTS `plugin_preview`.`a`, `plugin_preview`.`b`"
    );
    assert_eq!(check(&["--store", store], "insert.sql")["decision"], "deny");
    assert_eq!(check(&[], "insert.sql")["decision"], "allow", "policy v1 is another one");
    let component = policy.component();
    let unpinned = check(&["--policy", component.to_str().unwrap()], "drop.sql");
    assert_eq!(unpinned["decisionDigest"], allowed["decisionDigest"]);
}

#[test]
fn its_repairs_are_made_by_the_same_command() {
    let (desk, policy) = (Desk::new(), DropOnly::build());
    let path = desk.write("a.sql", "-- é\r\ndrop table\tt;");
    let store = policy.store().to_str().unwrap();
    let fix = ["check", "--store", store, "--fix", "--write", "a.sql"];
    let run = desk.run(&fix);
    assert_eq!(run.code(), Some(1), "comments are not for this policy: {run:?}");
    fs::write(&path, "drop table\tt;\r\n").unwrap();
    assert_eq!(desk.run(&fix).code(), Some(0));
    assert_eq!(fs::read_to_string(&path).unwrap(), "drop table IF EXISTS\tt;\r\n");
}

/// An auditor that asks it, on a backend.
fn auditor(policy: &DropOnly, backend: Backend) -> Auditor {
    let cache = CompileCache::Directory(desk::compiled());
    let options = RuntimeOptions { cache, backend, ..RuntimeOptions::default() };
    let store = PolicyStore::open(policy.store()).unwrap();
    let pin = store.pins().iter().next().unwrap();
    let loaded = PolicyRuntime::new(options).unwrap().load(pin, &store.component(pin).unwrap());
    Auditor::new(loaded.unwrap(), corpus::CATALOG.parse().unwrap())
}

#[test]
fn it_decides_the_whole_corpus_of_the_other_policy_as_its_library_does() {
    let policy = DropOnly::build();
    let (native, pulley) = (Backend::Native, Backend::Pulley);
    let (native, pulley) = (auditor(&policy, native), auditor(&policy, pulley));
    let place =
        drop_only::Place { catalog: corpus::CATALOG, protected_tables: &[corpus::PROTECTED_TABLE] };
    let (mut allowed, mut denied) = (0, 0);
    for (id, sql) in corpus::payloads() {
        let decision = native.decide(sql.as_bytes()).unwrap();
        assert_eq!(decision.digest(), pulley.decide(sql.as_bytes()).unwrap().digest(), "{id}");
        match (decision.outcome(), drop_only::decide(sql.as_bytes(), place)) {
            (Outcome::Allow { statements, .. }, Ok(expected)) => {
                let texts: Vec<String> =
                    expected.iter().map(|it| it.text(corpus::CATALOG)).collect();
                assert!(statements.iter().map(|it| &it.text).eq(&texts), "{id}");
                allowed += 1;
            }
            (Outcome::Deny { diagnostics }, Err(expected)) => {
                let codes = diagnostics.iter().map(|it| it.code.as_str());
                assert!(codes.eq(expected.iter().map(|it| it.code)), "{id}");
                denied += 1;
            }
            (answer, expected) => panic!("{id}: {answer:?}, its library says {expected:?}"),
        }
    }
    assert!(allowed > 0 && denied > 100, "{allowed} allowed, {denied} denied");
}

#[tokio::test]
async fn a_step_is_executed_under_it_on_a_real_server() {
    let (installation, policy) = (Installation::ready().await, DropOnly::build());
    let digest = Digest::of(fs::read(policy.component()).unwrap()).to_string();
    let store = policy.store().to_str().unwrap();
    let execute = |release: &str, key: &str| {
        let step = ["execute", release, "schema", "--step-key", key, "--format", "json"];
        installation.tollgate(&[&step[..], &["--store", store]].concat())
    };
    installation.admin("CREATE TABLE old_entry (id INT)").await;
    installation.release("clear", "drop table if exists old_entry, never_was;", None);
    let applied = json(&execute("clear", "clear"));
    assert_eq!(applied["outcome"], "applied", "{applied}");
    assert_eq!((&applied["statementsDone"], &applied["executionCount"]), (&json!(1), &json!(1)));
    let mut admin = installation.server.admin().await;
    let left: Option<u64> = mysql_async::prelude::Queryable::query_first(
        &mut admin,
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_name = 'old_entry'",
    )
    .await
    .unwrap();
    assert_eq!(left, Some(0));
    assert_eq!(json(&execute("clear", "clear")), applied, "a redelivery gives the same receipt");
    let receipt = installation.tollgate(&["receipts", "--key", "clear", "--format", "json"]);
    assert_eq!(json(&receipt)["policyDigest"], digest);

    // What policy v1 would allow is denied before anything is claimed.
    let denied = json(&execute("good", "good"));
    assert_eq!(denied["error"]["refusals"][0]["code"], "policy-denied");
    assert_eq!(denied["error"]["diagnostics"][0]["code"], "not-a-drop");
    assert_eq!(installation.tollgate(&["receipts", "--key", "good"]).code(), Some(1));
}

#[tokio::test]
async fn a_step_begun_under_it_goes_on_under_a_policy_that_supersedes_it_alone() {
    let (installation, policy) = (Installation::ready().await, DropOnly::build());
    let store = policy.store().to_str().unwrap();
    let release = "drop table if exists entry;";
    installation.release("clear", release, None);
    let step = ["execute", "clear", "schema", "--step-key", "clear", "--format", "json"];
    assert_eq!(json(&installation.tollgate(&step))["outcome"], "applied", "under policy v1");
    installation
        .admin(
            "UPDATE factory_plugin_target_receipt SET status = 'FAILED', completed_at = NULL, \
             external_receipt = NULL",
        )
        .await;
    let under = [&step[..], &["--store", store]].concat();
    assert_eq!(json(&installation.tollgate(&under))["error"]["code"], "pin-refused");

    // The same store, once its pin took the place of policy v1's.
    for file in fs::read_dir(tollgate_tests::source::repository().join("policies")).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), policy.store().join(file.file_name())).unwrap();
    }
    let superseding = policy.script(&["--supersede"]);
    assert_eq!(superseding.code(), Some(0), "{superseding:?}");
    assert_eq!(json(&installation.tollgate(&under))["outcome"], "applied");
}
