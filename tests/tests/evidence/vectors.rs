//! Bundles that an earlier build made: every later one verifies them, and would make them again.
//!
//! They hold the policy of tests/policies/drop-only, which is small. docs/evidence.md lists their
//! digests.

use std::fs;

use serde_json::Value;
use tollgate::digest::Digest;
use tollgate_tests::desk::Desk;
use tollgate_tests::source::repository;
use tollgate_tests::ustar::Members;

/// The committed bundles.
fn vectors() -> Vec<(String, Vec<u8>)> {
    let folder = repository().join("tests/vectors/evidence");
    let mut vectors: Vec<(String, Vec<u8>)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
        })
        .collect();
    vectors.sort();
    assert!(vectors.len() >= 2, "an allowed and a denied payload");
    vectors
}

/// A store with the policy of a bundle, and its payload beside it.
fn unpacked(desk: &Desk, members: &mut Members) {
    let component = members.content("policy/component.wasm").clone();
    desk.write("store/drop-only-0.1.0.wasm", component);
    desk.write("store/pins.toml", members.content("policy/pin.toml").clone());
    desk.write("payload.sql", members.content("payload.sql").clone());
}

fn json(members: &mut Members, name: &str) -> Value {
    serde_json::from_slice(members.content(name)).unwrap()
}

#[test]
fn bundles_of_an_earlier_build_verify_with_this_one() {
    let desk = Desk::new();
    for (name, bytes) in vectors() {
        desk.write(&name, &bytes);
        let run = desk.run(&["evidence", "verify", "--json", "--engine", "both", &name]);
        assert_eq!(run.code(), Some(0), "{name}: {run:?}");
        let line = &run.json_lines()[0];
        assert_eq!(line["engines"], serde_json::json!(["cranelift", "pulley"]));
        assert_eq!(line["bundleDigest"], Digest::of(&bytes).to_string());
        assert!(name.starts_with(if line["decision"] == "allow" { "allowed" } else { "denied" }));
    }
}

#[test]
fn this_build_makes_the_same_bundle_of_the_same_facts() {
    for (name, bytes) in vectors() {
        let desk = Desk::new();
        let mut recorded = Members::of(&bytes);
        unpacked(&desk, &mut recorded);
        let request = json(&mut recorded, "request.json");
        let word = |key: &str| request[key].as_str().unwrap().to_owned();
        let (catalog, environment) = (word("catalog"), word("environment"));
        let mut export = vec!["evidence", "export", "--store", "store", "--payload", "payload.sql"];
        export.extend(["--catalog", &catalog, "--environment", &environment, "--to", "x.tar"]);
        let run = desk.run(&export);
        assert_eq!(run.code(), Some(0), "{run:?}");
        let mut made = Members::of(&fs::read(desk.path("x.tar")).unwrap());
        // Of all facts, which versions made it is the one that may have changed.
        *made.content("versions.json") = recorded.content("versions.json").clone();
        made.sum();
        assert!(made.archive() == bytes, "{name} has become another bundle");
    }
}

#[test]
fn the_page_lists_the_digests_of_every_vector_and_no_other() {
    let page = fs::read_to_string(repository().join("docs/evidence.md")).unwrap();
    let listed = page.lines().filter(|line| line.contains(".evidence.tar) | `sha256:")).count();
    assert_eq!(listed, vectors().len());
    for (name, bytes) in vectors() {
        let mut members = Members::of(&bytes);
        let decision = json(&mut members, "decision.json");
        let row = format!(
            "[{name}](../tests/vectors/evidence/{name}) | `{}` | `{}` |",
            Digest::of(&bytes),
            decision["decisionDigest"].as_str().unwrap()
        );
        assert!(page.contains(&row), "the page has no row\n| {row}");
    }
}
