//! The proofs, put to the proof: with each planted bug in the product, the model or a named test on a
//! real server must find it; without one, the same must hold.
//!
//! Built with the feature `planted-bugs` only:
//! `cargo nextest run --workspace --features tollgate-tests/planted-bugs -E 'binary(planted_bugs)'`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;
use tollgate::planted::{Bug, VARIABLE};
use tollgate_model::{Cast, Payload, Protocol, first_broken};

/// What finds a bug.
#[derive(Debug, Clone, Copy)]
enum Finder {
    /// The model of the receipt's protocol, with these workers.
    Model(Payload, Cast),
    /// A test of a suite, on a real server.
    Test(&'static str, &'static str),
}

use Finder::{Model, Test};

fn finders(bug: Bug) -> &'static [Finder] {
    match bug {
        Bug::ClaimOverOpenLease => {
            &[Model(Payload::Dml, Cast::Two), Test("ledger", "claim::an_open_lease_is_not_stolen")]
        }
        Bug::TakeoverWithoutKill => &[
            Model(Payload::Ddl, Cast::Two),
            Test("ledger", "takeover::a_zombies_statement_is_ended_before_its_step_is_taken_over"),
        ],
        // On a server the killed session is gone within a millisecond, or not: no test can rely on it.
        Bug::TakeoverWithoutWaiting => &[Model(Payload::Ddl, Cast::Two)],
        Bug::AdoptWithoutToken => &[Model(Payload::Dml, Cast::Two)],
        Bug::RenewWithoutToken => {
            &[Model(Payload::Dml, Cast::Two), Test("ledger", "ending::a_lost_lease_is_not_renewed")]
        }
        Bug::CompleteWithoutToken
        | Bug::LostLeaseWithoutRollback
        | Bug::CompleteOutsideTransaction => &[
            Model(Payload::Dml, Cast::Two),
            Test("ledger", "ending::a_stale_holder_cannot_complete_and_its_dml_is_rolled_back"),
        ],
        Bug::FailedOverSucceeded => &[
            Model(Payload::Dml, Cast::Two),
            Test("ledger", "ending::a_failure_is_never_written_over_success"),
        ],
        Bug::UnknownCommitIsFailure => {
            &[Test("ledger", "lost_answers::a_commit_without_an_answer_is_told_by_the_receipt")]
        }
        // The model starts a payload twice at most, and the write that arrives late counts as a start:
        // nobody is left to run beside it.
        Bug::ResumeWithoutKill => &[Test(
            "ledger",
            "lost_answers::a_claim_that_is_resumed_ends_the_session_where_its_write_may_still_arrive",
        )],
        Bug::InspectWithoutKill => &[
            Model(Payload::Ddl, Cast::Two),
            Test(
                "ledger",
                "lost_answers::an_inspection_ends_the_session_whose_commit_may_still_come",
            ),
        ],
        Bug::ExecutionsUnbounded => &[
            Model(Payload::Dml, Cast::Two),
            Test("ledger", "claim::a_payload_that_fails_again_and_again_needs_attention"),
        ],
        Bug::CompensateRunningForward => &[
            Model(Payload::Dml, Cast::OneAndBack),
            Test("ledger", "counterpart::of_a_step_and_its_compensation_at_once_never_both_run"),
        ],
        Bug::SupersededForwardRuns => &[
            Model(Payload::Dml, Cast::OneAndBack),
            Test("ledger", "counterpart::what_never_ran_is_not_reversed_and_never_runs_later"),
        ],
        Bug::IdentityWithoutContent => &[Test(
            "ledger",
            "claim::each_field_of_the_identity_is_compared_and_the_row_is_left_alone",
        )],
        Bug::RecordWithoutToken | Bug::RenewClaimWithoutToken => {
            &[Test("outbox", "record::a_stale_worker_cannot_overwrite")]
        }
        Bug::ClaimOutOfOrder => {
            &[Test("outbox", "claim::steps_of_a_plan_come_in_order_and_plans_side_by_side")]
        }
    }
}

/// The suites' programs, built as this one is.
fn suite(name: &str) -> &'static PathBuf {
    static SUITES: OnceLock<BTreeMap<String, PathBuf>> = OnceLock::new();
    let suites = SUITES.get_or_init(|| {
        let built = Command::new(env!("CARGO"))
            .args(["test", "--locked", "--workspace", "--no-run", "--message-format=json"])
            .args(["--features", "tollgate-tests/planted-bugs"])
            .current_dir(tollgate_tests::source::repository())
            .output()
            .expect("cargo runs");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let lines = String::from_utf8(built.stdout).expect("UTF-8");
        lines.lines().filter_map(program).collect()
    });
    suites.get(name).unwrap_or_else(|| panic!("no suite `{name}` among {suites:?}"))
}

/// Name and path of a suite's program, out of a message of cargo.
fn program(message: &str) -> Option<(String, PathBuf)> {
    let message: Value = serde_json::from_str(message).ok()?;
    let kinds = message["target"]["kind"].as_array()?;
    kinds.iter().any(|kind| kind == "test").then_some(())?;
    let name = message["target"]["name"].as_str()?.to_owned();
    Some((name, message["executable"].as_str()?.into()))
}

/// Whether the test holds with this bug; with it planted, the end of what the test said.
fn holds(name: &str, test: &str, bug: Option<Bug>) -> (bool, String) {
    let mut command = Command::new(suite(name));
    command.args(["--exact", test, "--test-threads=1"]).env("TOLLGATE_SERVERS", "mariadb");
    command.env_remove(VARIABLE);
    if let Some(bug) = bug {
        command.env(VARIABLE, bug.name());
    }
    let run = command.output().expect("the suite starts");
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(said.contains("running 1 test"), "`{name}` has no test `{test}`:\n{said}");
    (run.status.success(), said)
}

#[test]
fn the_model_finds_every_bug_of_the_protocol() {
    for bug in Bug::ALL.iter().copied() {
        for finder in finders(bug) {
            let Model(payload, cast) = *finder else { continue };
            let spoilt = Protocol { bug: Some(bug), ..Protocol::of(payload, cast, Some(2)) };
            let Some((property, length)) = first_broken(spoilt) else {
                panic!("the model does not find `{}`", bug.name());
            };
            println!("{}: `{property}` is broken after {length} steps", bug.name());
        }
    }
}

#[test]
fn a_test_on_a_real_server_finds_the_others_and_holds_without_them() {
    let mut sound: BTreeMap<&str, bool> = BTreeMap::new();
    for bug in Bug::ALL.iter().copied() {
        for finder in finders(bug) {
            let Test(name, test) = *finder else { continue };
            let is_sound = *sound.entry(test).or_insert_with(|| holds(name, test, None).0);
            assert!(is_sound, "`{test}` does not hold even without a bug");
            let (holds, said) = holds(name, test, Some(bug));
            assert!(!holds, "`{test}` does not find `{}`:\n{said}", bug.name());
            // By a claim of its own that does not hold, not because it could not be run.
            let own = format!("panicked at tests/tests/{name}/");
            let place = said.lines().find_map(|line| Some(line.split_once(&own)?.1));
            let place = place.unwrap_or_else(|| panic!("`{test}` failed elsewhere:\n{said}"));
            println!("{}: `{test}` fails at {name}/{place}", bug.name());
        }
    }
}

#[test]
fn every_bug_is_found_by_something() {
    assert!(Bug::ALL.iter().all(|bug| !finders(*bug).is_empty()));
    assert!(Bug::ALL.len() >= 12);
}
