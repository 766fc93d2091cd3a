//! Evidence bundles: what is exported holds, and whatever is altered is found.

mod altered;
mod bundles;
mod receipts;
mod vectors;
