//! The schemas of plans in docs/schema accept what is read as a plan, and refuse what is refused by
//! its shape.

use std::path::Path;

use serde_json::{Value, json};
use tollgate::digest::Digest;
use tollgate::plan::{Plan, PlanError};
use tollgate_tests::schema::Schema;

const VERSIONS: [&str; 3] = ["1.0", "1.1", "1.2"];

fn golden(version: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/plans");
    let document = std::fs::read(folder.join(format!("{version}.json"))).unwrap();
    serde_json::from_slice(&document).unwrap()
}

/// Whether it has the shape of a plan. What its fields say together is no matter of shape.
fn has_shape(document: &Value) -> bool {
    !matches!(
        Plan::parse(document.to_string().as_bytes()),
        Err(PlanError::Shape { .. } | PlanError::UnknownVersion(_) | PlanError::NotAPlan(_))
    )
}

/// Values for each field: some that follow its rule, some that do not.
fn values() -> Vec<(&'static str, Vec<Value>)> {
    let texts = |texts: &[&str]| texts.iter().map(|text| json!(text)).collect();
    let long = |length: usize| json!("a".repeat(length));
    let digests =
        vec![json!(Digest::of("x")), json!("sha256:00"), json!("x"), json!(1), json!(null)];
    vec![
        ("/plan", [texts(&["", "a b", "ü", "p-1.0_x"]), vec![long(100), long(101)]].concat()),
        ("/fingerprint", digests.clone()),
        ("/steps/0/key", [texts(&["", "a b", "a:b", "a/b"]), vec![long(117), long(129)]].concat()),
        ("/steps/0/contributionKey", texts(&["", "a/b:c", "a b", "ü"])),
        ("/steps/0/type", texts(&["MENU", "menu", "_X", "X2_", ""])),
        ("/steps/0/target", texts(&["sql", "SQL", "-sql", "a-2", ""])),
        ("/steps/0/contentHash", digests.clone()),
        ("/steps/0/release/code", texts(&["orders", ".x", "", "a-b_c.d", "ü"])),
        (
            "/steps/0/release/version",
            texts(&["1.0.0", "1.0", "01.0.0", "1.0.0-rc.1+b", "v1.0.0", ""]),
        ),
        ("/steps/0/release/other", texts(&["a"])),
        ("/steps/0/compensation", vec![json!(null), json!({}), json!("a")]),
        ("/steps/0/compensation/contentHash", digests.clone()),
        ("/steps/0/compensation/other", texts(&["a"])),
        ("/steps/0/idempotent", vec![json!(true), json!(false), json!(null), json!("true")]),
        ("/steps/0/publicationFingerprint", digests),
        ("/steps/0/priority", vec![json!(1)]),
        ("/steps", vec![json!({}), json!(null), json!([null])]),
        ("/schemaVersion", vec![json!("1.3"), json!(1.2), json!("")]),
        ("/owner", texts(&["a"])),
    ]
}

/// Sets a field, whether it was there or not; false where its parent is not.
fn set(document: &mut Value, pointer: &str, value: Value) -> bool {
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    let parent = document.pointer_mut(parent).and_then(Value::as_object_mut);
    parent.map(|parent| parent.insert(field.to_owned(), value)).is_some()
}

#[test]
fn schemas_agree_with_the_reader_on_every_field_of_every_version() {
    let (mut accepted, mut refused) = (0, 0);
    for version in VERSIONS {
        let schema = Schema::of(&format!("plan-{version}"));
        schema.assert_accepts(&golden(version));
        assert!(Plan::parse(golden(version).to_string().as_bytes()).is_ok());
        for (pointer, values) in values() {
            for value in values {
                let mut document = golden(version);
                if !set(&mut document, pointer, value.clone()) {
                    continue;
                }
                let violations = schema.violations(&document);
                assert_eq!(
                    violations.is_empty(),
                    has_shape(&document),
                    "{version} {pointer} {value}: {violations:?}"
                );
                *(if violations.is_empty() { &mut accepted } else { &mut refused }) += 1;
            }
        }
    }
    assert!(accepted > 40 && refused > 80, "{accepted} accepted, {refused} refused");
}

#[test]
fn schemas_agree_with_the_reader_on_missing_fields() {
    for version in VERSIONS {
        let schema = Schema::of(&format!("plan-{version}"));
        for parent in ["", "/steps/0", "/steps/0/release", "/steps/0/compensation"] {
            let whole = golden(version);
            let Some(fields) = whole.pointer(parent).and_then(Value::as_object) else {
                continue;
            };
            for field in fields.keys() {
                let mut document = whole.clone();
                document.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(field);
                let is_accepted = schema.violations(&document).is_empty();
                assert_eq!(is_accepted, has_shape(&document), "{version} {parent}/{field}");
            }
        }
    }
}

#[test]
fn a_schema_is_of_one_version() {
    for version in VERSIONS {
        let schema = Schema::of(&format!("plan-{version}"));
        for other in VERSIONS.iter().filter(|other| **other != version) {
            assert!(!schema.violations(&golden(other)).is_empty(), "{other} as {version}");
        }
    }
}
