//! The filter over a list, and the links between its pages: what was asked for, and what is wrong
//! with it.

use std::str::FromStr;

use super::frame::Prose;
use super::link::Link;
use crate::paging::Place;
use crate::text::visible;

/// Characters of what was written that a problem repeats.
const REPEATED_CHARS_MAX: usize = 64;

/// A filter as it was written.
#[derive(Debug)]
pub(super) struct Filter {
    /// The page that it filters.
    pub(super) action: &'static str,
    pub(super) fields: Vec<Field>,
    /// Something wrong that is no field's.
    pub(super) problem: Option<Prose>,
}

/// A part of a filter.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    /// As it was written.
    pub(super) value: String,
    /// What there is to choose from; none for a part that is written.
    pub(super) choices: Vec<Choice>,
    pub(super) problem: Option<Prose>,
}

/// A choice of a filter.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) word: &'static str,
    pub(super) label: &'static str,
    pub(super) is_chosen: bool,
}

/// The pages beside one.
#[derive(Debug)]
pub(super) struct Pager {
    pub(super) label: &'static str,
    pub(super) newest: Option<String>,
    pub(super) newer: Option<String>,
    pub(super) older: Option<String>,
}

impl Filter {
    /// Whether anything is filtered away.
    pub(super) fn is_set(&self) -> bool {
        self.fields.iter().any(|field| !field.value.is_empty())
    }

    /// Whether it cannot be read, so that nothing is listed.
    pub(super) fn is_wrong(&self) -> bool {
        self.problem.is_some() || self.fields.iter().any(|field| field.problem.is_some())
    }

    /// The list under this filter, from its youngest item on.
    pub(super) fn link(&self) -> Link {
        let parts = self.fields.iter().map(|field| (field.name, field.value.as_str()));
        parts.fold(Link::to(self.action), |link, (name, value)| link.with(name, value))
    }
}

impl Field {
    /// A part that is written; what it says, nothing when it is empty.
    pub(super) fn text<T: FromStr<Err: ToString>>(
        name: &'static str,
        label: &'static str,
        asked: Option<&str>,
    ) -> (Self, Result<Option<T>, ()>) {
        let said = parsed(asked);
        let field = Self {
            name,
            label,
            value: written(asked),
            choices: Vec::new(),
            problem: said.as_ref().err().map(|problem| Prose::of(problem)),
        };
        (field, said.map_err(drop))
    }

    /// A part that is chosen of these, each a value with its word and its label.
    pub(super) fn choice<T: Copy>(
        name: &'static str,
        label: &'static str,
        asked: Option<&str>,
        all: &[(T, &'static str, &'static str)],
    ) -> (Self, Result<Option<T>, ()>) {
        let written = written(asked);
        // The command line and the outbox write the same word in other letters.
        let found = all.iter().find(|(_, word, _)| word.eq_ignore_ascii_case(&written));
        let value = found.map_or(written, |(_, word, _)| (*word).to_owned());
        let said = match found {
            _ if value.is_empty() => Ok(None),
            Some((chosen, ..)) => Ok(Some(*chosen)),
            None => Err(()),
        };
        let choice = |(_, word, label): &(T, &'static str, &'static str)| {
            let is_chosen = found.is_some_and(|(_, chosen, _)| chosen == word);
            Choice { word, label, is_chosen }
        };
        let problem = said.is_err().then(|| {
            let start: String = value.chars().take(REPEATED_CHARS_MAX).collect();
            Prose::of(&format!("`{}` is none of these: choose one of the list", visible(&start)))
        });
        let choices = all.iter().map(choice).collect();
        (Self { name, label, value, choices, problem }, said)
    }
}

/// The place of the page that was asked for; what is wrong with it.
pub(super) fn place(before: Option<&str>, after: Option<&str>) -> Result<Place, String> {
    let number = |asked| {
        let wrong = "A page lies below or above a number: follow the links.";
        parsed::<u64>(asked).map_err(|_| wrong.to_owned())
    };
    match (number(before)?, number(after)?) {
        (None, None) => Ok(Place::Newest),
        (Some(before), None) => Ok(Place::Below(before)),
        (None, Some(after)) => Ok(Place::Above(after)),
        (Some(_), Some(_)) => {
            Err("A page lies below a number or above one, not both: follow the links.".to_owned())
        }
    }
}

/// The list at a place: `link` is to the youngest items.
pub(super) fn at(link: Link, place: Place) -> Link {
    match place {
        Place::Newest => link,
        Place::Below(number) => link.with("before", &number.to_string()),
        Place::Above(number) => link.with("after", &number.to_string()),
    }
}

impl Pager {
    /// The pages beside the one at a place; `link` is to the youngest items.
    pub(super) fn new(
        label: &'static str,
        link: &Link,
        place: Place,
        newer: Option<u64>,
        older: Option<u64>,
    ) -> Self {
        let beside = |place| at(link.clone(), place).to_string();
        Self {
            label,
            newest: (place != Place::Newest).then(|| link.to_string()),
            newer: newer.map(|number| beside(Place::Above(number))),
            older: older.map(|number| beside(Place::Below(number))),
        }
    }

    /// Whether there is any other page.
    pub(super) fn is_needed(&self) -> bool {
        self.newest.is_some() || self.newer.is_some() || self.older.is_some()
    }
}

/// What was asked for, as it was written.
fn written(asked: Option<&str>) -> String {
    asked.unwrap_or_default().trim().to_owned()
}

/// A part of what was asked for: nothing when it is empty.
pub(super) fn parsed<T: FromStr<Err: ToString>>(asked: Option<&str>) -> Result<Option<T>, String> {
    match asked.map(str::trim) {
        None | Some("") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|error: T::Err| visible(&error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &[(u8, &str, &str)] = &[(1, "one", "the first"), (2, "two", "the second")];

    #[test]
    fn what_was_written_is_kept_whatever_is_wrong_with_it() {
        let (field, said) = Field::choice("state", "State", Some(" two "), ALL);
        assert_eq!((said, field.value.as_str(), field.problem), (Ok(Some(2)), "two", None));
        assert_eq!(field.choices.iter().filter(|it| it.is_chosen).count(), 1);
        let (field, said) = Field::choice("state", "State", Some("TWO"), ALL);
        assert_eq!((said, field.value.as_str()), (Ok(Some(2)), "two"), "in any letters");
        let (field, said) = Field::choice("state", "State", Some("\u{202e}three"), ALL);
        assert_eq!((said, field.value.as_str()), (Err(()), "\u{202e}three"));
        assert_eq!(field.problem.unwrap().parts[0].text, "<U+202E>three");
        let (field, said) = Field::text::<u8>("size", "Size", Some("much"));
        assert!(said.is_err() && field.value == "much" && field.problem.is_some());
        let (_, said) = Field::text::<u8>("size", "Size", Some("  "));
        assert_eq!(said, Ok(None));
    }

    #[test]
    fn a_place_is_asked_for_by_one_number() {
        assert_eq!(place(None, Some("")), Ok(Place::Newest));
        assert_eq!(place(Some("7"), None), Ok(Place::Below(7)));
        assert_eq!(place(None, Some("7")), Ok(Place::Above(7)));
        for (before, after) in [(Some("7"), Some("6")), (Some("x"), None), (None, Some("-1"))] {
            assert!(place(before, after).is_err(), "{before:?} {after:?}");
        }
    }

    #[test]
    fn the_pages_beside_one_keep_its_filter() {
        let link = Link::to("/outbox").with("state", "PENDING");
        let pager = Pager::new("Pages", &link, Place::Below(9), Some(8), Some(4));
        assert_eq!(pager.newest.as_deref(), Some("/outbox?state=PENDING"));
        assert_eq!(pager.newer.as_deref(), Some("/outbox?state=PENDING&after=8"));
        assert_eq!(pager.older.as_deref(), Some("/outbox?state=PENDING&before=4"));
        assert!(!Pager::new("Pages", &link, Place::Newest, None, None).is_needed());
    }
}
