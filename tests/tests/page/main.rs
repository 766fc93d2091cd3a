//! The status page, asked as browsers and monitors ask it.

mod answers;
mod bounds;
mod browser;
mod listing;
mod metrics;
mod read_only;
mod secrets;
