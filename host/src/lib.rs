//! Runs plugin-supplied SQL on an isolated MySQL catalog.
//!
//! A policy decides, a host executes, a receipt proves it.

pub mod clock;
pub mod digest;
pub mod ids;
pub mod ledger;
pub mod plan;
pub mod target;
