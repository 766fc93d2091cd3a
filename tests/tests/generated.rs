//! Random payloads: what is allowed does on every server what its author wrote, and what hides
//! something hostile is denied.
//!
//! Every case has a number from which it can be made again. The numbers in
//! tests/seeds/generated.txt run first: they are the cases that once failed.
//!
//! `TOLLGATE_GENERATED_CASES` says how many cases of each kind run on each server, and
//! `TOLLGATE_GENERATED_SEED` with which number they start (`random` for another one every time).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::{env, fs, thread};

use proptest::strategy::ValueTree;
use tollgate_policy::{Decision, Severity};
use tollgate_tests::asked::number;
use tollgate_tests::corpus::decide;
use tollgate_tests::fidelity::{Bench, Comparison, StandingBench};
use tollgate_tests::generate::{HIDDEN_FORMS, Kind, bytes, hostile, setup, setup_of_tables};
use tollgate_tests::server::Flavour;
use tollgate_tests::source::repository;

/// Bytes a payload is made of; a statement takes some hundred.
const BYTES: std::ops::Range<usize> = 0..600;
/// Steps to make a failing case smaller: each runs it again.
const SHRINKING_STEPS_MAX: usize = 60;
/// Failing cases told in full.
const TOLD_MAX: usize = 8;
/// Denials that are the policy's rule, whatever a server would make of the text: operators that
/// servers group differently, and conditions that hold whatever the rows are.
const RULES: &[&str] = &["constant-comparison", "operator-grouping"];

fn cases() -> u64 {
    number("TOLLGATE_GENERATED_CASES").unwrap_or(150)
}

fn first_seed() -> u64 {
    if env::var("TOLLGATE_GENERATED_SEED").as_deref() == Ok("random") {
        return u64::from(uuid::Uuid::new_v4().as_fields().0) << 16;
    }
    number("TOLLGATE_GENERATED_SEED").unwrap_or(1)
}

/// The cases that once failed, then as many new ones as were asked for.
fn seeds() -> impl Iterator<Item = u64> {
    let path = repository().join("tests/seeds/generated.txt");
    let kept = fs::read_to_string(path).expect("the kept seeds can be read");
    let kept: Vec<u64> = kept
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.parse().expect("a kept seed is a number"))
        .collect();
    let first = first_seed();
    kept.into_iter().chain(first..first + cases())
}

/// Statements that define tables need new catalogs each time; the others can share theirs.
enum KindBench<'a> {
    New(Bench<'a>),
    Standing(StandingBench<'a>),
}

impl<'a> KindBench<'a> {
    fn of(kind: Kind, bench: Bench<'a>) -> Self {
        match kind {
            Kind::Tables => Self::New(bench),
            Kind::Expressions | Kind::Inserts | Kind::Deletes => {
                Self::Standing(StandingBench::new(bench, setup()))
            }
        }
    }

    async fn compare(&mut self, raw: &str, normalised: &[&str]) -> Comparison {
        match self {
            Self::New(bench) => bench.compare(&setup_of_tables(), raw, normalised).await,
            Self::Standing(bench) => bench.compare(raw, normalised).await,
        }
    }

    async fn refusal(&mut self, raw: &str) -> Option<u16> {
        match self {
            Self::New(bench) => bench.refusal(&setup_of_tables(), raw).await,
            Self::Standing(bench) => bench.refusal(raw).await,
        }
    }
}

/// What one server made of the payloads of one kind.
#[derive(Debug, Default)]
struct Figures {
    cases: usize,
    statements: usize,
    refused_by_both: usize,
    /// Denied by one of [`RULES`].
    by_rule: usize,
    /// Denied, and the server refuses it too.
    denied_and_refused: usize,
    /// Denied although the server runs it, by code.
    denied: BTreeMap<String, usize>,
    failures: Vec<String>,
}

impl Figures {
    fn denials(&self) -> usize {
        self.denied.values().sum()
    }

    fn line(&self, kind: Kind, flavour: Flavour) -> String {
        format!(
            "generated {kind:?} on {flavour}: {} cases, {} statements compared, {} refused by both, {} denied by \
             rule, {} denied and refused, {} denied {:?}, {} divergences",
            self.cases,
            self.statements,
            self.refused_by_both,
            self.by_rule,
            self.denied_and_refused,
            self.denials(),
            self.denied,
            self.failures.len()
        )
    }

    /// Of a payload that was denied.
    async fn denial(&mut self, bench: &mut KindBench<'_>, code: &str, told: &str, text: &str) {
        if RULES.contains(&code) {
            self.by_rule += 1;
        } else if bench.refusal(text).await.is_some() {
            self.denied_and_refused += 1;
        } else {
            *self.denied.entry(code.to_owned()).or_default() += 1;
            if self.denied.len() + self.denials() <= TOLD_MAX {
                println!("denied though a server runs it: {told}\n  {text}");
            }
        }
    }
}

/// The comparison of a payload, unless it is denied: then the code and what is said.
async fn compare(bench: &mut KindBench<'_>, text: &str) -> Result<Comparison, (String, String)> {
    match decide(text) {
        Decision::Allow(allowance) => {
            let texts: Vec<&str> =
                allowance.statements.iter().map(|statement| statement.text.as_str()).collect();
            Ok(bench.compare(text, &texts).await)
        }
        Decision::Deny(diagnostics) => {
            let error = diagnostics
                .into_iter()
                .find(|diagnostic| diagnostic.severity == Severity::Error)
                .expect("a denial has an error");
            Err((error.code.to_string(), error.message))
        }
    }
}

async fn diverges(bench: &mut KindBench<'_>, text: &str) -> Option<Comparison> {
    let comparison = compare(bench, text).await.ok()?;
    (!comparison.differences.is_empty()).then_some(comparison)
}

/// The smallest case that still diverges.
async fn shrunk(
    bench: &mut KindBench<'_>,
    kind: Kind,
    tree: &mut impl ValueTree<Value = Vec<u8>>,
    mut worst: Comparison,
) -> Comparison {
    for _ in 0..SHRINKING_STEPS_MAX {
        let moved = match diverges(bench, &kind.write(&tree.current()).text()).await {
            Some(comparison) => {
                worst = comparison;
                tree.simplify()
            }
            None => tree.complicate(),
        };
        if !moved {
            break;
        }
    }
    worst
}

async fn run(flavour: Flavour, kind: Kind) -> Figures {
    let server = Bench::server(flavour.builder());
    let mut bench = KindBench::of(kind, Bench::open(&server).await);
    let mut figures = Figures::default();
    for seed in seeds() {
        let mut tree = bytes(seed, BYTES);
        figures.cases += 1;
        let text = kind.write(&tree.current()).text();
        match compare(&mut bench, &text).await {
            Err((code, told)) => figures.denial(&mut bench, &code, &told, &text).await,
            Ok(comparison) if comparison.differences.is_empty() => {
                figures.statements += comparison.normalised.len();
                figures.refused_by_both += usize::from(comparison.refused.is_some());
            }
            Ok(comparison) => {
                figures.statements += comparison.normalised.len();
                let mut told = format!("{kind:?} {seed} on {flavour}\n");
                if figures.failures.len() < TOLD_MAX {
                    let least = shrunk(&mut bench, kind, &mut tree, comparison).await;
                    let _ = write!(told, "{least}");
                }
                figures.failures.push(told);
            }
        }
    }
    figures
}

fn run_on(flavour: Flavour) -> Vec<(Kind, Figures)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be built");
    Kind::ALL.into_iter().map(|kind| (kind, runtime.block_on(run(flavour, kind)))).collect()
}

#[test]
fn what_is_allowed_runs_as_written_on_every_server() {
    let flavours = Flavour::available();
    let figures: Vec<(Flavour, Vec<(Kind, Figures)>)> = thread::scope(|scope| {
        let running: Vec<_> = flavours
            .into_iter()
            .map(|flavour| (flavour, scope.spawn(move || run_on(flavour))))
            .collect();
        running
            .into_iter()
            .map(|(flavour, handle)| (flavour, handle.join().expect("a server's cases ran")))
            .collect()
    });
    let mut failed = String::new();
    for (flavour, kinds) in &figures {
        // What is generated is legitimate: 99 of 100 pass.
        let denied: usize = kinds.iter().map(|(_, figures)| figures.denials()).sum();
        let cases: usize = kinds.iter().map(|(_, figures)| figures.cases).sum();
        println!("generated on {flavour}: {denied} of {cases} denied though the server runs them");
        if denied * 100 > cases {
            let _ = writeln!(failed, "too much is denied on {flavour}: {denied} of {cases}");
        }
        for (kind, figures) in kinds {
            println!("{}", figures.line(*kind, *flavour));
            failed.extend(figures.failures.iter().map(|failure| format!("{failure}\n")));
            // Most of what is generated has to run, or nothing is compared.
            let idle = figures.refused_by_both + figures.by_rule + figures.denied_and_refused;
            if idle * 4 > figures.cases * 3 || figures.statements * 2 < figures.cases {
                let _ = writeln!(failed, "too little runs: {}", figures.line(*kind, *flavour));
            }
        }
    }
    assert!(failed.is_empty(), "\n{failed}");
}

#[test]
fn what_hides_something_hostile_is_denied() {
    let mut cases = 0;
    let mut allowed = Vec::new();
    let mut hidden: BTreeMap<&str, usize> = BTreeMap::new();
    let first = first_seed();
    for kind in Kind::ALL {
        for seed in first..first + cases_of_hostile() {
            let Some(payload) = hostile(kind, &bytes(seed, BYTES).current()) else { continue };
            cases += 1;
            *hidden.entry(payload.hidden).or_default() += 1;
            if let Decision::Allow(allowance) = decide(&payload.text) {
                allowed.push((seed, kind, payload, allowance));
            }
        }
    }
    let places = cases_of_hostile() * Kind::ALL.len() as u64;
    assert!(
        cases * 3 > places,
        "only {cases} of {places} payloads had a place for what is hostile"
    );
    assert!(hidden.len() * 10 > HIDDEN_FORMS * 9, "only {} forms were hidden", hidden.len());
    println!("hostile: {cases} cases of {} forms, {} allowed", hidden.len(), allowed.len());
    assert!(allowed.is_empty(), "{:#?}", allowed.iter().take(TOLD_MAX).collect::<Vec<_>>());
}

/// Deciding needs no server, so there can be many.
fn cases_of_hostile() -> u64 {
    cases() * 20
}
