//! What target sessions are opened for, and which rights the account has to have for it.

use super::grants_sql::{READING_RIGHTS, step_rights};
use crate::session::Rights;

/// What sessions are opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To carry out steps.
    Steps,
    /// To read.
    Reading,
    /// To look at what a step would find. Nothing is written, and the account is that of the steps.
    Looking,
    /// The same by somebody whose account may be that of the steps, or one that can only read.
    Watching,
}

/// What an account does not have.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lack {
    /// Rights, at least one.
    Rights(Vec<&'static str>),
    /// It can only read, so it is not known what that of the steps has.
    Unknown,
}

impl Purpose {
    /// Whether the server itself is to refuse every write.
    pub(super) const fn reads_only(self) -> bool {
        !matches!(self, Self::Steps)
    }

    /// What the account needs.
    pub(super) fn rights(self) -> Vec<&'static str> {
        match self {
            Self::Reading => READING_RIGHTS.to_vec(),
            Self::Steps | Self::Looking | Self::Watching => step_rights(),
        }
    }

    /// What the account does not have; none when it has everything it needs.
    pub(super) fn lack(self, rights: &Rights) -> Option<Lack> {
        let needed = self.rights();
        let missing = rights.lacking(&needed);
        if missing.is_empty() {
            return None;
        }
        let is_reader = rights.lacking(READING_RIGHTS).is_empty()
            && missing.len() + READING_RIGHTS.len() == needed.len();
        if self == Self::Watching && is_reader {
            Some(Lack::Unknown)
        } else {
            Some(Lack::Rights(missing))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{GrantLine, GrantReading};

    fn lack(purpose: Purpose, granted: &str) -> Option<Lack> {
        let mut rights = Rights::default();
        let line = format!("GRANT {granted} ON `shop`.* TO `t`@`%`");
        let reading = GrantReading { catalog: "shop", folds_case: false, has_wildcards: true };
        rights.take(&GrantLine::of(&line), reading);
        purpose.lack(&rights)
    }

    #[test]
    fn who_reads_needs_to_read_and_who_looks_needs_what_steps_need() {
        let writes = Some(Lack::Rights(step_rights().split_off(1)));
        assert_eq!(lack(Purpose::Reading, "SELECT"), None);
        assert_eq!(lack(Purpose::Steps, "SELECT"), writes);
        assert_eq!(lack(Purpose::Looking, "SELECT"), writes);
        assert_eq!(lack(Purpose::Watching, "SELECT"), Some(Lack::Unknown));
        for purpose in [Purpose::Steps, Purpose::Looking, Purpose::Watching] {
            assert_eq!(lack(purpose, &step_rights().join(", ")), None);
            let rest = step_rights().split_off(2).join(", ");
            let one = Some(Lack::Rights(vec!["INSERT"]));
            assert_eq!(lack(purpose, &format!("SELECT, {rest}")), one, "{purpose:?}");
            assert_eq!(lack(purpose, "USAGE"), Some(Lack::Rights(step_rights())), "{purpose:?}");
        }
        assert_eq!(lack(Purpose::Reading, "INSERT"), Some(Lack::Rights(vec!["SELECT"])));
    }
}
