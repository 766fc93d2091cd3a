//! Expressions: every operator, every function, every special form, with and without parentheses.

use tollgate_policy::{FunctionSignature, functions};

use super::scope::Scope;
use super::{Slot, Writer, literal, query};

/// `&&` is left out: MySQL 9 warns of its age, and the policy prints AND.
const OPERATORS: &[&str] = &[
    "=", "+", "AND", "OR", "<>", "<", ">", "<=", ">=", "!=", "<=>", "-", "*", "/", "%", "DIV",
    "MOD", "XOR", "|", "&", "^", "<<", ">>",
];
const UNITS: &[&str] =
    &["DAY", "MICROSECOND", "SECOND", "MINUTE", "HOUR", "WEEK", "MONTH", "QUARTER", "YEAR"];
const COMPOSITES: &[&str] = &[
    "SECOND_MICROSECOND",
    "MINUTE_MICROSECOND",
    "MINUTE_SECOND",
    "HOUR_MICROSECOND",
    "HOUR_SECOND",
    "HOUR_MINUTE",
    "DAY_MICROSECOND",
    "DAY_SECOND",
    "DAY_MINUTE",
    "DAY_HOUR",
    "YEAR_MONTH",
];
const CAST_TYPES: &[&str] = &[
    "CHAR",
    "SIGNED",
    "UNSIGNED",
    "BINARY",
    "DATE",
    "DATETIME",
    "TIME",
    "DECIMAL",
    "CHAR(3)",
    "BINARY(4)",
    "DECIMAL(10)",
    "DECIMAL(12,3)",
    "DATETIME(3)",
    "TIME(6)",
    "CHAR CHARACTER SET latin1",
    "CHAR(2) CHARSET utf8mb4",
    "SIGNED INTEGER",
    "UNSIGNED INTEGER",
    "NCHAR",
    "DEC(5,1)",
];
const COLLATIONS: &[&str] =
    &["utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_unicode_ci", "latin1_swedish_ci", "binary"];
const CHARSETS: &[&str] = &["utf8mb4", "latin1", "binary", "utf8", "ascii", "ucs2"];

/// Any expression.
pub(super) fn any(writer: &mut Writer<'_>, scope: Scope) {
    writer.place(Slot::Value, |writer| {
        writer.deeper(|writer| form(writer, scope), |writer| leaf(writer, scope));
    });
}

/// Something that has no operator: a literal or a column.
fn leaf(writer: &mut Writer<'_>, scope: Scope) {
    if scope.columns.is_empty() || !writer.choices.once_in(2) {
        literal::any(writer);
    } else {
        column(writer, scope);
    }
}

/// A column of the scope.
pub(super) fn column(writer: &mut Writer<'_>, scope: Scope) {
    let name = writer.choices.of_list(scope.columns);
    if scope.updates {
        writer.place(Slot::Function, |writer| writer.words("VALUES"));
        writer.parens(|writer| writer.token(name));
    } else {
        writer.place(Slot::Column, |writer| writer.token(name));
    }
}

fn form(writer: &mut Writer<'_>, scope: Scope) {
    match writer.choices.below(26) {
        0..=4 => leaf(writer, scope),
        5..=9 => infix(writer, scope),
        10 => writer.parens(|writer| any(writer, scope)),
        11 => prefix(writer, scope),
        12 => test(writer, scope),
        13 => membership(writer, scope),
        14 => matching(writer, scope),
        15 => case(writer, scope),
        16 => conversion(writer, scope),
        17 => arithmetic_of_dates(writer, scope),
        18 => own_grammar(writer, scope),
        19 if scope.queries => query::in_expression(writer, scope),
        20 => row(writer, scope),
        _ => call(writer, scope),
    }
}

/// An operand: seldom in parentheses, so that precedence decides.
fn operand(writer: &mut Writer<'_>, scope: Scope) {
    match writer.choices.below(4) {
        0 => leaf(writer, scope),
        1 => writer.parens(|writer| any(writer, scope)),
        _ => any(writer, scope),
    }
}

fn infix(writer: &mut Writer<'_>, scope: Scope) {
    operand(writer, scope);
    let more = 1 + writer.choices.below(3);
    for _ in 0..more {
        writer.words_of(OPERATORS);
        operand(writer, scope);
    }
}

fn prefix(writer: &mut Writer<'_>, scope: Scope) {
    writer.words_of(&["-", "NOT", "!", "~", "+", "BINARY"]);
    operand(writer, scope);
}

fn test(writer: &mut Writer<'_>, scope: Scope) {
    operand(writer, scope);
    writer.words_of(&[
        "IS NULL",
        "IS NOT NULL",
        "IS TRUE",
        "IS NOT FALSE",
        "IS UNKNOWN",
        "IS NOT UNKNOWN",
    ]);
}

fn negation(writer: &mut Writer<'_>) {
    writer.words_of(&["", "", "NOT"]);
}

fn membership(writer: &mut Writer<'_>, scope: Scope) {
    operand(writer, scope);
    negation(writer);
    if writer.choices.once_in(2) {
        writer.words("BETWEEN");
        operand(writer, scope);
        writer.words("AND");
        operand(writer, scope);
    } else {
        writer.words("IN");
        writer.parens(|writer| {
            let count = 1 + writer.choices.below(4);
            writer.list(count, |writer| any(writer, scope));
        });
    }
}

fn matching(writer: &mut Writer<'_>, scope: Scope) {
    operand(writer, scope);
    negation(writer);
    if writer.choices.once_in(3) {
        writer.words_of(&["REGEXP", "RLIKE"]);
        let pattern = writer.choices.of_list(&[
            "'^a'",
            "'b+'",
            "'[a-c]'",
            "'a|b'",
            "\"x.z$\"",
            "'^[[:alpha:]]'",
            "'\\\\.'",
        ]);
        writer.token(pattern);
        return;
    }
    writer.words("LIKE");
    if writer.choices.once_in(4) {
        operand(writer, scope);
    } else {
        let pattern = writer.choices.of_list(&[
            "'a%'",
            "'_b%'",
            "'%\\\\%'",
            "'\\%'",
            "'a\\_'",
            "\"%x\"",
            "'|%'",
            "'a\\\\\\\\%'",
            "''",
        ]);
        writer.token(pattern);
    }
    if writer.choices.once_in(4) {
        writer.words("ESCAPE");
        let escape = writer.choices.of_list(&["'|'", "'\\\\'", "'!'", "''", "\"'\""]);
        writer.token(escape);
    }
}

fn case(writer: &mut Writer<'_>, scope: Scope) {
    writer.words("CASE");
    if writer.choices.once_in(2) {
        any(writer, scope);
    }
    let branches = 1 + writer.choices.below(3);
    for _ in 0..branches {
        writer.words("WHEN");
        any(writer, scope);
        writer.words("THEN");
        any(writer, scope);
    }
    if writer.choices.once_in(2) {
        writer.words("ELSE");
        any(writer, scope);
    }
    writer.words("END");
}

fn conversion(writer: &mut Writer<'_>, scope: Scope) {
    match writer.choices.below(4) {
        0 => {
            writer.place(Slot::Function, |writer| writer.words("CAST"));
            writer.arguments(|writer| {
                any(writer, scope);
                writer.words("AS");
                let cast = writer.choices.of_list(CAST_TYPES);
                writer.token(cast);
            });
        }
        1 => {
            writer.place(Slot::Function, |writer| writer.words("CONVERT"));
            writer.arguments(|writer| {
                any(writer, scope);
                writer.token(",");
                let cast = writer.choices.of_list(CAST_TYPES);
                writer.token(cast);
            });
        }
        2 => {
            writer.place(Slot::Function, |writer| writer.words("CONVERT"));
            writer.arguments(|writer| {
                any(writer, scope);
                writer.words("USING");
                let set = writer.choices.of_list(CHARSETS);
                writer.token(set);
            });
        }
        _ => {
            operand(writer, scope);
            writer.words("COLLATE");
            let collation = writer.choices.of_list(COLLATIONS);
            writer.token(collation);
        }
    }
}

fn interval(writer: &mut Writer<'_>, scope: Scope) {
    writer.words("INTERVAL");
    if writer.choices.once_in(3) {
        let amount = writer.choices.of_list(&["'1:2'", "'1 2:3:4.5'", "'-1-2'", "\"10.5\"", "1.5"]);
        writer.token(amount);
        writer.words_of(COMPOSITES);
    } else {
        match writer.choices.below(4) {
            0 => writer.token("1"),
            1 => writer.token("-2"),
            2 => writer.token("'3'"),
            _ => any(writer, scope),
        }
        writer.words_of(UNITS);
    }
}

fn arithmetic_of_dates(writer: &mut Writer<'_>, scope: Scope) {
    match writer.choices.below(4) {
        0 => {
            let name = writer.choices.of_list(&["DATE_ADD", "DATE_SUB", "ADDDATE", "SUBDATE"]);
            writer.place(Slot::Function, |writer| writer.words(name));
            writer.arguments(|writer| {
                temporal(writer, scope);
                writer.token(",");
                interval(writer, scope);
            });
        }
        1 => {
            temporal(writer, scope);
            writer.words_of(&["+", "-"]);
            interval(writer, scope);
        }
        2 => {
            interval(writer, scope);
            writer.token("+");
            temporal(writer, scope);
        }
        _ => {
            writer.place(Slot::Function, |writer| {
                writer.words_of(&["TIMESTAMPADD", "TIMESTAMPDIFF"]);
            });
            writer.arguments(|writer| {
                writer.words_of(UNITS);
                writer.token(",");
                any(writer, scope);
                writer.token(",");
                temporal(writer, scope);
            });
        }
    }
}

fn temporal(writer: &mut Writer<'_>, scope: Scope) {
    if writer.choices.once_in(3) { any(writer, scope) } else { literal::temporal(writer) }
}

/// Functions whose arguments are separated by words.
fn own_grammar(writer: &mut Writer<'_>, scope: Scope) {
    match writer.choices.below(8) {
        0 => trim(writer, scope),
        1 => substring(writer, scope),
        2 => {
            writer.words("POSITION");
            writer.arguments(|writer| {
                operand_of_position(writer, scope);
                writer.words("IN");
                any(writer, scope);
            });
        }
        3 => extract(writer, scope, UNITS),
        4 => char_of(writer, scope),
        5 => {
            writer.words("INTERVAL");
            writer.parens(|writer| {
                let count = 2 + writer.choices.below(3);
                writer.list(count, |writer| any(writer, scope));
            });
        }
        6 => extract(writer, scope, COMPOSITES),
        _ => writer.words_of(&["CURRENT_TIMESTAMP", "CURRENT_DATE", "UTC_TIMESTAMP", "LOCALTIME"]),
    }
}

fn trim(writer: &mut Writer<'_>, scope: Scope) {
    writer.words("TRIM");
    writer.arguments(|writer| {
        match writer.choices.below(4) {
            0 => {}
            1 => {
                any(writer, scope);
                writer.words("FROM");
            }
            2 => {
                writer.words_of(&["BOTH", "LEADING", "TRAILING"]);
                any(writer, scope);
                writer.words("FROM");
            }
            _ => writer.words_of(&["BOTH FROM", "LEADING FROM", "TRAILING FROM"]),
        }
        any(writer, scope);
    });
}

fn substring(writer: &mut Writer<'_>, scope: Scope) {
    writer.words_of(&["SUBSTRING", "SUBSTR"]);
    writer.arguments(|writer| {
        any(writer, scope);
        writer.words("FROM");
        any(writer, scope);
        if writer.choices.once_in(2) {
            writer.words("FOR");
            any(writer, scope);
        }
    });
}

fn extract(writer: &mut Writer<'_>, scope: Scope, units: &[&str]) {
    writer.words("EXTRACT");
    writer.arguments(|writer| {
        writer.words_of(units);
        writer.words("FROM");
        temporal(writer, scope);
    });
}

fn char_of(writer: &mut Writer<'_>, scope: Scope) {
    writer.words("CHAR");
    writer.arguments(|writer| {
        let count = 1 + writer.choices.below(3);
        writer.list(count, |writer| any(writer, scope));
        if writer.choices.once_in(2) {
            writer.words("USING");
            let set = writer.choices.of_list(CHARSETS);
            writer.token(set);
        }
    });
}

/// What is looked for: IN would be read as the operator after anything longer.
fn operand_of_position(writer: &mut Writer<'_>, scope: Scope) {
    if writer.choices.once_in(2) {
        writer.parens(|writer| any(writer, scope));
    } else {
        leaf(writer, scope);
    }
}

fn row(writer: &mut Writer<'_>, scope: Scope) {
    let count = 2 + writer.choices.below(2);
    let tuple = |writer: &mut Writer<'_>| {
        writer.words_of(&["", "", "ROW"]);
        writer.parens(|writer| writer.list(count, |writer| any(writer, scope)));
    };
    tuple(writer);
    if writer.choices.once_in(3) {
        writer.words("IN");
        writer.parens(|writer| writer.list(2, tuple));
    } else {
        writer.words_of(&["=", "<=>", "<>", "<", ">="]);
        tuple(writer);
    }
}

/// A call of any function on the policy's list, with as many arguments as it takes.
fn call(writer: &mut Writer<'_>, scope: Scope) {
    let callable: Vec<FunctionSignature> = functions()
        .filter(|function| !function.aggregates)
        .filter(|function| !matches!(function.name, "CHAR" | "TIMESTAMPADD" | "TIMESTAMPDIFF"))
        .collect();
    let function = writer.choices.of_list(&callable);
    writer.place(Slot::Function, |writer| writer.words(function.name));
    writer.arguments(|writer| {
        let least = usize::from(function.arguments_min);
        let most = function.arguments_max.map_or(least + 3, usize::from);
        let count = least + writer.choices.below(most - least + 1);
        if writer.choices.once_in(2) {
            arguments_that_fit(writer, scope, function.name, count);
        } else {
            writer.list(count, |writer| any(writer, scope));
        }
    });
}

/// A function of the rows of a group.
pub(super) fn aggregate(writer: &mut Writer<'_>, scope: Scope) {
    let aggregates: Vec<FunctionSignature> =
        functions().filter(|function| function.aggregates).collect();
    let function = writer.choices.of_list(&aggregates);
    writer.place(Slot::Function, |writer| writer.words(function.name));
    writer.arguments(|writer| match function.name {
        "COUNT" => aggregated(writer, scope, &["*", "DISTINCT", ""]),
        "GROUP_CONCAT" => {
            aggregated(writer, scope, &["", "DISTINCT"]);
            if writer.choices.once_in(2) {
                writer.words("ORDER BY");
                any(writer, scope);
                writer.words_of(&["", "ASC", "DESC"]);
            }
            if writer.choices.once_in(2) {
                writer.words("SEPARATOR");
                literal::single_string(writer);
            }
        }
        "AVG" | "SUM" | "MIN" | "MAX" => aggregated(writer, scope, &["", "DISTINCT"]),
        _ => any(writer, scope),
    });
}

fn aggregated(writer: &mut Writer<'_>, scope: Scope, ways: &[&str]) {
    match writer.choices.of_list(ways) {
        "*" => writer.token("*"),
        "" => any(writer, scope),
        distinct => {
            writer.words(distinct);
            any(writer, scope);
        }
    }
}

/// Arguments of the types the function is for: without them most calls give NULL.
fn arguments_that_fit(writer: &mut Writer<'_>, scope: Scope, function: &str, count: usize) {
    let json = function.starts_with("JSON");
    let spatial = function.starts_with("ST_");
    let temporal =
        ["DATE", "TIME", "DAY", "MONTH", "YEAR", "WEEK", "HOUR", "MINUTE", "SECOND", "TO_"];
    let temporal = temporal.iter().any(|word| function.contains(word));
    let mut first = true;
    writer.list(count, |writer| {
        let is_first = std::mem::replace(&mut first, false);
        match (is_first, writer.choices.below(3)) {
            (true, _) if json => {
                let text = writer.choices.of_list(&[
                    "'[1, {\"k\": \"v\"}, null]'",
                    "'{\"a\": [1.0, true]}'",
                    "'1'",
                ]);
                writer.token(text);
            }
            (false, 0) if json => {
                let path = writer.choices.of_list(&["'$[0]'", "'$.a'", "'$'", "'one'", "'$**.k'"]);
                writer.token(path);
            }
            (true, _) if spatial => writer.token("'POINT(1 2)'"),
            (true, _) if temporal => literal::temporal(writer),
            (false, 0) if temporal => writer.token("'%Y-%m-%d %H:%i:%s'"),
            (_, 1) => literal::number(writer),
            (_, 2) => leaf(writer, scope),
            _ => literal::string(writer),
        }
    });
}
