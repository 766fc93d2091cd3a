//! Payloads as they are written: piece after piece, with what stands where.

use std::ops::Range;

use super::Choices;

/// What a place in a payload is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// A whole statement.
    Statement,
    /// The name of a table, qualified or not.
    Table,
    /// The name of a column that is read.
    Column,
    /// An expression.
    Value,
    /// The name of a function that is called.
    Function,
}

/// A place in a payload: which pieces fill it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// What it is for.
    pub slot: Slot,
    /// Its pieces.
    pub pieces: Range<usize>,
}

#[derive(Debug, Clone)]
struct Piece {
    /// What stands between it and the piece before.
    gap: &'static str,
    text: String,
}

/// A payload that knows its places.
#[derive(Debug, Clone, Default)]
pub struct Script {
    pieces: Vec<Piece>,
    places: Vec<Place>,
}

impl Script {
    /// The payload's text.
    pub fn text(&self) -> String {
        self.pieces.iter().flat_map(|piece| [piece.gap, piece.text.as_str()]).collect()
    }

    /// Its places, inner ones first.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// How many pieces there are.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Is nothing written?
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The text with something else at a place.
    pub fn with_place(&self, place: &Place, text: &str) -> String {
        let mut script = self.clone();
        let gap = script.pieces[place.pieces.start].gap;
        let gap = if gap.is_empty() { " " } else { gap };
        script.pieces.splice(place.pieces.clone(), [Piece { gap, text: text.to_owned() }]);
        if let Some(next) = script.pieces.get_mut(place.pieces.start + 1)
            && next.gap.is_empty()
            && next.text != "("
        {
            next.gap = " ";
        }
        script.text()
    }

    /// The text with something more before a piece, or at its end.
    pub fn with_insertion(&self, before: usize, text: &str) -> String {
        let mut script = self.clone();
        script.pieces.insert(before, Piece { gap: " ", text: text.to_owned() });
        if let Some(next) = script.pieces.get_mut(before + 1)
            && next.gap.is_empty()
        {
            next.gap = " ";
        }
        script.text()
    }
}

/// What may stand between two pieces. None of it changes what a payload says.
const GAPS: &[&str] =
    &[" ", " ", " ", " ", " ", "\n", "\t ", "\r\n", " /* it's \"a\"; */ ", " -- b;'\n", " #`c\n"];

/// Writes a payload.
#[derive(Debug)]
pub struct Writer<'a> {
    /// What decides.
    pub choices: Choices<'a>,
    script: Script,
    depth: usize,
    no_gap: bool,
}

impl<'a> Writer<'a> {
    /// A writer with nothing written.
    pub fn new(choices: Choices<'a>) -> Self {
        Self { choices, script: Script::default(), depth: 0, no_gap: true }
    }

    /// What was written.
    pub fn finish(self) -> Script {
        self.script
    }

    /// A piece as it is.
    pub fn token(&mut self, text: impl Into<String>) {
        let text = text.into();
        let touching = matches!(text.as_str(), ")" | "," | ";");
        let gap = if std::mem::take(&mut self.no_gap) || (touching && !self.choices.once_in(4)) {
            ""
        } else {
            self.choices.of_list(GAPS)
        };
        if text == "(" {
            self.no_gap = !self.choices.once_in(4);
        }
        self.script.pieces.push(Piece { gap, text });
    }

    /// A piece that touches the one before.
    pub fn glued(&mut self, text: impl Into<String>) {
        self.no_gap = true;
        self.token(text);
    }

    /// Key words, in upper, lower or mixed case.
    pub fn words(&mut self, words: &str) {
        for word in words.split(' ') {
            let word = match self.choices.below(6) {
                0..=3 => word.to_owned(),
                4 => word.to_ascii_lowercase(),
                _ => mixed(word),
            };
            self.token(word);
        }
    }

    /// Key words of which one is chosen.
    pub fn words_of(&mut self, list: &[&str]) {
        let words = self.choices.of_list(list);
        if !words.is_empty() {
            self.words(words);
        }
    }

    /// A number in a text, such as a length.
    pub fn number(&mut self, number: usize) {
        self.token(number.to_string());
    }

    /// Something at a place.
    pub fn place(&mut self, slot: Slot, write: impl FnOnce(&mut Self)) {
        let start = self.script.pieces.len();
        write(self);
        let pieces = start..self.script.pieces.len();
        self.script.places.push(Place { slot, pieces });
    }

    /// Something in parentheses.
    pub fn parens(&mut self, write: impl FnOnce(&mut Self)) {
        self.token("(");
        write(self);
        self.no_gap = false;
        self.token(")");
    }

    /// The arguments of a call, whose parenthesis touches the name.
    pub fn arguments(&mut self, write: impl FnOnce(&mut Self)) {
        self.no_gap = true;
        self.parens(write);
    }

    /// The same several times, with commas between.
    pub fn list(&mut self, count: usize, mut write: impl FnMut(&mut Self)) {
        for index in 0..count {
            if index > 0 {
                self.token(",");
            }
            write(self);
        }
    }

    /// Something one level deeper, unless that is too deep: then the simple form.
    pub fn deeper(&mut self, write: impl FnOnce(&mut Self), simple: impl FnOnce(&mut Self)) {
        const DEPTH_MAX: usize = 6;
        if self.depth == DEPTH_MAX {
            return simple(self);
        }
        self.depth += 1;
        write(self);
        self.depth -= 1;
    }
}

fn mixed(word: &str) -> String {
    let flip = |(index, letter): (usize, char)| {
        if index % 2 == 0 { letter.to_ascii_lowercase() } else { letter }
    };
    word.chars().enumerate().map(flip).collect()
}
