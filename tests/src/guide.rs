//! Pages of docs whose commands are run as a reader runs them.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::cli::{self, Run};
use crate::desk::compiled;
use crate::source::repository;

/// A page of docs.
///
/// # Panics
///
/// When there is none of this name.
pub fn page(name: &str) -> String {
    fs::read_to_string(repository().join("docs").join(name)).expect(name)
}

/// The fenced blocks of a language.
///
/// # Panics
///
/// When a block has no end.
pub fn blocks(page: &str, language: &str) -> Vec<String> {
    let opening = format!("```{language}\n");
    page.split(&opening)
        .skip(1)
        .map(|rest| rest.split("```").next().expect("an end").to_owned())
        .collect()
}

/// `bash` in a folder, with these commands, `tollgate` in its path, and what is compiled shared by all
/// tests.
pub fn bash(folder: &Path, commands: &str) -> Command {
    let binaries = cli::binary().parent().map(Path::to_owned);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = binaries.into_iter().chain(std::env::split_paths(&path));
    let mut bash = Command::new("bash");
    bash.args(["-e", "-u", "-o", "pipefail", "-c", commands])
        .current_dir(folder)
        .env("PATH", std::env::join_paths(path).expect("plain paths"))
        .env("TOLLGATE", cli::binary())
        .env("TOLLGATE_CACHE", compiled())
        .env_remove("TOLLGATE_POLICIES");
    bash
}

/// A command of a `console` block, and what the page says that it prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What stands behind `$ `.
    pub command: String,
    /// The lines up to the next command.
    pub output: Vec<String>,
}

/// The commands of a page's `console` blocks, in their order.
///
/// # Panics
///
/// When a block does not begin with a command.
pub fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for block in blocks(page, "console") {
        assert!(block.starts_with("$ "), "a block begins with a command:\n{block}");
        for line in block.lines() {
            match line.strip_prefix("$ ") {
                Some(command) => {
                    steps.push(Step { command: command.to_owned(), output: Vec::new() });
                }
                None => steps.last_mut().expect("a command").output.push(line.to_owned()),
            }
        }
    }
    steps
}

/// Stops the test when a command fails or prints something else than the page says. `…` stands for any
/// text in a line; alone on a line, for any lines.
///
/// # Panics
///
/// When it does.
pub fn assert_prints(step: &Step, run: &Run) {
    assert_eq!(run.code(), Some(0), "`{}`: {run:?}", step.command);
    let printed: Vec<&str> = run.stdout.lines().collect();
    let expected: Vec<&str> = step.output.iter().map(String::as_str).collect();
    assert!(
        lines_match(&expected, &printed),
        "`{}` prints\n{}\nand the page says\n{}\n{}",
        step.command,
        run.stdout,
        step.output.join("\n"),
        run.stderr
    );
}

fn lines_match(expected: &[&str], printed: &[&str]) -> bool {
    match expected.split_first() {
        None => printed.is_empty(),
        Some((&"…", rest)) => (0..=printed.len()).any(|skip| lines_match(rest, &printed[skip..])),
        Some((line, rest)) => printed
            .split_first()
            .is_some_and(|(first, others)| line_matches(line, first) && lines_match(rest, others)),
    }
}

fn line_matches(expected: &str, printed: &str) -> bool {
    match expected.split_once('…') {
        None => expected == printed,
        Some((before, after)) => printed.strip_prefix(before).is_some_and(|rest| {
            rest.char_indices()
                .map(|(at, _)| at)
                .chain([rest.len()])
                .any(|at| line_matches(after, &rest[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_may_be_anything_and_what_is_not_may_not() {
        assert!(line_matches("a … c…", "a b c"));
        assert!(!line_matches("a … c", "a b d"));
        assert!(lines_match(&["a", "…", "d"], &["a", "b", "c", "d"]));
        assert!(lines_match(&["a", "…"], &["a"]));
        assert!(!lines_match(&["a", "…", "d"], &["a", "b", "c"]));
        assert!(!lines_match(&["a"], &["a", "b"]));
    }

    #[test]
    fn commands_are_told_from_what_they_print() {
        let page = "x\n```console\n$ one\nsays\n$ two\n```\n```sh\n$ three\n```\n";
        let found = steps(page);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], Step { command: "one".into(), output: vec!["says".into()] });
    }
}
