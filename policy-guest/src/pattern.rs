//! Patterns that match everything are no condition.

/// Does a LIKE pattern ask for a character of its own, besides wildcards?
pub(crate) fn like_selects(pattern: &str) -> bool {
    pattern.chars().any(|c| !matches!(c, '%' | '_'))
}

/// Does a regular expression ask for a character of its own in every alternative?
///
/// A bound, not a parser: what it does not recognise as asking for something counts as not asking.
pub(crate) fn regexp_selects(pattern: &str) -> bool {
    // A group may be optional or hold alternatives: too much to judge here.
    if pattern.contains(['(', ')']) {
        return false;
    }
    pattern.split('|').all(|alternative| {
        let mut characters = alternative.chars().peekable();
        let mut asks = false;
        while let Some(character) = characters.next() {
            let own = match character {
                '.' | '^' | '$' | '*' | '+' | '?' | '}' | ']' | ',' => false,
                '{' => {
                    let _ = characters.by_ref().find(|&inner| inner == '}');
                    false
                }
                '[' => {
                    // `[^…]` asks for what is not there, and a first `]` is a member of the set.
                    let negated = characters.next_if_eq(&'^').is_some();
                    let _ = characters.next_if_eq(&']');
                    characters.by_ref().any(|inner| inner == ']') && !negated
                }
                // An escaped letter is a class or a place; an escaped mark is itself.
                '\\' => characters.next().is_some_and(|escaped| escaped.is_ascii_punctuation()),
                _ => true,
            };
            let optional = matches!(characters.peek(), Some('*' | '?' | '{'));
            asks |= own && !optional;
        }
        asks
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_alone_ask_for_nothing() {
        for pattern in ["%", "%%", "", "_", "_%"] {
            assert!(!like_selects(pattern), "{pattern}");
        }
        assert!(like_selects("a%") && like_selects("\\_%"));
        for pattern in [
            "", ".", ".*", "^", "$", "^.*$", "a*", "a?", "x|.*", "a|", "[^x]", "(a)?", "\\S",
            "\\b", "\\w", "a{0}", "a{0,}", "[]a]*x?",
        ] {
            assert!(!regexp_selects(pattern), "{pattern}");
        }
        for pattern in ["^a", "^a$", "b+", "a.*", "a|b", "[0-9]", "\\."] {
            assert!(regexp_selects(pattern), "{pattern}");
        }
    }
}
