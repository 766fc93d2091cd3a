//! A second policy, as small as one can be: it allows `DROP TABLE IF EXISTS` and nothing else.
//!
//! For a target that is being cleared: whatever plugins still bring along, only their tables can go.
//! It shares nothing with policy v1 but wit/policy.wit, and docs/policy-authors.md walks through it.
//!
//! | module | what it does |
//! |---|---|
//! | `token` | reads words, quoted names and symbols, each with its place |
//! | `statement` | reads one statement, and says what is wrong with it |
//! | `component` | the only file that knows wit-bindgen |

#[cfg(target_family = "wasm")]
mod component;
mod statement;
mod token;

use token::Token;

/// The policy's name.
pub const NAME: &str = "drop-only";
/// Its version: the crate's, so that one edit releases it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Bytes of a payload, inclusive.
pub const PAYLOAD_BYTES_MAX: u32 = 65_536;
/// Statements of a payload, inclusive.
pub const STATEMENT_COUNT_MAX: u32 = 100;

/// Byte offsets into the payload, start inclusive, end exclusive.
pub type Span = std::ops::Range<usize>;

/// Where a payload is meant to run.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The one catalog whose tables may be named.
    pub catalog: &'a str,
    /// Tables of it that belong to the host.
    pub protected_tables: &'a [&'a str],
}

/// A statement that may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropTable {
    /// The tables, without the catalog.
    pub tables: Vec<String>,
    /// Where the author wrote it.
    pub span: Span,
}

impl DropTable {
    /// The text that runs: printed from what was understood, never cut from the payload.
    pub fn text(&self, catalog: &str) -> String {
        let tables: Vec<String> =
            self.tables.iter().map(|table| format!("`{catalog}`.`{table}`")).collect();
        format!("DROP TABLE IF EXISTS {}", tables.join(", "))
    }
}

/// Something that is wrong with a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Stable and kebab-case.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: Option<&'static str>,
    /// The statement it is about, from 0; none when it is about the payload.
    pub statement: Option<usize>,
    /// Where it is.
    pub span: Option<Span>,
    /// Text that, put in at this byte, repairs it.
    pub insertion: Option<(usize, &'static str)>,
}

impl Finding {
    fn of_payload(code: &'static str, message: String) -> Self {
        Self { code, message, help: None, statement: None, span: None, insertion: None }
    }
}

/// Decides on a payload: what may run, or everything that is wrong.
///
/// # Errors
///
/// At least one [`Finding`].
pub fn decide(payload: &[u8], place: Place<'_>) -> Result<Vec<DropTable>, Vec<Finding>> {
    let text = readable(payload).map_err(|finding| vec![finding])?;
    let tokens = token::read(text);
    let statements = tokens.split(|token| *token == Token::SEMICOLON).filter(|it| !it.is_empty());
    let (mut allowed, mut findings) = (Vec::new(), Vec::new());
    for (index, tokens) in statements.enumerate() {
        match statement::read(tokens, index, place) {
            Ok(statement) => allowed.push(statement),
            Err(mut found) => findings.append(&mut found),
        }
    }
    if allowed.is_empty() && findings.is_empty() {
        findings.push(Finding::of_payload("nothing-to-run", "the payload has no statement".into()));
    }
    if allowed.len() > STATEMENT_COUNT_MAX as usize {
        let message = format!("more than {STATEMENT_COUNT_MAX} statements");
        findings.push(Finding::of_payload("too-many-statements", message));
    }
    if findings.is_empty() { Ok(allowed) } else { Err(findings) }
}

fn readable(payload: &[u8]) -> Result<&str, Finding> {
    if payload.len() > PAYLOAD_BYTES_MAX as usize {
        let message = format!("the payload has more than {PAYLOAD_BYTES_MAX} bytes");
        return Err(Finding::of_payload("too-large", message));
    }
    std::str::from_utf8(payload)
        .map_err(|_| Finding::of_payload("not-utf-8", "the payload is not UTF-8".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place<'_> =
        Place { catalog: "shop", protected_tables: &["factory_plugin_target_receipt"] };

    fn texts(payload: &str) -> Vec<String> {
        let allowed = decide(payload.as_bytes(), PLACE).unwrap();
        allowed.iter().map(|statement| statement.text("shop")).collect()
    }

    fn codes(payload: &str) -> Vec<&'static str> {
        let findings = decide(payload.as_bytes(), PLACE).unwrap_err();
        findings.iter().map(|finding| finding.code).collect()
    }

    #[test]
    fn tables_are_dropped_and_printed_from_what_was_understood() {
        assert_eq!(
            texts("drop table\tif exists a, `b`;;\n DROP TABLE IF EXISTS `shop` . c_1$;"),
            ["DROP TABLE IF EXISTS `shop`.`a`, `shop`.`b`", "DROP TABLE IF EXISTS `shop`.`c_1$`"]
        );
    }

    #[test]
    fn everything_else_is_denied_by_name() {
        for (payload, code) in [
            ("", "nothing-to-run"),
            (" ;; ", "nothing-to-run"),
            ("TRUNCATE t", "not-a-drop"),
            ("DROP DATABASE shop", "not-a-drop"),
            ("DROP TEMPORARY TABLE IF EXISTS t", "not-a-drop"),
            ("DROP TABLE t", "missing-if-exists"),
            ("DROP TABLE IF EXISTS", "table-expected"),
            ("DROP TABLE IF EXISTS a b", "unexpected-text"),
            ("DROP TABLE IF EXISTS a CASCADE", "unexpected-text"),
            ("DROP TABLE IF EXISTS a,", "table-expected"),
            ("DROP TABLE IF EXISTS ``", "table-expected"),
            ("DROP TABLE IF EXISTS `a``b`", "unexpected-text"),
            ("DROP TABLE IF EXISTS `a", "table-expected"),
            ("DROP TABLE IF EXISTS é", "table-expected"),
            ("DROP TABLE IF EXISTS a -- no", "unexpected-text"),
            ("DROP TABLE IF EXISTS a /*! , b */", "unexpected-text"),
            ("DROP TABLE IF EXISTS mysql.user", "other-catalog"),
            ("DROP TABLE IF EXISTS Factory_Plugin_Target_Receipt", "protected-table"),
            ("DROP TABLE IF EXISTS factory_plugin_other", "protected-table"),
        ] {
            assert_eq!(codes(payload), [code], "{payload}");
        }
        assert_eq!(decide(b"\xff", PLACE).unwrap_err()[0].code, "not-utf-8");
        assert_eq!(codes(&"x".repeat(65_537)), ["too-large"]);
        assert_eq!(codes(&"DROP TABLE IF EXISTS t;".repeat(101)), ["too-many-statements"]);
        assert_eq!(texts(&"DROP TABLE IF EXISTS t;".repeat(100)).len(), 100);
    }

    #[test]
    fn every_statement_s_problem_is_told_with_its_place() {
        let payload = "DROP TABLE é;\nDROP TABLE IF EXISTS t;\nTRUNCATE t;";
        let findings = decide(payload.as_bytes(), PLACE).unwrap_err();
        let told: Vec<_> = findings
            .into_iter()
            .map(|finding| (finding.code, finding.statement, &payload[finding.span.unwrap()]))
            .collect();
        assert_eq!(
            told,
            [
                ("missing-if-exists", Some(0), "DROP TABLE"),
                ("table-expected", Some(0), "é"),
                ("not-a-drop", Some(2), "TRUNCATE"),
            ]
        );
    }

    #[test]
    fn the_repair_makes_it_acceptable() {
        let payload = "drop  table t";
        let findings = decide(payload.as_bytes(), PLACE).unwrap_err();
        let (at, text) = findings[0].insertion.unwrap();
        let mut repaired = payload.to_owned();
        repaired.insert_str(at, text);
        assert_eq!(repaired, "drop  table IF EXISTS t");
        assert!(decide(repaired.as_bytes(), PLACE).is_ok());
    }
}
