//! `pins.toml` as a text that people keep: one pin is changed, everything else stays as it was
//! written, comments and order included.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use similar::{ChangeTag, TextDiff};
use tollgate::digest::Digest;
use tollgate::policy::{PINS_FILE, Pins, PolicyPin};
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, RawString, Table, Value};

use super::super::replace::replace;
use super::super::{Exit, Failure};

/// What stands in a new file, above the pins.
const NEW: &str = "\
# Which policy component decides for which executor code. A pin is changed by review, not by hand: the
# host refuses a component whose sha256 is not the one below.

format = 1
";

/// A store's pins as they are on disk.
pub(super) struct PinsFile {
    folder: PathBuf,
    text: String,
    pins: Pins,
}

/// A pin that is about to be set, and what the file becomes by it.
pub(super) struct Placed {
    /// The pin, with what it takes over from the one it replaces.
    pub(super) pin: PolicyPin,
    /// The pin it replaces.
    pub(super) previous: Option<PolicyPin>,
    before: String,
    after: String,
    path: PathBuf,
}

impl PinsFile {
    /// Reads a store's pins; a store that has none yet is an empty one.
    pub(super) fn read(folder: &Path) -> Result<Self, Failure> {
        let path = folder.join(PINS_FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => NEW.to_owned(),
            Err(error) => {
                return Err(Failure::usage(format!("`{}`: {error}", path.display())));
            }
        };
        let pins = Pins::parse(&text).map_err(|error| {
            Failure::usage(error).with_help(format!("mend `{}` first", path.display()))
        })?;
        Ok(Self { folder: folder.to_owned(), text, pins })
    }

    /// The pins.
    pub(super) const fn pins(&self) -> &Pins {
        &self.pins
    }

    /// Works out what the file becomes with this pin, which supersedes the one it replaces only when
    /// told so. A policy of another name takes a pin over in no other way.
    pub(super) fn place(self, mut pin: PolicyPin, supersede: bool) -> Result<Placed, Failure> {
        let previous = self.pins.find(&pin.executor).cloned();
        if let Some(previous) = &previous {
            succeed(previous, &mut pin, supersede)?;
        }
        let shared = self.pins.iter().find(|other| {
            other.file == pin.file && other.executor != pin.executor && other.sha256 != pin.sha256
        });
        if let Some(other) = shared {
            let message = format!(
                "`{}` is pinned to `{}` with other bytes: {}",
                pin.file, other.executor, other.sha256
            );
            return Err(Failure::new(Exit::PinMismatch, message)
                .with_help("a published version never changes: give the new bytes a new version"));
        }
        let path = self.folder.join(PINS_FILE);
        let after = with_line_ends_of(&self.text, &edited(&self.text, &pin, previous.as_ref())?);
        let mut expected = self.pins;
        expected.set(pin.clone());
        // What is written is what was meant, whatever form the file had.
        if Pins::parse(&after).is_ok_and(|found| found == expected) {
            return Ok(Placed { pin, previous, before: self.text, after, path });
        }
        Err(Failure::usage(format!("`{}` has a form that cannot be edited", path.display()))
            .with_help("write each pin as a `[[pin]]` table"))
    }
}

impl Placed {
    /// Whether the file is as it has to be.
    pub(super) fn changes_nothing(&self) -> bool {
        self.before == self.after && self.path.exists()
    }

    /// The digest that is superseded by this very change.
    pub(super) fn superseded_now(&self) -> Option<Digest> {
        let before = self.previous.as_ref()?.sha256;
        (before != self.pin.sha256 && self.pin.supersedes.contains(&before)).then_some(before)
    }

    /// The change as a unified diff.
    pub(super) fn diff(&self) -> String {
        let path = self.path.display().to_string();
        let before = if self.path.exists() { self.before.as_str() } else { "" };
        TextDiff::from_lines(before, &self.after)
            .unified_diff()
            .context_radius(3)
            .header(&path, &path)
            .to_string()
    }

    /// Writes the file, whole or not at all.
    pub(super) fn write(&self) -> io::Result<()> {
        replace(&self.path, self.after.as_bytes())
    }
}

/// What a pin takes over from the one it replaces.
fn succeed(previous: &PolicyPin, pin: &mut PolicyPin, supersede: bool) -> Result<(), Failure> {
    if previous.name != pin.name && !supersede {
        let message = format!(
            "`{}` is pinned to the policy `{}`, not to `{}`",
            pin.executor, previous.name, pin.name
        );
        return Err(Failure::usage(message).with_help(
            "name a store of its own with --store, or take over its steps with --supersede",
        ));
    }
    // What a component superseded, another one supersedes only when it says so.
    if supersede || previous.sha256 == pin.sha256 {
        pin.supersedes.clone_from(&previous.supersedes);
    }
    if supersede && !pin.supersedes.contains(&previous.sha256) {
        pin.supersedes.push(previous.sha256);
    }
    // Back to an earlier component: it needs no leave to go on with its own steps.
    pin.supersedes.retain(|digest| *digest != pin.sha256);
    Ok(())
}

/// The edited text with the line ends of the text before: what stays keeps its own, and what is new gets
/// the one that the first line has. An edited document knows no other than that of Unix.
fn with_line_ends_of(before: &str, after: &str) -> String {
    if !before.contains("\r\n") {
        return after.to_owned();
    }
    let is_of_windows = before.split('\n').next().is_some_and(|first| first.ends_with('\r'));
    let end = if is_of_windows { "\r\n" } else { "\n" };
    let lines: Vec<&str> = before.split_inclusive('\n').collect();
    let (old, new) = (before.replace("\r\n", "\n"), after.replace("\r\n", "\n"));
    let mut text = String::with_capacity(before.len() + after.len());
    for change in TextDiff::from_lines(&old, &new).iter_all_changes() {
        let kept = change.old_index().and_then(|line| lines.get(line));
        match (change.tag(), kept) {
            (ChangeTag::Delete, _) => {}
            (ChangeTag::Equal, Some(line)) => text.push_str(line),
            _ => text.push_str(&change.value().replace('\n', end)),
        }
    }
    text
}

/// The text with this pin in the place of the one its executor code has, or at the end.
fn edited(text: &str, pin: &PolicyPin, previous: Option<&PolicyPin>) -> Result<String, Failure> {
    let mut document: DocumentMut = text.parse().map_err(Failure::usage)?;
    let pins = document
        .entry("pin")
        .or_insert(Item::ArrayOfTables(ArrayOfTables::new()))
        .as_array_of_tables_mut()
        .ok_or_else(|| {
            Failure::usage("the pins are no `[[pin]]` tables")
                .with_help("write each pin as a `[[pin]]` table")
        })?;
    let executor = pin.executor.as_str();
    let present = pins
        .iter_mut()
        .find(|table| table.get("executor").and_then(Item::as_str) == Some(executor));
    match present {
        Some(table) => write_pin(table, pin, previous),
        None => {
            let mut table = Table::new();
            write_pin(&mut table, pin, None);
            pins.push(table);
        }
    }
    Ok(document.to_string())
}

fn write_pin(table: &mut Table, pin: &PolicyPin, previous: Option<&PolicyPin>) {
    let PolicyPin { executor, name, version, file, sha256, compiler, flags, supersedes } = pin;
    set(table, "executor", executor.as_str());
    set(table, "name", name);
    set(table, "version", &version.to_string());
    set(table, "file", file);
    // What was said beside a digest was said of those bytes.
    let digest = sha256.to_string();
    let is_other = table.get("sha256").is_some_and(|it| it.as_str() != Some(digest.as_str()));
    set(table, "sha256", &digest);
    if is_other && let Some(value) = table.get_mut("sha256").and_then(Item::as_value_mut) {
        value.decor_mut().set_suffix("");
    }
    set(table, "compiler", compiler);
    change_list(table, "flags", |list| {
        if list.iter().map(Value::as_str).ne(flags.iter().map(|flag| Some(flag.as_str()))) {
            *list = flags.iter().map(String::as_str).collect();
        }
    });
    change_list(table, "supersedes", |list| write_superseded(list, supersedes, previous));
}

/// Sets a string, and leaves it and what is beside it alone when it is that already.
fn set(table: &mut Table, key: &str, text: &str) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(value) if value.as_str() == Some(text) => {}
        Some(value) => {
            let decor = value.decor().clone();
            *value = text.into();
            *value.decor_mut() = decor;
        }
        None => {
            table.insert(key, toml_edit::value(text));
        }
    }
}

/// Changes the list of a key, which is made when there is none.
fn change_list(table: &mut Table, key: &str, change: impl FnOnce(&mut Array)) {
    // A key that is no list was refused when the pins were read.
    if let Some(list) = table.entry(key).or_insert(toml_edit::value(Array::new())).as_array_mut() {
        change(list);
    }
}

/// A superseded digest with the comments that belong to it.
struct Entry {
    digest: String,
    /// What stands before it, from the end of the line before.
    above: String,
    /// The comment behind it in its line.
    beside: String,
}

/// Brings the list of superseded digests to what is wanted: what stays keeps its comments, what goes takes
/// them along, and what is new says which policy it was.
fn write_superseded(list: &mut Array, wanted: &[Digest], previous: Option<&PolicyPin>) {
    let wanted: Vec<String> = wanted.iter().map(Digest::to_string).collect();
    if list.iter().map(Value::as_str).eq(wanted.iter().map(|digest| Some(digest.as_str()))) {
        return;
    }
    let (entries, rest) = entries_of(list);
    let mut kept: Vec<Entry> =
        entries.into_iter().filter(|entry| wanted.contains(&entry.digest)).collect();
    for digest in &wanted {
        if kept.iter().any(|entry| entry.digest == *digest) {
            continue;
        }
        let who = previous.filter(|previous| previous.sha256.to_string() == *digest);
        let beside = who.map(|it| format!(" # {} {}", it.name, it.version)).unwrap_or_default();
        kept.push(Entry { digest: digest.clone(), above: "\n    ".into(), beside });
    }
    *list = Array::new();
    let mut beside = String::new();
    for entry in kept {
        let mut value = Value::from(entry.digest);
        // A comment goes to the end of a line, so what follows begins a new one.
        let above = if beside.is_empty() || entry.above.starts_with('\n') {
            entry.above
        } else {
            format!("\n    {}", entry.above.trim_start())
        };
        value.decor_mut().set_prefix(format!("{beside}{above}"));
        value.decor_mut().set_suffix("");
        list.push_formatted(value);
        beside = entry.beside;
    }
    if !list.is_empty() {
        list.set_trailing_comma(true);
        let rest = if rest.starts_with('\n') { rest } else { "\n".to_owned() };
        list.set_trailing(format!("{beside}{rest}"));
    }
}

/// The elements of a list, each with its own comments, and what stands between the last one's line and the
/// bracket.
fn entries_of(list: &Array) -> (Vec<Entry>, String) {
    let mut entries = Vec::<Entry>::new();
    let text =
        |raw: Option<&RawString>| raw.and_then(RawString::as_str).unwrap_or_default().to_owned();
    // What stands between two elements belongs to the first as far as its line goes.
    let split = |between: &str| match between.split_once('\n') {
        Some((beside, above)) => (beside.trim_end().to_owned(), format!("\n{above}")),
        None => (String::new(), between.to_owned()),
    };
    // Before a comma or behind it: a comment there is about the same element.
    let mut behind = String::new();
    for value in list {
        let (beside, above) = split(&(behind + &text(value.decor().prefix())));
        // The first element has none before it whose comment this could be.
        let above = match entries.last_mut() {
            Some(before) => {
                before.beside = beside;
                above
            }
            None => format!("{beside}{above}"),
        };
        behind = text(value.decor().suffix());
        let digest = value.as_str().unwrap_or_default().to_owned();
        entries.push(Entry { digest, above, beside: String::new() });
    }
    let (beside, rest) = split(&(behind + &text(Some(list.trailing()))));
    if let Some(last) = entries.last_mut() {
        last.beside = beside;
    }
    (entries, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEPT: &str = "\
# Reviewed by two people.
format = 1 # the only one there is

[[pin]]
version = \"1.0.0\" # as published
executor = \"sql-jdbc:v1\"
name = \"p\"
file = \"p-1.0.0.wasm\"
sha256 = \"OLD\"   # two people looked at it
compiler = \"rustc 1.95.0\"

# Another one, not to be touched.
[[pin]]
executor = \"sql-jdbc:v2\"
name = 'q'
version = \"2.0.0\"
file = \"q-2.0.0.wasm\"
sha256 = \"OTHER\"
compiler = \"rustc 1.95.0\"
flags = [ \"-Ca\",
  \"-Cb\" ]
";

    fn kept() -> String {
        KEPT.replace("OLD", &Digest::of("old").to_string())
            .replace("OTHER", &Digest::of("other").to_string())
    }

    fn file(text: &str) -> PinsFile {
        let pins = Pins::parse(text).unwrap();
        PinsFile { folder: "store".into(), text: text.to_owned(), pins }
    }

    fn pin(content: &str, version: &str) -> PolicyPin {
        let mut pin = file(&kept()).pins.iter().next().unwrap().clone();
        pin.sha256 = Digest::of(content);
        pin.version = version.parse().unwrap();
        pin.file = format!("p-{version}.wasm");
        pin
    }

    /// The lines of `after` that are not in `before`.
    fn added<'a>(before: &str, after: &'a str) -> Vec<&'a str> {
        after.lines().filter(|line| !before.lines().any(|known| known == *line)).collect()
    }

    #[test]
    fn one_pin_changes_and_everything_else_stays() {
        let (before, new) = (kept(), Digest::of("new"));
        let placed = file(&before).place(pin("new", "1.1.0"), true).ok().unwrap();
        // Nobody said that of these bytes.
        let sha256 = format!("sha256 = \"{new}\"");
        let superseded = format!("    \"{}\", # p 1.0.0", Digest::of("old"));
        assert_eq!(
            added(&before, &placed.after),
            [
                "version = \"1.1.0\" # as published",
                "file = \"p-1.1.0.wasm\"",
                &sha256,
                "flags = []",
                "supersedes = [",
                &superseded,
                "]",
            ]
        );
        let rest = |text: &str| text[text.find("# Another one").unwrap()..].to_owned();
        assert_eq!(rest(&placed.after), rest(&before));

        // A third version keeps what the second one superseded, with its comment.
        let third = file(&placed.after).place(pin("newer", "1.2.0"), true).ok().unwrap();
        let lines = added(&placed.after, &third.after);
        let also = format!("    \"{new}\", # p 1.1.0");
        assert!(lines.contains(&also.as_str()), "{}", third.after);
        assert!(third.after.contains(&superseded), "{}", third.after);
        assert_eq!(third.superseded_now(), Some(new));

        // Back to the first: what came in between is superseded, its own digest is not.
        let back = file(&third.after).place(pin("old", "1.0.0"), true).ok().unwrap();
        assert_eq!(back.pin.supersedes, [new, Digest::of("newer")]);
        // Each with its own comment, and the one that went took its along.
        let newer = Digest::of("newer");
        let list =
            format!("supersedes = [\n    \"{new}\", # p 1.1.0\n    \"{newer}\", # p 1.2.0\n]\n");
        assert!(back.after.contains(&list), "{}", back.after);
        assert!(!back.after.contains("# p 1.0.0"), "{}", back.after);
    }

    #[test]
    fn line_ends_stay_what_they_were() {
        let before = kept().replace('\n', "\r\n");
        let placed = file(&before).place(pin("new", "1.1.0"), true).ok().unwrap();
        assert_eq!(placed.after.matches('\n').count(), placed.after.matches("\r\n").count());
        let unix = file(&kept()).place(pin("new", "1.1.0"), true).ok().unwrap();
        assert_eq!(placed.after.replace("\r\n", "\n"), unix.after);
        // A file of both kinds keeps each where it is.
        let mixed = kept().replacen('\n', "\r\n", 1);
        let placed = file(&mixed).place(pin("new", "1.1.0"), true).ok().unwrap();
        let rest = |text: &str| text[text.find("# Another one").unwrap()..].to_owned();
        assert_eq!(rest(&placed.after), rest(&mixed));
        let again = file(&placed.after).place(pin("new", "1.1.0"), true).ok().unwrap();
        assert_eq!(again.after, placed.after);
    }

    #[test]
    fn comments_in_a_list_go_with_what_they_are_about() {
        let (one, two) = (Digest::of("1"), Digest::of("2"));
        let list = format!(
            "[\n  # the first\n  \"{one}\", # one\n  # the second\n  \"{two}\" # two\n  # the end\n]"
        );
        let mut list = list.parse::<Value>().unwrap();
        write_superseded(list.as_array_mut().unwrap(), &[two], None);
        let text = list.to_string();
        assert!(!text.contains("# one") && !text.contains("# the first"), "{text}");
        assert!(
            text.contains("# the second\n") && text.contains("# two\n  # the end\n]"),
            "{text}"
        );
        let mut list = format!("[\"{one}\", \"{two}\"]").parse::<Value>().unwrap();
        write_superseded(list.as_array_mut().unwrap(), &[two], None);
        assert_eq!(list.as_array().unwrap().iter().count(), 1);
    }

    #[test]
    fn nothing_is_superseded_that_is_not_said_to_be() {
        let placed = file(&kept()).place(pin("new", "1.1.0"), true).ok().unwrap();
        let silent = file(&placed.after).place(pin("newer", "1.2.0"), false).ok().unwrap();
        assert_eq!(silent.pin.supersedes, []);
        assert!(silent.after.contains("supersedes = []"), "{}", silent.after);
        let mut other = pin("new", "1.1.0");
        other.name = "other".into();
        assert!(file(&kept()).place(other, false).is_err());
    }

    #[test]
    fn the_same_pin_again_is_no_change() {
        let placed = file(&kept()).place(pin("new", "1.1.0"), true).ok().unwrap();
        let again = file(&placed.after).place(pin("new", "1.1.0"), true).ok().unwrap();
        assert_eq!(again.after, placed.after);
    }

    #[test]
    fn a_code_without_a_pin_is_put_at_the_end() {
        let mut third = pin("third", "3.0.0");
        third.executor = "sql-jdbc:v3".parse().unwrap();
        let placed = file(&kept()).place(third.clone(), false).ok().unwrap();
        let rest = placed.after.strip_prefix(&kept()).unwrap();
        assert!(rest.starts_with("\n[[pin]]\nexecutor = \"sql-jdbc:v3\"\n"), "{rest}");
        let empty = file(NEW).place(third, false).ok().unwrap();
        assert_eq!(empty.after.strip_prefix(NEW).unwrap(), rest);
    }

    #[test]
    fn bytes_of_one_name_are_the_same_for_every_code() {
        let mut other = pin("other bytes", "2.0.0");
        other.file = "q-2.0.0.wasm".into();
        assert!(file(&kept()).place(other, true).is_err());
    }

    #[test]
    fn what_is_no_table_of_pins_is_left_alone() {
        let sha256 = Digest::of("x");
        let text = format!(
            "format = 1\npin = [{{ executor = \"sql-jdbc:v1\", name = \"p\", version = \"1.0.0\", \
             file = \"p-1.0.0.wasm\", sha256 = \"{sha256}\", compiler = \"c\" }}]\n"
        );
        assert!(file(&text).place(pin("new", "1.1.0"), true).is_err());
    }
}
