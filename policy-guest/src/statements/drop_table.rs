//! `DROP TABLE IF EXISTS`.

use sqlparser::ast::{ObjectType, Statement as Ast};

use crate::context::Context;
use crate::convert::refuse_present;
use crate::decision::Access;
use crate::diagnostics::code;
use crate::model::DropTable;
use crate::names::object_span;

impl Context<'_> {
    pub(super) fn drop_table(&mut self, statement: Ast) -> Option<DropTable> {
        let Ast::Drop {
            object_type: ObjectType::Table,
            if_exists,
            names,
            // RESTRICT and CASCADE do nothing (manual: "DROP TABLE Statement").
            cascade: _,
            restrict: _,
            purge,
            // Reported by `head`.
            temporary: _,
            table,
        } = statement
        else {
            return self.refuse_code(&code::STATEMENT_KIND, None);
        };
        let span = names.first().and_then(object_span);
        let plain = refuse_present!(self, &code::TABLE_KIND, span,
            purge => "DROP TABLE … PURGE",
            table => "DROP … ON",
        );
        let tables = self.every(names, |context, name| context.table(name, Access::Drop));
        plain?;
        // `head` has reported that IF EXISTS is missing.
        if_exists.then_some(DropTable { tables: tables? })
    }
}
