//! Transition plans: three wire versions, one model, and nothing else accepted.

use std::error::Error as _;
use std::path::Path;

use serde_json::{Value, json};
use tollgate::digest::Digest;
use tollgate::ids::{Direction, ExecutorCode};
use tollgate::plan::{
    Compensation, FolderCatalog, Plan, PlanError, PlanProblem, Step, publish, read_release,
};

fn golden(version: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/plans");
    std::fs::read(folder.join(format!("{version}.json"))).unwrap()
}

fn document(version: &str) -> Value {
    serde_json::from_slice(&golden(version)).unwrap()
}

fn parse(document: &Value) -> Result<Plan, PlanError> {
    Plan::parse(document.to_string().as_bytes())
}

fn orders() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/releases/orders/1.4.0")
}

/// The problems of a plan whose fields are all well-formed.
fn contradictions(document: &Value) -> Vec<PlanProblem> {
    match parse(document) {
        Err(PlanError::Contradiction(problems)) => problems,
        other => panic!("expected a contradiction, got {other:?}"),
    }
}

/// The reason a field of the document is refused.
fn shape(document: &Value) -> String {
    match parse(document) {
        Err(error @ PlanError::Shape { .. }) => error.source().unwrap().to_string(),
        other => panic!("expected a refused field, got {other:?}"),
    }
}

#[test]
fn every_version_has_the_eligibility_of_the_contract() {
    let dry = vec![ExecutorCode::dry_run_v1()];
    let both = vec![ExecutorCode::dry_run_v1(), ExecutorCode::sql_jdbc_v1()];
    for (version, forward, compensate) in
        [("1.0", &dry, &vec![]), ("1.1", &dry, &dry), ("1.2", &both, &both)]
    {
        let plan = Plan::parse(&golden(version)).unwrap();
        let schema = &plan.steps()[0];
        assert_eq!(&schema.eligible_executors(Direction::Forward), forward, "{version}");
        assert_eq!(&schema.eligible_executors(Direction::Compensate), compensate, "{version}");
        assert_eq!(schema.step(Direction::Compensate).is_ok(), !compensate.is_empty());
        assert_eq!(schema.declaration.is_some(), version == "1.2");
    }
}

#[test]
fn golden_fingerprints_hold() {
    for (version, fingerprint) in [
        ("1.0", "sha256:f9b013a97b3397450a511c31cdb13ce0c05fa5c550270938c0bbd4bbef856267"),
        ("1.1", "sha256:affa5411351e7c15879f4164286b91afa5158d69db718a6afe51192aaa1d792d"),
        ("1.2", "sha256:2b69e58ad4e1a44583c4550fa5249e41154313233144cca6bd923b6a18a3f7b3"),
    ] {
        let plan = Plan::parse(&golden(version)).unwrap();
        assert_eq!(plan.fingerprint().to_string(), fingerprint, "{version}");
    }
}

#[test]
fn unknown_versions_are_refused_by_name() {
    for version in ["1.3", "1", "1.2.0", "", "2.0", " 1.2"] {
        let mut document = document("1.2");
        document["schemaVersion"] = json!(version);
        let error = parse(&document).unwrap_err();
        assert!(matches!(&error, PlanError::UnknownVersion(found) if found == version));
        assert!(error.to_string().contains(&format!("`{version}`")), "{error}");
    }
    for not_a_plan in ["", "[]", "{}", "{\"schemaVersion\": 1.2}", "{\"schemaVersion\": null}"] {
        let error = Plan::parse(not_a_plan.as_bytes()).unwrap_err();
        assert!(matches!(error, PlanError::NotAPlan(_)), "{not_a_plan}");
    }
}

#[test]
fn a_field_of_another_version_is_refused_by_name() {
    for (version, field, value) in [
        ("1.0", "compensation", json!({})),
        ("1.0", "idempotent", json!(true)),
        ("1.1", "idempotent", json!(true)),
        ("1.1", "publicationFingerprint", json!(Digest::of("x"))),
        ("1.2", "priority", json!(1)),
    ] {
        let mut document = document(version);
        document["steps"][1][field] = value;
        assert!(shape(&document).contains(&format!("`{field}`")), "{version} {field}");
    }
    for (pointer, field) in
        [("", "owner"), ("/steps/0/release", "sha"), ("/steps/0/compensation", "x")]
    {
        let mut document = document("1.2");
        document.pointer_mut(pointer).unwrap()[field] = json!("a");
        assert!(shape(&document).contains(&format!("unknown field `{field}`")), "{pointer}");
    }
}

#[test]
fn a_missing_field_is_refused_by_name() {
    for (version, fields) in [
        ("1.0", vec!["key", "release", "contributionKey", "type", "target", "contentHash"]),
        ("1.2", vec!["idempotent", "publicationFingerprint"]),
    ] {
        for field in fields {
            let mut document = document(version);
            document["steps"][0].as_object_mut().unwrap().remove(field);
            assert!(shape(&document).contains(&format!("`{field}`")), "{version} {field}");
        }
    }
}

#[test]
fn an_altered_plan_no_longer_has_its_fingerprint() {
    let alterations: [(&str, Value); 5] = [
        ("/plan", json!("other")),
        ("/steps/0/idempotent", json!(false)),
        ("/steps/0/contentHash", json!(Digest::of("x"))),
        ("/steps/1/compensation/contentHash", json!(Digest::of("x"))),
        ("/steps/2/target", json!("sql")),
    ];
    for (pointer, value) in alterations {
        let mut document = document("1.2");
        *document.pointer_mut(pointer).unwrap() = value;
        let problems = contradictions(&document);
        assert!(matches!(problems[..], [PlanProblem::Fingerprint { .. }]), "{pointer}");
    }
    let mut reordered = document("1.2");
    reordered["steps"].as_array_mut().unwrap().swap(0, 1);
    assert!(matches!(contradictions(&reordered)[..], [PlanProblem::Fingerprint { .. }]));
}

#[test]
fn an_idempotent_declaration_changes_the_fingerprint_of_1_2_only() {
    let recorded = Plan::parse(&golden("1.1")).unwrap();
    assert!(recorded.steps().iter().all(|step| step.declaration.is_none()));
    let mut altered = document("1.2");
    altered["steps"][0]["idempotent"] = json!(false);
    assert_eq!(contradictions(&altered).len(), 1);
}

#[test]
fn every_contradiction_is_told_at_once() {
    let mut document = document("1.2");
    document["steps"][1]["key"] = document["steps"][0]["key"].clone();
    document["steps"][2]["key"] = json!("k".repeat(118));
    document["steps"][2]["compensation"] = document["steps"][0]["compensation"].clone();
    let problems = contradictions(&document);
    // The compensations of the first two would share a key as well.
    assert!(
        matches!(
            problems[..],
            [
                PlanProblem::DuplicateKey(_),
                PlanProblem::DuplicateKey(_),
                PlanProblem::KeyTooLong(_)
            ]
        ),
        "{problems:?}"
    );
    document["steps"] = json!([]);
    assert_eq!(contradictions(&document)[0], PlanProblem::StepCount(0));
}

#[test]
fn directions_have_keys_and_hashes_of_their_own() {
    let plan = Plan::parse(&golden("1.2")).unwrap();
    let forward = plan.steps()[0].step(Direction::Forward).unwrap();
    let back = plan.steps()[0].step(Direction::Compensate).unwrap();
    assert_eq!(forward.key.as_str(), "orders-1.4.0:1");
    assert_eq!(back.key.as_str(), "orders-1.4.0:1:compensate");
    assert_ne!(forward.content_hash, back.content_hash);
    assert_eq!(plan.steps()[2].compensation, Compensation::None);
    assert!(plan.steps()[2].step(Direction::Compensate).is_err());
}

#[test]
fn a_step_survives_being_kept_as_json() {
    for version in ["1.0", "1.1", "1.2"] {
        for planned in Plan::parse(&golden(version)).unwrap().steps() {
            let step = planned.step(Direction::Forward).unwrap();
            let kept = serde_json::to_string(&step).unwrap();
            assert!(!kept.contains("schemaVersion"));
            assert_eq!(serde_json::from_str::<Step>(&kept).unwrap(), step);
        }
    }
}

#[test]
fn publishing_a_release_gives_the_golden_plan() {
    let release = read_release(&orders()).unwrap();
    let document = publish(&"orders-1.4.0".parse().unwrap(), &[release]).unwrap();
    assert_eq!(document.trim(), String::from_utf8(golden("1.2")).unwrap().trim());
}

#[tokio::test]
async fn the_golden_release_has_its_golden_fingerprint() {
    use tollgate::plan::ContributionCatalog as _;
    let plan = Plan::parse(&golden("1.2")).unwrap();
    let catalog = FolderCatalog::tree(orders().parent().unwrap().parent().unwrap());
    let installed = catalog.installed(&plan.steps()[0].release).await.unwrap().unwrap();
    let fingerprint = installed.publication_fingerprint();
    assert_eq!(
        fingerprint.to_string(),
        "sha256:c899b94c475815c134a1df9b747b8749828557c346be166a32559e11d28ab640"
    );
    assert_eq!(plan.steps()[0].declaration.unwrap().publication_fingerprint, fingerprint);
}
