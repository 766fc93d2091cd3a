//! What of the ledger a person has to see first.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Ledger;
use super::listing::{ListError, Page, has_standing, page};
use super::receipt::Standing;
use super::row::selection;
use super::sql::{self, TABLE};
use crate::target::TargetConnection;

/// Receipts that [`Ledger::unsettled`] gives at most.
const UNSETTLED_COUNT_MAX: u32 = 100;

/// How many receipts are in which state; states that none is in are not there.
pub type StandingCounts = BTreeMap<Standing, u64>;

impl Ledger {
    /// The receipts that are neither done nor held by a known holder, in the order of
    /// [`Standing::UNSETTLED`], of each state the youngest first; at most `size` and at most 100.
    ///
    /// # Errors
    ///
    /// The target's server did not answer as it should.
    pub async fn unsettled(
        &self,
        connection: &mut TargetConnection,
        size: u32,
    ) -> Result<Page, ListError> {
        let options = self.options();
        let size = size.clamp(1, UNSETTLED_COUNT_MAX);
        let mut rank = String::from("CASE");
        let mut any = Vec::new();
        for (place, standing) in Standing::UNSETTLED.iter().enumerate() {
            let condition = has_standing(*standing, options.executions_max);
            let _ = write!(rank, " WHEN {condition} THEN {place}");
            any.push(format!("({condition})"));
        }
        let query = format!(
            "SELECT {} FROM {TABLE} r WHERE {} ORDER BY {rank} END, r.id DESC LIMIT {size}",
            selection("r"),
            any.join(" OR ")
        );
        let rows = sql::rows(connection, options.statement_timeout, &query).await?;
        Ok(page(&rows, options.executions_max)?)
    }

    /// How many receipts are in which state. Reads every row: for people and for monitors that ask
    /// a few times a minute.
    ///
    /// # Errors
    ///
    /// The target's server did not answer as it should.
    pub async fn counts(
        &self,
        connection: &mut TargetConnection,
    ) -> Result<StandingCounts, ListError> {
        let options = self.options();
        let mut case = String::from("CASE");
        for standing in Standing::ALL {
            let condition = has_standing(*standing, options.executions_max);
            let _ = write!(case, " WHEN {condition} THEN '{}'", standing.as_str());
        }
        let query = format!(
            "SELECT counted.standing, COUNT(*) AS receipt_count \
             FROM (SELECT {case} END AS standing FROM {TABLE} r) counted \
             WHERE counted.standing IS NOT NULL GROUP BY counted.standing"
        );
        let mut counts = StandingCounts::new();
        for row in sql::rows(connection, options.statement_timeout, &query).await? {
            let count = |column| row.required(column).map_err(super::LedgerFault::from);
            let standing = row.required("standing").map_err(super::LedgerFault::from)?;
            counts.insert(standing, count("receipt_count")?);
        }
        Ok(counts)
    }
}
