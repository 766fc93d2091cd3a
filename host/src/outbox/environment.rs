//! The environment a row belongs to.
//!
//! Several environments may share a control catalog. A plan belongs to the one it was submitted
//! under, for good: only a worker of that environment claims its steps, and only under that one it is
//! taken back.

use std::fmt;

use super::Outbox;
use super::fault::OutboxFault;
use super::sql::{self, DUE_INDEX, TABLE};
use crate::control::ControlConnection;
use crate::ids::EnvironmentCode;
use crate::session::{Columns, UnreadableColumn};

/// What the column holds where no target is configured. No environment's code begins so.
const NONE: &str = "-";

/// Environments looked at for due steps; each costs two reads of an index at most.
pub(super) const ENVIRONMENTS_MAX: usize = 16;

/// Where a plan belongs: to an environment, or to none while no target is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Belonging(pub Option<EnvironmentCode>);

impl Belonging {
    pub(super) fn read(row: &Columns) -> Result<Self, UnreadableColumn> {
        let text: String = row.required("environment_code")?;
        Ok(Self(if text == NONE { None } else { Some(row.required("environment_code")?) }))
    }

    /// As the column keeps it: `-` for none.
    pub fn as_str(&self) -> &str {
        self.0.as_ref().map_or(NONE, EnvironmentCode::as_str)
    }
}

impl fmt::Display for Belonging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(environment) => write!(f, "the environment `{environment}`"),
            None => f.write_str("no environment"),
        }
    }
}

impl Outbox {
    /// Where its plans belong.
    pub fn belonging(&self) -> Belonging {
        Belonging(self.options.environment.clone())
    }

    /// Where due steps wait that no worker of this environment takes. Reads two entries of an index
    /// for each environment that has PENDING steps, and looks at 16 of them at most.
    ///
    /// # Errors
    ///
    /// The control server did not answer as it should.
    pub async fn due_elsewhere(
        &self,
        connection: &mut ControlConnection,
    ) -> Result<Vec<Belonging>, OutboxFault> {
        let next = format!(
            "SELECT environment_code FROM {TABLE} FORCE INDEX ({DUE_INDEX}) \
             WHERE status = 'PENDING' AND environment_code > ? ORDER BY environment_code LIMIT 1"
        );
        let due = format!(
            "SELECT id FROM {TABLE} FORCE INDEX ({DUE_INDEX}) WHERE status = 'PENDING' \
             AND environment_code = ? AND not_before <= UTC_TIMESTAMP(6) LIMIT 1"
        );
        let own = self.belonging();
        let mut found = Vec::new();
        let mut after = String::new();
        for _ in 0..ENVIRONMENTS_MAX {
            let rows = sql::rows(connection, &next, vec![after.as_str().into()]).await?;
            let Some(row) = rows.first() else { break };
            let belonging = Belonging::read(row)?;
            after = belonging.as_str().to_owned();
            if belonging != own
                && !sql::rows(connection, &due, vec![after.as_str().into()]).await?.is_empty()
            {
                found.push(belonging);
            }
        }
        Ok(found)
    }
}
