//! What a target's session is pinned to.

use std::time::Duration;

use crate::config::TargetBounds;
use crate::session::{Pin, Wanted};

use super::contract::SessionContract;

/// The collation literals have. Every supported server knows it, where the default of utf8mb4
/// differs: `general_ci`, `0900_ai_ci`, `uca1400_ai_ci`.
const COLLATION: &str = "utf8mb4_general_ci";

/// What `GROUP_CONCAT` may build: as much as a payload may be. Servers cut at 1 KiB or at 1 MiB.
const GROUP_CONCAT_BYTES_MAX: u64 = 1_048_576;

/// Variables that cannot be set without a privilege, or that belong to the catalog or the server.
/// They are recorded, because what a statement does depends on them.
pub(super) const RECORDED: &[&str] = &[
    "auto_increment_increment",
    "auto_increment_offset",
    "binlog_format",
    "character_set_collations",
    "character_set_database",
    "collation_database",
    "default_collation_for_utf8mb4",
    "enforce_storage_engine",
    "explicit_defaults_for_timestamp",
    "init_connect",
    "innodb_default_row_format",
    "innodb_file_format",
    "innodb_file_per_table",
    "innodb_flush_log_at_trx_commit",
    "innodb_large_prefix",
    "innodb_strict_mode",
    "log_bin",
    "lower_case_table_names",
    "max_allowed_packet",
    "partial_revokes",
    "sql_generate_invisible_primary_key",
    "sql_log_bin",
    "sql_require_primary_key",
    "sync_binlog",
];

/// The `NAMES` clause: three character sets and a collation (manual, "SET NAMES Statement").
pub(super) fn names() -> String {
    format!("NAMES utf8mb4 COLLATE {COLLATION}")
}

/// Every pin, in the order they are set. In a session that reads only, the server itself refuses
/// every write (manual, "SET TRANSACTION Statement": error 1792) and ends what takes long.
pub(super) fn pins(
    contract: &SessionContract,
    bounds: &TargetBounds,
    reads_only: bool,
) -> Vec<Pin> {
    let mut pins = vec![
        Pin::read_back(&["character_set_client"], &contract.character_set),
        Pin::read_back(&["character_set_connection"], &contract.character_set),
        Pin::read_back(&["character_set_results"], &contract.character_set),
        Pin::read_back(&["collation_connection"], COLLATION),
        Pin {
            names: &["sql_mode"],
            expression: Some(format!("'{}'", contract.sql_mode.join(","))),
            wanted: Wanted::Words(contract.sql_mode.clone()),
            optional: false,
        },
        Pin::text(&["time_zone"], &contract.time_zone),
    ];
    pins.extend(transactions(reads_only));
    pins.extend(bounded(bounds));
    if reads_only {
        pins.extend(Pin::bounded_reads());
    } else {
        pins.push(bounded_statements(bounds));
    }
    pins.extend(meaning());
    pins.extend(answers());
    pins.push(Pin::running_clock());
    pins
}

/// How statements become transactions. A holder turns autocommit off where it wants to.
fn transactions(reads_only: bool) -> Vec<Pin> {
    vec![
        Pin::switch(&["autocommit"], true),
        Pin::text(&["transaction_isolation", "tx_isolation"], "READ-COMMITTED"),
        Pin::switch(&["transaction_read_only", "tx_read_only"], reads_only),
        // A COMMIT that begins the next transaction, or ends the session, is not ours.
        Pin::text(&["completion_type"], "NO_CHAIN"),
        Pin::causal_reads(),
    ]
}

/// How long a statement of the host's own waits for a lock, in seconds: less than the host waits for
/// its answer (10 s in the ledger), so that the server gives up first and nothing is left behind that
/// applies later. The payload's statements may wait longer; see [`patience`].
const LOCK_WAIT_SECONDS: u64 = 5;

/// What a session is set to before a payload: its statements wait for locks as long as is configured.
pub(super) fn patience(lock_wait: Duration) -> String {
    let seconds = lock_wait.as_secs();
    format!("SESSION lock_wait_timeout = {seconds}, SESSION innodb_lock_wait_timeout = {seconds}")
}

/// How long a statement of the host's own waits.
pub(super) fn own_patience(lock_wait: Duration) -> Duration {
    lock_wait.min(Duration::from_secs(LOCK_WAIT_SECONDS))
}

/// No wait without end.
fn bounded(bounds: &TargetBounds) -> Vec<Pin> {
    let lock_wait = own_patience(bounds.lock_wait_timeout).as_secs();
    vec![
        // Metadata locks: the server's default is a year.
        Pin::number(&["lock_wait_timeout"], lock_wait),
        Pin::number(&["innodb_lock_wait_timeout"], lock_wait),
        // A holder that vanished: its row locks last this long.
        Pin::number(&["wait_timeout"], bounds.idle_session.as_secs()),
    ]
}

/// MariaDB only, and then the server itself ends a statement whose host is gone.
fn bounded_statements(bounds: &TargetBounds) -> Pin {
    Pin::number(&["max_statement_time"], bounds.statement_budget.as_secs().max(1)).where_known()
}

/// What the same text means on every server.
fn meaning() -> Vec<Pin> {
    vec![
        Pin::switch(&["foreign_key_checks"], true),
        Pin::switch(&["unique_checks"], true),
        Pin::switch(&["check_constraint_checks"], true).where_known(),
        Pin::text(&["default_storage_engine"], "InnoDB"),
        Pin::text(&["default_tmp_storage_engine"], "InnoDB").where_known(),
        // `id IS NULL` would find the last inserted row.
        Pin::switch(&["sql_auto_is_null"], false),
        // A DELETE without a key in its condition would be refused.
        Pin::switch(&["sql_safe_updates"], false),
        Pin::number(&["group_concat_max_len"], GROUP_CONCAT_BYTES_MAX),
        Pin::number(&["div_precision_increment"], 4),
        Pin::number(&["default_week_format"], 0),
        Pin::text(&["lc_time_names"], "en_US"),
        // MariaDB: `utf8` is three bytes, as on every MySQL.
        Pin::text(&["old_mode"], "UTF8_IS_UTF8MB3").where_known(),
    ]
}

/// What the server says of a statement: that an object was there already is a note. There may be no
/// room to keep it (`max_error_count` is not ours to set on MySQL 8), but it is counted. And all rows of
/// what is read.
fn answers() -> Vec<Pin> {
    vec![Pin::switch(&["sql_notes"], true), Pin::every_row()]
}

/// Every variable name a pin may have.
pub(super) fn names_of(pins: &[Pin]) -> impl Iterator<Item = &'static str> {
    pins.iter().flat_map(|pin| pin.names.iter().copied())
}
