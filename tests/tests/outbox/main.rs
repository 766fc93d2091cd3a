//! The control outbox on real servers, as several workers at once use it.

mod claim;
mod compensate;
mod cost;
mod environment;
mod fixture;
mod keys;
mod record;
mod session;
mod shape;
mod submit;
