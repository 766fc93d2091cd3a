//! A step, a duplicate, a takeover, a claim and whole workers, on a durable server.
//!
//! Of a step the same statements run bare in the same run, between two commits like a receipt's:
//! `step/<shape>/tollgate` against `step/<shape>/bare` is what Tollgate costs. `TOLLGATE_OUTBOX_ROWS`
//! sets the number of rows of the larger outbox.

use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tokio::runtime::Runtime;
use tollgate::executor::ExecutorRegistry;
use tollgate::policy::{PolicyRuntime, PolicyStore, RuntimeOptions};
use tollgate::worker::{Worker, WorkerOptions};
use tollgate_bench::database::{Crowd, Shape, Stand};
use tollgate_tests::asked::number;
use tollgate_tests::chain::Chain;
use tollgate_tests::server::MariaDb;
use tollgate_tests::workload::Workload;

/// Rows of the larger outbox.
const OUTBOX_ROWS: u64 = 1_000_000;
/// Plans that workers share, of four steps each.
const PLAN_COUNT: usize = 16;

criterion_group! {
    name = database;
    config = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(8));
    targets = step, duplicate, takeover, outbox_claim, workers
}
criterion_main!(database);

fn runtime() -> Runtime {
    Runtime::new().expect("a runtime")
}

/// Both sides take turns with each sample, so that what slows the disk down for a while slows both.
fn step(criterion: &mut Criterion) {
    let runtime = runtime();
    let mut stand = runtime.block_on(Stand::start());
    for shape in Shape::ALL {
        let mut group = criterion.benchmark_group(format!("step/{}", shape.name()));
        group.bench_function("tollgate", |bencher| {
            bencher.iter_custom(|iterations| {
                runtime.block_on(async {
                    let mut took = Duration::ZERO;
                    for _ in 0..iterations {
                        took += stand.step(shape).await;
                        stand.bare(shape).await;
                    }
                    took
                })
            });
        });
        group.bench_function("bare", |bencher| {
            bencher.iter_custom(|iterations| {
                runtime.block_on(async {
                    let mut took = Duration::ZERO;
                    for _ in 0..iterations {
                        stand.step(shape).await;
                        took += stand.bare(shape).await;
                    }
                    took
                })
            });
        });
        group.finish();
    }
}

fn duplicate(criterion: &mut Criterion) {
    let runtime = runtime();
    let mut stand = runtime.block_on(Stand::start());
    let done = runtime.block_on(stand.done());
    criterion.bench_function("duplicate", |bencher| {
        bencher.iter_custom(|iterations| {
            runtime.block_on(async {
                let mut took = Duration::ZERO;
                for _ in 0..iterations {
                    took += stand.again(&done).await;
                }
                took
            })
        });
    });
}

fn takeover(criterion: &mut Criterion) {
    let runtime = runtime();
    let mut stand = runtime.block_on(Stand::start());
    criterion.bench_function("takeover", |bencher| {
        bencher.iter_custom(|iterations| {
            runtime.block_on(async {
                let mut took = Duration::ZERO;
                for _ in 0..iterations {
                    took += stand.takeover().await;
                }
                took
            })
        });
    });
}

fn outbox_claim(criterion: &mut Criterion) {
    let runtime = runtime();
    let mut group = criterion.benchmark_group("outbox_claim");
    for rows in [1_000, number("TOLLGATE_OUTBOX_ROWS").unwrap_or(OUTBOX_ROWS)] {
        let mut crowd = runtime.block_on(Crowd::of(rows));
        group.bench_function(rows.to_string(), |bencher| {
            bencher.iter_custom(|iterations| {
                runtime.block_on(async {
                    let mut took = Duration::ZERO;
                    for _ in 0..iterations {
                        took += crowd.timed_claim().await;
                    }
                    took
                })
            });
        });
    }
    group.finish();
}

/// So many workers with one slot each, until nothing is left to do.
fn workers(criterion: &mut Criterion) {
    let runtime = runtime();
    let mut group = criterion.benchmark_group("workers");
    group.sample_size(10);
    for count in [1, 2, 4, 8] {
        let step_count = Workload::of(PLAN_COUNT).step_count();
        group.throughput(Throughput::Elements(step_count as u64));
        group.bench_function(count.to_string(), |bencher| {
            bencher.iter_custom(|iterations| {
                runtime.block_on(async {
                    let mut took = Duration::ZERO;
                    for _ in 0..iterations {
                        took += all_done(count).await;
                    }
                    took
                })
            });
        });
    }
    group.finish();
}

async fn all_done(count: usize) -> Duration {
    let chain = Chain::start_on(MariaDb::builder().durable()).await;
    let workload = Workload::of(PLAN_COUNT);
    let control = chain.control().await;
    workload.submit(&control).await;
    let config = chain.config(&[]);
    let store = PolicyStore::embedded().expect("the embedded store");
    let sandbox = PolicyRuntime::new(RuntimeOptions::default()).expect("a sandbox");
    let mut workers = Vec::new();
    for _ in 0..count {
        let registry = ExecutorRegistry::open(&config, &store, &sandbox).await.expect("a policy");
        let options =
            WorkerOptions { concurrency: 1, until_idle: true, ..WorkerOptions::from(&config) };
        let catalog = Arc::new(workload.plugin.catalog());
        workers.push(Worker::new(control.clone(), Arc::new(registry), catalog, options));
    }
    let begun = Instant::now();
    let running: Vec<_> =
        workers.into_iter().map(|it| tokio::spawn(async move { it.run().await })).collect();
    while workload.open_steps(&chain).await > 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let took = begun.elapsed();
    for worker in running {
        worker.await.expect("a worker ends");
    }
    workload.assert_effects(&chain).await;
    took
}
