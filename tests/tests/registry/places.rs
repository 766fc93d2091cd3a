//! What is published is pulled, and nothing else passes for it.

use std::fs;

use serde_json::json;
use tollgate::digest::Digest;
use tollgate_tests::hostile::{self, Decide};
use tollgate_tests::oci::OciRegistry;
use tollgate_tests::schema::Schema;

use crate::fixture::{Bench, assert_refused, json};

#[test]
fn what_was_published_is_pulled_and_pinned() {
    let (bench, registry) = (Bench::new(), OciRegistry::start());
    let place = registry.place("hostile:0.0.0");
    let published = json(&bench.publish(&place, &["--format", "json"]));
    let schema = Schema::of("policy-publish");
    schema.assert_accepts(&published);
    schema.assert_notices(&published, |it| it["digest"] = json!("sha256:"));
    schema.assert_notices(&published, |it| it["password"] = json!("x"));
    let digest = bench.digest().to_string();
    assert_eq!((&published["digest"], &published["isNew"]), (&json!(digest), &json!(true)));

    let pulled = json(&bench.pull(&place, &["--digest", &digest, "--format", "json"]));
    let schema = Schema::of("policy-pull");
    schema.assert_accepts(&pulled);
    schema.assert_notices(&pulled, |it| it["expectedBy"] = json!(["nobody"]));
    assert_eq!(pulled["expectedBy"], json!(["argument"]));
    assert_eq!(pulled["manifestDigest"], published["manifestDigest"]);
    assert_eq!(fs::read(bench.pulled()).unwrap(), bench.component);

    assert_eq!((&pulled["warnings"], &pulled["compiler"]), (&json!([]), &json!(null)));

    // By the manifest's digest, too: then even the registry's tags do not matter.
    let by_digest = published["reference"].as_str().unwrap();
    let again = bench.pull(by_digest, &[]);
    assert_eq!(again.code(), Some(0), "{again:?}");
    assert!(again.stdout.contains("nothing said which bytes to expect"), "{again:?}");
    assert!(again.stdout.contains("tollgate policy pin sql-jdbc:v1"), "{again:?}");

    let pin = ["policy", "pin", "sql-jdbc:v1", "out/hostile-0.0.0.wasm", "--store", "out"];
    assert_eq!(bench.run(&pin).code(), Some(0));
    let pinned = json(&bench.pull(&place, &["--format", "json"]));
    assert_eq!(
        (&pinned["expectedBy"], &pinned["pinnedTo"]),
        (&json!(["pin"]), &json!(["sql-jdbc:v1"]))
    );
}

#[test]
fn the_same_again_changes_nothing_and_a_tag_is_not_moved() {
    let (bench, registry) = (Bench::new(), OciRegistry::start());
    let place = registry.place("hostile:0.0.0");
    let first = json(&bench.publish(&place, &["--format", "json"]));
    let again = json(&bench.publish(&place, &["--format", "json"]));
    assert_eq!(again["isNew"], false);
    assert_eq!(again["manifestDigest"], first["manifestDigest"], "the artifact is reproducible");

    bench.desk.write("p.wasm", hostile::policy(Decide::Allow));
    assert_refused(&bench.publish(&place, &[]), 4, "is taken: it leads to sha256:");
    let pull = bench.pull(&place, &["--digest", &bench.digest().to_string()]);
    assert_eq!(pull.code(), Some(0), "the tag still leads there: {pull:?}");
    let forced = json(&bench.publish(&place, &["--force", "--format", "json"]));
    assert_eq!(forced["isNew"], true);
    assert_ne!(forced["manifestDigest"], first["manifestDigest"]);
}

#[test]
fn another_component_than_is_expected_is_exit_code_4_and_not_written() {
    let (bench, registry) = (Bench::new(), OciRegistry::start());
    let place = registry.place("hostile:0.0.0");
    assert_eq!(bench.publish(&place, &[]).code(), Some(0));
    let other = Digest::of("another").to_string();
    assert_refused(&bench.pull(&place, &["--digest", &other]), 4, &other);
    bench.assert_nothing_was_pulled();

    // The pin of the same name and version says otherwise.
    bench.desk.write("other.wasm", hostile::policy(Decide::Allow));
    let pin = ["policy", "pin", "sql-jdbc:v1", "other.wasm", "--store", "out"];
    assert_eq!(bench.run(&pin).code(), Some(0));
    let pinned = fs::read(bench.pulled()).unwrap();
    assert_refused(&bench.pull(&place, &[]), 4, "`sql-jdbc:v1` is pinned to");
    assert_eq!(fs::read(bench.pulled()).unwrap(), pinned);

    // No pin, but other bytes under that name.
    fs::remove_file(bench.desk.path("out/pins.toml")).unwrap();
    assert_refused(&bench.pull(&place, &[]), 4, "has other bytes");
    assert_eq!(fs::read(bench.pulled()).unwrap(), pinned);
}

#[test]
fn a_layer_that_was_changed_in_the_registry_is_found() {
    let (bench, registry) = (Bench::new(), OciRegistry::start());
    let place = registry.place("hostile:0.0.0");
    assert_eq!(bench.publish(&place, &[]).code(), Some(0));
    let blob = registry.blob(bench.digest());
    let mut bytes = fs::read(&blob).unwrap();
    assert_eq!(bytes, bench.component, "the layer is the component, as it is");
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&blob, bytes).unwrap();
    for more in [&[][..], &["--digest", &bench.digest().to_string()]] {
        assert_refused(&bench.pull(&place, more), 4, "the registry sent other bytes");
        bench.assert_nothing_was_pulled();
    }
}

#[test]
fn what_is_no_policy_is_neither_published_nor_pulled() {
    let (bench, registry) = (Bench::new(), OciRegistry::start());
    let place = registry.place("hostile:0.0.0");
    bench.desk.write("p.wasm", hostile::policy_with_import());
    assert_refused(&bench.publish(&place, &[]), 2, "imports `clock`");
    bench.desk.write("p.wasm", "no component");
    assert_refused(&bench.publish(&place, &[]), 2, "not a component");
    assert_refused(&bench.pull(&place, &[]), 2, "is not in the registry");

    // A policy's signature is an artifact, and no policy.
    bench.desk.write("p.wasm", &bench.component);
    let signature = bench.digest().to_string().replace(':', "-") + ".minisig";
    crate::signatures::keys(&bench, "key");
    assert_eq!(bench.publish(&place, &["--sign-key", "key.key"]).code(), Some(0));
    let run = bench.pull(&registry.place(&format!("hostile:{signature}")), &[]);
    assert_refused(&run, 2, "its configuration is of type");
    bench.assert_nothing_was_pulled();
}

#[test]
fn the_artifact_is_what_other_tools_read() {
    let (bench, registry) = (Bench::new(), OciRegistry::start());
    let published = json(&bench.publish(&registry.place("hostile:0.0.0"), &["--format", "json"]));
    let blob = |digest: &str| -> serde_json::Value {
        let bytes = fs::read(registry.blob(digest.parse().unwrap())).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    };
    let manifest = blob(published["manifestDigest"].as_str().unwrap());
    assert_eq!(manifest["mediaType"], "application/vnd.oci.image.manifest.v1+json");
    assert_eq!(manifest["config"]["mediaType"], "application/vnd.wasm.config.v0+json");
    let layer = json!({
        "mediaType": "application/wasm",
        "digest": bench.digest().to_string(),
        "size": bench.component.len(),
    });
    assert_eq!(manifest["layers"], json!([layer]));
    assert_eq!(
        blob(manifest["config"]["digest"].as_str().unwrap()),
        json!({
            "created": "1970-01-01T00:00:00Z",
            "architecture": "wasm",
            "os": "wasip2",
            "layerDigests": [bench.digest().to_string()],
            "component": { "exports": ["tollgate:policy/gate@1.0.0"], "imports": [] },
        })
    );
}

/// The bench's component as another version, which has five characters.
fn version(bench: &Bench, version: &str) -> Vec<u8> {
    let mut bytes = bench.component.clone();
    let at = bytes.windows(5).position(|window| window == b"0.0.0").expect("its version");
    bytes[at..at + 5].copy_from_slice(version.as_bytes());
    bytes
}

#[test]
fn a_tag_that_leads_back_to_an_older_version_is_not_followed() {
    let (bench, registry) = (Bench::new(), OciRegistry::start());
    let place = registry.place("hostile:stable");
    assert_eq!(bench.publish(&place, &[]).code(), Some(0));
    bench.desk.write("newer.wasm", version(&bench, "0.1.0"));
    let pin = ["policy", "pin", "sql-jdbc:v1", "newer.wasm", "--store", "out"];
    assert_eq!(bench.run(&pin).code(), Some(0));
    assert_refused(&bench.pull(&place, &[]), 4, "hostile 0.0.0, older than the 0.1.0 that");
    assert!(!bench.pulled().exists());
    let digest = bench.digest().to_string();
    for more in [&["--digest", &digest][..], &["--allow-older"]] {
        let run = bench.pull(&place, more);
        assert_eq!(run.code(), Some(0), "{run:?}");
        fs::remove_file(bench.pulled()).unwrap();
    }
}

#[test]
fn what_a_place_is_called_is_compared_with_what_is_there() {
    let (bench, registry) = (Bench::new(), OciRegistry::start());
    let place = registry.place("curious:v1.0.0");
    let published = json(&bench.publish(&place, &["--format", "json"]));
    let pulled = json(&bench.pull(&place, &["--format", "json"]));
    assert_eq!(pulled["warnings"], published["warnings"]);
    let told = pulled["warnings"].to_string();
    assert!(told.contains("called `curious`") && told.contains("tag is `v1.0.0`"), "{told}");
    assert!(bench.pull(&place, &[]).stdout.contains("note: the tag is `v1.0.0`"));
}

#[test]
fn what_made_a_component_travels_with_it() {
    let (bench, registry) = (Bench::new(), OciRegistry::start());
    let place = registry.place("hostile:0.0.0");
    let pin = ["policy", "pin", "sql-jdbc:v1", "p.wasm", "--store", "store"];
    let made = ["--compiler", "rustc 1.95.0 (it's new)", "--flag", "-Ca", "--flag", "-Cb=c d"];
    assert_eq!(bench.run(&[&pin[..], &made[..]].concat()).code(), Some(0));
    let publish = ["policy", "publish", "store/hostile-0.0.0.wasm", &place];
    assert_eq!(bench.run(&publish).code(), Some(0));
    // What is said to do next is done, by a shell.
    let pulled = bench.pull(&place, &[]);
    let next = pulled.stdout.lines().find_map(|line| line.split_once("not pinned yet: tollgate "));
    let next = next.expect("the command that pins it").1.replace("--store DIR", "--store out");
    let script = format!("'{}' {next}", tollgate_tests::cli::binary().display());
    let mut shell = bench.command(&[]);
    let environment: Vec<_> =
        shell.get_envs().filter_map(|(k, v)| Some((k.to_owned(), v?.to_owned()))).collect();
    shell = std::process::Command::new("sh");
    shell.args(["-c", &script]).current_dir(bench.desk.folder()).envs(environment);
    let run = tollgate_tests::cli::run(&mut shell);
    assert_eq!(run.code(), Some(0), "{script}: {run:?}");
    let pins = |store: &str| fs::read_to_string(bench.desk.path(store).join("pins.toml")).unwrap();
    assert_eq!(pins("out"), pins("store"));
}

#[test]
fn a_destination_is_a_folder_or_a_component() {
    let (bench, registry) = (Bench::new(), OciRegistry::start());
    let place = registry.place("hostile:0.0.0");
    assert_eq!(bench.publish(&place, &[]).code(), Some(0));
    let to = |to: &str| bench.run(&["policy", "pull", &place, "--to", to]);
    for (name, file) in [
        ("new/folder", "new/folder/hostile-0.0.0.wasm"),
        ("next.wasm", "next.wasm"),
        ("far/away/next.wasm", "far/away/next.wasm"),
    ] {
        assert_eq!(to(name).code(), Some(0), "{name}");
        assert_eq!(fs::read(bench.desk.path(file)).unwrap(), bench.component, "{name}");
    }
    std::os::unix::fs::symlink("nowhere", bench.desk.path("link.wasm")).unwrap();
    assert_refused(&to("link.wasm"), 2, "is a link to what is not there");
}
