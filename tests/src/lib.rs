//! Fixtures and private servers for the suites.
//!
//! This is test code that happens to live in a library: it states what must hold and stops the test
//! that asked when it does not, so that a suite reads as claims and not as error plumbing.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::print_stderr,
    reason = "what fails here fails the test that asked, with the reason in its output"
)]

pub mod server;
