//! Fixtures and private servers for the suites.
//!
//! This is test code that happens to live in a library: it states what must hold and stops the test
//! that asked when it does not, so that a suite reads as claims and not as error plumbing.

pub mod asked;
pub mod authority;
pub mod bombs;
pub mod chain;
pub mod claims;
pub mod cli;
pub mod collector;
pub mod corpus;
pub mod desk;
pub mod exported;
pub mod fidelity;
pub mod gate;
pub mod generate;
pub mod guide;
pub mod history;
pub mod hostile;
pub mod hostile_registry;
pub mod hung;
pub mod installation;
pub mod matrix;
pub mod native;
pub mod oci;
pub mod page;
pub mod peak;
pub mod place;
pub mod process;
pub mod proxy;
pub mod ranks;
pub mod schema;
pub mod second_policy;
pub mod server;
pub mod source;
pub mod staged;
pub mod ustar;
pub mod wire;
pub mod workload;
