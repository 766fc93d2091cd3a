//! INSERTs: of random values, and of every form.

use super::scope::{CONSTANT, Scope};
use super::{Slot, Writer, expression, literal, query};

/// The columns of `order`, which take what any expression gives.
const COLUMNS: &[&str] = &["`key`", "s", "q", "`at`"];

/// What an upsert may set a column to: nothing that is stored is read.
const INSERTED: Scope = Scope { columns: COLUMNS, queries: false, updates: true };

/// Rows of random expressions.
pub(super) fn of_expressions(writer: &mut Writer<'_>) {
    writer.words("INSERT IGNORE INTO");
    query::table(writer, "order");
    let columns = 1 + writer.choices.below(2);
    writer.parens(|writer| names(writer, &COLUMNS[..columns]));
    if writer.choices.once_in(3) {
        query::of_rows(writer, columns);
    } else {
        writer.words("VALUES");
        let rows = 1 + writer.choices.below(3);
        writer.list(rows, |writer| {
            writer
                .parens(|writer| writer.list(columns, |writer| expression::any(writer, CONSTANT)));
        });
    }
}

fn names(writer: &mut Writer<'_>, names: &[&str]) {
    let mut names = names.iter();
    writer.list(names.len(), |writer| writer.token(*names.next().expect("as many as there are")));
}

/// Every form: with IGNORE or an upsert or both, VALUES, SET or SELECT.
pub(super) fn any_form(writer: &mut Writer<'_>) {
    let upsert = writer.choices.once_in(2);
    writer.words("INSERT");
    if !upsert || writer.choices.once_in(4) {
        writer.words("IGNORE");
    }
    writer.words_of(&["INTO", "INTO", ""]);
    query::table(writer, "order");
    match writer.choices.below(4) {
        0 | 1 => rows(writer),
        2 => assignments(writer),
        _ => {
            let columns = 1 + writer.choices.below(COLUMNS.len());
            writer.parens(|writer| names(writer, &COLUMNS[..columns]));
            query::of_rows(writer, columns);
        }
    }
    if upsert {
        on_duplicate(writer);
    }
}

fn rows(writer: &mut Writer<'_>) {
    let listed = !writer.choices.once_in(4);
    let columns = if listed { 1 + writer.choices.below(COLUMNS.len()) } else { COLUMNS.len() + 1 };
    if listed {
        writer.parens(|writer| names(writer, &COLUMNS[..columns]));
    }
    writer.words_of(&["VALUES", "VALUES", "VALUE"]);
    let rows = 1 + writer.choices.below(6);
    writer.list(rows, |writer| writer.parens(|writer| writer.list(columns, value)));
}

fn value(writer: &mut Writer<'_>) {
    match writer.choices.below(5) {
        0..=2 => writer.place(Slot::Value, literal::any),
        3 => writer.words("DEFAULT"),
        _ => expression::any(writer, CONSTANT),
    }
}

fn assignments(writer: &mut Writer<'_>) {
    writer.words("SET");
    let columns = 1 + writer.choices.below(COLUMNS.len());
    let mut names = COLUMNS.iter();
    writer.list(columns, |writer| {
        writer.token(*names.next().expect("as many as there are"));
        writer.token("=");
        value(writer);
    });
}

fn on_duplicate(writer: &mut Writer<'_>) {
    writer.words("ON DUPLICATE KEY UPDATE");
    let mut columns = COLUMNS[..=writer.choices.below(COLUMNS.len())].iter();
    writer.list(columns.len(), |writer| {
        let column = *columns.next().expect("as many as there are");
        writer.token(column);
        writer.token("=");
        match writer.choices.below(4) {
            0 => writer.place(Slot::Value, |writer| writer.token(column)),
            1 => writer.place(Slot::Value, literal::any),
            2 => writer.place(Slot::Value, |writer| expression::column(writer, INSERTED)),
            _ => expression::any(writer, INSERTED),
        }
    });
}
