//! What the documentation says is what the program has.

use std::collections::BTreeSet;
use std::fs;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use tollgate::config::KEYS;
use tollgate::outbox::FORWARD_RECEIPT_LOST;
use tollgate::plan::RefusalCode;
use tollgate::worker::NotReady;
use tollgate_tests::source::{repository, sources};

fn operations() -> String {
    fs::read_to_string(repository().join("docs/operations.md")).unwrap()
}

/// The names in the first column of a table's rows.
fn documented() -> Vec<String> {
    operations()
        .lines()
        .filter_map(|line| line.strip_prefix("| `FACTORY_PLUGIN_"))
        .filter_map(|rest| rest.split_once("` |"))
        .map(|(name, _)| format!("FACTORY_PLUGIN_{name}"))
        .filter(|name| !name.ends_with('…'))
        .collect()
}

#[test]
fn every_variable_is_documented_in_its_order_and_no_other() {
    let names: Vec<String> = KEYS.iter().map(|key| key.name.to_owned()).collect();
    assert_eq!(documented(), names);
}

#[test]
fn bounds_in_the_documentation_are_those_of_the_program() {
    let text = operations();
    for key in KEYS {
        // Such as "seconds, 30 to 3600; default 300".
        let Some((_, bounds)) = key.rule.split_once(", ") else { continue };
        let bounds = bounds.split(';').next().unwrap();
        let numbers = bounds.split(" to ").all(|part| part.parse::<u32>().is_ok());
        if !numbers {
            continue;
        }
        let row = text.lines().find(|line| line.starts_with(&format!("| `{}` |", key.name)));
        assert!(row.unwrap().contains(bounds), "{}: {bounds}", key.name);
        if let Some((_, default)) = key.rule.split_once("default ") {
            let default = default.split([';', ':']).next().unwrap();
            assert!(row.unwrap().contains(&format!("| {default} |")), "{}: {default}", key.name);
        }
    }
}

/// The texts that a function of a file is made of.
fn texts_of(file: &str, functions: &[&str], is_it: fn(&str) -> bool) -> BTreeSet<String> {
    let sources = sources(&repository().join("host/src"));
    let source = sources.iter().find(|source| source.path.ends_with(file)).unwrap();
    let mut found = BTreeSet::new();
    in_functions(source.tokens.clone(), functions, &mut found);
    found.retain(|text| is_it(text));
    assert!(!found.is_empty(), "{file}: the scan is broken");
    found
}

fn in_functions(tokens: TokenStream, functions: &[&str], found: &mut BTreeSet<String>) {
    let mut tokens = tokens.into_iter().peekable();
    let mut is_in = false;
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(word) if word == "fn" => {
                let name = tokens.peek().map(ToString::to_string).unwrap_or_default();
                is_in = functions.contains(&name.as_str());
            }
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace && is_in => {
                literals(group.stream(), found);
                is_in = false;
            }
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                in_functions(group.stream(), functions, found);
            }
            _ => {}
        }
    }
}

fn literals(tokens: TokenStream, found: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => literals(group.stream(), found),
            TokenTree::Literal(literal) => {
                found.extend(
                    literal
                        .to_string()
                        .strip_prefix('"')
                        .and_then(|rest| Some(rest.strip_suffix('"')?.to_owned())),
                );
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}

fn is_code(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.ends_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_lowercase() || c == '-')
}

/// Among other texts: one of several words.
fn is_key(text: &str) -> bool {
    is_code(text) && text.contains('-')
}

/// The keys in the first column of the tables of a section.
fn keys_in(text: &str, from: &str, to: &str) -> BTreeSet<String> {
    let (_, section) = text.split_once(from).unwrap();
    let (section, _) = section.split_once(to).unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let mut keys = BTreeSet::new();
    for row in rows {
        let (column, _) = row.split_once(" |").unwrap();
        for key in column.split(',').map(|key| key.trim().trim_matches('`').to_owned()) {
            assert!(keys.insert(key.clone()), "`{key}` is documented twice");
        }
    }
    keys
}

#[test]
fn every_key_of_what_is_missing_is_documented_and_no_other() {
    let mut keys = BTreeSet::new();
    for (file, functions) in [
        ("target/error.rs", &["code"][..]),
        ("control/mod.rs", &["code"]),
        ("ledger/shape.rs", &["code"]),
        ("ledger/fault.rs", &["code"]),
        ("outbox/shape.rs", &["code"]),
        ("outbox/fault.rs", &["code"]),
        ("executor/status_reader.rs", &["executor_missing"]),
    ] {
        keys.extend(texts_of(file, functions, is_key));
    }
    // Each of a server's failures is one of the target's and one of the control catalog's.
    let failures = texts_of("session/failure.rs", &["codes"], is_code);
    assert_eq!(failures.len(), tollgate::target::ServerFailure::CODES.len(), "{failures:?}");
    for failure in failures {
        keys.extend(["target", "control"].map(|side| format!("{side}-{failure}")));
    }
    let documented = keys_in(&operations(), "### Keys of what is missing", "## Receipt states");
    assert_eq!(documented, keys, "docs/operations.md (left) and the program (right) differ");
}

#[test]
fn every_warning_and_every_code_of_a_readiness_is_documented_and_no_other() {
    let text = operations();
    let warnings = texts_of("target/connection.rs", &["code"], is_code);
    let from = "A target that is ready may have warnings.";
    assert_eq!(keys_in(&text, from, "### Keys of what is missing"), warnings);
    let mut codes: BTreeSet<String> = NotReady::CODES.iter().map(ToString::to_string).collect();
    codes.insert("configuration-broken".to_owned());
    let readyz = keys_in(&text, "With `--probes-listen ADDRESS:PORT`", "A trouble is over when");
    assert_eq!(readyz, codes);
    let schema = fs::read_to_string(repository().join("docs/schema/readyz.schema.json")).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let listed = &schema["properties"]["reasons"]["items"]["properties"]["code"]["enum"];
    let listed: BTreeSet<String> = serde_json::from_value(listed.clone()).unwrap();
    assert_eq!(listed, codes);
}

#[test]
fn every_code_of_a_step_is_documented_and_no_other() {
    let mut codes: BTreeSet<String> = [
        "executor/error.rs",
        "executor/outcome.rs",
        "ledger/claim_error.rs",
        "ledger/request.rs",
        "ledger/takeover.rs",
    ]
    .iter()
    .flat_map(|file| texts_of(file, &["code"], is_code))
    .collect();
    codes.extend(texts_of("worker/delivery.rs", &["deliver"], is_key));
    // What workers and the outbox add, by the constants that name them.
    let release = RefusalCode::ReleaseNotInstalled.as_str();
    codes.extend([release, FORWARD_RECEIPT_LOST, "deliveries-lost"].map(str::to_owned));
    let documented = keys_in(&operations(), "### Codes of a step", "## Workers");
    assert_eq!(documented, codes, "docs/operations.md (left) and the program (right) differ");
}
