//! What the account of a session may do in one catalog, as far as `SHOW GRANTS` tells.

use std::collections::BTreeSet;

use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;

use super::catalog_pattern::{CatalogPattern, GrantReading};
use super::failure::ServerFailure;
use super::grant_line::{GrantLine, GrantedOn};

/// What stands for every privilege there is.
const ALL: &str = "ALL PRIVILEGES";

/// The rights of an account in a catalog. What is [lacking](Rights::lacking) is lacking for sure: a
/// right that any grant gives counts, though of several patterns that match a catalog the server takes
/// one (MySQL manual, "GRANT Statement").
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rights {
    /// In every catalog.
    everywhere: BTreeSet<String>,
    /// Of those in every catalog, what a partial revoke takes away in this one.
    revoked: BTreeSet<String>,
    /// In the catalog.
    in_catalog: BTreeSet<String>,
    /// At single tables or columns of it.
    at_tables: BTreeSet<String>,
    /// Whether a line was not understood: it may give anything.
    is_unclear: bool,
}

impl Rights {
    /// Reads what the session has now, by roles that it has taken on and through PUBLIC as well: that is
    /// what the statement shows of the own account (manuals, "SHOW GRANTS"). A role that was granted and
    /// not taken on gives it nothing.
    pub(crate) async fn read(
        conn: &mut Conn,
        reading: GrantReading<'_>,
    ) -> Result<Self, ServerFailure> {
        let lines: Vec<String> =
            conn.query("SHOW GRANTS").await.map_err(|error| ServerFailure::of(&error))?;
        let mut rights = Self::default();
        for line in &lines {
            rights.take(&GrantLine::of(line), reading);
        }
        Ok(rights)
    }

    /// Takes in what a line gives.
    pub(crate) fn take(&mut self, line: &GrantLine, reading: GrantReading<'_>) {
        let is_own = |name: &str, has_wildcards: bool| {
            CatalogPattern::of(name, has_wildcards).matches(reading)
        };
        match line {
            GrantLine::Granted { privileges, on, .. } => {
                let gained = match on {
                    GrantedOn::Everything => &mut self.everywhere,
                    GrantedOn::Catalog(name) if is_own(name, reading.has_wildcards) => {
                        &mut self.in_catalog
                    }
                    GrantedOn::Part { catalog, is_table: true } if is_own(catalog, false) => {
                        &mut self.at_tables
                    }
                    GrantedOn::Catalog(_) | GrantedOn::Part { .. } => return,
                    GrantedOn::Unknown => {
                        self.is_unclear = true;
                        return;
                    }
                };
                gained.extend(privileges.iter().cloned());
            }
            GrantLine::Revoked { privileges, on: GrantedOn::Catalog(name) } => {
                if is_own(name, reading.has_wildcards) {
                    self.revoked.extend(privileges.iter().cloned());
                }
            }
            GrantLine::Unknown => self.is_unclear = true,
            GrantLine::Revoked { .. }
            | GrantLine::Proxy
            | GrantLine::Roles { .. }
            | GrantLine::Nothing => {}
        }
    }

    /// Those that the account has nowhere in the catalog; none when a grant was not understood.
    pub(crate) fn lacking<'a>(&self, needed: &[&'a str]) -> Vec<&'a str> {
        self.without(needed, |right| self.has(right) || has(&self.at_tables, right))
    }

    /// Those that the account has at single tables of the catalog only.
    pub(crate) fn at_tables_only<'a>(&self, needed: &[&'a str]) -> Vec<&'a str> {
        self.without(needed, |right| self.has(right) || !has(&self.at_tables, right))
    }

    fn without<'a>(&self, needed: &[&'a str], is_left_out: impl Fn(&str) -> bool) -> Vec<&'a str> {
        if self.is_unclear {
            return Vec::new();
        }
        needed.iter().copied().filter(|right| !is_left_out(right)).collect()
    }

    fn has(&self, right: &str) -> bool {
        has(&self.in_catalog, right) || has(&self.everywhere, right) && !has(&self.revoked, right)
    }
}

fn has(rights: &BTreeSet<String>, right: &str) -> bool {
    rights.contains(right) || rights.contains(ALL)
}

#[cfg(test)]
mod tests {
    use super::*;

    const READING: GrantReading<'_> =
        GrantReading { catalog: "shop_a", folds_case: false, has_wildcards: true };

    const NEEDED: &[&str] = &["SELECT", "INSERT", "CREATE"];

    fn rights(lines: &[&str], reading: GrantReading<'_>) -> Rights {
        let mut rights = Rights::default();
        for line in lines {
            rights.take(&GrantLine::of(line), reading);
        }
        rights
    }

    fn lacking(lines: &[&str]) -> Vec<&'static str> {
        rights(lines, READING).lacking(NEEDED)
    }

    #[test]
    fn what_reaches_the_catalog_counts_however_it_is_written() {
        for line in [
            r"GRANT SELECT, INSERT, CREATE ON `shop\_a`.* TO `t`@`%`",
            "GRANT ALL PRIVILEGES ON `shop_a`.* TO 't'@'%'",
            "GRANT ALL PRIVILEGES ON `shop%`.* TO 't'@'%'",
            "GRANT ALL PRIVILEGES ON *.* TO `t`@`%` WITH GRANT OPTION",
            "GRANT SELECT, INSERT, CREATE ON `shop_a`.* TO PUBLIC",
        ] {
            assert_eq!(lacking(&[line]), [""; 0], "{line}");
        }
        let usage = "GRANT USAGE ON *.* TO 't'@'%' IDENTIFIED BY PASSWORD '*ABC'";
        assert_eq!(lacking(&[usage]), NEEDED);
        assert_eq!(
            lacking(&[usage, "GRANT SELECT ON `shop_a`.* TO `t`@`%`"]),
            ["INSERT", "CREATE"]
        );
        for elsewhere in [
            "GRANT ALL PRIVILEGES ON `shop`.* TO `t`@`%`",
            "GRANT ALL PRIVILEGES ON `Shop_a`.* TO `t`@`%`",
            "GRANT ALL PRIVILEGES ON PROCEDURE `shop_a`.`p` TO `t`@`%`",
            "GRANT `r` TO `t`@`%`",
        ] {
            assert_eq!(lacking(&[elsewhere]), NEEDED, "{elsewhere}");
        }
    }

    #[test]
    fn what_holds_at_a_table_is_not_lacking_and_is_told() {
        let catalog = "GRANT SELECT, CREATE ON `shop_a`.* TO `t`@`%`";
        let found = rights(&[catalog, "GRANT INSERT (`id`) ON `shop_a`.`t` TO `t`@`%`"], READING);
        assert_eq!(found.lacking(NEEDED), [""; 0]);
        assert_eq!(found.at_tables_only(NEEDED), ["INSERT"]);
        let found = rights(&[catalog, "GRANT INSERT ON `shopXa`.`t` TO `t`@`%`"], READING);
        assert_eq!((found.lacking(NEEDED), found.at_tables_only(NEEDED)), (vec!["INSERT"], vec![]));
    }

    #[test]
    fn a_partial_revoke_takes_what_holds_everywhere() {
        let everywhere = "GRANT SELECT, INSERT, CREATE ON *.* TO `t`@`%`";
        let revoke = "REVOKE INSERT ON `shop_a`.* FROM `t`@`%`";
        let reading = GrantReading { has_wildcards: false, ..READING };
        assert_eq!(rights(&[everywhere, revoke], reading).lacking(NEEDED), ["INSERT"]);
        let other = "REVOKE INSERT ON `shopXa`.* FROM `t`@`%`";
        assert_eq!(rights(&[everywhere, other], reading).lacking(NEEDED), [""; 0]);
        let granted = "GRANT INSERT ON `shop_a`.* TO `t`@`%`";
        assert_eq!(rights(&[everywhere, revoke, granted], reading).lacking(NEEDED), [""; 0]);
    }

    #[test]
    fn nothing_is_said_to_be_lacking_where_a_grant_is_not_understood() {
        for line in ["HELLO", "GRANT SELECT ON x.y.z TO `t`"] {
            assert_eq!(lacking(&[line]), [""; 0], "{line}");
        }
    }
}
