//! What a payload is once the fixes that came with its denial are made.

use tollgate_policy::{Decision, Request, decide};

fn answer(payload: &str) -> Decision {
    decide(&Request { payload: payload.as_bytes(), catalog: "demo", protected_tables: &[] })
}

/// The payload with every fix made, from the end so that places stay true.
fn fixed(payload: &str) -> String {
    let Decision::Deny(diagnostics) = answer(payload) else {
        return payload.to_owned();
    };
    let mut edits: Vec<_> = diagnostics.into_iter().filter_map(|found| found.fix).collect();
    edits.sort_by_key(|edit| std::cmp::Reverse(edit.span.start));
    let mut text = payload.to_owned();
    for edit in edits {
        text.replace_range(edit.span.start as usize..edit.span.end as usize, &edit.replacement);
    }
    text
}

#[test]
fn a_missing_or_misspelt_condition_is_put_right() {
    for (payload, wanted) in [
        ("DROP TABLE t", "DROP TABLE IF EXISTS t"),
        ("drop table if exist t", "drop table IF EXISTS t"),
        ("DROP TABLE IF NOT EXISTS t", "DROP TABLE IF EXISTS t"),
        ("CREATE TABLE t (a INT)", "CREATE TABLE IF NOT EXISTS t (a INT)"),
        ("CREATE TABLE IF EXISTS t (a INT)", "CREATE TABLE IF NOT EXISTS t (a INT)"),
        ("CREATE TABLE IF NOT EXIST t (a INT)", "CREATE TABLE IF NOT EXISTS t (a INT)"),
        ("CREATE TABLE NOT EXISTS t (a INT)", "CREATE TABLE IF NOT EXISTS t (a INT)"),
        ("INSERT INTO t (a) VALUES (1)", "INSERT IGNORE INTO t (a) VALUES (1)"),
    ] {
        assert_eq!(fixed(payload), wanted);
        assert!(matches!(answer(wanted), Decision::Allow(_)), "{wanted}");
    }
}

#[test]
fn what_is_wrong_is_said_once_and_has_a_place() {
    for payload in [
        "INSERT INTO t SELECT 1 FROM u",
        "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE",
        "INSERT IGNORE INTO t (a) TABLE u",
        "CREATE TABLE IF NOT EXISTS k (id INT, key VARCHAR(2))",
    ] {
        let Decision::Deny(diagnostics) = answer(payload) else {
            panic!("{payload} is allowed");
        };
        assert!(diagnostics.iter().all(|found| found.span.is_some()), "{payload}");
        let codes: Vec<&str> = diagnostics.iter().map(|found| found.code).collect();
        let plain = codes.iter().filter(|code| **code == "insert-not-repeatable").count();
        assert!(plain <= 1, "{payload}: {codes:?}");
    }
}

#[test]
fn a_query_without_tables_does_not_depend_on_the_catalog() {
    let advised = |payload: &str| match answer(payload) {
        Decision::Allow(allowance) => !allowance.advisories.is_empty(),
        Decision::Deny(diagnostics) => panic!("{payload}: {diagnostics:?}"),
    };
    assert!(!advised("INSERT IGNORE INTO t (a) SELECT 'v' UNION ALL SELECT 'w'"));
    assert!(advised("INSERT IGNORE INTO t (a) SELECT a FROM u"));
}
