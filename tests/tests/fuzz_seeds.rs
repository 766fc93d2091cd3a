//! The seeds of the fuzz targets keep every property that fuzzing looks for a breach of.

use std::fs;
use std::path::PathBuf;

use tollgate_tests::source::repository;

#[path = "../../fuzz/src/properties/mod.rs"]
pub mod properties;

use properties::PROPERTIES;

fn seeds() -> Vec<PathBuf> {
    let folder = fs::read_dir(repository().join("fuzz/seeds")).unwrap();
    let mut seeds: Vec<_> = folder.map(|seed| seed.unwrap().path()).collect();
    seeds.sort();
    seeds
}

#[test]
fn every_property_holds_for_every_seed() {
    let seeds = seeds();
    assert!(seeds.len() > 100, "only {} seeds: has the folder moved?", seeds.len());
    let mut violations = Vec::new();
    for seed in &seeds {
        let payload = fs::read(seed).unwrap();
        for (name, property) in PROPERTIES {
            if let Err(violation) = property(&payload) {
                violations.push(format!("{name}, {}: {violation}", seed.display()));
            }
        }
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}
