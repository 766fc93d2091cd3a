//! System variables, as far as a server has them.

use std::collections::BTreeMap;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::failure::ServerFailure;

/// The variables asked for that the server has, by lowercase name.
///
/// `SHOW VARIABLES … IN (…)` leaves out what a server does not know, where `SELECT @@x` would fail:
/// one round trip serves MySQL 5.6 to 9 and MariaDB (manual, "SHOW VARIABLES Statement").
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Variables(BTreeMap<String, String>);

impl Variables {
    /// Reads session values, or global ones where there is no session value.
    pub(crate) async fn session(conn: &mut Conn, names: &[&str]) -> Result<Self, ServerFailure> {
        Self::read(conn, "SHOW VARIABLES", names).await
    }

    /// Reads status counters.
    pub(crate) async fn status(conn: &mut Conn, names: &[&str]) -> Result<Self, ServerFailure> {
        Self::read(conn, "SHOW GLOBAL STATUS", names).await
    }

    async fn read(conn: &mut Conn, show: &str, names: &[&str]) -> Result<Self, ServerFailure> {
        // Names are constants of this host, never input.
        let statement = format!("{show} WHERE Variable_name IN ('{}')", names.join("','"));
        let rows: Vec<(String, Option<String>)> =
            conn.query(statement).await.map_err(|error| ServerFailure::of(&error))?;
        let value = |(name, value): (String, Option<String>)| {
            (name.to_ascii_lowercase(), value.unwrap_or_default())
        };
        Ok(Self(rows.into_iter().map(value).collect()))
    }

    /// The value, when the server has the variable.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The value as a number.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.value(name)?.parse().ok()
    }

    /// Whether the variable is there and says anything but off.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.value(name).is_some_and(|value| {
            !["", "0", "OFF", "NO", "NONE"].iter().any(|off| off.eq_ignore_ascii_case(value))
        })
    }

    /// Every name and value.
    pub(crate) fn into_map(self) -> BTreeMap<String, String> {
        self.0
    }
}

#[cfg(test)]
impl Variables {
    /// Values a test made up.
    pub(crate) fn given(values: &[(&str, &str)]) -> Self {
        Self(values.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect())
    }
}
