//! What the policy prints does what the author wrote, on every server.

use tollgate_policy::Decision;
use tollgate_tests::corpus::{CATALOG, decide, decisions, fidelity};
use tollgate_tests::fidelity::{Bench, Setup};
use tollgate_tests::server::Flavour;

/// A payload with what must stand before it.
struct Case {
    id: String,
    setup: Setup,
    sql: String,
}

/// How many payloads went which way on one server.
#[derive(Debug, Default)]
struct Figures {
    cases: usize,
    denied: usize,
    compared: usize,
    refused_by_both: usize,
    divergences: Vec<String>,
}

fn decision_cases() -> Vec<Case> {
    let cases = decisions().into_iter();
    cases.map(|case| Case { id: case.id, setup: Setup::decisions(), sql: case.sql }).collect()
}

fn fidelity_cases() -> Vec<Case> {
    fidelity()
        .into_iter()
        .map(|case| Case {
            id: case.id,
            setup: Setup::of(&case.setup),
            sql: case.sql.replace("{db}", CATALOG),
        })
        .collect()
}

async fn run(flavour: Flavour, cases: &[Case]) -> Figures {
    let server = Bench::server(flavour.builder());
    let mut bench = Bench::open(&server).await;
    let mut figures = Figures { cases: cases.len(), ..Figures::default() };
    for case in cases {
        let Decision::Allow(allowance) = decide(&case.sql) else {
            figures.denied += 1;
            continue;
        };
        let texts: Vec<&str> =
            allowance.statements.iter().map(|statement| statement.text.as_str()).collect();
        let comparison = bench.compare(&case.setup, &case.sql, &texts).await;
        figures.compared += 1;
        if !comparison.differences.is_empty() {
            figures.divergences.push(format!("{}\n{comparison}", case.id));
        } else if comparison.refused.is_some() {
            figures.refused_by_both += 1;
        }
    }
    figures
}

/// Runs a corpus on every server; at least `compared_min` payloads must have been allowed, so that
/// a policy that denies everything does not pass.
async fn holds_on_every_server(corpus: &str, cases: Vec<Case>, compared_min: usize) {
    let mut failed = Vec::new();
    for flavour in Flavour::available() {
        let figures = run(flavour, &cases).await;
        println!(
            "{corpus} on {flavour}: {} cases, {} denied, {} compared, {} refused by both, {} divergences",
            figures.cases,
            figures.denied,
            figures.compared,
            figures.refused_by_both,
            figures.divergences.len()
        );
        for divergence in &figures.divergences {
            failed.push(format!("{corpus} on {flavour}: {divergence}"));
        }
        assert!(figures.compared >= compared_min, "only {} were allowed", figures.compared);
    }
    assert!(failed.is_empty(), "\n{}", failed.join("\n"));
}

#[tokio::test]
async fn allowed_decisions_run_as_written() {
    holds_on_every_server("decisions", decision_cases(), 85).await;
}

#[tokio::test]
async fn allowed_shapes_run_as_written() {
    holds_on_every_server("fidelity", fidelity_cases(), 150).await;
}

/// What the bench must notice, as raw text, normalised text and a word of the difference.
const PLANTED: &[(&str, &str, &str)] = &[
    ("INSERT IGNORE INTO t (id) VALUES (9)", "INSERT IGNORE INTO t (id) VALUES (8)", "holds"),
    (
        "INSERT IGNORE INTO t (id, name) VALUES (9, 'x')",
        "INSERT IGNORE INTO t (id, name) VALUES (9, 'x ')",
        "holds",
    ),
    ("CREATE TABLE IF NOT EXISTS w (a INT)", "CREATE TABLE IF NOT EXISTS w (a BIGINT)", "defined"),
    ("CREATE TABLE IF NOT EXISTS w (a INT)", "DROP TABLE IF EXISTS t", "only there raw"),
    ("DELETE FROM t WHERE id = 1", "DELETE FROM t WHERE id >= 1", "reported"),
    ("CREATE TABLE IF NOT EXISTS t (a INT)", "DELETE FROM t WHERE id = 99", "warnings"),
    ("DELETE FROM missing WHERE id = 1", "DELETE FROM t WHERE id = 99", "was refused"),
    ("DELETE FROM missing WHERE id = 1", "DELETE FROM t WHERE absent = 1", "was refused"),
    ("DELETE FROM t WHERE id = 99", "DELETE FROM host_core.victim WHERE id = 1", "beyond"),
    (
        "DELETE FROM host_core.none WHERE id = 1",
        "DELETE FROM host_core.none WHERE id = 1",
        "beyond",
    ),
];

#[tokio::test]
async fn planted_divergences_are_noticed() {
    for flavour in Flavour::available() {
        let server = Bench::server(flavour.builder());
        let mut bench = Bench::open(&server).await;
        for (raw, normalised, word) in PLANTED {
            let comparison = bench.compare(&Setup::decisions(), raw, &[normalised]).await;
            assert!(
                comparison.differences.iter().any(|difference| difference.contains(word)),
                "{flavour}, `{word}`:\n{comparison}"
            );
        }
    }
}

#[tokio::test]
async fn equal_texts_and_equal_refusals_are_no_divergence() {
    let equal: &[(&str, &[&str])] = &[
        (
            "INSERT IGNORE INTO plugin_preview.t (id, dt) VALUES (9, NOW()); DROP TABLE IF EXISTS w; -- end",
            &[
                "INSERT IGNORE INTO `plugin_preview`.`t` (`id`, `dt`) VALUES (9, SYSDATE())",
                "DROP TABLE IF EXISTS `plugin_preview`.`w`",
            ],
        ),
        (
            "DELETE FROM missing WHERE id = 1",
            &["DELETE FROM `plugin_preview`.`missing` WHERE id = 1"],
        ),
        (
            "DELETE FROM t WHERE id = 1; DELETE FROM missing WHERE id = 1; DELETE FROM t WHERE id = 2",
            &[
                "DELETE FROM `plugin_preview`.`t` WHERE `id` = 1",
                "DELETE FROM `plugin_preview`.`missing` WHERE `id` = 1",
                "DELETE FROM `plugin_preview`.`t` WHERE `id` = 2",
            ],
        ),
        (
            "CREATE TABLE IF NOT EXISTS w (id INT, FOREIGN KEY (id) REFERENCES t (id)) COMMENT 'plugin_preview'",
            &[
                "CREATE TABLE IF NOT EXISTS `plugin_preview`.`w` (`id` INT, FOREIGN KEY (`id`) REFERENCES \
               `plugin_preview`.`t` (`id`)) COMMENT 'plugin_preview'",
            ],
        ),
    ];
    for flavour in Flavour::available() {
        let server = Bench::server(flavour.builder());
        let mut bench = Bench::open(&server).await;
        for (index, (raw, normalised)) in equal.iter().enumerate() {
            let comparison = bench.compare(&Setup::decisions(), raw, normalised).await;
            assert!(comparison.differences.is_empty(), "{flavour}:\n{comparison}");
            let refused = matches!(index, 1 | 2).then_some(1146);
            assert_eq!(comparison.refused, refused, "{flavour}:\n{comparison}");
        }
    }
}
