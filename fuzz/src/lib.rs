//! What the fuzz targets share.
//!
//! `properties` is also included by `tests/tests/fuzz_seeds.rs`, which holds the seeds to it
//! on every test run; it therefore uses nothing but `tollgate_policy` and std.

pub mod mutate;
pub mod properties;
