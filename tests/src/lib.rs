//! Fixtures and private servers for the suites.

pub mod cli;
pub mod hostile;
