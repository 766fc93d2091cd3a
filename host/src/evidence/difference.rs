//! What is not as it was recorded, and where.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::digest::Digest;
use crate::text::visible_line;

/// What a difference is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DifferenceKind {
    /// A digest is not that of what it names.
    Digest,
    /// Something else was found than is recorded.
    Content,
    /// The bundle is not in the form of its version.
    Form,
    /// The policy in the bundle gave no decision, or could not be asked.
    NoDecision,
}

/// Something that is not as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What it is about.
    pub kind: DifferenceKind,
    /// Member, and where in it.
    pub place: String,
    /// What is recorded.
    pub recorded: String,
    /// What was found instead.
    pub found: String,
}

impl Difference {
    pub(super) fn new(
        kind: DifferenceKind,
        place: impl Into<String>,
        recorded: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self { kind, place: place.into(), recorded: recorded.into(), found: found.into() }
    }

    /// A digest that is recorded in one place and is not that of what it names.
    pub(super) fn of_digests(
        place: impl Into<String>,
        recorded: Option<Digest>,
        found: Digest,
    ) -> Option<Self> {
        let differs = recorded != Some(found);
        let words = recorded.map_or_else(|| "none".to_owned(), |digest| digest.to_string());
        differs.then(|| Self::new(DifferenceKind::Digest, place, words, found.to_string()))
    }

    /// Two things that have to be the same.
    pub(super) fn of_values(
        place: impl Into<String>,
        recorded: &(impl fmt::Display + ?Sized),
        found: &(impl fmt::Display + ?Sized),
    ) -> Option<Self> {
        let (recorded, found) = (recorded.to_string(), found.to_string());
        (recorded != found).then(|| Self::new(DifferenceKind::Content, place, recorded, found))
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One line, whatever the bundle says: each of the three may quote it.
        let [place, recorded, found] =
            [&self.place, &self.recorded, &self.found].map(|it| visible_line(it));
        write!(f, "{place}: recorded is {recorded}, found is {found}")
    }
}

/// The first place where two texts differ.
pub(super) fn first_difference(one: &[u8], other: &[u8]) -> Option<usize> {
    let shorter = one.len().min(other.len());
    one.iter()
        .zip(other)
        .position(|(one, other)| one != other)
        .or((one.len() != other.len()).then_some(shorter))
}

/// Bytes of a member that have to be the same.
pub(super) fn bytes(name: &str, recorded: &[u8], found: &[u8]) -> Option<Difference> {
    let offset = first_difference(recorded, found)?;
    let shown = |bytes: &[u8]| {
        let length = bytes.len();
        match bytes.get(offset) {
            Some(byte) => format!("{byte:#04x} of {length} bytes"),
            None => format!("an end after {length} bytes"),
        }
    };
    let place = format!("{name}, byte {offset}");
    Some(Difference::new(DifferenceKind::Content, place, shown(recorded), shown(found)))
}

/// Characters of a value that are shown, at most: it may be a whole payload.
const SHOWN_CHARACTERS: usize = 120;

/// Every value that differs between two documents, by its JSON pointer (RFC 6901). Of lists of different
/// length, what both have, and the lengths.
pub(super) fn documents(name: &str, recorded: &Value, found: &Value) -> Vec<Difference> {
    let mut differences = Vec::new();
    walk(name, &mut String::new(), Some(recorded), Some(found), &mut differences);
    differences
}

fn walk(
    name: &str,
    pointer: &mut String,
    recorded: Option<&Value>,
    found: Option<&Value>,
    differences: &mut Vec<Difference>,
) {
    let length = pointer.len();
    match (recorded, found) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let keys = one.keys().chain(other.keys().filter(|key| !one.contains_key(*key)));
            for key in keys {
                pointer.push('/');
                pointer.push_str(key);
                walk(name, pointer, one.get(key), other.get(key), differences);
                pointer.truncate(length);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                pointer.push('/');
                pointer.push_str(&index.to_string());
                walk(name, pointer, Some(one), Some(other), differences);
                pointer.truncate(length);
            }
            // As one: a list that someone made long is no reason to say so a million times.
            let counted = |list: &[Value]| format!("{} items", list.len());
            let place = format!("{name} {pointer}");
            differences.extend(Difference::of_values(place, &counted(one), &counted(other)));
        }
        (recorded, found) if recorded != found => differences.push(Difference::new(
            DifferenceKind::Content,
            format!("{name} {pointer}"),
            shown(recorded),
            shown(found),
        )),
        _ => {}
    }
}

fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else { return "nothing".to_owned() };
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_value_that_differs_is_named_by_its_pointer() {
        let recorded = json!({ "a": 1, "b": [1, { "c": "x" }], "gone": true });
        let found = json!({ "a": 1, "b": [2, { "c": "y" }, 3], "new": null });
        let places: Vec<String> =
            documents("d.json", &recorded, &found).into_iter().map(|it| it.place).collect();
        assert_eq!(
            places,
            ["d.json /b/0", "d.json /b/1/c", "d.json /b", "d.json /gone", "d.json /new"]
        );
        assert!(documents("d.json", &recorded, &recorded).is_empty());
    }

    #[test]
    fn bytes_are_told_apart_at_the_first_that_differs() {
        assert_eq!(bytes("x", b"abc", b"abc"), None);
        let told = bytes("x", b"abc", b"abd").unwrap().to_string();
        assert_eq!(told, "x, byte 2: recorded is 0x63 of 3 bytes, found is 0x64 of 3 bytes");
        let told = bytes("x", b"abc", b"ab").unwrap().to_string();
        assert_eq!(told, "x, byte 2: recorded is 0x63 of 3 bytes, found is an end after 2 bytes");
    }

    #[test]
    fn what_is_recorded_cannot_add_lines() {
        let forged =
            Difference::of_values("x", "1\n  again     decided by cranelift", "1").unwrap();
        assert_eq!(forged.to_string().lines().count(), 1);
    }

    #[test]
    fn a_long_value_is_cut_when_it_is_shown() {
        let told = documents("d", &json!("é".repeat(500)), &json!(1));
        assert!(told[0].recorded.chars().count() < 130);
    }
}
