//! Tollgate on a Galera cluster whose nodes are all written to: control and target at once.
//!
//! Runs when `TOLLGATE_SERVERS` lists `galera`.

mod causal;
mod claims;
mod commit;
mod majority;
mod nodes;
mod outbox;
mod workers;
