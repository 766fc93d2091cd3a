//! How a statement starts: its kind, and what its first words must and must not say.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::decision::{Operation, Span};
use crate::diagnostics::{Code, Finding, code};
use crate::lexer::span_of;

/// The four kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    CreateTable,
    DropTable,
    Insert,
    Delete,
}

impl From<Kind> for Operation {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::CreateTable => Self::CreateTable,
            Kind::DropTable => Self::DropTable,
            Kind::Insert => Self::Insert,
            Kind::Delete => Self::Delete,
        }
    }
}

/// Reads the first words, and takes modifiers out once they are reported. A statement of another
/// kind is not parsed at all: the parser knows many that must not be mistaken for one of these.
pub(crate) fn read(tokens: &mut Vec<TokenWithSpan>) -> (Option<Kind>, Vec<Finding>) {
    let mut head = Head { tokens, at: 0, modifiers: 0, findings: Vec::new() };
    let kind = head.kind();
    let (modifiers, findings) = (head.modifiers, head.findings);
    tokens.drain(1..=modifiers);
    (kind, findings)
}

struct Head<'a> {
    tokens: &'a [TokenWithSpan],
    at: usize,
    /// How many words behind the first are modifiers.
    modifiers: usize,
    findings: Vec<Finding>,
}

impl Head<'_> {
    fn word(&self, at: usize) -> Option<(Keyword, String, Span)> {
        let token = self.tokens.get(at)?;
        match &token.token {
            Token::Word(word) if word.quote_style.is_none() => {
                Some((word.keyword, word.value.to_ascii_uppercase(), span_of(token.span)?))
            }
            _ => None,
        }
    }

    fn keyword(&self, at: usize) -> Option<Keyword> {
        self.word(at).map(|(keyword, ..)| keyword)
    }

    fn report(&mut self, code: &'static Code, message: String, span: Option<Span>) {
        self.findings.push(Finding::new(code).message(message).near(span));
    }

    fn kind(&mut self) -> Option<Kind> {
        match self.keyword(0) {
            Some(Keyword::CREATE) => self.create(),
            Some(Keyword::DROP) => self.drop(),
            Some(Keyword::INSERT) => self.insert(),
            Some(Keyword::DELETE) => Some(self.delete()),
            _ => self.other_kind(1),
        }
    }

    /// Names the statement by its first words.
    fn other_kind(&mut self, words: usize) -> Option<Kind> {
        let names: Vec<_> = (0..words).map_while(|at| self.word(at)).collect();
        let span = match (names.first(), names.last()) {
            (Some((.., first)), Some((.., last))) => {
                Some(Span { start: first.start, end: last.end })
            }
            _ => self.tokens.first().and_then(|token| span_of(token.span)),
        };
        let name = names.iter().map(|(_, name, _)| name.as_str()).collect::<Vec<_>>().join(" ");
        let name = if name.is_empty() { "this text".to_owned() } else { format!("`{name}`") };
        let finding = Finding::new(&code::STATEMENT_KIND)
            .message(format!("{name} is not a statement that policy v1 runs"))
            .near(span);
        self.findings.push(match help(self.word(0)) {
            Some(help) => finding.help(help),
            None => finding,
        });
        None
    }

    fn create(&mut self) -> Option<Kind> {
        self.at = 1;
        if self.keyword(1) == Some(Keyword::OR) && self.keyword(2) == Some(Keyword::REPLACE) {
            if self.keyword(3) != Some(Keyword::TABLE) {
                return self.other_kind(4);
            }
            let span = self.word(1).map(|(.., span)| span);
            self.report(
                &code::TABLE_KIND,
                "CREATE OR REPLACE TABLE drops what is there".into(),
                span,
            );
            self.at = 3;
        } else if matches!(self.keyword(1), Some(Keyword::TEMPORARY | Keyword::TEMP)) {
            if self.keyword(2) != Some(Keyword::TABLE) {
                return self.other_kind(3);
            }
            let span = self.word(1).map(|(.., span)| span);
            self.report(
                &code::TABLE_KIND,
                "temporary table is gone when the statement ends".into(),
                span,
            );
            self.at = 2;
        }
        let Some((Keyword::TABLE, _, table)) = self.word(self.at) else {
            return self.other_kind(2);
        };
        let next: Vec<_> = (1..=3).map(|ahead| self.keyword(self.at + ahead)).collect();
        if next != [Some(Keyword::IF), Some(Keyword::NOT), Some(Keyword::EXISTS)] {
            self.condition(Finding::new(&code::IF_NOT_EXISTS).at(table), "IF NOT EXISTS");
        }
        Some(Kind::CreateTable)
    }

    fn drop(&mut self) -> Option<Kind> {
        self.at = 1;
        if self.keyword(1) == Some(Keyword::TEMPORARY) {
            let span = self.word(1).map(|(.., span)| span);
            self.report(&code::TABLE_KIND, "temporary table: payloads have none".into(), span);
            self.at = 2;
        }
        let Some((_, _, table)) =
            self.word(self.at).filter(|(_, name, _)| name == "TABLE" || name == "TABLES")
        else {
            return self.other_kind(2);
        };
        let next = (self.keyword(self.at + 1), self.keyword(self.at + 2));
        if next != (Some(Keyword::IF), Some(Keyword::EXISTS)) {
            self.condition(Finding::new(&code::IF_EXISTS).at(table), "IF EXISTS");
        }
        Some(Kind::DropTable)
    }

    /// What is missing behind TABLE: inserted there when nothing like it stands there, put in place
    /// of a clause of the same words otherwise (`IF EXIST`, `IF NOT EXIST`).
    fn condition(&mut self, finding: Finding, wanted: &str) {
        let table = self.word(self.at).map(|(.., span)| span);
        let clause: Vec<Span> = (1..=3)
            .map_while(|ahead| self.word(self.at + ahead))
            .take_while(|(keyword, name, _)| {
                matches!(keyword, Keyword::IF | Keyword::NOT | Keyword::EXISTS) || name == "EXIST"
            })
            .map(|(.., span)| span)
            .collect();
        // A column or table called NOT or EXISTS would have to be quoted, so the words are a clause.
        self.findings.push(match (clause.first(), clause.last(), table) {
            (Some(first), Some(last), _) => {
                finding.replace(Span { start: first.start, end: last.end }, wanted)
            }
            (_, _, Some(table)) => finding.insert(table.end, format!(" {wanted}")),
            _ => finding,
        });
    }

    fn modifiers(&mut self, words: &[&str]) {
        while let Some((_, name, span)) = self.word(self.at + 1) {
            if !words.contains(&name.as_str()) {
                return;
            }
            self.report(&code::MODIFIER, format!("modifier `{name}`"), Some(span));
            self.at += 1;
            self.modifiers += 1;
        }
    }

    fn insert(&mut self) -> Option<Kind> {
        self.modifiers(&["LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY"]);
        let (.., insert) = self.word(0)?;
        let ignore = self.keyword(self.at + 1) == Some(Keyword::IGNORE);
        let on_duplicate = self.tokens.windows(2).any(|pair| {
            matches!(pair, [TokenWithSpan { token: Token::Word(on), .. },
                            TokenWithSpan { token: Token::Word(duplicate), .. }]
                if on.keyword == Keyword::ON && duplicate.keyword == Keyword::DUPLICATE)
        });
        if !ignore && !on_duplicate {
            self.findings
                .push(Finding::new(&code::INSERT_PLAIN).at(insert).insert(insert.end, " IGNORE"));
        }
        Some(Kind::Insert)
    }

    fn delete(&mut self) -> Kind {
        self.modifiers(&["LOW_PRIORITY", "QUICK", "IGNORE"]);
        Kind::Delete
    }
}

/// What to write instead of a statement of another kind.
fn help(first: Option<(Keyword, String, Span)>) -> Option<&'static str> {
    Some(match first?.1.as_str() {
        "REPLACE" => "write INSERT … ON DUPLICATE KEY UPDATE",
        "TRUNCATE" => {
            "write DELETE … WHERE, or DROP TABLE IF EXISTS and CREATE TABLE IF NOT EXISTS"
        }
        "UPDATE" => "write INSERT … ON DUPLICATE KEY UPDATE with the rows' keys",
        "WITH" => "write the common table expression as a derived table",
        "DELIMITER" => {
            "remove it: DELIMITER is a word of the mysql client, and semicolons suffice here"
        }
        "SET" => "remove it: the session is pinned by the host",
        "USE" => "remove it: the host connects to the one allowed catalog",
        "BEGIN" | "START" | "COMMIT" | "ROLLBACK" | "SAVEPOINT" => {
            "remove it: the host runs the payload in its own transaction"
        }
        "ALTER" | "RENAME" => {
            "create the table in its final form; changing one needs another executor"
        }
        _ => return None,
    })
}
