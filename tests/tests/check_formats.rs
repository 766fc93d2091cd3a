//! What `tollgate check` prints, judged by the schema of each format and by a reader of our own.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};
use tollgate::digest::Digest;
use tollgate_tests::cli::Run;
use tollgate_tests::corpus;
use tollgate_tests::desk::Desk;
use tollgate_tests::hostile::Decide;
use tollgate_tests::schema::Schema;
use tollgate_tests::source::repository;

/// Payloads whose places are easy to get wrong, under names that are easy to get wrong.
const ODD: &[(&str, &str)] = &[
    ("with space.sql", "TRUNCATE t;"),
    ("100%.sql", "-- é\n\tTRUNCATE é; 'ö'"),
    ("a,b:c;d.sql", "INSERT INTO t VALUES (1);\r\nDROP TABLE t;\r\n"),
    ("ä/名前/😀.sql", "INSERT IGNORE INTO 名前 VALUES ('😀', '名前'), (TRUNCATE);"),
    ("q?#[]&=+.sql", "\u{feff}DROP TABLE IF EXISTS t"),
    ("::error file=x::.sql", "DELETE FROM t WHERE a = 1 OR\n  2 = 2\n  OR 3 = 3;"),
    ("back\\slash\"quote'.sql", "INSERT IGNORE INTO t VALUES ('100%', NOW());"),
    ("tab\there.sql", "\t\tDROP\tTABLE\tt\t;\t"),
    ("line\nbreak.sql", "CREATE TABLE t (\r\n  id int,\r\n  é datetime DEFAULT now()\r\n);"),
    ("empty.sql", ""),
];

/// A desk with the corpus and the odd ones, and its payloads by path.
fn desk() -> (Desk, BTreeMap<String, Vec<u8>>) {
    let desk = Desk::new();
    let numbered = corpus::payloads().into_iter().enumerate();
    let corpus = numbered.map(|(at, (_, sql))| (format!("corpus/{at:04}.sql"), sql.into_bytes()));
    let odd = ODD.iter().map(|(name, sql)| (format!("odd/{name}"), sql.as_bytes().to_vec()));
    let raw = [("odd/not utf-8.sql".to_owned(), b"TRUNCATE \xff\xfe; \xc3".to_vec())];
    let payloads: BTreeMap<_, _> = corpus.chain(odd).chain(raw).collect();
    for (path, payload) in &payloads {
        desk.write(path, payload);
    }
    (desk, payloads)
}

fn check(desk: &Desk, format: &str) -> Run {
    let run = desk.run(&["check", "--format", format, "corpus", "odd"]);
    assert_eq!(run.code(), Some(1), "{}", run.stderr);
    assert_eq!(run.stderr, "");
    run
}

/// Line and column of a byte, counted from the payload's start: slow, and nothing like the product.
fn place(payload: &str, offset: u64) -> (u64, u64) {
    let before = &payload[..usize::try_from(offset).unwrap()];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
    (line as u64, column as u64)
}

#[test]
fn json_lines_follow_their_schema_and_point_at_the_right_place() {
    let (desk, payloads) = desk();
    let schema = Schema::of("check");
    let lines = check(&desk, "json").json_lines();
    assert_eq!(lines.len(), payloads.len());
    let mut places = 0;
    for line in &lines {
        schema.assert_accepts(line);
        let payload = &payloads[line["path"].as_str().unwrap()];
        assert_eq!(line["payloadDigest"], Digest::of(payload).to_string());
        let Ok(text) = std::str::from_utf8(payload) else { continue };
        let spans = |key: &str| line[key].as_array().unwrap().clone().into_iter();
        for item in spans("diagnostics").chain(spans("statements")) {
            for end in ["start", "end"].map(|end| &item["span"][end]) {
                let Some(offset) = end["offset"].as_u64() else { continue };
                let got = (end["line"].as_u64().unwrap(), end["column"].as_u64().unwrap());
                assert_eq!(got, place(text, offset), "{line}");
                places += 1;
            }
        }
    }
    assert!(places > 1_000, "{places}");

    let denied = lines.iter().find(|line| line["diagnostics"][0]["span"].is_object()).unwrap();
    schema.assert_notices(denied, |line| line["decision"] = json!("denied"));
    schema.assert_notices(denied, |line| line["payloadDigest"] = json!("sha256:00"));
    schema
        .assert_notices(denied, |line| line["diagnostics"][0]["span"]["start"]["line"] = json!(0));
    schema.assert_notices(denied, |line| line["surprise"] = json!(1));
    schema.assert_notices(denied, |line| drop(line.as_object_mut().unwrap().remove("policy")));
}

#[test]
fn json_lines_with_repairs_and_without_decisions_follow_their_schema() {
    let (desk, _) = desk();
    let schema = Schema::of("check");
    let fixing = desk.run(&["check", "--fix", "--format", "json", "corpus", "odd"]).json_lines();
    for line in &fixing {
        schema.assert_accepts(line);
    }
    let repaired = fixing.iter().find(|line| line["fix"].is_object()).unwrap();
    schema.assert_notices(repaired, |line| line["fix"]["edits"] = json!(0));

    for decide in [Decide::Trap, Decide::LoopForever, Decide::AllowNothing] {
        let component = desk.hostile(decide);
        let run = desk.run(&["check", "--policy", &component, "--format", "json", "odd"]);
        assert_eq!(run.code(), Some(3), "{}", run.stderr);
        for line in run.json_lines() {
            schema.assert_accepts(&line);
        }
        schema.assert_notices(&run.json_lines()[0], |line| line["error"]["kind"] = json!("tired"));
    }
}

#[test]
fn sarif_logs_follow_the_official_schema() {
    let (desk, payloads) = desk();
    let schema = Schema::sarif();
    let run = check(&desk, "sarif");
    let log: Value = serde_json::from_str(&run.stdout).unwrap();
    schema.assert_accepts(&log);
    let results = log["runs"][0]["results"].as_array().unwrap();
    assert!(results.len() > 200, "{}", results.len());
    let levels = |level: &str| results.iter().filter(|it| it["level"] == level).count();
    assert!(levels("error") > 0 && levels("note") > 0, "denials and warnings are in it");

    let mut named = 0;
    for result in results {
        let location = &result["locations"][0]["physicalLocation"];
        let path = percent_decoded(location["artifactLocation"]["uri"].as_str().unwrap());
        let payload = payloads.get(&path).unwrap_or_else(|| panic!("`{path}` is no payload"));
        named += usize::from(path.starts_with("odd/"));
        let (region, Ok(text)) = (&location["region"], std::str::from_utf8(payload)) else {
            continue;
        };
        let Some(offset) = region["byteOffset"].as_u64() else { continue };
        let end = offset + region["byteLength"].as_u64().unwrap();
        let of = |key: &str| region[key].as_u64().unwrap();
        assert_eq!((of("startLine"), of("startColumn")), place(text, offset), "{result}");
        assert_eq!((of("endLine"), of("endColumn")), place(text, end), "{result}");
    }
    assert!(named >= 8, "{named}");

    schema.assert_notices(&log, |log| log["version"] = json!("2.0.0"));
    schema.assert_notices(&log, |log| log["runs"][0]["results"][0]["level"] = json!("fatal"));
    schema.assert_notices(&log, |log| log["runs"][0]["results"][0]["message"] = json!("text"));
    schema.assert_notices(&log, |log| log["runs"][0]["results"][0]["surprise"] = json!(1));
    schema.assert_notices(&log, |log| log["runs"][0]["tool"] = json!({}));
    schema.assert_notices(&log, |log| {
        let location = &mut log["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
        location["artifactLocation"]["uri"] = json!("with space.sql");
    });
}

#[test]
fn sarif_logs_of_nothing_and_of_no_decision_follow_the_schema_too() {
    let desk = Desk::new();
    desk.write("allowed.sql", "DROP TABLE IF EXISTS t;");
    let component = desk.hostile(Decide::Trap);
    let allowed = desk.run(&["check", "--format", "sarif", "allowed.sql"]);
    let undecided =
        desk.run(&["check", "--policy", &component, "--format", "sarif", "allowed.sql"]);
    assert_eq!((allowed.code(), undecided.code()), (Some(0), Some(3)));
    for (run, successful) in [(allowed, true), (undecided, false)] {
        let log: Value = serde_json::from_str(&run.stdout).unwrap();
        Schema::sarif().assert_accepts(&log);
        assert_eq!(log["runs"][0]["results"], json!([]));
        assert_eq!(log["runs"][0]["invocations"][0]["executionSuccessful"], successful);
    }
}

#[test]
fn the_sarif_schema_is_the_official_one() {
    let schema = fs::read(repository().join("tests/schemas/sarif-2.1.0.json")).unwrap();
    let readme = fs::read_to_string(repository().join("tests/schemas/README.md")).unwrap();
    let digest = Digest::of(schema).to_string();
    assert!(readme.contains(digest.strip_prefix("sha256:").unwrap()), "{digest}");
}

fn percent_decoded(uri: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = uri.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next().unwrap(), rest.next().unwrap()];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// A workflow command as GitHub's runner reads it: its name, its properties and its message.
fn workflow_command(line: &str) -> (String, BTreeMap<String, String>, String) {
    let plain = |text: &str| {
        let text = text.replace("%0D", "\r").replace("%0A", "\n");
        text.replace("%3A", ":").replace("%2C", ",").replace("%25", "%")
    };
    let rest = line.strip_prefix("::").unwrap_or_else(|| panic!("no command: {line}"));
    let (head, message) = rest.split_once("::").unwrap();
    let (name, properties) = head.split_once(' ').unwrap();
    let properties = properties
        .split(',')
        .map(|property| property.split_once('=').unwrap())
        .map(|(key, value)| (key.to_owned(), plain(value)))
        .collect();
    (name.to_owned(), properties, plain(message))
}

#[test]
fn github_s_runner_reads_every_annotation_as_it_was_meant() {
    let (desk, _) = desk();
    let mut expected = Vec::new();
    for line in check(&desk, "json").json_lines() {
        for found in line["diagnostics"].as_array().unwrap() {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let help = found["help"].as_str().map(|help| format!("\nhelp: {help}"));
            let message = text(&found["message"]) + &help.unwrap_or_default();
            let start = found["span"]["start"]["line"].as_u64();
            expected.push((text(&line["path"]), text(&found["code"]), start, message));
        }
    }
    let run = check(&desk, "github");
    let mut several_lines = 0;
    let annotations: Vec<_> = run
        .stdout
        .lines()
        .map(|line| {
            let (name, mut of, message) = workflow_command(line);
            assert!(["error", "notice"].contains(&name.as_str()), "{line}");
            let line = of.remove("line").map(|line| line.parse().unwrap());
            let end = of.remove("endLine").map(|line| line.parse::<u64>().unwrap());
            // The runner drops columns of an annotation over several lines, with a complaint.
            assert!(line == end || !(of.contains_key("col") || of.contains_key("endColumn")));
            several_lines += usize::from(line != end);
            (of.remove("file").unwrap(), of.remove("title").unwrap(), line, message)
        })
        .collect();
    assert_eq!(annotations, expected);
    assert!(several_lines > 0);
    assert!(annotations.iter().any(|(file, ..)| file == "odd/::error file=x::.sql"));
}

#[test]
fn people_see_multibyte_text_tabs_and_crlf_underlined_where_they_are() {
    let desk = Desk::new();
    desk.write("multibyte.sql", "INSERT IGNORE INTO t VALUES ('äö名前😀', @x);\n");
    desk.write("tabs.sql", "\tDROP\tTABLE\tt\t;\n");
    desk.write("crlf.sql", "DROP TABLE IF EXISTS t;\r\nTRUNCATE é;\r\n");
    let shown = |name: &str| desk.run(&["check", name]).stdout;
    assert_eq!(shown("multibyte.sql"), MULTIBYTE);
    assert_eq!(shown("tabs.sql"), TABS);
    assert_eq!(shown("crlf.sql"), CRLF);
}

const MULTIBYTE: &str = "\
denied   multibyte.sql  (1 problem)

variable

  × user or system variable
   ╭─[multibyte.sql:1:39]
 1 │ INSERT IGNORE INTO t VALUES ('äö名前😀', @x);
   ·                                          ──
   ╰────
  help: write the value itself
";

const TABS: &str = "\
denied   tabs.sql  (1 problem)

if-exists-missing

  × DROP TABLE fails when it is repeated
   ╭─[tabs.sql:1:7]
 1 │     DROP    TABLE   t   ;
   ·             ─────
   ╰────
  help: write DROP TABLE IF EXISTS
";

const CRLF: &str = "\
denied   crlf.sql  (1 problem)

statement-kind

  × `TRUNCATE` is not a statement that policy v1 runs
   ╭─[crlf.sql:2:1]
 2 │ TRUNCATE é;
   · ────────
   ╰────
  help: write DELETE … WHERE, or DROP TABLE IF EXISTS and CREATE TABLE IF NOT EXISTS
";

#[cfg(target_os = "linux")]
#[test]
fn a_progress_bar_is_for_terminals_and_many_payloads() {
    use std::process::Command;

    use tollgate_tests::{cli, desk::compiled};

    let desk = Desk::new();
    for at in 0..60 {
        desk.write(&format!("many/{at:02}.sql"), "DROP TABLE IF EXISTS t;");
        desk.write(&format!("few/{:02}.sql", at % 10), "DROP TABLE IF EXISTS t;");
    }
    // script(1) gives the command a terminal; its standard output goes to a file all the same.
    let on_a_terminal = |folder: &str| {
        let line = format!("{} check --format json {folder} >out.json", cli::binary().display());
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
        script.current_dir(desk.folder()).env("TERM", "xterm").env("TOLLGATE_CACHE", compiled());
        let run = cli::run(&mut script);
        assert_eq!(run.code(), Some(0), "{run:?}");
        let lines = fs::read_to_string(desk.path("out.json")).unwrap().lines().count();
        (lines, run.stdout.contains("payloads"))
    };
    assert_eq!(on_a_terminal("many"), (60, true));
    assert_eq!(on_a_terminal("few"), (10, false));
}
