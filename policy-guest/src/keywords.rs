//! Which keyword a word is.
//!
//! sqlparser halves its whole list for every word, which costs a tenth of a decision. Most words are
//! names, so a table by hash tells at once that a word is no keyword; the words themselves stay the
//! parser's.

use sqlparser::keywords::{ALL_KEYWORDS, ALL_KEYWORDS_INDEX, Keyword};
use sqlparser::tokenizer::{Token, Word};

/// Slots of the table: several times the number of keywords, so that most words meet an empty one.
const SLOT_COUNT: usize = 4096;

/// A slot that no keyword is in.
const EMPTY: u16 = u16::MAX;

/// For each slot the number of a keyword in [`ALL_KEYWORDS`]; one whose slot is taken is in the next
/// that is free.
static SLOTS: [u16; SLOT_COUNT] = slots();

/// FNV-1a of a word in capitals, as a slot. It decides on speed alone.
const fn slot(word: &[u8]) -> usize {
    let mut hash: u32 = 0x811c_9dc5;
    let mut rest = word;
    while let [byte, behind @ ..] = rest {
        hash = (hash ^ byte.to_ascii_uppercase() as u32).wrapping_mul(0x0100_0193);
        rest = behind;
    }
    (hash ^ (hash >> 16)) as usize % SLOT_COUNT
}

#[expect(clippy::indexing_slicing, reason = "the compiler runs it, and checks it")]
#[expect(clippy::cast_possible_truncation, reason = "there are fewer keywords than slots")]
const fn slots() -> [u16; SLOT_COUNT] {
    let mut slots = [EMPTY; SLOT_COUNT];
    let mut number = 0;
    while number < ALL_KEYWORDS.len() {
        let mut at = slot(ALL_KEYWORDS[number].as_bytes());
        while slots[at] != EMPTY {
            at = (at + 1) % SLOT_COUNT;
        }
        slots[at] = number as u16;
        number += 1;
    }
    slots
}

/// The token of an unquoted word, as sqlparser's own `Token::make_word` makes it.
pub(crate) fn word_token(word: &str) -> Token {
    let keyword = keyword(word).unwrap_or(Keyword::NoKeyword);
    Token::Word(Word { value: word.to_owned(), quote_style: None, keyword })
}

fn keyword(word: &str) -> Option<Keyword> {
    let mut at = slot(word.as_bytes());
    loop {
        let number = usize::from(*SLOTS.get(at).filter(|&&number| number != EMPTY)?);
        if ALL_KEYWORDS.get(number)?.eq_ignore_ascii_case(word) {
            return ALL_KEYWORDS_INDEX.get(number).copied();
        }
        at = (at + 1) % SLOT_COUNT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_as_the_parser_tells_them() {
        let near = |keyword: &&str| {
            let shorter = keyword.get(..keyword.len() - 1).unwrap_or_default().to_owned();
            [keyword.to_string(), keyword.to_ascii_lowercase(), format!("{keyword}_"), shorter]
        };
        let others = ["", "_", "a", "zz", "customer_name", "größe", "ä", "$", "1st", "[", "{"];
        for word in ALL_KEYWORDS.iter().flat_map(near).chain(others.map(str::to_owned)) {
            assert_eq!(word_token(&word), Token::make_word(&word, None), "{word}");
        }
    }

    /// Otherwise a word that is none could look for its slot for long.
    #[test]
    fn keywords_are_near_their_slots() {
        let farthest = ALL_KEYWORDS.iter().enumerate().map(|(number, word)| {
            let at = SLOTS.iter().position(|&found| usize::from(found) == number).unwrap();
            (at + SLOT_COUNT - slot(word.as_bytes())) % SLOT_COUNT
        });
        assert!(farthest.max().unwrap() < 16);
    }
}
