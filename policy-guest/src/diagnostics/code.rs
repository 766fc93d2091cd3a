//! Every code there is, each with a payload that shows it and one that does not.
//!
//! The list is what docs/diagnostics.md is generated from; a test decides on every example.

use super::Code;
use crate::decision::Severity;

macro_rules! codes {
    ($($name:ident $id:literal $severity:ident {
        message: $message:literal, help: $help:literal, bad: $bad:expr, good: $good:expr $(,)?
    })*) => {
        $(
            #[doc = concat!("`", $id, "`: ", $message)]
            pub const $name: Code = Code {
                id: $id,
                severity: Severity::$severity,
                message: $message,
                help: $help,
                bad: $bad,
                good: $good,
            };
        )*

        /// Every code, in the order of reading: payload, text, statement, names, expressions.
        pub const ALL: &[&Code] = &[$(&$name),*];
    };
}

codes! {
    PAYLOAD_BYTES "payload-bytes" Error {
        message: "payload is larger than 1,048,576 bytes",
        help: "split the contribution into several payloads",
        bad: "", good: "",
    }
    PAYLOAD_UTF8 "payload-utf8" Error {
        message: "payload is not UTF-8",
        help: "save the file as UTF-8 without a byte order mark",
        bad: "", good: "",
    }
    PAYLOAD_EMPTY "payload-empty" Error {
        message: "payload has no statement",
        help: "write at least one statement, or leave the contribution out",
        bad: "-- nothing but a comment\n;",
        good: "DROP TABLE IF EXISTS greeting",
    }
    STATEMENT_COUNT "statement-count" Error {
        message: "payload has more than 100 statements",
        help: "split the contribution, or put rows of one table into one INSERT",
        bad: "", good: "",
    }
    TOKEN_COUNT "token-count" Error {
        message: "payload has more than 700,000 tokens",
        help: "split the contribution into several payloads",
        bad: "", good: "",
    }
    ITEM_COUNT "item-count" Error {
        message: "list has more than 4,096 items",
        help: "no table has more columns; split the statement, rows and lists of literals do not count",
        bad: "", good: "",
    }
    CHARACTER "character" Error {
        message: "character that has no place outside a string",
        help: "remove it, or put it into a string",
        bad: "DROP TABLE IF EXISTS\u{a0}greeting",
        good: "DROP TABLE IF EXISTS greeting",
    }
    EXECUTABLE_COMMENT "executable-comment" Error {
        message: "comment that some servers execute",
        help: "write its content as plain SQL, or remove it",
        bad: "DROP TABLE IF EXISTS greeting /*!50000 , visitor */",
        good: "DROP TABLE IF EXISTS greeting, visitor",
    }
    HINT "optimizer-hint" Error {
        message: "optimizer hint",
        help: "remove it: a hint can change the session",
        bad: "INSERT /*+ SET_VAR(sql_mode='') */ IGNORE INTO greeting (id) VALUES (1)",
        good: "INSERT IGNORE INTO greeting (id) VALUES (1)",
    }
    UNTERMINATED "unterminated" Error {
        message: "text has no end",
        help: "close it",
        bad: "INSERT IGNORE INTO greeting (word) VALUES ('hello)",
        good: "INSERT IGNORE INTO greeting (word) VALUES ('hello')",
    }
    LITERAL "literal" Error {
        message: "malformed literal",
        help: "write an even number of digits in X'…', and only 0 and 1 in b'…'",
        bad: "INSERT IGNORE INTO greeting (id) VALUES (X'ABC')",
        good: "INSERT IGNORE INTO greeting (id) VALUES (X'0ABC')",
    }
    VARIABLE "variable" Error {
        message: "user or system variable",
        help: "write the value itself",
        bad: "INSERT IGNORE INTO greeting (word) VALUES (@@version)",
        good: "INSERT IGNORE INTO greeting (word) VALUES ('9.7')",
    }
    PLACEHOLDER "placeholder" Error {
        message: "placeholder, and nothing binds a value to it",
        help: "write the value itself",
        bad: "INSERT IGNORE INTO greeting (id) VALUES (?)",
        good: "INSERT IGNORE INTO greeting (id) VALUES (1)",
    }
    DOUBLE_BAR "double-bar" Error {
        message: "`||`, which is OR or concatenation by the session",
        help: "write OR, or CONCAT(…)",
        bad: "DELETE FROM greeting WHERE id = 1 || id = 2",
        good: "DELETE FROM greeting WHERE id = 1 OR id = 2",
    }
    JSON_ARROW "json-arrow" Error {
        message: "`->`, which only some servers have",
        help: "write JSON_EXTRACT(…), with JSON_UNQUOTE(…) for `->>`",
        bad: "INSERT IGNORE INTO greeting (word) SELECT doc->'$.w' FROM visitor",
        good: "INSERT IGNORE INTO greeting (word) SELECT JSON_EXTRACT(doc, '$.w') FROM visitor",
    }
    OPERATOR_COUNT "operator-count" Error {
        message: "expression chains more than 1,000 operators",
        help: "write a list as IN (…), or split the statement",
        bad: "", good: "",
    }
    JOIN_COUNT "join-count" Error {
        message: "statement has more than 200 UNION and JOIN keywords",
        help: "split the statement",
        bad: "", good: "",
    }
    NESTING "nesting" Error {
        message: "expression is nested more than 40 deep",
        help: "remove parentheses that are not needed, or split the statement",
        bad: "DELETE FROM greeting WHERE ((((((((((((((((((((((((((((((((((((((((((id = 1))))))))))))))))))))))))))))))))))))))))))",
        good: "DELETE FROM greeting WHERE ((id = 1))",
    }
    STATEMENT_KIND "statement-kind" Error {
        message: "statement of a kind that policy v1 does not run",
        help: "use CREATE TABLE IF NOT EXISTS, DROP TABLE IF EXISTS, INSERT IGNORE, INSERT … ON DUPLICATE KEY UPDATE or DELETE … WHERE",
        bad: "UPDATE greeting SET word = 'hi' WHERE id = 1",
        good: "INSERT INTO greeting (id, word) VALUES (1, 'hi') ON DUPLICATE KEY UPDATE word = VALUES(word)",
    }
    SYNTAX "syntax" Error {
        message: "text is not understood here",
        help: "write the statement in the plain form the MySQL manual gives",
        bad: "DROP TABLE IF EXISTS greeting NOWAIT",
        good: "DROP TABLE IF EXISTS greeting",
    }
    IF_NOT_EXISTS "if-not-exists-missing" Error {
        message: "CREATE TABLE fails when it is repeated",
        help: "write CREATE TABLE IF NOT EXISTS",
        bad: "CREATE TABLE greeting (id INT)",
        good: "CREATE TABLE IF NOT EXISTS greeting (id INT)",
    }
    IF_EXISTS "if-exists-missing" Error {
        message: "DROP TABLE fails when it is repeated",
        help: "write DROP TABLE IF EXISTS",
        bad: "DROP TABLE greeting",
        good: "DROP TABLE IF EXISTS greeting",
    }
    INSERT_PLAIN "insert-not-repeatable" Error {
        message: "INSERT adds its rows again when it is repeated",
        help: "write INSERT IGNORE, or add ON DUPLICATE KEY UPDATE",
        bad: "INSERT INTO greeting (id) VALUES (1)",
        good: "INSERT IGNORE INTO greeting (id) VALUES (1)",
    }
    MODIFIER "modifier" Error {
        message: "statement modifier",
        help: "remove it",
        bad: "INSERT LOW_PRIORITY IGNORE INTO greeting (id) VALUES (1)",
        good: "INSERT IGNORE INTO greeting (id) VALUES (1)",
    }
    CATALOG "catalog-foreign" Error {
        message: "table outside the allowed catalog",
        help: "name tables of the allowed catalog, or leave the catalog out",
        bad: "DROP TABLE IF EXISTS another_catalog.greeting",
        good: "DROP TABLE IF EXISTS greeting",
    }
    PROTECTED "table-protected" Error {
        message: "table that belongs to the host",
        help: "choose another name: `factory_plugin_` is reserved",
        bad: "DELETE FROM factory_plugin_target_receipt WHERE id = 1",
        good: "DELETE FROM greeting WHERE id = 1",
    }
    VIRTUAL "table-virtual" Error {
        message: "name that some servers read as a generated sequence",
        help: "choose a name that is not of the form `seq_…_to_…`",
        bad: "INSERT IGNORE INTO greeting (id) SELECT seq FROM seq_1_to_9",
        good: "INSERT IGNORE INTO greeting (id) SELECT id FROM visitor",
    }
    NAME "name" Error {
        message: "name with characters or a length that policy v1 does not carry",
        help: "use at most 64 of `A-Z a-z 0-9 _ $`, not only digits",
        bad: "DROP TABLE IF EXISTS `grüße`",
        good: "DROP TABLE IF EXISTS gruesse",
    }
    RESERVED "name-reserved" Error {
        message: "reserved word used as a name",
        help: "put it into backticks",
        bad: "INSERT IGNORE INTO greeting (id, `key`, order) VALUES (1, 2, 3)",
        good: "INSERT IGNORE INTO greeting (id, `key`, `order`) VALUES (1, 2, 3)",
    }
    FUNCTION "function" Error {
        message: "function that is not on policy v1's list of pure functions",
        help: "write the value itself; docs/policy.md lists the functions",
        bad: "INSERT IGNORE INTO greeting (id) VALUES (SLEEP(1))",
        good: "INSERT IGNORE INTO greeting (id) VALUES (ABS(-1))",
    }
    FUNCTION_FORM "function-form" Error {
        message: "function call in a form that policy v1 does not carry",
        help: "write the unquoted name, directly followed by its arguments in parentheses",
        bad: "INSERT IGNORE INTO greeting (id) VALUES (`abs`(1))",
        good: "INSERT IGNORE INTO greeting (id) VALUES (ABS(1))",
    }
    TIME_FUNCTION "time-function" Advisory {
        message: "value depends on when the statement runs",
        help: "fine for a row that is written once; a constant is repeatable",
        bad: "INSERT IGNORE INTO greeting (id, said_at) VALUES (1, NOW())",
        good: "INSERT IGNORE INTO greeting (id, said_at) VALUES (1, '2026-01-01')",
    }
    INSERT_SELECT "insert-select" Advisory {
        message: "rows depend on what the catalog holds when the statement runs",
        help: "fine when the tables it reads belong to the plugin",
        bad: "INSERT IGNORE INTO greeting (id) SELECT id FROM visitor",
        good: "INSERT IGNORE INTO greeting (id) VALUES (1)",
    }
    GROUPING "operator-grouping" Error {
        message: "operators whose grouping servers read differently",
        help: "put the inner operation into parentheses",
        bad: "DELETE FROM greeting WHERE id IN (1) IN (1)",
        good: "DELETE FROM greeting WHERE (id IN (1)) = 1 AND id = 2",
    }
    EXPRESSION "expression" Error {
        message: "expression of a kind that policy v1 does not run",
        help: "write it with the operators and functions docs/policy.md lists",
        bad: "INSERT IGNORE INTO greeting (id) VALUES (MATCH (word) AGAINST ('x'))",
        good: "INSERT IGNORE INTO greeting (id) VALUES ('x' = 'x')",
    }
    ADJACENT "literal-adjacent" Error {
        message: "adjacent strings where the server takes one",
        help: "join them into one string",
        bad: "CREATE TABLE IF NOT EXISTS greeting (id INT COMMENT 'a' 'b')",
        good: "CREATE TABLE IF NOT EXISTS greeting (id INT COMMENT 'ab')",
    }
    SMUGGLED "literal-reads-as-sql" Error {
        message: "string that reads as SQL if its quotes are misread",
        help: "outside row values, write the text without quotes and comment signs next to SQL words",
        bad: "CREATE TABLE IF NOT EXISTS greeting (id INT) COMMENT = 'x'' SELECT 1'",
        good: "CREATE TABLE IF NOT EXISTS greeting (id INT) COMMENT = 'selects one'",
    }
    CHARACTER_SET "character-set" Error {
        message: "character set or collation that policy v1 does not carry",
        help: "use utf8mb4; a literal may also be introduced by _utf8, _latin1, _ascii or _binary",
        bad: "INSERT IGNORE INTO greeting (word) VALUES (_utf16 X'0041')",
        good: "INSERT IGNORE INTO greeting (word) VALUES (_utf8mb4 X'41')",
    }
    TABLE_KIND "table-kind" Error {
        message: "kind of table that policy v1 does not create",
        help: "create a plain table: no TEMPORARY, OR REPLACE or AS SELECT",
        bad: "CREATE TEMPORARY TABLE IF NOT EXISTS greeting (id INT)",
        good: "CREATE TABLE IF NOT EXISTS greeting (id INT)",
    }
    ENGINE "table-engine" Error {
        message: "storage engine other than InnoDB",
        help: "write ENGINE=InnoDB or leave the engine out",
        bad: "CREATE TABLE IF NOT EXISTS greeting (id INT) ENGINE=MyISAM",
        good: "CREATE TABLE IF NOT EXISTS greeting (id INT) ENGINE=InnoDB",
    }
    TABLE_OPTION "table-option" Error {
        message: "table option that policy v1 does not carry",
        help: "remove it; ENGINE, CHARSET, COLLATE, COMMENT, AUTO_INCREMENT, ROW_FORMAT, KEY_BLOCK_SIZE and the row and statistics hints are carried",
        bad: "CREATE TABLE IF NOT EXISTS greeting (id INT) CONNECTION='mysql://elsewhere/t'",
        good: "CREATE TABLE IF NOT EXISTS greeting (id INT) ROW_FORMAT=DYNAMIC",
    }
    PARTITION "partition" Error {
        message: "partitioned table",
        help: "create the table without PARTITION BY; partitioning is the operator's decision",
        bad: "CREATE TABLE IF NOT EXISTS greeting (id INT) PARTITION BY HASH (id) PARTITIONS 4",
        good: "CREATE TABLE IF NOT EXISTS greeting (id INT)",
    }
    COLUMN_TYPE "column-type" Error {
        message: "column type that policy v1 does not carry",
        help: "use a type all supported servers have",
        bad: "CREATE TABLE IF NOT EXISTS greeting (id UUID)",
        good: "CREATE TABLE IF NOT EXISTS greeting (id BINARY(16))",
    }
    COLUMN_OPTION "column-option" Error {
        message: "column attribute that policy v1 does not carry",
        help: "remove it",
        bad: "CREATE TABLE IF NOT EXISTS greeting (id INT INVISIBLE)",
        good: "CREATE TABLE IF NOT EXISTS greeting (id INT)",
    }
    DEFAULT "column-default" Error {
        message: "default that policy v1 does not carry",
        help: "write a literal, CURRENT_TIMESTAMP, or a pure expression in parentheses",
        bad: "CREATE TABLE IF NOT EXISTS greeting (id INT DEFAULT ABS(1))",
        good: "CREATE TABLE IF NOT EXISTS greeting (id INT DEFAULT (ABS(1)))",
    }
    INDEX_OPTION "index-option" Error {
        message: "index or constraint in a form that policy v1 does not carry",
        help: "use USING BTREE or HASH, KEY_BLOCK_SIZE and COMMENT; leave visibility and parser out",
        bad: "CREATE TABLE IF NOT EXISTS greeting (id INT, CHECK (id > 0) NOT ENFORCED)",
        good: "CREATE TABLE IF NOT EXISTS greeting (id INT, CHECK (id > 0))",
    }
    INSERT_FORM "insert-form" Error {
        message: "INSERT in a form that policy v1 does not carry",
        help: "use VALUES, SET or SELECT",
        bad: "INSERT IGNORE INTO greeting (id) VALUES ROW(1)",
        good: "INSERT IGNORE INTO greeting (id) VALUES (1)",
    }
    UPDATE_VALUE "update-not-repeatable" Error {
        message: "value reads a stored column, so repeating the statement may change it again",
        help: "write a literal, VALUES(column) or a function of them; `n = n` leaves a row as it is",
        bad: "INSERT INTO greeting (id, n) VALUES (1, 1) ON DUPLICATE KEY UPDATE n = n + 1",
        good: "INSERT INTO greeting (id, n) VALUES (1, 1) ON DUPLICATE KEY UPDATE n = VALUES(n)",
    }
    RETURNING "returning" Error {
        message: "RETURNING, and nobody reads the rows",
        help: "remove it",
        bad: "DELETE FROM greeting WHERE id = 1 RETURNING id",
        good: "DELETE FROM greeting WHERE id = 1",
    }
    DELETE_FORM "delete-form" Error {
        message: "DELETE in a form that policy v1 does not carry",
        help: "write DELETE FROM table WHERE …, or DELETE table FROM table JOIN … WHERE …",
        bad: "DELETE greeting.* FROM greeting WHERE id = 1",
        good: "DELETE FROM greeting WHERE id = 1",
    }
    DELETE_ORDER "delete-order-limit" Error {
        message: "ORDER BY or LIMIT, so a repeat deletes further rows",
        help: "name the rows in the condition",
        bad: "DELETE FROM greeting WHERE id > 0 LIMIT 1",
        good: "DELETE FROM greeting WHERE id = 1",
    }
    DELETE_ALL "delete-without-where" Error {
        message: "DELETE without WHERE empties the table",
        help: "add a condition that names rows, or DROP and CREATE the table",
        bad: "DELETE FROM greeting",
        good: "DELETE FROM greeting WHERE id = 1",
    }
    DELETE_CONDITION "delete-not-selective" Error {
        message: "condition does not select rows in every alternative",
        help: "compare a column with a value in every branch of OR",
        bad: "DELETE FROM greeting WHERE id = 1 OR word IS NOT NULL",
        good: "DELETE FROM greeting WHERE id = 1 OR word = 'hello'",
    }
    CONSTANT_CONDITION "constant-comparison" Error {
        message: "comparison of constants in a condition",
        help: "remove it: it is always true or always false",
        bad: "DELETE FROM greeting WHERE id = 1 AND 'a' <> 'b'",
        good: "DELETE FROM greeting WHERE id = 1",
    }
    SELECT_FORM "select-form" Error {
        message: "SELECT with a clause that policy v1 does not carry",
        help: "use a plain SELECT: no WITH, locking, INTO, index hints, window functions or modifiers",
        bad: "INSERT IGNORE INTO greeting (id) SELECT id FROM visitor FOR UPDATE",
        good: "INSERT IGNORE INTO greeting (id) SELECT id FROM visitor",
    }
    JOIN_CONDITION "join-condition" Error {
        message: "join without ON or USING",
        help: "add ON (…), or write CROSS JOIN",
        bad: "INSERT IGNORE INTO greeting (id) SELECT g.id FROM greeting g JOIN visitor v",
        good: "INSERT IGNORE INTO greeting (id) SELECT g.id FROM greeting g JOIN visitor v ON v.id = g.id",
    }
    FURTHER "further-errors" Error {
        message: "more findings than are listed",
        help: "mend those that are listed, and check again",
        bad: "", good: "",
    }
    FURTHER_ADVICE "further-advisories" Advisory {
        message: "more advisories than are listed",
        help: "a constant in place of a clock is repeatable",
        bad: "", good: "",
    }
    UNSTABLE "normalisation-unstable" Error {
        message: "normalised text does not read back as what was understood",
        help: "report the payload: the policy refuses what it cannot print faithfully",
        bad: "", good: "",
    }
}
