//! Whole processes, as people and pipelines start them: what `tollgate check` takes.

use std::path::Path;
use std::process::Stdio;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tollgate_bench::shapes::{files, shapes};
use tollgate_tests::cli::command;

/// Files of the large run.
const FILE_COUNT: usize = 2_000;

/// Runs `tollgate check` over a path, with what it compiles kept where the benches keep it.
fn check(path: &Path) {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled");
    let mut check = command(["check", "--format", "json", "--cache"]);
    check.arg(cache).arg(path).stdout(Stdio::null());
    assert!(check.status().unwrap().success(), "{} is not allowed", path.display());
}

fn one_file(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("payload.sql");
    std::fs::write(&path, &shapes()[0].sql).unwrap();
    check(&path);
    criterion.bench_function("process/check of one small file", |bencher| {
        bencher.iter(|| check(&path));
    });
}

fn many_files(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = 0;
    for (number, sql) in files(FILE_COUNT).enumerate() {
        bytes += sql.len() as u64;
        std::fs::write(folder.path().join(format!("{number:05}.sql")), sql).unwrap();
    }
    let mut group = criterion.benchmark_group("process");
    group.sample_size(10).throughput(Throughput::Bytes(bytes));
    group.bench_function(format!("check of {FILE_COUNT} files"), |bencher| {
        bencher.iter(|| check(folder.path()));
    });
    group.finish();
}

criterion_group!(benches, one_file, many_files);
criterion_main!(benches);
