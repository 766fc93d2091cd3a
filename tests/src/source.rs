//! The product's Rust sources as tokens, for tests of its architecture.
//!
//! Comments are not tokens, so what documentation links to is not seen; what a macro is given is.
//! Code under `#[cfg(test)]` is left out.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// One source file.
#[derive(Debug)]
pub struct Source {
    /// Relative to the crate's `src`.
    pub path: PathBuf,
    /// The module the file is, from the crate's root; empty for `lib.rs` and `main.rs`.
    pub module: Vec<String>,
    /// The file without comments and without what is compiled for tests alone.
    pub tokens: TokenStream,
}

/// A place in a source file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Relative to the crate's `src`.
    pub path: PathBuf,
    /// From 1.
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.path.display(), self.line)
    }
}

/// A path that starts at the crate's root, as `use` trees spell it out: `crate::a::{b, c::d}` is
/// two of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CratePath {
    /// Where it is written.
    pub place: Place,
    /// What follows the crate's root; `*` for a glob, empty for the root itself.
    pub segments: Vec<String>,
}

/// The repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests is a folder of it").to_path_buf()
}

/// The sources below a crate's `src`, in path order.
pub fn sources(src: &Path) -> Vec<Source> {
    let mut files = Vec::new();
    collect(src, &mut files);
    files.sort();
    files
        .into_iter()
        .filter_map(|file| {
            let text = fs::read_to_string(&file).unwrap();
            Source::parse(file.strip_prefix(src).unwrap(), &text)
        })
        .collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", folder.display()));
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Every string literal, at any depth.
fn collect_texts(tokens: TokenStream, found: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => collect_texts(group.stream(), found),
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                let text = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
                found.extend(text.map(str::to_owned));
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}

impl Source {
    /// Reads a file at `path` below `src`; nothing when it is compiled for tests alone.
    pub fn parse(path: &Path, text: &str) -> Option<Self> {
        let mut module: Vec<String> = path
            .with_extension("")
            .components()
            .map(|part| part.as_os_str().to_string_lossy().into_owned())
            .collect();
        if module.iter().any(|name| name == "tests") {
            return None;
        }
        if matches!(module.last().map(String::as_str), Some("mod" | "lib" | "main")) {
            module.pop();
        }
        let tokens = TokenStream::from_str(text)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
        Some(Self { path: path.to_path_buf(), module, tokens: without_tests(tokens) })
    }

    /// The texts that are written in the bodies of the functions of this name.
    pub fn texts_in(&self, function: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut todo = vec![trees(&self.tokens)];
        while let Some(level) = todo.pop() {
            for (at, window) in level.windows(2).enumerate() {
                if is(&window[0], "fn") && is(&window[1], function) {
                    let body = level[at..].iter().find_map(|tree| match tree {
                        TokenTree::Group(it) if it.delimiter() == Delimiter::Brace => Some(it),
                        _ => None,
                    });
                    collect_texts(body.expect("a function has a body").stream(), &mut found);
                }
            }
            todo.extend(level.iter().filter_map(|tree| match tree {
                TokenTree::Group(group) => Some(trees(&group.stream())),
                _ => None,
            }));
        }
        found
    }

    /// The module at the crate's root that the file belongs to; nothing for the root itself.
    pub fn top(&self) -> Option<&str> {
        self.module.first().map(String::as_str)
    }

    /// Every path that starts at the crate's root, whether it says `crate::` or climbs there with
    /// `super::`.
    pub fn crate_paths(&self) -> Vec<CratePath> {
        let mut found = Vec::new();
        find_paths(self, &self.module, &trees(&self.tokens), &mut found);
        found
    }

    /// The places where `sequence` is written, such as `["Conn", ":", ":", "new"]`.
    pub fn places_of(&self, sequence: &[&str]) -> Vec<Place> {
        self.places_where(sequence.len(), |_, window| {
            window.iter().zip(sequence).all(|(tree, text)| is(tree, text))
        })
    }

    /// The places where `accepts` holds for the token before, if there is one in the same group,
    /// and so many tokens in a row, at any depth.
    pub fn places_where(
        &self,
        count: usize,
        accepts: impl Fn(Option<&TokenTree>, &[TokenTree]) -> bool,
    ) -> Vec<Place> {
        let mut found = Vec::new();
        let mut todo = vec![trees(&self.tokens)];
        while let Some(level) = todo.pop() {
            for (at, window) in level.windows(count).enumerate() {
                if accepts(at.checked_sub(1).map(|before| &level[before]), window) {
                    found.push(self.place(&window[0]));
                }
            }
            todo.extend(level.iter().filter_map(|tree| match tree {
                TokenTree::Group(group) => Some(trees(&group.stream())),
                _ => None,
            }));
        }
        found.sort();
        found
    }

    fn place(&self, tree: &TokenTree) -> Place {
        Place { path: self.path.clone(), line: tree.span().start().line }
    }
}

/// Whether a token is this identifier or punctuation.
pub fn is(tree: &TokenTree, text: &str) -> bool {
    match tree {
        TokenTree::Ident(ident) => ident == text,
        TokenTree::Punct(punct) => text.len() == 1 && text.starts_with(punct.as_char()),
        TokenTree::Group(_) | TokenTree::Literal(_) => false,
    }
}

/// Whether a token is a group in braces.
pub fn is_braced(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}

fn trees(tokens: &TokenStream) -> Vec<TokenTree> {
    tokens.clone().into_iter().collect()
}

/// Drops each item that follows `#[cfg(test)]`, up to its body or semicolon, at any depth.
fn without_tests(tokens: TokenStream) -> TokenStream {
    let mut kept = Vec::new();
    let mut trees = tokens.into_iter().peekable();
    while let Some(tree) = trees.next() {
        let is_test = is(&tree, "#") && trees.peek().is_some_and(is_cfg_test);
        if is_test {
            trees.next();
            for skipped in trees.by_ref() {
                if is_braced(&skipped) || is(&skipped, ";") {
                    break;
                }
            }
            continue;
        }
        kept.push(match tree {
            TokenTree::Group(group) => {
                let mut inner =
                    proc_macro2::Group::new(group.delimiter(), without_tests(group.stream()));
                inner.set_span(group.span());
                TokenTree::Group(inner)
            }
            other => other,
        });
    }
    kept.into_iter().collect()
}

fn is_cfg_test(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Group(group) if group.to_string().replace(' ', "") == "[cfg(test)]")
}

fn find_paths(source: &Source, module: &[String], level: &[TokenTree], found: &mut Vec<CratePath>) {
    let mut at = 0;
    while at < level.len() {
        if is(&level[at], "crate") && is_separator(level, at + 1) {
            at = expand(source, &[], level, at + 3, found);
        } else if is(&level[at], "super") && is_separator(level, at + 1) {
            at = expand(source, parent(module), level, at + 3, found);
        } else if let (true, Some(TokenTree::Ident(name)), Some(TokenTree::Group(body))) =
            (is(&level[at], "mod"), level.get(at + 1), level.get(at + 2))
        {
            let inner: Vec<String> = module.iter().cloned().chain([name.to_string()]).collect();
            find_paths(source, &inner, &trees(&body.stream()), found);
            at += 3;
        } else {
            if let TokenTree::Group(group) = &level[at] {
                find_paths(source, module, &trees(&group.stream()), found);
            }
            at += 1;
        }
    }
}

fn parent(module: &[String]) -> &[String] {
    module.split_last().map_or(&[], |(_, parent)| parent)
}

fn is_separator(level: &[TokenTree], at: usize) -> bool {
    [at, at + 1].iter().all(|at| level.get(*at).is_some_and(|tree| is(tree, ":")))
}

/// Follows a path or `use` tree from `at`, where `base` is what it is relative to, and returns
/// where it ends.
fn expand(
    source: &Source,
    base: &[String],
    level: &[TokenTree],
    mut at: usize,
    found: &mut Vec<CratePath>,
) -> usize {
    let mut segments = base.to_vec();
    while let Some(tree) = level.get(at) {
        let name = match tree {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                for branch in trees(&group.stream()).split(|tree| is(tree, ",")) {
                    if !branch.is_empty() {
                        expand(source, &segments, branch, 0, found);
                    }
                }
                return at + 1;
            }
            TokenTree::Ident(ident) => ident.to_string(),
            TokenTree::Punct(punct) if punct.as_char() == '*' => "*".to_owned(),
            _ => break,
        };
        match name.as_str() {
            "super" => segments = parent(&segments).to_vec(),
            "self" => {}
            _ => segments.push(name),
        }
        if !is_separator(level, at + 1) {
            found.push(CratePath { place: source.place(tree), segments });
            return at + 1;
        }
        at += 3;
    }
    at
}
