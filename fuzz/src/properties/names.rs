//! What an allow runs names nothing but the catalog's tables, in a reading that shares no code with
//! the policy's: its own lexer, and the few rules of MySQL's grammar that say where a table stands.

use std::collections::BTreeSet;

use tollgate_policy::{Access, Decision, Operation, Statement, function_names};

use super::lexer::{Lexeme, Mark, lex};
use super::{CATALOG, PROTECTED_TABLES, Violation, decide, ensure};

/// Words that a parenthesis follows without a space and that call nothing.
#[rustfmt::skip]
const NO_FUNCTIONS: &[&str] = &[
    // Forms of their own grammar.
    "CAST", "CONVERT", "DEFAULT", "EXTRACT", "INTERVAL", "POSITION", "TRIM", "VALUES",
    // Types with a length or members.
    "BINARY", "BIT", "BIGINT", "BLOB", "DATETIME", "DEC", "DECIMAL", "DOUBLE", "ENUM", "FIXED",
    "FLOAT", "INT", "INTEGER", "MEDIUMINT", "NUMERIC", "REAL", "SET", "SIGNED", "SMALLINT",
    "TEXT", "TINYINT", "UNSIGNED", "VARBINARY", "VARCHAR",
];

/// Words that no allowed statement has outside of its strings and names.
#[rustfmt::skip]
const NEVER: &[&str] = &[
    "ALTER", "ANALYZE", "CALL", "DATABASE", "DUMPFILE", "EXECUTE", "FLUSH", "FUNCTION", "GRANT",
    "HANDLER", "INFILE", "INSTALL", "KILL", "LATERAL", "LOAD", "LOCK", "OUTFILE", "PARTITION",
    "PREPARE", "PROCEDURE", "RENAME", "RETURNING", "REVOKE", "SCHEMA", "SHUTDOWN", "TABLESPACE",
    "TEMPORARY", "TRIGGER", "USE", "VIEW", "XA",
];

/// Every allowed statement, read again.
pub fn names(payload: &[u8]) -> Result<(), Violation> {
    let Decision::Allow(allowance) = decide(payload) else {
        return Ok(());
    };
    allowance.statements.iter().try_for_each(|statement| {
        named(statement).map_err(|violation| format!("{violation}: {}", statement.text))
    })
}

fn named(statement: &Statement) -> Result<(), Violation> {
    let lexemes = lex(&statement.text);
    let parts = parts(&lexemes)?;
    words(&parts)?;
    let mut reading = Reading::new();
    for at in 0..parts.len() {
        reading.part(&parts, at, statement.operation)?;
    }
    reading.judge(statement)
}

/// A lexeme, or names joined by dots.
#[derive(Debug)]
struct Part<'a> {
    first: Lexeme<'a>,
    /// The names, when it is one; `*` for the last of `t.*`.
    chain: Vec<&'a str>,
    end: usize,
}

impl Part<'_> {
    fn is(&self, text: &str) -> bool {
        self.chain.is_empty() && self.first.is(text)
    }

    fn is_any(&self, texts: &[&str]) -> bool {
        texts.iter().any(|text| self.is(text))
    }
}

fn parts<'a>(lexemes: &[Lexeme<'a>]) -> Result<Vec<Part<'a>>, Violation> {
    let mut parts: Vec<Part<'a>> = Vec::new();
    let mut at = 0;
    while let Some(first) = lexemes.get(at) {
        ensure(first.mark != Mark::Stray, || format!("`{}` at {}", first.text, first.at))?;
        let mut part = Part { first: *first, chain: Vec::new(), end: first.end() };
        part.chain.extend(first.name());
        at += 1;
        while !part.chain.is_empty() && lexemes.get(at).is_some_and(|dot| dot.is(".")) {
            let next = lexemes.get(at + 1);
            let name = next.and_then(|next| next.is("*").then_some("*").or(next.name()));
            let Some((name, next)) = name.zip(next) else {
                return Err(format!("a dot before no name at {}", first.at));
            };
            part.chain.push(name);
            part.end = next.end();
            at += 2;
        }
        ensure(!part.is("."), || format!("a dot behind no name at {}", first.at))?;
        parts.push(part);
    }
    Ok(parts)
}

/// No word calls what the policy does not list, and none starts something else.
fn words(parts: &[Part<'_>]) -> Result<(), Violation> {
    let functions: BTreeSet<&str> = function_names().collect();
    for (at, part) in parts.iter().enumerate().filter(|(_, part)| part.first.mark == Mark::Word) {
        let word = part.first.text.to_ascii_uppercase();
        ensure(!NEVER.contains(&&*word), || format!("the word `{word}`"))?;
        let calls = parts.get(at + 1).is_some_and(|next| next.is("(") && next.first.at == part.end);
        let known = functions.contains(&*word) || NO_FUNCTIONS.contains(&&*word);
        ensure(!calls || known || word.ends_with("CHAR"), || format!("a call of `{word}`"))?;
    }
    Ok(())
}

/// What is open: a parenthesis, or the statement itself.
#[derive(Debug, Default, Clone, Copy)]
struct Level {
    /// Commas separate tables here.
    tables: bool,
    /// A function in which FROM is a separator.
    separator: bool,
}

/// What one statement names.
#[derive(Debug)]
struct Reading<'a> {
    levels: Vec<Level>,
    level: Level,
    /// What a DELETE names before its FROM.
    targets: bool,
    /// The next part is a table, or a parenthesis that has tables or a query.
    table_next: bool,
    tables: BTreeSet<&'a str>,
    aliases: BTreeSet<&'a str>,
    /// Targets that are aliases, or tables once more.
    aimed: Vec<&'a str>,
}

impl<'a> Reading<'a> {
    fn new() -> Self {
        Self {
            levels: Vec::new(),
            level: Level::default(),
            targets: true,
            table_next: false,
            tables: BTreeSet::new(),
            aliases: BTreeSet::new(),
            aimed: Vec::new(),
        }
    }

    fn part(
        &mut self,
        parts: &[Part<'a>],
        at: usize,
        operation: Operation,
    ) -> Result<(), Violation> {
        let part = &parts[at];
        let before = at.checked_sub(1).map(|at| &parts[at]);
        let follows = |words: &[&str]| before.is_some_and(|before| before.is_any(words));
        let table = std::mem::take(&mut self.table_next);
        if part.is("(") {
            self.levels.push(self.level);
            let separator = follows(&["EXTRACT", "SUBSTRING", "TRIM"]);
            self.level = Level { tables: table, separator };
            self.table_next = table;
        } else if part.is(")") {
            let Some(level) = self.levels.pop() else {
                return Err("a closing parenthesis too many".into());
            };
            self.level = level;
        } else if part.is(",") {
            self.table_next = self.level.tables;
        } else if part.first.mark == Mark::Word {
            let dual = table && part.is_any(&["DUAL", "SELECT"]);
            ensure(!table || dual, || format!("`{}` in place of a table", part.first.text))?;
            self.word(part, before, operation);
        } else if !part.chain.is_empty() {
            if table {
                return self.table(&part.chain);
            }
            if follows(&["AS"]) {
                self.aliases.insert(part.chain[0]);
            }
            if operation == Operation::Delete && self.targets {
                return self.target(&part.chain);
            }
            self.calls_nothing(parts, at, operation)?;
            return qualified(&part.chain);
        }
        Ok(())
    }

    fn word(&mut self, part: &Part<'_>, before: Option<&Part<'_>>, operation: Operation) {
        let from = part.is("FROM") && !self.level.separator;
        let exists =
            part.is("EXISTS") && before.is_some_and(|before| before.is_any(&["IF", "NOT"]));
        let defines = matches!(operation, Operation::CreateTable | Operation::DropTable)
            && exists
            && self.levels.is_empty();
        let like = part.is("LIKE") && operation == Operation::CreateTable && self.levels.is_empty();
        if part
            .is_any(&["WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "UNION", "SELECT", "SET", "ON"])
        {
            self.level.tables = false;
        }
        self.targets &= !from;
        if from || (defines && operation == Operation::DropTable) {
            self.level.tables = true;
        }
        self.table_next = from || defines || like || part.is_any(&["INTO", "JOIN", "REFERENCES"]);
    }

    /// Where a table stands: two names, the first of which is the catalog.
    fn table(&mut self, chain: &[&'a str]) -> Result<(), Violation> {
        let [CATALOG, table] = chain else {
            return Err(format!("`{}` in place of a table", chain.join("`.`")));
        };
        self.tables.insert(table);
        Ok(())
    }

    /// What a DELETE takes rows from: a table of the catalog, or one that FROM names.
    fn target(&mut self, chain: &[&'a str]) -> Result<(), Violation> {
        match chain {
            [alias] => self.aimed.push(alias),
            _ => self.table(chain)?,
        }
        Ok(())
    }

    /// A name with something in parentheses is a call of a stored function to the server, except
    /// where it is a table with columns or an index with columns or a length.
    fn calls_nothing(
        &self,
        parts: &[Part<'a>],
        at: usize,
        operation: Operation,
    ) -> Result<(), Violation> {
        let Some(open) = parts.get(at + 1).filter(|next| next.is("(")) else {
            return Ok(());
        };
        let key = at.checked_sub(1).is_some_and(|before| parts[before].is("KEY"));
        let length = parts.get(at + 2).is_some_and(|part| part.first.mark == Mark::Number)
            && parts.get(at + 3).is_some_and(|part| part.is(")"));
        let index = operation == Operation::CreateTable
            && ((key && self.levels.len() == 1) || (length && self.levels.len() == 2));
        ensure(index, || format!("a call of a quoted name at {}", open.first.at))
    }

    /// Every name that was read is one the policy reported.
    fn judge(&self, statement: &Statement) -> Result<(), Violation> {
        ensure(self.levels.is_empty(), || "a parenthesis is left open".into())?;
        let reported: BTreeSet<&str> = statement.tables.iter().map(|table| &*table.name).collect();
        ensure(self.tables == reported, || {
            format!("tables {:?}, reported {reported:?}", self.tables)
        })?;
        let known = |name: &&&str| reported.contains(**name) || self.aliases.contains(**name);
        let unknown = self.aimed.iter().find(|name| !known(name));
        ensure(unknown.is_none(), || format!("rows are deleted from {unknown:?}"))?;
        for table in &reported {
            let protected = PROTECTED_TABLES.iter().any(|name| name.eq_ignore_ascii_case(table));
            let reserved = table.to_ascii_lowercase().starts_with("factory_plugin_");
            ensure(!protected && !reserved, || format!("the protected table `{table}`"))?;
        }
        let changes = |table: &tollgate_policy::TableAccess| table.access != Access::Read;
        ensure(statement.tables.iter().any(changes), || "no table is changed".into())
    }
}

/// Anywhere else: a column, and before it a table or an alias, and before that the catalog. A
/// table that is not in the statement gives a column the server does not find, whatever
/// catalogs there are.
fn qualified(chain: &[&str]) -> Result<(), Violation> {
    let inside = chain.len() < 3 || (chain.len() == 3 && chain[0] == CATALOG);
    ensure(inside, || format!("the name `{}`", chain.join("`.`")))
}

#[cfg(test)]
mod tests {
    use tollgate_policy::TableAccess;

    use super::*;

    /// A DELETE that reports one table, whatever its text says.
    fn judged(text: &str) -> Result<(), Violation> {
        let table =
            TableAccess { catalog: CATALOG.into(), name: "t".into(), access: Access::Write };
        named(&Statement {
            index: 0,
            operation: Operation::Delete,
            text: text.into(),
            tables: vec![table],
            span: tollgate_policy::Span { start: 0, end: 0 },
        })
    }

    #[test]
    fn what_the_policy_prints_is_accepted() {
        let delete = "DELETE FROM `plugin_preview`.`t` WHERE ";
        for condition in ["`id` = 1", "`t`.`id` = CONCAT('`a`.`b`', '-- ')", "`id` IN (1, -1.5e+3)"]
        {
            assert_eq!(judged(&[delete, condition].concat()), Ok(()));
        }
    }

    #[test]
    fn what_it_must_not_print_is_found() {
        let delete = "DELETE FROM `plugin_preview`.`t` WHERE ";
        for condition in [
            "`id` = 1 -- x",
            "`id` = 1 /* x */",
            "`id` = 1; DROP",
            "`id` = @a",
            "`id` = @@port",
            "`id` = \"a\"",
            "`id` = 1 || 1",
            "`id` = 'a",
            "`id` = 1)",
            "`id` = (1",
            "`id` = SLEEP(1)",
            "`id` = `f`(1)",
            "`id` = `other`.`f`(`id`)",
            "`id` = `other`.`u`.`id`",
            "`id` IN (SELECT `id` FROM `plugin_preview`.`u`)",
            "`id` IN (SELECT `id` FROM `other`.`t`)",
            "`id` IN (SELECT `id` FROM `plugin_preview`.`t`, `other`.`t`)",
            "`id` IN (SELECT `id` FROM (`plugin_preview`.`t` INNER JOIN `other`.`t`))",
            "`id` IN (SELECT `id` FROM t)",
            "`id` IN (SELECT `id` FROM `plugin_preview`.`factory_plugin_x`)",
            "`id` IN (SELECT 1 INTO OUTFILE 'x')",
        ] {
            assert!(judged(&[delete, condition].concat()).is_err(), "{condition}");
        }
        assert!(judged("DELETE `other`.`t` FROM `plugin_preview`.`t` WHERE `id` = 1").is_err());
        assert!(judged("DELETE `u` FROM `plugin_preview`.`t` WHERE `id` = 1").is_err());
        assert!(judged("DELETE FROM `plugin_preview`.`u` WHERE `id` = 1").is_err());
    }
}
