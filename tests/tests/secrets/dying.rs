//! What is left of a process that dies: a bug's message, and its memory.

use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tollgate_tests::chain::{Chain, Plugin};
use tollgate_tests::cli::{binary, run};
use tollgate_tests::process::{Process, submit, tollgate};
use tollgate_tests::staged::Staged;

use crate::assert_clean;

/// What a bug says that quotes what it was about.
const PANIC: &str = "statement=panic:canary-password of canary_user at 127.0.0.1";

#[tokio::test]
async fn a_panic_says_where_it_was_and_not_what_it_was_about() {
    let chain = Chain::start().await;
    let plugin = Plugin::install("DELETE FROM t WHERE c = 'canary-literal'", None);
    chain.admin_run("CREATE TABLE t (c VARCHAR(20)) ENGINE=InnoDB").await;
    let folder = plugin.release_folder("1.0.0").display().to_string();
    let arguments = ["execute", &folder, "schema", "--step-key", "up:1"];
    for backtrace in ["0", "full"] {
        let staged = Staged::new(PANIC);
        let mut command = tollgate(&chain, &[], &arguments);
        staged.on(&mut command).env("RUST_BACKTRACE", backtrace);
        let died = run(command.env("TOLLGATE_LOG", "trace"));
        assert_eq!(staged.fired(), ["statement panic 1"]);
        // Rust's own code of a process whose main thread panicked.
        assert_eq!(died.code(), Some(101), "{}", died.stderr);
        let place = "error: a bug stopped this thread at host/src/fault_points/active.rs:";
        assert!(died.stderr.contains(place), "{}", died.stderr);
        assert!(died.stderr.contains("its message is not shown"), "{}", died.stderr);
        let traced = died.stderr.contains("sql_jdbc");
        assert_eq!(traced, backtrace == "full", "{}", died.stderr);
        assert_clean(&died.stderr, "a panic");
        assert_clean(&died.stdout, "a panic");
        chain.expire_leases().await;
    }
}

#[tokio::test]
async fn a_workers_panic_ends_one_delivery_and_gives_nothing_away() {
    let chain = Chain::start().await;
    chain.control().await;
    chain.admin_run("CREATE TABLE t (c VARCHAR(20)) ENGINE=InnoDB").await;
    let plugin = Plugin::install("DELETE FROM t WHERE c = 'canary-literal'", None);
    let submitted = submit(&chain, &plugin, &plugin.document_of("up", &["orders"]));
    assert_eq!(submitted.code(), Some(0), "{}", submitted.stderr);
    let staged = Staged::new(PANIC);
    let releases = plugin.root().display().to_string();
    let mut command = tollgate(&chain, &[], &["work", "--releases", &releases, "--until-idle"]);
    staged.on(&mut command).env("RUST_BACKTRACE", "full").env("TOLLGATE_LOG", "trace");
    let mut worker = Process::spawn(&mut command, &plugin.root().join("log"));
    worker.wait_until_it_says("a slot of the worker ended early");
    chain.expire_leases().await;
    chain.expire_claims().await;
    assert_eq!(worker.wait().code(), Some(0), "{}", worker.log());
    assert!(worker.log().contains("applied=1"), "{}", worker.log());
    assert_clean(&worker.log(), "a worker's panic");
}

/// A process that waits, as nobody in particular when this test is root.
fn waiting(command: &mut Command) -> Child {
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("it starts")
}

const NOBODY: u32 = 65_534;

fn is_root() -> bool {
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Whose the files are through which a process's memory and environment are read: root's when it
/// cannot be dumped, else its own user's (proc(5), `/proc/PID`).
fn owner(child: &Child) -> u32 {
    std::fs::metadata(format!("/proc/{}/environ", child.id())).unwrap().uid()
}

#[test]
fn no_core_file_is_written_and_nobody_else_reads_its_memory() {
    // The binary where anybody may run it.
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).unwrap();
    let program = folder.path().join("tollgate");
    std::fs::copy(binary(), &program).unwrap();
    let mut plain = waiting(&mut Command::new("cat"));
    assert_ne!(owner(&plain), 0, "a process that can be dumped is told from one that cannot");
    let mut guarded =
        waiting(Command::new(&program).args(["check", "-"]).env_clear().env("HOME", folder.path()));
    let begun = Instant::now();
    while owner(&guarded) != 0 {
        assert!(guarded.try_wait().unwrap().is_none(), "it ended by itself");
        assert!(begun.elapsed() < Duration::from_mins(1), "its memory can be read");
        std::thread::sleep(Duration::from_millis(5));
    }
    for child in [&mut plain, &mut guarded] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
