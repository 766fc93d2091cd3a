//! `check --ledger-export`: what an audit of a whole ledger tells, and that nothing passes silently.

use std::fs;

use serde_json::{Value, json};
use tollgate_tests::desk::Desk;
use tollgate_tests::exported::{closed, export, receipt};
use tollgate_tests::hostile::{self, Decide};
use tollgate_tests::schema::Schema;

const PAYLOAD: &str = "CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY);\n\
    INSERT IGNORE INTO t (id) VALUES (1);\n";

/// Checks an export; the exit code, the lines, and the summary.
fn checked(desk: &Desk, text: impl AsRef<[u8]>, more: &[&str]) -> (Option<i32>, Vec<Value>, Value) {
    desk.write("ledger.jsonl", text);
    let check = ["check", "--format", "json", "--summary", "summary.json"];
    let run = desk.run(&[&check[..], &["--ledger-export", "ledger.jsonl"], more].concat());
    let lines = run.json_lines();
    for line in &lines {
        Schema::of("check").assert_accepts(line);
    }
    let summary = serde_json::from_slice(&fs::read(desk.path("summary.json")).unwrap()).unwrap();
    Schema::of("check-summary").assert_accepts(&summary);
    assert_eq!(summary["exitCode"], json!(run.code()));
    (run.code(), lines, summary)
}

fn human(desk: &Desk, text: impl AsRef<[u8]>) -> tollgate_tests::cli::Run {
    desk.write("ledger.jsonl", text);
    desk.run(&["check", "--ledger-export", "ledger.jsonl"])
}

#[test]
fn the_last_line_and_the_summary_count_every_receipt() {
    let desk = Desk::new();
    let good = receipt(&desk, "good", PAYLOAD, &[]);
    let with = |key: &str, change: fn(&mut Value)| {
        let mut line = receipt(&desk, key, PAYLOAD, &[]);
        change(&mut line);
        line
    };
    let lines = [
        good,
        with("other", |it| it["decisionDigest"] = json!(format!("sha256:{}", "0".repeat(64)))),
        with("gone", |it| {
            it["payload"] = json!(null);
            it["missing"] = json!("release `shop@1.0.0` is not installed");
        }),
        with("small", |it| {
            for key in ["policyDigest", "decisionDigest", "payload"] {
                it[key] = json!(null);
            }
            it["status"] = json!("PRUNED");
        }),
        json!({ "version": 2, "damaged": { "id": 7, "key": "spoilt", "column": "status" } }),
    ];
    for line in &lines {
        Schema::of("ledger-export").assert_accepts(line);
    }
    let (code, told, summary) = checked(&desk, export(&lines), &[]);
    assert_eq!((code, told.len()), (Some(4), 5));
    let counts = json!({
        "agree": 1, "differ": 1, "unknown": 1, "pruned": 1, "damaged": 1, "badLines": 0,
        "complete": true,
    });
    assert_eq!(summary["receipts"], counts);
    assert_eq!(told[4]["error"]["kind"], "receipt-damaged");
    assert_eq!(
        (&told[4]["path"], &told[3]["recorded"]["agrees"]),
        (&json!("spoilt"), &json!(null))
    );
    let run = human(&desk, export(&lines));
    let last = "5 receipts: 1 agree, 1 differ, 1 unknown, 1 pruned, 1 damaged";
    assert_eq!(run.stdout.lines().last(), Some(last), "{}", run.stdout);
    assert!(
        run.stdout.contains("row 7 of the ledger is no receipt: its `status`"),
        "{}",
        run.stdout
    );

    // Each alone: a tombstone fails nothing, a damaged row and a missing payload do.
    let code = |line: &Value| checked(&desk, export(std::slice::from_ref(line)), &[]).0;
    let codes: Vec<Option<i32>> = lines.iter().map(code).collect();
    assert_eq!(codes, [Some(0), Some(4), Some(3), Some(0), Some(3)]);
}

#[test]
fn everything_a_receipt_says_that_can_be_known_is_compared() {
    let desk = Desk::new();
    let good = receipt(&desk, "up", PAYLOAD, &[]);
    let zero = format!("sha256:{}", "0".repeat(64));
    let differs = |change: &dyn Fn(&mut Value)| {
        let mut line = good.clone();
        change(&mut line);
        let (code, told, summary) = checked(&desk, export(&[line]), &[]);
        assert_eq!((code, &summary["receipts"]["differ"]), (Some(4), &json!(1)), "{told:?}");
        let found = told[0]["recorded"]["differences"].as_array().unwrap().clone();
        found.iter().map(|it| it["field"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(differs(&|it| it["statementCount"] = json!(3)), ["statementCount"]);
    assert_eq!(differs(&|it| it["decisionDigest"] = json!(zero)), ["decisionDigest"]);
    assert_eq!(differs(&|it| it["contentHash"] = json!(zero)), ["contentHash"]);
    assert_eq!(differs(&|it| it["status"] = json!("FAILED")), ["externalReceipt", "completedAt"]);
    assert_eq!(differs(&|it| it["completedAt"] = json!(null)), ["completedAt"]);
    assert_eq!(differs(&|it| it["environment"] = json!("live")), ["externalReceipt"]);
    assert_eq!(differs(&|it| it["contradiction"] = json!("lease_token")), ["contradiction"]);
    // Who takes the digests away does not make a tombstone of it.
    assert_eq!(differs(&|it| it["policyDigest"] = json!(null)), ["status"]);
    assert_eq!(differs(&|it| it["decisionDigest"] = json!(null)), ["status"]);
    assert_eq!(differs(&|it| it["status"] = json!("PRUNED")), ["status", "status"]);
    let (code, told, _) = checked(&desk, export(&[good.clone(), good]), &[]);
    assert_eq!((code, &told[1]["recorded"]["differences"][0]["field"]), (Some(4), &json!("key")));
    let run = human(&desk, fs::read(desk.path("ledger.jsonl")).unwrap());
    assert!(run.stdout.contains("differs  up  its key is there twice"), "{}", run.stdout);
    assert!(run.stdout.contains("found    line 1 has it, too"), "{}", run.stdout);
}

#[test]
fn a_receipt_of_what_the_policy_denies_differs() {
    let desk = Desk::new();
    let denying = desk.hostile(Decide::Deny);
    desk.write("x.sql", PAYLOAD);
    let denied = desk.run(&["check", "--format", "json", "--policy", &denying, "x.sql"]);
    let denied = &denied.json_lines()[0];
    let mut line = receipt(&desk, "up", PAYLOAD, &[]);
    line["policyDigest"] = denied["policy"]["digest"].clone();
    line["decisionDigest"] = denied["decisionDigest"].clone();
    let (code, told, _) = checked(&desk, export(&[line]), &["--policy", &denying]);
    assert_eq!(code, Some(4));
    assert_eq!(told[0]["recorded"]["differences"][0]["found"], "the policy denies the payload");
}

#[test]
fn an_export_that_is_not_whole_does_not_pass() {
    let desk = Desk::new();
    let lines = [receipt(&desk, "one", PAYLOAD, &[]), receipt(&desk, "two", PAYLOAD, &[])];
    let whole = export(&lines);
    assert_eq!(human(&desk, &whole).code(), Some(0));
    let without = format!("{}\n{}\n", lines[0], lines[1]);
    let later = whole.split_once('\n').unwrap().1.to_owned();
    for (text, told) in [
        (String::new(), "is empty"),
        (without.clone(), "it was cut off, or its export did not end"),
        (without.replace("\"version\":2", "\"version\":1"), "an earlier Tollgate wrote it"),
        (later, "closes 2 line(s), and there are 1"),
        (whole.replace("\"generation\":1", "\"generation\":2"), "another digest"),
        (format!("{whole}{}\n", lines[0]), "line 4 stands behind the closing line"),
    ] {
        let (code, _, summary) = checked(&desk, &text, &[]);
        assert!(code >= Some(2), "{text}");
        assert_eq!(summary["receipts"]["complete"], false);
        let run = human(&desk, &text);
        assert!(run.stderr.contains(told), "{}", run.stderr);
        assert!(run.stdout.ends_with("; the export is not complete\n"), "{}", run.stdout);
    }
    // Exports of earlier versions are taken for what they have when that is asked for, and others not.
    let earlier = without.replace("\"version\":2", "\"version\":1");
    let (code, _, summary) = checked(&desk, earlier, &["--incomplete"]);
    assert_eq!((code, &summary["receipts"]["agree"]), (Some(0), &json!(2)));
    assert_eq!(summary["receipts"]["complete"], false);
    assert_eq!(checked(&desk, "", &["--incomplete"]).0, Some(2));
    let edited = whole.replace("\"generation\":1", "\"generation\":2");
    assert_eq!(checked(&desk, edited, &["--incomplete"]).0, Some(2));
    // Nothing in a ledger is something that can be known.
    let run = human(&desk, export(&[]));
    assert_eq!(run.code(), Some(0), "{run:?}");
    assert_eq!(run.stdout, "0 receipts: 0 agree, 0 differ, 0 unknown, 0 pruned\n");
    assert_eq!(checked(&desk, export(&[]), &[]).2["receipts"]["complete"], true);
}

#[test]
fn what_is_no_export_of_this_version_is_said_once() {
    let desk = Desk::new();
    let lines = [receipt(&desk, "one", PAYLOAD, &[]), receipt(&desk, "two", PAYLOAD, &[])];
    // Its closing line is one of another version, too.
    let later = export(&lines).replace("\"version\":2", "\"version\":9");
    let run = human(&desk, later);
    assert_eq!(run.code(), Some(2));
    assert!(run.stdout.contains("line 1 has version 9"), "{run:?}");
    assert!(!run.stderr.contains("closing line"), "{}", run.stderr);
    let run = human(&desk, "CREATE TABLE t (id INT);\n".repeat(1_000));
    assert_eq!(run.code(), Some(2));
    assert!(run.stderr.contains("does not begin with a line of JSON"), "{}", run.stderr);
    assert!(run.stdout.len() < 1_000, "{}", run.stdout);
}

/// What an upgrade would change can be told of an export that does not say where it ends.
#[test]
fn a_diff_takes_an_export_for_what_it_has_when_asked_to() {
    let desk = Desk::new();
    let line = receipt(&desk, "one", PAYLOAD, &[]);
    desk.write("ledger.jsonl", format!("{line}\n"));
    let diff = ["policy", "diff", "sql-jdbc:v1", "sql-jdbc:v1", "--ledger-export", "ledger.jsonl"];
    let run = desk.run(&diff);
    assert_eq!(run.code(), Some(2), "{run:?}");
    assert!(run.stderr.contains("`--incomplete`"), "{}", run.stderr);
    let run = desk.run(&[&diff[..], &["--incomplete"]].concat());
    assert_eq!(run.code(), Some(0), "{run:?}");
}

#[test]
fn a_bad_line_is_told_by_its_number_and_the_others_are_checked() {
    let desk = Desk::new();
    let line = |key: &str| receipt(&desk, key, PAYLOAD, &[]).to_string();
    let text = closed(&[line("one"), "{ \"version\": 2, \"key\":".to_owned(), line("three")]);
    let (code, told, summary) = checked(&desk, &text, &[]);
    assert_eq!((code, told.len()), (Some(2), 3));
    assert_eq!((&told[1]["path"], &told[2]["path"]), (&json!("ledger.jsonl:2"), &json!("three")));
    assert_eq!(told[1]["error"]["kind"], "export-line");
    assert_eq!(summary["receipts"]["badLines"], 1);
    assert_eq!(summary["receipts"]["agree"], 2);
    let run = human(&desk, &text);
    assert!(run.stdout.contains("`ledger.jsonl` line 2 is no exported receipt"), "{}", run.stdout);
    let cause = "because: EOF while parsing a value, at byte 22 of the line";
    assert!(run.stdout.contains(cause), "{}", run.stdout);
    assert!(run.stdout.contains("allowed  three"), "{}", run.stdout);
    assert!(run.stdout.ends_with("0 pruned; 1 bad line\n"), "{}", run.stdout);
    // What editors put into a file is not what is wrong with it.
    let text = closed(&[line("one"), line("two")]).replace('\n', "\r\n\r\n");
    let run = human(&desk, format!("\u{feff}{text}"));
    assert_eq!(run.code(), Some(0), "{run:?}");
    let utf16: Vec<u8> =
        format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let run = human(&desk, utf16);
    assert_eq!(run.code(), Some(2));
    assert!(run.stderr.contains("is in UTF-16"), "{}", run.stderr);
}

#[test]
fn texts_of_an_export_stand_within_their_lines() {
    let desk = Desk::new();
    let mut gone = receipt(&desk, "gone", PAYLOAD, &[]);
    gone["payload"] = json!(null);
    gone["missing"] = json!("x\nallowed  forged\r\u{1b}[2J\u{2028}");
    let mut edited = receipt(&desk, "edited", PAYLOAD, &[]);
    edited["contradiction"] = json!("status\nallowed  forged");
    let damaged = json!({ "version": 2, "damaged": {
        "id": 1, "key": "k\nallowed  forged", "column": "c\nallowed  forged",
    } });
    let bad = "{\"version\":2,\"key\":\"k\\nallowed  forged\"}".to_owned();
    let lines = [gone.to_string(), edited.to_string(), damaged.to_string(), bad];
    let run = human(&desk, closed(&lines));
    for line in run.stdout.lines() {
        assert!(!line.starts_with("allowed  forged"), "{}", run.stdout);
        assert!(!line.contains(['\u{1b}', '\r', '\u{2028}']), "{line}");
    }
    assert!(run.stdout.contains("x␊allowed  forged␍␛[2J<U+2028>"), "{}", run.stdout);
    desk.write("a\nallowed  forged.sql", PAYLOAD);
    let run = desk.run(&["check", "a\nallowed  forged.sql"]);
    assert_eq!(run.stdout, "allowed  a␊allowed  forged.sql  (2 statements)\n");
}

#[test]
fn earlier_policies_are_found_by_the_digest_a_receipt_names() {
    let desk = Desk::new();
    let [allowing, denying] = [Decide::Allow, Decide::Remember].map(|decide| desk.hostile(decide));
    let published = receipt(&desk, "published", PAYLOAD, &[]);
    let earlier = receipt(&desk, "earlier", PAYLOAD, &["--policy", &allowing]);
    let text = export(&[published, earlier]);
    // Neither is pinned: one lies in the store, the other is named.
    let (code, told, _) = checked(&desk, &text, &[]);
    assert_eq!(code, Some(3));
    assert_eq!(told[1]["error"]["kind"], "policy-missing");
    let named = checked(&desk, &text, &["--policy", &denying, "--policy", &allowing]);
    assert_eq!(named.0, Some(0), "{named:?}");
    desk.write("store/pins.toml", "format = 1\n");
    let folder = tollgate_tests::source::repository().join("policies");
    let file = "mysql-repeatable-subset-1.0.0.wasm";
    fs::copy(folder.join(file), desk.path("store").join(file)).unwrap();
    desk.write("store/hostile-0.0.0.wasm", hostile::policy(Decide::Allow));
    let (code, told, summary) = checked(&desk, &text, &["--store", "store"]);
    assert_eq!(code, Some(0), "{told:?}");
    assert_eq!(summary["policies"].as_array().unwrap().len(), 2);
    // Files are decided on by one.
    let run = desk.run(&["check", "--policy", &allowing, "--policy", &denying, "exported.sql"]);
    assert_eq!(run.code(), Some(2), "{run:?}");
}
