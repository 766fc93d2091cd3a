//! `tollgate policy publish` and `pull` with a real registry, as their users run them.

mod fixture;
mod hostile;
mod network;
mod passwords;
mod places;
mod signatures;
