//! Checked configuration.
//!
//! Everything comes from `FACTORY_PLUGIN_*` variables, or from the same keys in a TOML file below
//! them. Reading it either gives a [`Config`] whose every part is a checked type, or every problem
//! at once, each by its variable's name and never with a secret's value.
//!
//! It opens no connection: whether the target is what the configuration says is for `target`.

mod environment;
mod keys;
mod model;
mod problem;
mod read;
mod reader;

pub use crate::jdbc::JdbcUrl;
pub use environment::{Environment, Layered, NotUnicode, ProcessEnvironment, TomlFile};
pub use keys::{KEYS, Key, PREFIX};
pub use model::{
    Config, ControlConfig, Credentials, GrantCheck, SqlTargetConfig, TargetBounds, WorkerBounds,
};
pub use problem::{ConfigErrors, ConfigProblem, PartialConfig, ProblemCode};
