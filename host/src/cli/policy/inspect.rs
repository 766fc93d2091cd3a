//! `tollgate policy inspect`

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use tollgate::digest::Digest;
use tollgate::ids::ExecutorCode;
use tollgate::policy::{
    Description, GUEST_FUEL_MAX, GUEST_MEMORY_BYTES_MAX, GUEST_STACK_BYTES_MAX,
    GUEST_TABLE_ELEMENTS_MAX,
};

use super::super::sandbox::{
    FilePin, LoadedPolicy, RuntimeArguments, StoreArguments, load_file, refused,
};
use super::super::{Exit, Failure, Global, Run, output};
use super::Format;
use super::about::{self, Memory, PAGE_BYTES};

/// Show what a policy component is: digest, exports, imports (none), memory, limits and session
///
/// Everything is taken from the component itself, after the checks the host makes before it lets a
/// component decide. A component with an import is refused, naming the import.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate policy inspect
  tollgate policy inspect policies/mysql-repeatable-subset-1.0.0.wasm
  tollgate policy inspect --executor sql-jdbc:v1 --format json")]
pub(super) struct Inspect {
    /// Component to look at, instead of a pinned one
    #[arg(value_name = "FILE", conflicts_with = "executor")]
    file: Option<PathBuf>,
    /// Executor code whose pinned policy to look at
    #[arg(long, value_name = "CODE", default_value = "sql-jdbc:v1")]
    executor: ExecutorCode,
    #[command(flatten)]
    store: StoreArguments,
    #[command(flatten)]
    runtime: RuntimeArguments,
    /// How to print it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Inspection {
    digest: Digest,
    #[serde(flatten)]
    description: Description,
    /// Executor codes of the store that are pinned to exactly this component.
    pinned_to: Vec<ExecutorCode>,
    exports: Vec<String>,
    imports: Vec<String>,
    bytes: usize,
    memories: Vec<Memory>,
    sandbox: Sandbox,
    producers: BTreeMap<String, BTreeSet<String>>,
}

/// What the host lets any policy use.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "bounds are named `…_max`, in JSON too")]
struct Sandbox {
    memory_bytes_max: usize,
    stack_bytes_max: usize,
    table_elements_max: usize,
    fuel_max: u64,
}

impl Run for Inspect {
    fn run(self, _global: &Global) -> Result<Exit, Failure> {
        let store = self.store.open()?;
        let runtime = self.runtime.start()?;
        let (bytes, policy) = if let Some(path) = &self.file {
            let LoadedPolicy { policy, component } =
                load_file(&runtime, &store, path, FilePin::Own)?;
            (component, policy)
        } else {
            let pin = store.pin(&self.executor)?;
            let bytes = store.component(pin)?;
            let policy = runtime.load(pin, &bytes).map_err(refused(&pin.file))?;
            (bytes, policy)
        };
        let digest = policy.pin().sha256;
        let pins = store.pins().iter().filter(|pin| pin.sha256 == digest);
        let inspection = Inspection {
            digest,
            description: policy.description().clone(),
            pinned_to: pins.map(|pin| pin.executor.clone()).collect(),
            exports: policy.exports().to_vec(),
            // It loaded.
            imports: Vec::new(),
            bytes: bytes.len(),
            memories: about::memories(&bytes),
            sandbox: Sandbox {
                memory_bytes_max: GUEST_MEMORY_BYTES_MAX,
                stack_bytes_max: GUEST_STACK_BYTES_MAX,
                table_elements_max: GUEST_TABLE_ELEMENTS_MAX,
                fuel_max: GUEST_FUEL_MAX,
            },
            producers: about::producers(&bytes),
        };
        output::print(&match self.format {
            Format::Human => human(&inspection),
            Format::Json => output::json_line(&inspection),
        })?;
        Ok(Exit::Done)
    }
}

fn human(inspection: &Inspection) -> String {
    let Inspection { description, sandbox, .. } = inspection;
    let Description { name, version, session, limits, .. } = description;
    let codes = |codes: &[ExecutorCode]| match codes {
        [] => "none".to_owned(),
        codes => codes.iter().map(ExecutorCode::as_str).collect::<Vec<_>>().join(", "),
    };
    let mut text = String::new();
    let mut row = |title: &str, value: &dyn std::fmt::Display| {
        let _ = writeln!(text, "{title:<14}{value}");
    };
    row("policy", &format_args!("{name} {version}"));
    row("digest", &inspection.digest);
    row("written for", &codes(&description.executor_codes));
    row("pinned to", &codes(&inspection.pinned_to));
    row("exports", &inspection.exports.join(", "));
    row("imports", &"none");
    row("size", &format_args!("{} bytes", inspection.bytes));
    for memory in &inspection.memories {
        row("memory", &pages(*memory));
    }
    row("sql_mode", &session.sql_mode.join(","));
    row("character set", &session.character_set);
    row("time zone", &session.time_zone);
    row(
        "payload",
        &format_args!(
            "at most {} bytes, {} statements, {} tokens",
            limits.payload_bytes_max, limits.statement_count_max, limits.token_count_max
        ),
    );
    row(
        "statement",
        &format_args!(
            "at most {} operators, {} unions or joins, nested {} deep",
            limits.operator_count_max, limits.join_count_max, limits.nesting_max
        ),
    );
    row(
        "sandbox",
        &format_args!(
            "at most {} MiB of memory, {} KiB of stack, {} units of fuel",
            sandbox.memory_bytes_max >> 20,
            sandbox.stack_bytes_max >> 10,
            sandbox.fuel_max
        ),
    );
    for (kind, tools) in &inspection.producers {
        row(kind, &tools.iter().map(String::as_str).collect::<Vec<_>>().join(", "));
    }
    text
}

/// The bounds of a memory, in pages and in what people count in.
fn pages(memory: Memory) -> String {
    let mib = |pages: u64| pages.saturating_mul(PAGE_BYTES).div_ceil(1 << 20);
    let Memory { pages_min: min, pages_max } = memory;
    let max = match pages_max {
        Some(max) => format!("at most {max} ({} MiB)", mib(max)),
        None => "no bound of its own: the sandbox's".to_owned(),
    };
    format!("{min} pages ({} MiB) at first, {max}", mib(min))
}
