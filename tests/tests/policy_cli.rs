//! `tollgate check` and `tollgate policy` as their users run them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tollgate::digest::Digest;
use tollgate_tests::cli;
use tollgate_tests::corpus::{self, Expected};
use tollgate_tests::desk::{self, Desk};
use tollgate_tests::hostile::{self, Decide};

const ALLOWED: &str = "INSERT IGNORE INTO t (id, name) VALUES (1, 'é; -- ''');\n";
const DENIED: &str = "-- comment\nINSERT IGNORE INTO t VALUES (1);\n\tTRUNCATE é;\n";

#[test]
fn exit_codes_tell_what_happened() {
    let desk = Desk::new();
    desk.write("allowed.sql", ALLOWED);
    desk.write("denied.sql", DENIED);
    let code = |arguments: &[&str]| {
        let run = desk.run(arguments);
        run.code().unwrap_or_else(|| panic!("{run:?}"))
    };
    assert_eq!(code(&["check", "allowed.sql"]), 0);
    assert_eq!(code(&["check", "denied.sql"]), 1);
    assert_eq!(code(&["check", "."]), 1);
    assert_eq!(code(&["check", "missing.sql"]), 2);
    assert_eq!(code(&["check", "--catalog", "mysql", "allowed.sql"]), 2);
    assert_eq!(code(&["check", "--executor", "sql-jdbc:v9", "allowed.sql"]), 2);
    assert_eq!(code(&["check", "--frobnicate", "allowed.sql"]), 2);
    assert_eq!(code(&["check"]), 2);
    assert_eq!(code(&["check", "-", "allowed.sql"]), 2);
    assert_eq!(code(&["check", "--policy", "allowed.sql", "allowed.sql"]), 2);
}

#[test]
fn a_policy_that_does_not_decide_is_exit_code_3_and_no_denial() {
    let desk = Desk::new();
    let payload = desk.write("a.sql", "xyzxyz");
    let payload = payload.to_str().unwrap();
    for (decide, kind) in [
        (Decide::Trap, "trap"),
        (Decide::Recurse, "trap"),
        (Decide::LoopForever, "fuel"),
        (Decide::TakeMemory, "memory"),
        (Decide::AllowNothing, "malformed"),
    ] {
        let component = desk.hostile(decide);
        let run = desk.run(&["check", "--policy", &component, "--format", "json", payload]);
        assert_eq!(run.code(), Some(3), "{decide:?}: {run:?}");
        let [line] = &run.json_lines()[..] else { panic!("{run:?}") };
        assert_eq!(line["decision"], "error");
        assert_eq!(line["error"]["kind"], kind, "{line}");
        assert_eq!(line["decisionDigest"], Value::Null);
        assert_eq!(line["payloadDigest"], Digest::of("xyzxyz").to_string());
        assert_eq!(line["diagnostics"], json!([]));
    }
}

#[test]
fn another_digest_than_the_pinned_one_is_exit_code_4() {
    let desk = Desk::new();
    desk.write("allowed.sql", ALLOWED);
    desk.write("core.wasm", hostile::core_module(Decide::Deny));
    let build = ["policy", "build", "core.wasm", "--store", "store", "--compiler", "hand"];
    let run = desk.run(&build);
    assert_eq!(run.code(), Some(0), "{run:?}");

    let check = ["check", "--store", "store", "allowed.sql"];
    assert_eq!(desk.run(&check).code(), Some(1));
    desk.write("store/hostile-0.0.0.wasm", hostile::policy(Decide::Allow));
    let run = desk.run(&check);
    assert_eq!(run.code(), Some(4), "{run:?}");
    assert!(run.stderr.contains("the pin says sha256:"), "{run:?}");
    assert_eq!(desk.run(&["policy", "inspect", "--store", "store"]).code(), Some(4));

    let run = desk.run(&[&build[..], &["--check"]].concat());
    assert_eq!(run.code(), Some(4), "{run:?}");
    let run = desk.run(&build);
    assert_eq!(run.code(), Some(4), "other bytes of that name are there: {run:?}");
    assert_eq!(desk.run(&[&build[..], &["--force"]].concat()).code(), Some(0));
    assert_eq!(desk.run(&[&build[..], &["--check"]].concat()).code(), Some(0));
    assert_eq!(desk.run(&check).code(), Some(1));
}

#[test]
fn a_component_with_an_import_is_never_asked() {
    let desk = Desk::new();
    desk.write("a.sql", ALLOWED);
    desk.write("p.wasm", hostile::policy_with_import());
    for arguments in
        [&["check", "--policy", "p.wasm", "a.sql"][..], &["policy", "inspect", "p.wasm"]]
    {
        let run = desk.run(arguments);
        assert_eq!(run.code(), Some(2), "{run:?}");
        assert!(run.stderr.contains("imports `clock`"), "{run:?}");
    }
}

#[test]
fn json_has_the_documented_shape() {
    let desk = Desk::new();
    let component = desk.hostile(Decide::Deny);
    let digest = Digest::of(fs::read(&component).unwrap()).to_string();
    desk.write("a.sql", "é\nab\u{e9}\n");
    let run = desk.run(&["check", "--policy", &component, "--format", "json", "a.sql"]);
    let [line] = &run.json_lines()[..] else { panic!("{run:?}") };
    assert!(line["decisionDigest"].as_str().unwrap().parse::<Digest>().is_ok());
    let start = json!({ "offset": 2, "line": 1, "column": 2 });
    assert_eq!(
        *line,
        json!({
            "path": "a.sql",
            "decision": "deny",
            "payloadDigest": Digest::of("é\nab\u{e9}\n").to_string(),
            "policy": {
                "executor": "sql-jdbc:v1",
                "name": "hostile",
                "version": "0.0.0",
                "digest": digest,
            },
            "decisionDigest": line["decisionDigest"],
            "statements": [],
            "diagnostics": [{
                "code": "no-good",
                "severity": "error",
                "message": "`é` is no good",
                "help": "write something else",
                "statement": 0,
                "span": { "start": start, "end": { "offset": 5, "line": 2, "column": 3 } },
                "fix": { "span": { "start": start, "end": start }, "replacement": "x" },
            }],
        })
    );
}

#[test]
fn standard_input_is_a_payload() {
    let desk = Desk::new();
    let run = cli::run_with_input(
        &mut desk.command(&["check", "--format", "json", "-"]),
        ALLOWED.as_bytes(),
    );
    assert_eq!(run.code(), Some(0), "{run:?}");
    let [line] = &run.json_lines()[..] else { panic!("{run:?}") };
    assert_eq!(line["path"], "-");
    assert_eq!(line["payloadDigest"], Digest::of(ALLOWED).to_string());
    assert_eq!(line["statements"][0]["operation"], "insert");
    assert_eq!(
        line["statements"][0]["tables"],
        json!([{ "catalog": "plugin_preview", "name": "t", "access": "write" }])
    );
}

#[test]
fn people_see_the_offending_text_where_it_is() {
    let desk = Desk::new();
    desk.write("denied.sql", DENIED);
    let run = desk.run(&["check", "denied.sql"]);
    assert_eq!(run.code(), Some(1), "{run:?}");
    assert!(run.stdout.contains("denied.sql:3:2"), "{}", run.stdout);
    assert!(run.stdout.contains("TRUNCATE"), "{}", run.stdout);
    assert!(run.stdout.contains("──"), "{}", run.stdout);
    assert!(!run.stdout.contains('\x1b'), "no colours into a pipe: {}", run.stdout);
}

#[test]
fn the_order_of_many_payloads_is_theirs_not_the_fastest_s() {
    let desk = Desk::new();
    for index in 0..120 {
        let rows = if index % 10 == 0 { 2_000 } else { 1 };
        let sql = format!("INSERT IGNORE INTO t VALUES {}", ["(1)"].repeat(rows).join(","));
        desk.write(&format!("payloads/{index:03}.sql"), sql);
    }
    let run = desk.run(&["check", "--format", "json", "payloads"]);
    assert_eq!(run.code(), Some(0), "{run:?}");
    let paths: Vec<_> =
        run.json_lines().iter().map(|line| line["path"].as_str().unwrap().to_owned()).collect();
    let expected: Vec<_> = (0..120).map(|index| format!("payloads/{index:03}.sql")).collect();
    assert_eq!(paths, expected);
    assert_eq!(run.stderr, "", "a pipe gets no progress bar");
}

#[test]
fn sarif_and_github_name_the_place() {
    let desk = Desk::new();
    desk.write("a b.sql", DENIED);
    desk.write("allowed.sql", ALLOWED);
    let run = desk.run(&["check", "--format", "sarif", "a b.sql", "allowed.sql"]);
    assert_eq!(run.code(), Some(1), "{run:?}");
    let log: Value = serde_json::from_str(&run.stdout).expect(&run.stdout);
    assert_eq!(log["version"], "2.1.0");
    let result = &log["runs"][0]["results"][0];
    assert_eq!(result["level"], "error");
    let location = &result["locations"][0]["physicalLocation"];
    assert_eq!(location["artifactLocation"]["uri"], "a%20b.sql");
    assert_eq!(location["region"]["startLine"], 3);
    assert_eq!(location["region"]["startColumn"], 2);
    assert_eq!(log["runs"][0]["invocations"][0]["executionSuccessful"], true);

    let run = desk.run(&["check", "--format", "github", "a b.sql"]);
    assert!(run.stdout.starts_with("::error file=a b.sql,line=3,endLine=3,col=2,"), "{run:?}");

    let component = desk.hostile(Decide::Trap);
    let run = desk.run(&["check", "--policy", &component, "--format", "sarif", "a b.sql"]);
    let log: Value = serde_json::from_str(&run.stdout).expect(&run.stdout);
    assert_eq!(log["runs"][0]["results"], json!([]));
    let notification = &log["runs"][0]["invocations"][0]["toolExecutionNotifications"][0];
    assert_eq!(notification["descriptor"]["id"], "no-decision/trap");
}

#[test]
fn fix_shows_what_it_would_write_and_writes_when_told() {
    let desk = Desk::new();
    let before = "create table t (id int);\nINSERT INTO t (id) VALUES (1);\n";
    let path = desk.write("a.sql", before);
    let run = desk.run(&["check", "--fix", "a.sql"]);
    assert_eq!(run.code(), Some(1), "what is on disk is still denied: {run:?}");
    assert!(run.stdout.contains("+INSERT IGNORE INTO t (id) VALUES (1);"), "{}", run.stdout);
    assert_eq!(fs::read_to_string(&path).unwrap(), before);

    let run = desk.run(&["check", "--fix", "--write", "--format", "json", "a.sql"]);
    assert_eq!(run.code(), Some(0), "{run:?}");
    let [line] = &run.json_lines()[..] else { panic!("{run:?}") };
    assert_eq!(line["fix"]["written"], true);
    assert_eq!(line["fix"]["edits"], 2);
    let after = fs::read_to_string(&path).unwrap();
    assert_eq!(line["payloadDigest"], Digest::of(&after).to_string());
    assert_eq!(after.to_lowercase().matches("if not exists").count(), 1, "{after}");
    assert_eq!(desk.run(&["check", "a.sql"]).code(), Some(0));
}

#[test]
fn fix_repairs_what_it_can_and_reports_the_rest() {
    let desk = Desk::new();
    let path = desk.write("a.sql", "INSERT INTO t (id) VALUES (1);\nTRUNCATE t;\n");
    let run = desk.run(&["check", "--fix", "--write", "a.sql"]);
    assert_eq!(run.code(), Some(1), "{run:?}");
    assert!(run.stdout.contains("still denied"), "{}", run.stdout);
    assert!(fs::read_to_string(&path).unwrap().contains("INSERT IGNORE"));
}

#[test]
fn the_whole_corpus_is_decided_as_expected() {
    let desk = Desk::new();
    let cases = corpus::decisions();
    for (index, case) in cases.iter().enumerate() {
        desk.write(&format!("corpus/{index:04}.sql"), &case.sql);
    }
    let run = desk.run(&["check", "--format", "json", "corpus"]);
    let lines = run.json_lines();
    assert_eq!(lines.len(), cases.len());
    let wrong: Vec<_> = cases
        .iter()
        .zip(&lines)
        .filter(|(case, line)| match case.expect {
            Expected::Allow => line["decision"] != "allow",
            Expected::Deny => line["decision"] != "deny",
            Expected::Either => line["decision"] == "error",
        })
        .map(|(case, line)| format!("{}: {line}", case.id))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_second_process_reads_what_the_first_compiled() {
    let desk = Desk::new();
    desk.write("allowed.sql", ALLOWED);
    let run = || {
        let mut command = desk.command(&["check", "--format", "json", "allowed.sql"]);
        let start = std::time::Instant::now();
        let run = cli::run(command.env("TOLLGATE_CACHE", desk.path("cache")));
        (run, start.elapsed())
    };
    let (cold, cold_time) = run();
    assert!(!walk(&desk.path("cache")).is_empty(), "{cold:?}");
    let (warm, warm_time) = run();
    assert_eq!(cold.stdout, warm.stdout);
    assert_eq!(warm.stderr, "");
    assert!(warm_time * 3 < cold_time, "cold {cold_time:?}, warm {warm_time:?}");
}

#[cfg(unix)]
#[test]
fn a_machine_without_address_space_decides_the_same() {
    let desk = Desk::new();
    desk.write("allowed.sql", ALLOWED);
    let unlimited = desk.run(&["check", "--format", "json", "allowed.sql"]);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "ulimit -v 1500000 && exec \"$0\" \"$@\""])
        .arg(cli::binary())
        .args(["check", "--format", "json", "allowed.sql"])
        .current_dir(desk.folder())
        .env("TOLLGATE_CACHE", desk::compiled());
    let limited = cli::run(&mut shell);
    assert_eq!(limited.code(), Some(0), "{limited:?}");
    assert_eq!(limited.stdout, unlimited.stdout);
}

#[test]
fn inspect_shows_a_component_without_imports() {
    let desk = Desk::new();
    let run = desk.run(&["policy", "inspect", "--format", "json"]);
    let [inspection] = &run.json_lines()[..] else { panic!("{run:?}") };
    assert_eq!(inspection["imports"], json!([]));
    assert_eq!(inspection["exports"], json!(["tollgate:policy/gate@1.0.0"]));
    assert_eq!(inspection["pinnedTo"], json!(["sql-jdbc:v1"]));
    assert_eq!(inspection["session"]["characterSet"], "utf8mb4");
    assert_eq!(inspection["sandbox"]["memoryBytesMax"], 256 << 20);

    let listed = desk.run(&["policy", "list", "--format", "json"]);
    let [pin] = &listed.json_lines()[..] else { panic!("{listed:?}") };
    assert_eq!(pin["digest"], inspection["digest"]);

    let run = desk.run(&["policy", "inspect"]);
    assert!(run.stdout.contains("imports       none"), "{}", run.stdout);
}

#[test]
fn completions_and_manual_pages_are_printed() {
    let desk = Desk::new();
    assert!(desk.run(&["completions", "bash"]).stdout.contains("_tollgate"));
    assert!(desk.run(&["man"]).stdout.contains(".TH TOLLGATE 1"));
    let page = desk.run(&["man", "policy", "inspect"]).stdout;
    assert!(page.contains(".TH TOLLGATE-POLICY-INSPECT 1"), "{page}");
    assert_eq!(desk.run(&["man", "nothing"]).code(), Some(2));
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(walk(&path)) } else { files.push(path) }
    }
    files
}
