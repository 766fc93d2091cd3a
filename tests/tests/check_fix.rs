//! `tollgate check --fix --write` changes what it announced, and loses nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use tollgate_tests::corpus;
use tollgate_tests::desk::Desk;

/// An edit of a line of JSON: where it starts and ends, and what it puts there.
type Edit = (usize, usize, String);

/// Statements that are allowed, with whatever could be lost on the way: tabs, CRLF, comments,
/// characters of several bytes, blanks at the end.
const BEFORE: &str = "  \t-- é 名前 😀\r\nDROP\tTABLE IF EXISTS z_1  ;\r\n\n";
const AFTER: &str = "\n;\r\n\tINSERT IGNORE INTO z_2 (a) VALUES ('é;\t''  ')\t;  /* 😀 */ \t\n";

fn decided(desk: &Desk, arguments: &[&str]) -> BTreeMap<String, Value> {
    let run = desk.run(&[&["check", "--format", "json"], arguments].concat());
    assert!(matches!(run.code(), Some(0 | 1)), "{}", run.stderr);
    let path = |line: &Value| line["path"].as_str().unwrap().to_owned();
    run.json_lines().into_iter().map(|line| (path(&line), line)).collect()
}

/// The edits a denial announces, in order, each once.
fn announced(line: &Value) -> Vec<Edit> {
    let offset = |place: &Value| usize::try_from(place["offset"].as_u64().unwrap()).unwrap();
    let diagnostics = line["diagnostics"].as_array().unwrap().iter();
    let mut edits: Vec<Edit> = diagnostics
        .filter_map(|found| found.get("fix"))
        .map(|fix| {
            let text = fix["replacement"].as_str().unwrap().to_owned();
            (offset(&fix["span"]["start"]), offset(&fix["span"]["end"]), text)
        })
        .collect();
    edits.sort();
    edits.dedup();
    edits
}

/// The text with the edits made; they do not overlap.
fn edited(text: &str, edits: &[Edit]) -> String {
    let mut text = text.to_owned();
    for (start, end, replacement) in edits.iter().rev() {
        text.replace_range(*start..*end, replacement);
    }
    text
}

fn write(desk: &Desk, payloads: &BTreeMap<String, String>) {
    for (path, payload) in payloads {
        desk.write(path, payload);
    }
}

fn read(desk: &Desk, path: &str) -> String {
    fs::read_to_string(desk.path(path)).unwrap()
}

/// The corpus by path, once as it is and once without the words that make it repeatable.
fn payloads() -> BTreeMap<String, String> {
    let as_it_is = corpus::payloads().into_iter().map(|(_, sql)| sql).enumerate();
    let bared = as_it_is.clone().filter_map(|(at, sql)| Some((at, bared(&sql)?)));
    let as_it_is = as_it_is.map(|(at, sql)| (format!("corpus/{at:04}.sql"), sql));
    as_it_is.chain(bared.map(|(at, sql)| (format!("corpus/{at:04}-bared.sql"), sql))).collect()
}

/// The payload without `IF NOT EXISTS`, `IF EXISTS` and `IGNORE`; none when it has none of them.
fn bared(sql: &str) -> Option<String> {
    let mut bare = sql.to_owned();
    for words in [" IF NOT EXISTS", " IF EXISTS", " IGNORE"] {
        while let Some(at) = bare.to_ascii_uppercase().find(words) {
            bare.replace_range(at..at + words.len(), "");
        }
    }
    (bare != sql).then_some(bare)
}

#[test]
fn what_is_written_is_what_was_announced_and_nothing_else() {
    let (desk, rehearsal) = (Desk::new(), Desk::new());
    let payloads = payloads();
    write(&desk, &payloads);
    write(&rehearsal, &payloads);

    // The announced edits, made by hand, until no more are announced.
    let mut rounds = 0;
    loop {
        let lines = decided(&rehearsal, &["corpus"]);
        let denied = lines.iter().filter(|(_, line)| line["decision"] == "deny");
        let edits: Vec<_> = denied.map(|(path, line)| (path, announced(line))).collect();
        if edits.iter().all(|(_, edits)| edits.is_empty()) {
            break;
        }
        for (path, edits) in edits {
            rehearsal.write(path, edited(&read(&rehearsal, path), &edits));
        }
        rounds += 1;
        assert!(rounds < 8, "the edits do not come to an end");
    }

    let told = decided(&desk, &["--fix", "--write", "corpus"]);
    let again = decided(&desk, &["corpus"]);
    let mut repaired = 0;
    for (path, payload) in &payloads {
        let written = read(&desk, path);
        assert_eq!(written, read(&rehearsal, path), "{path}: {payload}");
        if written == *payload {
            assert!(told[path].get("fix").is_none(), "{path} is said to be repaired");
            continue;
        }
        repaired += 1;
        let fix = &told[path]["fix"];
        assert_eq!(fix["written"], true, "{path}");
        assert_eq!(fix["allowed"], again[path]["decision"] == "allow", "{path}");
        // What is left is denied for reasons that no edit mends.
        assert!(again[path]["decision"] == "allow" || announced(&again[path]).is_empty());
    }
    println!("{} cases, {repaired} repaired in {rounds} rounds at most", payloads.len());
    assert!(repaired >= 200, "{repaired}");
}

#[test]
fn a_repaired_payload_runs_what_its_author_would_have_written() {
    let desk = Desk::new();
    // What is quoted could be one of the words that are taken out.
    let plain = payloads().into_iter().filter(|(_, sql)| !sql.contains(['\'', '"', '`']));
    write(&desk, &plain.collect());
    let written = decided(&desk, &["corpus"]);
    let repaired = decided(&desk, &["--fix", "--write", "corpus"]);
    let texts = |line: &Value| -> Vec<String> {
        let statements = line["statements"].as_array().unwrap().iter();
        statements.map(|statement| statement["text"].as_str().unwrap().to_owned()).collect()
    };
    let mut compared = 0;
    for (path, before) in written.iter().filter(|(_, line)| line["decision"] == "allow") {
        let Some(after) = repaired.get(&path.replace(".sql", "-bared.sql")) else { continue };
        assert_eq!(texts(after), texts(before), "{path}");
        compared += 1;
    }
    println!("{compared} repaired payloads run what was meant");
    assert!(compared >= 40, "{compared}");
}

#[test]
fn a_second_repair_finds_nothing_to_do() {
    let desk = Desk::new();
    write(&desk, &payloads());
    let first = decided(&desk, &["--fix", "--write", "corpus"]);
    let contents: Vec<String> = first.keys().map(|path| read(&desk, path)).collect();
    let second = decided(&desk, &["--fix", "--write", "corpus"]);
    assert!(second.values().all(|line| line.get("fix").is_none()));
    assert_eq!(contents, first.keys().map(|path| read(&desk, path)).collect::<Vec<_>>());
    assert!(first.values().any(|line| line["fix"]["written"] == true));
}

#[test]
fn allowed_statements_around_a_repaired_one_keep_every_byte() {
    let desk = Desk::new();
    let alone = payloads();
    write(&desk, &alone);
    let fixable = decided(&desk, &["--fix", "corpus"]);
    let fixable: Vec<&String> =
        alone.keys().filter(|path| fixable[*path].get("fix").is_some()).collect();
    let around: BTreeMap<String, String> = fixable
        .iter()
        .map(|path| (format!("around/{path}"), format!("{BEFORE}{}{AFTER}", alone[*path])))
        .collect();
    write(&desk, &around);
    let told = decided(&desk, &["--fix", "--write", "around"]);
    let mut repaired = 0;
    for (path, payload) in &around {
        let written = read(&desk, path);
        assert!(written.starts_with(BEFORE) && written.ends_with(AFTER), "{written}");
        repaired += usize::from(written != *payload && told[path]["fix"]["written"] == true);
    }
    // In the others something of the payload, such as a comment without an end, takes them in.
    assert!(repaired >= 200 && repaired + 10 > around.len(), "{repaired} of {}", around.len());
}

#[test]
fn an_allowed_payload_is_not_even_opened_for_writing() {
    let desk = Desk::new();
    let path = desk.write("a.sql", "DROP TABLE IF EXISTS t;\r\n\r\n");
    let written = fs::metadata(&path).unwrap().modified().unwrap();
    let lines = decided(&desk, &["--fix", "--write", "a.sql"]);
    assert!(lines["a.sql"].get("fix").is_none());
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), written);
}

#[cfg(unix)]
mod on_unix {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    const FIXABLE: &str = "DROP TABLE t;\n";
    const FIXED: &str = "DROP TABLE IF EXISTS t;\n";

    fn mode(path: &PathBuf) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn permissions_and_links_stay() {
        let desk = Desk::new();
        let file = desk.write("elsewhere/file.sql", FIXABLE);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let link = desk.path("link.sql");
        symlink("elsewhere/file.sql", &link).unwrap();
        let lines = decided(&desk, &["--fix", "--write", "link.sql"]);
        assert_eq!(lines["link.sql"]["fix"]["written"], true);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!((read(&desk, "elsewhere/file.sql").as_str(), mode(&file)), (FIXED, 0o640));
        let left: Vec<_> = fs::read_dir(desk.path("elsewhere")).unwrap().collect();
        assert_eq!(left.len(), 1, "no temporary file is left: {left:?}");
    }

    #[test]
    fn a_file_is_replaced_and_never_half_written() {
        let desk = Desk::new();
        let path = desk.write("a.sql", FIXABLE);
        let before = fs::metadata(&path).unwrap().ino();
        decided(&desk, &["--fix", "--write", "a.sql"]);
        assert_ne!(fs::metadata(&path).unwrap().ino(), before, "it was written over");
    }

    #[test]
    fn what_cannot_be_written_is_told_and_stays() {
        let desk = Desk::new();
        // A pipe gives its bytes once: what it has now is not what was decided on.
        let run = tollgate_tests::cli::run_with_input(
            &mut desk.command(&["check", "--fix", "--write", "/dev/stdin"]),
            FIXABLE.as_bytes(),
        );
        assert_eq!(run.code(), Some(2), "{run:?}");
        assert!(run.stdout.contains("not written"), "{run:?}");
    }
}
