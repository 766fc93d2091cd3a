//! The texts as they are sent: each statement behind a comment that names its session's holder.
//!
//! The prepared-statement protocol makes the server itself refuse two statements in one text, but
//! the driver looks for named parameters before it prepares: `:name` outside of what it takes for a
//! literal becomes `?`. Its scan and the server's differ (it skips the character after `-` and `/`,
//! a quote included), so a text is sent only when that scan leaves it as it is.

use mysql_common::named_params::ParsedNamedParams;

use super::super::error::ExecutionError;
use crate::policy::Statement;

/// As long as any holder's marker: `tollgate-` and 32 hexadecimal digits.
const STAND_IN: &str = "tollgate-00000000000000000000000000000000";

/// Bytes of a packet besides the text: the command. What the driver adds is counted generously.
const PACKET_OVERHEAD_BYTES: u64 = 64;

/// Checks every statement before anything is claimed: that the driver sends it as it is.
pub(super) fn check_carried(statements: &[Statement]) -> Result<(), ExecutionError> {
    for statement in statements {
        if marked(STAND_IN, &statement.text).is_none() {
            return Err(ExecutionError::TextNotCarried { statement: statement.index });
        }
    }
    Ok(())
}

/// Checks every statement against what the server takes in one packet.
pub(super) fn check_packets(
    statements: &[Statement],
    packet_bytes_max: Option<u64>,
) -> Result<(), ExecutionError> {
    let Some(bytes_max) = packet_bytes_max else {
        return Ok(());
    };
    for statement in statements {
        let text = statement.text.len() + STAND_IN.len() + "/*  **/ ".len();
        let bytes = u64::try_from(text).unwrap_or(u64::MAX).saturating_add(PACKET_OVERHEAD_BYTES);
        if bytes > bytes_max {
            let statement = statement.index;
            return Err(ExecutionError::PacketTooLarge { statement, bytes, bytes_max });
        }
    }
    Ok(())
}

/// The text behind a comment with the marker; `None` when the driver would change it.
///
/// The second form is for texts the driver misreads: its scan does not see the end of a comment
/// that ends in `**/`, the server does, and what stands in a comment is left alone.
pub(super) fn marked(marker: &str, text: &str) -> Option<String> {
    [format!("/* {marker} */ {text}"), format!("/* {marker} **/ {text}")]
        .into_iter()
        .find(|candidate| is_left_alone(candidate))
}

fn is_left_alone(text: &str) -> bool {
    ParsedNamedParams::parse(text.as_bytes())
        .is_ok_and(|parsed| parsed.params().is_empty() && parsed.query() == text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Operation, Span};

    fn statement(text: &str) -> Statement {
        Statement {
            index: 3,
            operation: Operation::Insert,
            text: text.to_owned(),
            tables: Vec::new(),
            span: Span { start: 0, end: 0 },
        }
    }

    #[test]
    fn what_looks_like_a_parameter_in_a_literal_is_sent_as_it_is() {
        for text in [
            "INSERT IGNORE INTO `c`.`t` VALUES (':a', 'b\\':c', 'it''s :d')",
            "INSERT IGNORE INTO `c`.`t:u` VALUES ('12:30', '{\"k\":\"?\"}')",
            "INSERT IGNORE INTO `c`.`t` VALUES ('a /* :b', '-- :c\n:d', '# :e')",
        ] {
            let sent = marked("m", text).unwrap();
            assert_eq!(sent, format!("/* m */ {text}"));
            assert!(is_left_alone(&sent));
        }
    }

    #[test]
    fn a_text_the_driver_misreads_is_hidden_from_its_scan() {
        // After `-'` the driver takes the literal's end for its begin.
        let text = "INSERT IGNORE INTO `c`.`t` VALUES (-'1', ':a')";
        assert!(!is_left_alone(text), "the driver has learnt to read it: drop this work-around");
        let sent = marked("m", text).unwrap();
        assert_eq!(sent, format!("/* m **/ {text}"));
        assert!(is_left_alone(&sent));
    }

    #[test]
    fn a_text_that_would_be_changed_all_the_same_is_refused() {
        let text = "INSERT IGNORE INTO `c`.`t` VALUES (-'1', '*/ :a', ':b')";
        assert_eq!(marked("m", text), None);
        assert!(matches!(
            check_carried(&[statement(text)]),
            Err(ExecutionError::TextNotCarried { statement: 3 })
        ));
    }

    #[test]
    fn a_text_larger_than_a_packet_is_refused() {
        let text = "x".repeat(1000);
        assert!(check_packets(&[statement(&text)], None).is_ok());
        assert!(check_packets(&[statement(&text)], Some(2000)).is_ok());
        assert!(matches!(
            check_packets(&[statement(&text)], Some(1024)),
            Err(ExecutionError::PacketTooLarge { statement: 3, bytes_max: 1024, .. })
        ));
    }
}
