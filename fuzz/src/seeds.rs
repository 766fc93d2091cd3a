//! Chooses the seeds from tests/corpus/decisions.jsonl and writes them to fuzz/seeds.
//!
//! A payload becomes a seed when it has a pair of neighbouring lexemes that no seed before it has:
//! few files, and every form of the corpus among them.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::Path;

use tollgate_fuzz::properties::{Mark, lex};

/// New pairs that are worth a file.
const NOVELTY_MIN: usize = 3;

/// Words of a file's name that say what the payload is for.
const WORDS_MAX: usize = 6;

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let seeds = root.join("seeds");
    if seeds.exists() {
        fs::remove_dir_all(&seeds)?;
    }
    fs::create_dir(&seeds)?;
    let corpus = fs::read_to_string(root.join("../tests/corpus/decisions.jsonl"))?;
    let mut seen = BTreeSet::new();
    let mut written = 0;
    for line in corpus.lines() {
        let case: serde_json::Value = serde_json::from_str(line)?;
        let field = |name: &str| case[name].as_str().unwrap_or_default();
        let sql = field("sql");
        let new: Vec<_> = shape(sql).into_iter().filter(|pair| !seen.contains(pair)).collect();
        if new.len() < NOVELTY_MIN {
            continue;
        }
        seen.extend(new);
        let name = format!("{}-{}.sql", field("id"), slug(field("why")));
        fs::write(seeds.join(name), sql)?;
        written += 1;
    }
    println!("{written} seeds of {} payloads", corpus.lines().count());
    Ok(())
}

/// The pairs of neighbouring lexemes, where names, numbers and texts are what they are, not what
/// they say.
fn shape(sql: &str) -> BTreeSet<(String, String)> {
    let lexemes: Vec<String> = lex(sql)
        .iter()
        .map(|lexeme| match lexeme.mark {
            Mark::Word | Mark::Symbol | Mark::Stray => lexeme.text.to_ascii_uppercase(),
            mark => format!("{mark:?}"),
        })
        .collect();
    lexemes.windows(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
}

fn slug(why: &str) -> String {
    let words = why.split(|character: char| !character.is_ascii_alphanumeric());
    let words = words.filter(|word| !word.is_empty()).take(WORDS_MAX).map(str::to_ascii_lowercase);
    words.collect::<Vec<_>>().join("-")
}
