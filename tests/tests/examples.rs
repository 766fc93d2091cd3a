//! docs/examples: the workflow's steps and the hook's entry do what they say, in a repository of their
//! own. `script/foreign-host` runs the rest of that folder.

use std::fs;
use std::process::Command;

use tollgate_tests::cli::{self, Run};
use tollgate_tests::desk::Desk;
use tollgate_tests::guide::bash;
use tollgate_tests::source::repository;

const ALLOWED: &str = "CREATE TABLE IF NOT EXISTS t (id INT NOT NULL PRIMARY KEY);\n";
const DENIED: &str = "-- a comment\nDROP TABLE t;\n";

fn example(name: &str) -> String {
    fs::read_to_string(repository().join("docs/examples").join(name)).unwrap()
}

/// The value of a key on one line, or the block of text that stands below it.
fn value(yaml: &str, key: &str) -> String {
    let lines: Vec<&str> = yaml.lines().collect();
    let is_key = |line: &&str| line.trim_start().trim_start_matches("- ").starts_with(key);
    let at = lines.iter().position(is_key).unwrap_or_else(|| panic!("no `{key}`"));
    let value = lines[at].split_once(key).unwrap().1.trim();
    if value != "|" {
        return value.to_owned();
    }
    let indent = |line: &str| line.len() - line.trim_start().len();
    let within = indent(lines[at]);
    let block: Vec<&str> = lines[at + 1..]
        .iter()
        .take_while(|line| line.trim().is_empty() || indent(line) > within)
        .copied()
        .collect();
    let cut = indent(block[0]);
    block.iter().map(|line| line.get(cut..).unwrap_or_default().to_owned() + "\n").collect()
}

/// A repository with the branches `main` and `change`, the second checked out.
fn git(desk: &Desk, commands: &str) {
    let mut git = Command::new("bash");
    git.args(["-e", "-c", commands])
        .current_dir(desk.folder())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_AUTHOR_NAME", "a")
        .env("GIT_AUTHOR_EMAIL", "a@example.com")
        .env("GIT_COMMITTER_NAME", "a")
        .env("GIT_COMMITTER_EMAIL", "a@example.com");
    let run = cli::run(&mut git);
    assert_eq!(run.code(), Some(0), "{run:?}");
}

/// The workflow's own step, as a runner starts it.
fn decide_on_changes(desk: &Desk) -> Run {
    let workflow = example("github-workflow.yml");
    let step = workflow.split("- name: Decide on changed payloads").nth(1).unwrap();
    let mut bash = bash(desk.folder(), &value(step, "run:"));
    bash.env("BASE", "main").env("CATALOG", value(step, "CATALOG:"));
    bash.env("GITHUB_STEP_SUMMARY", desk.path("summary.md"));
    cli::run(&mut bash)
}

#[test]
fn the_workflow_annotates_the_payloads_that_a_branch_changes() {
    let desk = Desk::new();
    desk.write("old.sql", DENIED);
    desk.write("gone.sql", ALLOWED);
    git(
        &desk,
        "git init -q -b main && git add . && git commit -qm base && git checkout -qb change",
    );
    let run = decide_on_changes(&desk);
    assert_eq!((run.code(), run.stdout.as_str()), (Some(0), "no payload is changed\n"), "{run:?}");

    desk.write("new one.sql", ALLOWED);
    git(&desk, "git rm -q gone.sql && git add '*.sql' && git commit -qm change");
    let run = decide_on_changes(&desk);
    assert_eq!(run.code(), Some(0), "what is denied was denied before: {run:?}");

    desk.write("plugins/new.sql", DENIED);
    git(&desk, "git add plugins && git commit -qm more");
    let run = decide_on_changes(&desk);
    assert_eq!(run.code(), Some(1), "{run:?}");
    assert!(run.stdout.contains("::error file=plugins/new.sql,line=2"), "{}", run.stdout);
    assert!(!run.stdout.contains("old.sql"), "{}", run.stdout);
    let summary = fs::read_to_string(desk.path("summary.md")).unwrap();
    assert!(summary.contains("\"allow\":1,\"deny\":1,\"error\":0"), "{summary}");
}

#[test]
fn the_hook_fails_on_a_payload_that_is_denied() {
    let config = example("pre-commit-config.yaml");
    let desk = Desk::new();
    desk.write("good.sql", ALLOWED);
    desk.write("bad.sql", DENIED);
    // As pre-commit does: the entry, then the files.
    let entry = value(&config, "entry:");
    let hook = |files: &str| cli::run(&mut bash(desk.folder(), &format!("{entry} {files}")));
    assert_eq!(hook("good.sql").code(), Some(0));
    let run = hook("good.sql bad.sql");
    assert_eq!(run.code(), Some(1));
    assert!(run.stdout.contains("denied   bad.sql"), "{}", run.stdout);
    assert_eq!(value(&config, "files:"), r"\.sql$");
}
