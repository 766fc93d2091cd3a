//! The account of a target connection reaches its catalog and nothing else.

use std::collections::BTreeSet;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::connection::TargetWarning;
use super::error::TargetError;
use super::grants::{GrantFinding, GrantReach, GrantReading, Grants};
use crate::config::{GrantCheck, SqlTargetConfig};
use crate::session::{Flavour, ServerFailure, ServerIdentity};

/// Roles looked into; more are no confined account.
const ROLE_COUNT_MAX: usize = 32;

/// Catalogs every account sees, and can change nothing in.
const ALWAYS_VISIBLE: &[&str] = &["information_schema", "performance_schema"];

/// Refuses an account that reaches beyond the catalog, or warns of it when the switch says so.
pub(super) async fn check(
    conn: &mut Conn,
    config: &SqlTargetConfig,
    server: &ServerIdentity,
    reading: GrantReading<'_>,
) -> Result<Vec<TargetWarning>, TargetError> {
    let mut grants = read_grants(conn, server, reading).await.map_err(TargetError::target)?;
    // A global privilege shows every catalog; the list would say nothing more.
    let sees_all = grants.findings.iter().any(|finding| finding.reach == GrantReach::Server);
    if !sees_all {
        for catalog in visible_catalogs(conn, reading).await.map_err(TargetError::target)? {
            grants.visible(catalog);
        }
    }
    let findings = grants.named(config.control.endpoint.catalog());
    if !findings.is_empty() && config.grant_check == GrantCheck::Enforce {
        return Err(TargetError::GrantsBeyond { findings });
    }
    let mut warnings: Vec<_> = findings.into_iter().map(TargetWarning::GrantsBeyond).collect();
    if grants.has_wildcard {
        warnings.push(TargetWarning::GrantWildcard);
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
            others.insert(0, GrantFinding { privileges, reach });
        }
        others
    }
}

async fn read_grants(
    conn: &mut Conn,
    server: &ServerIdentity,
    reading: GrantReading<'_>,
) -> Result<Grants, ServerFailure> {
    let mut grants = Grants::default();
    show(conn, "SHOW GRANTS", reading, &mut grants).await?;
    let mut seen = BTreeSet::new();
    while let Some(role) = grants.roles.iter().find(|role| !seen.contains(*role)).cloned() {
        // MySQL shows a role's privileges with USING; MariaDB shows the grants of the role.
        let statement = match server.flavour() {
            Flavour::MariaDb => format!("SHOW GRANTS FOR {role}"),
            _ => format!("SHOW GRANTS FOR CURRENT_USER() USING {role}"),
        };
        let is_read = seen.len() < ROLE_COUNT_MAX
            && show(conn, &statement, reading, &mut grants).await.is_ok();
        if !is_read {
            grants.found(Vec::new(), GrantReach::Role(role.replace('`', "")));
        }
        seen.insert(role);
    }
    Ok(grants)
}

async fn show(
    conn: &mut Conn,
    statement: &str,
    reading: GrantReading<'_>,
    grants: &mut Grants,
) -> Result<(), ServerFailure> {
    let lines: Vec<String> =
        conn.query(statement).await.map_err(|error| ServerFailure::of(&error))?;
    for line in &lines {
        grants.take(line, reading);
    }
    Ok(())
}

/// The other catalogs the account sees: those it has any privilege in, however it came to it
/// (manual, "SHOW DATABASES Statement"). That covers what `SHOW GRANTS` leaves out: privileges of
/// everyone, as the `test` catalog of old installations has them.
async fn visible_catalogs(
    conn: &mut Conn,
    reading: GrantReading<'_>,
) -> Result<Vec<String>, ServerFailure> {
    let names: Vec<String> =
        conn.query("SHOW DATABASES").await.map_err(|error| ServerFailure::of(&error))?;
    let is_own = |name: &String| {
        name == reading.catalog
            || reading.folds_case && name.eq_ignore_ascii_case(reading.catalog)
            || ALWAYS_VISIBLE.iter().any(|always| always.eq_ignore_ascii_case(name))
    };
    Ok(names.into_iter().filter(|name| !is_own(name)).collect())
}
