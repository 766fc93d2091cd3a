//! Why there is no runtime, no policy, or no decision.

use std::time::Duration;

use crate::blame::Blame;
use crate::digest::Digest;
use crate::ids::ExecutorCode;

/// The component runtime could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// Neither pooled nor on demand does this machine run WebAssembly.
    #[error("the machine cannot run the policy sandbox")]
    Engine(#[source] wasmtime::Error),
}

impl RuntimeError {
    /// Who can put it right.
    pub const fn blame(&self) -> Blame {
        Blame::Operator
    }

    /// What to do.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::Engine(_) => "raise the process's limits on address space and mappings",
        }
    }
}

/// A component was refused before it could decide anything.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The bytes are not the pinned ones; nothing else was looked at.
    #[error("the component's digest is {found}, the pin says {expected}")]
    DigestMismatch {
        /// What the pin says.
        expected: Digest,
        /// What the bytes have.
        found: Digest,
    },
    /// It has more of something than a component may have, so nothing of it was compiled.
    #[error("the component has {found} {what}, at most {max} are accepted")]
    Bound {
        /// What is counted.
        what: &'static str,
        /// How many there are, as far as they were counted.
        found: u64,
        /// The bound.
        max: u64,
    },
    /// The bytes are no component the determinism profile accepts.
    #[error("the file is not a component this host runs")]
    NotAComponent(#[source] wasmtime::Error),
    /// A policy has nothing to call.
    #[error("the component imports {}; a policy imports nothing", names(.0))]
    Imports(Vec<String>),
    /// The component is not a policy.
    #[error("the component does not export {}", names(.0))]
    MissingExports(Vec<String>),
    /// The exports have other types than wit/policy.wit.
    #[error("the component's exports do not follow `tollgate:policy@1.0.0`")]
    Contract(#[source] wasmtime::Error),
    /// It cannot say what it is.
    #[error("the policy cannot describe itself")]
    Describe(#[source] NoDecision),
    /// It says it is something else than the pin says.
    #[error("the policy calls itself `{found}`, the pin says `{expected}`")]
    OtherPolicy {
        /// Name and version of the pin.
        expected: String,
        /// Name and version the component describes.
        found: String,
    },
    /// It was not written for the executor it is pinned to.
    #[error("the policy is not written for the executor `{0}`")]
    OtherExecutor(ExecutorCode),
}

impl LoadError {
    /// Whether the pin and the component disagree, rather than the component being unfit.
    pub const fn is_pin_mismatch(&self) -> bool {
        matches!(
            self,
            Self::DigestMismatch { .. } | Self::OtherPolicy { .. } | Self::OtherExecutor(_)
        )
    }

    /// Who can put it right.
    pub const fn blame(&self) -> Blame {
        match self {
            Self::DigestMismatch { .. } | Self::OtherPolicy { .. } | Self::OtherExecutor(_) => {
                Blame::Operator
            }
            _ => Blame::Policy,
        }
    }

    /// What to do.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::DigestMismatch { .. } => {
                "restore the file that was published, or pin the digest of this one after review"
            }
            Self::Bound { .. } => {
                "have the policy's author make it smaller, in more and shorter functions; if it came from \
                 elsewhere, do not trust it"
            }
            Self::NotAComponent(_) => {
                "encode the core module with `tollgate policy build`, without SIMD, threads or GC"
            }
            Self::Imports(_) => {
                "build it for `wasm32-unknown-unknown`; other targets import their standard library"
            }
            Self::MissingExports(_) | Self::Contract(_) => {
                "export `tollgate:policy/gate@1.0.0` as wit/policy.wit has it"
            }
            Self::Describe(_) => "have the policy's author look at `describe`",
            Self::OtherPolicy { .. } | Self::OtherExecutor(_) => {
                "correct the pin in pins.toml; `tollgate policy inspect FILE` shows what the file is"
            }
        }
    }
}

/// There is no decision: neither an allow nor a denial by rule, and never recorded as one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoDecision {
    /// The guest trapped: a panic, a stack overflow, an access out of bounds.
    #[error("the policy stopped on a trap: {reason}")]
    Trap {
        /// What the sandbox says about it.
        reason: String,
    },
    /// The deterministic budget is used up.
    #[error("the policy used up its budget of {fuel_max} units of fuel")]
    Fuel {
        /// The budget.
        fuel_max: u64,
    },
    /// The guest wanted more memory or table space than it may have.
    #[error("the policy asked for more than its {allowed} {unit}")]
    Memory {
        /// The bound.
        allowed: usize,
        /// What is counted.
        unit: &'static str,
    },
    /// It took longer than a call may. Unlike the others this depends on the machine.
    #[error("the policy did not answer within {} ms", deadline.as_millis())]
    Deadline {
        /// How long it had.
        deadline: Duration,
    },
    /// The answer contradicts itself or the request.
    #[error("the policy's answer breaks its contract: {what}")]
    Malformed {
        /// Which clause.
        what: &'static str,
    },
    /// The payload is larger than any policy can address.
    #[error("the payload has {bytes} bytes, more than the sandbox can take")]
    PayloadSize {
        /// Its size in bytes.
        bytes: usize,
    },
    /// The machine failed, not the policy.
    #[error("the machine could not run the policy")]
    Host(#[source] wasmtime::Error),
}

impl NoDecision {
    /// The kind as it is written in JSON: stable, kebab-case.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Trap { .. } => "trap",
            Self::Fuel { .. } => "fuel",
            Self::Memory { .. } => "memory",
            Self::Deadline { .. } => "deadline",
            Self::Malformed { .. } => "malformed",
            Self::PayloadSize { .. } => "payload-size",
            Self::Host(_) => "host",
        }
    }

    /// Whether asking again may give a decision. The other kinds are as deterministic as a decision.
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Deadline { .. } | Self::Host(_))
    }

    /// Who can put it right.
    pub const fn blame(&self) -> Blame {
        if self.is_retryable() { Blame::Operator } else { Blame::Policy }
    }

    /// What to do.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::Deadline { .. } => "try again on a machine that is less busy",
            Self::Host(_) => "try again with more free memory",
            Self::PayloadSize { .. } => "split the payload",
            Self::Trap { .. }
            | Self::Fuel { .. }
            | Self::Memory { .. }
            | Self::Malformed { .. } => {
                "the payload is not denied by a rule; show it to the policy's author"
            }
        }
    }
}

fn names(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
