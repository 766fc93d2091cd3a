//! 1 to 19: crashes and lost answers.
