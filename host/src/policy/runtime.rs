//! Loading and asking policy components.
//!
//! A narrow wrapper around wasmtime: bytes go in with the pin they must match, decisions come out.
//! It opens no file but the compile cache, and knows nothing of where policies come from.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wasmtime::Engine;
use wasmtime::component::{Component, Linker};

use crate::digest::Digest;
use crate::ids::Catalog;
use crate::metrics::metrics;

use super::answer::{self, Asked};
use super::bindings::{self, GATE, GATE_FUNCTIONS, PolicyPre};
use super::cache::{self, CompileCache};
use super::compiled::Compiled;
use super::decision::Decision;
use super::description::Description;
use super::engine::{self, Allocation, Backend};
use super::error::{LoadError, NoDecision, RuntimeError};
use super::instance::{self, Bounds, Consumption};
use super::pins::PolicyPin;
use super::slots::Slots;
use super::store;
use super::structure;
use super::wire::{self, Subject};

/// The host's own tables in every target catalog: no payload may name them. They are part of the
/// decision digest, so a check and an execution have to ask with the same ones.
pub const PROTECTED_TABLES: &[&str] = &["factory_plugin_target_receipt"];

/// What may differ between two machines without changing an answer.
#[derive(Debug, Clone)]
pub struct RuntimeOptions {
    /// Where compiled components are kept.
    pub cache: CompileCache,
    /// Decisions that may run at once; more wait their turn. By default one per core.
    pub concurrent_decisions_max: NonZeroU32,
    /// How long one call may take. An infrastructure guard, well above the seconds the fuel lasts
    /// even on a machine that is busy with something else: 60 s by default.
    pub call_deadline: Duration,
    /// What executes a policy's code; by default the processor.
    pub backend: Backend,
    /// How instances get their memory; by default whatever the machine can do.
    pub allocation: Option<Allocation>,
}

impl Default for RuntimeOptions {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let cores = u32::try_from(cores).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN);
        Self {
            cache: CompileCache::default(),
            concurrent_decisions_max: cores,
            call_deadline: Duration::from_mins(1),
            backend: Backend::default(),
            allocation: None,
        }
    }
}

/// Runs policy components. Cheap to clone.
#[derive(Clone)]
pub struct PolicyRuntime {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Engine,
    allocation: Allocation,
    compiled: Option<Compiled>,
    slots: Slots,
    call_deadline: Duration,
}

/// How often compiled components came from the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheUse {
    /// Components that were read.
    pub hits: usize,
    /// Components that had to be compiled.
    pub misses: usize,
}

impl PolicyRuntime {
    /// Sets the sandbox up.
    ///
    /// # Errors
    ///
    /// [`RuntimeError`] when this machine cannot run it, pooled or not.
    pub fn new(options: RuntimeOptions) -> Result<Self, RuntimeError> {
        let RuntimeOptions {
            cache,
            concurrent_decisions_max: slots,
            call_deadline,
            backend,
            allocation,
        } = options;
        let compiled = cache::open(&cache);
        let (engine, allocation) =
            engine::build(slots, backend, allocation).map_err(RuntimeError::Engine)?;
        let slots = Slots::new(slots);
        let inner = Inner { engine, allocation, compiled, slots, call_deadline };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// How instances get their memory.
    pub fn allocation(&self) -> Allocation {
        self.inner.allocation
    }

    /// What the compile cache did so far; `None` when there is none.
    pub fn cache_use(&self) -> Option<CacheUse> {
        let (hits, misses) = self.inner.compiled.as_ref()?.uses();
        Some(CacheUse { hits, misses })
    }

    /// Loads a policy: the bytes' digest against the pin before anything else, then that it is a
    /// component of bounded size without imports that exports the gate, and only then is it compiled;
    /// then that it is who the pin says.
    ///
    /// # Errors
    ///
    /// [`LoadError`], naming the first of these that does not hold.
    pub fn load(&self, pin: &PolicyPin, bytes: &[u8]) -> Result<Policy, LoadError> {
        let found = Digest::of(bytes);
        if found != pin.sha256 {
            return Err(LoadError::DigestMismatch { expected: pin.sha256, found });
        }
        let loaded = self.load_component(bytes, found)?;
        let Description { name, version, executor_codes, .. } = &loaded.description;
        if *name != pin.name || *version != pin.version {
            return Err(LoadError::OtherPolicy {
                expected: format!("{} {}", pin.name, pin.version),
                found: format!("{name} {version}"),
            });
        }
        if !executor_codes.contains(&pin.executor) {
            return Err(LoadError::OtherExecutor(pin.executor.clone()));
        }
        Ok(self.policy(pin.clone(), loaded))
    }

    /// Loads a component that no pin names, for looking at it and for trying it out: its own
    /// description becomes the pin.
    ///
    /// # Errors
    ///
    /// [`LoadError`] as for [`PolicyRuntime::load`].
    pub fn load_unpinned(&self, bytes: &[u8]) -> Result<Policy, LoadError> {
        let digest = Digest::of(bytes);
        let loaded = self.load_component(bytes, digest)?;
        let pin = PolicyPin::describing(&loaded.description, digest)
            .ok_or(LoadError::Describe(NoDecision::Malformed { what: "no executor code" }))?;
        Ok(self.policy(pin, loaded))
    }

    fn policy(&self, pin: PolicyPin, loaded: Loaded) -> Policy {
        let Loaded { pre, description, exports } = loaded;
        let runtime = self.clone();
        Policy { inner: Arc::new(PolicyInner { runtime, pre, pin, description, exports }) }
    }

    /// The one place where a component is compiled. What it consists of is looked at first, whether or
    /// not it was compiled before: an answer does not depend on the cache. Of what is built in, a test
    /// knows it.
    fn load_component(&self, bytes: &[u8], digest: Digest) -> Result<Loaded, LoadError> {
        let engine = &self.inner.engine;
        if !store::is_built_in(digest) {
            structure::check(bytes)?;
        }
        let component = match &self.inner.compiled {
            Some(compiled) => compiled.load(engine, bytes, digest),
            None => Component::from_binary(engine, bytes),
        };
        let component = component.map_err(LoadError::NotAComponent)?;
        let exports = check_interface(engine, &component)?;
        // The linker stays empty: there is nothing a policy could be given.
        let pre = Linker::new(engine).instantiate_pre(&component).map_err(LoadError::Contract)?;
        let pre = PolicyPre::new(pre).map_err(LoadError::Contract)?;
        let description = self
            .call(&pre, async |guest, store| guest.call_describe(store).await)
            .and_then(|(description, _)| answer::description(description))
            .map_err(LoadError::Describe)?;
        Ok(Loaded { pre, description, exports })
    }

    fn call<R>(
        &self,
        pre: &PolicyPre<Bounds>,
        call: impl AsyncFnOnce(
            &bindings::gate::Guest,
            &mut wasmtime::Store<Bounds>,
        ) -> wasmtime::Result<R>,
    ) -> Result<(R, Consumption), NoDecision> {
        let Inner { engine, slots, call_deadline, .. } = &*self.inner;
        let _slot = slots.take();
        instance::call(engine, pre, *call_deadline, call)
    }
}

impl fmt::Debug for PolicyRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyRuntime")
            .field("allocation", &self.inner.allocation)
            .field("call_deadline", &self.inner.call_deadline)
            .finish_non_exhaustive()
    }
}

struct Loaded {
    pre: PolicyPre<Bounds>,
    description: Description,
    exports: Vec<String>,
}

/// No imports, and the gate with its functions among the exports. Returns the exports' names.
fn check_interface(engine: &Engine, component: &Component) -> Result<Vec<String>, LoadError> {
    use wasmtime::component::types::ComponentItem;

    let interface = component.component_type();
    let imports: Vec<String> = interface.imports(engine).map(|(name, _)| name.to_owned()).collect();
    if !imports.is_empty() {
        return Err(LoadError::Imports(imports));
    }
    let exports: Vec<String> = interface.exports(engine).map(|(name, _)| name.to_owned()).collect();
    let missing = match interface.get_export(engine, GATE).map(|export| export.ty) {
        Some(ComponentItem::ComponentInstance(gate)) => GATE_FUNCTIONS
            .iter()
            .filter(|function| gate.get_export(engine, function).is_none())
            .map(|function| format!("{GATE}#{function}"))
            .collect(),
        _ => vec![GATE.to_owned()],
    };
    if missing.is_empty() { Ok(exports) } else { Err(LoadError::MissingExports(missing)) }
}

/// What a policy is asked.
#[derive(Debug, Clone, Copy)]
pub struct DecisionRequest<'a> {
    /// The payload's bytes exactly as delivered; that they are UTF-8 is for the policy to find.
    pub payload: &'a [u8],
    /// The one catalog whose tables the payload may name.
    pub catalog: &'a Catalog,
    /// Tables of that catalog that belong to the host.
    pub protected_tables: &'a [&'a str],
}

/// A loaded policy. Cheap to clone, usable from any thread.
#[derive(Clone)]
pub struct Policy {
    inner: Arc<PolicyInner>,
}

struct PolicyInner {
    runtime: PolicyRuntime,
    pre: PolicyPre<Bounds>,
    pin: PolicyPin,
    description: Description,
    exports: Vec<String>,
}

impl Policy {
    /// The pin it was loaded with.
    pub fn pin(&self) -> &PolicyPin {
        &self.inner.pin
    }

    /// What it says about itself.
    pub fn description(&self) -> &Description {
        &self.inner.description
    }

    /// The names the component exports. It imports nothing, or it would not have loaded.
    pub fn exports(&self) -> &[String] {
        &self.inner.exports
    }

    /// Decides on one payload, in a fresh instance.
    ///
    /// Blocks for as long as the policy computes (microseconds to a second) and, when all slots are
    /// taken, until one is free: call it from a thread that may block.
    ///
    /// # Errors
    ///
    /// [`NoDecision`] when the policy trapped, ran out of a budget or gave an answer that breaks
    /// its contract.
    pub fn decide(&self, request: &DecisionRequest<'_>) -> Result<Decision, NoDecision> {
        let begun = Instant::now();
        let decided = self.decide_uncounted(request);
        let (outcome, code) = match &decided {
            Ok(decision) => decision.outcome().counted(),
            Err(error) => ("error", error.kind()),
        };
        metrics().decision(outcome, code, begun.elapsed());
        decided
    }

    fn decide_uncounted(&self, request: &DecisionRequest<'_>) -> Result<Decision, NoDecision> {
        let &DecisionRequest { payload, catalog, protected_tables } = request;
        let PolicyInner { runtime, pre, pin, description, .. } = &*self.inner;
        if u32::try_from(payload.len()).is_err() {
            return Err(NoDecision::PayloadSize { bytes: payload.len() });
        }
        let asked =
            bindings::gate::Request { payload, catalog: catalog.as_str(), protected_tables };
        let (answer, consumed) =
            runtime.call(pre, async |guest, store| guest.call_decide(store, asked).await)?;
        let asked = Asked::new(payload, catalog.as_str(), protected_tables);
        let outcome = answer::outcome(answer, &asked)?;
        let payload_digest = Digest::of(payload);
        let subject = Subject {
            component: pin.sha256,
            payload: payload_digest,
            catalog: catalog.as_str(),
            protected_tables,
        };
        let digest = wire::decision_digest(&subject, &outcome)
            .ok_or(NoDecision::Malformed { what: "it cannot be encoded" })?;
        Ok(Decision {
            outcome,
            catalog: catalog.clone(),
            session: description.session.clone(),
            digest,
            policy_digest: pin.sha256,
            payload_digest,
            consumed,
        })
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy").field("pin", &self.inner.pin).finish_non_exhaustive()
    }
}
