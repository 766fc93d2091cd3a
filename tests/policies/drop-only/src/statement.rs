//! One statement: `DROP TABLE IF EXISTS [catalog.]name, …`.

use crate::token::{Kind, Token, is_word};
use crate::{DropTable, Finding, Place, Span};

/// Characters of a table's name (MySQL manual, "Identifier Length Limits").
const NAME_CHARACTERS_MAX: usize = 64;

/// Tables that belong to the host, whatever it calls them.
const RESERVED_PREFIX: &str = "factory_plugin_";

/// Reads a statement that has at least one token.
pub(crate) fn read(
    tokens: &[Token<'_>],
    index: usize,
    place: Place<'_>,
) -> Result<DropTable, Vec<Finding>> {
    let mut reader = Reader { rest: tokens, end: end(tokens), index, place, findings: Vec::new() };
    let span = start(tokens)..end(tokens);
    let tables = reader.drop_table();
    if reader.findings.is_empty() { Ok(DropTable { tables, span }) } else { Err(reader.findings) }
}

fn start(tokens: &[Token<'_>]) -> usize {
    tokens.first().map_or(0, |token| token.span.start)
}

fn end(tokens: &[Token<'_>]) -> usize {
    tokens.last().map_or(0, |token| token.span.end)
}

struct Reader<'a> {
    rest: &'a [Token<'a>],
    /// Where the statement ends.
    end: usize,
    index: usize,
    place: Place<'a>,
    findings: Vec<Finding>,
}

impl<'a> Reader<'a> {
    /// The tables; what is wrong is among the findings.
    fn drop_table(&mut self) -> Vec<String> {
        let Some(head) = self.keywords(&["DROP", "TABLE"]) else {
            let help = Some("this policy lets nothing run but `DROP TABLE IF EXISTS`");
            self.find("not-a-drop", "not a `DROP TABLE` statement".into(), help, self.next_span());
            return Vec::new();
        };
        if self.keywords(&["IF", "EXISTS"]).is_none() {
            let message = "`DROP TABLE` without `IF EXISTS` fails the second time".to_owned();
            let help = Some("write `DROP TABLE IF EXISTS`");
            self.find("missing-if-exists", message, help, head.clone());
            if let Some(finding) = self.findings.last_mut() {
                finding.insertion = Some((head.end, " IF EXISTS"));
            }
        }
        let mut tables = Vec::new();
        while let Some(table) = self.table() {
            tables.push(table);
            match self.rest.first() {
                None => break,
                Some(_) if self.symbol(",") => {}
                Some(_) => {
                    let help = Some("a name, a comma or the end belongs here; no comments");
                    let message = "unexpected text after a table's name".to_owned();
                    self.find("unexpected-text", message, help, self.next_span());
                    break;
                }
            }
        }
        tables
    }

    fn table(&mut self) -> Option<String> {
        let (mut name, mut span) = self.name()?;
        if self.symbol(".") {
            let catalog = name;
            (name, span) = self.name()?;
            if catalog != self.place.catalog {
                let message = format!("`{catalog}` is not the catalog this is for");
                self.find("other-catalog", message, Some("leave the catalog out"), span.clone());
            }
        }
        let protected = self.place.protected_tables;
        let is_protected = name.to_ascii_lowercase().starts_with(RESERVED_PREFIX)
            || protected.iter().any(|table| table.eq_ignore_ascii_case(name));
        if is_protected {
            self.find("protected-table", format!("`{name}` belongs to the host"), None, span);
        }
        Some(name.to_owned())
    }

    fn name(&mut self) -> Option<(&'a str, Span)> {
        match self.rest {
            [Token { kind: Kind::Word | Kind::Quoted, text, span }, rest @ ..] if is_name(text) => {
                self.rest = rest;
                Some((*text, span.clone()))
            }
            _ => {
                let help = Some("use 1 to 64 of `A-Z a-z 0-9 _ $`");
                self.find("table-expected", "no table's name".into(), help, self.next_span());
                None
            }
        }
    }

    /// Takes these keywords, all or none, and says where they stand.
    fn keywords(&mut self, keywords: &[&str]) -> Option<Span> {
        let (head, rest) = self.rest.split_at_checked(keywords.len())?;
        let all = head.iter().zip(keywords).all(|(token, keyword)| token.is_keyword(keyword));
        all.then(|| {
            self.rest = rest;
            start(head)..end(head)
        })
    }

    fn symbol(&mut self, symbol: &str) -> bool {
        match self.rest {
            [token, rest @ ..] if *token == (Kind::Symbol, symbol) => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// The next token's place, or the end of the statement.
    fn next_span(&self) -> Span {
        self.rest.first().map_or(self.end..self.end, |token| token.span.clone())
    }

    fn find(&mut self, code: &'static str, message: String, help: Option<&'static str>, at: Span) {
        let statement = Some(self.index);
        let span = Some(at);
        self.findings.push(Finding { code, message, help, statement, span, insertion: None });
    }
}

fn is_name(text: &str) -> bool {
    (1..=NAME_CHARACTERS_MAX).contains(&text.len()) && text.chars().all(is_word)
}
