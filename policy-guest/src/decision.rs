//! The types of wit/policy.wit, as the rules use them.
//!
//! They are written out rather than generated so that the crate is an ordinary library in native
//! tests; `component` converts them at the boundary.

/// Byte offsets into the payload, start inclusive, end exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// A payload and where it is meant to run.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The payload's bytes exactly as delivered.
    pub payload: &'a [u8],
    /// The one catalog whose tables the payload may name.
    pub catalog: &'a str,
    /// Tables of that catalog that belong to the host.
    pub protected_tables: &'a [&'a str],
}

/// What a statement does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `CREATE TABLE IF NOT EXISTS`
    CreateTable,
    /// `DROP TABLE IF EXISTS`
    DropTable,
    /// `INSERT IGNORE` or `INSERT … ON DUPLICATE KEY UPDATE`
    Insert,
    /// `DELETE … WHERE`
    Delete,
}

/// What a statement does to one of its tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// The table is created.
    Create,
    /// The table is dropped.
    Drop,
    /// Rows of the table are written or deleted.
    Write,
    /// The table is read or referenced.
    Read,
}

/// A table a statement names, and what it does to it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TableAccess {
    /// The catalog, always the request's.
    pub catalog: String,
    /// The table as the author spelt it.
    pub name: String,
    /// What happens to it.
    pub access: Access,
}

/// A statement as it may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Position in the payload, from 0.
    pub index: u32,
    /// What it does.
    pub operation: Operation,
    /// The normalised text: one statement, no comments, no trailing semicolon.
    pub text: String,
    /// The tables it names, sorted, without duplicates.
    pub tables: Vec<TableAccess>,
    /// Where the author's text of it stands.
    pub span: Span,
}

/// How much a diagnostic weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The payload is denied.
    Error,
    /// The payload is allowed; a reviewer should know.
    Advisory,
}

/// A change of the payload that would make it acceptable without changing its first run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// What is replaced; empty for an insertion.
    pub span: Span,
    /// The text to put there.
    pub replacement: String,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable, kebab-case, never reused.
    pub code: &'static str,
    /// How much it weighs.
    pub severity: Severity,
    /// What is wrong, lowercase, no full stop.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
    /// The statement it is about, from 0.
    pub statement: Option<u32>,
    /// Where it is.
    pub span: Option<Span>,
    /// Present when the repair is mechanical.
    pub fix: Option<Edit>,
}

/// A payload that may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowance {
    /// What to run, in order.
    pub statements: Vec<Statement>,
    /// What a reviewer should know.
    pub advisories: Vec<Diagnostic>,
}

/// The policy's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It may run.
    Allow(Allowance),
    /// It may not; at least one diagnostic is an error.
    Deny(Vec<Diagnostic>),
}
