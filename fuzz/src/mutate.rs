//! Changes payloads by what SQL is made of.
//!
//! Bytes flipped at random rarely leave anything that parses. Half of the mutations are libFuzzer's
//! own, which also use the dictionary; the other half move, repeat, replace and wrap lexemes, so that
//! most of what they make is still close to SQL.

use std::sync::LazyLock;

use crate::properties::lex;

/// Edits of one mutation, at most.
const EDITS_MAX: usize = 4;

/// Lexemes that are moved or repeated at once, at most.
const RUN_MAX: usize = 12;

/// The tokens of fuzz/dictionary.
static DICTIONARY: LazyLock<Vec<String>> =
    LazyLock::new(|| dictionary(include_str!("../dictionary")));

/// A mutator as libFuzzer calls it: changes the first `size` bytes of `data` in place and returns
/// how many there are then. The same seed makes the same change.
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut dice = Dice(u64::from(seed) << 1 | 1);
    let payload = std::str::from_utf8(&data[..size]);
    match payload {
        Ok(payload) if dice.below(2) == 0 => {
            let edited = edit(payload, &mut dice);
            let length = edited.len().min(max_size).min(data.len());
            data[..length].copy_from_slice(&edited.as_bytes()[..length]);
            length
        }
        _ => libfuzzer_sys::fuzzer_mutate(data, size, max_size),
    }
}

fn edit(payload: &str, dice: &mut Dice) -> String {
    let mut texts: Vec<&str> = lex(payload).iter().map(|lexeme| lexeme.text).collect();
    for _ in 0..=dice.below(EDITS_MAX) {
        one_edit(&mut texts, dice);
    }
    join(&texts, dice)
}

fn one_edit(texts: &mut Vec<&str>, dice: &mut Dice) {
    let token: &'static str = DICTIONARY.get(dice.below(DICTIONARY.len())).map_or("", |t| t);
    let at = dice.below(texts.len());
    let end = (at + 1 + dice.below(RUN_MAX)).min(texts.len());
    let to = dice.below(texts.len());
    match dice.below(7) {
        0 if at < end => texts[at] = token,
        1 if at < end => drop(texts.drain(at..end)),
        2 => {
            let run = texts[at..end].to_vec();
            texts.splice(to..to, run);
        }
        3 if at < end => texts.swap(at, to),
        4 if at < end => {
            texts.insert(end, ")");
            texts.insert(at, "(");
            if dice.below(2) == 0 {
                texts.insert(at, token);
            }
        }
        5 if at < end => {
            let run: Vec<&str> = texts.drain(at..end).collect();
            let to = to.min(texts.len());
            texts.splice(to..to, run);
        }
        _ => texts.insert(at, token),
    }
}

/// Lexemes with a space between them, now and then without or with another separator.
fn join(texts: &[&str], dice: &mut Dice) -> String {
    let mut joined = String::new();
    for text in texts {
        joined.push_str(text);
        joined.push_str(match dice.below(32) {
            0..=2 => "",
            3 => "\n",
            4 => "/**/",
            _ => " ",
        });
    }
    joined
}

/// The tokens of a dictionary in libFuzzer's format: one in double quotes on each line. Bytes that are
/// written as `\x…` are left to libFuzzer.
fn dictionary(source: &str) -> Vec<String> {
    let token = |line: &str| {
        let quoted = line.strip_prefix('"')?.strip_suffix('"').filter(|it| !it.contains("\\x"))?;
        Some(quoted.replace("\\\"", "\"").replace("\\\\", "\\"))
    };
    source.lines().filter_map(token).collect()
}

/// Xorshift: all that is asked of it is that the same seed gives the same run.
struct Dice(u64);

impl Dice {
    /// A number below a bound; 0 when that is 0.
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let high = usize::try_from(self.0 >> 33).unwrap_or_default();
        high.checked_rem(bound).unwrap_or_default()
    }
}
