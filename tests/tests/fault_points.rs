//! The points where tests make writes go wrong are in the binary that is tested, and in no other.

use std::fs;
use std::process::Command;

use tollgate_tests::cli;
use tollgate_tests::source::repository;

const FEATURE: &str = "fault-points";

/// Texts that a program with the points holds.
const TRACES: &[&str] = &["TOLLGATE_FAULT_POINTS", "claim-insert", "takeover-kill", "error-before"];

/// Uses the points as the product does, without the feature and with nothing but the compiler.
const PROGRAM: &str = r#"
#![allow(dead_code, unused_imports, reason = "only some of the points are used here")]
#[path = "{module}"]
mod fault_points;

struct Failed;
impl From<fault_points::Lost> for Failed {
    fn from(_: fault_points::Lost) -> Self { Self }
}

/// Only compiles when a point gives back the very future it was given.
fn the_very_same<F: Future<Output = Result<u8, Failed>>>(write: F) -> F {
    fault_points::at(fault_points::Point::ClaimInsert, write)
}

fn main() {
    fault_points::arm();
    let write = std::pin::pin!(the_very_same(std::future::ready(Ok::<u8, Failed>(7))));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match write.poll(&mut context) {
        std::task::Poll::Ready(Ok(7)) => println!("{}", size_of::<fault_points::Lost>()),
        _ => std::process::exit(1),
    }
}
"#;

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

fn manifest(folder: &str) -> toml::Table {
    let path = repository().join(folder).join("Cargo.toml");
    fs::read_to_string(path).unwrap().parse().unwrap()
}

#[test]
fn no_default_feature_brings_the_points() {
    let manifest = manifest("host");
    let features = manifest["features"].as_table().unwrap();
    assert_eq!(features[FEATURE].as_array().unwrap().len(), 0, "the feature brings others");
    for (name, brings) in features {
        let brings = brings.as_array().unwrap();
        let points = brings.iter().any(|it| it.as_str() == Some(FEATURE));
        assert!(!points, "the feature `{name}` brings the points");
    }
}

#[test]
fn nothing_but_the_tests_asks_for_the_points() {
    for folder in ["", "host", "policy-guest", "fuzz", "tests/policies/drop-only"] {
        let text = fs::read_to_string(repository().join(folder).join("Cargo.toml")).unwrap();
        let asks = text.lines().filter(|line| line.contains(FEATURE)).collect::<Vec<_>>();
        let defines = usize::from(folder == "host");
        assert_eq!(asks.len(), defines, "{folder}: {asks:?}");
    }
    assert!(fs::read_to_string(repository().join("tests/Cargo.toml")).unwrap().contains(FEATURE));
}

#[test]
fn without_the_feature_a_point_leaves_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let module = repository().join("host/src/fault_points/mod.rs").display().to_string();
    let source = folder.path().join("program.rs");
    let program = folder.path().join("program");
    fs::write(&source, PROGRAM.replace("{module}", &module)).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let compiled = Command::new(rustc)
        .current_dir(repository())
        .args(["--edition=2024", "-o"])
        .args([&program, &source])
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let ran = Command::new(&program).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ran.stdout).trim(), "0", "a lost connection has no size");
    let without = fs::read(&program).unwrap();
    let with = fs::read(cli::binary()).unwrap();
    for trace in TRACES {
        assert!(holds(&with, trace), "the tested binary does not hold `{trace}`");
        assert!(!holds(&without, trace), "`{trace}` is left without the feature");
    }
}

#[test]
fn faults_that_cannot_be_read_end_the_process() {
    for (points, problem) in [
        ("compleet=crash", "`compleet` is no fault point: one of claim-insert"),
        ("complete=explode", "`explode` is no action"),
        ("complete=crash@0", "`0` is no hit"),
        ("ack=error-after", "`ack` is no write"),
    ] {
        let mut command = cli::command(["status"]);
        let run = cli::run(command.env("TOLLGATE_FAULT_POINTS", points));
        assert_eq!(run.code(), Some(2), "{points}: {run:?}");
        assert!(run.stderr.contains(problem), "{points}: {}", run.stderr);
        assert_eq!(run.stdout, "", "{points}");
    }
    let mut command = cli::command(["status"]);
    command.env("TOLLGATE_FAULT_POINTS", "ack=crash").env("TOLLGATE_FAULT_LOG", "/");
    assert_eq!(cli::run(&mut command).code(), Some(2), "a log that cannot be written");
}
