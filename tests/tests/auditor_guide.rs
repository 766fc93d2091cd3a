//! docs/auditor.md, followed line by line on a real installation.

use std::fs;

use tollgate_tests::cli;
use tollgate_tests::guide::{assert_prints, bash, page, steps};
use tollgate_tests::installation::Installation;
use tollgate_tests::source::repository;

/// The first section's commands, which read the ledger; nothing after them is connected to.
const CONNECTED: usize = 6;

/// Copies the demo's release to where a worker has it.
fn install(installation: &Installation) {
    let folder = installation.folder().join("plugins/loyalty/1.0.0");
    fs::create_dir_all(&folder).unwrap();
    for entry in fs::read_dir(repository().join("host/demo/loyalty-1.0.0")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
    }
}

#[tokio::test]
async fn every_command_prints_what_the_page_says() {
    let installation = Installation::ready().await;
    install(&installation);
    let key = ["--step-key", "loyalty-1.0.0:1"];
    let run =
        installation.tollgate(&[&["execute", "plugins/loyalty/1.0.0", "tiers"], &key[..]].concat());
    assert_eq!(run.code(), Some(0), "{run:?}");

    let steps = steps(&page("auditor.md"));
    assert!(steps.len() >= 15, "{} commands", steps.len());
    let last = &steps[CONNECTED - 1].command;
    assert!(last.starts_with("head -n -1 "), "the end of the first section: {last}");
    let mut digests = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let mut bash = bash(installation.folder(), &step.command);
        // Whoever is at the installation has its variables, and the auditor has none.
        let variables = installation.command(&[]);
        for (name, value) in variables.get_envs() {
            match value {
                Some(value) if at < CONNECTED => bash.env(name, value),
                _ => bash.env_remove(name),
            };
        }
        bash.env("TOLLGATE_CACHE", tollgate_tests::desk::compiled());
        let run = cli::run(&mut bash);
        assert_prints(step, &run);
        if (CONNECTED - 2..CONNECTED).contains(&at) {
            digests.extend(
                run.stdout
                    .split(|c: char| !c.is_ascii_hexdigit())
                    .filter(|it| it.len() == 64)
                    .map(str::to_owned),
            );
        }
    }
    assert_eq!(digests.len(), 2);
    assert_eq!(
        digests[0], digests[1],
        "the closing line has the digest that standard tools compute"
    );
}

#[test]
fn the_offline_part_names_no_command_that_connects() {
    for step in steps(&page("auditor.md")).iter().skip(CONNECTED) {
        for connecting in ["receipts", "execute", "status", "evidence export"] {
            let command = format!("tollgate {connecting}");
            assert!(!step.command.contains(&command), "`{}`", step.command);
        }
    }
}
