//! The account of a target connection reaches its catalog and nothing else, and has every right there
//! that its sessions are opened for.

use std::collections::BTreeSet;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use uuid::Uuid;

use super::connection::TargetWarning;
use super::error::TargetError;
use super::grants::{GrantFinding, GrantReach, Grants};
use super::purpose::{Lack, Purpose};
use crate::config::{GrantCheck, SqlTargetConfig};
use crate::session::{Flavour, GrantLine, GrantReading, Rights, ServerFailure, ServerIdentity};

/// Roles that could not be read before the rest is not tried: each costs round trips.
const UNREAD_ROLE_COUNT_MAX: usize = 8;

/// How the names of catalogs begin that old installations open to everyone.
const TEST_PREFIX: &str = "test_";
/// `ER_BAD_DB_ERROR`.
const UNKNOWN_CATALOG: u16 = 1049;
/// `ER_DBACCESS_DENIED_ERROR`.
const CATALOG_DENIED: u16 = 1044;

/// Catalogs every account sees, and can change nothing in.
const ALWAYS_VISIBLE: &[&str] = &["information_schema", "performance_schema"];

/// Refuses an account that reaches beyond the catalog or lacks a right in it, or warns of it when the
/// switch says so.
pub(super) async fn check(
    conn: &mut Conn,
    config: &SqlTargetConfig,
    server: &ServerIdentity,
    reading: GrantReading<'_>,
    purpose: Purpose,
) -> Result<Vec<TargetWarning>, TargetError> {
    let (mut grants, rights) =
        read_grants(conn, server, reading).await.map_err(TargetError::target)?;
    // A global privilege shows every catalog; the list would say nothing more.
    let sees_all = grants.findings.iter().any(|finding| finding.reach == GrantReach::Server);
    if !sees_all {
        for catalog in visible_catalogs(conn, reading).await.map_err(TargetError::target)? {
            grants.visible(catalog);
        }
    }
    let is_test_open = !sees_all && is_test_open(conn).await.map_err(TargetError::target)?;
    if is_test_open {
        grants.found(Vec::new(), GrantReach::TestCatalogs);
    }
    let findings = grants.named(config.control.endpoint.catalog());
    if !findings.is_empty() && config.grant_check == GrantCheck::Enforce {
        return Err(TargetError::GrantsBeyond { findings });
    }
    let mut warnings: Vec<_> = findings.into_iter().map(TargetWarning::GrantsBeyond).collect();
    if grants.has_wildcard {
        warnings.push(TargetWarning::GrantWildcard);
    }
    // Then no grant says what the account has in a catalog of such a name.
    let is_known = !(is_test_open && config.catalog.as_str().starts_with(TEST_PREFIX));
    match purpose.lack(&rights).filter(|_| is_known) {
        Some(Lack::Rights(missing)) if config.grant_check == GrantCheck::Enforce => {
            return Err(TargetError::GrantsMissing { catalog: config.catalog.clone(), missing });
        }
        Some(Lack::Rights(missing)) => warnings.push(TargetWarning::GrantsMissing { missing }),
        Some(Lack::Unknown) => warnings.push(TargetWarning::ReadsOnly),
        None => {}
    }
    let at_tables = rights.at_tables_only(&purpose.rights());
    if !at_tables.is_empty() {
        warnings.push(TargetWarning::GrantsByTable { rights: at_tables });
    }
    Ok(warnings)
}

impl Grants {
    /// A catalog the account sees. One that a grant names already needs no second finding.
    fn visible(&mut self, catalog: String) {
        let is_named = self.findings.iter().any(|finding| {
            matches!(&finding.reach, GrantReach::Catalog(name) if name.eq_ignore_ascii_case(&catalog))
        });
        if !is_named {
            self.found(Vec::new(), GrantReach::Catalog(catalog));
        }
    }

    /// The findings, worst first: the control catalog is called that, not by its name.
    fn named(&mut self, control_catalog: &str) -> Vec<GrantFinding> {
        let is_control = |finding: &GrantFinding| {
            matches!(&finding.reach, GrantReach::Catalog(name)
                if name.eq_ignore_ascii_case(control_catalog))
        };
        let (control, mut others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.findings).into_iter().partition(is_control);
        let privileges: BTreeSet<String> =
            control.iter().flat_map(|finding| finding.privileges.iter().cloned()).collect();
        if !control.is_empty() {
            let privileges = privileges.into_iter().collect();
            let reach = GrantReach::ControlCatalog;
            let through_public = control.iter().all(|finding| finding.through_public);
            others.insert(0, GrantFinding { privileges, reach, through_public });
        }
        others
    }
}

/// Everything the account could reach, by roles too that it has not taken on; and what it may do in the
/// catalog now.
async fn read_grants(
    conn: &mut Conn,
    server: &ServerIdentity,
    reading: GrantReading<'_>,
) -> Result<(Grants, Rights), ServerFailure> {
    let (mut grants, mut rights) = (Grants::default(), Rights::default());
    for line in show(conn, "SHOW GRANTS").await? {
        rights.take(&line, reading);
        grants.take(line, reading);
    }
    let roles: Vec<String> = grants.roles.iter().cloned().collect();
    if roles.is_empty() {
        return Ok((grants, rights));
    }
    let unread = if server.flavour() == Flavour::MariaDb {
        take_on_roles(conn, &roles, reading, &mut grants).await?
    } else {
        // Nested roles are part of it (manual, "SHOW GRANTS Statement").
        let statement = format!("SHOW GRANTS FOR CURRENT_USER() USING {}", roles.join(", "));
        match show(conn, &statement).await {
            Ok(lines) => {
                for line in lines {
                    grants.take(line, reading);
                }
                Vec::new()
            }
            Err(_) => roles,
        }
    };
    for role in unread {
        grants.found(Vec::new(), GrantReach::Role(role.replace('`', "")));
    }
    Ok((grants, rights))
}

/// MariaDB shows what a role may do, nested roles included, only to whoever has taken it on. The
/// role the session had is taken on again afterwards. Gives back the roles that could not be read.
async fn take_on_roles(
    conn: &mut Conn,
    roles: &[String],
    reading: GrantReading<'_>,
    grants: &mut Grants,
) -> Result<Vec<String>, ServerFailure> {
    let failed = |error: mysql_async::Error| ServerFailure::of(&error);
    let before: Option<Option<String>> =
        conn.query_first("SELECT CURRENT_ROLE()").await.map_err(failed)?;
    let mut unread = Vec::new();
    for role in roles {
        let is_taken_on = unread.len() < UNREAD_ROLE_COUNT_MAX
            && conn.query_drop(format!("SET ROLE {role}")).await.is_ok();
        let lines = if is_taken_on { show(conn, "SHOW GRANTS").await.ok() } else { None };
        match lines {
            Some(lines) => {
                for line in lines {
                    grants.take(line, reading);
                }
            }
            None => unread.push(role.clone()),
        }
    }
    let before = before
        .flatten()
        .map_or_else(|| "NONE".to_owned(), |role| format!("`{}`", role.replace('`', "``")));
    conn.query_drop(format!("SET ROLE {before}")).await.map_err(failed)?;
    Ok(unread)
}

async fn show(conn: &mut Conn, statement: &str) -> Result<Vec<GrantLine>, ServerFailure> {
    let lines: Vec<String> =
        conn.query(statement).await.map_err(|error| ServerFailure::of(&error))?;
    Ok(lines.iter().map(|line| GrantLine::of(line)).collect())
}

/// Whether everyone may do everything in catalogs of that [name](TEST_PREFIX), those that are yet to be created
/// included: as installations of MySQL up to 5.6 have it from the start (5.6 manual, "Securing the
/// Initial MySQL Accounts"), and `SHOW GRANTS` shows nothing of.
///
/// A server tells that there is no such catalog (`ER_BAD_DB_ERROR`) only to who has a right in it, and
/// denies it to everyone else (`ER_DBACCESS_DENIED_ERROR`).
async fn is_test_open(conn: &mut Conn) -> Result<bool, ServerFailure> {
    let nobody_s = format!("{TEST_PREFIX}{}", Uuid::new_v4().simple());
    match conn.query_drop(format!("USE `{nobody_s}`")).await {
        Err(mysql_async::Error::Server(error)) if error.code == UNKNOWN_CATALOG => Ok(true),
        Err(mysql_async::Error::Server(error)) if error.code == CATALOG_DENIED => Ok(false),
        Err(error) => Err(ServerFailure::of(&error)),
        Ok(()) => Err(ServerFailure::Unreadable),
    }
}

/// The other catalogs the account sees: those it has any privilege in, however it came to it
/// (manual, "SHOW DATABASES Statement"). That covers what `SHOW GRANTS` leaves out of catalogs that are
/// there: privileges of everyone, as the `test` catalog of old installations has them.
async fn visible_catalogs(
    conn: &mut Conn,
    reading: GrantReading<'_>,
) -> Result<Vec<String>, ServerFailure> {
    let names: Vec<String> =
        conn.query("SHOW DATABASES").await.map_err(|error| ServerFailure::of(&error))?;
    let is_own = |name: &String| {
        reading.is_catalog(name)
            || ALWAYS_VISIBLE.iter().any(|always| always.eq_ignore_ascii_case(name))
    };
    Ok(names.into_iter().filter(|name| !is_own(name)).collect())
}
