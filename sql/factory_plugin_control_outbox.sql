-- The control outbox: one row for each step of a published plan, in the order it has to run.
--
-- Run it once, connected to the control catalog (never the target), with an account that may CREATE
-- TABLE there:
--
--   mysql --host=HOST --user=ADMIN -p CONTROL_CATALOG < factory_plugin_control_outbox.sql
--
-- or let `tollgate init control` apply and verify it. It is safe to repeat: an outbox that exists is
-- left as it is, rows and all. It runs on MySQL 5.6.4 and later and on MariaDB 10.6 and later.
--
-- For the operator:
--   * Steps of one plan and direction run strictly in the order of `position`; different plans run
--     side by side. Only the step whose turn it is can be claimed; those behind it are WAITING, and the
--     transaction that makes a step APPLIED makes the next one PENDING.
--   * A plan belongs to the environment it was submitted under (`-`: to none, no target was configured
--     then). Only workers of that environment claim its steps.
--   * `not_before` is the one time a row is found by: when a PENDING step is due, and when the claim of
--     a CLAIMED one runs out (it equals `lease_deadline` then, and renewal moves both). So both looks of
--     a worker, for due steps and for abandoned ones, read the first entry of one range of the index
--     (`status`, `environment_code`, `not_before`, `id`), however many rows are WAITING, APPLIED,
--     not due yet or of other environments. A worker names the index, because a server with stale statistics may choose to read the table instead.
--   * The lease of a row is the worker's. It is independent of the receipt's lease on the target,
--     which alone decides whether a payload may run.
--   * Every time is UTC, taken from this server's clock.
--   * No column ever holds a payload, a literal of one, an account name or a password.
--
-- The schema version stands in the table's comment.

CREATE TABLE IF NOT EXISTS `factory_plugin_control_outbox` (
  `id` BIGINT UNSIGNED NOT NULL AUTO_INCREMENT
    COMMENT 'order of enqueueing, lists are paged by it',
  `environment_code` VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
    COMMENT 'whose workers may claim the step, - for those without a target',
  `plan_code` VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
    COMMENT 'the plan the step is of',
  `plan_fingerprint` VARCHAR(71) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
    COMMENT 'the published plan, so that a plan enqueued again is recognised',
  `plan_step_count` INT UNSIGNED NOT NULL
    COMMENT 'forward steps of the plan, so that a missing row is noticed before it is taken back',
  `position` INT UNSIGNED NOT NULL
    COMMENT 'place of the step in its plan and direction, from 0',
  `step_idempotency_key` VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
    COMMENT 'the step, as every delivery names it',
  `compensation_key` VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NULL DEFAULT NULL
    COMMENT 'the key that what takes the step back will have, kept from other plans',
  `direction` VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
    COMMENT 'FORWARD or COMPENSATE',
  `executor_code` VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
    COMMENT 'who is to run it, such as sql-jdbc:v1',
  `step` MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
    COMMENT 'the step, and what takes it back, as JSON: identities and digests, no payload',
  `status` VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
    COMMENT 'WAITING, PENDING, CLAIMED, APPLIED, NEEDS_ATTENTION or SUPERSEDED',
  `attempt_count` INT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'how often the step was delivered, by any worker and with any outcome',
  `failure_count` INT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'how many of these failed; too many need a person, who sets it back',
  `lost_count` INT UNSIGNED NOT NULL DEFAULT 0
    COMMENT 'deliveries since the last report whose worker was never heard of again',
  `not_before` DATETIME(6) NOT NULL
    COMMENT 'PENDING: not delivered earlier; CLAIMED: the lease deadline, UTC',
  `lease_token` VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NULL DEFAULT NULL
    COMMENT 'the last claim, which alone may write this row while it is CLAIMED',
  `lease_deadline` DATETIME(6) NULL DEFAULT NULL
    COMMENT 'a CLAIMED row may be claimed again after it, UTC',
  `external_receipt` VARCHAR(191) CHARACTER SET ascii COLLATE ascii_bin NULL DEFAULT NULL
    COMMENT 'what the executor handed back, once APPLIED',
  `last_error_code` VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL DEFAULT NULL
    COMMENT 'code of the last failure',
  `last_error` VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL DEFAULT NULL
    COMMENT 'the last failure, bounded, without any literal',
  `created_at` DATETIME(6) NOT NULL
    COMMENT 'enqueued, UTC',
  `updated_at` DATETIME(6) NOT NULL
    COMMENT 'last write, UTC',
  `completed_at` DATETIME(6) NULL DEFAULT NULL
    COMMENT 'when it reached its end, UTC',
  PRIMARY KEY (`id`),
  UNIQUE KEY `uk_factory_plugin_control_outbox_key` (`step_idempotency_key`),
  UNIQUE KEY `uk_factory_plugin_control_outbox_compensation` (`compensation_key`),
  UNIQUE KEY `uk_factory_plugin_control_outbox_place` (`plan_code`, `direction`, `position`),
  KEY `ix_factory_plugin_control_outbox_due` (`status`, `environment_code`, `not_before`, `id`)
) ENGINE=InnoDB DEFAULT CHARACTER SET=utf8mb4 COLLATE=utf8mb4_bin
  COMMENT='tollgate control outbox, schema version 2';
