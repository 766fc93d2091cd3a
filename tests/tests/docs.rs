//! What the documentation says is what the program has.

use std::fs;

use tollgate::config::KEYS;
use tollgate_tests::source::repository;

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
