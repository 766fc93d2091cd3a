//! Runs plugin-supplied SQL on an isolated MySQL catalog.
//!
//! A policy decides, a host executes, a receipt proves it.

pub mod audit;
pub mod blame;
pub mod clock;
pub mod config;
pub mod control;
pub mod digest;
pub mod evidence;
pub mod executor;
pub mod fault_points;
pub mod ids;
pub mod jdbc;
pub mod ledger;
pub mod metrics;
pub mod outbox;
pub mod paging;
pub mod plan;
pub mod planted;
pub mod policy;
#[cfg(feature = "registry")]
pub mod registry;
pub mod session;
#[cfg(feature = "registry")]
pub mod signature;
pub mod spans;
pub mod target;
pub mod text;
#[cfg(feature = "web")]
pub mod web;
pub mod worker;
