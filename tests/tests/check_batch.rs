//! `check` over many payloads: what it came to, in an object, and in memory that does not grow.

use std::fmt::Write as _;
use std::fs;

use serde_json::{Value, json};
use tollgate_tests::desk::Desk;
use tollgate_tests::exported;
use tollgate_tests::hostile::Decide;
use tollgate_tests::peak::peak_kib;
use tollgate_tests::schema::Schema;

/// Writes so many payloads, every fifth of which is denied.
fn generate(desk: &Desk, folder: &str, count: usize) {
    for index in 0..count {
        let text = if index % 5 == 0 {
            format!("DELETE FROM t{index} WHERE 1 = 1;\nUPDATE t{index} SET a = 1;\n")
        } else {
            let mut text = format!("CREATE TABLE IF NOT EXISTS t{index} (id INT PRIMARY KEY);\n");
            for row in 0..20 {
                writeln!(text, "INSERT IGNORE INTO t{index} (id) VALUES ({row});").unwrap();
            }
            text
        };
        desk.write(&format!("{folder}/{index:05}.sql"), text);
    }
}

/// Runs `check`; its exit code, and the most memory it held.
fn check(desk: &Desk, arguments: &[&str]) -> (Option<i32>, u64) {
    peak_kib(&mut desk.command(&[&["check", "--format", "json"], arguments].concat()))
}

fn summary(desk: &Desk) -> Value {
    serde_json::from_slice(&fs::read(desk.path("summary.json")).unwrap()).unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn ten_times_the_payloads_take_the_same_memory() {
    let desk = Desk::new();
    generate(&desk, "few", 1_000);
    generate(&desk, "many", 10_000);
    // The first run compiles the policy.
    desk.run(&["check", "few/00001.sql"]);
    let (code, few) = check(&desk, &["few"]);
    assert_eq!(code, Some(1));
    let (code, many) = check(&desk, &["--summary", "summary.json", "many"]);
    assert_eq!(code, Some(1));
    assert!(few > 10_000, "{few} KiB: nothing was measured");
    // 9,000 more paths are about a megabyte; 9,000 more decisions would be fifty.
    assert!(many < few + 8_192, "{few} KiB for 1,000 payloads, {many} KiB for 10,000");
    println!("peak memory: {few} KiB for 1,000 payloads, {many} KiB for 10,000");
    let summary = summary(&desk);
    assert_eq!(summary["decisions"], json!({ "allow": 8_000, "deny": 2_000, "error": 0 }));
}

#[test]
#[cfg(target_os = "linux")]
fn ten_times_the_receipts_take_the_same_memory() {
    let desk = Desk::new();
    let payload = "DROP TABLE IF EXISTS t; ".repeat(80);
    let receipt = exported::receipt(&desk, "k", &payload, &[]).to_string();
    for (name, count) in [("few.jsonl", 1_000), ("many.jsonl", 10_000)] {
        let of_key = |index| {
            let key = format!("k:{index}");
            receipt
                .replace("\"k\"", &format!("\"{key}\""))
                .replace(":preview:k", &format!(":preview:{key}"))
        };
        desk.write(name, exported::closed(&(0..count).map(of_key).collect::<Vec<_>>()));
    }
    let (code, few) = check(&desk, &["--ledger-export", "few.jsonl"]);
    assert_eq!(code, Some(0));
    let (code, many) =
        check(&desk, &["--summary", "summary.json", "--ledger-export", "many.jsonl"]);
    assert_eq!(code, Some(0));
    assert!(few > 10_000, "{few} KiB: nothing was measured");
    assert!(many < few + 8_192, "{few} KiB for 1,000 receipts, {many} KiB for 10,000");
    println!("peak memory: {few} KiB for 1,000 receipts, {many} KiB for 10,000");
    assert_eq!(summary(&desk)["receipts"]["agree"], 10_000);
}

#[test]
fn a_summary_replaces_nothing_but_a_summary() {
    let desk = Desk::new();
    desk.write("one.sql", "DROP TABLE IF EXISTS one;");
    desk.write("two.sql", "DROP TABLE IF EXISTS two;");
    let run = desk.run(&["check", "--summary", "one.sql", "two.sql"]);
    assert_eq!(run.code(), Some(2));
    assert!(run.stderr.contains("`one.sql` is there already, and no summary"), "{}", run.stderr);
    assert_eq!(fs::read_to_string(desk.path("one.sql")).unwrap(), "DROP TABLE IF EXISTS one;");
    for _ in 0..2 {
        assert_eq!(desk.run(&["check", "--summary", "new.json", "two.sql"]).code(), Some(0));
    }
    // Not even a summary, when it is what is read.
    let run = desk.run(&["check", "--summary", "new.json", "new.json"]);
    assert_eq!(run.code(), Some(2));
    assert!(run.stderr.contains("this command reads it"), "{}", run.stderr);
}

#[test]
fn a_summary_follows_its_schema_and_counts_what_was_found() {
    let schema = Schema::of("check-summary");
    let desk = Desk::new();
    generate(&desk, "some", 10);
    let run = desk.run(&["check", "--summary", "summary.json", "some"]);
    assert_eq!(run.code(), Some(1));
    let told = summary(&desk);
    schema.assert_accepts(&told);
    assert_eq!(told["payloads"], 10);
    assert_eq!(told["decisions"], json!({ "allow": 8, "deny": 2, "error": 0 }));
    assert_eq!(told["codes"], json!({ "constant-comparison": 2, "statement-kind": 2 }));
    assert_eq!(told["exitCode"], 1);
    let size = |entry: fs::DirEntry| entry.metadata().unwrap().len();
    let bytes: u64 =
        fs::read_dir(desk.path("some")).unwrap().map(|entry| size(entry.unwrap())).sum();
    assert_eq!(told["bytes"], bytes);

    let run = desk.run(&["check", "--format", "json", "--summary", "-", "some"]);
    let line: Value = serde_json::from_str(&run.stderr).unwrap();
    schema.assert_accepts(&line);
    assert_eq!((run.json_lines().len(), desk.path("-").exists()), (10, false));

    let trapping = desk.hostile(Decide::Trap);
    let run = desk.run(&["check", "--policy", &trapping, "--summary", "summary.json", "some"]);
    assert_eq!(run.code(), Some(3));
    let undecided = summary(&desk);
    schema.assert_accepts(&undecided);
    assert_eq!(undecided["errors"], json!({ "trap": 10 }));

    schema.assert_notices(&told, |it| it["payloads"] = json!(-1));
    schema.assert_notices(&told, |it| it["codes"] = json!({ "Not A Code": 1 }));
    schema.assert_notices(&told, |it| drop(it.as_object_mut().unwrap().remove("policies")));
    let run = desk.run(&["check", "--summary", "absent/summary.json", "some"]);
    assert_eq!(run.code(), Some(2), "{run:?}");
    assert!(run.stderr.contains("cannot be written"), "{}", run.stderr);
}

#[test]
fn a_ledger_s_export_stands_alone() {
    let desk = Desk::new();
    desk.write("ledger.jsonl", exported::export(&[]));
    for more in [&["x.sql"][..], &["--fix"], &["--format", "sarif"], &["--format", "github"]] {
        let run = desk.run(&[&["check", "--ledger-export", "ledger.jsonl"], more].concat());
        assert_eq!(run.code(), Some(2), "{more:?}: {run:?}");
    }
    assert_eq!(desk.run(&["check", "--ledger-export", "ledger.jsonl"]).code(), Some(0));
    assert_eq!(desk.run(&["check", "--ledger-export", "absent.jsonl"]).code(), Some(2));
}
