//! Payloads of the sizes and shapes that plugins ship: a table of some 400 bytes, rows that are
//! inserted one at a time, seeds of hundreds of kilobytes; and the costliest ones that are allowed.

use std::fmt::Write as _;

/// A payload with the name that tables of figures give it.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Its size and what it is made of.
    pub name: &'static str,
    /// The payload.
    pub sql: String,
    /// How many statements it has.
    pub statement_count: usize,
}

/// Columns of every row that is inserted.
const COLUMNS: &str = "(id, customer_name_0, amount_1, state_2, created_3)";

/// Every shape, the smallest first.
pub fn shapes() -> Vec<Shape> {
    let mixed = |tables: usize, columns: usize, inserts: usize| {
        let tables: Vec<String> = (0..tables).map(|table| create(table, columns)).collect();
        let inserts =
            (0..inserts).map(|row| insert(row % tables.len(), &[row])).collect::<Vec<_>>();
        joined(tables.into_iter().chain(inserts))
    };
    vec![
        shape("348 B, one CREATE TABLE", 1, create(1, 3)),
        shape("638 B, CREATE TABLE and INSERT", 2, mixed(1, 6, 1)),
        shape("3.2 kB, 3 tables and 9 rows", 12, mixed(3, 8, 9)),
        shape("16 kB, 15 tables and 45 rows", 60, mixed(15, 9, 45)),
        shape("11 kB, 40 INSERT … SELECT", 40, joined((0..40).map(insert_select))),
        shape(
            "440 kB, 100 INSERTs of 68 rows",
            100,
            joined(
                (0..100).map(|table| {
                    insert(table, &(table * 68..(table + 1) * 68).collect::<Vec<_>>())
                }),
            ),
        ),
        shape("1 MB, one INSERT of 15,000 rows", 1, insert(0, &(0..15_000).collect::<Vec<_>>())),
        shape(
            "1 MB, 100 DELETEs of 900 ORs",
            100,
            joined((0..100).map(|table| {
                let terms: Vec<String> = (0..900).map(|value| format!("a = {value}")).collect();
                format!("DELETE FROM t{table} WHERE {}", terms.join(" OR "))
            })),
        ),
    ]
}

/// So many payload files with the sizes that plugins' files have: most of a few hundred bytes, some of
/// tens of kilobytes, one in a hundred of hundreds.
pub fn files(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|number| match number % 100 {
        0..60 => create(number, 4),
        60..85 => joined((0..4).map(|row| insert(number, &[row])).chain([create(number, 3)])),
        85..97 => joined((0..40).map(|row| insert(number, &[row]))),
        97..99 => joined((0..100).map(|row| insert(number, &[row, row + 1, row + 2]))),
        _ => joined((0..100).map(|table| insert(table, &(0..68).collect::<Vec<_>>()))),
    })
}

fn shape(name: &'static str, statement_count: usize, sql: String) -> Shape {
    Shape { name, sql, statement_count }
}

fn joined(statements: impl IntoIterator<Item = String>) -> String {
    statements.into_iter().collect::<Vec<_>>().join(";\n")
}

/// A table as generators of migrations write them.
fn create(table: usize, columns: usize) -> String {
    let mut sql = format!(
        "CREATE TABLE IF NOT EXISTS orders_{table} (\n  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT COMMENT 'surrogate key',\n"
    );
    for column in 0..columns {
        let definition = match column % 4 {
            0 => format!("customer_name_{column} VARCHAR(120) NOT NULL DEFAULT ''"),
            1 => format!("amount_{column} DECIMAL(12,2) DEFAULT NULL"),
            2 => format!("state_{column} TINYINT(4) NOT NULL DEFAULT '0' COMMENT 'state'"),
            _ => format!("created_{column} DATETIME DEFAULT CURRENT_TIMESTAMP"),
        };
        let _ = writeln!(sql, "  {definition},");
    }
    sql + "  PRIMARY KEY (id),\n  KEY by_name (customer_name_0)\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"
}

fn insert(table: usize, rows: &[usize]) -> String {
    let rows: Vec<String> = rows
        .iter()
        .map(|row| format!("({row}, 'Customer {row}', {row}.50, 1, '2026-01-02 03:04:05')"))
        .collect();
    format!("INSERT IGNORE INTO orders_{table} {COLUMNS} VALUES {}", rows.join(",\n"))
}

fn insert_select(table: usize) -> String {
    format!(
        "INSERT INTO summary_{table} (id, total) SELECT o.customer_id, SUM(o.amount) FROM orders AS o \
         JOIN customers AS c ON c.id = o.customer_id WHERE c.active = 1 AND o.created > '2026-01-01' \
         GROUP BY o.customer_id ON DUPLICATE KEY UPDATE total = VALUES(total)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes are what the names say, and everything is allowed: a denial would be measured as speed.
    #[test]
    fn shapes_are_what_their_names_say() {
        for Shape { name, sql, statement_count } in shapes() {
            let decision = tollgate_policy::decide(&crate::native_request(&sql));
            let tollgate_policy::Decision::Allow(allowance) = decision else {
                panic!("{name}: {decision:?}");
            };
            assert_eq!(allowance.statements.len(), statement_count, "{name}");
            let (size, unit) = name.split_once(',').unwrap().0.split_once(' ').unwrap();
            let unit = match unit {
                "B" => 1.0,
                "kB" => 1e3,
                "MB" => 1e6,
                other => panic!("{other}"),
            };
            let said = size.parse::<f64>().unwrap() * unit;
            let ratio = sql.len() as f64 / said;
            assert!((0.9..1.1).contains(&ratio), "{name}: {} bytes", sql.len());
        }
    }
}
