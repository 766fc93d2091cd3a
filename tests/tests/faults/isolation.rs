//! 74 to 81: isolation, policy, secrets and what people see.

use std::collections::BTreeSet;
use std::error::Error as _;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable as _;
use tollgate::executor::{
    DryRunV1, ExecutionError, Executor as _, ExecutorRegistry, Outcome, STATUS_BUDGET, SqlJdbcV1,
    SqlTargetState,
};
use tollgate::ids::Direction;
use tollgate::jdbc::JdbcUrl;
use tollgate::ledger::Filter;
use tollgate::policy::{Policy, PolicyRuntime, PolicyStore, RuntimeOptions};
use tollgate_tests::chain::{
    CONTROL_PASSWORD, Chain, Plugin, TARGET, TARGET_PASSWORD, TARGET_USER, policy,
};
use tollgate_tests::hostile::{self, Decide};
use tollgate_tests::over_servers;
use tollgate_tests::place::{Place, forward};
use tollgate_tests::server::Flavour;

use crate::relay::{Changes, Relay};
use crate::scene::{LEDGER, ROWS, applied, counter, ids, refused, stage, stage_on};

async fn fault_74_the_control_catalog_is_recognised_under_every_name(flavour: Flavour) {
    let chain = stage(flavour).await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    chain.server.execute(&[r"GRANT ALL ON `plugin\_preview`.* TO 'tollgate_control'@'%'"]).await;
    let relay = Relay::to(chain.server.port(), Changes::default()).await;
    let url = |text: String| JdbcUrl::parse(&text).unwrap();
    let tunnel = url(format!("jdbc:mysql://127.0.0.1:{}/{TARGET}", relay.port));
    let socket = chain.server.socket();
    let socket = url(format!("jdbc:mysql:///{TARGET}?localSocket={}", socket.display()));
    let direct = url(chain.server.jdbc_url(TARGET));
    // A configuration in which both are called alike is refused by itself; here the names of the
    // catalogs are only learnt from the servers.
    for (target, control) in
        [(direct.clone(), socket), (direct.clone(), tunnel.clone()), (tunnel, direct)]
    {
        let mut config = chain.config(&[]).sql_target.unwrap();
        config.endpoint = target;
        config.control.endpoint = control;
        let executor = SqlJdbcV1::new(&config, policy());
        let (error, retryable) = refused(executor.execute(&step, &plugin.catalog()).await);
        assert_eq!((error.code(), retryable), ("control-catalog-reached", false));
        chain.server.assert_session_count(TARGET_USER, 0).await;
        chain.server.assert_session_count("tollgate_control", 0).await;
    }
    assert!(relay.accepted() >= 2, "the other name was really used");
    // By what it holds, when the control side has another server of the same content.
    chain.admin_run("CREATE TABLE factory_plugin_control_outbox (id INT) ENGINE=InnoDB").await;
    let (error, _) = refused(chain.deliver(&plugin, &step).await);
    assert_eq!(error.code(), "control-tables-in-target");
    assert_eq!(chain.receipt("up:1").await, None, "refused before any claim");
    assert_eq!(ids(&chain).await, [2]);
}
over_servers!(fault_74_the_control_catalog_is_recognised_under_every_name);

/// An address that leads to another server of the same look from one moment on.
async fn fault_75_a_name_that_leads_to_a_foreign_server_is_refused(flavour: Flavour) {
    let (chain, foreign) = (stage(flavour).await, stage(flavour).await);
    let relay = Relay::to(chain.server.port(), Changes::default()).await;
    let url = format!("jdbc:mysql://127.0.0.1:{}/{TARGET}", relay.port);
    let config = chain.config(&[("SQL_TARGET_JDBC_URL", &url)]);
    let connection = tollgate::target::Target::new(config.sql_target.as_ref().unwrap())
        .open(&tollgate::target::SessionContract::default())
        .await
        .unwrap();
    let known = connection.server().id().to_uppercase();
    connection.close().await;
    let executor = chain.executor_with(&[
        ("SQL_TARGET_JDBC_URL", &url),
        ("SQL_TARGET_ALLOWED_SERVERS", &format!("other, {known}")),
    ]);
    let plugin = Plugin::install(ROWS, None);
    relay.lead_to(foreign.server.port());
    let step = plugin.step("up", Direction::Forward);
    let (error, retryable) = refused(executor.execute(&step, &plugin.catalog()).await);
    assert_eq!((error.code(), retryable), ("server-not-allowed", false));
    assert_eq!(foreign.receipt("up:1").await, None);
    assert_eq!(ids(&foreign).await, [2]);
    relay.lead_to(chain.server.port());
    applied(&executor.execute(&step, &plugin.catalog()).await);
}
over_servers!(fault_75_a_name_that_leads_to_a_foreign_server_is_refused);

/// One of each kind, and a word of the finding's code.
const HOSTILE: &[&str] = &[
    "DELETE FROM control_plane.t WHERE id = 1",
    "INSERT IGNORE INTO mysql.user (user) VALUES ('x')",
    "USE control_plane",
    "/*!50000 DROP DATABASE plugin_preview */",
    "INSERT IGNORE INTO entry (id) VALUES (9) /*!, (10) */",
    "INSERT /*+ SET_VAR(sql_mode='') */ IGNORE INTO entry (id) VALUES (9)",
    "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE entry",
    "INSERT IGNORE INTO entry (word) VALUES ((SELECT 1 INTO OUTFILE '/tmp/x'))",
    "PREPARE s FROM 'DROP TABLE entry'",
    "CREATE DEFINER = root@localhost VIEW v AS SELECT 1",
    "CREATE EVENT e ON SCHEDULE EVERY 1 SECOND DO DELETE FROM entry",
    "CREATE TRIGGER t BEFORE INSERT ON entry FOR EACH ROW SET NEW.id = 1",
    "LOCK TABLES entry WRITE",
    "SET GLOBAL read_only = 1",
    "SET @a = 1",
    "GRANT ALL ON *.* TO 'x'@'%'",
    "DELETE FROM factory_plugin_target_receipt WHERE id > 0",
    "DROP TABLE IF EXISTS Factory_Plugin_Target_Receipt",
    "INSERT IGNORE INTO entry (id) VALUES (SLEEP(9))",
];

async fn fault_76_a_payload_that_reaches_out_is_refused(flavour: Flavour) {
    let chain = stage(flavour).await;
    let counted = chain.changes().await;
    let connected = counter(&chain, "Connections").await;
    for (number, hostile) in HOSTILE.iter().enumerate() {
        // Alone, and behind a statement that is allowed.
        for payload in [(*hostile).to_owned(), format!("DELETE FROM entry WHERE id = 2; {hostile}")]
        {
            let plugin = Plugin::install(&payload, None);
            let step = plugin.step(&format!("p{number}"), Direction::Forward);
            let catalog = plugin.catalog();
            let outcome = DryRunV1::new(policy(), TARGET.parse().unwrap());
            let (error, retryable) = refused(outcome.execute(&step, &catalog).await);
            assert_eq!((error.code(), retryable), ("refused", false), "{payload}");
            let denied = |error: &ExecutionError| {
                error.refusals().iter().any(|it| it.code.as_str() == "policy-denied")
            };
            assert!(denied(&error), "{payload}: {error}");
            let (error, _) = refused(chain.deliver(&plugin, &step).await);
            assert!(denied(&error), "{payload}: {error}");
        }
    }
    assert_eq!(chain.changes().await, counted, "nothing was sent");
    assert!(counter(&chain, "Connections").await > connected);
    let claimed: u64 = chain.value(&format!("SELECT COUNT(*) FROM {LEDGER}")).await;
    assert_eq!(claimed, 0);
    assert_eq!(ids(&chain).await, [2]);
}
over_servers!(fault_76_a_payload_that_reaches_out_is_refused);

async fn fault_76_only_the_policys_print_is_sent_one_statement_a_packet(flavour: Flavour) {
    let chain = stage(flavour).await;
    chain.server.execute(&["SET GLOBAL log_output = 'TABLE'", "SET GLOBAL general_log = ON"]).await;
    let payload = "
        -- a comment of the author's
        insert ignore into entry (id, word) values (1, 'paid :done?');
        DELETE from entry where id = 2 /* another */;";
    let plugin = Plugin::install(payload, None);
    applied(&chain.deliver(&plugin, &plugin.step("up", Direction::Forward)).await);
    // Besides the host's own look at the engines of the tables.
    let log = "SELECT CONVERT(argument USING utf8mb4) FROM mysql.general_log \
               WHERE command_type = 'Execute' \
               AND argument NOT LIKE 'SELECT t.TABLE_NAME FROM information_schema.TABLES t JOIN%' \
               ORDER BY event_time";
    let executed: Vec<String> = chain.rows(log).await;
    assert_eq!(executed.len(), 2, "{executed:?}");
    for text in &executed {
        assert!(text.starts_with("/* tollgate-"), "{text}");
        assert!(text.contains("`plugin_preview`.`entry`"), "{text}");
        assert!(!text.contains("comment") && !text.contains("another"), "{text}");
    }
    // What looks like a parameter of the driver came through as it was.
    assert!(executed[0].contains("paid :done?"), "{}", executed[0]);
}
over_servers!(fault_76_only_the_policys_print_is_sent_one_statement_a_packet);

async fn fault_76_the_protocol_in_use_refuses_two_statements_in_one_text(flavour: Flavour) {
    let chain = stage(flavour).await;
    let mut admin = chain.admin().await;
    let two = "CREATE TABLE one (id INT); CREATE TABLE two (id INT)";
    match admin.prep(two).await {
        Err(mysql_async::Error::Server(error)) => assert_eq!(error.code, 1064),
        other => panic!("expected a refusal, got {other:?}"),
    }
    assert_eq!(crate::scene::tables(&chain).await, ["entry"]);
    // The same text in the other protocol: both would have run.
    admin.query_drop(two).await.unwrap();
    assert_eq!(crate::scene::tables(&chain).await, ["entry", "one", "two"]);
}
over_servers!(fault_76_the_protocol_in_use_refuses_two_statements_in_one_text);

/// A server on which the same text means something else, unless the session is pinned.
async fn fault_77_a_text_means_what_the_policy_read_whatever_the_server_prefers(flavour: Flavour) {
    let strange = flavour
        .builder()
        .arg("--sql-mode=ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT")
        .arg("--character-set-server=gbk");
    let chain = stage_on(strange).await;
    chain.admin_run("ALTER TABLE entry CONVERT TO CHARACTER SET utf8mb4").await;
    let mut plain = chain.server.connect(TARGET_USER, TARGET_PASSWORD, Some(TARGET)).await;
    let mode: Option<String> = plain.query_first("SELECT @@sql_mode").await.unwrap();
    assert!(mode.unwrap().contains("ANSI_QUOTES"), "the server's preference is another");
    let payload = r#"
        INSERT IGNORE INTO entry (id, word) VALUES
            (11, "double"), (12, 'it''s'), (13, 'back\'slash'), (14, '縗''; --'), (15, 'a\\'),
            (16, '\' OR 1 -- ');
        DELETE FROM entry WHERE word = "two";"#;
    let plugin = Plugin::install(payload, None);
    applied(&chain.deliver(&plugin, &plugin.step("up", Direction::Forward)).await);
    let words: Vec<(u32, String)> =
        chain.rows("SELECT id, HEX(CONVERT(word USING utf8mb4)) FROM entry ORDER BY id").await;
    let hex = |text: &str| text.bytes().fold(String::new(), |hex, byte| format!("{hex}{byte:02X}"));
    let expected: Vec<(u32, String)> = [
        (11, "double"),
        (12, "it's"),
        (13, "back'slash"),
        (14, "縗'; --"),
        (15, "a\\"),
        (16, "' OR 1 -- "),
    ]
    .map(|(id, word)| (id, hex(word)))
    .to_vec();
    assert_eq!(words, expected);
}
over_servers!(fault_77_a_text_means_what_the_policy_read_whatever_the_server_prefers);

fn hostile_policy(decide: Decide) -> Policy {
    let runtime = PolicyRuntime::new(RuntimeOptions::default()).unwrap();
    runtime.load_unpinned(&hostile::policy(decide)).unwrap()
}

async fn fault_78_a_policy_that_does_not_decide_lets_nothing_run(flavour: Flavour) {
    let chain = stage(flavour).await;
    let plugin = Plugin::install(ROWS, None);
    let step = plugin.step("up", Direction::Forward);
    let counted = chain.changes().await;
    for decide in [Decide::Trap, Decide::LoopForever, Decide::TakeMemory, Decide::Recurse] {
        let config = chain.config(&[]);
        let executor = SqlJdbcV1::new(config.sql_target.as_ref().unwrap(), hostile_policy(decide));
        let catalog = plugin.catalog();
        let outcome = executor.execute(&step, &catalog);
        let bounded = tokio::time::timeout(Duration::from_mins(2), outcome).await;
        let (error, _) = refused(bounded.expect("a decision is bounded"));
        assert!(matches!(error, ExecutionError::NoDecision(_)), "{decide:?}: {error:?}");
        assert!(error.refusals().is_empty(), "no decision is no denial");
    }
    assert_eq!(chain.changes().await, counted);
    assert_eq!(chain.receipt("up:1").await, None);
    applied(&chain.deliver(&plugin, &step).await);
}
over_servers!(fault_78_a_policy_that_does_not_decide_lets_nothing_run);

async fn registry(chain: &Chain, changes: &[(&str, &str)]) -> ExecutorRegistry {
    let runtime = PolicyRuntime::new(RuntimeOptions::default()).unwrap();
    let store = PolicyStore::embedded().unwrap();
    ExecutorRegistry::open(&chain.config(changes), &store, &runtime).await.unwrap()
}

/// Everything an outcome says: its message, its sources, its help, and its debug form.
fn said(outcome: &Outcome) -> String {
    let mut said = format!("{outcome:?} {outcome:#?}");
    if let Outcome::NotApplied { error, .. } = outcome {
        write!(said, "{error} {}", error.help()).unwrap();
        let mut source = error.source();
        while let Some(cause) = source {
            write!(said, " {cause} {cause:?}").unwrap();
            source = cause.source();
        }
    }
    said
}

async fn fault_79_secrets_are_in_no_output(flavour: Flavour) {
    let chain = Chain::start_on(flavour.builder()).await;
    let word = "canary-literal";
    chain.admin_run("CREATE TABLE entry (id INT PRIMARY KEY, word VARCHAR(4)) ENGINE=InnoDB").await;
    let mut seen = String::new();
    for (plan, payload) in [
        // Too long for its column, which the server's message quotes.
        (
            "a",
            format!(
                "INSERT INTO entry (id, word) VALUES (1, '{word}') ON DUPLICATE KEY UPDATE id = VALUES(id)"
            ),
        ),
        // A table that is not there.
        ("b", format!("DELETE FROM missing WHERE word = '{word}'")),
        // Denied, with the literal in the offending place.
        ("c", format!("UPDATE entry SET word = '{word}'")),
        // Applied.
        ("d", format!("DELETE FROM entry WHERE word = '{word}'")),
    ] {
        let plugin = Plugin::install(&payload, None);
        let step = plugin.step(plan, Direction::Forward);
        let outcome = chain.deliver(&plugin, &step).await;
        assert_eq!(outcome.as_str() == "applied", plan == "d", "{plan}: {outcome:?}");
        seen.push_str(&said(&outcome));
        let dry_run = DryRunV1::new(policy(), TARGET.parse().unwrap());
        write!(seen, "{:?}", dry_run.rehearse(&step, &plugin.catalog()).await).unwrap();
    }
    let receipts: Vec<(String, Option<String>, Option<String>)> =
        chain.rows(&format!("SELECT status, last_error_code, last_error FROM {LEDGER}")).await;
    assert_eq!(receipts.len(), 3);
    write!(seen, "{receipts:?}").unwrap();

    let wrong = [("SQL_TARGET_PASSWORD", "canary-wrong-password")];
    for changes in [&[][..], &wrong[..]] {
        let registry = registry(&chain, changes).await;
        let status = registry.status().await;
        assert_eq!(status.sql_target.as_str() == "ready", changes.is_empty());
        seen.push_str(&serde_json::to_string(&status).unwrap());
        write!(seen, "{status:?} {registry:?} {:?}", chain.executor_with(changes)).unwrap();
    }
    let port = chain.server.port().to_string();
    for secret in [TARGET_PASSWORD, CONTROL_PASSWORD, "canary", TARGET_USER, &port, "jdbc:mysql"] {
        assert!(!seen.contains(secret), "{secret} is in {seen}");
    }
}
over_servers!(fault_79_secrets_are_in_no_output);

async fn fault_80_a_status_of_a_silent_target_is_bounded_and_piles_nothing_up(flavour: Flavour) {
    let chain = stage(flavour).await;
    let relay = Relay::to(chain.server.port(), Changes::default()).await;
    let url = format!("jdbc:mysql://127.0.0.1:{}/{TARGET}", relay.port);
    let registry = registry(&chain, &[("SQL_TARGET_JDBC_URL", &url)]).await;
    let SqlTargetState::Ready { .. } = registry.status().await.sql_target else {
        panic!("it answers still");
    };
    let mut server = chain.server;
    server.signal("STOP");
    // What was found is good for a second.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let before = relay.accepted();
    let begun = Instant::now();
    let (a, b, c, d) =
        tokio::join!(registry.status(), registry.status(), registry.status(), registry.status());
    let took = begun.elapsed();
    let connected = relay.accepted() - before;
    let mut waiting = relay.open();
    for _ in 0..200 {
        if waiting == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        waiting = relay.open();
    }
    server.signal("CONT");
    for status in [a, b, c, d] {
        assert!(matches!(status.sql_target, SqlTargetState::Incomplete { .. }), "{status:?}");
    }
    assert!(took < STATUS_BUDGET + Duration::from_secs(5), "{took:?}");
    assert!((1..=4).contains(&connected), "{connected} connections for four looks");
    assert_eq!(waiting, 0, "nothing is left to wait for an answer");
}
over_servers!(fault_80_a_status_of_a_silent_target_is_bounded_and_piles_nothing_up);

/// Receipts in the ledger when someone pages through it.
const MANY: u64 = 10_000;

async fn fault_81_ten_thousand_receipts_are_paged_in_a_stable_order(flavour: Flavour) {
    let place = Place::on(flavour).await;
    place.succeed(&forward("first")).await;
    place.fail(&forward("failed")).await;
    let columns: String = place
        .one(
            "SELECT GROUP_CONCAT(column_name) FROM information_schema.columns \
             WHERE table_schema = 'plugin_preview' AND \
             table_name = 'factory_plugin_target_receipt' AND column_name NOT IN \
             ('id', 'step_idempotency_key', 'external_receipt', 'status', 'completed_at')",
        )
        .await;
    let ledger = tollgate_tests::place::LEDGER;
    place.execute("CREATE TABLE plugin_preview.digit (n INT PRIMARY KEY) ENGINE=InnoDB").await;
    place
        .execute("INSERT INTO plugin_preview.digit VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)")
        .await;
    // Every third of them failed.
    let number = "1000 * a.n + 100 * b.n + 10 * c.n + d.n";
    let digits = "plugin_preview.digit a, plugin_preview.digit b, plugin_preview.digit c, \
                  plugin_preview.digit d";
    place
        .execute(&format!(
            "INSERT INTO {ledger} (step_idempotency_key, external_receipt, status, completed_at, \
             {columns}) SELECT CONCAT('many-', {number}), \
             IF(MOD({number}, 3) = 0, NULL, CONCAT('sql:preview:many-', {number})), \
             IF(MOD({number}, 3) = 0, 'FAILED', 'SUCCEEDED'), \
             IF(MOD({number}, 3) = 0, NULL, r.completed_at), {columns} \
             FROM {digits}, {ledger} r WHERE r.step_idempotency_key = 'first'"
        ))
        .await;
    let mut connection = place.open().await;
    let (mut seen, mut order, mut before, mut pages) = (BTreeSet::new(), Vec::new(), None, 0_u32);
    loop {
        let page =
            place.ledger.list(&mut connection, &Filter::default(), before, 500).await.unwrap();
        for receipt in &page.receipts {
            assert!(seen.insert(receipt.key.to_string()), "{} is shown twice", receipt.key);
            order.push(receipt.id);
        }
        pages += 1;
        // A step that is delivered again meanwhile, and one that is new.
        let again = forward(&format!("many-{}", u64::from(pages) * 3));
        let lease = place.granted(&mut connection, &again).await;
        place.ledger.complete(&mut connection, &lease).await.unwrap();
        place.succeed(&forward(&format!("new-{pages}"))).await;
        match page.next {
            Some(next) => before = Some(next),
            None => break,
        }
    }
    assert_eq!(u64::try_from(seen.len()).unwrap(), MANY + 2);
    assert!(order.is_sorted_by(|older, newer| older > newer), "the youngest first");
    assert_eq!(pages, 21);
    let filter = Filter { standing: Some(tollgate::ledger::Standing::Failed), ..Filter::default() };
    let page = place.ledger.list(&mut connection, &filter, None, 500).await.unwrap();
    assert_eq!(page.receipts.len(), 500);
    assert!(page.receipts.iter().all(|receipt| receipt.status.as_str() == "FAILED"));
}
over_servers!(fault_81_ten_thousand_receipts_are_paged_in_a_stable_order);

async fn fault_81_the_text_of_an_error_steers_no_terminal(flavour: Flavour) {
    let chain = stage(flavour).await;
    let plugin = Plugin::install("DELETE FROM missing WHERE id = 1", None);
    refused(chain.deliver(&plugin, &plugin.step("up", Direction::Forward)).await);
    // Of a server that says more than it should.
    let hostile = "CONCAT(CHAR(27), '[31m<script>', CHAR(13), 'up:1 succeeded')";
    chain.admin_run(&format!("UPDATE {LEDGER} SET last_error = {hostile}")).await;
    for arguments in [&["receipts"][..], &["receipts", "--key", "up:1"]] {
        let run = crate::scene::tollgate(&chain, arguments);
        assert!(run.stdout.contains("<script>"), "{}", run.stdout);
        assert!(!run.stdout.contains(['\u{1b}', '\r']), "{:?}", run.stdout);
    }
}
over_servers!(fault_81_the_text_of_an_error_steers_no_terminal);
