//! The list of failure scenarios, the tests that stage them, and what ARCHITECTURE.md says about the
//! rest are one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;
use tollgate_tests::server::Flavour;
use tollgate_tests::source::repository;

/// The scenarios are numbered from 1 to this.
const SCENARIO_COUNT: u32 = 81;

#[derive(Deserialize)]
struct List {
    scenario: Vec<Scenario>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    number: u32,
    claim: String,
    #[serde(default)]
    except: BTreeMap<String, String>,
    staged: Option<String>,
    unstaged: Option<String>,
}

fn list() -> Vec<Scenario> {
    let text = fs::read_to_string(repository().join("tests/faults.toml")).unwrap();
    toml::from_str::<List>(&text).unwrap().scenario
}

/// Every line of the sources of a test binary.
fn lines(binary: &str) -> Vec<String> {
    fn gather(folder: &Path, lines: &mut Vec<String>) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                gather(&path, lines);
            } else {
                lines.extend(fs::read_to_string(path).unwrap().lines().map(str::to_owned));
            }
        }
    }
    let mut lines = Vec::new();
    gather(&repository().join("tests/tests").join(binary), &mut lines);
    lines
}

/// The number in `fault_<number>_…`, where a line goes on with it after this.
fn number_after(line: &str, before: &str) -> Option<u32> {
    let (_, rest) = line.split_once(before)?;
    let (number, _) = rest.split_once('_')?;
    (number.len() == 2).then(|| number.parse().ok()).flatten()
}

/// Servers by scenario, from the lines that make a claim a test for each.
fn staged() -> BTreeMap<u32, BTreeSet<String>> {
    let mut staged: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
    for line in lines("faults") {
        let Some(number) = number_after(&line, "over_servers!(fault_") else { continue };
        let servers: Vec<String> = match line.split_once(" on ") {
            Some((_, listed)) => {
                let listed = listed.trim_end_matches(");");
                listed.split(',').map(|server| server.trim().to_owned()).collect()
            }
            None => Flavour::ALL.iter().map(|flavour| flavour.name().to_owned()).collect(),
        };
        staged.entry(number).or_default().extend(servers);
    }
    staged
}

#[test]
fn every_scenario_is_listed_once_in_order() {
    let numbers: Vec<u32> = list().iter().map(|scenario| scenario.number).collect();
    assert_eq!(numbers, (1..=SCENARIO_COUNT).collect::<Vec<_>>());
    for scenario in list() {
        assert!(scenario.claim.len() < 100, "{}: a claim is a line", scenario.number);
    }
}

#[test]
fn every_scenario_is_staged_on_every_server_or_says_why_not() {
    let staged = staged();
    let mut holes = Vec::new();
    for Scenario { number, except, staged: elsewhere, unstaged, .. } in list() {
        let here = staged.get(&number).cloned().unwrap_or_default();
        if let Some(binary) = &elsewhere {
            let is_there =
                lines(binary).iter().any(|line| number_after(line, "fn fault_") == Some(number));
            if !is_there {
                holes.push(format!("{number}: no test in `{binary}`"));
            }
            continue;
        }
        for flavour in Flavour::ALL {
            let name = flavour.name();
            let is_excused = unstaged.is_some() || except.contains_key(name);
            if here.contains(name) == is_excused {
                let what = if is_excused { "staged, and said not to be" } else { "not staged" };
                holes.push(format!("{number} on {name}: {what}"));
            }
        }
    }
    assert!(holes.is_empty(), "\n{}", holes.join("\n"));
    for number in staged.keys() {
        assert!((1..=SCENARIO_COUNT).contains(number), "{number} is no scenario");
    }
}

#[test]
fn what_is_not_staged_stands_in_the_architecture() {
    let text = fs::read_to_string(repository().join("ARCHITECTURE.md")).unwrap();
    let flowing = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for scenario in list() {
        for reason in scenario.except.values().chain(&scenario.unstaged) {
            let row = format!("| {} |", scenario.number);
            assert!(flowing.contains(&row), "{} has no row", scenario.number);
            assert!(flowing.contains(reason.as_str()), "{}: `{reason}`", scenario.number);
        }
    }
}

/// A claim that is no test would be dead code; a test that is named past its scenario would be lost.
#[test]
fn every_claim_of_the_binary_has_a_number() {
    for line in lines("faults") {
        if line.contains("over_servers!(") && !line.trim_start().starts_with("//") {
            assert!(number_after(&line, "over_servers!(fault_").is_some(), "{line}");
        }
    }
}
