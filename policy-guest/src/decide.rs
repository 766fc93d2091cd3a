//! The whole decision: every statement of a payload, every problem of each.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::context::Context;
use crate::decision::{Allowance, Decision, Diagnostic, Request, Span, Statement, TableAccess};
use crate::describe::LIMITS;
use crate::diagnostics::{Finding, code};
use crate::head::{self, Kind};
use crate::lexer::{self, Literal, span_of};
use crate::names::shortened;
use crate::normalise::normalise;
use crate::{bulk, items, limits, model, parse, rewrite};

/// Diagnostics of a payload that are listed. A payload of 1 MiB can have hundreds of thousands.
const DIAGNOSTICS_MAX: usize = 500;

/// Decides on one payload. Pure: the same request gives the same decision, anywhere.
pub fn decide(request: &Request<'_>) -> Decision {
    match payload(request) {
        Ok(source) => decide_text(request, source),
        Err(finding) => Decision::Deny(vec![finding.into()]),
    }
}

/// The payload's text, if it is one.
fn payload<'a>(request: &Request<'a>) -> Result<&'a str, Finding> {
    if request.payload.len() > LIMITS.payload_bytes_max as usize {
        let message = format!("payload has {} bytes, more than 1,048,576", request.payload.len());
        return Err(Finding::new(&code::PAYLOAD_BYTES).message(message));
    }
    if !crate::names::is_plain(request.catalog) {
        let message = format!("catalog `{}` of the request is no name", shortened(request.catalog));
        return Err(Finding::new(&code::CATALOG).message(message));
    }
    std::str::from_utf8(request.payload).map_err(|error| {
        let at = u32::try_from(error.valid_up_to()).unwrap_or(u32::MAX);
        Finding::new(&code::PAYLOAD_UTF8)
            .message(format!("payload is not UTF-8 from byte {at} on"))
            .at(Span { start: at, end: at.saturating_add(1) })
    })
}

fn decide_text(request: &Request<'_>, source: &str) -> Decision {
    let mut lexed = lexer::lex(source);
    let mut findings = std::mem::take(&mut lexed.findings);
    if lexed.tokens.len() > LIMITS.token_count_max as usize {
        return Decision::Deny(vec![Finding::new(&code::TOKEN_COUNT).into()]);
    }
    let parts = split(std::mem::take(&mut lexed.tokens));
    locate(&mut findings, &parts);
    if parts.is_empty() {
        findings.push(Finding::new(&code::PAYLOAD_EMPTY));
    }
    if parts.len() > LIMITS.statement_count_max as usize {
        let message = format!("payload has {} statements, more than 100", parts.len());
        let first_over = parts.get(LIMITS.statement_count_max as usize).map(|part| part.span);
        findings.push(Finding::new(&code::STATEMENT_COUNT).message(message).near(first_over));
        return deny(findings, lexed.unlisted);
    }
    let mut statements = Vec::with_capacity(parts.len());
    for part in parts {
        let index = part.index;
        let lexical = findings.iter().any(|finding| finding.statement == Some(index));
        let first = part.tokens.first().and_then(|token| span_of(token.span));
        let (read, found) = statement(request, source, &lexed.literals, part, lexical);
        statements.extend(read);
        findings.extend(found.into_iter().map(|mut finding| {
            finding.statement = Some(index);
            // Without a place of its own it is about the statement, which its first word shows.
            finding.span = finding.span.or(first);
            finding
        }));
    }
    if findings.iter().any(Finding::is_error) {
        deny(findings, lexed.unlisted)
    } else {
        Decision::Allow(Allowance { statements, advisories: ordered(findings, 0) })
    }
}

fn deny(findings: Vec<Finding>, unlisted: usize) -> Decision {
    Decision::Deny(ordered(findings, unlisted))
}

/// In the order of the text, each place and code once. `unlisted` ones are counted and not known.
fn ordered(mut findings: Vec<Finding>, unlisted: usize) -> Vec<Diagnostic> {
    findings.sort_by_key(|finding| (finding.statement, finding.span));
    // Errors first when there are too many to read: an advisory must not hide one.
    if findings.len() > DIAGNOSTICS_MAX {
        findings.sort_by_key(|finding| !finding.is_error());
        let further = findings.len() - DIAGNOSTICS_MAX + unlisted;
        let denied = findings.get(DIAGNOSTICS_MAX).is_some_and(Finding::is_error);
        findings.truncate(DIAGNOSTICS_MAX);
        findings.sort_by_key(|finding| (finding.statement, finding.span));
        let code = if denied { &code::FURTHER } else { &code::FURTHER_ADVICE };
        findings
            .push(Finding::new(code).message(format!("{further} further findings are not listed")));
    }
    let mut diagnostics: Vec<Diagnostic> = findings.into_iter().map(Into::into).collect();
    diagnostics.dedup_by(|one, other| {
        one.code == other.code
            && one.span == other.span
            && one.statement == other.statement
            && (one.span.is_some() || one.message == other.message)
    });
    diagnostics
}

/// A statement's tokens.
struct Part {
    index: u32,
    tokens: Vec<TokenWithSpan>,
    span: Span,
}

/// Statements end at semicolon *tokens*: those of strings and comments are not tokens.
///
/// They are cut off from the end, so that the largest part, most often the whole, stays where it is.
fn split(mut tokens: Vec<TokenWithSpan>) -> Vec<Part> {
    let ends: Vec<usize> = (0..tokens.len())
        .filter(|&at| tokens.get(at).is_some_and(|token| token.token == Token::SemiColon))
        .collect();
    let mut cut: Vec<Vec<TokenWithSpan>> = Vec::new();
    for end in ends.into_iter().rev() {
        cut.push(tokens.split_off(end + 1));
        tokens.pop();
    }
    cut.push(tokens);
    let mut parts = Vec::new();
    for tokens in cut.into_iter().rev() {
        let first = tokens.first().and_then(|token| span_of(token.span));
        let last = tokens.last().and_then(|token| span_of(token.span));
        if let (Some(first), Some(last)) = (first, last) {
            let index = u32::try_from(parts.len()).unwrap_or(u32::MAX);
            let span = Span { start: first.start, end: last.end };
            parts.push(Part { index, tokens, span });
        }
    }
    parts
}

/// Says of which statement each lexical finding is.
fn locate(findings: &mut [Finding], parts: &[Part]) {
    for finding in findings {
        // The first statement that ends behind it: a comment before a statement belongs to it.
        finding.statement = finding
            .span
            .and_then(|span| parts.iter().find(|part| span.start < part.span.end))
            .or(parts.last())
            .map(|part| part.index);
    }
}

/// One statement, read.
struct Reading {
    kind: Option<Kind>,
    model: Option<model::Statement>,
    tables: Vec<TableAccess>,
    findings: Vec<Finding>,
}

/// What a statement's tokens have to stay within.
#[derive(Clone, Copy)]
struct Bounds {
    nesting_max: usize,
    token_count_max: usize,
}

/// Of what an author wrote.
const WRITTEN: Bounds = Bounds {
    nesting_max: LIMITS.nesting_max as usize,
    token_count_max: items::PARSED_TOKEN_COUNT_MAX,
};

/// Of what the printer wrote, with its parentheses and qualifiers.
const PRINTED: Bounds = Bounds {
    nesting_max: limits::NESTING_READ_BACK_MAX,
    token_count_max: items::PARSED_TOKEN_COUNT_READ_BACK_MAX,
};

/// Reads one statement's tokens. What was refused before the parser saw it keeps what the parser
/// then trips over from being reported as well.
fn read(
    request: &Request<'_>,
    source: &str,
    literals: &[Literal],
    mut tokens: Vec<TokenWithSpan>,
    refused: bool,
    bounds: Bounds,
) -> Reading {
    let mut findings = limits::check(&tokens, bounds.nesting_max);
    let too_deep = !findings.is_empty();
    let (kind, head) = head::read(&mut tokens);
    findings.extend(head);
    let mut reading = Reading { kind, model: None, tables: Vec::new(), findings };
    let (Some(kind), false) = (kind, too_deep) else {
        return reading;
    };
    let lists = bulk::fold(kind, &mut tokens);
    if let Some(finding) = items::check(&tokens, bounds.token_count_max) {
        reading.findings.push(finding);
        return reading;
    }
    let rewritten = rewrite::rewrite(kind, &mut tokens, literals);
    reading.findings.extend(rewritten.findings);
    match parse::parse(tokens) {
        Ok(statement) => {
            let mut context =
                Context::new(request.catalog, request.protected_tables, source, literals);
            context.lists = lists;
            context.star_targets = rewritten.star_targets;
            reading.model = context.statement(statement);
            reading.tables = context.tables;
            // The head says it with a fix, where it sees it.
            let plain = reading.findings.iter().any(|finding| finding.is(&code::INSERT_PLAIN));
            let found = context.findings.into_iter();
            reading.findings.extend(found.filter(|one| !(plain && one.is(&code::INSERT_PLAIN))));
        }
        Err(failure) if !refused && !reading.findings.iter().any(Finding::is_error) => {
            reading.findings.push(not_understood(&failure));
        }
        Err(_) => {}
    }
    reading
}

fn not_understood(failure: &parse::Failure) -> Finding {
    match failure {
        parse::Failure::TooDeep => Finding::new(&code::NESTING),
        parse::Failure::At { token, before } => {
            let word = |token: &Token| match token {
                Token::Word(word) if word.quote_style.is_none() => Some(word.value.clone()),
                _ => None,
            };
            let message = match token {
                None => "statement ends too early".to_owned(),
                Some(token) => match &token.token {
                    Token::Word(word) => {
                        format!("`{}` is not understood here", shortened(&word.value))
                    }
                    Token::SingleQuotedString(_) => "string is not understood here".to_owned(),
                    other => format!("`{}` is not understood here", shortened(&other.to_string())),
                },
            };
            let finding = Finding::new(&code::SYNTAX)
                .message(message)
                .near(token.as_ref().and_then(|token| span_of(token.span)));
            let words = [token.as_ref().and_then(|token| word(&token.token)), word(before)];
            match words.iter().flatten().find_map(|word| syntax_help(word)) {
                Some(help) => finding.help(help),
                None => finding,
            }
        }
    }
}

/// What to write instead of a form that sqlparser does not read, by the word it stops at.
fn syntax_help(word: &str) -> Option<&'static str> {
    Some(match word.to_ascii_uppercase().as_str() {
        "VISIBLE" | "INVISIBLE" | "IGNORED" => "leave the index's visibility out",
        "PARSER" => "leave WITH PARSER out",
        "SOUNDS" => "write SOUNDEX(a) = SOUNDEX(b)",
        "PARTITION" => "name rows in the condition instead of a partition",
        "NOWAIT" | "WAIT" => "leave it out: the host sets how long a statement waits for locks",
        "TYPE" => "write ENGINE=InnoDB",
        "VERSIONING" | "WITH" => "create a plain table",
        "COLUMN_FORMAT" | "STORAGE" | "ENGINE_ATTRIBUTE" => "leave the storage attribute out",
        "PERSISTENT" => "write STORED",
        "ASCII" | "UNICODE" | "BYTE" => "write CHARACTER SET and its name",
        "INTO" | "OUTFILE" | "DUMPFILE" => "leave INTO out: a payload reads and writes tables only",
        "LOCK" | "SHARE" | "MODE" => "leave the locking clause out",
        "RECURSIVE" => "write the rows out",
        _ => return None,
    })
}

/// Reads, prints and reads again one statement of the payload.
fn statement(
    request: &Request<'_>,
    source: &str,
    literals: &[Literal],
    part: Part,
    refused: bool,
) -> (Option<Statement>, Vec<Finding>) {
    let Part { index, tokens, span } = part;
    let Reading { kind, model, mut tables, mut findings } =
        read(request, source, literals, tokens, refused, WRITTEN);
    let refused = refused || findings.iter().any(Finding::is_error);
    let (Some(kind), Some(model), false) = (kind, model, refused) else {
        if !refused {
            // Nothing was said, and nothing was understood: that is a refusal too.
            findings.push(Finding::new(&code::SYNTAX).at(span));
        }
        return (None, findings);
    };
    let text = normalise(&model, request.catalog);
    if !reads_back(request, &text, &model) {
        findings.push(Finding::new(&code::UNSTABLE).at(span));
        return (None, findings);
    }
    tables.sort();
    tables.dedup();
    (Some(Statement { index, operation: kind.into(), text, tables, span }), findings)
}

/// Does the printed text mean what was understood?
fn reads_back(request: &Request<'_>, text: &str, model: &model::Statement) -> bool {
    let lexed = lexer::lex(text);
    let Reading { model: again, findings, .. } =
        read(request, text, &lexed.literals, lexed.tokens, false, PRINTED);
    lexed.findings.is_empty()
        && !findings.iter().any(Finding::is_error)
        && again.as_ref() == Some(model)
}
