//! The session a policy asks for.

/// The session a decision holds for. It is pinned on every target connection and read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionContract {
    /// The members of `sql_mode`, none besides them.
    pub sql_mode: Vec<String>,
    /// Client, connection and results character set; only utf8mb4 is spoken.
    pub character_set: String,
    /// `time_zone`, as an offset from UTC.
    pub time_zone: String,
}

/// For connections on which no payload runs: reading the ledger, the first set-up.
impl Default for SessionContract {
    fn default() -> Self {
        Self {
            sql_mode: vec!["NO_ENGINE_SUBSTITUTION".to_owned(), "STRICT_TRANS_TABLES".to_owned()],
            character_set: "utf8mb4".to_owned(),
            time_zone: "+00:00".to_owned(),
        }
    }
}

/// What a contract asks for and no connection of ours can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ContractProblem {
    /// A member of `sql_mode` is not a word.
    #[error("asks for an sql_mode that is not made of words")]
    SqlMode,
    /// The character set is not utf8mb4.
    #[error("asks for a character set other than utf8mb4")]
    CharacterSet,
    /// The time zone is not an offset.
    #[error("asks for a time zone that is not an offset such as `+00:00`")]
    TimeZone,
}

impl SessionContract {
    /// Checked before any of it becomes part of a statement.
    pub(super) fn problem(&self) -> Option<ContractProblem> {
        let is_word = |word: &String| {
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
        };
        if !self.sql_mode.iter().all(is_word) {
            Some(ContractProblem::SqlMode)
        } else if self.character_set != "utf8mb4" {
            Some(ContractProblem::CharacterSet)
        } else if !is_offset(&self.time_zone) {
            Some(ContractProblem::TimeZone)
        } else {
            None
        }
    }
}

fn is_offset(text: &str) -> bool {
    match text.as_bytes() {
        [b'+' | b'-', h1, h2, b':', m1, m2] => [h1, h2, m1, m2].iter().all(|d| d.is_ascii_digit()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_words_and_offsets_reaches_a_statement() {
        let good = SessionContract::default();
        assert_eq!(good.problem(), None);
        let bad = SessionContract { sql_mode: vec!["A', x = '".to_owned()], ..good.clone() };
        assert_eq!(bad.problem(), Some(ContractProblem::SqlMode));
        let bad = SessionContract { character_set: "gbk".to_owned(), ..good.clone() };
        assert_eq!(bad.problem(), Some(ContractProblem::CharacterSet));
        let bad = SessionContract { time_zone: "SYSTEM".to_owned(), ..good };
        assert_eq!(bad.problem(), Some(ContractProblem::TimeZone));
    }
}
