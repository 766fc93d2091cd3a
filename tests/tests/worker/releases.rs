//! A worker's folder of releases: one that is not there, and one that lags behind.

use tollgate_tests::chain::{Chain, Plugin};
use tollgate_tests::cli::run;
use tollgate_tests::process::{Process, submit, tollgate};

const FORWARD: &str = "CREATE TABLE IF NOT EXISTS entry (id INT PRIMARY KEY)";

/// Status, failures, and code and message of the last error.
type Row = (String, u32, Option<String>, Option<String>);

async fn row(chain: &Chain) -> Row {
    let query = "SELECT status, failure_count, last_error_code, last_error FROM \
                 factory_plugin_control_outbox";
    chain.control_rows(query).await.remove(0)
}

async fn enqueued() -> (Chain, Plugin) {
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = Plugin::install(FORWARD, None);
    let submitted = submit(&chain, &plugin, &plugin.document_of("up", &["orders"]));
    assert_eq!(submitted.code(), Some(0), "{}", submitted.stderr);
    (chain, plugin)
}

/// A worker with this folder says that the step waits, and is told to stop.
async fn waiting(chain: &Chain, plugin: &Plugin) -> (Row, String) {
    let log = plugin.root().join("log");
    let mut worker = Process::start(chain, plugin, &[], &[], &log);
    worker.wait_until_it_says("status=\"PENDING\"");
    worker.signal("TERM");
    assert_eq!(worker.wait().code(), Some(0), "{}", worker.log());
    (row(chain).await, worker.log())
}

async fn carried_out(chain: &Chain, plugin: &Plugin) {
    let due =
        "UPDATE control_plane.factory_plugin_control_outbox SET not_before = UTC_TIMESTAMP(6)";
    chain.server.execute(&[due]).await;
    let log = plugin.root().join("log");
    let mut worker = Process::start(chain, plugin, &[], &["--until-idle"], &log);
    assert_eq!(worker.wait().code(), Some(0), "{}", worker.log());
    assert_eq!(row(chain).await.0, "APPLIED");
}

#[tokio::test]
async fn a_folder_that_is_none_is_said_before_anything_else_and_no_step_is_touched() {
    let (chain, plugin) = enqueued().await;
    let nope = plugin.root().join("nope").display().to_string();
    let file = plugin.release_folder("1.0.0").join("forward.sql").display().to_string();
    for command in [
        vec!["work", "--until-idle", "--releases"],
        vec!["submit", "plan.json", "--releases"],
        vec!["execute", "--step-key", "up:1"],
    ] {
        for (folder, said) in [(&nope, "does not exist"), (&file, "is a file, not a folder")] {
            let mut arguments = command.clone();
            arguments.push(folder);
            if command[0] == "execute" {
                arguments.push("schema");
            }
            let refused = run(&mut tollgate(&chain, &[], &arguments));
            assert_eq!(refused.code(), Some(2), "{arguments:?}: {}", refused.stderr);
            assert!(refused.stderr.contains(said), "{arguments:?}: {}", refused.stderr);
            assert!(refused.stderr.contains(folder.as_str()), "{arguments:?}: {}", refused.stderr);
        }
    }
    assert_eq!(row(&chain).await.0, "PENDING");
}

#[tokio::test]
async fn a_worker_that_lacks_a_release_leaves_the_step_to_its_neighbours() {
    let (chain, plugin) = enqueued().await;
    let lagging = Plugin::install("DROP TABLE IF EXISTS other", None);
    std::fs::rename(lagging.release_folder("1.0.0"), lagging.release_folder("0.9.0")).unwrap();
    let ((status, failures, code, message), log) = waiting(&chain, &lagging).await;
    assert_eq!((status.as_str(), failures), ("PENDING", 0), "{log}");
    assert_eq!(code.as_deref(), Some("release-not-installed"));
    let place = lagging.release_folder("1.0.0").display().to_string();
    assert!(message.unwrap().contains(&place), "the place it was looked for at");
    assert!(log.contains("release-not-installed") && log.contains(&place), "{log}");
    carried_out(&chain, &plugin).await;
}

#[tokio::test]
async fn a_broken_release_waits_and_the_file_is_named() {
    let (chain, plugin) = enqueued().await;
    let file = plugin.release_folder("1.0.0").join("forward.sql");
    std::fs::remove_file(&file).unwrap();
    let ((status, failures, code, message), log) = waiting(&chain, &plugin).await;
    assert_eq!((status.as_str(), failures), ("PENDING", 0), "{log}");
    assert_eq!(code.as_deref(), Some("release-broken"));
    let message = message.unwrap();
    assert!(message.contains("`forward.sql`: No such file"), "{message}");
    assert!(!message.contains('\n') && log.contains(&message), "{log}");
    std::fs::write(&file, FORWARD).unwrap();
    carried_out(&chain, &plugin).await;
}
