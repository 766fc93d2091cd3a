//! Every payload within the bounds is decided: the largest and most crooked ones there are, through
//! the published component, each well within the fuel and the memory of one decision.
//!
//! Fuel and memory are counted, so they are asserted. Time is printed beside them and never asserted.

use std::fmt::Write as _;
use std::iter;
use std::path::Path;
use std::time::Instant;

use tollgate::ids::ExecutorCode;
use tollgate::policy::{
    CompileCache, DecisionRequest, GUEST_FUEL_MAX, GUEST_MEMORY_BYTES_MAX, Outcome, PolicyRuntime,
    PolicyStore, RuntimeOptions,
};

/// The payload's bound, 1 MiB inclusive.
const PAYLOAD_BYTES_MAX: usize = 1 << 20;

/// Fuel that the costliest payload may take: three fifths of what there is.
const FUEL_MAX: u64 = GUEST_FUEL_MAX / 5 * 3;

/// Memory that the largest payload may take: what there is, less a sixteenth.
const MEMORY_BYTES_MAX: usize = GUEST_MEMORY_BYTES_MAX / 16 * 15;

/// What the answer must be.
#[derive(Debug, Clone, Copy)]
enum Answer {
    Allow,
    /// With this code among the diagnostics.
    Deny(&'static str),
    /// Denied for the number of its items or tokens, whichever is passed first.
    TooMuch,
    /// Denied, whatever for.
    Refuse,
}

/// A payload that goes so deep.
type Payload<'a> = Box<dyn Fn(usize) -> String + 'a>;

struct Case {
    name: String,
    payload: Vec<u8>,
    answer: Answer,
}

fn case(name: &str, payload: impl Into<Vec<u8>>, answer: Answer) -> Case {
    Case { name: name.to_owned(), payload: payload.into(), answer }
}

/// A statement's start, then as many repetitions as 1 MiB has room for, then its end.
fn filled(start: &str, unit: &str, end: &str) -> String {
    let count = (PAYLOAD_BYTES_MAX - start.len() - end.len()) / unit.len();
    [start, &unit.repeat(count), end].concat()
}

/// 1 MiB of one text, alone and where an operand stands.
fn noise(name: &str, unit: &str) -> [Case; 2] {
    let condition = filled("DELETE FROM t WHERE id = ", unit, "");
    [
        case(name, filled("", unit, ""), Answer::Refuse),
        case(&format!("{name}, in a condition"), condition, Answer::Refuse),
    ]
}

fn listed(count: usize, item: impl Fn(usize) -> String, separator: &str) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(separator)
}

/// Decides on every case and prints what each took; then says which were not as they must be.
fn decide(cases: impl IntoIterator<Item = Case>) {
    let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled");
    let options =
        RuntimeOptions { cache: CompileCache::Directory(shared), ..RuntimeOptions::default() };
    let store = PolicyStore::embedded().unwrap();
    let pin = store.pin(&ExecutorCode::sql_jdbc_v1()).unwrap();
    let policy =
        PolicyRuntime::new(options).unwrap().load(pin, &store.component(pin).unwrap()).unwrap();
    let catalog = "plugin_preview".parse().unwrap();
    let mut figures = String::from("   Mfuel     MiB      ms  answer  payload\n");
    let mut wrong = Vec::new();
    for Case { name, payload, answer } in cases {
        assert!(payload.len() <= PAYLOAD_BYTES_MAX, "{name}: {} bytes", payload.len());
        let request =
            DecisionRequest { payload: &payload, catalog: &catalog, protected_tables: &[] };
        let start = Instant::now();
        let decision = match policy.decide(&request) {
            Ok(decision) => decision,
            Err(error) => {
                wrong.push(format!("{name}: no decision: {error}"));
                continue;
            }
        };
        let elapsed = start.elapsed().as_millis();
        let consumed = decision.consumed();
        let said = if decision.outcome().is_allow() { "allow" } else { "deny" };
        let (fuel, mebibytes) = (consumed.fuel / 1_000_000, consumed.memory_bytes >> 20);
        writeln!(figures, "{fuel:8}{mebibytes:8}{elapsed:8}  {said:6}  {name}").unwrap();
        if consumed.fuel > FUEL_MAX || consumed.memory_bytes > MEMORY_BYTES_MAX {
            wrong.push(format!("{name}: took {consumed:?}"));
        }
        wrong
            .extend(disagreement(decision.outcome(), answer).map(|what| format!("{name}: {what}")));
    }
    println!("{figures}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn disagreement(outcome: &Outcome, answer: Answer) -> Option<String> {
    let codes: Vec<&str> = outcome.diagnostics().iter().map(|found| found.code.as_str()).collect();
    let agrees = match answer {
        Answer::Allow => outcome.is_allow(),
        Answer::Deny(code) => !outcome.is_allow() && codes.contains(&code),
        Answer::TooMuch => {
            !outcome.is_allow()
                && codes.iter().any(|code| matches!(*code, "item-count" | "token-count"))
        }
        Answer::Refuse => !outcome.is_allow(),
    };
    (!agrees).then(|| format!("{answer:?} was expected, found {:.3}", Codes(&codes)))
}

/// The first codes of an answer.
struct Codes<'a>(&'a [&'a str]);

impl std::fmt::Display for Codes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = self.0.iter().take(f.precision().unwrap_or(usize::MAX));
        write!(f, "{:?} of {}", shown.collect::<Vec<_>>(), self.0.len())
    }
}

#[test]
fn punctuation_quotes_and_comments_are_refused() {
    let texts = [
        ("opening brackets", "("),
        ("closing brackets", ")"),
        ("single quotes", "'"),
        ("double quotes", "\""),
        ("backticks", "`"),
        ("quotes and backslashes", "'\\"),
        ("backslashes", "\\"),
        ("comment openers", "/*"),
        ("comments", "/**/"),
        ("executable comments", "/*!*/"),
        ("hints", "/*+*/"),
        ("dash comments", "-- \n"),
        ("dashes at the end of lines", "--\n"),
        ("hash comments", "#\n"),
        ("dots", "."),
        ("commas", ","),
        ("semicolons", ";"),
        ("variables", "@"),
        ("variables with names", "@a "),
        ("placeholders", "?"),
        ("colons", ":"),
        ("NULs", "\0"),
        ("line feeds", "\n"),
        ("no-break spaces", "\u{a0}"),
        ("letters above ASCII", "ı"),
        ("braces", "{"),
    ];
    let spaced = texts.iter().map(|(name, text)| (format!("{name}, spaced"), format!("{text} ")));
    let plain = texts.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    let invalid = case(
        "bytes that are no UTF-8",
        vec![0xff; PAYLOAD_BYTES_MAX],
        Answer::Deny("payload-utf8"),
    );
    decide(plain.chain(spaced).flat_map(|(name, text)| noise(&name, &text)).chain([invalid]));
}

#[test]
fn operators_without_end_are_refused() {
    let operators = [
        "NOT ",
        "- ",
        "-",
        "~",
        "!",
        "+ ",
        "BINARY ",
        "INTERVAL ",
        "1 OR ",
        "1 AND ",
        "1 XOR ",
        "1+",
        "1-",
        "1*",
        "1||",
        "1 DIV ",
        "1 MOD ",
        "1=",
        "1<=>",
        "1 IS NULL IS ",
        "1 LIKE ",
        "1 REGEXP ",
        "1 IN (",
        "1 BETWEEN ",
        "1 BETWEEN 1 AND ",
        "CASE ",
        "CASE WHEN ",
        "CASE WHEN 1 THEN ",
        "CASE 1 WHEN 1 THEN 1 ELSE ",
        "ABS(",
        "IF(1,",
        "CONCAT('',",
        "CAST(",
        "CONVERT(",
        "EXISTS(",
        "(SELECT ",
        "1 IN (SELECT ",
        "EXISTS (SELECT * FROM t WHERE ",
        "ROW(",
        "a.",
        "`a`.",
        "'a' ",
        "N'a' ",
        "_utf8mb4",
        "DATE ",
        "TRIM(BOTH ",
        "SUBSTRING(",
        "POSITION(1 IN ",
        "INTERVAL(",
        "MATCH(",
        "DEFAULT(",
        "VALUES(",
        "id ",
        "SELECT ",
    ];
    let conditions = operators
        .iter()
        .map(|text| case(text, filled("DELETE FROM t WHERE id = ", text, "1"), Answer::Refuse));
    let queries = [
        ("UNION", " UNION SELECT 1"),
        ("UNION ALL", " UNION ALL (SELECT 1)"),
        ("JOIN", " JOIN t USING (id)"),
        ("LEFT JOIN", " LEFT JOIN t ON id = id"),
    ];
    let queries = queries.iter().map(|(name, unit)| {
        let start = "INSERT IGNORE INTO t SELECT id FROM t";
        case(name, filled(start, unit, ""), Answer::Refuse)
    });
    decide(conditions.chain(queries));
}

#[test]
fn long_literals_and_names_are_decided() {
    let insert = "INSERT IGNORE INTO t (a) VALUES (";
    let values = [
        ("one string", "'", "a", "')"),
        ("one string of line feeds", "'", "\n", "')"),
        ("one string of quotes", "'", "''", "')"),
        ("one string of escapes", "'", "\\n", "')"),
        ("one string of escaped letters", "'", "\\a", "')"),
        ("one string of long characters", "'", "𝄞", "')"),
        ("one hexadecimal string", "X'", "4a", "')"),
        ("one hexadecimal number", "0x", "4a", ")"),
        ("one bit string", "b'", "1", "')"),
        ("one number", "1", "1", ")"),
        ("one decimal number", "1.", "1", ")"),
    ];
    let values = values.iter().map(|(name, start, unit, end)| {
        case(name, filled(&[insert, start].concat(), unit, end), Answer::Allow)
    });
    let names = [
        case("one name", filled("DROP TABLE IF EXISTS ", "a", ""), Answer::Refuse),
        case("one quoted name", filled("DROP TABLE IF EXISTS `", "a", "`"), Answer::Refuse),
        case(
            "one quoted name of backticks",
            filled("DROP TABLE IF EXISTS `", "``", "`"),
            Answer::Refuse,
        ),
        case("one dotted name", filled("DROP TABLE IF EXISTS a", ".a", ""), Answer::Refuse),
        case("adjacent strings", filled(&[insert, "''"].concat(), "''", ")"), Answer::Allow),
        case(
            "adjacent strings, spaced",
            filled(&[insert, "'a'"].concat(), " 'a'", ")"),
            Answer::Allow,
        ),
    ];
    decide(values.chain(names));
}

#[test]
fn bulk_rows_and_lists_are_allowed() {
    let row = |at| format!("({at}, 'customer number {at:06}', 'tier member of silver', NULL)");
    let rows = format!(
        "INSERT IGNORE INTO loyalty_member (id, customer, tier, note) VALUES {}",
        listed(15_000, row, ",\n")
    );
    let list = format!(
        "DELETE FROM t WHERE id IN ({})",
        listed(149_000, |at| (100_000 + at).to_string(), ",")
    );
    decide([
        case("INSERT of 15,000 rows", rows, Answer::Allow),
        case("IN list of 149,000 numbers", list, Answer::Allow),
        case(
            "rows of one number",
            filled("INSERT IGNORE INTO t VALUES (1)", ",(10000)", ""),
            Answer::Allow,
        ),
        case(
            "15,000 rows with a call in each",
            format!(
                "INSERT IGNORE INTO t (id, at, name, n) VALUES {}",
                listed(15_000, |at| format!("({at}, NOW(), 'customer {at:06}', 1)"), ",\n")
            ),
            Answer::Allow,
        ),
        case(
            "as many rows with a call as there may be",
            format!(
                "INSERT IGNORE INTO t VALUES {}",
                listed(43_000, |_| "(NOW())".to_owned(), ",")
            ),
            Answer::Allow,
        ),
        case(
            "as many keys as there may be",
            format!(
                "CREATE TABLE IF NOT EXISTS t (a int{})",
                ",UNIQUE KEY k (a(3), b) USING BTREE".repeat(4_095)
            ),
            Answer::Allow,
        ),
        case(
            "one row of numbers",
            filled("INSERT IGNORE INTO t VALUES (1", ", 1", ")"),
            Answer::Allow,
        ),
        case(
            "one row of strings",
            filled("INSERT IGNORE INTO t VALUES (''", ",''", ")"),
            Answer::Allow,
        ),
        case(
            "one row of spaced strings",
            filled("INSERT IGNORE INTO t VALUES (''", ", ''", ")"),
            Answer::Allow,
        ),
        case(
            "one row of hexadecimal strings",
            filled("INSERT IGNORE INTO t VALUES (X''", ",X''", ")"),
            Answer::Allow,
        ),
    ]);
}

#[test]
fn other_long_lists_are_denied() {
    let names = format!(
        "INSERT IGNORE INTO t ({}) VALUES (1)",
        listed(120_000, |at| format!("c{at}"), ",")
    );
    let drops = format!("DROP TABLE IF EXISTS {}", listed(90_000, |at| format!("t{at}"), ","));
    decide([
        case(
            "more rows with a call",
            filled("INSERT IGNORE INTO t VALUES (1)", ",(NOW())", ""),
            Answer::TooMuch,
        ),
        case(
            "one row of negative numbers",
            filled("INSERT IGNORE INTO t VALUES (1", ",-1000", ")"),
            Answer::TooMuch,
        ),
        case(
            "one row of DEFAULT",
            filled("INSERT IGNORE INTO t VALUES (1", ",DEFAULT", ")"),
            Answer::TooMuch,
        ),
        case(
            "one row of the clock",
            filled("INSERT IGNORE INTO t VALUES (1", ",NOW()", ")"),
            Answer::TooMuch,
        ),
        case("many columns of an INSERT", names, Answer::TooMuch),
        case("many dropped tables", drops, Answer::TooMuch),
        case(
            "many DELETE targets",
            filled("DELETE t", ",tt", " FROM t, tt WHERE t.id = 1 OR tt.id = 1"),
            Answer::TooMuch,
        ),
        case(
            "many assignments of SET",
            filled("INSERT IGNORE INTO t SET a=1", ",aa=100", ""),
            Answer::TooMuch,
        ),
        case(
            "many assignments ON DUPLICATE KEY",
            filled("INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a=1", ",aa=100", ""),
            Answer::TooMuch,
        ),
    ]);
}

#[test]
fn table_definitions_without_end_are_denied() {
    let table = |unit: &str, end: &str| filled("CREATE TABLE IF NOT EXISTS t (id int", unit, end);
    decide([
        case("columns", table(",a int", ")"), Answer::TooMuch),
        case(
            "columns with attributes",
            table(",a varchar(9) NOT NULL DEFAULT 'a' COMMENT 'b'", ")"),
            Answer::TooMuch,
        ),
        case("keys", table(",KEY (a)", ")"), Answer::TooMuch),
        case(
            "keys with options",
            table(",UNIQUE KEY k (a(3), b) USING BTREE KEY_BLOCK_SIZE=8", ")"),
            Answer::TooMuch,
        ),
        case(
            "columns of a key",
            filled("CREATE TABLE IF NOT EXISTS t (a int,KEY (a", ",a", "))"),
            Answer::TooMuch,
        ),
        case(
            "foreign keys",
            table(",FOREIGN KEY (a) REFERENCES u (b) ON DELETE CASCADE", ")"),
            Answer::TooMuch,
        ),
        case("checks", table(",CHECK (a > 1)", ")"), Answer::TooMuch),
        case("generated columns", table(",a int AS (b + 1)", ")"), Answer::TooMuch),
        case(
            "members of ENUM",
            filled("CREATE TABLE IF NOT EXISTS t (a enum('a'", ",'a'", "))"),
            Answer::TooMuch,
        ),
        case("attributes of a column", table(" NOT NULL", ")"), Answer::Allow),
        case(
            "table options",
            filled("CREATE TABLE IF NOT EXISTS t (a int)", " COMMENT=''", ""),
            Answer::Refuse,
        ),
    ]);
}

#[test]
fn many_statements_are_decided() {
    let batch =
        |count, statement: &str| iter::repeat_n(statement, count).collect::<Vec<_>>().join(";\n");
    let ten_kilobytes =
        filled("INSERT IGNORE INTO t VALUES (1)", ",(10000)", "")[..10_479].to_owned();
    let chain = format!("DELETE FROM t WHERE id=1{}", " OR id=1".repeat(900));
    let sums = format!("DELETE FROM t WHERE id=1{}", "+ 2-1*2".repeat(450));
    let joins =
        format!("INSERT IGNORE INTO t SELECT t.id FROM t{}", " JOIN t USING (id)".repeat(200));
    let unions = format!("INSERT IGNORE INTO t SELECT 1{}", " UNION SELECT 1".repeat(200));
    decide([
        case("100 statements of 10 kB", batch(100, &ten_kilobytes), Answer::Allow),
        case("100 statements of 900 ORs", batch(100, &chain), Answer::Allow),
        case("100 statements of 900 sums and products", batch(100, &sums), Answer::Allow),
        case("100 statements of 200 JOINs", batch(100, &joins), Answer::Allow),
        case("100 statements of 200 UNIONs", batch(100, &unions), Answer::Allow),
        case(
            "thousands of statements",
            filled("", "DROP TABLE IF EXISTS t;", ""),
            Answer::Deny("statement-count"),
        ),
        case(
            "thousands of short statements",
            filled("", "aa;", ""),
            Answer::Deny("statement-count"),
        ),
        case(
            "101 statements",
            batch(101, "DROP TABLE IF EXISTS t"),
            Answer::Deny("statement-count"),
        ),
    ]);
}

#[test]
fn many_of_what_is_costly_each_is_decided() {
    let inserted = |value: &str| format!("INSERT IGNORE INTO t VALUES ({value})");
    let nested = |depth: usize| {
        inserted(&format!("{}1{}", "INTERVAL (1+".repeat(depth), ") DAY".repeat(depth)))
    };
    let sum = |depth: usize| {
        format!(
            "DELETE FROM t WHERE a = {}1{}",
            "b + INTERVAL (".repeat(depth),
            ") DAY".repeat(depth)
        )
    };
    let special = |kind: &str, count: usize| {
        format!("CREATE TABLE IF NOT EXISTS t (a INT{})", format!(", {kind} KEY (a)").repeat(count))
    };
    let checks = ", c INT CHECK (a IN (1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9))".repeat(3_000);
    let several = |count: usize, statement: String| vec![statement; count].join(";");
    let stars =
        |count: usize| format!("DELETE a{} FROM t AS a WHERE a.id=1", ", a.*".repeat(count));
    let targets = format!(
        "DELETE c0{} FROM t AS c{} WHERE {}",
        listed(60, |at| format!(", c{}", at + 1), ""),
        listed(61, |at| format!(", t AS c{at}"), ""),
        listed(915, |at| format!("c{}.id=1", 60 - at / 15), " AND ")
    );
    decide([
        case("20 INTERVALs in each other", nested(20), Answer::Refuse),
        case("38 INTERVALs in each other", nested(38), Answer::Refuse),
        case("19 sums of INTERVALs in each other", sum(19), Answer::Allow),
        case("rows of a query", filled(&inserted("1"), ",((SELECT 1))", ""), Answer::TooMuch),
        case(
            "rows of a query of a table",
            filled(&inserted("1"), ",((SELECT 1 FROM a))", ""),
            Answer::TooMuch,
        ),
        case(
            "4,096 queries",
            inserted(&vec!["(SELECT a FROM b WHERE c GROUP BY d)"; 4_096].join("),(")),
            Answer::Allow,
        ),
        case("4,000 full-text keys", special("FULLTEXT", 4_000), Answer::Allow),
        case("95 tables of 600 spatial keys", several(95, special("SPATIAL", 600)), Answer::Allow),
        case(
            "full-text keys before many checks",
            format!("{}{checks})", special("FULLTEXT", 1_000).strip_suffix(')').unwrap()),
            Answer::Refuse,
        ),
        case(
            "stars of targets",
            filled("DELETE ", "a.*)", " FROM t AS a WHERE a.id=1"),
            Answer::Refuse,
        ),
        case("95 DELETEs of 100 targets", several(95, stars(100)), Answer::Refuse),
        case("34 DELETEs of 4,000 targets", several(34, stars(4_000)), Answer::TooMuch),
        case("80 DELETEs of many targets and conditions", several(80, targets), Answer::Allow),
    ]);
}

#[test]
fn at_each_bound_it_is_allowed_and_one_past_it_is_denied() {
    let condition = |text: String| format!("DELETE FROM t WHERE {text}");
    let chain =
        |operator: &str, count: usize| condition(format!("id = 1{}", operator.repeat(count)));
    let joins = |count: usize| {
        format!("INSERT IGNORE INTO t SELECT t.id FROM t{}", " JOIN t USING (id)".repeat(count))
    };
    let unions =
        |count: usize| format!("INSERT IGNORE INTO t SELECT 1{}", " UNION SELECT 1".repeat(count));
    let brackets =
        |depth: usize| condition(format!("{}id = 1{}", "(".repeat(depth), ")".repeat(depth)));
    let calls =
        |depth: usize| condition(format!("id = {}1{}", "ABS(".repeat(depth), ")".repeat(depth)));
    let cases = |depth: usize| {
        condition(format!("id = {}1{}", "CASE WHEN 1 THEN ".repeat(depth), " END".repeat(depth)))
    };
    let not = |depth: usize| condition(format!("{}id = 1", "NOT ".repeat(depth)));
    let bounds: [(&str, usize, &str, Payload<'_>); 10] = [
        ("OR", 1_000, "operator-count", Box::new(|count| chain(" OR id = 1", count))),
        ("AND", 1_000, "operator-count", Box::new(|count| chain(" AND id = 1", count))),
        ("+", 1_000, "operator-count", Box::new(|count| chain(" + 1", count))),
        ("*", 1_000, "operator-count", Box::new(|count| chain(" * 1", count))),
        ("JOIN", 200, "join-count", Box::new(joins)),
        ("UNION", 200, "join-count", Box::new(unions)),
        ("brackets", 40, "nesting", Box::new(brackets)),
        ("calls", 40, "nesting", Box::new(calls)),
        ("CASE", 40, "nesting", Box::new(cases)),
        ("NOT", 40, "nesting", Box::new(not)),
    ];
    decide(bounds.iter().flat_map(|(name, bound, code, payload)| {
        [
            case(&format!("{bound} deep in {name}"), payload(*bound), Answer::Allow),
            case(&format!("{} deep in {name}", bound + 1), payload(bound + 1), Answer::Deny(code)),
        ]
    }));
}

#[test]
fn hundreds_of_thousands_of_expressions_are_denied() {
    decide([
        case(
            "one call with many arguments",
            filled("DELETE FROM t WHERE id = CONCAT(1", ", 1", ")"),
            Answer::TooMuch,
        ),
        case(
            "one row of calls",
            filled("INSERT IGNORE INTO t VALUES (1", ",ABS(10)", ")"),
            Answer::TooMuch,
        ),
        case(
            "one row of sums",
            filled("INSERT IGNORE INTO t VALUES (1", ",100+10", ")"),
            Answer::TooMuch,
        ),
        case(
            "many VALUES(column)",
            filled("INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a=a", ",a=VALUES(a)", ""),
            Answer::TooMuch,
        ),
        case(
            "comma joins",
            filled("INSERT IGNORE INTO t SELECT id FROM t", ", t", ""),
            Answer::TooMuch,
        ),
    ]);
}
