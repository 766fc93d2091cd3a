//! What ARCHITECTURE.md states as absences, read from the sources.
//!
//! Where a type already makes something impossible there is no test of it here.

use std::fs;
use std::path::Path;

use tollgate_tests::source::{Place, Source, is, is_braced, repository, sources};

fn host() -> Vec<Source> {
    sources(&repository().join("host/src"))
}

fn listed(places: &[Place]) -> String {
    places.iter().map(Place::to_string).collect::<Vec<_>>().join("\n")
}

/// The places in modules other than `allowed` where one of the sequences is written.
fn outside(allowed: &[&str], sequences: &[&[&str]]) -> Vec<Place> {
    host()
        .iter()
        .filter(|source| !source.top().is_some_and(|top| allowed.contains(&top)))
        .flat_map(|source| sequences.iter().flat_map(|sequence| source.places_of(sequence)))
        .collect()
}

#[test]
fn only_session_connects_and_only_target_and_control_ask_it_to() {
    let connects: &[&[&str]] = &[
        &["Conn", ":", ":", "new"],
        &["Conn", ":", ":", "from_url"],
        &["Pool", ":", ":", "new"],
        &["Pool", ":", ":", "from_url"],
        &["TcpStream", ":", ":", "connect"],
        &["UnixStream", ":", ":", "connect"],
    ];
    let found = outside(&["session"], connects);
    assert!(found.is_empty(), "these connect by themselves:{}", listed(&found));

    let openers = ["session", "target", "control"];
    let mut found = outside(&openers, &[&["session", ":", ":", "open"]]);
    found.extend(
        host()
            .iter()
            .filter(|source| !source.top().is_some_and(|top| openers.contains(&top)))
            .flat_map(Source::crate_paths)
            .filter(|path| path.segments.starts_with(&["session".to_owned(), "open".to_owned()]))
            .map(|path| path.place),
    );
    assert!(found.is_empty(), "these open sessions past the checks:{}", listed(&found));
}

/// A user-level lock tells whom to kill and nothing else: on a cluster it is a node's own, and on some
/// servers there is none. One place takes it, without waiting, and none takes it for an answer to who
/// owns a step.
#[test]
fn no_ownership_rests_on_user_level_locks() {
    let mut found = Vec::new();
    for source in host() {
        let text = source.tokens.to_string();
        for function in ["GET_LOCK", "RELEASE_LOCK", "IS_FREE_LOCK", "IS_USED_LOCK"] {
            if text.contains(&format!("{function}(")) {
                found.push(format!("{function} in {}", source.path.display()));
            }
        }
    }
    found.sort();
    let markers = [
        "GET_LOCK in ledger/session.rs",
        "IS_USED_LOCK in ledger/row.rs",
        "IS_USED_LOCK in ledger/takeover.rs",
    ];
    assert_eq!(found, markers);
}

/// Where a value of the type is made: `impl Admitted {`, `-> Admitted {` and the like are none.
fn constructions(source: &Source) -> Vec<Place> {
    source.places_where(2, |before, window| {
        let declares =
            |before| ["impl", "for", ">", "&", "mut", "struct"].iter().any(|text| is(before, text));
        is(&window[0], "Admitted") && is_braced(&window[1]) && !before.is_some_and(declares)
    })
}

#[test]
fn only_policy_can_make_admitted() {
    let sources = host();
    let (inside, outside): (Vec<&Source>, Vec<&Source>) =
        sources.iter().partition(|source| source.top() == Some("policy"));
    let elsewhere: Vec<Place> = outside.into_iter().flat_map(constructions).collect();
    assert!(elsewhere.is_empty(), "made outside policy:\n{}", listed(&elsewhere));
    let own: Vec<Place> = inside.iter().copied().flat_map(constructions).collect();
    assert!(!own.is_empty(), "no construction was seen at all: the scan is broken");

    let open_fields: Vec<Place> = inside
        .into_iter()
        .flat_map(|source| {
            source.places_where(3, |_, window| {
                is(&window[0], "struct")
                    && is(&window[1], "Admitted")
                    && window[2].to_string().split_whitespace().any(|word| word == "pub")
            })
        })
        .collect();
    assert!(open_fields.is_empty(), "a field that is not private:\n{}", listed(&open_fields));
}

#[test]
fn offline_checks_and_the_dry_run_hold_nothing_to_connect_with() {
    let connected = ["session", "target", "control", "outbox", "ledger", "worker"];
    // Evidence and an audit read receipts that they are handed; `ledger` connects to nothing of itself.
    let without_ledger = ["session", "target", "control", "outbox", "worker"];
    for (offline, connected) in
        [("dry_run", &connected[..]), ("audit", &without_ledger), ("evidence", &without_ledger)]
    {
        let sources = host();
        let sources: Vec<&Source> = sources
            .iter()
            .filter(|source| source.module.iter().any(|name| name == offline))
            .collect();
        assert!(!sources.is_empty(), "there is no module `{offline}` any more");
        let found: Vec<Place> = sources
            .into_iter()
            .flat_map(Source::crate_paths)
            .filter(|path| {
                path.segments.first().is_some_and(|used| connected.contains(&used.as_str()))
            })
            .map(|path| path.place)
            .collect();
        assert!(found.is_empty(), "`{offline}` could reach a server:\n{}", listed(&found));
    }
}

#[test]
fn only_clock_reads_wall_time() {
    let found = outside(&["clock"], &[&["SystemTime"], &["Utc", ":", ":", "now"]]);
    assert!(found.is_empty(), "wall time is read in:\n{}", listed(&found));
}

#[test]
fn only_the_command_line_prints() {
    let prints: Vec<Vec<&str>> =
        ["print", "println", "eprint", "eprintln", "dbg"].map(|name| vec![name, "!"]).to_vec();
    let prints: Vec<&[&str]> = prints.iter().map(Vec::as_slice).collect();
    let mut found: Vec<Place> = host()
        .iter()
        .filter(|source| source.top() != Some("cli") && source.path != Path::new("main.rs"))
        .flat_map(|source| prints.iter().flat_map(|sequence| source.places_of(sequence)))
        .collect();
    found.extend(
        sources(&repository().join("policy-guest/src"))
            .iter()
            .flat_map(|source| prints.iter().flat_map(|sequence| source.places_of(sequence))),
    );
    assert!(found.is_empty(), "stray output in:\n{}", listed(&found));
}

/// Lines of `[workspace.dependencies]` that neither a comment nor a dependency under a comment
/// stands above. The workspace's own crates need no reason.
fn dependencies_without_reason(manifest: &str) -> Vec<&str> {
    let section = manifest
        .split_once("[workspace.dependencies]\n")
        .map_or("", |(_, rest)| rest.split("\n[").next().unwrap_or_default());
    let mut reasoned = false;
    section
        .lines()
        .filter(|line| {
            let line = line.trim();
            reasoned = (reasoned || line.starts_with('#')) && !line.is_empty();
            line.contains('=') && !line.starts_with('#') && !reasoned && !line.contains("path =")
        })
        .collect()
}

#[test]
fn every_dependency_has_a_reason() {
    let manifest = fs::read_to_string(repository().join("Cargo.toml")).unwrap();
    assert!(manifest.contains("[workspace.dependencies]\n"));
    assert_eq!(dependencies_without_reason(&manifest), Vec::<&str>::new());

    let planted =
        "[workspace.dependencies]\n# Reads files.\na = \"1\"\nb = \"1\"\n\nc = \"1\"\n\n[x]\n";
    assert_eq!(dependencies_without_reason(planted), ["c = \"1\""]);
}

#[test]
fn crates_take_their_dependencies_from_the_workspace() {
    for member in ["host", "policy-guest", "tests", "tests/policies/drop-only"] {
        let path = repository().join(member).join("Cargo.toml");
        let manifest = fs::read_to_string(&path).unwrap();
        let own: Vec<&str> = manifest
            .split("\n[")
            .filter(|section| {
                section.split(']').next().is_some_and(|name| name.ends_with("dependencies"))
            })
            .flat_map(|section| section.lines().skip(1))
            .filter(|line| {
                let line = line.trim();
                line.contains('=') && !line.starts_with('#') && !line.contains("workspace = true")
            })
            .collect();
        assert_eq!(own, Vec::<&str>::new(), "{}", path.display());
    }
}
