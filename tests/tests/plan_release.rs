//! Releases as folders: what is wrong is told at once, and nothing outside the folder is read.

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use tollgate::ids::PluginRelease;
use tollgate::plan::{CatalogError, FolderCatalog, PAYLOAD_BYTES_MAX, ReleaseError, read_release};

const PLUGIN: &str = r#"
code = "orders"
version = "1.4.0"

[[contribution]]
key = "schema"
type = "DATABASE_MIGRATION"
target = "sql"
idempotent = true
forward = "sql/forward.sql"
compensation = "back.sql"
"#;

fn folder(plugin: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write_release(folder.path(), plugin);
    folder
}

fn write_release(folder: &Path, plugin: &str) {
    fs::create_dir_all(folder.join("sql")).unwrap();
    fs::write(folder.join("plugin.toml"), plugin).unwrap();
    fs::write(folder.join("sql/forward.sql"), "DROP TABLE IF EXISTS a").unwrap();
    fs::write(folder.join("back.sql"), "DROP TABLE IF EXISTS b").unwrap();
}

fn codes(error: &ReleaseError) -> Vec<&'static str> {
    error.problems.iter().map(|problem| problem.code.as_str()).collect()
}

fn problems_of(plugin: &str) -> ReleaseError {
    read_release(folder(plugin).path()).unwrap_err()
}

#[test]
fn a_release_is_read_with_its_exact_bytes() {
    let folder = folder(PLUGIN);
    fs::write(folder.path().join("back.sql"), b"\xef\xbb\xbfDROP\r\n").unwrap();
    let release = read_release(folder.path()).unwrap();
    assert_eq!(release.release().to_string(), "orders@1.4.0");
    let contribution = &release.contributions()[0];
    assert!(contribution.idempotent);
    assert_eq!(contribution.forward.bytes(), b"DROP TABLE IF EXISTS a");
    assert_eq!(contribution.compensation.as_ref().unwrap().bytes(), b"\xef\xbb\xbfDROP\r\n");
}

#[test]
fn idempotent_is_an_opt_in() {
    let release = read_release(folder(&PLUGIN.replace("idempotent = true\n", "")).path()).unwrap();
    assert!(!release.contributions()[0].idempotent);
}

#[test]
fn every_problem_is_told_at_once() {
    let error = problems_of(
        r#"
        code = "bad code"
        version = "1.4"
        author = "x"

        [[contribution]]
        key = "a b"
        type = "migration"
        target = 7
        idempotnet = true
        forward = "missing.txt"
        compensation = "../out.sql"

        [[contribution]]
        idempotent = "yes"
        "#,
    );
    let mut found = codes(&error);
    found.sort_unstable();
    assert_eq!(
        found,
        [
            "invalid-value",
            "invalid-value",
            "invalid-value",
            "invalid-value",
            "missing-key",
            "missing-key",
            "missing-key",
            "missing-key",
            "path-outside-folder",
            "unknown-key",
            "unknown-key",
            "wrong-type",
            "wrong-type",
        ],
        "{error}"
    );
    let misspelt = error.problems.iter().find(|problem| problem.message.contains("idempotnet"));
    assert_eq!(misspelt.unwrap().help, "did you mean `idempotent`?");
}

#[test]
fn paths_that_leave_the_folder_are_refused() {
    for path in
        ["../x.sql", "/etc/passwd", "sql/../../x.sql", "a\\\\b.sql", "", "./sql/../back.sql"]
    {
        let error = problems_of(&PLUGIN.replace("sql/forward.sql", path));
        assert_eq!(codes(&error), ["path-outside-folder"], "{path}");
    }
}

#[test]
fn a_link_may_stay_in_the_folder_but_not_leave_it() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.sql"), "secret").unwrap();
    let folder = folder(PLUGIN);
    let forward = folder.path().join("sql/forward.sql");
    fs::remove_file(&forward).unwrap();

    std::os::unix::fs::symlink("../back.sql", &forward).unwrap();
    assert!(read_release(folder.path()).is_ok());

    fs::remove_file(&forward).unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret.sql"), &forward).unwrap();
    assert_eq!(codes(&read_release(folder.path()).unwrap_err()), ["path-outside-folder"]);

    fs::remove_dir_all(folder.path().join("sql")).unwrap();
    fs::rename(outside.path().join("secret.sql"), outside.path().join("forward.sql")).unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path().join("sql")).unwrap();
    assert_eq!(codes(&read_release(folder.path()).unwrap_err()), ["path-outside-folder"]);
}

#[test]
fn what_is_no_file_or_too_large_is_refused() {
    let folder = folder(PLUGIN);
    fs::remove_file(folder.path().join("back.sql")).unwrap();
    fs::create_dir(folder.path().join("back.sql")).unwrap();
    let file = fs::File::create(folder.path().join("sql/forward.sql")).unwrap();
    file.set_len(PAYLOAD_BYTES_MAX + 1).unwrap();
    let mut found = codes(&read_release(folder.path()).unwrap_err());
    found.sort_unstable();
    assert_eq!(found, ["too-large", "unreadable"]);
}

#[test]
fn a_type_that_is_sql_names_sql_files() {
    let error = problems_of(&PLUGIN.replace("sql/forward.sql", "plugin.toml"));
    assert_eq!(codes(&error), ["invalid-value"]);
    let menu =
        PLUGIN.replace("DATABASE_MIGRATION", "MENU").replace("sql/forward.sql", "plugin.toml");
    assert!(read_release(folder(&menu).path()).is_ok());
}

#[test]
fn broken_toml_names_its_line() {
    let error = problems_of("code = \"a\"\nversion = \n");
    assert_eq!(codes(&error), ["syntax"]);
    assert!(error.problems[0].message.contains("line 2"), "{error}");
    assert_eq!(codes(&problems_of("code = \"a\"\nversion = \"1.0.0\"\n")), ["contribution-count"]);
}

#[test]
fn two_contributions_with_one_key_are_refused() {
    let twice = format!("{PLUGIN}{}", PLUGIN.split_once("\n\n").unwrap().1);
    assert_eq!(codes(&problems_of(&twice)), ["duplicate-contribution"]);
}

#[test]
fn a_tree_of_releases_is_asked_by_code_and_version() {
    let root = tempfile::tempdir().unwrap();
    write_release(&root.path().join("orders/1.4.0"), PLUGIN);
    write_release(&root.path().join("orders/1.5.0"), PLUGIN);
    let catalog = FolderCatalog::tree(root.path());
    let release = |version: &str| PluginRelease {
        code: "orders".parse().unwrap(),
        version: version.parse().unwrap(),
    };
    assert!(catalog.read(&release("1.4.0")).unwrap().is_some());
    assert!(catalog.read(&release("9.9.9")).unwrap().is_none());
    // Installed under another version than it says it is.
    match catalog.read(&release("1.5.0")) {
        Err(CatalogError::Broken(error)) => assert_eq!(codes(&error), ["other-release"]),
        other => panic!("expected a broken release, got {other:?}"),
    }
    let single = FolderCatalog::single(root.path().join("orders/1.4.0"));
    assert!(single.read(&release("1.4.0")).unwrap().is_some());
    assert!(single.read(&release("1.5.0")).unwrap().is_none());
}
