//! Table definitions: every type, key and option; and tables dropped.

use super::{Slot, Writer, literal, query};

/// Types of numbers, with what may stand in their parentheses.
const NUMBERS: &[&str] = &[
    "INT",
    "INT(11)",
    "BIGINT(20)",
    "TINYINT(1)",
    "SMALLINT",
    "MEDIUMINT(8)",
    "INTEGER",
    "BIGINT",
    "TINYINT",
    "INT1",
    "INT2",
    "INT3",
    "INT4",
    "INT8",
    "MIDDLEINT",
    "DECIMAL",
    "DECIMAL(10)",
    "DECIMAL(10,2)",
    "NUMERIC(5,0)",
    "DEC(3,1)",
    "FIXED(4)",
    "FLOAT",
    "FLOAT(7,3)",
    "FLOAT(10)",
    "DOUBLE",
    "DOUBLE(8,2)",
    "REAL",
    "FLOAT4",
    "FLOAT8",
    "DOUBLE PRECISION",
];
/// Types of text.
const TEXTS: &[&str] = &[
    "VARCHAR(64)",
    "VARCHAR(0)",
    "CHAR",
    "CHAR(36)",
    "CHARACTER(3)",
    "TEXT",
    "TEXT(100)",
    "TINYTEXT",
    "MEDIUMTEXT",
    "LONGTEXT",
    "CHARACTER VARYING(10)",
    "CHAR VARYING(5)",
    "VARCHARACTER(9)",
    "ENUM('a','b''c','\\\\','é')",
    "SET('x',\"y\",'a b')",
    "LONG VARCHAR",
    "LONG",
];
/// Types that take neither a sign nor a character set.
const OTHERS: &[&str] = &[
    "DATE",
    "DATETIME",
    "DATETIME(3)",
    "TIMESTAMP",
    "TIMESTAMP(6)",
    "TIME",
    "TIME(2)",
    "YEAR",
    "YEAR(4)",
    "BIT",
    "BIT(8)",
    "BINARY",
    "BINARY(16)",
    "VARBINARY(32)",
    "BLOB",
    "BLOB(9)",
    "TINYBLOB",
    "MEDIUMBLOB",
    "LONGBLOB",
    "BOOL",
    "BOOLEAN",
    "JSON",
    "NATIONAL VARCHAR(8)",
    "NCHAR(4)",
    "NVARCHAR(6)",
    "NATIONAL CHAR(2)",
    "NCHAR VARCHAR(3)",
    "LONG VARBINARY",
    "GEOMETRY",
    "POINT",
    "LINESTRING",
    "POLYGON",
    "MULTIPOINT",
    "MULTILINESTRING",
    "MULTIPOLYGON",
    "GEOMETRYCOLLECTION",
    "CHAR BYTE",
    "NATIONAL CHARACTER VARYING(5)",
];
const SETS: &[&str] =
    &["utf8mb4", "latin1", "utf8", "ascii", "binary", "ucs2", "gbk", "sjis", "utf16", "cp1251"];
const COLLATIONS: &[&str] =
    &["utf8mb4_bin", "utf8mb4_unicode_ci", "latin1_bin", "utf8_general_ci", "ascii_bin", "binary"];
const ACTIONS: &[&str] = &["CASCADE", "RESTRICT", "SET NULL", "NO ACTION"];

/// The tables that are made here.
const NAMES: [&str; 3] = ["w0", "w1", "w2"];

/// One of: CREATE TABLE, CREATE TABLE LIKE, DROP TABLE, and a row for what was made before.
pub(super) fn statement(writer: &mut Writer<'_>, index: usize) {
    match writer.choices.below(8) {
        0 if index > 0 => drop(writer),
        1 => like(writer, index),
        2 if index > 0 => row(writer, index),
        _ => create(writer, index),
    }
}

fn drop(writer: &mut Writer<'_>) {
    writer.words_of(&["DROP TABLE IF EXISTS", "DROP TABLES IF EXISTS"]);
    let count = 1 + writer.choices.below(3);
    let mut names = ["w0", "w1", "missing"].iter();
    writer.list(count, |writer| query::table(writer, names.next().expect("three are enough")));
    writer.words_of(&["", "", "RESTRICT", "CASCADE"]);
}

fn like(writer: &mut Writer<'_>, index: usize) {
    writer.words("CREATE TABLE IF NOT EXISTS");
    query::table(writer, NAMES[index]);
    if writer.choices.once_in(2) {
        writer.words("LIKE");
        query::table(writer, "t");
    } else {
        writer.parens(|writer| {
            writer.words("LIKE");
            query::table(writer, "u");
        });
    }
}

/// A row of defaults.
fn row(writer: &mut Writer<'_>, index: usize) {
    writer.words("INSERT IGNORE INTO");
    query::table(writer, NAMES[index - 1]);
    writer.parens(|_| {});
    writer.words("VALUES");
    writer.parens(|_| {});
}

/// What a key can do with a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Any key, whole.
    Whole,
    /// A prefix of it, and full-text keys.
    Text,
    /// A spatial key.
    Geometry,
    /// None.
    Bare,
}

fn create(writer: &mut Writer<'_>, index: usize) {
    writer.words("CREATE TABLE IF NOT EXISTS");
    query::table(writer, NAMES[index]);
    writer.parens(|writer| {
        let primary = writer.choices.once_in(2);
        let mut columns = vec![Class::Whole];
        first_column(writer, primary);
        for number in 1..=writer.choices.below(5) {
            writer.token(",");
            columns.push(column(writer, number));
        }
        let keys = writer.choices.below(4);
        for number in 0..keys {
            writer.token(",");
            key(writer, &columns, number, primary && number == 0);
        }
        if primary && keys == 0 {
            writer.token(",");
            primary_key(writer);
        }
        if writer.choices.once_in(6) {
            // A column may stand behind the keys as long as it has none of its own.
            writer.token(",");
            writer.token("late");
            writer.words_of(&["INT", "VARCHAR(9) NOT NULL", "TEXT", "DATETIME NULL"]);
        }
    });
    let options = writer.choices.below(4);
    for position in 0..options {
        if position > 0 && writer.choices.once_in(3) {
            writer.token(",");
        }
        option(writer);
    }
}

/// A column that can carry any key; the primary one itself unless that is written apart.
fn first_column(writer: &mut Writer<'_>, primary_apart: bool) {
    writer.token("c0");
    writer.words_of(&["INT", "BIGINT UNSIGNED", "INT(10)", "MEDIUMINT"]);
    writer.words_of(if primary_apart {
        &["NOT NULL", "", "NOT NULL AUTO_INCREMENT"]
    } else {
        &[
            "NOT NULL",
            "",
            "NOT NULL AUTO_INCREMENT PRIMARY KEY",
            "AUTO_INCREMENT UNIQUE",
            "PRIMARY KEY",
        ]
    });
    comment(writer);
}

fn column(writer: &mut Writer<'_>, number: usize) -> Class {
    let name = format!("c{number}");
    let quoted = writer.choices.once_in(2);
    writer.token(if quoted { format!("`{name}`") } else { name });
    let class = match writer.choices.below(3) {
        0 => number_type(writer),
        1 => text_type(writer),
        _ => other_type(writer),
    };
    comment(writer);
    class
}

fn comment(writer: &mut Writer<'_>) {
    if writer.choices.once_in(4) {
        writer.words("COMMENT");
        literal::single_string(writer);
    }
}

fn number_type(writer: &mut Writer<'_>) -> Class {
    let name = writer.choices.of_list(NUMBERS);
    writer.words(name);
    writer.words_of(&[
        "",
        "",
        "UNSIGNED",
        "SIGNED",
        "ZEROFILL",
        "UNSIGNED ZEROFILL",
        "ZEROFILL UNSIGNED",
    ]);
    match writer.choices.below(5) {
        0 => {}
        1 => writer.words("NOT NULL"),
        2 => default(writer, &["0", "1", "'1'", "NULL", "-1", "1.5", "+2", "b'1'", "0x31", "TRUE"]),
        3 => {
            writer.words("NOT NULL");
            default(writer, &["0", "1", "'1'", "1e1", "\"7\""]);
        }
        _ => writer.words("UNIQUE KEY"),
    }
    Class::Whole
}

fn text_type(writer: &mut Writer<'_>) -> Class {
    let name = writer.choices.of_list(TEXTS);
    if name.contains('\'') {
        writer.token(name);
    } else {
        writer.words(name);
    }
    match writer.choices.below(6) {
        0 | 1 => {}
        2 => {
            writer.words_of(&["CHARACTER SET", "CHARSET", "CHAR SET"]);
            let set = writer.choices.of_list(SETS);
            writer.token(set);
        }
        3 => writer.words("BINARY"),
        4 => {
            writer.words("COLLATE");
            let collation = writer.choices.of_list(COLLATIONS);
            writer.token(collation);
        }
        _ => writer.words_of(&["BINARY CHARACTER SET utf8", "CHARSET latin1 BINARY"]),
    }
    match writer.choices.below(5) {
        0 => {}
        1 => writer.words("NOT NULL"),
        2 => writer.words("NULL"),
        3 => {
            writer.words("DEFAULT");
            literal::single_string(writer);
        }
        _ => {
            writer.words("NOT NULL");
            default(writer, &["''", "'a'", "\"b\"", "'\\\\'", "'it''s'", "X'61'", "_utf8mb4'a'"]);
        }
    }
    if name.starts_with(['E', 'S']) {
        Class::Whole
    } else if name.contains("(0)") || name.starts_with("CHAR") && !name.contains('(') {
        Class::Bare
    } else {
        Class::Text
    }
}

/// Types of geometry, a key of which has to be NOT NULL.
const GEOMETRIES: &[&str] = &["GEOMETRY", "POINT", "LINESTRING", "POLYGON"];

fn other_type(writer: &mut Writer<'_>) -> Class {
    if writer.choices.once_in(5) {
        writer.words_of(GEOMETRIES);
        writer.words("NOT NULL");
        return Class::Geometry;
    }
    let name = writer.choices.of_list(OTHERS);
    writer.words(name);
    match name {
        "TIMESTAMP" | "DATETIME" => writer.words_of(&[
            "",
            "NULL",
            "NOT NULL DEFAULT CURRENT_TIMESTAMP",
            "NULL DEFAULT NULL",
            "DEFAULT CURRENT_TIMESTAMP()",
            "NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP",
            "DEFAULT NOW() ON UPDATE NOW()",
            "ON UPDATE CURRENT_TIMESTAMP",
            "DEFAULT LOCALTIME",
            "DEFAULT '2024-02-29 00:00:00'",
            "DEFAULT 0",
        ]),
        "DATETIME(3)" => writer.words_of(&[
            "",
            "DEFAULT CURRENT_TIMESTAMP(3)",
            "DEFAULT NOW(3) ON UPDATE NOW(3)",
        ]),
        "DATE" => writer.words_of(&["", "DEFAULT '2024-02-29'", "NOT NULL", "NULL"]),
        "BOOL" | "BOOLEAN" => {
            writer.words_of(&["", "DEFAULT TRUE", "NOT NULL DEFAULT FALSE", "DEFAULT 1"]);
        }
        "BIT(8)" => writer.words_of(&["", "DEFAULT b'101'", "DEFAULT 0x05", "NOT NULL"]),
        "BINARY(16)" => writer.words_of(&["", "DEFAULT 'a'", "DEFAULT X'00'", "NOT NULL"]),
        _ => writer.words_of(&["", "", "NULL", "NOT NULL"]),
    }
    let bare = ["BLOB", "JSON", "GEO", "POINT", "LINE", "POLY", "MULTI", "LONG"];
    if bare.iter().any(|word| name.contains(word)) { Class::Bare } else { Class::Whole }
}

fn default(writer: &mut Writer<'_>, values: &[&str]) {
    writer.words("DEFAULT");
    let value = writer.choices.of_list(values);
    writer.token(value);
}

fn key(writer: &mut Writer<'_>, columns: &[Class], number: usize, primary: bool) {
    if primary {
        return primary_key(writer);
    }
    match writer.choices.below(8) {
        0..=2 => {
            writer.words_of(&["KEY", "INDEX", "UNIQUE KEY", "UNIQUE", "UNIQUE INDEX"]);
            index(writer, columns, number);
        }
        3 | 4 => foreign_key(writer, number),
        5 => special_index(
            writer,
            &["FULLTEXT KEY", "FULLTEXT INDEX", "FULLTEXT"],
            columns,
            Class::Text,
            number,
        ),
        6 => check(writer, number),
        _ => special_index(
            writer,
            &["SPATIAL KEY", "SPATIAL INDEX", "SPATIAL"],
            columns,
            Class::Geometry,
            number,
        ),
    }
}

fn primary_key(writer: &mut Writer<'_>) {
    writer.words("PRIMARY KEY");
    writer.words_of(&["", "", "USING BTREE"]);
    writer.parens(|writer| writer.token("c0"));
    index_options(writer);
}

fn foreign_key(writer: &mut Writer<'_>, number: usize) {
    if writer.choices.once_in(2) {
        writer.words("CONSTRAINT");
        writer.token(format!("`fk {number}`"));
    }
    writer.words("FOREIGN KEY");
    if writer.choices.once_in(2) {
        writer.token(format!("fki{number}"));
    }
    writer.parens(|writer| writer.token("c0"));
    references(writer);
}

fn check(writer: &mut Writer<'_>, number: usize) {
    if writer.choices.once_in(2) {
        writer.words("CONSTRAINT");
        writer.token(format!("ck{number}"));
    }
    writer.words("CHECK");
    writer.parens(|writer| {
        let check = writer.choices.of_list(&[
            "c0 > 0",
            "c0 BETWEEN 1 AND 9",
            "c0 <> 3 OR c0 IS NULL",
            "`c0` % 2 = 0",
        ]);
        writer.token(check);
    });
}

fn index(writer: &mut Writer<'_>, columns: &[Class], number: usize) {
    if !writer.choices.once_in(4) {
        index_name(writer, number);
        writer.words_of(&["", "", "USING BTREE"]);
    }
    writer.parens(|writer| {
        let count = 1 + writer.choices.below(columns.len().min(3));
        let mut columns = columns.iter().enumerate().take(count);
        writer.list(count, |writer| match columns.next() {
            Some((number, Class::Text)) => {
                writer.token(format!("c{number}"));
                writer.parens(|writer| writer.token("3"));
                writer.words_of(&["", "", "ASC", "DESC"]);
            }
            Some((number, Class::Whole)) => {
                writer.token(format!("c{number}"));
                writer.words_of(&["", "", "ASC", "DESC"]);
            }
            // A column named twice is an error that all servers know.
            _ => writer.token("c0"),
        });
    });
    index_options(writer);
}

/// A full-text or spatial index, which has no algorithm to choose; a plain one when no column fits.
fn special_index(
    writer: &mut Writer<'_>,
    words: &[&str],
    columns: &[Class],
    class: Class,
    number: usize,
) {
    let Some(column) = columns.iter().position(|column| *column == class) else {
        writer.words("KEY");
        return index(writer, columns, number);
    };
    writer.words_of(words);
    if !writer.choices.once_in(4) {
        index_name(writer, number);
    }
    writer.parens(|writer| writer.token(format!("c{column}")));
    match writer.choices.below(4) {
        0 | 1 => {}
        2 => {
            writer.words("COMMENT");
            literal::index_comment(writer);
        }
        _ => key_block_size(writer),
    }
}

fn index_name(writer: &mut Writer<'_>, number: usize) {
    let name = writer.choices.of_list(&["k", "a-b.c", "é", "key "]);
    writer.token(format!("`{name}{number}`"));
}

fn key_block_size(writer: &mut Writer<'_>) {
    writer.words("KEY_BLOCK_SIZE");
    writer.words_of(&["", "="]);
    writer.token("8");
}

fn index_options(writer: &mut Writer<'_>) {
    match writer.choices.below(6) {
        0..=2 => {}
        3 => writer.words("USING BTREE"),
        4 => {
            writer.words("COMMENT");
            literal::index_comment(writer);
        }
        _ => key_block_size(writer),
    }
}

fn references(writer: &mut Writer<'_>) {
    writer.words("REFERENCES");
    writer.place(Slot::Table, |writer| writer.token("t"));
    writer.parens(|writer| writer.token("id"));
    if writer.choices.once_in(2) {
        writer.words("ON DELETE");
        writer.words_of(ACTIONS);
    }
    if writer.choices.once_in(3) {
        writer.words("ON UPDATE");
        writer.words_of(ACTIONS);
    }
}

fn option(writer: &mut Writer<'_>) {
    let equals = |writer: &mut Writer<'_>| writer.words_of(&["=", ""]);
    match writer.choices.below(9) {
        0 | 1 => {
            writer.words("ENGINE");
            equals(writer);
            let engine =
                writer.choices.of_list(&["InnoDB", "innodb", "'InnoDB'", "\"INNODB\"", "`InnoDB`"]);
            writer.token(engine);
        }
        2 => {
            writer.words_of(&[
                "DEFAULT CHARSET",
                "CHARSET",
                "DEFAULT CHARACTER SET",
                "CHARACTER SET",
            ]);
            equals(writer);
            let set = writer.choices.of_list(&["utf8mb4", "latin1", "utf8", "'utf8mb4'", "binary"]);
            writer.token(set);
        }
        3 => {
            writer.words_of(&["COLLATE", "DEFAULT COLLATE"]);
            equals(writer);
            let collation = writer.choices.of_list(&[
                "utf8mb4_bin",
                "utf8mb4_unicode_ci",
                "'utf8mb4_general_ci'",
            ]);
            writer.token(collation);
        }
        4 => {
            writer.words("COMMENT");
            equals(writer);
            literal::single_string(writer);
        }
        5 => {
            writer.words("AUTO_INCREMENT");
            equals(writer);
            writer.token("17");
        }
        6 => {
            writer.words("ROW_FORMAT");
            equals(writer);
            writer.words_of(&["DYNAMIC", "COMPACT", "REDUNDANT", "DEFAULT", "COMPRESSED"]);
        }
        7 => {
            writer.words("KEY_BLOCK_SIZE");
            equals(writer);
            writer.words_of(&["8", "4"]);
        }
        _ => {
            let name = writer.choices.of_list(&[
                "PACK_KEYS",
                "CHECKSUM",
                "MAX_ROWS",
                "MIN_ROWS",
                "AVG_ROW_LENGTH",
                "DELAY_KEY_WRITE",
                "STATS_PERSISTENT",
                "STATS_AUTO_RECALC",
            ]);
            writer.words(name);
            equals(writer);
            writer.words_of(&["0", "1"]);
        }
    }
}
