//! Strings that read as SQL if their quotes are misread.
//!
//! Normalised text cannot be misread by the server: it is printed from decoded values. This is a
//! second line for everyone else who looks at a table comment or a condition.

/// Words that continue a statement after a string.
const CONTINUATIONS: &[&str] = &[
    "AND", "AS", "COMMENT", "DATA", "DELETE", "DROP", "ENGINE", "FROM", "HAVING", "INSERT", "INTO",
    "JOIN", "LIMIT", "OR", "ORDER", "REPLACE", "SELECT", "SET", "TABLE", "UNION", "UPDATE",
    "VALUES", "WHERE", "XOR",
];

/// Would the text be SQL from one of its quotes on, or from its start?
pub(crate) fn reads_as_sql(text: &str) -> bool {
    let after_quote = text
        .match_indices(['\'', '"'])
        .any(|(at, quote)| continues(text.get(at + quote.len()..).unwrap_or_default()));
    let comment = ["-- ", "--\t", "--\n", "/*", "#"].iter().any(|opener| text.contains(opener))
        || text.ends_with("--");
    // From its start: the closing quote of the literal before it went missing.
    after_quote || (comment && continues(text))
}

fn continues(text: &str) -> bool {
    let text = text.trim_start();
    if text.starts_with([';', ')', ',']) && text.trim_start_matches([';', ')', ',', ' ']).is_empty()
    {
        return false;
    }
    let text = text.trim_start_matches([';', ')', ',', ' ']);
    let word = text.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    let rest = text.get(word.len()..).unwrap_or_default();
    // Prose joins quoted words with these; SQL compares something behind them.
    let joins = ["AND", "AS", "FROM", "INTO", "OR", "SET", "XOR"].iter();
    let prose = joins.into_iter().any(|known| known.eq_ignore_ascii_case(word));
    CONTINUATIONS.iter().any(|known| known.eq_ignore_ascii_case(word))
        && rest.starts_with([' ', '\t', '\n', '(', '=', '/'])
        && (!prose || rest.contains(['=', '<', '>']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_takes_over_is_recognised() {
        for text in [
            "x' SELECT id, v AS b FROM host_core.secrets COMMENT 'y",
            " OR 1=1 -- ",
            " or 1=1 #",
            "x') ENGINE=MyISAM -- ",
            "x\" UNION SELECT 1",
            "'; DROP TABLE t; --",
        ] {
            assert!(reads_as_sql(text), "{text}");
        }
    }

    #[test]
    fn ordinary_text_is_not() {
        for text in [
            "it's",
            "#ffffff",
            "a 'b' \\ c",
            "user's id or 0",
            "and",
            "C:\\dir",
            "-- none --",
            "select one",
            "don't create twice",
            "'quoted'",
            "say \"hi\"",
            "a/b",
            "",
        ] {
            assert!(!reads_as_sql(text), "{text}");
        }
    }
}
