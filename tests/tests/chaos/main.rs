//! Faults at random, from one seed that is printed: `script/chaos` says how to run this for long.

mod one_step;
mod seed;
mod steady;
mod storm;
