//! `tollgate evidence` as its users run it, without any server.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use tollgate::digest::Digest;
use tollgate_tests::cli::{self, Run};
use tollgate_tests::desk::Desk;
use tollgate_tests::guide::{bash, blocks, page};
use tollgate_tests::hostile::Decide;
use tollgate_tests::peak::peak_kib;
use tollgate_tests::schema::Schema;
use tollgate_tests::ustar::Members;

const ALLOWED: &str = "CREATE TABLE IF NOT EXISTS t (id INT NOT NULL PRIMARY KEY);\n\
    INSERT IGNORE INTO t (id) VALUES (1);\n";
const DENIED: &str = "CREATE TABLE t (id INT);\nDELETE FROM t WHERE 1 = 1;\n";

fn desk() -> Desk {
    let desk = Desk::new();
    desk.write("allowed.sql", ALLOWED);
    desk.write("denied.sql", DENIED);
    desk
}

fn export(desk: &Desk, payload: &str, to: &str, more: &[&str]) -> Run {
    desk.run(&[&["evidence", "export", "--payload", payload, "--to", to], more].concat())
}

fn verify(desk: &Desk, arguments: &[&str]) -> (Option<i32>, Vec<Value>) {
    let run = desk.run(&[&["evidence", "verify", "--json"], arguments].concat());
    (run.code(), run.json_lines())
}

#[test]
fn the_same_facts_give_the_same_bytes_and_others_do_not() {
    let desk = desk();
    for to in ["one.tar", "other.tar"] {
        assert_eq!(export(&desk, "allowed.sql", to, &[]).code(), Some(0));
    }
    let read = |name: &str| fs::read(desk.path(name)).unwrap();
    assert!(read("one.tar") == read("other.tar"));
    export(&desk, "allowed.sql", "elsewhere.tar", &["--catalog", "elsewhere"]);
    assert!(read("one.tar") != read("elsewhere.tar"));
}

#[test]
fn allowed_and_denied_payloads_are_evidence_that_holds_on_both_engines() {
    let schema = Schema::of("evidence-verify");
    let desk = desk();
    for (payload, decision, statements) in [("allowed.sql", "allow", 2), ("denied.sql", "deny", 0)]
    {
        let run = export(&desk, payload, "x.tar", &["--force"]);
        assert_eq!(run.code(), Some(0), "{run:?}");
        let (code, lines) = verify(&desk, &["--engine", "both", "--require-pinned", "x.tar"]);
        let [line] = &lines[..] else { panic!("{lines:?}") };
        assert_eq!(code, Some(0), "{line}");
        schema.assert_accepts(line);
        assert_eq!(line["verified"], true);
        assert_eq!(line["decision"], decision);
        assert_eq!(line["statementCount"], statements);
        assert_eq!(line["codes"] == json!([]), decision == "allow", "{line}");
        assert_eq!(line["engines"], json!(["cranelift", "pulley"]));
        assert_eq!(line["pin"], "pinned");
        let digest = Digest::of(fs::read(desk.path("x.tar")).unwrap()).to_string();
        assert!(run.stdout.starts_with(&digest), "what is to be noted is the file's digest");
        assert_eq!(line["bundleDigest"], digest);

        schema.assert_notices(line, |it| it["verified"] = json!("yes"));
        schema.assert_notices(line, |it| it["bundleDigest"] = json!(null));
        schema.assert_notices(line, |it| it["pin"] = json!("maybe"));
        schema.assert_notices(line, |it| it["note"] = json!(1));
    }
}

#[test]
fn the_decision_is_the_one_that_check_makes() {
    let desk = desk();
    export(&desk, "allowed.sql", "x.tar", &[]);
    let (_, lines) = verify(&desk, &["x.tar"]);
    let checked = desk.run(&["check", "--format", "json", "allowed.sql"]).json_lines();
    for key in ["decisionDigest", "payloadDigest"] {
        assert_eq!(lines[0][key], checked[0][key]);
    }
    assert_eq!(lines[0]["policyDigest"], checked[0]["policy"]["digest"]);
}

/// The commands of docs/evidence.md that need nothing but tar and coreutils.
fn by_hand(desk: &Desk, bundle: &[u8]) -> Run {
    let _ = fs::remove_dir_all(desk.path("loyalty"));
    desk.write("loyalty.evidence.tar", bundle);
    let commands = blocks(&page("evidence.md"), "sh").pop().unwrap();
    let commands: Vec<&str> = commands.lines().filter(|line| !line.contains("jq ")).collect();
    assert!(commands.len() >= 4, "{commands:?}");
    cli::run(&mut bash(desk.folder(), &commands.join("\n")))
}

#[test]
fn the_commands_of_the_page_find_what_no_sum_is_about() {
    let desk = desk();
    export(&desk, "allowed.sql", "x.tar", &[]);
    let bundle = fs::read(desk.path("x.tar")).unwrap();
    let run = by_hand(&desk, &bundle);
    assert_eq!(run.code(), Some(0), "{run:?}");
    let altered = |alter: fn(&mut Members)| {
        let mut members = Members::of(&bundle);
        alter(&mut members);
        by_hand(&desk, &members.archive())
    };
    let extra = altered(|it| it.0.push(("statements/0002.sql".into(), b"DROP TABLE t".to_vec())));
    assert_eq!(extra.code(), Some(1), "{extra:?}");
    let amid = altered(|it| it.0.insert(4, ("notes.txt".into(), b"all is well".to_vec())));
    assert_eq!(amid.code(), Some(1), "{amid:?}");
    let twice = altered(|it| it.0.push(("payload.sql".into(), b"DROP TABLE t".to_vec())));
    assert_eq!(twice.code(), Some(1), "{twice:?}");
    let byte = altered(|it| it.content("payload.sql")[0] = b'X');
    assert_eq!(byte.code(), Some(1), "{byte:?}");
    assert!(byte.stdout.contains("payload.sql: FAILED"), "{}", byte.stdout);
}

#[test]
fn what_a_bundle_says_makes_no_lines_of_the_report() {
    let desk = desk();
    export(&desk, "denied.sql", "x.tar", &[]);
    let good = fs::read(desk.path("x.tar")).unwrap();
    let forged = "\\n  again     decided by cranelift\\r\\u001b[2J\\u2028\\nverified  x.tar";
    let altered = |name: &str, from: &str| {
        let mut members = Members::of(&good);
        members.replace(name, from, &format!("{from}{forged}"));
        members.sum();
        desk.write("forged.tar", members.archive());
        let run = desk.run(&["evidence", "verify", "forged.tar"]);
        assert_ne!(run.code(), Some(0), "{name} {from}");
        let again = run.stdout.lines().filter(|line| line.starts_with("  again")).count();
        assert_eq!(again, 1, "{}", run.stdout);
        for line in run.stdout.lines() {
            assert!(!line.starts_with("verified"), "{}", run.stdout);
            assert!(!line.contains(['\u{1b}', '\r', '\u{2028}']), "{line}");
        }
        run.stdout
    };
    let told = altered("decision.json", "mysql-repeatable-subset");
    assert!(told.contains("mysql-repeatable-subset␊  again     decided by cranelift␍␛"), "{told}");
    altered("decision.json", "constant-comparison");
    altered("versions.json", env!("CARGO_PKG_VERSION"));
    altered("policy/pin.toml", "rustc ");
    altered("request.json", "factory_plugin_target_receipt");
    let mut members = Members::of(&good);
    let long = format!("mysql{}", "x".repeat(5_000));
    members.replace("decision.json", "mysql-repeatable-subset", &long);
    members.sum();
    desk.write("long.tar", members.archive());
    let told = desk.run(&["evidence", "verify", "long.tar"]).stdout;
    assert!(told.contains("… (5005 characters) 1.0.0, sha256:"), "{told}");
    assert!(told.lines().all(|line| line.chars().count() < 1_200), "{told}");
}

#[test]
fn errors_say_what_a_file_is_not_and_the_way_out() {
    let desk = desk();
    export(&desk, "allowed.sql", "x.tar", &[]);
    let good = fs::read(desk.path("x.tar")).unwrap();
    let refused = |name: &str, bytes: &[u8], told: &str| {
        desk.write(name, bytes);
        let run = desk.run(&["evidence", "verify", name]);
        assert_eq!(run.code(), Some(2), "{run:?}");
        assert!(run.stderr.contains(told), "{}", run.stderr);
        run.stderr
    };
    // Whatever is named by mistake is not echoed.
    let noise = "\u{1b}[2Jerror: x\n".repeat(100);
    let told = refused("notes.txt", noise.as_bytes(), "the file is no evidence bundle");
    assert!(!told.contains(['\u{1b}', '␛']) && told.lines().count() <= 4, "{told}");
    refused("empty.tar", b"", "the file is no evidence bundle");
    let mut damaged = good.clone();
    damaged[512 * 2 + 124..512 * 2 + 136].copy_from_slice(b"\x1b[2Jgarbage!");
    let told = refused("damaged.tar", &damaged, "stands behind manifest.json is no intact header");
    assert!(!told.contains("garbage"), "{told}");
    let mut members = Members::of(&good);
    members.0.push(("\u{1b}[2J\nverified".into(), Vec::new()));
    let told = refused("named.tar", &members.archive(), "is no member of a bundle");
    assert!(!told.contains('\u{1b}') && !told.contains("\nverified"), "{told}");
    let mut members = Members::of(&good);
    members.0.swap(2, 3);
    let told = refused("order.tar", &members.archive(), "are out of order");
    assert!(told.contains("export it again"), "{told}");

    // Packed again with the members as they were: nothing is cut off, and nothing is missing.
    let repack = "mkdir x && tar xf x.tar -C x && tar cf again.tar -C x $(tar tf x.tar)";
    assert_eq!(cli::run(&mut bash(desk.folder(), repack)).code(), Some(0));
    let run = desk.run(&["evidence", "verify", "again.tar"]);
    assert_eq!(run.code(), Some(1), "{run:?}");
    assert!(run.stdout.contains("found is another, as of what was packed again"), "{}", run.stdout);
    assert!(run.stdout.contains("help: take the file as it was exported"), "{}", run.stdout);

    // By folders: their own members come with them, in the file system's order.
    for pack in ["cd x && tar cf ../other.tar *", "tar cf other.tar -C x ."] {
        assert_eq!(cli::run(&mut bash(desk.folder(), pack)).code(), Some(0));
        let other = fs::read(desk.path("other.tar")).unwrap();
        let told = refused("other.tar", &other, "as after unpacking and packing again");
        assert!(told.contains("is no plain file") && !told.contains("cut off"), "{told}");
    }
    let pack = "tar cf other.tar x.tar";
    assert_eq!(cli::run(&mut bash(desk.folder(), pack)).code(), Some(0));
    let other = fs::read(desk.path("other.tar")).unwrap();
    refused("other.tar", &other, "the archive is no evidence bundle");

    desk.write("text.wasm", "no component");
    let run = export(&desk, "allowed.sql", "y.tar", &["--policy", "text.wasm"]);
    assert_eq!(run.code(), Some(2), "{run:?}");
    assert!(run.stderr.contains("`text.wasm` cannot be loaded as a policy"), "{}", run.stderr);
}

#[test]
fn nothing_that_goes_into_a_bundle_is_replaced_by_it() {
    let desk = desk();
    let policy = desk.hostile(Decide::Allow);
    let before = |name: &str| fs::read(desk.path(name)).unwrap();
    let (payload, component) = (before("allowed.sql"), before("Allow.wasm"));
    fs::hard_link(desk.path("allowed.sql"), desk.path("hard.tar")).unwrap();
    let mut link = Command::new("ln");
    cli::run(link.args(["-s", "allowed.sql", "soft.tar"]).current_dir(desk.folder()));
    for to in ["allowed.sql", "./allowed.sql", "hard.tar", "soft.tar", "Allow.wasm"] {
        let run = export(&desk, "allowed.sql", to, &["--force", "--policy", &policy]);
        assert_eq!(run.code(), Some(2), "{to}: {run:?}");
        assert!(run.stderr.contains("this command reads it"), "{}", run.stderr);
        assert_eq!(
            (before("allowed.sql"), before("Allow.wasm")),
            (payload.clone(), component.clone())
        );
    }
    // Nor what lies in the store, but for a bundle that was put there.
    desk.write("store/pins.toml", "format = 1\n");
    let more = ["--force", "--store", "store", "--policy", policy.as_str()];
    let run = export(&desk, "allowed.sql", "store/pins.toml", &more);
    assert_eq!(run.code(), Some(2), "{run:?}");
    assert!(run.stderr.contains("and no evidence bundle"), "{}", run.stderr);
    for _ in 0..2 {
        assert_eq!(export(&desk, "allowed.sql", "store/x.tar", &more).code(), Some(0));
    }
}

#[test]
fn a_store_is_needed_when_the_pin_counts_and_then_its_file_is_compared() {
    let desk = desk();
    export(&desk, "allowed.sql", "x.tar", &[]);
    // One that is named has to be there, whether it counts or not.
    for more in [&[][..], &["--require-pinned"]] {
        let verify = ["evidence", "verify", "--store", "nowhere", "x.tar"];
        let run = desk.run(&[&verify[..], more].concat());
        assert_eq!(run.code(), Some(2), "{run:?}");
        assert!(run.stderr.contains("nowhere/pins.toml"), "{}", run.stderr);
    }

    let policies = tollgate_tests::source::repository().join("policies");
    let file = "mysql-repeatable-subset-1.0.0.wasm";
    desk.write("store/pins.toml", fs::read(policies.join("pins.toml")).unwrap());
    let pinned = ["--require-pinned", "--store", "store", "x.tar"];
    for other in [None, Some(b"other".to_vec())] {
        if let Some(other) = other {
            desk.write(&format!("store/{file}"), other);
        }
        let (code, lines) = verify(&desk, &pinned);
        assert_eq!((code, &lines[0]["pin"]), (Some(4), &json!("other-file")));
        assert_eq!(lines[0]["verified"], false);
        Schema::of("evidence-verify").assert_accepts(&lines[0]);
    }
    desk.write(&format!("store/{file}"), fs::read(policies.join(file)).unwrap());
    let (code, lines) = verify(&desk, &pinned);
    assert_eq!((code, &lines[0]["pin"]), (Some(0), &json!("pinned")));
}

#[test]
fn standard_tools_read_a_bundle() {
    let desk = desk();
    export(&desk, "allowed.sql", "x.evidence.tar", &[]);
    let commands = "tar tvf x.evidence.tar\nmkdir x\ntar xf x.evidence.tar -C x\ncd x\n\
        sha256sum --strict --check SHA256SUMS\nsha256sum decision.bin\ncat decision.json";
    let mut bash = Command::new("bash");
    let run = cli::run(bash.args(["-e", "-c", commands]).current_dir(desk.folder()));
    assert_eq!(run.code(), Some(0), "{run:?}");
    assert!(run.stdout.contains("-rw-r--r-- 0/0"), "{}", run.stdout);
    assert!(run.stdout.contains("policy/component.wasm: OK"), "{}", run.stdout);
    let digest = run.stdout.lines().find_map(|line| line.strip_suffix("  decision.bin")).unwrap();
    assert!(run.stdout.contains(&format!("\"decisionDigest\":\"sha256:{digest}\"")));
    assert_eq!(fs::read_to_string(desk.path("x/payload.sql")).unwrap(), ALLOWED);
}

#[test]
fn exit_codes_say_what_is_wrong() {
    let schema = Schema::of("evidence-verify");
    let desk = desk();
    export(&desk, "allowed.sql", "good.tar", &[]);
    let good = fs::read(desk.path("good.tar")).unwrap();
    let altered = |name: &str, alter: fn(&mut Members)| {
        let mut members = Members::of(&good);
        alter(&mut members);
        desk.write(name, members.archive());
    };
    altered("digest.tar", |it| it.replace("payload.sql", "(1)", "(2)"));
    altered("content.tar", |it| {
        it.replace("statements/0001.sql", "(1)", "(2)");
        it.sum();
    });
    altered("newer.tar", |it| it.replace("manifest.json", "\"version\":1", "\"version\":7"));
    desk.write("cut.tar", &good[..good.len() / 2]);
    for (name, code) in
        [("good.tar", 0), ("content.tar", 1), ("digest.tar", 4), ("newer.tar", 2), ("cut.tar", 2)]
    {
        let (got, lines) = verify(&desk, &[name]);
        assert_eq!(got, Some(code), "{name}: {lines:?}");
        schema.assert_accepts(&lines[0]);
        assert_eq!(lines[0]["verified"], code == 0);
    }
    // One that is no bundle hides nothing of the others.
    let (code, lines) = verify(&desk, &["cut.tar", "good.tar", "digest.tar", "allowed.sql"]);
    assert_eq!((code, lines.len()), (Some(4), 4));
    let run = desk.run(&["evidence", "verify", "digest.tar", "absent.tar"]);
    assert!(run.stdout.contains("DIFFERS  digest.tar"), "{run:?}");
    assert!(run.stdout.contains("differs: SHA256SUMS, payload.sql: recorded is "), "{run:?}");
    assert!(run.stderr.contains("`absent.tar` cannot be verified"), "{run:?}");
}

#[test]
fn a_policy_that_is_not_pinned_here_is_told_and_counts_when_asked() {
    let desk = desk();
    let hostile = desk.hostile(Decide::Allow);
    let export = export(&desk, "allowed.sql", "x.tar", &["--policy", &hostile]);
    assert_eq!(export.code(), Some(0), "{export:?}");
    let (code, lines) = verify(&desk, &["x.tar"]);
    assert_eq!((code, &lines[0]["pin"]), (Some(0), &json!("pinned-otherwise")));
    let (code, lines) = verify(&desk, &["--require-pinned", "x.tar"]);
    assert_eq!((code, &lines[0]["verified"]), (Some(4), &json!(false)));
    desk.write("empty/pins.toml", "format = 1\n");
    let (code, lines) = verify(&desk, &["--store", "empty", "x.tar"]);
    assert_eq!((code, &lines[0]["pin"]), (Some(0), &json!("not-pinned")));
}

#[test]
fn without_a_decision_there_is_no_evidence() {
    let desk = desk();
    let trapping = desk.hostile(Decide::Trap);
    let run = export(&desk, "allowed.sql", "x.tar", &["--policy", &trapping]);
    assert_eq!(run.code(), Some(3), "{run:?}");
    assert!(!desk.path("x.tar").exists());
}

#[test]
fn what_is_there_stays_until_it_is_to_be_replaced() {
    let desk = desk();
    desk.write("x.tar", "mine");
    let run = export(&desk, "allowed.sql", "x.tar", &[]);
    assert_eq!(run.code(), Some(2));
    assert!(run.stderr.contains("add `--force`"), "{}", run.stderr);
    assert_eq!(fs::read(desk.path("x.tar")).unwrap(), b"mine");
    assert_eq!(export(&desk, "allowed.sql", "x.tar", &["--force"]).code(), Some(0));
    assert_eq!(verify(&desk, &["x.tar"]).0, Some(0));
    for wrong in [
        &["evidence", "export", "--to", "y.tar"][..],
        &["evidence", "export", "order-7:1", "--to", "y.tar"],
        &["evidence", "export", "--payload", "absent.sql", "--to", "y.tar"],
        &["evidence", "export", "--payload", "allowed.sql", "--to", "absent/y.tar"],
        &["evidence", "export", "--payload", "allowed.sql", "--to", "y.tar", "--catalog", "a.b"],
        &["evidence", "verify"],
    ] {
        let run = desk.run(wrong);
        assert_eq!(run.code(), Some(2), "{wrong:?}: {run:?}");
        assert!(!desk.path("y.tar").exists());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_bundle_made_to_exhaust_memory_does_not() {
    let desk = desk();
    let hostile = desk.hostile(Decide::Allow);
    export(&desk, "allowed.sql", "good.tar", &["--policy", &hostile]);
    let mut members = Members::of(&fs::read(desk.path("good.tar")).unwrap());
    // As many values as fit, none of which is in the decision made again.
    let mode = "\"NO_ZERO_DATE\",";
    let room = (16 << 20) - members.content("decision.json").len();
    let modes = mode.repeat(room / mode.len());
    members.replace("decision.json", "\"sqlMode\":[", &format!("\"sqlMode\":[{}", &modes));
    let text = String::from_utf8(members.content("decision.json").clone()).unwrap();
    *members.content("decision.json") = text.replace(",]", "]").into_bytes();
    members.sum();
    desk.write("long.tar", members.archive());
    let (code, peak) = peak_kib(&mut desk.command(&["evidence", "verify", "long.tar"]));
    assert_eq!(code, Some(1));
    assert!((10_000..1_000_000).contains(&peak), "{peak} KiB for values of 16 MiB");

    // A file that never ends.
    let mut endless = desk.command(&["evidence", "verify", "/dev/zero"]);
    let (code, peak) = peak_kib(&mut endless);
    assert_eq!(code, Some(2));
    assert!(peak < 1_000_000, "{peak} KiB for a file without an end");
}
