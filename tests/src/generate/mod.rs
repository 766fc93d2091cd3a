//! Random payloads of the kinds the policy allows, and hostile ones made from them.
//!
//! A payload is written from choices that come out of bytes: the same bytes give the same payload,
//! fewer bytes a simpler one, no bytes the simplest. That is what lets a failing payload be shrunk
//! without knowing its grammar. What is written is meant to be legitimate, so a denial is as much a
//! finding as a divergence.

mod choices;
mod delete;
mod expression;
mod hostile;
mod insert;
mod literal;
mod query;
mod scope;
mod table;
mod writer;

use proptest::collection::{SizeRange, vec};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::fidelity::Setup;

pub use choices::Choices;
pub use hostile::{HIDDEN_FORMS, hostile};
pub use writer::{Script, Slot, Writer};

/// The tables generated payloads are about.
pub fn setup() -> Setup {
    Setup::of(&[
        "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(64), n INT NOT NULL DEFAULT 0, \
         j TEXT, b VARBINARY(64), d DOUBLE, dt DATETIME NULL, UNIQUE KEY (name))",
        "INSERT INTO t VALUES (1, 'a', 1, '[1, {\"k\": \"v\"}]', X'00FF', 1.5, '2024-02-29 12:34:56'), \
         (2, 'b''\\\\\"', -2, '{}', '%_', -0.25, '1999-12-31 23:59:59'), \
         (3, NULL, 0, NULL, NULL, NULL, NULL), \
         (4, 'Ä x日', 2147483647, '\\\\', 'a\\\\%', 1e100, '2000-01-01 00:00:00')",
        "CREATE TABLE u (id INT PRIMARY KEY, tid INT, v VARCHAR(64))",
        "INSERT INTO u VALUES (1, 1, 'x'), (2, 2, 'y'), (3, 9, 'a')",
        "CREATE TABLE `order` (id INT AUTO_INCREMENT PRIMARY KEY, `key` LONGBLOB, s VARCHAR(191), \
         q DECIMAL(30, 10), `at` DATETIME, UNIQUE KEY (s))",
        "INSERT INTO `order` VALUES (1, 'k', 's', 1.5, NULL)",
    ])
}

/// The tables that generated definitions point at.
pub fn setup_of_tables() -> Setup {
    Setup::of(&[
        "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(64), UNIQUE KEY (name))",
        "CREATE TABLE u (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT NOT NULL) COMMENT 'u'",
    ])
}

/// Which payloads to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// INSERTs whose rows are random expressions.
    Expressions,
    /// Tables created, filled and dropped.
    Tables,
    /// INSERTs of every form, upserts among them.
    Inserts,
    /// DELETEs with random conditions.
    Deletes,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Expressions, Self::Tables, Self::Inserts, Self::Deletes];

    /// The payload these bytes stand for.
    pub fn write(self, bytes: &[u8]) -> Script {
        let mut writer = Writer::new(Choices::of(bytes));
        let statements = 1 + writer.choices.below(3);
        for index in 0..statements {
            if index > 0 {
                writer.token(";");
            }
            writer.place(Slot::Statement, |writer| match self {
                Self::Expressions => insert::of_expressions(writer),
                Self::Tables => table::statement(writer, index),
                Self::Inserts => insert::any_form(writer),
                Self::Deletes => delete::statement(writer),
            });
        }
        writer.finish()
    }
}

/// The bytes of one case, which can be shrunk.
pub fn bytes(seed: u64, size: impl Into<SizeRange>) -> impl ValueTree<Value = Vec<u8>> {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &key);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    vec(proptest::num::u8::ANY, size).new_tree(&mut runner).expect("bytes are never rejected")
}
