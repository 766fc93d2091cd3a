//! Server messages without what they quote.
//!
//! A server quotes payload text: `Duplicate entry 'secret' for key …`, `… near 'INSERT …'`,
//! `Incorrect integer value: 'secret'`. It also names accounts (`'user'@'host'`). None of it may reach a
//! receipt, a log or a page.

/// As much as the receipt's column takes, in characters.
pub(super) const ERROR_TEXT_STORED_MAX: usize = 1000;

/// Longest text of a server's message in a receipt, in characters; half of the column.
pub(super) const ERROR_TEXT_CHARS_MAX: usize = 500;

/// Longest code of an error in a receipt, in characters.
pub(super) const ERROR_CODE_CHARS_MAX: usize = 64;

/// The message with everything quoted replaced by `…`, in one line, bounded in length.
///
/// A quoted text may itself hold quotes, and nothing in a message tells where it really ends. So
/// everything from the first quote to the last one goes, and with it names that would have been
/// harmless: the error's number and the statement's index say more than they did.
pub fn without_literals(message: &str) -> String {
    // The server's own "doesn't" is the one apostrophe that opens nothing.
    let message = &message.replace("doesn't", "does not");
    let is_quote = |c: char| r#"'"`‘’‚“”„«»‹›"#.contains(c);
    let quoted = match (message.find(is_quote), message.rfind(is_quote)) {
        (Some(first), Some(last)) if first < last => {
            let head = message.get(..first).unwrap_or_default();
            let tail = message.get(last..).unwrap_or_default();
            format!("{head}…{}", tail.trim_start_matches(is_quote))
        }
        // A lone quote: what follows it may be a literal that was cut off.
        (Some(first), _) => format!("{}…", message.get(..first).unwrap_or_default()),
        (None, _) => message.clone(),
    };
    let words: Vec<&str> = quoted.split_whitespace().map(shown_or_cut).collect();
    let line = words.join(" ");
    line.chars().filter(|c| !c.is_control()).take(ERROR_TEXT_CHARS_MAX).collect()
}

/// A word, unless it looks like a value: digits in it, or longer than words are.
fn shown_or_cut(word: &str) -> &str {
    let is_value = word.chars().any(|c| c.is_ascii_digit()) || word.chars().count() > 40;
    if is_value { "…" } else { word }
}

/// A code of an error, reduced to `a-z 0-9 -` and its bound.
pub(super) fn bounded_code(code: &str) -> String {
    code.chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .take(ERROR_CODE_CHARS_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_quoted_survives() {
        for (message, expected) in [
            ("Duplicate entry 'canary' for key 'users.email'", "Duplicate entry …"),
            ("Duplicate entry 'it's canary' for key 'x'", "Duplicate entry …"),
            (
                "You have an error in your SQL syntax; check the manual near 'INSERT canary' at line 1",
                "You have an error in your SQL syntax; check the manual near … at line …",
            ),
            (
                "INSERT command denied to user 'canary'@'10.0.0.1' for table `c`.`t`",
                "INSERT command denied to user …",
            ),
            ("Table 'canary.t' doesn't exist", "Table … does not exist"),
            ("Data too long for column 'canary' at row 1", "Data too long for column … at row …"),
            ("near 'canary", "near …"),
            ("valeur «canary» incorrecte", "valeur … incorrecte"),
        ] {
            let shown = without_literals(message);
            assert_eq!(shown, expected);
        }
    }

    #[test]
    fn values_without_quotes_and_long_texts_are_cut() {
        assert_eq!(
            without_literals("Out of range value 4929123 at row 1"),
            "Out of range value … at row …"
        );
        assert_eq!(without_literals(&"x".repeat(2000)), "…");
        let long = "word ".repeat(2000);
        assert_eq!(without_literals(&long).chars().count(), ERROR_TEXT_CHARS_MAX);
    }

    #[test]
    fn a_message_is_one_line() {
        assert_eq!(without_literals("a\nb\tc\u{7}"), "a b c");
    }

    #[test]
    fn a_code_is_kebab_case_and_bounded() {
        assert_eq!(bounded_code("Server 1062"), "server-1062");
        assert_eq!(bounded_code(&"x".repeat(200)).len(), ERROR_CODE_CHARS_MAX);
    }
}
