//! `tollgate demo` as a newcomer runs it: it tells the truth and leaves nothing.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tollgate_tests::cli::{command, run};

/// How long a killed server may take to be gone.
const GONE_WAIT: Duration = Duration::from_secs(10);

fn demo(folder: &TempDir) -> Command {
    let mut command = command(["demo"]);
    command.env("TMPDIR", folder.path());
    command
}

/// The process id the demo tells of its server.
fn server_pid(text: &str) -> &str {
    let (_, rest) = text.split_once(", process ").expect("the demo names its server's process");
    rest.split('.').next().unwrap()
}

fn is_running(pid: &str) -> bool {
    // A process that ended and was not waited for yet has no files left.
    Path::new("/proc").join(pid).join("exe").read_link().is_ok()
}

fn assert_gone(pid: &str) {
    let begin = Instant::now();
    while is_running(pid) {
        assert!(begin.elapsed() < GONE_WAIT, "the demo's server {pid} is still running");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Starts the demo, waits until its server runs and names it, and returns both.
fn started(
    folder: &TempDir,
) -> (std::process::Child, BufReader<std::process::ChildStdout>, String) {
    let mut child =
        demo(folder).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut told = String::new();
    while !told.contains(", process ") {
        let read = lines.read_line(&mut told).expect("it tells");
        assert_ne!(read, 0, "the demo ended early:\n{told}");
    }
    let pid = server_pid(&told).to_owned();
    assert!(is_running(&pid), "the server runs while the demo does");
    (child, lines, pid)
}

fn send(signal: &str, pid: u32) {
    let status =
        Command::new("sh").args(["-c", "kill -s $0 $1", signal, &pid.to_string()]).status();
    assert!(status.unwrap().success());
}

#[test]
fn the_demo_shows_everything_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let run = run(&mut demo(&folder));
    assert_eq!(run.code(), Some(0), "{}\n{}", run.stdout, run.stderr);
    let told = &run.stdout;
    for part in [
        "plan `loyalty-1.0.0` is enqueued: 1 step(s)",
        "worker 1, process ",
        "worker 2, process ",
        "receipt   sql:preview:loyalty-1.0.0:1\n",
        "sql:preview:loyalty-1.0.0:1:compensate",
        "superseded by its compensation",
        // A literal that tools which split at semicolons would have run.
        "Robert'); DROP TABLE loyalty_member;--",
        "loyalty-1.1.0/cleanup.sql:",
        "tollgate receipts",
        "Nothing is left running.",
    ] {
        assert!(told.contains(part), "`{part}` is not told:\n{told}");
    }
    // The second delivery's column is all zeroes, the first's is not.
    let counts: Vec<Vec<u64>> = told
        .lines()
        .skip_while(|line| !line.contains("2nd delivery"))
        .skip(1)
        .map_while(|line| {
            let counts: Vec<u64> =
                line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            (counts.len() == 2).then_some(counts)
        })
        .collect();
    assert!(counts.iter().any(|count| count[0] > 0), "{told}");
    assert!(counts.iter().all(|count| count[1] == 0), "{told}");
    assert_gone(server_pid(told));
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "files are left in the folder");
}

#[test]
fn a_demo_that_is_told_to_stop_leaves_nothing() {
    for signal in ["TERM", "INT", "HUP"] {
        let folder = tempfile::tempdir().unwrap();
        let (mut child, mut rest, pid) = started(&folder);
        send(signal, child.id());
        let mut untold = Vec::new();
        rest.read_to_end(&mut untold).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1), "{signal}");
        assert_gone(&pid);
        assert_eq!(folder.path().read_dir().unwrap().count(), 0, "{signal}: files are left");
    }
}

#[test]
fn a_demo_that_is_killed_takes_its_server_along() {
    let folder = tempfile::tempdir().unwrap();
    let (mut child, _, pid) = started(&folder);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_gone(&pid);
}

#[test]
fn without_a_server_to_start_the_demo_says_what_to_install() {
    let folder = tempfile::tempdir().unwrap();
    let fake = folder.path().join("bin");
    std::fs::create_dir(&fake).unwrap();
    // Servers are also looked for in sbin; the client is not.
    let found = Path::new("/usr/sbin/mariadb-install-db").exists();
    if found {
        return;
    }
    let run = run(demo(&folder).env("PATH", &fake));
    assert_eq!(run.code(), Some(2));
    assert!(run.stderr.contains("mariadb-server-core"), "{}", run.stderr);
}
