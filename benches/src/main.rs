//! What the benches measured, in one table, and what needs no clock: instructions, fuel and memory.
//!
//! `script/bench`, `script/bench-peers` and `script/instructions` call it.

use std::path::Path;

use tollgate_bench::figures::{self, Figure};
use tollgate_bench::shapes::{Shape, shapes};
use tollgate_bench::{catalog, compiled, native_request, policy, request};
use tollgate_tests::cli::command;
use tollgate_tests::peak::peak_kib;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => table(),
        ["shapes"] => shapes().iter().for_each(|shape| println!("{}", shape.name)),
        ["fuel", name] => println!("{}", fuel(name)),
        ["decide", name] => decide(name),
        ["peers", folder] => tollgate_bench::peers::print(Path::new(folder)),
        _ => panic!("usage: tollgate-bench [shapes | fuel SHAPE | decide SHAPE | peers FOLDER]"),
    }
}

/// The fuel of one decision: what the published component takes, the same on every machine.
fn fuel(name: &str) -> u64 {
    let sql = shape(name).sql;
    let policy = policy(compiled(&target().join("tmp").display().to_string()));
    policy.decide(&request(sql.as_bytes(), &catalog())).unwrap().consumed().fuel
}

/// One decision outside the sandbox, for a tool that counts instructions.
fn decide(name: &str) {
    let sql = shape(name).sql;
    std::hint::black_box(counted(&native_request(&sql)));
}

/// The function whose instructions are counted, so one that exists by its name.
#[inline(never)]
fn counted(request: &tollgate_policy::Request<'_>) -> tollgate_policy::Decision {
    tollgate_policy::decide(request)
}

fn shape(name: &str) -> Shape {
    shapes().into_iter().find(|shape| shape.name == name).expect("a shape's name")
}

fn table() {
    let target = target();
    let figures = figures::read(&target.join("criterion"));
    assert!(!figures.is_empty(), "nothing was measured yet: run `script/bench`");
    println!("| what | time | against it | ratio | aim |\n|---|---|---|---|---|");
    for figure in &figures {
        if let Some(line) = line(figure, &figures) {
            println!("{line}");
        }
    }
    println!("\n| payload | fuel | guest memory |\n|---|---|---|");
    let cache = target.join("tmp").display().to_string();
    let policy = policy(compiled(&cache));
    let catalog = catalog();
    for Shape { name, sql, .. } in shapes() {
        let decision = policy.decide(&request(sql.as_bytes(), &catalog)).unwrap();
        let consumed = decision.consumed();
        let (fuel, memory) = (consumed.fuel as f64 / 1e6, consumed.memory_bytes as f64 / 1e6);
        println!("| {name} | {fuel:.1} million | {memory:.1} MB |");
    }
    println!("\n| process | peak memory | aim |\n|---|---|---|");
    println!("| `check` of one small file | {:.0} MB | ≤ 60 MB |", peak_of_check(&cache));
}

/// `target`, from `target/<profile>/tollgate-bench`.
fn target() -> std::path::PathBuf {
    let program = std::env::current_exe().unwrap();
    program.ancestors().nth(2).unwrap().to_owned()
}

/// A figure's line; none where it is the one that another is held against.
fn line(figure: &Figure, figures: &[Figure]) -> Option<String> {
    if figure.is_baseline() {
        return None;
    }
    let baseline = figures.iter().find(|other| other.is_baseline_of(figure));
    let (against, ratio) = match baseline {
        Some(other) => (other.time(), format!("{:.2}", figure.nanoseconds / other.nanoseconds)),
        None => (figure.rate().unwrap_or_default(), String::new()),
    };
    let (name, time, aim) = (figure.name(), figure.time(), figure.aim());
    Some(format!("| {name} | {time} | {against} | {ratio} | {aim} |"))
}

/// The most memory that a check of one small file holds, in megabytes.
fn peak_of_check(cache: &str) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("payload.sql");
    std::fs::write(&path, &shapes()[0].sql).unwrap();
    let compiled = Path::new(cache).join("compiled").display().to_string();
    let path = path.display().to_string();
    let (_, kib) = peak_kib(&mut command(["check", "--cache", &compiled, &path]));
    kib as f64 * 1024.0 / 1e6
}
