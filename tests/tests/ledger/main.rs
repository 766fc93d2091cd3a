//! The receipt ledger on real servers.

mod claim;
mod counterpart;
mod ending;
mod lost_answers;
mod reading;
mod shape;
mod takeover;
