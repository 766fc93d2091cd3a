//! The policy's rules, run natively, answer the whole decisions corpus.

use std::collections::BTreeSet;

use tollgate_policy::Decision;
use tollgate_tests::corpus::{DecisionCase, Expected, decide, decisions, fidelity, payloads};

/// How an answer reads beside a case that expected another one.
fn told(decision: &Decision) -> String {
    match decision {
        Decision::Allow(allowance) => {
            let texts: Vec<&str> =
                allowance.statements.iter().map(|statement| statement.text.as_str()).collect();
            format!("allowed: {}", texts.join(" ; "))
        }
        Decision::Deny(diagnostics) => {
            let found: Vec<String> = diagnostics
                .iter()
                .map(|diagnostic| format!("{}: {}", diagnostic.code, diagnostic.message))
                .collect();
            format!("denied: {}", found.join(" ; "))
        }
    }
}

fn disagreement(case: &DecisionCase) -> Option<String> {
    let decision = decide(&case.sql);
    let agrees = match case.expect {
        Expected::Allow => matches!(decision, Decision::Allow(_)),
        Expected::Deny => matches!(decision, Decision::Deny(_)),
        Expected::Either => true,
    };
    (!agrees).then(|| {
        let sql: String = case.sql.chars().take(300).collect();
        format!("{} ({}): {}\n    {sql}\n    {}", case.id, case.class, case.why, told(&decision))
    })
}

#[test]
fn every_decision_of_the_corpus_is_as_expected() {
    let cases = decisions();
    let disagreements: Vec<String> = cases.iter().filter_map(disagreement).collect();
    assert!(
        disagreements.is_empty(),
        "{} of {} cases disagree:\n\n{}\n",
        disagreements.len(),
        cases.len(),
        disagreements.join("\n\n")
    );
}

#[test]
fn a_denial_says_why_and_an_allowance_says_what_runs() {
    for (id, sql) in payloads() {
        match decide(&sql) {
            Decision::Allow(allowance) => {
                assert!(!allowance.statements.is_empty(), "{id}: allowed, but nothing would run");
            }
            Decision::Deny(diagnostics) => {
                assert!(!diagnostics.is_empty(), "{id}: denied without a diagnostic");
                for diagnostic in diagnostics {
                    assert!(!diagnostic.message.is_empty(), "{id}: {}", diagnostic.code);
                    if let Some(span) = diagnostic.span {
                        let cut = sql.get(span.start as usize..span.end as usize);
                        assert!(cut.is_some(), "{id}: {} has a span outside", diagnostic.code);
                    }
                }
            }
        }
    }
}

#[test]
fn ids_name_one_case_each() {
    let decisions: Vec<String> = decisions().into_iter().map(|case| case.id).collect();
    let shapes: Vec<String> = fidelity().into_iter().map(|case| case.id).collect();
    assert!(decisions.len() >= 235 && shapes.len() >= 228, "the corpora have shrunk");
    for ids in [decisions, shapes] {
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
    }
}
