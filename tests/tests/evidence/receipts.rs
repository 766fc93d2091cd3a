//! Evidence of steps that ran, and all decisions of a ledger made again, on a real server.

use std::fs;

use serde_json::{Value, json};
use tollgate_tests::cli::{self, Run};
use tollgate_tests::exported::closed;
use tollgate_tests::hostile::Decide;
use tollgate_tests::installation::Installation;
use tollgate_tests::schema::Schema;

const RELEASE: &str = "releases/orders/1.0.0";
const FORWARD: &str = "CREATE TABLE IF NOT EXISTS entry (id INT NOT NULL PRIMARY KEY);\n\
    INSERT IGNORE INTO entry (id) VALUES (1), (2);\n";
const BACK: &str = "DROP TABLE IF EXISTS entry;\n";

/// A step that ran, and its compensation.
async fn installation() -> Installation {
    let installation = Installation::ready().await;
    installation.release(RELEASE, FORWARD, Some(BACK));
    assert_eq!(installation.execute(RELEASE, "up").code(), Some(0));
    let back = ["execute", RELEASE, "schema", "--step-key", "back", "--direction", "compensate"];
    let run = installation.tollgate(&[&back[..], &["--reverses", "up"]].concat());
    assert_eq!(run.code(), Some(0), "{run:?}");
    installation
}

fn export(installation: &Installation, key: &str, more: &[&str]) -> Run {
    let to = format!("{key}.tar");
    installation.tollgate(&[&["evidence", "export", key, "--force", "--to", &to], more].concat())
}

/// Offline: without any variable of the installation.
fn offline(installation: &Installation, arguments: &[&str]) -> Run {
    cli::run(cli::command(arguments).current_dir(installation.folder()))
}

#[tokio::test]
async fn a_step_s_evidence_has_its_receipt_and_needs_no_server() {
    let installation = installation().await;
    for (key, payload, count) in [("up", FORWARD, 2), ("back", BACK, 1)] {
        let run = export(&installation, key, &["--releases", "releases"]);
        assert_eq!(run.code(), Some(0), "{run:?}");
        let bundle = fs::read(installation.folder().join(format!("{key}.tar"))).unwrap();
        let run = export(&installation, key, &["--releases", "releases"]);
        assert_eq!(run.code(), Some(0), "{run:?}");
        let again = fs::read(installation.folder().join(format!("{key}.tar"))).unwrap();
        assert!(bundle == again, "the receipt of a step that is done does not change");
        // The folder of releases as every other command finds it.
        let to = format!("{key}.tar");
        let mut command =
            installation.command(&["evidence", "export", key, "--force", "--to", &to]);
        let run = cli::run(command.env("TOLLGATE_RELEASES", "releases"));
        assert_eq!(run.code(), Some(0), "{run:?}");

        let file = format!("{key}.tar");
        let run =
            offline(&installation, &["evidence", "verify", "--json", "--require-pinned", &file]);
        assert_eq!(run.code(), Some(0), "{run:?}");
        let line = &run.json_lines()[0];
        Schema::of("evidence-verify").assert_accepts(line);
        assert_eq!(line["stepKey"], key);
        assert_eq!(line["status"], "SUCCEEDED");
        assert_eq!(line["environment"], "preview");
        assert_eq!(line["statementCount"], count);
        let receipt = installation.tollgate(&["receipts", "--key", key, "--format", "json"]);
        for (ours, theirs) in
            [("decisionDigest", "decisionDigest"), ("payloadDigest", "contentHash")]
        {
            assert_eq!(line[ours], receipt.json_lines()[0][theirs]);
        }
        let mut members = tollgate_tests::ustar::Members::of(&bundle);
        assert_eq!(members.content("payload.sql"), payload.as_bytes());
    }
}

#[tokio::test]
async fn evidence_of_another_payload_policy_or_decision_is_refused() {
    let installation = installation().await;
    let refused = |run: &Run, code: i32, told: &str| {
        assert_eq!(run.code(), Some(code), "{run:?}");
        assert!(run.stderr.contains(told), "{}", run.stderr);
        assert!(!installation.folder().join("up.tar").exists());
    };
    fs::write(installation.folder().join("other.sql"), "DROP TABLE IF EXISTS entry;").unwrap();
    refused(&export(&installation, "up", &["--payload", "other.sql"]), 4, "content hash");
    refused(&export(&installation, "up", &["--releases", "."]), 4, "is not installed");
    let nowhere = export(&installation, "up", &["--releases", "nowhere"]);
    refused(&nowhere, 2, "the folder `nowhere` does not exist");
    refused(&export(&installation, "up", &[]), 2, "--releases DIR");
    refused(&export(&installation, "nobody", &["--releases", "releases"]), 1, "no receipt");
    let elsewhere = ["--releases", "releases", "--catalog", "elsewhere"];
    refused(&export(&installation, "up", &elsewhere), 2, "not `elsewhere`");
    installation.release(RELEASE, &format!("{FORWARD} "), Some(BACK));
    refused(&export(&installation, "up", &["--releases", "releases"]), 4, "no payload with the");
    installation.release(RELEASE, FORWARD, Some(BACK));

    let other = format!("sha256:{}", "0".repeat(64));
    let edit = |column: &str, value: &str| {
        format!(
            "UPDATE factory_plugin_target_receipt SET {column} = {value} \
             WHERE step_idempotency_key = 'up'"
        )
    };
    installation.admin(&edit("decision_digest", &format!("'{other}'"))).await;
    refused(&export(&installation, "up", &["--releases", "releases"]), 4, "the receipt names");
    installation.admin(&edit("policy_digest", &format!("'{other}'"))).await;
    refused(&export(&installation, "up", &["--releases", "releases"]), 4, "the store has not");
}

#[tokio::test]
async fn a_policy_that_left_the_store_is_named_by_its_file() {
    let installation = installation().await;
    let folder = installation.folder();
    fs::create_dir(folder.join("store")).unwrap();
    fs::write(folder.join("store/pins.toml"), "format = 1\n").unwrap();
    let elsewhere = ["--releases", "releases", "--store", "store"];
    let run = export(&installation, "up", &elsewhere);
    assert_eq!(run.code(), Some(4), "{run:?}");
    assert!(run.stderr.contains("--policy FILE"), "{}", run.stderr);
    let policies = tollgate_tests::source::repository().join("policies");
    let file = policies.join("mysql-repeatable-subset-1.0.0.wasm");
    let policy = ["--policy", file.to_str().unwrap()];
    let run = export(&installation, "up", &[&elsewhere[..], &policy].concat());
    assert_eq!(run.code(), Some(0), "{run:?}");
    let run = offline(&installation, &["evidence", "verify", "up.tar"]);
    assert_eq!(run.code(), Some(0), "{run:?}");
    // Another policy is no help.
    let other = folder.join("other.wasm");
    fs::write(&other, tollgate_tests::hostile::policy(Decide::Allow)).unwrap();
    let policy = ["--policy", other.to_str().unwrap()];
    let run = export(&installation, "up", &[&elsewhere[..], &policy].concat());
    assert_eq!(run.code(), Some(4), "{run:?}");
}

#[tokio::test]
async fn a_step_that_failed_is_evidence_as_well() {
    let installation = installation().await;
    let broken = "releases/orders/2.0.0";
    let folder = installation.release(broken, "INSERT IGNORE INTO nowhere (id) VALUES (1);", None);
    let manifest = fs::read_to_string(folder.join("plugin.toml")).unwrap();
    fs::write(folder.join("plugin.toml"), manifest.replace("1.0.0", "2.0.0")).unwrap();
    assert_eq!(installation.execute(broken, "bad").code(), Some(1));
    let run = export(&installation, "bad", &["--releases", "releases"]);
    assert_eq!(run.code(), Some(0), "{run:?}");
    let run = offline(&installation, &["evidence", "verify", "--json", "bad.tar"]);
    assert_eq!((run.code(), &run.json_lines()[0]["status"]), (Some(0), &json!("FAILED")));
}

#[tokio::test]
async fn a_compensation_of_what_never_ran_is_not_told_as_a_run() {
    let installation = Installation::ready().await;
    installation.release(RELEASE, FORWARD, Some(BACK));
    let back = ["execute", RELEASE, "schema", "--step-key", "back", "--direction", "compensate"];
    let run = installation.tollgate(&[&back[..], &["--reverses", "up"]].concat());
    assert_eq!(run.code(), Some(0), "{run:?}");
    assert_eq!(export(&installation, "back", &["--releases", "releases"]).code(), Some(0));
    let run = offline(&installation, &["evidence", "verify", "back.tar"]);
    assert_eq!(run.code(), Some(0), "{run:?}");
    assert!(run.stdout.contains("back, SUCCEEDED, never run"), "{}", run.stdout);
    assert!(run.stdout.contains("says `SUCCEEDED` without a run"), "{}", run.stdout);
}

/// All of a ledger, as lines.
fn exported(installation: &Installation) -> (Option<i32>, Vec<Value>) {
    // Payloads are what is asked for here, so their literals are not looked for.
    let run =
        cli::run(&mut installation.command(&["receipts", "export", "--releases", "releases"]));
    fs::write(installation.folder().join("ledger.jsonl"), &run.stdout).unwrap();
    let mut lines = run.json_lines();
    let closing = lines.pop().unwrap();
    Schema::of("ledger-export").assert_accepts(&closing);
    assert_eq!(closing["closing"]["lines"], lines.len());
    (run.code(), lines)
}

fn replayed(installation: &Installation, file: &str) -> (Option<i32>, Vec<Value>, Value) {
    let check = ["check", "--format", "json", "--summary", "summary.json", "--ledger-export", file];
    let run = offline(installation, &check);
    let summary = fs::read(installation.folder().join("summary.json")).unwrap();
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    Schema::of("check-summary").assert_accepts(&summary);
    let lines = run.json_lines();
    for line in &lines {
        Schema::of("check").assert_accepts(line);
    }
    (run.code(), lines, summary)
}

#[tokio::test]
async fn every_decision_of_a_ledger_is_made_again_offline() {
    let schema = Schema::of("ledger-export");
    let installation = installation().await;
    installation.execute("good", "elsewhere");
    let (code, lines) = exported(&installation);
    assert_eq!((code, lines.len()), (Some(1), 3), "`good` is not below the releases");
    for line in &lines {
        schema.assert_accepts(line);
    }
    assert_eq!(lines[0]["payload"], json!(null));
    assert!(lines[0]["missing"].as_str().unwrap().contains("no payload with the content hash"));
    assert_eq!(lines[2]["payload"], FORWARD);
    schema.assert_notices(&lines[2], |it| it["version"] = json!(3));
    schema.assert_notices(&lines[2], |it| drop(it.as_object_mut().unwrap().remove("catalog")));
    schema.assert_notices(&lines[2], |it| it["payload"] = json!(1));

    let (code, checked, summary) = replayed(&installation, "ledger.jsonl");
    assert_eq!(code, Some(3), "one has no payload: {checked:?}");
    let counts = |agree: u64, differ: u64, unknown: u64| {
        json!({
            "agree": agree, "differ": differ, "unknown": unknown, "pruned": 0, "damaged": 0,
            "badLines": 0, "complete": true,
        })
    };
    assert_eq!(summary["receipts"], counts(2, 0, 1));
    assert_eq!(summary["errors"], json!({ "payload-missing": 1 }));
    assert_eq!(checked[2]["path"], "up");
    assert_eq!(checked[2]["recorded"], json!({ "agrees": true }));
    assert_eq!(checked[2]["decisionDigest"], lines[2]["decisionDigest"]);

    // Another page, a ledger whose receipts were edited, and one that was made small.
    let text = fs::read_to_string(installation.folder().join("ledger.jsonl")).unwrap();
    let whole: Vec<&str> = text.lines().skip(1).take(2).collect();
    let whole = closed(&whole);
    let write = |name: &str, text: String| {
        fs::write(installation.folder().join(name), text).unwrap();
    };
    write("whole.jsonl", whole.clone());
    assert_eq!(replayed(&installation, "whole.jsonl").0, Some(0));
    let digest = lines[2]["decisionDigest"].as_str().unwrap();
    let edited: Vec<&str> = whole.lines().take(2).collect();
    let edited = edited.join("\n").replace(digest, &format!("sha256:{}", "1".repeat(64)));
    write("edited.jsonl", closed(&edited.lines().collect::<Vec<_>>()));
    let (code, checked, summary) = replayed(&installation, "edited.jsonl");
    assert_eq!(code, Some(4));
    assert_eq!(summary["receipts"], counts(1, 1, 0));
    assert_eq!(checked[1]["recorded"]["agrees"], false);
    let human = offline(&installation, &["check", "--ledger-export", "edited.jsonl"]);
    assert!(human.stdout.contains("differs  up  its receipt has another decision digest"));
    write("content.jsonl", whole.replace("(1), (2)", "(1), (3)"));
    let (code, checked, _) = replayed(&installation, "content.jsonl");
    assert_eq!((code, &checked[1]["recorded"]["agrees"]), (Some(4), &json!(false)));
    let closing = text.lines().next_back().unwrap().len();
    write("cut.jsonl", text[..text.len() - closing - 40].to_owned());
    let cut = offline(&installation, &["check", "--ledger-export", "cut.jsonl"]);
    assert_eq!(cut.code(), Some(3), "{cut:?}");
    assert!(cut.stdout.contains("line 3 is no exported receipt"), "{}", cut.stdout);
    assert!(cut.stdout.contains("allowed  back"), "what was read before is told: {}", cut.stdout);
    assert!(cut.stderr.contains("has no closing line"), "{}", cut.stderr);
}

#[tokio::test]
async fn a_row_that_is_no_receipt_is_exported_as_what_it_is() {
    let schema = Schema::of("ledger-export");
    let installation = installation().await;
    installation
        .admin(
            "UPDATE factory_plugin_target_receipt SET content_hash = 'sha256:none' \
             WHERE step_idempotency_key = 'back'",
        )
        .await;
    let (code, lines) = exported(&installation);
    assert_eq!((code, lines.len()), (Some(1), 2));
    for line in &lines {
        schema.assert_accepts(line);
    }
    let damaged = &lines[0]["damaged"];
    assert_eq!((&damaged["key"], &damaged["column"]), (&json!("back"), &json!("content_hash")));
    schema.assert_notices(&lines[0], |it| it["damaged"]["column"] = json!("Content Hash"));
    schema.assert_notices(&lines[0], |it| it["note"] = json!(1));
    assert_eq!(lines[1]["key"], "up", "the youngest first, damaged or not");
    let (code, checked, summary) = replayed(&installation, "ledger.jsonl");
    assert_eq!((code, &checked[0]["path"]), (Some(3), &json!("back")));
    let receipts = &summary["receipts"];
    assert_eq!((&receipts["agree"], &receipts["damaged"]), (&json!(1), &json!(1)));
    assert_eq!(receipts["complete"], true);
}

#[tokio::test]
async fn a_pruned_receipt_is_told_and_gives_no_evidence() {
    let installation = installation().await;
    installation
        .admin(
            "UPDATE factory_plugin_target_receipt SET completed_at = completed_at - INTERVAL 9 DAY, \
             created_at = created_at - INTERVAL 9 DAY, updated_at = updated_at - INTERVAL 9 DAY",
        )
        .await;
    let run = installation.tollgate(&["receipts", "prune", "--older-than", "7"]);
    assert!(run.stdout.starts_with("2 receipt(s) pruned"), "{run:?}");
    let run = export(&installation, "up", &["--releases", "releases"]);
    assert_eq!(run.code(), Some(1), "{run:?}");
    assert!(run.stderr.contains("the receipt was pruned"), "{}", run.stderr);
    let (code, lines) = exported(&installation);
    assert_eq!((code, &lines[0]["decisionDigest"]), (Some(0), &json!(null)));
    let (code, _, summary) = replayed(&installation, "ledger.jsonl");
    assert_eq!((code, &summary["errors"]), (Some(0), &json!({ "pruned": 2 })));
    assert_eq!(summary["receipts"]["pruned"], 2);
    // A tombstone needs no payload any more.
    fs::remove_dir_all(installation.folder().join(RELEASE)).unwrap();
    assert_eq!(exported(&installation).0, Some(1));
    assert_eq!(replayed(&installation, "ledger.jsonl").0, Some(0));
}
