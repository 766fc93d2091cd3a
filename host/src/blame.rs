//! Who can do something about an error.
//!
//! Every error of an operation says whom it concerns, so that a message reaches the right person.

use std::fmt;

/// Who can do something about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The people who run Tollgate and its target: configuration, accounts, grants, installation.
    Operator,
    /// The plugin's author: payload or declaration.
    Plugin,
    /// The policy's author.
    Policy,
    /// The control side: it asked for what contradicts an earlier request.
    Caller,
    /// The target server, or the way to it.
    Server,
    /// Tollgate itself.
    Bug,
}

impl Blame {
    /// The word for it, lowercase.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Plugin => "plugin",
            Self::Policy => "policy",
            Self::Caller => "caller",
            Self::Server => "server",
            Self::Bug => "bug",
        }
    }
}

impl fmt::Display for Blame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
