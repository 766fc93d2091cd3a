//! What an account may do beyond the catalog, read from `SHOW GRANTS` and from what it sees.

use std::collections::BTreeSet;
use std::fmt;

use crate::session::{CatalogPattern, GrantLine, GrantReading, GrantedOn};

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
    /// Every catalog whose name begins with `test_`, as everyone has them in old installations.
    TestCatalogs,
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
            Self::TestCatalogs => {
                f.write_str("every catalog whose name begins with `test_` is open to every account")
            }
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

/// What the lines of `SHOW GRANTS` say beyond the catalog.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Grants {
    /// Everything beyond the catalog.
    pub(super) findings: BTreeSet<GrantFinding>,
    /// Roles the account holds, quoted as the server quotes them.
    pub(super) roles: BTreeSet<String>,
    /// Whether the catalog is granted through a pattern with an unescaped `_`.
    pub(super) has_wildcard: bool,
}

impl Grants {
    /// Takes in what a line gives.
    pub(super) fn take(&mut self, line: GrantLine, reading: GrantReading<'_>) {
        match line {
            GrantLine::Granted { privileges, on, to_public, passes_on } => {
                let found = |privileges, reach| GrantFinding {
                    privileges,
                    reach,
                    through_public: to_public,
                };
                if passes_on {
                    self.findings.insert(found(privileges.clone(), GrantReach::Others));
                }
                if let Some(reach) = self.beyond(&privileges, &on, reading) {
                    self.findings.insert(found(privileges, reach));
                }
            }
            GrantLine::Proxy => self.found(vec!["PROXY".to_owned()], GrantReach::Account),
            GrantLine::Roles { roles, passes_on, to_role } => {
                if passes_on {
                    self.found(Vec::new(), GrantReach::Others);
                }
                // An account may not take on a role of its role's, and need not, to see it.
                if !to_role {
                    self.roles.extend(roles);
                }
            }
            // A partial revoke only takes away, and a default role is granted by its own line.
            GrantLine::Revoked { .. } | GrantLine::Nothing => {}
            GrantLine::Unknown => self.found(Vec::new(), GrantReach::Unknown),
        }
    }

    /// What privileges reach beyond the catalog; none when they stay within it.
    fn beyond(
        &mut self,
        privileges: &[String],
        on: &GrantedOn,
        reading: GrantReading<'_>,
    ) -> Option<GrantReach> {
        let pattern = match on {
            GrantedOn::Everything => {
                return (privileges != ["USAGE"]).then_some(GrantReach::Server);
            }
            GrantedOn::Catalog(name) => CatalogPattern::of(name, reading.has_wildcards),
            GrantedOn::Part { catalog, .. } => CatalogPattern::of(catalog, false),
            GrantedOn::Unknown => return Some(GrantReach::Unknown),
        };
        if pattern.has_percent() {
            return Some(GrantReach::Pattern(pattern.text()));
        }
        if !pattern.matches(reading) {
            return Some(GrantReach::Catalog(pattern.text()));
        }
        self.has_wildcard |= pattern.has_underscore();
        None
    }

    pub(super) fn found(&mut self, privileges: Vec<String>, reach: GrantReach) {
        self.findings.insert(GrantFinding { privileges, reach, through_public: false });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READING: GrantReading<'_> =
        GrantReading { catalog: "plugin_preview", folds_case: false, has_wildcards: true };

    fn read(lines: &[&str]) -> Grants {
        let mut grants = Grants::default();
        for line in lines {
            grants.take(GrantLine::of(line), READING);
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
        grants.take(GrantLine::of("GRANT SELECT ON `plugin_preview`.* TO `t`@`%`"), reading);
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
        let grants = read(&[
            "GRANT `r`@`%`,`s`@`h` TO `t`@`%`",
            "GRANT `m` TO `t`@`%`",
            "GRANT `inner` TO `m`",
        ]);
        let roles: Vec<_> = grants.roles.iter().map(String::as_str).collect();
        assert_eq!(roles, ["`m`", "`r`@`%`", "`s`@`h`"]);
        for line in ["", "HELLO", "GRANT SELECT ON x.y.z TO `t`", "GRANT `broken"] {
            assert_eq!(reaches(line), [GrantReach::Unknown], "{line}");
        }
    }
}
