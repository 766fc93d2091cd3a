//! The worker on real servers: the library's, and `tollgate work` as its operators run it.

mod commands;
mod daemon;
mod kill;
mod library;
mod lost_receipt;
mod probes;
mod reconcile;
mod releases;
mod schemas;
mod start;
