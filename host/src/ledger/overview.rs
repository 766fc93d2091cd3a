//! What of the ledger a person has to see first.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Ledger;
use super::consistency;
use super::listing::{ListError, Page, has_standing, page};
use super::receipt::Standing;
use super::row::selection;
use super::sql::{self, TABLE};
use crate::target::TargetConnection;

/// Receipts that [`Ledger::unsettled`] gives at most.
const UNSETTLED_COUNT_MAX: u32 = 100;

/// How many receipts are in which state; states that none is in are not there.
pub type StandingCounts = BTreeMap<Standing, u64>;

/// How many receipts there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceiptCounts {
    /// In which state.
    pub by_standing: StandingCounts,
    /// Whatever their state, of those that were edited by hand: their steps are refused.
    pub edited: u64,
}

impl Ledger {
    /// The receipts that were edited by hand, then those that are neither done nor held by a known
    /// holder, in the order of [`Standing::UNSETTLED`], of each the youngest first; at most `size` and
    /// at most 100. Reads every row.
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
        let edited = consistency::is_edited("r");
        let mut rank = format!("CASE WHEN {edited} THEN -1");
        let mut any = vec![format!("({edited})")];
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

    /// How many receipts are in which state, and how many were edited by hand. Reads every row: for
    /// people and for monitors that ask a few times a minute.
    ///
    /// # Errors
    ///
    /// The target's server did not answer as it should.
    pub async fn counts(
        &self,
        connection: &mut TargetConnection,
    ) -> Result<ReceiptCounts, ListError> {
        let options = self.options();
        let mut case = String::from("CASE");
        for standing in Standing::ALL {
            let condition = has_standing(*standing, options.executions_max);
            let _ = write!(case, " WHEN {condition} THEN '{}'", standing.as_str());
        }
        let query = format!(
            "SELECT counted.standing, COUNT(*) AS receipt_count, SUM(counted.is_edited) AS edited_count \
             FROM (SELECT {case} END AS standing, IF({}, 1, 0) AS is_edited FROM {TABLE} r) counted \
             WHERE counted.standing IS NOT NULL GROUP BY counted.standing",
            consistency::is_edited("r")
        );
        let mut counts = ReceiptCounts::default();
        for row in sql::rows(connection, options.statement_timeout, &query).await? {
            let count = |column| row.required(column).map_err(super::LedgerFault::from);
            let standing = row.required("standing").map_err(super::LedgerFault::from)?;
            counts.by_standing.insert(standing, count("receipt_count")?);
            counts.edited = counts.edited.saturating_add(count("edited_count")?);
        }
        Ok(counts)
    }
}
