//! One component, one answer: whatever executes it, and whoever asks.
//!
//! `script/foreign-host` makes the same comparison with a host that is none of ours.

use tollgate::audit::Auditor;
use tollgate::ids::ExecutorCode;
use tollgate::policy::{
    Allocation, Backend, CompileCache, NoDecision, Outcome, Policy, PolicyRuntime, PolicyStore,
    RuntimeOptions,
};
use tollgate_tests::corpus::{CATALOG, decide, payloads};
use tollgate_tests::desk;
use tollgate_tests::hostile::{self, Decide};
use tollgate_tests::native;

fn runtime(backend: Backend, allocation: Allocation) -> PolicyRuntime {
    PolicyRuntime::new(RuntimeOptions {
        cache: CompileCache::Directory(desk::compiled()),
        backend,
        allocation: Some(allocation),
        ..RuntimeOptions::default()
    })
    .unwrap()
}

fn published(backend: Backend, allocation: Allocation) -> Policy {
    let store = PolicyStore::embedded().unwrap();
    let pin = store.pin(&ExecutorCode::sql_jdbc_v1()).unwrap();
    runtime(backend, allocation).load(pin, &store.component(pin).unwrap()).unwrap()
}

fn auditor(policy: Policy) -> Auditor {
    Auditor::new(policy, CATALOG.parse().unwrap())
}

/// The corpora, and bytes that are not even text.
fn cases() -> Vec<(String, Vec<u8>)> {
    let raw: [(&str, &[u8]); 4] = [
        ("empty", b""),
        ("not UTF-8", b"DROP TABLE IF EXISTS \xff\xfe"),
        ("half a character", b"INSERT IGNORE INTO t VALUES ('\xc3"),
        ("NUL", b"DROP TABLE IF EXISTS t\0"),
    ];
    let raw = raw.map(|(id, payload)| (id.to_owned(), payload.to_vec()));
    payloads().into_iter().map(|(id, sql)| (id, sql.into_bytes())).chain(raw).collect()
}

/// Ids of the cases on which the two disagree, in anything a decision has.
fn divergences(left: &Auditor, right: &Auditor, cases: &[(String, Vec<u8>)]) -> Vec<String> {
    cases
        .iter()
        .filter(|(_, payload)| {
            let (left, right) = (left.decide(payload).unwrap(), right.decide(payload).unwrap());
            left != right || left.digest() != right.digest()
        })
        .map(|(id, _)| id.clone())
        .collect()
}

#[test]
fn the_interpreter_gives_the_decision_digests_of_machine_code() {
    let cases = cases();
    let native = auditor(published(Backend::Native, Allocation::Pooled));
    for allocation in [Allocation::Pooled, Allocation::OnDemand] {
        let pulley = auditor(published(Backend::Pulley, allocation));
        let diverging = divergences(&native, &pulley, &cases);
        println!(
            "Cranelift and Pulley ({allocation:?}): {} cases, {} divergences",
            cases.len(),
            diverging.len()
        );
        assert!(diverging.is_empty(), "{diverging:?}");
    }
    // Another component on the same payloads is seen to be another: the comparison can fail.
    let hostile = runtime(Backend::Pulley, Allocation::Pooled);
    let hostile = auditor(hostile.load_unpinned(&hostile::policy(Decide::Deny)).unwrap());
    let cases: Vec<_> = cases.into_iter().filter(|(_, payload)| payload.is_ascii()).collect();
    let cases: Vec<_> = cases.into_iter().filter(|(_, payload)| payload.len() > 5).collect();
    assert_eq!(divergences(&native, &hostile, &cases).len(), cases.len());
}

#[test]
fn the_library_and_the_component_give_the_same_answers() {
    let component = auditor(published(Backend::Native, Allocation::Pooled));
    let cases = payloads();
    let diverging: Vec<String> = cases
        .iter()
        .filter(|(_, sql)| {
            let decided = component.decide(sql.as_bytes()).unwrap();
            *decided.outcome() != native::outcome(decide(sql))
        })
        .map(|(id, _)| id.clone())
        .collect();
    println!("library and component: {} cases, {} divergences", cases.len(), diverging.len());
    assert!(diverging.is_empty(), "is the component of this source? {diverging:?}");
}

#[test]
fn the_interpreter_has_the_same_bounds() {
    let runtime = runtime(Backend::Pulley, Allocation::Pooled);
    let undecided = |decide| {
        let policy = runtime.load_unpinned(&hostile::policy(decide)).unwrap();
        auditor(policy).decide(b"xyzxyz").unwrap_err()
    };
    assert!(matches!(undecided(Decide::Trap), NoDecision::Trap { .. }));
    assert!(matches!(undecided(Decide::PointOutside), NoDecision::Trap { .. }));
    assert!(matches!(undecided(Decide::LoopForever), NoDecision::Fuel { .. }));
    assert!(matches!(undecided(Decide::TakeMemory), NoDecision::Memory { .. }));
    let overflow = undecided(Decide::Recurse);
    assert!(matches!(&overflow, NoDecision::Trap { reason } if reason.contains("stack")));
}

#[test]
fn one_compile_cache_serves_both_without_mixing_them_up() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = hostile::policy(Decide::Allow);
    let load = |backend| {
        let cache = CompileCache::Directory(folder.path().join("cache"));
        let options = RuntimeOptions { cache, backend, ..RuntimeOptions::default() };
        let runtime = PolicyRuntime::new(options).unwrap();
        let policy = runtime.load_unpinned(&bytes).unwrap();
        (runtime.cache_use().unwrap().misses, auditor(policy).decide(b"xyzxyz").unwrap())
    };
    let (compiled, first) = load(Backend::Native);
    let (compiled_again, second) = load(Backend::Pulley);
    assert_eq!((compiled, compiled_again), (1, 1), "neither reads what the other compiled");
    assert!(matches!(first.outcome(), Outcome::Allow { .. }));
    assert_eq!(first, second);
    assert_eq!(load(Backend::Pulley).0, 0);
}
