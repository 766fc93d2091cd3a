//! Components that would take a compiler minutes and gigabytes are refused before it sees them, and what
//! is not refused it compiles.

use tollgate::policy::{
    COMPONENT_FUNCTIONS_MAX, CompileCache, FUNCTION_BRANCHES_MAX, FUNCTION_BYTES_MAX,
    FUNCTION_LOCALS_MAX, FUNCTION_LOOP_NESTING_MAX, LoadError, PolicyRuntime, RuntimeOptions,
};
use tollgate_tests::bombs::Bomb;
use tollgate_tests::desk::Desk;
use tollgate_tests::hostile;
use wasm_encoder::Function;

fn runtime() -> PolicyRuntime {
    let options = RuntimeOptions { cache: CompileCache::Off, ..RuntimeOptions::default() };
    PolicyRuntime::new(options).unwrap()
}

#[track_caller]
fn assert_refused(functions: &[Function], expected: &str) {
    match runtime().load_unpinned(&hostile::policy_with_functions(functions)) {
        Err(error @ LoadError::Bound { what, found, max }) => {
            assert!(what.contains(expected) && found > max, "{error}");
        }
        loaded => panic!("not refused for its {expected}: {loaded:?}"),
    }
}

#[test]
fn half_a_megabyte_that_takes_minutes_is_refused() {
    for bomb in [Bomb::Nested, Bomb::Loops, Bomb::Conditions] {
        assert_refused(&[bomb.function(8_000, 40)], "branches in one function");
    }
    assert_refused(&[Bomb::JumpTables.function(100, 1)], "branches in one function");
    assert_refused(&[Bomb::NestedLoops.function(2_000, 1)], "loops in loops");
    assert_refused(&[Bomb::Straight.function(100_000, 10)], "bytes in one function");
    let locals = u32::try_from(FUNCTION_LOCALS_MAX).unwrap();
    assert_refused(&[Bomb::Straight.function(1, locals + 1)], "local variables");
    assert_refused(&[Bomb::Loops.function(1_000, locals)], "branches times values in one function");
}

#[test]
fn many_small_functions_are_bounded_together() {
    let functions = usize::try_from(COMPONENT_FUNCTIONS_MAX).unwrap();
    assert_refused(&vec![Bomb::Straight.function(1, 1); functions], "functions");
    assert_refused(&vec![Bomb::Nested.function(4_000, 1); 200], "squares of branches");
    assert_refused(&vec![Bomb::Nested.function(50, 1); 15_000], "branches");
    assert_refused(&vec![Bomb::Loops.function(400, 200); 200], "branches times values");
    assert_refused(&vec![Bomb::Straight.function(10_000, 10); 200], "bytes of code");
}

#[test]
fn what_is_just_within_the_bounds_is_compiled() {
    let branches = u32::try_from(FUNCTION_BRANCHES_MAX).unwrap();
    let loops = u32::try_from(FUNCTION_LOOP_NESTING_MAX).unwrap();
    let turns = u32::try_from(FUNCTION_BYTES_MAX / 8 - 10).unwrap();
    let functions = [
        Bomb::Nested.function(branches, 1),
        Bomb::NestedLoops.function(loops, 40),
        Bomb::Loops.function(branches / 2, 40),
        Bomb::Conditions.function(branches, 40),
        Bomb::JumpTables.function(branches / 110, 1),
        Bomb::Straight.function(turns, 10),
    ];
    runtime().load_unpinned(&hostile::policy_with_functions(&functions)).unwrap();
}

#[test]
fn every_command_that_would_compile_it_names_file_and_bound() {
    let desk = Desk::new();
    desk.write("bomb.wasm", hostile::policy_with_functions(&[Bomb::Nested.function(20_000, 1)]));
    desk.write("a.sql", "xyzxyz");
    for command in [
        &["policy", "inspect", "bomb.wasm"][..],
        &["policy", "pin", "sql-jdbc:v1", "bomb.wasm", "--store", "store"],
        &["policy", "publish", "bomb.wasm", "127.0.0.1:1/policies/p:1"],
        &["policy", "diff", "bomb.wasm", "sql-jdbc:v1", "--corpus", "a.sql"],
        &["check", "--policy", "bomb.wasm", "a.sql"],
        &["evidence", "export", "--policy", "bomb.wasm", "--payload", "a.sql", "--to", "e.tar"],
    ] {
        let run = desk.run(command);
        assert_eq!(run.code(), Some(2), "{command:?}: {run:?}");
        let told = format!("branches in one function, at most {FUNCTION_BRANCHES_MAX} are");
        assert!(
            run.stderr.contains("`bomb.wasm` cannot be loaded as a policy"),
            "{command:?}: {run:?}"
        );
        assert!(run.stderr.contains(&told), "{command:?}: {run:?}");
    }
    assert!(!desk.path("store").exists() && !desk.path("e.tar").exists());
}
