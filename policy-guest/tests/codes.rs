//! Every documented code has an example that shows it and one that is allowed.

use std::fmt::Write as _;

use tollgate_policy::diagnostics::{Code, code};
use tollgate_policy::{Decision, Diagnostic, Request, Severity, decide};

fn decided(payload: &[u8]) -> (bool, Vec<Diagnostic>) {
    let request = Request { payload, catalog: "plugin_preview", protected_tables: &[] };
    match decide(&request) {
        Decision::Allow(allowance) => (true, allowance.advisories),
        Decision::Deny(diagnostics) => (false, diagnostics),
    }
}

/// Codes whose examples are too large to print, with a payload made here.
fn generated(code: &Code) -> Option<Vec<u8>> {
    Some(match code.id {
        "payload-bytes" => vec![b' '; 1_048_577],
        "payload-utf8" => b"DROP TABLE IF EXISTS t -- \xff".to_vec(),
        "statement-count" => "DROP TABLE IF EXISTS t;".repeat(101).into_bytes(),
        "token-count" => ",".repeat(700_001).into_bytes(),
        "item-count" => format!("DROP TABLE IF EXISTS t{}", ", t".repeat(4_096)).into_bytes(),
        "operator-count" => {
            format!("DELETE FROM t WHERE id = 1{}", " OR id = 1".repeat(1_001)).into_bytes()
        }
        "join-count" => format!(
            "INSERT IGNORE INTO t (id) SELECT a.id FROM t a{}",
            " JOIN t b ON b.id = a.id".repeat(201)
        )
        .into_bytes(),
        "further-errors" => {
            format!("INSERT IGNORE INTO t VALUES (SLEEP(1){})", ", SLEEP(1)".repeat(600))
                .into_bytes()
        }
        "further-advisories" => {
            format!("INSERT IGNORE INTO t VALUES (NOW(){})", ", NOW()".repeat(600)).into_bytes()
        }
        _ => return None,
    })
}

/// A self-check that no payload is known to trip.
const WITHOUT_EXAMPLE: &[&str] = &["normalisation-unstable"];

#[test]
fn every_code_has_a_bad_and_a_good_example() {
    let mut wrong = Vec::new();
    for code in code::ALL.iter().filter(|code| !WITHOUT_EXAMPLE.contains(&code.id)) {
        let bad = generated(code).unwrap_or_else(|| code.bad.as_bytes().to_vec());
        let (allowed, found) = decided(&bad);
        let shown = found.iter().any(|found| found.code == code.id);
        if !shown || allowed != (code.severity == Severity::Advisory) {
            wrong.push(format!("bad example of {}: {found:#?}", code.id));
        }
        let good = if code.good.is_empty() { "DROP TABLE IF EXISTS t" } else { code.good };
        let (allowed, found) = decided(good.as_bytes());
        if !allowed || found.iter().any(|found| found.code == code.id) {
            wrong.push(format!("good example of {}: {found:#?}", code.id));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What docs/diagnostics.md has to say: one entry per code.
fn documentation() -> String {
    let mut text = String::from(
        "# Diagnostics of policy v1\n\n\
         One entry per code, in the order a payload is read. Codes are stable and never reused. Every\n\
         example is decided on by a test; after a change of the list, run it with\n\
         `TOLLGATE_UPDATE_DOCS=1` to write this page again.\n",
    );
    for code in code::ALL {
        let severity = match code.severity {
            Severity::Error => "error: the payload is denied",
            Severity::Advisory => "advisory: the payload is allowed",
        };
        let _ = write!(
            text,
            "\n## `{}`\n\n{}. {}\n\n**Do:** {}.\n",
            code.id,
            severity.split(':').next().unwrap_or_default().to_uppercase(),
            sentence(code.message),
            code.help,
        );
        if !code.bad.is_empty() {
            let _ = write!(
                text,
                "\n```sql\n-- shows it\n{}\n-- does not\n{}\n```\n",
                code.bad, code.good
            );
        }
    }
    text
}

fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first: String = characters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", characters.as_str())
}

#[test]
fn the_documentation_has_one_entry_per_code() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/diagnostics.md");
    let expected = documentation();
    if std::env::var_os("TOLLGATE_UPDATE_DOCS").is_some() {
        std::fs::write(path, &expected).unwrap();
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        found == expected,
        "docs/diagnostics.md is not what the codes say; run the test with TOLLGATE_UPDATE_DOCS=1"
    );
}

#[test]
fn the_documentation_lists_every_function() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/policy.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, list) = text.split_once("## Functions").unwrap();
    let listed: Vec<_> = list.split('`').skip(1).step_by(2).collect();
    let callable: Vec<_> = tollgate_policy::function_names().collect();
    assert_eq!(listed, callable);
}

#[test]
fn codes_are_kebab_case_and_unique() {
    let mut ids: Vec<_> = code::ALL.iter().map(|code| code.id).collect();
    assert!(ids.iter().all(|id| {
        id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    }));
    ids.sort_unstable();
    let count = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

#[test]
fn messages_are_lowercase_and_have_no_full_stop() {
    for code in code::ALL {
        for text in [code.message, code.help] {
            let first = text.split(' ').next().unwrap();
            let keyword = first.len() > 1 && first.chars().all(|c| !c.is_ascii_lowercase());
            assert!(keyword || first.starts_with(|c: char| !c.is_ascii_uppercase()), "{text}");
            assert!(!text.ends_with('.'), "{text}");
        }
    }
}

#[test]
fn a_mechanical_fix_makes_the_payload_acceptable() {
    for (payload, fixed) in [
        ("CREATE TABLE t (id INT)", "CREATE TABLE IF NOT EXISTS t (id INT)"),
        ("DROP TABLES t", "DROP TABLES IF EXISTS t"),
        ("INSERT INTO t VALUES (1)", "INSERT IGNORE INTO t VALUES (1)"),
        ("INSERT IGNORE INTO t (order) VALUES (1)", "INSERT IGNORE INTO t (`order`) VALUES (1)"),
    ] {
        let (_, found) = decided(payload.as_bytes());
        let mut edits: Vec<_> = found.into_iter().filter_map(|found| found.fix).collect();
        edits.sort_by_key(|edit| edit.span);
        let mut text = payload.to_owned();
        for edit in edits.iter().rev() {
            text.replace_range(edit.span.start as usize..edit.span.end as usize, &edit.replacement);
        }
        assert_eq!(text, fixed);
        assert!(decided(text.as_bytes()).0, "{text}");
    }
}

#[test]
fn all_problems_of_a_payload_are_reported_at_once() {
    let (_, found) = decided(
        b"DROP TABLE other.t; UPDATE t SET a = 1; INSERT INTO t VALUES (SLEEP(1), @x); DELETE FROM t",
    );
    let codes: Vec<_> = found.iter().map(|found| (found.statement, found.code)).collect();
    assert_eq!(
        codes,
        [
            (Some(0), "if-exists-missing"),
            (Some(0), "catalog-foreign"),
            (Some(1), "statement-kind"),
            (Some(2), "insert-not-repeatable"),
            (Some(2), "function"),
            (Some(2), "variable"),
            (Some(3), "delete-without-where"),
        ]
    );
}
