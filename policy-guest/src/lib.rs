//! Policy v1 of Tollgate, written for the executor code `sql-jdbc:v1`.
//!
//! It decides on the SQL of a payload and prints the text that may run. It parses natively only in
//! tests: in production it is a WebAssembly component, where a stack overflow is a trap.
//!
//! A payload passes these stations in order, and each may refuse it:
//!
//! | station | what it does |
//! |---|---|
//! | `lexer`, `keywords` | MySQL's lexical rules; refuses what is hostile by spelling alone |
//! | `limits` | counts depth on the token stream |
//! | `head` | the statement's kind, by its first words |
//! | `bulk` | lists of nothing but literals, taken past the parser |
//! | `items` | counts what is left for the parser |
//! | `rewrite` | forms servers accept and sqlparser does not |
//! | `parse` | sqlparser, with MySQL's grammar of expressions |
//! | `statements`, `convert`, `names`, `functions` | the AST, converted into `model` |
//! | `selective`, `subject`, `reads` | questions asked of the model |
//! | `normalise` | the text that runs, printed from the model |

#[cfg(any(target_family = "wasm", test))]
mod allocator;
mod bulk;
mod charset;
#[cfg(target_family = "wasm")]
mod component;
mod context;
mod convert;
mod decide;
mod decision;
mod describe;
pub mod diagnostics;
mod functions;
mod head;
mod items;
mod keywords;
mod lexer;
mod limits;
mod model;
mod names;
mod normalise;
mod parse;
mod pattern;
mod reads;
mod rewrite;
mod selective;
mod smuggled;
mod statements;
mod subject;

pub use decide::decide;
pub use decision::{
    Access, Allowance, Decision, Diagnostic, Edit, Operation, Request, Severity, Span, Statement,
    TableAccess,
};
pub use describe::{Description, LIMITS, Limits, Session, describe};
pub use functions::{FunctionSignature, function_names, functions};
