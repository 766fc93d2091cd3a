//! Fixtures and private servers for the suites.
//!
//! This is test code that happens to live in a library: it states what must hold and stops the test
//! that asked when it does not, so that a suite reads as claims and not as error plumbing.

pub mod chain;
pub mod cli;
pub mod corpus;
pub mod fidelity;
pub mod generate;
pub mod hostile;
pub mod ranks;
pub mod server;
pub mod source;
