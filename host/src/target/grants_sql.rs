//! The SQL that makes a confined account, and the rights that it grants: the one list of them.

use crate::ids::Catalog;

/// The script operators run by hand; its names are the original request's.
const TEMPLATE: &str = include_str!("../../../sql/factory_plugin_sql_target_grants.sql");

/// The catalog the script is written for.
const TEMPLATE_CATALOG: &str = "ruoyi_plugin_preview";

/// What reading takes.
pub(super) const READING_RIGHTS: &[&str] = &["SELECT"];

/// What an account needs to carry out steps: what the script grants.
pub(super) fn step_rights() -> Vec<&'static str> {
    let granted = TEMPLATE.lines().find_map(|line| line.strip_prefix("GRANT "));
    granted.unwrap_or_default().split(',').map(str::trim).collect()
}

/// Statements that make an account confined to `catalog`, for a person with the right to do so.
///
/// It is `sql/factory_plugin_sql_target_grants.sql` with the catalog's name put in. User name, host
/// and password in it are placeholders.
pub fn grants_sql(catalog: &Catalog) -> String {
    let escaped = |name: &str| name.replace('_', r"\_");
    TEMPLATE
        .replace(&escaped(TEMPLATE_CATALOG), &escaped(catalog.as_str()))
        .replace(TEMPLATE_CATALOG, catalog.as_str())
}

/// Statements that make an account which can only read `catalog`: enough for the status page.
///
/// User name, host and password in it are placeholders.
pub fn reader_grants_sql(catalog: &Catalog) -> String {
    let escaped = catalog.as_str().replace('_', r"\_");
    format!(
        "-- An account for `tollgate serve`: it reads the catalog `{catalog}` and can write nothing.\n\
         -- The page needs another one that reads the control catalog. Put in your own host and password.\n\
         CREATE USER 'tollgate_reader'@'%' IDENTIFIED BY '<password>';\n\
         GRANT {} ON `{escaped}`.* TO 'tollgate_reader'@'%';\n",
        READING_RIGHTS.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rights_of_steps_are_those_that_the_script_grants() {
        let rights = step_rights();
        let sql = grants_sql(&"shop".parse().unwrap());
        let granted = format!("GRANT {}\n    ON `shop`.* TO", rights.join(", "));
        assert!(sql.contains(&granted), "{granted}: {sql}");
        assert!(rights.starts_with(READING_RIGHTS) && rights.contains(&"REFERENCES"), "{rights:?}");
        let is_right = |it: &&str| !it.is_empty() && it.chars().all(|it| it.is_ascii_uppercase());
        assert!(rights.iter().all(is_right), "{rights:?}");
    }

    #[test]
    fn a_reader_is_granted_nothing_but_to_read() {
        let sql = reader_grants_sql(&"shop_plugins".parse().unwrap());
        assert!(sql.contains(r"GRANT SELECT ON `shop\_plugins`.* TO"), "{sql}");
        assert_eq!(sql.matches("GRANT").count(), 1, "{sql}");
    }

    #[test]
    fn the_catalog_is_put_in_with_its_underscores_escaped() {
        let sql = grants_sql(&"shop_plugins".parse().unwrap());
        assert!(sql.contains(r"ON `shop\_plugins`.*"), "{sql}");
        assert!(!sql.contains("ruoyi"), "{sql}");
    }
}
