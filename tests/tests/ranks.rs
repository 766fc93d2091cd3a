//! A module of the host uses modules of lower rank only, and ARCHITECTURE.md says which those are.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use tollgate_tests::ranks::{Ranks, declared_modules, parse_table, violations};
use tollgate_tests::source::{Source, repository, sources};

fn ranks_of_architecture() -> Ranks {
    let text = fs::read_to_string(repository().join("ARCHITECTURE.md")).unwrap();
    parse_table(&text).unwrap()
}

#[test]
fn no_module_uses_its_own_rank_or_a_higher_one() {
    let sources = sources(&repository().join("host/src"));
    let paths: usize = sources.iter().map(|source| source.crate_paths().len()).sum();
    assert!(paths > 20, "only {paths} paths were seen: the scan is broken");
    let found = violations(&sources, &ranks_of_architecture());
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn the_rank_table_lists_exactly_the_modules_there_are() {
    // The command line is a module of the binary, which stands on the library.
    let declared: BTreeSet<String> = ["lib.rs", "main.rs"]
        .into_iter()
        .flat_map(|root| {
            let text = fs::read_to_string(repository().join("host/src").join(root)).unwrap();
            declared_modules(&Source::parse(Path::new(root), &text).unwrap())
        })
        .collect();
    let listed: BTreeSet<String> = ranks_of_architecture().into_keys().collect();
    assert_eq!(declared, listed, "the code (left) and ARCHITECTURE.md (right) differ");
}

/// Ranks for planted sources.
fn ranks() -> Ranks {
    parse_table(
        "Before.\n\n| rank | modules | what |\n|---|---|---|\n| 0 | `ids` `clock` | names |\n\
         | 2 | `policy`, `target` | rules |\n| 4 | `executor` | runs |\n\nAfter | `other` |\n",
    )
    .unwrap()
}

fn found_in(path: &str, text: &str) -> Vec<String> {
    violations(&[Source::parse(Path::new(path), text).unwrap()], &ranks())
}

#[test]
fn planted_violations_are_found_in_every_spelling() {
    for text in [
        "use crate::executor::Outcome;",
        "use crate::{ids::StepKey, executor::{self, Outcome}};",
        "use crate::target;",
        "fn run() -> crate::executor::Outcome { todo!() }",
        "fn run() { if true { log!(\"{}\", crate::executor::CODE) } }",
        "use super::super::executor::Outcome;",
        "use super::super::{ids::StepKey, target::Target};",
        "use super::{check::Finding, super::target::Target};",
        "mod inner { use super::super::super::target::Target; }",
        "macro_rules! m { () => { $crate::executor::run() } }",
        "use crate::*;",
        "use crate::unranked::Thing;",
    ] {
        let found = found_in("policy/check.rs", text);
        assert!(!found.is_empty(), "{text}");
        assert!(found[0].starts_with("policy/check.rs:1"), "{found:?}");
    }
}

#[test]
fn lower_ranks_own_modules_comments_and_tests_are_no_violations() {
    for text in [
        "use crate::ids::{StepKey, Catalog};",
        "use crate::policy::Decision; use super::Decision; use super::*;",
        "mod inner { use super::super::Decision; use super::*; }",
        "//! See [`crate::executor`].\n/* crate::executor */ const A: &str = \"crate::executor\";",
        "#[cfg(test)] mod tests { use crate::executor::Outcome; }",
        "#[cfg(test)]\nuse crate::executor::Outcome;",
        "pub(crate) fn a() {} pub(super) fn b() {}",
    ] {
        assert_eq!(found_in("policy/check.rs", text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn a_module_without_a_rank_is_a_violation() {
    assert_eq!(found_in("web/mod.rs", "").len(), 1);
}

#[test]
fn a_table_that_cannot_be_read_is_refused() {
    for text in [
        "no table",
        "| rank | modules |\n|---|---|\n| one | `a` |",
        "| rank | modules |\n|---|---|\n| 1 | `a` |\n| 2 | `a` |",
    ] {
        assert!(parse_table(text).is_err(), "{text}");
    }
    assert_eq!(ranks().len(), 5);
}
