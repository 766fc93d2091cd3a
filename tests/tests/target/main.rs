//! What the target module promises, on real servers.

mod alias;
mod fixture;
mod grants;
mod isolation;
mod live_sessions;
mod rights;
mod secrets;
mod session;
mod tls;
