//! What the policy prints is a payload that the policy allows, and that it prints the same way.

use tollgate_policy::{Allowance, Decision, Diagnostic};

use super::{Violation, decide, ensure};

/// Bounds that the printed text may pass where the author's kept them: printing qualifies names and
/// adds parentheses. What runs is not decided again, so nothing depends on it.
const BOUNDS: &[&str] = &["nesting", "payload-bytes", "token-count"];

/// Decides again on what an allow would run, all its statements in one payload.
pub fn redecided(payload: &[u8]) -> Result<(), Violation> {
    let Decision::Allow(first) = decide(payload) else {
        return Ok(());
    };
    let texts: Vec<&str> = first.statements.iter().map(|statement| &*statement.text).collect();
    match decide(texts.join(";\n").as_bytes()) {
        Decision::Allow(again) => same(&first, &again),
        Decision::Deny(diagnostics) => {
            let bounded = diagnostics.iter().all(|found| BOUNDS.contains(&found.code));
            ensure(bounded, || format!("allowed, printed, then denied: {}", told(&diagnostics)))
        }
    }
}

fn same(first: &Allowance, again: &Allowance) -> Result<(), Violation> {
    let (count, counted) = (first.statements.len(), again.statements.len());
    ensure(count == counted, || format!("{count} statements became {counted}"))?;
    for (one, other) in first.statements.iter().zip(&again.statements) {
        ensure(one.text == other.text, || {
            format!("printed again as another text:\n{}\n{}", one.text, other.text)
        })?;
        ensure(one.operation == other.operation, || format!("another operation: {}", one.text))?;
        ensure(one.tables == other.tables, || {
            format!("other tables, {:?} and {:?}: {}", one.tables, other.tables, one.text)
        })?;
    }
    let codes = |allowance: &Allowance| -> Vec<_> {
        allowance.advisories.iter().map(|advisory| (advisory.statement, advisory.code)).collect()
    };
    ensure(codes(first) == codes(again), || {
        format!("other advisories, {:?} and {:?}", codes(first), codes(again))
    })
}

fn told(diagnostics: &[Diagnostic]) -> String {
    let each = diagnostics.iter().map(|found| format!("{}: {}", found.code, found.message));
    each.collect::<Vec<_>>().join("; ")
}
