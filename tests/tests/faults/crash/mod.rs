//! 1 to 19: crashes and lost answers.

mod again;
mod claim;
mod ending;
mod run;
mod stage;
mod stop;
mod takeover;
