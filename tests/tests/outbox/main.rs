//! The control outbox on real servers, as several workers at once use it.

mod claim;
mod compensate;
mod cost;
mod fixture;
mod record;
mod submit;
