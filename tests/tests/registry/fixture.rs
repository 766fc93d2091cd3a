//! A desk with a component, and the commands at work on a registry.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tollgate::digest::Digest;
use tollgate_tests::cli::{self, Run};
use tollgate_tests::desk::Desk;
use tollgate_tests::hostile::{self, Decide};

/// What a test publishes and pulls.
pub(crate) struct Bench {
    pub(crate) desk: Desk,
    /// A component that denies, `hostile` 0.0.0.
    pub(crate) component: Vec<u8>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let desk = Desk::new();
        let component = hostile::policy(Decide::Deny);
        desk.write("p.wasm", &component);
        fs::create_dir(desk.path("out")).unwrap();
        Self { desk, component }
    }

    pub(crate) fn digest(&self) -> Digest {
        Digest::of(&self.component)
    }

    /// The command, logged in nowhere and with no proxy.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.desk.command(arguments);
        for proxy in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
            command.env_remove(proxy).env_remove(proxy.to_lowercase());
        }
        command.env("DOCKER_CONFIG", self.desk.path("docker"));
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        cli::run(&mut self.command(arguments))
    }

    pub(crate) fn publish(&self, place: &str, more: &[&str]) -> Run {
        self.run(&[&["policy", "publish", "p.wasm", place][..], more].concat())
    }

    pub(crate) fn pull(&self, place: &str, more: &[&str]) -> Run {
        self.run(&[&["policy", "pull", place, "--to", "out"][..], more].concat())
    }

    /// Where the component is pulled to.
    pub(crate) fn pulled(&self) -> PathBuf {
        self.desk.path("out/hostile-0.0.0.wasm")
    }

    /// Stops the test when anything was pulled.
    #[track_caller]
    pub(crate) fn assert_nothing_was_pulled(&self) {
        let found: Vec<_> = fs::read_dir(self.desk.path("out")).unwrap().collect();
        assert!(found.is_empty(), "{found:?}");
    }
}

/// The one object that a run printed.
#[track_caller]
pub(crate) fn json(run: &Run) -> Value {
    assert_eq!(run.code(), Some(0), "{run:?}");
    let [line] = &run.json_lines()[..] else { panic!("{run:?}") };
    line.clone()
}

/// Stops the test unless the run failed in this way and said why.
#[track_caller]
pub(crate) fn assert_refused(run: &Run, code: i32, told: &str) {
    assert_eq!(run.code(), Some(code), "{run:?}");
    assert!(run.stderr.contains(told), "no `{told}` in {}", run.stderr);
    assert!(run.stderr.contains("help: "), "{}", run.stderr);
}
