//! What a component's bytes say about it, beyond what the sandbox asks.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use wasmparser::{KnownCustom, Parser, Payload};

/// Bytes of a page of linear memory.
pub(super) const PAGE_BYTES: u64 = 64 << 10;

/// The bounds a core module gives its linear memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Memory {
    /// Pages of 64 KiB a decision starts with.
    pub(super) pages_min: u64,
    /// Pages it may grow to; `None` leaves that to the sandbox.
    pub(super) pages_max: Option<u64>,
}

/// Every linear memory, in the order of the core modules.
pub(super) fn memories(component: &[u8]) -> Vec<Memory> {
    let mut memories = Vec::new();
    for payload in Parser::new(0).parse_all(component) {
        let Ok(Payload::MemorySection(section)) = payload else { continue };
        memories.extend(
            section
                .into_iter()
                .flatten()
                .map(|memory| Memory { pages_min: memory.initial, pages_max: memory.maximum }),
        );
    }
    memories
}

/// The tools that say they made the component or a module in it, by kind, each as `name version`.
pub(super) fn producers(component: &[u8]) -> BTreeMap<String, BTreeSet<String>> {
    let mut producers = BTreeMap::<String, BTreeSet<String>>::new();
    for payload in Parser::new(0).parse_all(component) {
        let Ok(Payload::CustomSection(section)) = payload else { continue };
        let KnownCustom::Producers(fields) = section.as_known() else { continue };
        for field in fields.into_iter().flatten() {
            let tools = field.values.into_iter().flatten();
            let tools = tools.map(|tool| format!("{} {}", tool.name, tool.version));
            producers.entry(field.name.to_owned()).or_default().extend(tools);
        }
    }
    producers
}

/// The compiler the component names, as `rustc --version` prints it.
pub(super) fn compiler(component: &[u8]) -> Option<String> {
    let producers = producers(component);
    producers.get("processed-by")?.iter().find(|tool| tool.starts_with("rustc ")).cloned()
}
