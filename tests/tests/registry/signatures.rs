//! Signatures: made at publishing, wanted when a key is trusted, and minisign's in both directions.

use std::fs;
use std::process::Command;

use tollgate_tests::cli;
use tollgate_tests::hostile::{self, Decide};
use tollgate_tests::oci::{OciRegistry, is_installed};

use crate::fixture::{Bench, assert_refused, json};

/// A pair of keys without a password, made by minisign: `NAME.key` and `NAME.pub`.
pub(crate) fn keys(bench: &Bench, name: &str) {
    minisign(bench, &["-G", "-W", "-s", &format!("{name}.key"), "-p", &format!("{name}.pub")]);
}

/// Debian's `minisign`, on the desk.
fn minisign(bench: &Bench, arguments: &[&str]) {
    assert!(is_installed("minisign"), "`minisign` is not installed: script/test installs it");
    let run = cli::run(Command::new("minisign").args(arguments).current_dir(bench.desk.folder()));
    assert_eq!(run.code(), Some(0), "{run:?}");
}

#[test]
fn with_a_key_only_what_it_signed_is_pulled() {
    let (bench, registry) = (Bench::new(), OciRegistry::start());
    let place = registry.place("hostile:0.0.0");
    keys(&bench, "ours");
    keys(&bench, "other");
    assert_eq!(bench.publish(&place, &[]).code(), Some(0));
    assert_refused(&bench.pull(&place, &["--verify-key", "ours.pub"]), 4, "has no signature");
    bench.assert_nothing_was_pulled();

    let signed = json(&bench.publish(&place, &["--sign-key", "other.key", "--format", "json"]));
    assert_eq!(signed["isNew"], false, "the artifact is the same, signed or not");
    let run = bench.pull(&place, &["--verify-key", "ours.pub"]);
    assert_refused(&run, 4, "is not to be trusted");
    assert!(run.stderr.contains("because: it was signed with the key"), "{run:?}");
    bench.assert_nothing_was_pulled();

    let ours = ["--sign-key", "ours.key", "--format", "json"];
    assert_refused(&bench.publish(&place, &ours), 4, "another signature of this component");
    let forced = json(&bench.publish(&place, &[&ours[..], &["--force"]].concat()));
    let again = json(&bench.publish(&place, &ours));
    assert_eq!(again["signature"], forced["signature"]);
    let pulled = json(&bench.pull(&place, &["--verify-key", "ours.pub", "--format", "json"]));
    assert_eq!(pulled["keyId"], forced["signature"]["keyId"]);

    // The line of the key itself will do, in the variable as well.
    let line = fs::read_to_string(bench.desk.path("ours.pub")).unwrap();
    let line = line.lines().nth(1).unwrap();
    let pull = ["policy", "pull", &place, "--to", "out"];
    let run = cli::run(bench.command(&pull).env("TOLLGATE_POLICY_KEY", line));
    assert_eq!(run.code(), Some(0), "{run:?}");
    let run = cli::run(bench.command(&pull).env("TOLLGATE_POLICY_KEY", ""));
    assert_refused(&run, 2, "no minisign public key");
}

#[test]
fn a_signature_that_was_changed_in_the_registry_is_found() {
    let (bench, registry) = (Bench::new(), OciRegistry::start());
    let place = registry.place("hostile:0.0.0");
    keys(&bench, "ours");
    assert_eq!(bench.publish(&place, &["--sign-key", "ours.key"]).code(), Some(0));
    let key = ["--verify-key", "ours.pub"];
    assert_eq!(bench.pull(&place, &key).code(), Some(0));
    let signature = fs::read(bench.desk.path("out/hostile-0.0.0.wasm.minisig")).unwrap();
    fs::remove_dir_all(bench.desk.path("out")).unwrap();
    fs::create_dir(bench.desk.path("out")).unwrap();

    // As it is kept there: its own digest is found to be wrong before anything else is.
    let blob = registry.blob(tollgate::digest::Digest::of(&signature));
    let text = String::from_utf8(fs::read(&blob).unwrap()).unwrap();
    fs::write(&blob, text.replace("hostile 0.0.0", "hostile 9.9.9")).unwrap();
    assert_refused(&bench.pull(&place, &key), 4, "the registry sent other bytes");
    bench.assert_nothing_was_pulled();
}

#[test]
fn a_store_hands_out_only_what_the_key_signed() {
    let (bench, registry) = (Bench::new(), OciRegistry::start());
    let place = registry.place("hostile:0.0.0");
    keys(&bench, "ours");
    keys(&bench, "other");
    bench.desk.write("a.sql", "xyzxyz");
    assert_eq!(bench.publish(&place, &["--sign-key", "ours.key"]).code(), Some(0));
    assert_eq!(bench.pull(&place, &["--verify-key", "ours.pub"]).code(), Some(0));
    let pin = ["policy", "pin", "sql-jdbc:v1", "out/hostile-0.0.0.wasm", "--store", "store"];
    let pin = bench.run(&[&pin[..], &["--verify-key", "ours.pub"]].concat());
    assert_eq!(pin.code(), Some(0), "{pin:?}");

    let check = |key: &str| bench.run(&["check", "--store", "store", "--verify-key", key, "a.sql"]);
    assert_eq!(check("ours.pub").code(), Some(1), "it decides, and denies");
    assert_refused(&check("other.pub"), 4, "is not to be trusted");
    let built_in = bench.run(&["check", "--verify-key", "ours.pub", "a.sql"]);
    assert_refused(&built_in, 4, "it is built into the program");

    // A key itself is that key, whatever lies where the command runs.
    let other = fs::read_to_string(bench.desk.path("other.pub")).unwrap();
    let other = other.lines().last().unwrap();
    assert_refused(&check(other), 4, "is not to be trusted");
    // Base64 has slashes: such a key is a path of several names.
    let named_so = bench.desk.path(other);
    fs::create_dir_all(named_so.parent().unwrap()).unwrap();
    fs::copy(bench.desk.path("ours.pub"), named_so).unwrap();
    assert_refused(&check(other), 4, "is not to be trusted");

    let bundle = ["evidence", "export", "--payload", "a.sql", "--store", "store", "--to", "e.tar"];
    assert_eq!(bench.run(&bundle).code(), Some(0));
    let verify = |more: &[&str]| bench.run(&[&["evidence", "verify", "e.tar"], more].concat());
    assert_eq!(verify(&["--store", "store"]).code(), Some(0));
    assert_eq!(verify(&["--store", "store", "--verify-key", "ours.pub"]).code(), Some(0));
    // A key that is named is asked, and a store that is named is there.
    let wrong = verify(&["--store", "store", "--verify-key", "other.pub"]);
    assert_refused(&wrong, 4, "is not to be trusted");
    assert_eq!(verify(&["--verify-key", "ours.pub"]).code(), Some(4));
    assert_refused(&verify(&["--verify-key", "gone.pub"]), 2, "is no file that is there");
    assert_eq!(verify(&["--store", "gone"]).code(), Some(2));
    let file = ["check", "--policy", "p.wasm", "--verify-key", "gone.pub", "a.sql"];
    assert_refused(&bench.run(&file), 2, "is no file that is there");

    let signature = bench.desk.path("store/hostile-0.0.0.wasm.minisig");
    let text = fs::read_to_string(&signature).unwrap();
    fs::write(&signature, text.replace("hostile 0.0.0", "hostile 9.9.9")).unwrap();
    assert_refused(&check("ours.pub"), 4, "is not to be trusted");
    fs::remove_file(&signature).unwrap();
    assert_refused(&check("ours.pub"), 4, "is not signed");
    assert_eq!(
        bench.run(&["check", "--store", "store", "a.sql"]).code(),
        Some(1),
        "no key, no wish"
    );
}

#[test]
fn minisign_verifies_ours_and_we_verify_minisign_s() {
    let (bench, registry) = (Bench::new(), OciRegistry::start());
    let place = registry.place("hostile:0.0.0");
    keys(&bench, "ours");
    assert_eq!(bench.publish(&place, &["--sign-key", "ours.key"]).code(), Some(0));
    assert_eq!(bench.pull(&place, &["--verify-key", "ours.pub"]).code(), Some(0));
    minisign(&bench, &["-V", "-p", "ours.pub", "-m", "out/hostile-0.0.0.wasm"]);

    let pin =
        ["policy", "pin", "sql-jdbc:v1", "p.wasm", "--verify-key", "ours.pub", "--store", "s"];
    assert_refused(&bench.run(&pin), 4, "is not signed");
    minisign(&bench, &["-S", "-s", "ours.key", "-m", "p.wasm"]);
    assert_eq!(bench.run(&pin).code(), Some(0));
    // The old form, over the bytes and not over their digest.
    minisign(&bench, &["-S", "-l", "-s", "ours.key", "-m", "p.wasm"]);
    let run = bench.run(&pin);
    assert_refused(&run, 4, "is not to be trusted");
    assert!(run.stderr.contains("old form"), "{run:?}");
    bench.desk.write("p.wasm", hostile::policy(Decide::Allow));
    minisign(
        &bench,
        &["-S", "-s", "ours.key", "-m", "out/hostile-0.0.0.wasm", "-x", "p.wasm.minisig"],
    );
    assert_refused(&bench.run(&pin), 4, "is not to be trusted");
}

#[test]
fn a_list_tells_what_could_decide() {
    let (bench, registry) = (Bench::new(), OciRegistry::start());
    let place = registry.place("hostile:0.0.0");
    keys(&bench, "ours");
    keys(&bench, "other");
    assert_eq!(bench.publish(&place, &["--sign-key", "ours.key"]).code(), Some(0));
    assert_eq!(bench.pull(&place, &["--verify-key", "ours.pub"]).code(), Some(0));
    let pin = ["policy", "pin", "sql-jdbc:v1", "out/hostile-0.0.0.wasm", "--store", "out"];
    assert_eq!(bench.run(&pin).code(), Some(0));
    let list = |more: &[&str], code: i32, state: &str| {
        let list = ["policy", "list", "--store", "out", "--format", "json"];
        let run = bench.run(&[&list[..], more].concat());
        assert_eq!(run.code(), Some(code), "{run:?}");
        let line = run.json_lines().remove(0);
        tollgate_tests::schema::Schema::of("policy-list").assert_accepts(&line);
        assert_eq!(line["state"], state, "{line}");
        assert_eq!(line["problem"].is_null(), state == "good", "{line}");
    };
    list(&[], 0, "good");
    list(&["--verify-key", "ours.pub"], 0, "good");
    list(&["--verify-key", "other.pub"], 4, "unsigned");
    fs::write(bench.pulled(), hostile::policy(Decide::Allow)).unwrap();
    list(&["--verify-key", "ours.pub"], 4, "other-bytes");
    list(&[], 4, "other-bytes");
    fs::remove_file(bench.pulled()).unwrap();
    list(&[], 2, "unreadable");
    let built_in = bench.run(&["policy", "list", "--verify-key", "ours.pub"]);
    assert_eq!(built_in.code(), Some(4), "{built_in:?}");
    assert!(built_in.stdout.contains("cannot decide: "), "{built_in:?}");
}

#[test]
fn evidence_asks_for_the_signature_that_is_wanted() {
    let bench = Bench::new();
    keys(&bench, "ours");
    bench.desk.write("a.sql", "xyzxyz");
    let export = |more: &[&str]| {
        let export = ["evidence", "export", "--payload", "a.sql", "--to", "e.tar", "--force"];
        bench.run(&[&export[..], more].concat())
    };
    let key = ["--verify-key", "ours.pub"];
    let file = ["--policy", "p.wasm"];
    assert_eq!(export(&file).code(), Some(0));
    assert_refused(&export(&[&file[..], &key[..]].concat()), 4, "is not signed");
    let pin = ["policy", "pin", "sql-jdbc:v1", "p.wasm", "--store", "store"];
    assert_eq!(bench.run(&pin).code(), Some(0));
    let verify = ["evidence", "verify", "--require-pinned", "--store", "store", "e.tar"];
    assert_eq!(bench.run(&verify).code(), Some(0));
    assert_refused(&bench.run(&[&verify[..], &key[..]].concat()), 4, "is not signed");
    minisign(&bench, &["-S", "-s", "ours.key", "-m", "p.wasm"]);
    minisign(&bench, &["-S", "-s", "ours.key", "-m", "store/hostile-0.0.0.wasm"]);
    assert_eq!(export(&[&file[..], &key[..]].concat()).code(), Some(0));
    assert_eq!(bench.run(&[&verify[..], &key[..]].concat()).code(), Some(0));
}

#[test]
fn a_signature_that_was_made_for_something_else_is_refused() {
    let bench = Bench::new();
    keys(&bench, "ours");
    let pin =
        ["policy", "pin", "sql-jdbc:v1", "p.wasm", "--verify-key", "ours.pub", "--store", "s"];
    let digest = bench.digest().to_string();
    for (comment, code) in [
        (format!("hostile 0.0.0 {}", tollgate::digest::Digest::of("x")), 4),
        (format!("hostile 9.9.9 {digest}"), 4),
        (format!("curious 0.0.0 {digest}"), 4),
        (format!("hostile 0.0.0 {digest}"), 0),
    ] {
        minisign(&bench, &["-S", "-s", "ours.key", "-m", "p.wasm", "-t", &comment]);
        let run = bench.run(&pin);
        assert_eq!(run.code(), Some(code), "{comment}: {run:?}");
        assert_eq!(run.stderr.contains("was made for"), code == 4, "{comment}: {run:?}");
    }
}

#[test]
fn no_signature_takes_the_place_of_another() {
    let bench = Bench::new();
    keys(&bench, "ours");
    keys(&bench, "other");
    let pin = ["policy", "pin", "sql-jdbc:v1", "p.wasm", "--store", "s"];
    minisign(&bench, &["-S", "-s", "ours.key", "-m", "p.wasm"]);
    assert_eq!(bench.run(&pin).code(), Some(0));
    let kept = fs::read(bench.desk.path("s/hostile-0.0.0.wasm.minisig")).unwrap();
    minisign(&bench, &["-S", "-s", "other.key", "-m", "p.wasm"]);
    assert_refused(&bench.run(&pin), 4, "is another signature");
    // One of the same key is as good as the other.
    minisign(&bench, &["-S", "-s", "ours.key", "-m", "p.wasm", "-t", "again"]);
    let run = bench.run(&[&pin[..], &["--verify-key", "ours.pub"]].concat());
    assert_eq!(run.code(), Some(0), "{run:?}");
    assert_eq!(fs::read(bench.desk.path("s/hostile-0.0.0.wasm.minisig")).unwrap(), kept);

    fs::rename(bench.desk.path("p.wasm.minisig"), bench.desk.path("far")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", bench.desk.path("p.wasm.minisig")).unwrap();
    assert_refused(&bench.run(&pin), 4, "leads out of its folder");
}

#[test]
fn a_key_that_cannot_be_used_is_named() {
    let bench = Bench::new();
    keys(&bench, "ours");
    let list = |key: &str| bench.run(&["policy", "list", "--verify-key", key]);
    assert_refused(&list("missing.pub"), 2, "`missing.pub` is no file that is there");
    assert_refused(&list("p.wasm"), 2, "`p.wasm`");
    assert_refused(&list("ours.key"), 2, "`ours.key` cannot be used: this is a secret key");
    let sign = |key: &str| bench.publish("127.0.0.1:1/policies/p:1", &["--sign-key", key]);
    assert_refused(&sign("ours.pub"), 2, "`ours.pub` cannot be used: this is a public key");
    assert_refused(&sign("missing.key"), 2, "`missing.key` cannot be read");
}
