//! Other tools on the same files and the same server, as whole processes, started in turn.
//!
//! They do other things: none of them decides on what it runs, and only some know afterwards what ran.
//! The figures say what asking, claiming and proving cost beside what people use today.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use tollgate::control::Control;
use tollgate_tests::chain::{Chain, Plugin, TARGET, TARGET_PASSWORD, TARGET_USER};
use tollgate_tests::process::submit;
use tollgate_tests::server::MariaDb;

use crate::shapes::files;

/// Files that are applied: each creates a table and fills it.
const MIGRATION_COUNT: usize = 30;

/// Files that are parsed.
const PARSED_COUNT: usize = 200;

/// How often each runs; the median is told.
const ROUNDS: usize = 5;

/// A tool that applies the files to an empty catalog.
struct Peer {
    name: &'static str,
    program: PathBuf,
    /// Its arguments, given its folder and the catalog's URL without the scheme.
    arguments: fn(folder: &Path, place: &str) -> Vec<String>,
}

/// Where tools may be: what npm put into a folder, or `PATH`.
fn found(folder: &Path, place: &str, name: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&paths).map(|path| path.join(name));
    [folder.join(place)].into_iter().chain(on_path).find(|path| path.is_file())
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn peers(folder: &Path) -> Vec<(&'static str, Option<Peer>)> {
    let peer = |name, place: &str, program: &str, arguments| {
        let program = found(folder, place, program);
        (name, program.map(|program| Peer { name, program, arguments }))
    };
    vec![
        peer("dbmate", "node_modules/.bin/dbmate", "dbmate", |files, place| {
            let url = format!("mysql://{place}");
            [
                "--url",
                &url,
                "--migrations-dir",
                &text(&files.join("dbmate")),
                "--no-dump-schema",
                "up",
            ]
            .map(str::to_owned)
            .to_vec()
        }),
        peer("sqlx migrate", "bin/sqlx", "sqlx", |files, place| {
            let url = format!("mysql://{place}");
            ["migrate", "run", "--source", &text(&files.join("sqlx")), "--database-url", &url]
                .map(str::to_owned)
                .to_vec()
        }),
        peer("refinery", "bin/refinery", "refinery", |files, place| {
            let configuration = files.join("refinery.toml");
            let (account, rest) = place.split_once('@').unwrap();
            let (user, password) = account.split_once(':').unwrap();
            let (host, catalog) = rest.split_once('/').unwrap();
            let (host, port) = host.split_once(':').unwrap();
            let text_of = format!(
                "[main]\ndb_type = \"Mysql\"\ndb_host = \"{host}\"\ndb_port = \"{port}\"\n\
                 db_user = \"{user}\"\ndb_pass = \"{password}\"\ndb_name = \"{catalog}\"\n"
            );
            std::fs::write(&configuration, text_of).unwrap();
            ["migrate", "-c", &text(&configuration), "-p", &text(&files.join("refinery"))]
                .map(str::to_owned)
                .to_vec()
        }),
        peer(
            "Liquibase",
            "node_modules/liquibase/dist/liquibase/liquibase",
            "liquibase",
            |files, place| {
                let (account, rest) = place.split_once('@').unwrap();
                let (user, password) = account.split_once(':').unwrap();
                let jar = std::env::var("TOLLGATE_PEERS_DRIVER").unwrap_or_default();
                [
                    format!("--classpath={jar}:{}", text(files)),
                    format!("--url=jdbc:mariadb://{rest}"),
                    format!("--username={user}"),
                    format!("--password={password}"),
                    "--changeLogFile=liquibase.sql".to_owned(),
                    "update".to_owned(),
                ]
                .to_vec()
            },
        ),
    ]
}

/// Writes the same statements in each tool's layout.
fn write_files(folder: &Path) -> Vec<String> {
    let payloads: Vec<String> = (0..MIGRATION_COUNT)
        .map(|number| {
            format!(
                "CREATE TABLE IF NOT EXISTS t{number} (id INT PRIMARY KEY, word VARCHAR(40));\n\
                 INSERT IGNORE INTO t{number} (id, word) VALUES (1, 'one'), (2, 'two');\n"
            )
        })
        .collect();
    for layout in ["dbmate", "sqlx", "refinery"] {
        std::fs::create_dir_all(folder.join(layout)).unwrap();
    }
    let mut changes = String::from("--liquibase formatted sql\n");
    for (number, payload) in payloads.iter().enumerate() {
        let write = |name: String, text: &str| std::fs::write(folder.join(name), text).unwrap();
        write(
            format!("dbmate/{:014}_t.sql", number + 1),
            &format!("-- migrate:up\n{payload}\n-- migrate:down\n"),
        );
        write(format!("sqlx/{:014}_t.sql", number + 1), payload);
        write(format!("refinery/V{}__t.sql", number + 1), payload);
        writeln!(changes, "--changeset plugin:{number}\n{payload}").unwrap();
    }
    std::fs::write(folder.join("liquibase.sql"), changes).unwrap();
    payloads
}

/// How long a process takes, in milliseconds.
fn timed(mut command: Command) -> f64 {
    let started = Instant::now();
    let output = command.stdin(Stdio::null()).output().expect("the tool starts");
    let elapsed = started.elapsed().as_secs_f64() * 1e3;
    assert!(
        output.status.success(),
        "{command:?} failed:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    elapsed
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Applies the files with each tool that is there, on one durable server.
async fn apply(folder: &Path) {
    let server = MariaDb::builder().durable().start();
    let work = tempfile::tempdir().unwrap();
    let payloads = write_files(work.path());
    let plugin = Plugin::install(&payloads[0], None);
    let codes: Vec<String> = (0..payloads.len()).map(|number| format!("p{number}")).collect();
    for (code, payload) in codes.iter().zip(&payloads) {
        plugin.install_as(code, "1.0.0", payload, None);
    }
    let chain = Chain::on(server).await;
    let control: Control = chain.control().await;
    drop(control);
    let names: Vec<&str> = codes.iter().map(String::as_str).collect();
    println!("\n| applies {MIGRATION_COUNT} files | time |\n|---|---|");
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        empty(&chain).await;
        let submitted =
            submit(&chain, &plugin, &plugin.document_of(&format!("plan{round}"), &names));
        assert!(submitted.status.success(), "{}", submitted.stderr);
        let releases = text(plugin.root());
        let arguments = ["work", "--releases", &releases, "--until-idle"];
        times.push(timed(tollgate_tests::process::tollgate(&chain, &[], &arguments)));
    }
    println!("| tollgate work | {:.0} ms |", median(times));
    for (name, peer) in peers(folder) {
        let Some(peer) = peer else {
            println!("| {name} | not installed |");
            continue;
        };
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            empty(&chain).await;
            let place = format!(
                "{TARGET_USER}:{TARGET_PASSWORD}@127.0.0.1:{}/{TARGET}",
                chain.server.port()
            );
            let mut command = Command::new(&peer.program);
            command.args((peer.arguments)(work.path(), &place)).current_dir(work.path());
            times.push(timed(command));
        }
        println!("| {} | {:.0} ms |", peer.name, median(times));
    }
}

/// Takes every table out of the target but the ledger, and the ledger's rows.
async fn empty(chain: &Chain) {
    let tables: Vec<String> = chain
        .rows(&format!(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = '{TARGET}' \
             AND table_name <> 'factory_plugin_target_receipt'"
        ))
        .await;
    for table in tables {
        chain.admin_run(&format!("DROP TABLE `{table}`")).await;
    }
    chain.admin_run("DELETE FROM factory_plugin_target_receipt").await;
    // dbmate and Liquibase alter their tables, which a confined account may not.
    chain.server.execute(&[&format!("GRANT ALL ON `{TARGET}`.* TO '{TARGET_USER}'@'%'")]).await;
}

/// Reads the same files with other parsers, whole processes again.
fn parse(folder: &Path) {
    let work = tempfile::tempdir().unwrap();
    for (number, sql) in files(PARSED_COUNT).filter(|sql| sql.len() < 100_000).enumerate() {
        std::fs::write(work.path().join(format!("{number:04}.sql")), sql).unwrap();
    }
    println!("\n| reads {PARSED_COUNT} files | time |\n|---|---|");
    let cache = work.path().join("compiled");
    let check = || {
        let mut command = tollgate_tests::cli::command(["check", "--format", "json", "--cache"]);
        command.arg(&cache).arg(work.path());
        command
    };
    timed(check());
    println!(
        "| tollgate check | {:.0} ms |",
        median((0..ROUNDS).map(|_| timed(check())).collect())
    );
    let Some(python) = found(folder, "venv/bin/python", "none") else {
        println!("| sqlglot, sqlfluff | not installed |");
        return;
    };
    for (name, program) in [
        ("sqlglot, parse", "import sqlglot\nfor t in texts: sqlglot.parse(t, read='mysql')"),
        (
            "sqlfluff, parse",
            "import sqlfluff\nfor t in texts[:20]: sqlfluff.parse(t, dialect='mysql')",
        ),
    ] {
        let script = format!(
            "import glob, sys\ntexts = [open(f).read() for f in sorted(glob.glob(sys.argv[1] + '/*.sql'))]\n{program}"
        );
        let mut command = Command::new(&python);
        command.args(["-c", &script, &text(work.path())]);
        let note = if name.starts_with("sqlfluff") { " (20 of them, once)" } else { "" };
        println!("| {name}{note} | {:.0} ms |", timed(command));
    }
}

/// Prints what the tools take that are found in a folder or on `PATH`.
///
/// # Panics
///
/// When a tool that is there fails.
pub fn print(folder: &Path) {
    tokio::runtime::Runtime::new().unwrap().block_on(apply(folder));
    parse(folder);
}
