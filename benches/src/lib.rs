//! What the benches measure and how: payloads, the policy on both sides of the sandbox's wall, and one
//! table of all figures as ratios of one run.
//!
//! `script/bench` runs them all. Like the suites this is code that stops when something does not hold.

pub mod database;
pub mod figures;
pub mod peers;
pub mod shapes;

use std::path::Path;

use tollgate::ids::{Catalog, ExecutorCode};
use tollgate::policy::{
    CompileCache, DecisionRequest, PROTECTED_TABLES, Policy, PolicyRuntime, PolicyStore,
    RuntimeOptions,
};

/// The catalog every payload is decided for.
const CATALOG: &str = "plugin_preview";

/// The published policy, loaded in a runtime with this cache.
///
/// # Panics
///
/// When it cannot be loaded.
pub fn policy(cache: CompileCache) -> Policy {
    let store = PolicyStore::embedded().unwrap();
    let pin = store.pin(&ExecutorCode::sql_jdbc_v1()).unwrap();
    let runtime = PolicyRuntime::new(RuntimeOptions { cache, ..RuntimeOptions::default() });
    runtime.unwrap().load(pin, &store.component(pin).unwrap()).unwrap()
}

/// Where the benches keep compiled components, given Cargo's folder for what they leave.
pub fn compiled(folder: &str) -> CompileCache {
    CompileCache::Directory(Path::new(folder).join("compiled"))
}

/// The catalog every payload is decided for.
///
/// # Panics
///
/// Never: the name is one.
pub fn catalog() -> Catalog {
    CATALOG.parse().unwrap()
}

/// The question a component is asked.
pub fn request<'a>(payload: &'a [u8], catalog: &'a Catalog) -> DecisionRequest<'a> {
    DecisionRequest { payload, catalog, protected_tables: PROTECTED_TABLES }
}

/// The same question for the policy's library.
pub fn native_request(sql: &str) -> tollgate_policy::Request<'_> {
    tollgate_policy::Request {
        payload: sql.as_bytes(),
        catalog: CATALOG,
        protected_tables: PROTECTED_TABLES,
    }
}
