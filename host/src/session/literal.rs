//! Values inside the text of the host's own statements.

/// The value as an SQL literal that means the same under every `sql_mode` and character set.
///
/// Names of ours are ASCII without quotes or backslashes and are written as they are; any other text
/// is written as hexadecimal digits.
pub(crate) fn literal(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:/@+-".contains(&byte);
    if text.bytes().all(plain) {
        return format!("'{text}'");
    }
    let mut hex = String::with_capacity(2 * text.len());
    for digit in text.bytes().flat_map(|byte| [byte >> 4, byte & 0xf]) {
        hex.extend(char::from_digit(u32::from(digit), 16));
    }
    format!("CONVERT(0x{hex} USING utf8mb4)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_as_they_are() {
        assert_eq!(literal("plan-7:step.3_A"), "'plan-7:step.3_A'");
        assert_eq!(literal(""), "''");
    }

    #[test]
    fn no_text_ends_its_literal() {
        for text in ["'", "\\", "a\\' OR 1=1 -- ", "\0", "é", "\u{bf27}", "\n", "\"", "`"] {
            let literal = literal(text);
            let hex = literal
                .strip_prefix("CONVERT(0x")
                .and_then(|rest| rest.strip_suffix(" USING utf8mb4)"))
                .unwrap();
            assert!(hex.bytes().all(|byte| byte.is_ascii_hexdigit()), "{literal}");
        }
    }
}
