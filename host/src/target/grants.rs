//! What an account may do beyond the catalog, read from `SHOW GRANTS` and from what it sees.

use std::collections::BTreeSet;
use std::fmt;

use super::tokens::{Token, tokens};

/// What a grant reaches.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum GrantReach {
    /// Every catalog, or the server itself.
    Server,
    /// Another catalog.
    Catalog(String),
    /// The control catalog: the one that must never be reached.
    ControlCatalog,
    /// Every catalog a pattern matches.
    Pattern(String),
    /// Another account, by `PROXY`.
    Account,
    /// Other accounts, by `GRANT OPTION`: what is granted to this one can be passed on.
    Others,
    /// What a role that cannot be looked into reaches.
    Role(String),
    /// A grant that was not understood.
    Unknown,
}

/// Something an account may do and a confined account may not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct GrantFinding {
    /// The privileges; none for a catalog that is merely visible.
    pub privileges: Vec<String>,
    /// What they reach.
    pub reach: GrantReach,
    /// Whether the account has them as everyone does, through MariaDB's PUBLIC.
    pub through_public: bool,
}

/// Privileges that a message names; a new MariaDB gives PUBLIC more than a dozen.
const PRIVILEGES_SHOWN_MAX: usize = 3;

/// The first privileges, and how many more there are.
fn shortened(privileges: &[String]) -> String {
    let (shown, rest) = privileges.split_at(privileges.len().min(PRIVILEGES_SHOWN_MAX));
    match rest.len() {
        0 => shown.join(", "),
        count => format!("{} and {count} more", shown.join(", ")),
    }
}

impl fmt::Display for GrantFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let privileges = shortened(&self.privileges);
        self.reach.write(f, &privileges)?;
        if self.through_public { f.write_str(", through PUBLIC") } else { Ok(()) }
    }
}

impl GrantReach {
    fn write(&self, f: &mut fmt::Formatter<'_>, privileges: &str) -> fmt::Result {
        match self {
            Self::Server => write!(f, "{privileges} on the server or every catalog"),
            Self::Catalog(name) if privileges.is_empty() => {
                write!(f, "the catalog `{name}` is open to it (to every account, or by a role)")
            }
            Self::Catalog(name) => write!(f, "{privileges} on the catalog `{name}`"),
            Self::ControlCatalog => f.write_str("it reaches the control catalog"),
            Self::Pattern(text) => {
                write!(f, "{privileges} on every catalog that matches `{text}`")
            }
            Self::Account => f.write_str("it may act as another account (PROXY)"),
            Self::Others => f.write_str("it may pass its privileges on (GRANT or ADMIN OPTION)"),
            Self::Role(name) => write!(f, "the role `{name}`, which it cannot look into"),
            Self::Unknown => f.write_str("a grant that is not understood"),
        }
    }
}

/// How a server reads names in grants.
#[derive(Debug, Clone, Copy)]
pub(super) struct GrantReading<'a> {
    /// The one catalog that may be reached.
    pub(super) catalog: &'a str,
    /// Whether the server folds the case of catalogs (`lower_case_table_names`).
    pub(super) folds_case: bool,
    /// Whether `%` and `_` are wildcards; not so under `partial_revokes`.
    pub(super) has_wildcards: bool,
}

/// What the lines of `SHOW GRANTS` say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Grants {
    /// Everything beyond the catalog.
    pub(super) findings: BTreeSet<GrantFinding>,
    /// Roles the account holds, quoted as the server quotes them.
    pub(super) roles: BTreeSet<String>,
    /// Whether the catalog is granted through a pattern with an unescaped `_`.
    pub(super) has_wildcard: bool,
    /// Whether the line that is read now is of PUBLIC.
    reads_public: bool,
}

impl Grants {
    /// Reads one line. The line itself is not kept: old servers put a password hash into it.
    pub(super) fn take(&mut self, line: &str, reading: GrantReading<'_>) {
        let Some(tokens) = tokens(line) else {
            self.found(Vec::new(), GrantReach::Unknown);
            return;
        };
        match tokens.first().and_then(Token::word).as_deref() {
            Some("GRANT") => self.take_grant(tokens.get(1..).unwrap_or_default(), reading),
            // A partial revoke only takes away, and a default role is granted by its own line.
            Some("REVOKE" | "SET") => {}
            _ => self.found(Vec::new(), GrantReach::Unknown),
        }
    }

    fn take_grant(&mut self, tokens: &[Token], reading: GrantReading<'_>) {
        let at = |word: &str| tokens.iter().position(|token| token.is_word(word));
        let Some(to) = at("TO") else {
            self.found(Vec::new(), GrantReach::Unknown);
            return;
        };
        let (granted, rest) = tokens.split_at(to);
        self.reads_public = rest.get(1).is_some_and(|grantee| grantee.is_word("PUBLIC"));
        self.take_granted(granted, rest, reading);
        self.reads_public = false;
    }

    /// What is between GRANT and TO, and the rest from TO on.
    fn take_granted(&mut self, granted: &[Token], rest: &[Token], reading: GrantReading<'_>) {
        let has_option = |kind: &str| {
            rest.windows(2)
                .any(|pair| matches!(pair, [a, b] if a.is_word(kind) && b.is_word("OPTION")))
        };
        let Some(on) = granted.iter().position(|token| token.is_word("ON")) else {
            if has_option("ADMIN") {
                self.found(Vec::new(), GrantReach::Others);
            }
            self.roles.extend(roles(granted));
            return;
        };
        let (privileges, object) = granted.split_at(on);
        let privileges = privilege_names(privileges);
        if privileges.iter().any(|privilege| privilege == "PROXY") {
            self.found(privileges, GrantReach::Account);
            return;
        }
        if has_option("GRANT") {
            self.found(privileges.clone(), GrantReach::Others);
        }
        self.take_object(privileges, object.get(1..).unwrap_or_default(), reading);
    }

    fn take_object(
        &mut self,
        privileges: Vec<String>,
        object: &[Token],
        reading: GrantReading<'_>,
    ) {
        // `ON TABLE`, `ON PROCEDURE`, `ON PACKAGE BODY` name a kind first.
        let start = object.iter().position(|token| !matches!(token, Token::Word(_))).unwrap_or(0);
        match object.get(start..).unwrap_or_default() {
            [Token::Symbol('*'), Token::Symbol('.'), Token::Symbol('*')] => {
                if privileges != ["USAGE"] {
                    self.found(privileges, GrantReach::Server);
                }
            }
            [Token::Quoted(pattern), Token::Symbol('.'), Token::Symbol('*')] => {
                self.take_catalog(
                    privileges,
                    &Pattern::of(pattern, reading.has_wildcards),
                    reading,
                );
            }
            [Token::Quoted(catalog), Token::Symbol('.'), Token::Quoted(_)] => {
                self.take_catalog(privileges, &Pattern::of(catalog, false), reading);
            }
            _ => self.found(privileges, GrantReach::Unknown),
        }
    }

    fn take_catalog(
        &mut self,
        privileges: Vec<String>,
        pattern: &Pattern,
        reading: GrantReading<'_>,
    ) {
        if pattern.has_percent() {
            self.found(privileges, GrantReach::Pattern(pattern.text()));
        } else if !pattern.matches(reading.catalog, reading.folds_case) {
            self.found(privileges, GrantReach::Catalog(pattern.text()));
        } else if pattern.has_underscore() {
            self.has_wildcard = true;
        }
    }

    pub(super) fn found(&mut self, privileges: Vec<String>, reach: GrantReach) {
        let through_public = self.reads_public;
        self.findings.insert(GrantFinding { privileges, reach, through_public });
    }
}

/// A catalog in a grant: characters, and what stands for any.
struct Pattern(Vec<Piece>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Piece {
    Char(char),
    AnyChar,
    AnyText,
}

impl Pattern {
    /// `\_` and `\%` are the characters themselves (manual, "GRANT Statement").
    fn of(text: &str, has_wildcards: bool) -> Self {
        let mut pieces = Vec::new();
        let mut chars = text.chars();
        while let Some(char) = chars.next() {
            pieces.push(match char {
                _ if !has_wildcards => Piece::Char(char),
                '\\' => Piece::Char(chars.next().unwrap_or('\\')),
                '_' => Piece::AnyChar,
                '%' => Piece::AnyText,
                _ => Piece::Char(char),
            });
        }
        Self(pieces)
    }

    fn has_percent(&self) -> bool {
        self.0.contains(&Piece::AnyText)
    }

    fn has_underscore(&self) -> bool {
        self.0.contains(&Piece::AnyChar)
    }

    /// Without `%`, which is refused before.
    fn matches(&self, catalog: &str, folds_case: bool) -> bool {
        let same = |piece: &Piece, char: char| match piece {
            Piece::Char(own) if folds_case => own.eq_ignore_ascii_case(&char),
            Piece::Char(own) => *own == char,
            Piece::AnyChar | Piece::AnyText => true,
        };
        self.0.len() == catalog.chars().count()
            && self.0.iter().zip(catalog.chars()).all(|(piece, char)| same(piece, char))
    }

    fn text(&self) -> String {
        self.0
            .iter()
            .map(|piece| match piece {
                Piece::Char(char) => *char,
                Piece::AnyChar => '_',
                Piece::AnyText => '%',
            })
            .collect()
    }
}

/// `SELECT (a, b), CREATE TEMPORARY TABLES` → both names, without columns.
fn privilege_names(tokens: &[Token]) -> Vec<String> {
    let mut depth = 0_u32;
    let mut names = vec![String::new()];
    for token in tokens {
        match token {
            Token::Symbol('(') => depth += 1,
            Token::Symbol(')') => depth = depth.saturating_sub(1),
            Token::Symbol(',') if depth == 0 => names.push(String::new()),
            Token::Word(word) if depth == 0 => {
                if let Some(name) = names.last_mut() {
                    if !name.is_empty() {
                        name.push(' ');
                    }
                    name.push_str(&word.to_ascii_uppercase());
                }
            }
            _ => {}
        }
    }
    names
}

/// The roles of `GRANT r, `s`@`%` TO …`, quoted anew for a statement of ours.
fn roles(tokens: &[Token]) -> Vec<String> {
    tokens
        .split(|token| matches!(token, Token::Symbol(',')))
        .map(|role| {
            let parts = role.iter().filter_map(|token| match token {
                Token::Quoted(name) | Token::Word(name) => {
                    Some(format!("`{}`", name.replace('`', "``")))
                }
                Token::Symbol(_) => None,
            });
            parts.collect::<Vec<_>>().join("@")
        })
        .filter(|role| !role.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const READING: GrantReading<'_> =
        GrantReading { catalog: "plugin_preview", folds_case: false, has_wildcards: true };

    fn read(lines: &[&str]) -> Grants {
        let mut grants = Grants::default();
        for line in lines {
            grants.take(line, READING);
        }
        grants
    }

    fn reaches(line: &str) -> Vec<GrantReach> {
        read(&[line]).findings.into_iter().map(|finding| finding.reach).collect()
    }

    #[test]
    fn a_confined_account_has_no_finding() {
        let grants = read(&[
            "GRANT USAGE ON *.* TO `t`@`%` IDENTIFIED BY PASSWORD '*ABC'",
            r"GRANT SELECT, INSERT, CREATE, DROP, REFERENCES ON `plugin\_preview`.* TO `t`@`%`",
            "GRANT SELECT (`id`, `on`) ON `plugin_preview`.`to` TO `t`@`%`",
        ]);
        assert_eq!(grants, Grants::default());
    }

    #[test]
    fn global_privileges_are_found() {
        for line in [
            "GRANT FILE ON *.* TO `t`@`%`",
            "GRANT ALL PRIVILEGES ON *.* TO `t`@`%`",
            "GRANT SELECT, SUPER ON *.* TO 't'@'%' IDENTIFIED BY PASSWORD '*ABC'",
            "GRANT CONNECTION_ADMIN,SYSTEM_USER ON *.* TO `t`@`%`",
        ] {
            assert_eq!(reaches(line), [GrantReach::Server], "{line}");
        }
    }

    #[test]
    fn other_catalogs_are_found() {
        for (line, catalog) in [
            ("GRANT SELECT ON `other`.* TO `t`@`%`", "other"),
            ("GRANT SELECT ON `Plugin_preview`.* TO `t`@`%`", "Plugin_preview"),
            ("GRANT SELECT ON `mysql`.`user` TO `t`@`%`", "mysql"),
            ("GRANT EXECUTE ON PROCEDURE `other`.`p` TO `t`@`%`", "other"),
            ("GRANT SELECT ON `a``b`.* TO `t`@`%`", "a`b"),
        ] {
            assert_eq!(reaches(line), [GrantReach::Catalog(catalog.to_owned())], "{line}");
        }
    }

    #[test]
    fn wildcards_are_read_as_the_server_reads_them() {
        assert!(read(&["GRANT SELECT ON `plugin_preview`.* TO `t`@`%`"]).has_wildcard);
        assert!(!read(&[r"GRANT SELECT ON `plugin\_preview`.* TO `t`@`%`"]).has_wildcard);
        let pattern = "GRANT SELECT ON `plugin%`.* TO `t`@`%`";
        assert_eq!(reaches(pattern), [GrantReach::Pattern("plugin%".to_owned())]);
        let mut grants = Grants::default();
        let reading = GrantReading { has_wildcards: false, ..READING };
        grants.take("GRANT SELECT ON `plugin_preview`.* TO `t`@`%`", reading);
        assert_eq!(grants, Grants::default());
    }

    #[test]
    fn passing_on_and_acting_as_another_are_found() {
        let line = r"GRANT SELECT ON `plugin\_preview`.* TO `t`@`%` WITH GRANT OPTION";
        assert_eq!(reaches(line), [GrantReach::Others]);
        let line = "GRANT PROXY ON ''@'' TO 'root'@'localhost' WITH GRANT OPTION";
        assert_eq!(reaches(line), [GrantReach::Account]);
    }

    #[test]
    fn roles_are_gathered_and_what_is_not_understood_is_found() {
        let grants = read(&["GRANT `r`@`%`,`s`@`h` TO `t`@`%`", "GRANT `m` TO `t`@`%`"]);
        let roles: Vec<_> = grants.roles.iter().map(String::as_str).collect();
        assert_eq!(roles, ["`m`", "`r`@`%`", "`s`@`h`"]);
        for line in ["", "HELLO", "GRANT SELECT ON x.y.z TO `t`", "GRANT `broken"] {
            assert_eq!(reaches(line), [GrantReach::Unknown], "{line}");
        }
    }
}
