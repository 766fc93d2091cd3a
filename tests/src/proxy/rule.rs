//! What is to happen to which command.

use std::time::Duration;

/// A command of the protocol, by what a rule can ask about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `COM_QUERY`.
    Query,
    /// `COM_STMT_PREPARE`.
    Prepare,
    /// `COM_STMT_EXECUTE`; its text is that of the prepared statement.
    Execute,
    /// `COM_QUIT`, without a text.
    Quit,
    /// `COM_STMT_CLOSE`, without a text. The server does not answer it.
    Close,
    /// Any other, without a text.
    Other,
}

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// The server never gets the command; the connection is cut.
    CutBefore,
    /// The server gets half of the command, then nothing; the connection is cut.
    HalfCommand,
    /// The server carries it out; its answer is swallowed and the connection is cut.
    LoseAnswer,
    /// The server carries it out; half of its answer's first packet arrives, then the connection is
    /// cut.
    HalfAnswer,
    /// The command is held for a while, then goes on.
    Delay(Duration),
}

/// One act at one command.
#[derive(Debug, Clone)]
pub struct Rule {
    kinds: Vec<Kind>,
    text: String,
    is_whole: bool,
    nth: usize,
    act: Act,
    met: usize,
    fired: bool,
}

impl Rule {
    /// At the first command with this text that is to be carried out: a query, or an execution of
    /// what was prepared from it.
    pub fn at(text: &str, act: Act) -> Self {
        let kinds = vec![Kind::Query, Kind::Execute];
        let text = text.to_owned();
        Self { kinds, text, is_whole: false, nth: 1, act, met: 0, fired: false }
    }

    /// The same where this is the whole text: `COMMIT` also stands in names of settings.
    pub fn at_whole(text: &str, act: Act) -> Self {
        Self { is_whole: true, ..Self::at(text, act) }
    }

    /// At commands of this kind instead.
    #[must_use]
    pub fn of(mut self, kind: Kind) -> Self {
        self.kinds = vec![kind];
        self
    }

    /// At the nth such command, counted from 1 over all connections from when the rule was added.
    #[must_use]
    pub fn nth(mut self, nth: usize) -> Self {
        self.nth = nth;
        self
    }

    pub(super) fn has_fired(&self) -> bool {
        self.fired
    }

    /// Counts a command, and gives the act when it is the one.
    pub(super) fn meets(&mut self, kind: Kind, text: &str) -> Option<Act> {
        let fits = if self.is_whole { text == self.text } else { text.contains(&self.text) };
        if self.fired || !fits || !self.kinds.contains(&kind) {
            return None;
        }
        self.met += 1;
        self.fired = self.met == self.nth;
        self.fired.then_some(self.act)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_acts_once_at_the_nth_command_of_its_kind() {
        let mut rule = Rule::at("COMMIT", Act::CutBefore).nth(2);
        assert_eq!(rule.meets(Kind::Prepare, "COMMIT"), None);
        assert_eq!(rule.meets(Kind::Query, "COMMIT"), None);
        assert_eq!(rule.meets(Kind::Query, "ROLLBACK"), None);
        assert_eq!(rule.meets(Kind::Query, "COMMIT"), Some(Act::CutBefore));
        assert_eq!(rule.meets(Kind::Query, "COMMIT"), None);
        assert!(rule.has_fired());
        let mut whole = Rule::at_whole("COMMIT", Act::CutBefore);
        assert_eq!(whole.meets(Kind::Query, "READ COMMITTED"), None);
        assert_eq!(whole.meets(Kind::Query, "COMMIT"), Some(Act::CutBefore));
        let mut quit = Rule::at("", Act::CutBefore).of(Kind::Quit);
        assert_eq!(quit.meets(Kind::Quit, ""), Some(Act::CutBefore));
    }
}
