//! Whatever is altered in a bundle is found, whether or not the digests around it are made right again.

use std::sync::LazyLock;

use proptest::prelude::*;
use tollgate::evidence::{
    DifferenceKind, EvidenceBundle, Exhibit, RecordedReceipt, Sandbox, Verification,
};
use tollgate::ids::{Catalog, ExternalReceipt};
use tollgate::ledger::Status;
use tollgate::policy::{
    DecisionRequest, PROTECTED_TABLES, PolicyRuntime, PolicyStore, RuntimeOptions,
};
use tollgate_tests::hostile::{Decide, policy};
use tollgate_tests::ustar::Members;

static RUNTIME: LazyLock<PolicyRuntime> =
    LazyLock::new(|| PolicyRuntime::new(RuntimeOptions::default()).unwrap());

/// A bundle with everything a bundle can have, of a policy of a few kilobytes.
static SMALL: LazyLock<Vec<u8>> = LazyLock::new(|| exported(&policy(Decide::Allow), true));

fn exported(component: &[u8], with_receipt: bool) -> Vec<u8> {
    let policy = RUNTIME.load_unpinned(component).unwrap();
    let catalog: Catalog = "plugin_preview".parse().unwrap();
    let payload = b"DELETE FROM t WHERE id = 1".as_slice();
    let request =
        DecisionRequest { payload, catalog: &catalog, protected_tables: PROTECTED_TABLES };
    let decision = policy.decide(&request).unwrap();
    let environment = "preview".parse().unwrap();
    let key = "order-7:1".parse().unwrap();
    let receipt = RecordedReceipt {
        external_receipt: Some(ExternalReceipt::sql(&environment, &key)),
        key,
        environment,
        release: tollgate::ids::PluginRelease {
            code: "orders".parse().unwrap(),
            version: "1.0.0".parse().unwrap(),
        },
        direction: tollgate::ids::Direction::Forward,
        content_hash: decision.payload_digest(),
        counterpart: None,
        executor: policy.pin().executor.clone(),
        policy_digest: Some(decision.policy_digest()),
        decision_digest: Some(decision.digest()),
        status: Status::Succeeded,
        execution_count: 1,
        statement_count: 1,
        last_error_code: None,
        last_error: None,
        created_at: "2026-01-31T09:30:00.000000Z".to_owned(),
        updated_at: "2026-01-31T09:30:01.000000Z".to_owned(),
        completed_at: Some("2026-01-31T09:30:01.000000Z".to_owned()),
    };
    let receipt = with_receipt.then_some(&receipt);
    let exhibit = Exhibit {
        policy: &policy,
        component,
        payload,
        catalog: &catalog,
        environment: None,
        receipt,
    };
    EvidenceBundle::export(&exhibit).unwrap().as_bytes().to_vec()
}

fn digest(bytes: &[u8]) -> String {
    tollgate::digest::Digest::of(bytes).to_string()
}

fn verified(bytes: Vec<u8>) -> Verification {
    let sandbox = Sandbox { engine: "cranelift", runtime: &RUNTIME };
    EvidenceBundle::parse(bytes).unwrap().verify(&[sandbox])
}

/// Whether verifying says that something is wrong. Nothing is asked again: an altered byte is found
/// before a policy is.
fn is_found(bytes: Vec<u8>) -> bool {
    EvidenceBundle::parse(bytes).map_or(true, |bundle| !bundle.verify(&[]).holds())
}

#[test]
fn the_bundle_itself_holds_and_is_what_the_page_describes() {
    let verification = verified(SMALL.clone());
    assert!(verification.holds(), "{:?}", verification.differences);
    assert_eq!(verification.engines, ["cranelift"]);
    let mut members = Members::of(&SMALL);
    members.sum();
    assert!(members.archive() == *SMALL, "written from the page, it has other bytes");
}

#[test]
fn every_altered_byte_is_found() {
    assert!(!is_found(SMALL.clone()));
    for at in 0..SMALL.len() {
        let mut altered = SMALL.clone();
        altered[at] ^= 1 << (at % 8);
        assert!(is_found(altered), "byte {at} of {}", SMALL.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn any_byte_altered_in_any_way_is_found(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut altered = SMALL.clone();
        let at = at.index(altered.len());
        prop_assume!(altered[at] != byte);
        altered[at] = byte;
        prop_assert!(is_found(altered), "byte {at} made {byte:#x}");
    }

    #[test]
    fn bytes_that_are_added_removed_or_moved_are_found(
        at in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 1..600),
        removed in 1..600_usize,
    ) {
        let at = at.index(SMALL.len());
        let (before, after) = SMALL.split_at(at);
        prop_assert!(is_found([before, &bytes, after].concat()), "added at {at}");
        let rest = after.get(removed..).unwrap_or_default();
        prop_assert!(is_found([before, rest].concat()), "removed at {at}");
        prop_assume!(before != after && !before.is_empty());
        let moved = [after, before].concat();
        prop_assume!(moved != *SMALL);
        prop_assert!(is_found(moved), "turned at {at}");
    }
}

#[test]
fn the_published_policy_s_bundle_is_no_different() {
    let store = PolicyStore::embedded().unwrap();
    let pin = store.pins().iter().next().unwrap();
    let bundle = exported(&store.component(pin).unwrap(), false);
    let verification = verified(bundle.clone());
    assert!(verification.holds(), "{:?}", verification.differences);
    // Three megabytes of component: a byte of each hundred thousand, the first and the last.
    for at in (0..bundle.len()).step_by(99_991).chain([0, bundle.len() - 1]) {
        let mut altered = bundle.clone();
        altered[at] ^= 0x04;
        assert!(is_found(altered), "byte {at}");
    }
}

/// Alters a member, makes SHA256SUMS right again, and gives the places where a difference is told.
fn places(alter: impl FnOnce(&mut Members)) -> Vec<String> {
    let mut members = Members::of(&SMALL);
    alter(&mut members);
    members.sum();
    let verification = verified(members.archive());
    verification.differences.into_iter().map(|it| it.place).collect()
}

#[test]
fn an_altered_payload_contradicts_everything_that_names_it() {
    let places = places(|it| it.replace("payload.sql", "id = 1", "id = 2"));
    assert_eq!(
        places,
        [
            "request.json /payloadDigest, of payload.sql",
            "receipt.json /contentHash, of payload.sql",
            "decision.bin, byte 60",
            "decision.json /decisionDigest, decided again",
        ]
    );
}

#[test]
fn an_altered_statement_is_not_what_the_policy_prints() {
    let places = places(|it| it.content("statements/0000.sql").push(b' '));
    let [place] = &places[..] else { panic!("{places:?}") };
    assert!(place.starts_with("statements/0000.sql, byte "), "{place}");
}

#[test]
fn a_statement_that_was_put_in_or_taken_out_is_named() {
    let put_in = places(|it| {
        let at = it.0.iter().position(|(name, _)| name == "receipt.json").unwrap();
        it.0.insert(at, ("statements/0001.sql".to_owned(), b"DROP TABLE x".to_vec()));
    });
    assert_eq!(put_in, ["statements/0001.sql"]);
    let taken_out = places(|it| it.0.retain(|(name, _)| name != "statements/0000.sql"));
    assert_eq!(taken_out, ["statements/0000.sql"]);
}

#[test]
fn every_value_of_the_decision_is_held_against_the_one_made_again() {
    let altered = |from: &str, to: &str| places(|it| it.replace("decision.json", from, to));
    assert_eq!(altered("\"delete\"", "\"insert\""), ["decision.json /statements/0/operation"]);
    assert_eq!(altered("\"write\"", "\"read\""), ["decision.json /statements/0/tables/0/access"]);
    assert_eq!(altered("\"allow\"", "\"deny\""), ["decision.json /decision"]);
    assert_eq!(altered("+00:00", "+01:00"), ["decision.json /session/timeZone"]);
    assert_eq!(altered("0.0.0", "0.0.1"), ["decision.json /policy/version"]);
    // Another spelling of the same values.
    assert_eq!(altered("{\"decision\":", "{ \"decision\":"), ["decision.json, byte 1"]);
    let told = altered("\"diagnostics\":[]", "\"diagnostics\":[],\"note\":1");
    assert_eq!(told, ["decision.json"], "an unknown key");
}

#[test]
fn every_fact_of_the_receipt_that_can_be_known_is_compared() {
    let altered = |from: &str, to: &str| places(|it| it.replace("receipt.json", from, to));
    assert_eq!(
        altered("\"statementCount\":1", "\"statementCount\":2"),
        ["receipt.json /statementCount"]
    );
    assert_eq!(
        altered("\"environment\":\"preview\"", "\"environment\":\"live\""),
        ["receipt.json /environment, against request.json", "receipt.json /externalReceipt"]
    );
    assert_eq!(altered("order-7:1", "order-8:1"), ["receipt.json /externalReceipt"]);
    assert_eq!(
        altered("\"SUCCEEDED\"", "\"FAILED\""),
        ["receipt.json /externalReceipt", "receipt.json /completedAt"]
    );
    assert_eq!(
        altered("\"sql-jdbc:v1\"", "\"sql-jdbc:v2\""),
        ["receipt.json /executor, against request.json"]
    );
    assert_eq!(
        altered("\"policyDigest\":\"sha256:", "\"policyDigest\":null,\"x\":\"sha256:"),
        ["receipt.json"]
    );
}

#[test]
fn a_policy_that_was_exchanged_is_told_apart_by_every_digest_of_it() {
    let denying = policy(Decide::Deny);
    let mut members = Members::of(&SMALL);
    *members.content("policy/component.wasm") = denying.clone();
    members.sum();
    let verification = verified(members.archive());
    assert!(verification.has(DifferenceKind::Digest));
    assert!(verification.has(DifferenceKind::NoDecision), "an unpinned component is not asked");
    assert!(verification.engines.is_empty());

    // With the pin made right as well, decision and receipt still name the one that decided.
    let (old, new) = (digest(&policy(Decide::Allow)), digest(&denying));
    members.replace("policy/pin.toml", &old, &new);
    members.sum();
    let verification = verified(members.archive());
    let places: Vec<&str> = verification.differences.iter().map(|it| it.place.as_str()).collect();
    assert_eq!(
        places,
        [
            "decision.json /policy/digest, of policy/component.wasm",
            "receipt.json /policyDigest, of policy/component.wasm",
            "policy/component.wasm",
        ]
    );
    let told = &verification.differences[2].found;
    assert!(told.contains("the component is not the one that decided"), "{told}");

    // With all of them made right the answers tell.
    members.replace("decision.json", &old, &new);
    members.replace("receipt.json", &old, &new);
    members.sum();
    let verification = verified(members.archive());
    let places: Vec<&str> = verification.differences.iter().map(|it| it.place.as_str()).collect();
    for place in [
        "decision.json /decision",
        "decision.json /decisionDigest, decided again",
        "statements/0000.sql",
        "receipt.json",
    ] {
        assert!(places.contains(&place), "{place} is not among {places:#?}");
    }
}

#[test]
fn a_component_that_did_not_decide_is_not_even_compiled() {
    // No component at all: had anyone tried to compile it, that would be told.
    let mut members = Members::of(&SMALL);
    let (old, junk) = (digest(&policy(Decide::Allow)), b"no component".to_vec());
    members.replace("policy/pin.toml", &old, &digest(&junk));
    *members.content("policy/component.wasm") = junk.clone();
    members.sum();
    let told = |members: &Members| {
        let differences = verified(members.archive()).differences;
        let told = differences.into_iter().find(|it| it.kind == DifferenceKind::NoDecision);
        told.unwrap().found
    };
    assert!(told(&members).starts_with("not decided again: "), "{}", told(&members));
    for name in ["decision.json", "receipt.json"] {
        members.replace(name, &old, &digest(&junk));
    }
    members.sum();
    assert!(told(&members).starts_with("no policy to ask: "), "{}", told(&members));
}

#[test]
fn a_pin_says_nothing_but_its_values() {
    for (from, to) in [
        ("format = 1", "# reviewed by everyone\nformat = 1"),
        ("format = 1", "format  = 1"),
        ("# Which", "# What"),
        ("supersedes = []\n", ""),
    ] {
        let places = places(|it| it.replace("policy/pin.toml", from, to));
        let [place] = &places[..] else { panic!("{to}: {places:?}") };
        assert!(place.starts_with("policy/pin.toml, byte "), "{place}");
    }
    let places = places(|it| it.content("policy/pin.toml").extend(b"# \xff"));
    assert_eq!(places.len(), 1, "{places:?}");
}

#[test]
fn a_version_is_one() {
    for wrong in ["1.0.0\\nverified", "", "1", "the best", "1.0.0 and more"] {
        let current = env!("CARGO_PKG_VERSION");
        let places = places(|it| it.replace("versions.json", current, wrong));
        assert_eq!(places, ["versions.json"], "{wrong}");
    }
    assert_eq!(places(|it| it.replace("decision.json", "0.0.0", "new")), ["decision.json"]);
}

#[test]
fn an_environment_without_a_receipt_is_not_proven() {
    let environment = |bytes: Vec<u8>| {
        let unproven = verified(bytes).unproven;
        unproven.into_iter().find(|it| it.contains("meant for environment"))
    };
    assert_eq!(environment(SMALL.clone()), None, "the receipt has it");
    let mut members = Members::of(&SMALL);
    members.0.retain(|(name, _)| name != "receipt.json");
    members.sum();
    assert!(environment(members.archive()).unwrap().contains("`preview`"));
    members.replace("request.json", "\"preview\"", "null");
    members.sum();
    assert_eq!(environment(members.archive()), None);
}

#[test]
fn a_policy_that_does_not_decide_is_neither_an_allow_nor_a_denial() {
    let mut members = Members::of(&SMALL);
    let trapping = policy(Decide::Trap);
    for name in ["policy/pin.toml", "decision.json", "receipt.json"] {
        members.replace(name, &digest(&policy(Decide::Allow)), &digest(&trapping));
    }
    *members.content("policy/component.wasm") = trapping;
    members.sum();
    let verification = verified(members.archive());
    let undecided =
        verification.differences.iter().find(|it| it.kind == DifferenceKind::NoDecision);
    assert!(undecided.unwrap().found.contains("trap"), "{undecided:?}");
}

#[test]
fn what_does_not_count_is_said() {
    let mut members = Members::of(&SMALL);
    members.content("policy/policy.wit").extend(b"// more\n");
    members.sum();
    let verification = verified(members.archive());
    assert!(verification.holds(), "no decision depends on the text");
    assert!(verification.unproven.iter().any(|it| it.contains("policy/policy.wit")));
    assert!(!verified(SMALL.clone()).unproven.iter().any(|it| it.contains("policy/policy.wit")));
}

#[test]
fn members_are_refused_by_name() {
    let refused = |alter: fn(&mut Members)| {
        let mut members = Members::of(&SMALL);
        alter(&mut members);
        EvidenceBundle::parse(members.archive()).unwrap_err().to_string()
    };
    let told = refused(|it| it.0.push(("notes.txt".to_owned(), Vec::new())));
    assert!(told.contains("`notes.txt` is no member"), "{told}");
    let told = refused(|it| it.0.swap(1, 2));
    assert!(told.contains("`payload.sql` stands where `request.json` belongs"), "{told}");
    let told = refused(|it| it.0.insert(3, it.0[2].clone()));
    assert!(told.contains("`payload.sql` is there twice"), "{told}");
    let told = refused(|it| it.0.retain(|(name, _)| name != "versions.json"));
    assert!(told.contains("`versions.json` is missing"), "{told}");
    let told = refused(|it| it.replace("manifest.json", "\"version\":1", "\"version\":2"));
    assert!(told.contains("the bundle has version 2"), "{told}");
    let told = refused(|it| *it.content("decision.json") = vec![b' '; (16 << 20) + 1]);
    assert!(told.contains("`decision.json` has 16777217 bytes"), "{told}");
    let told = refused(|it| *it.content("policy/component.wasm") = vec![0; (64 << 20) + 1]);
    assert!(told.contains("`policy/component.wasm` has 67108865 bytes"), "{told}");
}
