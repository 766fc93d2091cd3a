//! A decision in a fresh sandbox against the same code run natively, and what a sandbox costs.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tollgate::policy::CompileCache;
use tollgate_bench::shapes::{Shape, shapes};
use tollgate_bench::{catalog, compiled, native_request, policy, request};

fn cache() -> CompileCache {
    compiled(env!("CARGO_TARGET_TMPDIR"))
}

/// The same payload on both sides, one directly after the other.
fn decision(criterion: &mut Criterion) {
    let policy = policy(cache());
    let catalog = catalog();
    for Shape { name, sql, .. } in shapes() {
        let mut group = criterion.benchmark_group(format!("decision/{name}"));
        group.throughput(Throughput::Bytes(sql.len() as u64));
        group.sample_size(if sql.len() > 100_000 { 10 } else { 60 });
        group.bench_function("native", |bencher| {
            bencher.iter(|| tollgate_policy::decide(black_box(&native_request(&sql))));
        });
        group.bench_function("sandbox", |bencher| {
            let request = request(sql.as_bytes(), &catalog);
            bencher.iter(|| policy.decide(black_box(&request)).unwrap());
        });
        group.finish();
    }
}

/// Everything around a decision: an instance that is asked about nothing.
fn instantiation(criterion: &mut Criterion) {
    let policy = policy(cache());
    let catalog = catalog();
    criterion.bench_function("instance/asked about an empty payload", |bencher| {
        let request = request(b"", &catalog);
        bencher.iter(|| policy.decide(black_box(&request)).unwrap());
    });
}

fn load(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("load");
    group.sample_size(10);
    for (name, cache) in [("compiled", CompileCache::Off), ("from the cache", cache())] {
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter(|| policy(cache.clone()));
        });
    }
    group.finish();
}

criterion_group!(benches, decision, instantiation, load);
criterion_main!(benches);
