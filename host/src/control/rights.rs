//! Whether the control account may do what is asked of it.

use mysql_async::prelude::Queryable as _;

use super::{ControlConnection, ControlError};
use crate::session::{GrantReading, Rights, ServerFailure, Variables};

impl ControlConnection {
    /// Compares the account's grants with the rights it needs in its catalog. Three round trips, so for
    /// whoever looks once.
    ///
    /// # Errors
    ///
    /// No grant gives it one of them, or the server did not answer as it should. Where a grant is not
    /// understood nothing is said to be missing.
    pub async fn check_rights(&mut self, needed: &[&'static str]) -> Result<(), ControlError> {
        let missing = self.lacking(needed).await.map_err(ControlError::Server)?;
        if missing.is_empty() { Ok(()) } else { Err(ControlError::GrantsMissing { missing }) }
    }

    async fn lacking(
        &mut self,
        needed: &[&'static str],
    ) -> Result<Vec<&'static str>, ServerFailure> {
        let found: Option<Option<String>> = self
            .conn
            .query_first("SELECT DATABASE()")
            .await
            .map_err(|error| ServerFailure::of(&error))?;
        let catalog = found.flatten().unwrap_or_default();
        let names = ["lower_case_table_names", "partial_revokes"];
        let known = Variables::session(&mut self.conn, &names).await?;
        let reading = GrantReading {
            catalog: &catalog,
            folds_case: known.is_on("lower_case_table_names"),
            has_wildcards: !known.is_on("partial_revokes"),
        };
        Ok(Rights::read(&mut self.conn, reading).await?.lacking(needed))
    }
}
