//! 1 to 19: crashes and lost answers.

mod again;
mod claim;
mod ending;
mod run;
mod stop;
mod takeover;
