//! The SQL that makes a confined account.

use crate::ids::Catalog;

/// The script operators run by hand; its names are the original request's.
const TEMPLATE: &str = include_str!("../../../sql/factory_plugin_sql_target_grants.sql");

/// The catalog the script is written for.
const TEMPLATE_CATALOG: &str = "ruoyi_plugin_preview";

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalog_is_put_in_with_its_underscores_escaped() {
        let sql = grants_sql(&"shop_plugins".parse().unwrap());
        assert!(sql.contains(r"ON `shop\_plugins`.*"), "{sql}");
        assert!(!sql.contains("ruoyi"), "{sql}");
    }
}
