//! 59 to 63: what a server is short of, and what an account may not.

use mysql_async::{Conn, OptsBuilder};
use tollgate::executor::{ExecutionError, Executor as _, Outcome, Uncertainty};
use tollgate::ids::Direction;
use tollgate_tests::chain::{
    CONTROL, CONTROL_PASSWORD, Chain, Plugin, TARGET, TARGET_PASSWORD, TARGET_USER,
};
use tollgate_tests::over_servers;
use tollgate_tests::server::Flavour;

use crate::scene::{
    LEDGER, Pause, ROWS, applied, faulty_delivery, ids, refused, settled_counter, stage, stage_on,
    status_keys, tollgate_with,
};

/// What a server says of a table that can take no more, and of a full disk (1114).
const FULL_TABLE: &str = "CREATE TRIGGER full_table BEFORE INSERT ON entry FOR EACH ROW \
                          SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1114, \
                          MESSAGE_TEXT = 'The table is full'";

async fn fault_59_a_full_table_fails_the_step_until_there_is_room(flavour: Flavour) {
    let chain = stage(flavour).await;
    chain.admin_run(FULL_TABLE).await;
    let payload =
        "DELETE FROM entry WHERE id = 2; INSERT IGNORE INTO entry (id, word) VALUES (1, 'one')";
    let plugin = Plugin::install(payload, None);
    let step = plugin.step("up", Direction::Forward);
    let (error, retryable) = refused(chain.deliver(&plugin, &step).await);
    let ExecutionError::Statement { source, .. } = &error else { panic!("{error:?}") };
    assert_eq!((source.code, retryable), (1114, true));
    assert_eq!(chain.receipt("up:1").await.unwrap().0, "FAILED");
    assert_eq!(ids(&chain).await, [2], "half of it was kept");
    chain.admin_run("DROP TRIGGER full_table").await;
    applied(&chain.deliver(&plugin, &step).await);
    assert_eq!(ids(&chain).await, [1]);
}
over_servers!(fault_59_a_full_table_fails_the_step_until_there_is_room);

/// The disk is full when the receipt is to be ended, whichever way: the server refuses both.
const FULL: &str = "CREATE TRIGGER full_disk BEFORE UPDATE ON factory_plugin_target_receipt \
                    FOR EACH ROW IF NEW.status <> 'RUNNING' THEN SIGNAL SQLSTATE 'HY000' \
                    SET MYSQL_ERRNO = 1114, MESSAGE_TEXT = 'The table is full'; END IF";

async fn fault_59_a_disk_full_at_the_receipt_leaves_it_running(flavour: Flavour) {
    let chain = stage(flavour).await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    chain.admin_run(FULL).await;
    match chain.deliver(&plugin, &step).await {
        Outcome::Indeterminate { reason: Uncertainty::FailureUnrecorded(error), .. } => {
            let ExecutionError::Commit(fault) = &*error else { panic!("{error:?}") };
            assert!(fault.to_string().contains("1114"), "{fault}");
        }
        other => panic!("no result may be made up: {other:?}"),
    }
    assert_eq!(chain.receipt("up:1").await.unwrap(), ("RUNNING".to_owned(), 1, None));
    assert_eq!(ids(&chain).await, [2], "the rows went with the receipt");
    chain.admin_run("DROP TRIGGER full_disk").await;
    chain.expire_leases().await;
    applied(&chain.deliver(&plugin, &step).await);
    assert_eq!(chain.receipt("up:1").await.unwrap(), ("SUCCEEDED".to_owned(), 2, None));
    assert_eq!(ids(&chain).await, [1]);
}
over_servers!(fault_59_a_disk_full_at_the_receipt_leaves_it_running);

async fn fault_60_a_statement_larger_than_a_packet_is_refused_before_the_claim(flavour: Flavour) {
    let chain = stage(flavour).await;
    chain.server.execute(&["SET GLOBAL max_allowed_packet = 8192"]).await;
    let long = "x".repeat(8192);
    let payload = format!("INSERT IGNORE INTO entry (id, word) VALUES (1, '{long}')");
    let plugin = Plugin::install(&payload, None);
    let (error, retryable) =
        refused(chain.deliver(&plugin, &plugin.step("up", Direction::Forward)).await);
    assert!(matches!(error, ExecutionError::PacketTooLarge { bytes_max: 8192, .. }), "{error}");
    assert!(!retryable, "the same packet again is no shorter");
    assert_eq!(chain.receipt("up:1").await, None);
}
over_servers!(fault_60_a_statement_larger_than_a_packet_is_refused_before_the_claim);

/// A session of an account, or the number of the error it got instead.
async fn log_in(chain: &Chain, user: &str, password: &str) -> Result<Conn, u16> {
    let opts = OptsBuilder::default()
        .user(Some(user))
        .pass(Some(password))
        .ip_or_hostname("127.0.0.1")
        .tcp_port(chain.server.port())
        .prefer_socket(false);
    match Conn::new(opts).await {
        Ok(conn) => Ok(conn),
        Err(mysql_async::Error::Server(error)) => Err(error.code),
        Err(error) => panic!("{error}"),
    }
}

/// Takes every session the account gets; the error that ends it must be this one.
async fn take_all(chain: &Chain, user: &str, password: &str, code: u16) -> Vec<Conn> {
    let mut taken = Vec::new();
    loop {
        match log_in(chain, user, password).await {
            Ok(conn) => taken.push(conn),
            Err(error) => {
                assert_eq!(error, code);
                return taken;
            }
        }
    }
}

async fn fault_61_no_session_left_is_retried_without_a_claim(flavour: Flavour) {
    // The whole server, every account's share of it, and this account's own.
    for (option, limit, user, password, code) in [
        ("--max-connections=12", None, "tollgate_control", CONTROL_PASSWORD, 1040),
        ("--max-user-connections=4", None, TARGET_USER, TARGET_PASSWORD, 1203),
        (
            "--max-connections=20",
            Some(match flavour {
                Flavour::Mysql56 => "GRANT USAGE ON *.* TO",
                _ => "ALTER USER",
            }),
            TARGET_USER,
            TARGET_PASSWORD,
            1226,
        ),
    ] {
        let chain = stage_on(flavour.builder().arg(option)).await;
        if let Some(limit) = limit {
            let limit = format!("{limit} '{TARGET_USER}'@'%' WITH MAX_USER_CONNECTIONS 2");
            chain.server.execute(&[&limit]).await;
        }
        let plugin = Plugin::install(ROWS, None);
        let step = plugin.step("up", Direction::Forward);
        let taken = take_all(&chain, user, password, code).await;
        assert!(!taken.is_empty());
        let outcome = chain.deliver(&plugin, &step).await;
        for conn in taken {
            conn.disconnect().await.unwrap();
        }
        chain.server.assert_session_count(user, 0).await;
        let (error, retryable) = refused(outcome);
        assert!(retryable, "{error}");
        assert!(error.code().ends_with("too-many-sessions"), "{code}: {error:?}");
        assert_eq!(chain.receipt("up:1").await, None);
        applied(&chain.deliver(&plugin, &step).await);
    }
}
over_servers!(fault_61_no_session_left_is_retried_without_a_claim);

async fn fault_62_a_refused_login_is_a_code_and_is_tried_once(flavour: Flavour) {
    let chain = stage(flavour).await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    let port = chain.server.port();
    let plain = format!("jdbc:mysql://127.0.0.1:{port}/{TARGET}?sslMode=DISABLED");
    let verified = format!("jdbc:mysql://127.0.0.1:{port}/{TARGET}?sslMode=VERIFY_IDENTITY");
    // Without TLS on either side: to find out that a server has none is an attempt that it counts.
    let control = plain.replace(TARGET, CONTROL);
    let wrong = [
        ("SQL_TARGET_PASSWORD", "canary-wrong"),
        ("SQL_TARGET_JDBC_URL", &plain),
        ("CONTROL_JDBC_URL", &control),
    ];
    let denied = match flavour {
        Flavour::MariaDb => "Access_denied_errors",
        _ => "Aborted_connects",
    };
    let before = settled_counter(&chain, denied).await;
    let (error, retryable) =
        refused(chain.executor_with(&wrong).execute(&step, &plugin.catalog()).await);
    assert_eq!((error.code(), retryable), ("target-access-denied", false));
    // One attempt a delivery: an account is not locked by it.
    assert_eq!(settled_counter(&chain, denied).await, before + 1);

    let untrusted = [("SQL_TARGET_JDBC_URL", verified.as_str())];
    let (error, _) =
        refused(chain.executor_with(&untrusted).execute(&step, &plugin.catalog()).await);
    let wanted = match flavour {
        Flavour::Mysql9 => "target-tls-failed",
        _ => "target-tls-not-offered",
    };
    assert_eq!(error.code(), wanted);

    let expire = format!("ALTER USER '{TARGET_USER}'@'%' PASSWORD EXPIRE");
    chain.server.execute(&[&expire]).await;
    let (error, _) = refused(chain.deliver(&plugin, &step).await);
    assert_eq!(error.code(), "target-account-blocked");
    assert_eq!(status_keys(&chain), ["target-account-blocked"]);
    for changes in [&wrong[..], &untrusted[..], &[][..]] {
        let prefixed: Vec<(String, &str)> = changes
            .iter()
            .map(|(name, value)| (format!("FACTORY_PLUGIN_{name}"), *value))
            .collect();
        let more: Vec<(&str, &str)> =
            prefixed.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let run = tollgate_with(&chain, &more, &["status", "--json"]);
        assert_eq!(run.code(), Some(1), "{}", run.stdout);
        let said = run.stdout + &run.stderr;
        for secret in [TARGET_USER, TARGET_PASSWORD, "canary", "127.0.0.1", &port.to_string()] {
            assert!(!said.contains(secret), "{secret} in {said}");
        }
    }
    assert_eq!(chain.receipt("up:1").await, None);
}
over_servers!(fault_62_a_refused_login_is_a_code_and_is_tried_once);

async fn fault_63_a_privilege_taken_away_between_statements_fails_with_its_place(flavour: Flavour) {
    let chain = stage(flavour).await;
    let delete = |verb: &str, preposition: &str| {
        format!("{verb} DELETE ON `{TARGET}`.`entry` {preposition} '{TARGET_USER}'@'%'")
    };
    // Of a whole catalog a session in it keeps what it had; of a table it does not.
    chain
        .server
        .execute(&[
            &format!(r"REVOKE DELETE ON `plugin\_preview`.* FROM '{TARGET_USER}'@'%'"),
            &delete("GRANT", "TO"),
        ])
        .await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    let pause = Pause::at(&chain, "statement", 2);
    let first = faulty_delivery(&pause.faults, chain.executor(), &plugin, &step);
    pause.reached().await;
    chain.server.execute(&[&delete("REVOKE", "FROM")]).await;
    pause.go_on();
    let (error, retryable) = refused(first.await.unwrap());
    let ExecutionError::Statement { statement: 1, source } = &error else { panic!("{error:?}") };
    assert_eq!((source.code, retryable), (1142, false));
    let failed = chain.receipt("up:1").await.unwrap();
    assert_eq!(failed, ("FAILED".to_owned(), 1, Some("server-1142".to_owned())));
    let text: String = chain.value(&format!("SELECT last_error FROM {LEDGER}")).await;
    assert!(text.starts_with("statement 2: "), "{text}");
    assert_eq!(ids(&chain).await, [2]);
    chain.server.execute(&[&delete("GRANT", "TO")]).await;
    applied(&chain.deliver(&plugin, &step).await);
    assert_eq!(ids(&chain).await, [1]);
}
over_servers!(fault_63_a_privilege_taken_away_between_statements_fails_with_its_place);
