//! A line of `SHOW GRANTS`: what a server prints, not what a person may write.

use super::tokens::{Token, tokens};

/// One line, read. The line itself is not kept: old servers put a password hash into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GrantLine {
    /// Privileges on something.
    Granted {
        /// In upper case, without columns.
        privileges: Vec<String>,
        /// On what.
        on: GrantedOn,
        /// Whether everyone has them, through MariaDB's PUBLIC.
        to_public: bool,
        /// Whether they may be passed on.
        passes_on: bool,
    },
    /// What a partial revoke takes from privileges on everything.
    Revoked {
        /// In upper case.
        privileges: Vec<String>,
        /// Where.
        on: GrantedOn,
    },
    /// To act as another account.
    Proxy,
    /// Roles.
    Roles {
        /// Quoted for a statement of ours.
        roles: Vec<String>,
        /// Whether they may be passed on.
        passes_on: bool,
        /// Whether it is another role that has them. A server that shows that (MariaDB) shows what they
        /// grant along with it.
        to_role: bool,
    },
    /// Nothing: which role is the default one.
    Nothing,
    /// It was not understood.
    Unknown,
}

/// What privileges are on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GrantedOn {
    /// The server, or every catalog.
    Everything,
    /// A catalog as the line writes it, which may be a pattern.
    Catalog(String),
    /// A table or a routine in a catalog; no pattern.
    Part {
        /// The catalog.
        catalog: String,
        /// Whether it is a table, or columns of one.
        is_table: bool,
    },
    /// It was not understood.
    Unknown,
}

impl GrantLine {
    /// Reads a line.
    pub(crate) fn of(line: &str) -> Self {
        let Some(tokens) = tokens(line) else { return Self::Unknown };
        let rest = tokens.get(1..).unwrap_or_default();
        match tokens.first().and_then(Token::word).as_deref() {
            Some("GRANT") => granted(rest),
            Some("REVOKE") => revoked(rest),
            Some("SET") => Self::Nothing,
            _ => Self::Unknown,
        }
    }
}

/// What is between GRANT and TO, and the rest from TO on.
fn granted(tokens: &[Token]) -> GrantLine {
    let Some((granted, rest)) = split_at(tokens, "TO") else { return GrantLine::Unknown };
    let has_option = |kind: &str| {
        rest.windows(2).any(|pair| matches!(pair, [a, b] if a.is_word(kind) && b.is_word("OPTION")))
    };
    let to_public = rest.get(1).is_some_and(|grantee| grantee.is_word("PUBLIC"));
    let Some((privileges, object)) = split_at(granted, "ON") else {
        let roles = roles(granted);
        // An account has a host, a role of MariaDB has none.
        let to_role = !to_public && !rest.contains(&Token::Symbol('@'));
        return GrantLine::Roles { roles, passes_on: has_option("ADMIN"), to_role };
    };
    let privileges = privilege_names(privileges);
    if privileges.iter().any(|privilege| privilege == "PROXY") {
        return GrantLine::Proxy;
    }
    let on = GrantedOn::of(object.get(1..).unwrap_or_default());
    GrantLine::Granted { privileges, on, to_public, passes_on: has_option("GRANT") }
}

fn revoked(tokens: &[Token]) -> GrantLine {
    let Some((revoked, _)) = split_at(tokens, "FROM") else { return GrantLine::Unknown };
    let Some((privileges, object)) = split_at(revoked, "ON") else { return GrantLine::Unknown };
    let on = GrantedOn::of(object.get(1..).unwrap_or_default());
    GrantLine::Revoked { privileges: privilege_names(privileges), on }
}

/// What is before the first such word, and the rest from there on.
fn split_at<'a>(tokens: &'a [Token], word: &str) -> Option<(&'a [Token], &'a [Token])> {
    tokens.iter().position(|token| token.is_word(word)).map(|place| tokens.split_at(place))
}

impl GrantedOn {
    fn of(object: &[Token]) -> Self {
        // `ON TABLE`, `ON PROCEDURE`, `ON PACKAGE BODY` name a kind first.
        let start = object.iter().position(|token| !matches!(token, Token::Word(_))).unwrap_or(0);
        let (kind, name) = object.split_at(start);
        match name {
            [Token::Symbol('*'), Token::Symbol('.'), Token::Symbol('*')] => Self::Everything,
            [Token::Quoted(pattern), Token::Symbol('.'), Token::Symbol('*')] => {
                Self::Catalog(pattern.clone())
            }
            [Token::Quoted(catalog), Token::Symbol('.'), Token::Quoted(_)] => Self::Part {
                catalog: catalog.clone(),
                is_table: kind.iter().all(|word| word.is_word("TABLE")),
            },
            _ => Self::Unknown,
        }
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

    #[test]
    fn a_table_is_told_from_a_routine() {
        let on = |line: &str| match GrantLine::of(line) {
            GrantLine::Granted { on, .. } => on,
            other => panic!("{line}: {other:?}"),
        };
        for (line, is_table) in [
            ("GRANT SELECT (`id`, `on`) ON `a`.`to` TO `t`@`%`", true),
            ("GRANT SELECT ON TABLE `a`.`b` TO `t`@`%`", true),
            ("GRANT ALL PRIVILEGES ON PROCEDURE `a`.`b` TO `t`@`%`", false),
            ("GRANT EXECUTE ON PACKAGE BODY `a`.`b` TO `t`@`%`", false),
        ] {
            assert_eq!(on(line), GrantedOn::Part { catalog: "a".to_owned(), is_table }, "{line}");
        }
        let everyones = GrantLine::of(r"GRANT SELECT, CREATE VIEW ON `a\_b`.* TO PUBLIC");
        let expected = GrantLine::Granted {
            privileges: vec!["SELECT".to_owned(), "CREATE VIEW".to_owned()],
            on: GrantedOn::Catalog(r"a\_b".to_owned()),
            to_public: true,
            passes_on: false,
        };
        assert_eq!(everyones, expected);
    }

    #[test]
    fn a_partial_revoke_is_read_and_a_default_role_is_nothing() {
        let expected = GrantLine::Revoked {
            privileges: vec!["INSERT".to_owned(), "UPDATE".to_owned()],
            on: GrantedOn::Catalog("shop".to_owned()),
        };
        assert_eq!(GrantLine::of("REVOKE INSERT, UPDATE ON `shop`.* FROM `t`@`%`"), expected);
        assert_eq!(GrantLine::of("SET DEFAULT ROLE `r` FOR `t`@`%`"), GrantLine::Nothing);
        for line in ["", "HELLO", "GRANT SELECT ON `a`.*", "GRANT `broken", "REVOKE `r`"] {
            assert_eq!(GrantLine::of(line), GrantLine::Unknown, "{line}");
        }
    }
}
