//! A store with several versions: `tollgate policy pin`, `build`, `diff`, `inspect` and `list`.

use std::fs;

use serde_json::{Value, json};
use tollgate::digest::Digest;
use tollgate_tests::cli::Run;
use tollgate_tests::desk::Desk;
use tollgate_tests::exported;
use tollgate_tests::hostile::{self, Decide};
use tollgate_tests::schema::Schema;
use tollgate_tests::source::repository;

/// A component that calls itself `hostile` of this version, which has five characters.
fn version(decide: Decide, version: &str) -> Vec<u8> {
    replaced(hostile::policy(decide), "0.0.0", version)
}

/// The bytes with a text in the place of another one of the same length.
fn replaced(mut bytes: Vec<u8>, from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let places: Vec<usize> = bytes
        .windows(from.len())
        .enumerate()
        .filter_map(|(place, window)| (window == from.as_bytes()).then_some(place))
        .collect();
    assert!(!places.is_empty(), "`{from}` is nowhere");
    for place in places {
        bytes[place..place + to.len()].copy_from_slice(to.as_bytes());
    }
    bytes
}

fn pin(desk: &Desk, file: &str, more: &[&str]) -> Run {
    desk.run(&[&["policy", "pin", "sql-jdbc:v1", file, "--store", "store"][..], more].concat())
}

fn pins(desk: &Desk) -> String {
    fs::read_to_string(desk.path("store/pins.toml")).unwrap()
}

#[test]
fn versions_lie_side_by_side_and_the_pinned_one_decides() {
    let desk = Desk::new();
    desk.write("a.sql", "xyzxyz");
    let (old, new) = (version(Decide::Deny, "1.0.0"), version(Decide::Allow, "1.1.0"));
    desk.write("old.wasm", &old);
    desk.write("new.wasm", &new);
    let check = || desk.run(&["check", "--store", "store", "a.sql"]);
    assert_eq!(pin(&desk, "old.wasm", &[]).code(), Some(0));
    assert_eq!(check().code(), Some(1), "the old one denies");

    let text = format!("# Ours.\n{}", pins(&desk));
    desk.write("store/pins.toml", &text);
    let superseded = pin(&desk, "new.wasm", &["--supersede"]);
    assert_eq!(superseded.code(), Some(0), "{superseded:?}");
    assert!(superseded.stdout.contains("supersedes hostile 1.0.0, sha256:"), "{superseded:?}");
    assert_eq!(check().code(), Some(0), "the new one allows");
    let after = pins(&desk);
    assert!(after.starts_with("# Ours.\n"), "{after}");
    assert!(after.contains(&format!("    \"{}\", # hostile 1.0.0\n", Digest::of(&old))), "{after}");
    let listed = desk.run(&["policy", "list", "--store", "store", "--format", "json"]);
    assert_eq!(listed.json_lines()[0]["supersedes"], json!([Digest::of(&old).to_string()]));

    // Both are there; each is still what it was.
    for (file, bytes) in [("hostile-1.0.0.wasm", &old), ("hostile-1.1.0.wasm", &new)] {
        assert_eq!(&fs::read(desk.path("store").join(file)).unwrap(), bytes);
    }
    // Bytes of another version under the pinned one's name are found out before they decide.
    desk.write("store/hostile-1.1.0.wasm", &old);
    let run = check();
    assert_eq!(run.code(), Some(4), "{run:?}");
    assert!(run.stderr.contains(&Digest::of(&new).to_string()), "{run:?}");
}

#[test]
fn the_same_pin_again_changes_nothing_and_says_so() {
    let desk = Desk::new();
    desk.write("p.wasm", hostile::policy(Decide::Deny));
    let dry = pin(&desk, "p.wasm", &["--dry-run"]);
    assert_eq!(dry.code(), Some(0), "{dry:?}");
    assert!(dry.stdout.contains("+executor = \"sql-jdbc:v1\"\n"), "{dry:?}");
    assert!(!desk.path("store").exists(), "a dry run writes nothing");

    assert_eq!(pin(&desk, "p.wasm", &["--compiler", "rustc 1.95.0"]).code(), Some(0));
    let before = pins(&desk);
    let again = pin(&desk, "store/hostile-0.0.0.wasm", &["--supersede"]);
    assert_eq!(again.code(), Some(0), "{again:?}");
    assert!(again.stdout.contains("nothing changed"), "{again:?}");
    assert_eq!(pins(&desk), before, "the recorded compiler stays, too");
    assert!(pin(&desk, "p.wasm", &["--dry-run"]).stdout.contains("stays as it is"));
}

#[test]
fn what_cannot_be_pinned_leaves_the_store_as_it_was() {
    let desk = Desk::new();
    desk.write("p.wasm", hostile::policy(Decide::Deny));
    assert_eq!(pin(&desk, "p.wasm", &[]).code(), Some(0));
    let before = pins(&desk);
    desk.write("import.wasm", hostile::policy_with_import());
    desk.write("empty.wasm", hostile::no_policy());
    desk.write("other-bytes.wasm", hostile::policy(Decide::Allow));
    desk.write("other-name.wasm", replaced(version(Decide::Allow, "0.0.1"), "hostile", "curious"));
    for (file, code, told) in [
        ("import.wasm", 2, "imports `clock`"),
        ("empty.wasm", 2, "does not export"),
        ("other-bytes.wasm", 4, "has other bytes"),
        ("other-name.wasm", 2, "is pinned to the policy `hostile`"),
        ("missing.wasm", 2, "cannot be read"),
    ] {
        let run = pin(&desk, file, &[]);
        assert_eq!(run.code(), Some(code), "{file}: {run:?}");
        assert!(run.stderr.contains(told) && run.stderr.contains("help: "), "{file}: {run:?}");
        assert_eq!(pins(&desk), before, "{file}");
    }
    let codes = |code| desk.run(&["policy", "pin", code, "p.wasm", "--store", "store"]);
    assert!(codes("sql-jdbc").stderr.contains("is not an executor code"));
    let unwritten = codes("sql-jdbc:v9");
    assert_eq!(unwritten.code(), Some(2), "{unwritten:?}");
    assert!(unwritten.stderr.contains("is written for `sql-jdbc:v1`"), "{unwritten:?}");
    assert_eq!(pins(&desk), before);
    assert_eq!(fs::read_dir(desk.path("store")).unwrap().count(), 2, "pins and one component");
}

#[test]
fn build_changes_one_pin_and_keeps_what_people_wrote() {
    let desk = Desk::new();
    desk.write("core.wasm", hostile::core_module(Decide::Deny));
    let build = ["policy", "build", "core.wasm", "--store", "store", "--compiler", "hand"];
    assert_eq!(desk.run(&build).code(), Some(0));
    let text = pins(&desk).replace("compiler = \"hand\"", "compiler = \"hand\" # mine");
    desk.write("store/pins.toml", &text);
    assert_eq!(desk.run(&build).code(), Some(0));
    assert_eq!(pins(&desk), text);

    desk.write("core.wasm", hostile::core_module(Decide::Allow));
    let refused = desk.run(&build);
    assert_eq!(refused.code(), Some(4), "{refused:?}");
    assert_eq!(pins(&desk), text);
    assert_eq!(desk.run(&[&build[..], &["--force"]].concat()).code(), Some(0));
    assert!(pins(&desk).contains("compiler = \"hand\" # mine"));
}

/// The lines of `policy diff` between two files over `corpus`.
fn diff(desk: &Desk, before: &str, after: &str, code: i32) -> Vec<Value> {
    let policies = ["policy", "diff", before, after];
    let run = desk.run(&[&policies[..], &["--corpus", "corpus", "--format", "json"]].concat());
    assert_eq!(run.code(), Some(code), "{run:?}");
    let schema = Schema::of("policy-diff");
    let lines = run.json_lines();
    for line in &lines {
        schema.assert_accepts(line);
    }
    lines
}

#[test]
fn a_diff_tells_each_kind_of_difference_and_fails_on_what_becomes_allowed() {
    let desk = Desk::new();
    desk.write("corpus/a.sql", "é-ab-é");
    desk.write("corpus/b.sql", "é-cd-é");
    let allow = hostile::policy(Decide::Allow);
    desk.write("allow.wasm", &allow);
    desk.write("allow2.wasm", replaced(allow, "(`id` = 1)", "(`id` = 2)"));
    let deny = hostile::policy(Decide::Deny);
    desk.write("deny.wasm", &deny);
    desk.write("deny2.wasm", replaced(deny, "no-good", "not-new"));
    desk.write("trap.wasm", hostile::policy(Decide::Trap));
    for (before, after, code, kind) in [
        ("allow.wasm", "allow.wasm", 0, "same"),
        ("deny.wasm", "allow.wasm", 1, "deny-to-allow"),
        ("allow.wasm", "deny.wasm", 0, "allow-to-deny"),
        ("allow.wasm", "allow2.wasm", 0, "text-changed"),
        ("deny.wasm", "deny2.wasm", 0, "codes-changed"),
        ("allow.wasm", "trap.wasm", 3, "error"),
        ("trap.wasm", "trap.wasm", 3, "error"),
    ] {
        let lines = diff(&desk, before, after, code);
        let (summary, lines) = lines.split_last().unwrap();
        assert_eq!(summary["summary"]["payloads"], 2);
        assert_eq!(summary["summary"]["differences"][kind], 2, "{before} {after}: {summary}");
        let paths: Vec<&Value> = lines.iter().map(|line| &line["path"]).collect();
        let expected = if kind == "same" { vec![] } else { vec!["corpus/a.sql", "corpus/b.sql"] };
        assert_eq!(paths, expected);
        assert!(lines.iter().all(|line| line["difference"] == kind), "{lines:?}");
    }
    let lines = diff(&desk, "deny.wasm", "allow.wasm", 1);
    assert_eq!(lines[0]["before"]["diagnostics"][0]["code"], "no-good");
    assert_eq!(
        lines[0]["after"]["statements"][0],
        "DELETE FROM `plugin_preview`.`t` WHERE (`id` = 1)"
    );
    let schema = Schema::of("policy-diff");
    schema.assert_notices(&lines[0], |it| it["difference"] = json!("same"));
    schema.assert_notices(&lines[0], |it| it["after"] = json!("allow"));
    schema.assert_notices(&lines[2], |it| it["summary"]["differences"]["same"] = json!(-1));

    let human = desk.run(&[
        "policy",
        "diff",
        "deny.wasm",
        "allow.wasm",
        "--corpus",
        "corpus",
        "--examples",
        "1",
    ]);
    assert_eq!(human.code(), Some(1), "{human:?}");
    for told in [
        "       2  denied before, allowed after\n",
        "  corpus/a.sql\n    before denies  1:2 no-good: `é` is no good\n",
        "    after  runs    DELETE FROM `plugin_preview`.`t`",
        "  … and 1 more\n",
    ] {
        assert!(human.stdout.contains(told), "no `{told}` in\n{}", human.stdout);
    }
    assert!(!human.stdout.contains("corpus/b.sql"), "one example was asked for");
}

#[test]
fn a_diff_names_policies_by_file_code_and_store() {
    let desk = Desk::new();
    desk.write("corpus/a.sql", "DROP TABLE IF EXISTS t");
    desk.write("p.wasm", hostile::policy(Decide::Deny));
    assert_eq!(pin(&desk, "p.wasm", &[]).code(), Some(0));
    let names = |lines: &[Value]| {
        let summary = &lines.last().unwrap()["summary"];
        (summary["before"]["name"].clone(), summary["after"]["name"].clone())
    };
    let published = json!("mysql-repeatable-subset");
    let lines = diff(&desk, "sql-jdbc:v1", "sql-jdbc:v1@store", 0);
    assert_eq!(names(&lines), (published.clone(), json!("hostile")));
    let lines = diff(&desk, "./p.wasm", "sql-jdbc:v1", 1);
    assert_eq!(names(&lines), (json!("hostile"), published));

    desk.write("store/hostile-0.0.0.wasm", hostile::policy(Decide::Allow));
    let run =
        desk.run(&["policy", "diff", "sql-jdbc:v1", "sql-jdbc:v1@store", "--corpus", "corpus"]);
    assert_eq!(run.code(), Some(4), "{run:?}");
    let run = desk.run(&["policy", "diff", "p.wasm", "p.wasm"]);
    assert_eq!(run.code(), Some(2), "there is nothing to decide on: {run:?}");
}

#[test]
fn a_ledger_s_export_is_a_corpus() {
    let desk = Desk::new();
    let receipt = |key: &str, payload: Option<&str>, hashed: &str| {
        let digest = Digest::of(hashed).to_string();
        json!({
            "version": 2, "id": 1, "key": key, "environment": "preview",
            "release": { "code": "shop", "version": "1.0.0" }, "direction": "FORWARD",
            "executor": "sql-jdbc:v1", "catalog": "shop_preview", "contentHash": digest,
            "policyDigest": digest, "decisionDigest": digest, "payload": payload,
            "missing": payload.map_or(json!("it is gone"), |_| Value::Null),
            "counterpart": null, "status": "SUCCEEDED", "standing": "succeeded",
            "leaseDeadline": "2026-01-31T09:30:00.000000Z", "leaseImplausible": false,
            "contradiction": null, "generation": 1, "executionCount": 1, "statementCount": 1,
            "statementsDone": 1, "sessionId": 1, "externalReceipt": format!("sql:preview:{key}"),
            "lastErrorCode": null, "lastError": null, "createdAt": "2026-01-31T09:30:00.000000Z",
            "updatedAt": "2026-01-31T09:30:00.000000Z", "completedAt": "2026-01-31T09:30:00.000000Z",
        })
    };
    let allowed = "INSERT IGNORE INTO t (id) VALUES (1)";
    let lines = [
        receipt("kept", Some(allowed), allowed),
        receipt("gone", None, allowed),
        receipt("changed", Some(allowed), "something else"),
    ];
    let schema = Schema::of("ledger-export");
    for line in &lines {
        schema.assert_accepts(line);
    }
    desk.write("receipts.jsonl", exported::export(&lines));
    desk.write("p.wasm", hostile::policy(Decide::Deny));
    let policies = ["policy", "diff", "sql-jdbc:v1", "p.wasm", "--format", "json"];
    let run = desk.run(&[&policies[..], &["--ledger-export", "receipts.jsonl"]].concat());
    assert_eq!(run.code(), Some(3), "{run:?}");
    let lines = run.json_lines();
    let schema = Schema::of("policy-diff");
    for line in &lines {
        schema.assert_accepts(line);
    }
    let told: Vec<(&Value, &Value)> =
        lines[..3].iter().map(|line| (&line["path"], &line["difference"])).collect();
    let (kept, gone, changed) = (json!("kept"), json!("gone"), json!("changed"));
    let (denied, error) = (json!("allow-to-deny"), json!("error"));
    assert_eq!(told, [(&kept, &denied), (&gone, &error), (&changed, &error)]);
    assert_eq!(
        lines[0]["before"]["statements"],
        json!(["INSERT IGNORE INTO `shop_preview`.`t` (`id`) VALUES (1)"]),
        "decided for the receipt's catalog"
    );
    assert_eq!(lines[1]["error"]["kind"], "payload-missing");

    desk.write("receipts.jsonl", "{ no receipt\n");
    let run = desk.run(&[&policies[..], &["--ledger-export", "receipts.jsonl"]].concat());
    assert_eq!(run.code(), Some(2), "{run:?}");
    assert!(run.stderr.contains("line 1 is no exported receipt"), "{run:?}");
}

#[test]
fn the_whole_corpus_is_the_same_under_the_same_policy() {
    let desk = Desk::new();
    let cases = tollgate_tests::corpus::decisions();
    for (index, case) in cases.iter().enumerate() {
        desk.write(&format!("corpus/{index:04}.sql"), &case.sql);
    }
    let file = repository().join("policies/mysql-repeatable-subset-1.0.0.wasm");
    let lines = diff(&desk, "sql-jdbc:v1", file.to_str().unwrap(), 0);
    let [summary] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!(summary["summary"]["differences"]["same"], cases.len());
}

#[test]
fn inspect_and_list_follow_their_schemas() {
    let desk = Desk::new();
    let one = |arguments: &[&str]| {
        let run = desk.run(&[arguments, &["--format", "json"]].concat());
        let [line] = &run.json_lines()[..] else { panic!("{run:?}") };
        line.clone()
    };
    let schema = Schema::of("policy-inspect");
    let inspection = one(&["policy", "inspect"]);
    schema.assert_accepts(&inspection);
    schema.assert_notices(&inspection, |it| it["imports"] = json!(["clock"]));
    schema.assert_notices(&inspection, |it| it["memories"][0]["pagesMin"] = json!("20"));
    let [memory] = &inspection["memories"].as_array().unwrap()[..] else { panic!("{inspection}") };
    assert!(memory["pagesMin"].as_u64().unwrap() >= 16, "its stack alone has 16 pages");
    let size = repository().join("policies/mysql-repeatable-subset-1.0.0.wasm");
    assert_eq!(inspection["bytes"], fs::metadata(size).unwrap().len());
    assert!(desk.run(&["policy", "inspect"]).stdout.contains("\nmemory        "));

    let hostile = desk.hostile(Decide::Deny);
    schema.assert_accepts(&one(&["policy", "inspect", &hostile]));
    let schema = Schema::of("policy-list");
    let listed = one(&["policy", "list"]);
    schema.assert_accepts(&listed);
    assert_eq!(listed["file"], "mysql-repeatable-subset-1.0.0.wasm");
    schema.assert_notices(&listed, |it| it["executor"] = json!("sql"));
}

#[test]
fn whoever_pins_at_the_same_time_loses_nothing() {
    let desk = Desk::new();
    let count = 4;
    // Known to the cache, so that they meet at the store and not at the compiler.
    for index in 0..count {
        let bytes = replaced(
            version(Decide::Deny, &format!("1.{index}.0")),
            "sql-jdbc:v1",
            &format!("sql-jdbc:v{}", index + 1),
        );
        let path = desk.write(&format!("{index}.wasm"), bytes);
        assert_eq!(desk.run(&["policy", "inspect", path.to_str().unwrap()]).code(), Some(0));
    }
    let runs: Vec<_> = (0..count)
        .map(|index| {
            let mut command = desk.command(&[
                "policy",
                "pin",
                &format!("sql-jdbc:v{}", index + 1),
                &format!("{index}.wasm"),
                "--store",
                "store",
            ]);
            std::thread::spawn(move || tollgate_tests::cli::run(&mut command))
        })
        .collect();
    for run in runs {
        let run = run.join().unwrap();
        assert_eq!(run.code(), Some(0), "{run:?}");
    }
    let listed = desk.run(&["policy", "list", "--store", "store", "--format", "json"]);
    assert_eq!((listed.code(), listed.json_lines().len()), (Some(0), count), "{listed:?}");
    let files = fs::read_dir(desk.path("store")).unwrap().count();
    assert_eq!(files, count + 1, "components and pins, and nothing that was left behind");
}

#[test]
fn of_other_bytes_of_one_version_one_comes_first() {
    let desk = Desk::new();
    let files = ["allow.wasm", "deny.wasm"];
    for (file, decide) in files.iter().zip([Decide::Allow, Decide::Deny]) {
        let path = desk.write(file, hostile::policy(decide));
        assert_eq!(desk.run(&["policy", "inspect", path.to_str().unwrap()]).code(), Some(0));
    }
    let runs = files.map(|file| {
        let mut command = desk.command(&["policy", "pin", "sql-jdbc:v1", file, "--store", "store"]);
        std::thread::spawn(move || tollgate_tests::cli::run(&mut command))
    });
    let mut codes = runs.map(|run| run.join().unwrap().code());
    codes.sort_unstable();
    assert_eq!(codes, [Some(0), Some(4)]);
    assert_eq!(desk.run(&["policy", "list", "--store", "store"]).code(), Some(0));
}

#[test]
fn a_file_of_windows_stays_one() {
    let desk = Desk::new();
    desk.write("old.wasm", version(Decide::Deny, "1.0.0"));
    desk.write("new.wasm", version(Decide::Allow, "1.1.0"));
    assert_eq!(pin(&desk, "old.wasm", &[]).code(), Some(0));
    desk.write("store/pins.toml", pins(&desk).replace('\n', "\r\n"));
    assert_eq!(pin(&desk, "new.wasm", &["--supersede"]).code(), Some(0));
    let after = pins(&desk);
    assert_eq!(after.matches('\n').count(), after.matches("\r\n").count(), "{after:?}");
    let back = pin(&desk, "old.wasm", &[]);
    assert!(back.stdout.contains("an older version than 1.1.0"), "{back:?}");
}

#[test]
fn no_cache_is_said_to_whatever_the_environment_says() {
    let desk = Desk::new();
    let inspect = ["policy", "inspect", "--no-cache"];
    let run = tollgate_tests::cli::run(desk.command(&inspect).env("TOLLGATE_CACHE", "cache"));
    assert_eq!(run.code(), Some(0), "{run:?}");
    assert!(!desk.path("cache").exists());
}
