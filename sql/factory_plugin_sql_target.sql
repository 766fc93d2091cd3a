-- The receipt ledger of an isolated target catalog: one row for each step that ran, or runs, there.
--
-- Run it once, connected to the target catalog, before sql-jdbc:v1 is enabled, with an account that
-- may CREATE TABLE there:
--
--   mysql --host=HOST --user=ADMIN -p TARGET_CATALOG < factory_plugin_sql_target.sql
--
-- or let `tollgate init target` apply and verify it. It is safe to repeat: a ledger that exists is
-- left as it is, rows and all. It runs on MySQL 5.6.4 and later and on MariaDB 10.6 and later.
--
-- For the operator:
--   * Never drop or truncate this table while a row is RUNNING: the holder can then no longer prove
--     what it did, and reports the step as indeterminate.
--   * Never delete a SUCCEEDED or PRUNED row: if its step is delivered again, it runs a second time.
--     `tollgate receipts prune` makes old rows small and keeps them.
--   * Never convert the table to another engine, character set or collation. The key is compared
--     byte for byte on purpose, and a ledger that lost its shape is refused by name.
--   * Every time is UTC, taken from this server's clock.
--   * No column ever holds a payload, a literal of one, an account name or a password.
--
-- The schema version stands in the table's comment. A Tollgate that knows only older versions reads
-- a newer ledger and refuses to write it.

CREATE TABLE IF NOT EXISTS `factory_plugin_target_receipt` (
  `id` BIGINT UNSIGNED NOT NULL AUTO_INCREMENT
    COMMENT 'order of first claim, lists are paged by it',
  `step_idempotency_key` VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
    COMMENT 'the step, as the control side names it in every delivery',
  `environment_code` VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
    COMMENT 'identity: the environment',
  `plugin_code` VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
    COMMENT 'identity: the plugin',
  `plugin_version` VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
    COMMENT 'identity: the released version of the plugin',
  `direction` VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
    COMMENT 'identity: FORWARD or COMPENSATE',
  `content_hash` VARCHAR(71) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
    COMMENT 'identity: sha256 of the exact payload',
  `counterpart_key` VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NULL DEFAULT NULL
    COMMENT 'compensation: the step it reverses; forward: the compensation that was begun for it',
  `executor_code` VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
    COMMENT 'who ran it, such as sql-jdbc:v1',
  `policy_digest` VARCHAR(71) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
    COMMENT 'the policy component that allowed it',
  `decision_digest` VARCHAR(71) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
    COMMENT 'the decision that allowed it',
  `status` VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
    COMMENT 'RUNNING, SUCCEEDED, FAILED or PRUNED; SUCCEEDED and PRUNED are final',
  `lease_token` VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
    COMMENT 'who may write this row while it is RUNNING',
  `lease_deadline` DATETIME(6) NOT NULL
    COMMENT 'a RUNNING row may be taken over after it, UTC',
  `generation` BIGINT UNSIGNED NOT NULL
    COMMENT 'grows with every write, so that no write leaves the row unchanged',
  `execution_count` INT UNSIGNED NOT NULL
    COMMENT 'how often the payload was allowed to start',
  `statement_count` INT UNSIGNED NOT NULL
    COMMENT 'statements of the payload',
  `statements_done` INT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'progress for people, decides nothing',
  `session_id` BIGINT UNSIGNED NULL DEFAULT NULL
    COMMENT 'CONNECTION_ID() of the session that runs, or last ran, the payload',
  `session_marker` VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL DEFAULT NULL
    COMMENT 'name of the user-level lock which that session holds until it is gone',
  `server_id` VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NULL DEFAULT NULL
    COMMENT 'identity of the server process of that session, start time included',
  `external_receipt` VARCHAR(191) CHARACTER SET ascii COLLATE ascii_bin NULL DEFAULT NULL
    COMMENT 'sql:<environment-code>:<step-idempotency-key>, once SUCCEEDED',
  `last_error_code` VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL DEFAULT NULL
    COMMENT 'code of the last failure',
  `last_error` VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL DEFAULT NULL
    COMMENT 'the last failure, bounded, without any literal',
  `created_at` DATETIME(6) NOT NULL
    COMMENT 'first claim, UTC',
  `updated_at` DATETIME(6) NOT NULL
    COMMENT 'last write, UTC',
  `completed_at` DATETIME(6) NULL DEFAULT NULL
    COMMENT 'when it SUCCEEDED, UTC',
  PRIMARY KEY (`id`),
  UNIQUE KEY `uk_factory_plugin_target_receipt_key` (`step_idempotency_key`),
  KEY `ix_factory_plugin_target_receipt_plugin`
    (`environment_code`, `plugin_code`, `status`, `direction`)
) ENGINE=InnoDB DEFAULT CHARACTER SET=utf8mb4 COLLATE=utf8mb4_bin
  COMMENT='tollgate receipt ledger, schema version 1';
