//! Who can do something about an error.

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

impl From<crate::policy::Blame> for Blame {
    fn from(blame: crate::policy::Blame) -> Self {
        match blame {
            crate::policy::Blame::Operator => Self::Operator,
            crate::policy::Blame::Policy => Self::Policy,
        }
    }
}

impl From<crate::ledger::Blame> for Blame {
    fn from(blame: crate::ledger::Blame) -> Self {
        match blame {
            crate::ledger::Blame::Operator => Self::Operator,
            crate::ledger::Blame::Caller => Self::Caller,
            crate::ledger::Blame::Server => Self::Server,
            crate::ledger::Blame::Bug => Self::Bug,
        }
    }
}

impl From<crate::target::Blame> for Blame {
    fn from(blame: crate::target::Blame) -> Self {
        match blame {
            crate::target::Blame::Operator => Self::Operator,
            crate::target::Blame::Policy => Self::Policy,
            crate::target::Blame::Server => Self::Server,
            crate::target::Blame::Bug => Self::Bug,
        }
    }
}
