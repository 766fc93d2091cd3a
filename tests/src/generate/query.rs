//! Queries: in expressions, and as what an INSERT reads.

use super::scope::{CONSTANT, OF_T, OF_T_AND_U, Scope};
use super::{Slot, Writer, expression};

/// A sub-query where an expression may stand.
pub(super) fn in_expression(writer: &mut Writer<'_>, outer: Scope) {
    match writer.choices.below(6) {
        0 => writer.parens(|writer| of_one_value(writer)),
        1 => {
            writer.words_of(&["EXISTS", "NOT EXISTS"]);
            writer.parens(|writer| of_one_value(writer));
        }
        2 => {
            operand(writer, outer);
            writer.words_of(&["IN", "NOT IN"]);
            writer.parens(|writer| of_one_value(writer));
        }
        3 => {
            operand(writer, outer);
            writer.words_of(&["=", "<", ">=", "<>"]);
            writer.words_of(&["ANY", "SOME", "ALL"]);
            writer.parens(|writer| of_one_value(writer));
        }
        4 => writer.parens(of_unnamed_column),
        _ => writer.parens(|writer| {
            writer.words("SELECT");
            writer.words_of(&["MAX", "MIN", "COUNT", "SUM"]);
            writer.arguments(|writer| writer.token("id"));
            writer.words("FROM");
            table(writer, "u");
        }),
    }
}

fn operand(writer: &mut Writer<'_>, scope: Scope) {
    writer.parens(|writer| expression::any(writer, scope.without_queries()));
}

/// A derived table whose column is called what was written.
fn of_unnamed_column(writer: &mut Writer<'_>) {
    let (item, name) = writer.choices.of_list(&[
        ("CURRENT_DATE", "`current_date`"),
        ("UTC_DATE", "utc_date"),
        ("LOCALTIME", "`localtime`"),
        ("'za'", "za"),
        ("5e1", "`5e1`"),
        ("TRUE", "`true`"),
        ("id", "id"),
    ]);
    writer.words("SELECT");
    let qualified = writer.choices.once_in(2);
    writer.token(if qualified { format!("x.{name}") } else { name.to_owned() });
    writer.words("FROM");
    writer.parens(|writer| {
        writer.words("SELECT");
        writer.token(item);
        writer.words("FROM");
        table(writer, "u");
    });
    writer.words("AS");
    writer.token("x");
    writer.words("WHERE");
    writer.token(format!("x.{name}"));
    writer.words("IS NOT NULL LIMIT");
    writer.token("1");
}

/// One row of one column, or none.
fn of_one_value(writer: &mut Writer<'_>) {
    let scope = OF_T.without_queries();
    writer.words("SELECT");
    expression::any(writer, scope);
    writer.words("FROM");
    table(writer, "t");
    writer.words("WHERE");
    if writer.choices.once_in(2) {
        expression::any(writer, scope);
        writer.words("AND");
    }
    writer.token("id");
    writer.token("=");
    let id = 1 + writer.choices.below(4);
    writer.number(id);
}

/// A table's name, as it may be written.
pub(super) fn table(writer: &mut Writer<'_>, name: &str) {
    let quoted = format!("`{name}`");
    let written = match writer.choices.below(5) {
        0 if name != "order" => name.to_owned(),
        1 => format!("plugin_preview.{quoted}"),
        2 => format!("`plugin_preview` . {quoted}"),
        3 if name != "order" => format!("plugin_preview.{name}"),
        _ => quoted,
    };
    writer.place(Slot::Table, |writer| writer.token(written));
}

/// What an INSERT … SELECT reads: as many columns as the INSERT names, in an order that is certain.
pub(super) fn of_rows(writer: &mut Writer<'_>, columns: usize) {
    select(writer, columns);
    while writer.choices.once_in(4) {
        writer.words_of(&["UNION ALL", "UNION", "UNION DISTINCT"]);
        select(writer, columns);
    }
}

fn select(writer: &mut Writer<'_>, columns: usize) {
    writer.words_of(&["SELECT", "SELECT", "SELECT DISTINCT", "SELECT ALL"]);
    if writer.choices.once_in(8) {
        writer.list(columns, |writer| expression::any(writer, CONSTANT.without_queries()));
        writer.words_of(&["", "FROM DUAL"]);
        return;
    }
    let joined = writer.choices.once_in(3);
    let scope = if joined { OF_T_AND_U } else { OF_T };
    let grouped = writer.choices.once_in(4);
    writer.list(columns, |writer| {
        if grouped {
            expression::aggregate(writer, scope);
        } else {
            expression::any(writer, scope);
        }
        if writer.choices.once_in(5) {
            writer.words_of(&["AS", ""]);
            writer.token("`x_y`");
        }
    });
    writer.words("FROM");
    if joined {
        join(writer);
    } else {
        table(writer, "t");
    }
    if writer.choices.once_in(2) {
        writer.words("WHERE");
        expression::any(writer, scope);
    }
    if grouped && writer.choices.once_in(2) {
        writer.words("GROUP BY");
        writer.token(if joined { "t.id" } else { "id" });
        if writer.choices.once_in(2) {
            writer.words("HAVING");
            writer.words_of(&["COUNT"]);
            writer.arguments(|writer| writer.token("*"));
            writer.token(">");
            expression::any(writer, CONSTANT.without_queries());
        }
    }
}

/// `t` and `u`, joined in every way that has a condition.
pub(super) fn join(writer: &mut Writer<'_>) {
    table(writer, "t");
    match writer.choices.below(5) {
        0 => {
            writer.token(",");
            table(writer, "u");
        }
        1 => {
            writer.words("CROSS JOIN");
            table(writer, "u");
        }
        2 => {
            writer.words_of(&["JOIN", "INNER JOIN", "LEFT JOIN", "RIGHT OUTER JOIN"]);
            table(writer, "u");
            writer.words("USING");
            writer.parens(|writer| writer.token("id"));
        }
        _ => {
            writer.words_of(&[
                "JOIN",
                "INNER JOIN",
                "LEFT JOIN",
                "RIGHT JOIN",
                "LEFT OUTER JOIN",
                "RIGHT OUTER JOIN",
            ]);
            table(writer, "u");
            writer.words("ON");
            writer.token("u.tid");
            writer.token("=");
            writer.token("t.id");
            if writer.choices.once_in(2) {
                writer.words("AND");
                expression::any(writer, OF_T_AND_U.without_queries());
            }
        }
    }
}
