//! The failure scenarios, each on every kind of server: `fault_<number>_<claim>::<server>`.
//!
//! A module holds one section of the list, in its order. Every test stages the fault, asserts that
//! it happened, and then asserts the outcome; without the fault it fails. `script/faults` prints
//! scenario by server.

mod crash;
mod identity;
mod integrity;
mod isolation;
mod lease;
mod relay;
mod scene;
mod server;
