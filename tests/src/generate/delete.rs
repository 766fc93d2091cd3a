//! DELETEs whose condition selects rows, whatever else it says.

use super::scope::{OF_T, OF_T_AND_U, Scope};
use super::{Slot, Writer, expression, literal, query};

/// From one table, or from tables that are joined.
pub(super) fn statement(writer: &mut Writer<'_>) {
    writer.words("DELETE");
    match writer.choices.below(5) {
        0..=2 => {
            writer.words("FROM");
            query::table(writer, "t");
            condition(writer, OF_T.without_queries());
        }
        3 => {
            let targets = writer.choices.of_list(&["t", "t.*", "t, u", "plugin_preview.t", "u"]);
            writer.place(Slot::Table, |writer| writer.token(targets));
            writer.words("FROM");
            query::join(writer);
            joined_condition(writer);
        }
        _ => {
            writer.words("FROM");
            let targets = writer.choices.of_list(&["t", "t.*", "t, u", "u"]);
            writer.place(Slot::Table, |writer| writer.token(targets));
            writer.words("USING");
            query::join(writer);
            joined_condition(writer);
        }
    }
}

fn condition(writer: &mut Writer<'_>, scope: Scope) {
    writer.words("WHERE");
    selective(writer, scope);
    while writer.choices.once_in(3) {
        if writer.choices.once_in(3) {
            writer.words("OR");
            selective(writer, scope);
        } else {
            writer.words("AND");
            writer.parens(|writer| expression::any(writer, scope));
        }
    }
}

/// Both tables are compared with something else, so neither is emptied.
fn joined_condition(writer: &mut Writer<'_>) {
    writer.words("WHERE");
    for column in ["t.id", "u.id"] {
        writer.place(Slot::Column, |writer| writer.token(column));
        writer.words_of(&["=", "<=>", "<", ">"]);
        let id = 1 + writer.choices.below(4);
        writer.number(id);
        if column == "t.id" {
            writer.words("AND");
        }
    }
    if writer.choices.once_in(2) {
        writer.words("AND");
        writer.parens(|writer| expression::any(writer, OF_T_AND_U.without_queries()));
    }
}

/// A column compared with something other than itself.
fn selective(writer: &mut Writer<'_>, scope: Scope) {
    let column = writer.choices.of_list(&["id", "name", "n", "t.b", "`d`", "plugin_preview.t.dt"]);
    writer.place(Slot::Column, |writer| writer.token(column));
    match writer.choices.below(6) {
        0 => {
            writer.words_of(&["=", "<=>", "<", ">", "<=", ">=", "<>", "!="]);
            literal::any(writer);
        }
        1 => {
            writer.words("IN");
            writer.parens(|writer| {
                let count = 1 + writer.choices.below(5);
                writer.list(count, literal::any);
            });
        }
        2 => {
            writer.words_of(&["BETWEEN", "NOT BETWEEN"]);
            literal::any(writer);
            writer.words("AND");
            literal::any(writer);
        }
        3 => writer.words("IS NULL"),
        4 => {
            writer.words("LIKE");
            let pattern =
                writer.choices.of_list(&["'a%'", "'%\\\\%'", "\"b'%\"", "'Ä_x%'", "'\\%_'", "'a'"]);
            writer.token(pattern);
        }
        _ => {
            writer.words("IN");
            writer.parens(|writer| {
                writer.words("SELECT");
                writer.token("u.tid");
                writer.words("FROM");
                query::table(writer, "u");
                writer.words("WHERE");
                writer.token("u.id");
                writer.token(">");
                expression::any(writer, Scope { columns: &["u.id", "u.tid", "u.v"], ..scope });
            });
        }
    }
}
