//! The four kinds of statement: which clauses each may have, and what it does to which tables.

mod create_table;
mod delete;
mod drop_table;
mod element;
mod insert;
mod options;

use sqlparser::ast::Statement as Ast;

use crate::context::Context;
use crate::diagnostics::code;
use crate::model::Statement;

impl Context<'_> {
    /// Converts a parsed statement.
    pub(crate) fn statement(&mut self, statement: Ast) -> Option<Statement> {
        match statement {
            Ast::CreateTable(create) => self.create_table(create).map(Statement::CreateTable),
            Ast::Drop { .. } => self.drop_table(statement).map(Statement::DropTable),
            Ast::Insert(insert) => self.insert(insert).map(Statement::Insert),
            Ast::Delete(delete) => self.delete(delete).map(Statement::Delete),
            _ => self.refuse_code(&code::STATEMENT_KIND, None),
        }
    }
}
