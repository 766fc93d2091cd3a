//! What the sandbox does with components that are not what a policy should be.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use tollgate::digest::Digest;
use tollgate::ids::ExecutorCode;
use tollgate::policy::{
    Allocation, CompileCache, Decision, DecisionRequest, LoadError, NoDecision, Outcome, Policy,
    PolicyRuntime, PolicyStore, RuntimeOptions,
};
use tollgate_tests::desk;
use tollgate_tests::hostile::{self, Decide};

/// Compiling the published policy takes a while: the tests of this crate share what they compiled.
fn options() -> RuntimeOptions {
    let cache = CompileCache::Directory(desk::compiled());
    RuntimeOptions { cache, ..RuntimeOptions::default() }
}

fn runtime() -> PolicyRuntime {
    PolicyRuntime::new(options()).unwrap()
}

fn load(runtime: &PolicyRuntime, decide: Decide) -> Policy {
    runtime.load_unpinned(&hostile::policy(decide)).unwrap()
}

fn decide(policy: &Policy, payload: &[u8]) -> Result<Decision, NoDecision> {
    policy.decide(&DecisionRequest {
        payload,
        catalog: &"plugin_preview".parse().unwrap(),
        protected_tables: &["factory_plugin_target_receipt"],
    })
}

fn undecided(what: Decide) -> NoDecision {
    decide(&load(&runtime(), what), b"SELECT 1").unwrap_err()
}

#[test]
fn the_embedded_policy_is_the_pinned_one_and_imports_nothing() {
    let store = PolicyStore::embedded().unwrap();
    let pin = store.pin(&ExecutorCode::sql_jdbc_v1()).unwrap();
    let policy = runtime().load(pin, &store.component(pin).unwrap()).unwrap();
    assert_eq!(policy.exports(), ["tollgate:policy/gate@1.0.0"]);
    assert_eq!(policy.pin(), pin);
    assert_eq!(policy.description().limits.statement_count_max, 100);
}

#[test]
fn a_component_with_an_import_is_refused_by_the_import_s_name() {
    let error = runtime().load_unpinned(&hostile::policy_with_import()).unwrap_err();
    assert!(matches!(&error, LoadError::Imports(names) if names == &["clock"]), "{error:?}");
}

#[test]
fn a_component_that_is_no_policy_is_refused() {
    let error = runtime().load_unpinned(&hostile::no_policy()).unwrap_err();
    assert!(matches!(error, LoadError::MissingExports(_)), "{error:?}");
    let error = runtime().load_unpinned(b"\0asm\x01\0\0\0").unwrap_err();
    assert!(matches!(error, LoadError::NotAComponent(_)), "{error:?}");
}

#[test]
fn another_digest_is_refused_before_anything_else_is_looked_at() {
    let store = PolicyStore::embedded().unwrap();
    let pin = store.pin(&ExecutorCode::sql_jdbc_v1()).unwrap();
    // Not even WebAssembly: had anything parsed it, the error would be another.
    let error = runtime().load(pin, b"no component").unwrap_err();
    let LoadError::DigestMismatch { expected, found } = error else { panic!("{error:?}") };
    assert_eq!((expected, found), (pin.sha256, Digest::of(b"no component")));

    let mut bytes = store.component(pin).unwrap().into_owned();
    *bytes.last_mut().unwrap() ^= 1;
    let error = runtime().load(pin, &bytes).unwrap_err();
    assert!(matches!(error, LoadError::DigestMismatch { .. }), "{error:?}");
}

#[test]
fn a_component_that_is_another_policy_than_its_pin_says_is_refused() {
    let runtime = runtime();
    let bytes = hostile::policy(Decide::Deny);
    let honest = runtime.load_unpinned(&bytes).unwrap().pin().clone();
    assert!(runtime.load(&honest, &bytes).is_ok());

    let mut renamed = honest.clone();
    renamed.name = "mysql-repeatable-subset".into();
    let error = runtime.load(&renamed, &bytes).unwrap_err();
    assert!(matches!(error, LoadError::OtherPolicy { .. }), "{error:?}");

    let mut elsewhere = honest;
    elsewhere.executor = "sql-jdbc:v2".parse().unwrap();
    let error = runtime.load(&elsewhere, &bytes).unwrap_err();
    assert!(matches!(error, LoadError::OtherExecutor(_)), "{error:?}");
}

#[test]
fn instructions_outside_the_determinism_profile_are_refused() {
    let error = runtime().load_unpinned(&hostile::policy(Decide::UseSimd)).unwrap_err();
    let LoadError::NotAComponent(source) = error else { panic!("{error:?}") };
    assert!(format!("{source:?}").contains("SIMD"), "{source:?}");
}

#[test]
fn a_trap_is_no_decision() {
    assert!(matches!(undecided(Decide::Trap), NoDecision::Trap { .. }));
    assert!(matches!(undecided(Decide::PointOutside), NoDecision::Trap { .. }));
}

#[test]
fn a_guest_that_overflows_its_stack_traps() {
    let error = undecided(Decide::Recurse);
    let NoDecision::Trap { reason } = error else { panic!("{error:?}") };
    assert!(reason.contains("stack"), "{reason}");
}

#[test]
fn an_endless_loop_ends_with_its_fuel() {
    let error = undecided(Decide::LoopForever);
    assert!(matches!(error, NoDecision::Fuel { .. }), "{error:?}");
    assert!(!error.is_retryable());
}

#[test]
fn the_deadline_ends_what_the_fuel_would_let_run() {
    let call_deadline = Duration::from_millis(100);
    let runtime = PolicyRuntime::new(RuntimeOptions { call_deadline, ..options() }).unwrap();
    let policy = load(&runtime, Decide::LoopSlowly);
    // Twice: the deadline is armed for each call, not once.
    for _ in 0..2 {
        let start = Instant::now();
        let error = decide(&policy, b"").unwrap_err();
        assert!(matches!(error, NoDecision::Deadline { .. }), "{error:?}");
        assert!(error.is_retryable());
        assert!(start.elapsed() >= call_deadline, "{:?}", start.elapsed());
    }
}

#[test]
fn a_memory_bomb_stops_at_its_bound_in_both_engines() {
    for allocation in [Allocation::Pooled, Allocation::OnDemand] {
        let allocation = Some(allocation);
        let runtime = PolicyRuntime::new(RuntimeOptions { allocation, ..options() }).unwrap();
        let error = decide(&load(&runtime, Decide::TakeMemory), b"").unwrap_err();
        let NoDecision::Memory { allowed, .. } = error else { panic!("{error:?}") };
        assert_eq!(allowed, 256 << 20);
    }
}

#[test]
fn an_answer_that_breaks_the_contract_is_no_decision() {
    let error = undecided(Decide::AllowNothing);
    assert!(matches!(error, NoDecision::Malformed { .. }), "{error:?}");
}

#[test]
fn an_answer_is_checked_against_the_request() {
    let policy = load(&runtime(), Decide::Deny);
    assert!(decide(&policy, "xéyyy".as_bytes()).is_err(), "its span cuts a character in two");
    assert!(decide(&policy, b"x").is_err(), "its span is past the end");
    assert!(decide(&policy, b"xyzxyz").is_ok());
}

#[test]
fn nothing_is_left_from_one_decision_to_the_next() {
    for allocation in [Allocation::Pooled, Allocation::OnDemand] {
        let options = RuntimeOptions {
            allocation: Some(allocation),
            concurrent_decisions_max: NonZeroU32::MIN,
            ..options()
        };
        let policy = load(&PolicyRuntime::new(options).unwrap(), Decide::Remember);
        for _ in 0..3 {
            assert!(decide(&policy, b"xyzxyz").is_ok(), "{allocation:?}");
        }
    }
}

#[test]
fn after_a_trap_the_next_decision_is_as_good_as_any() {
    let runtime = runtime();
    let (trap, deny) = (load(&runtime, Decide::Trap), load(&runtime, Decide::Deny));
    for _ in 0..20 {
        assert!(decide(&trap, b"xyzxyz").is_err());
        assert!(decide(&deny, b"xyzxyz").is_ok());
    }
}

#[test]
fn more_callers_than_slots_wait_their_turn() {
    let options = RuntimeOptions { concurrent_decisions_max: NonZeroU32::MIN, ..options() };
    let policy = load(&PolicyRuntime::new(options).unwrap(), Decide::Deny);
    let digests: Vec<Digest> = std::thread::scope(|scope| {
        let callers: Vec<_> =
            (0..8).map(|_| scope.spawn(|| decide(&policy, b"xyzxyz").unwrap().digest())).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    assert!(digests.iter().all(|digest| *digest == digests[0]));
}

#[test]
fn both_engines_give_the_same_decision_digest() {
    let decided = [Allocation::Pooled, Allocation::OnDemand].map(|allocation| {
        let allocation = Some(allocation);
        let runtime = PolicyRuntime::new(RuntimeOptions { allocation, ..options() }).unwrap();
        let store = PolicyStore::embedded().unwrap();
        let pin = store.pin(&ExecutorCode::sql_jdbc_v1()).unwrap();
        let policy = runtime.load(pin, &store.component(pin).unwrap()).unwrap();
        let payload = "CREATE TABLE IF NOT EXISTS t (é int); TRUNCATE t; DELETE FROM t".as_bytes();
        decide(&policy, payload).unwrap()
    });
    assert_eq!(decided[0], decided[1]);
}

#[test]
fn only_an_allow_is_admitted() {
    let runtime = runtime();
    let allowed = decide(&load(&runtime, Decide::Allow), b"xyzxyz").unwrap();
    assert!(matches!(allowed.outcome(), Outcome::Allow { .. }));
    let (policy, payload, digest) =
        (allowed.policy_digest(), allowed.payload_digest(), allowed.digest());
    let admitted = allowed.admit().unwrap();
    assert_eq!(admitted.policy_digest(), policy);
    assert_eq!(admitted.payload_digest(), payload);
    assert_eq!(admitted.decision_digest(), digest);
    assert_eq!(admitted.catalog().as_str(), "plugin_preview");
    assert_eq!(admitted.session().character_set, "utf8mb4");
    assert_eq!(admitted.statements().len(), 1);

    let denied = decide(&load(&runtime, Decide::Deny), b"xyzxyz").unwrap().admit().unwrap_err();
    assert_eq!(denied.to_string(), "the policy denied the payload: no-good");
    assert_eq!(denied.diagnostics().len(), 1);
}

#[test]
fn an_allow_for_another_catalog_is_no_decision() {
    let policy = load(&runtime(), Decide::Allow);
    let result = policy.decide(&DecisionRequest {
        payload: b"xyzxyz",
        catalog: &"plugin_other".parse().unwrap(),
        protected_tables: &[],
    });
    assert!(matches!(result, Err(NoDecision::Malformed { .. })), "{result:?}");
    let result = policy.decide(&DecisionRequest {
        payload: b"xyzxyz",
        catalog: &"plugin_preview".parse().unwrap(),
        protected_tables: &["T"],
    });
    assert!(matches!(result, Err(NoDecision::Malformed { .. })), "{result:?}");
}

#[test]
fn a_compiled_policy_is_read_from_a_private_cache() {
    let directory = tempfile::tempdir().unwrap();
    let cache = CompileCache::Directory(directory.path().join("cache"));
    let bytes = hostile::policy(Decide::Deny);
    let load = || {
        let runtime = PolicyRuntime::new(RuntimeOptions { cache: cache.clone(), ..options() });
        let runtime = runtime.unwrap();
        let policy = runtime.load_unpinned(&bytes).unwrap();
        (runtime.cache_use().unwrap(), decide(&policy, b"xyzxyz").unwrap())
    };
    let (cold, first) = load();
    let (warm, second) = load();
    assert_eq!((cold.hits, cold.misses), (0, 1));
    assert_eq!((warm.hits, warm.misses), (1, 0));
    assert_eq!(first, second);
}

#[cfg(unix)]
#[test]
fn a_cache_that_others_may_write_is_not_read() {
    use std::os::unix::fs::PermissionsExt as _;

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cache");
    let bytes = hostile::policy(Decide::Deny);
    let runtime = || {
        let cache = CompileCache::Directory(path.clone());
        PolicyRuntime::new(RuntimeOptions { cache, ..options() }).unwrap()
    };
    runtime().load_unpinned(&bytes).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o770)).unwrap();
    let wary = runtime();
    assert_eq!(wary.cache_use(), None);
    assert!(wary.load_unpinned(&bytes).is_ok(), "a decision does not depend on the cache");
}

#[cfg(unix)]
#[test]
fn a_damaged_cache_entry_is_compiled_anew() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cache");
    let cache = CompileCache::Directory(path.clone());
    let bytes = hostile::policy(Decide::Deny);
    let runtime =
        || PolicyRuntime::new(RuntimeOptions { cache: cache.clone(), ..options() }).unwrap();
    runtime().load_unpinned(&bytes).unwrap();
    let mut damaged = 0;
    let mut folders = vec![path];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap().path();
            if entry.is_dir() {
                folders.push(entry);
            } else {
                std::fs::write(entry, b"not compiled code").unwrap();
                damaged += 1;
            }
        }
    }
    assert!(damaged > 0);
    let policy = runtime().load_unpinned(&bytes).unwrap();
    assert!(decide(&policy, b"xyzxyz").is_ok());
}
