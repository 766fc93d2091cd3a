//! Reading receipts, and ending a lease at an operator's word.

use super::fault::LedgerFault;
use super::receipt::{Receipt, Standing};
use super::row::{LedgerRow, selection};
use super::sql::{self, TABLE, literal};
use super::state::{
    Answer, Event, Executions, LeaseTime, Previous, State, Transition, Whose, transition,
};
use super::{Ledger, writes};
use crate::blame::Blame;
use crate::ids::{Direction, EnvironmentCode, PluginCode, StepKey};
use crate::paging::{Place, Slice};
use crate::session::Columns;
use crate::target::TargetConnection;

/// Most receipts on a page.
pub const PAGE_SIZE_MAX: u32 = 500;

/// Which receipts to list. The default lists all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of this environment only.
    pub environment: Option<EnvironmentCode>,
    /// Of this plugin only.
    pub plugin: Option<PluginCode>,
    /// Of this direction only.
    pub direction: Option<Direction>,
    /// Of which this can be said now.
    pub standing: Option<Standing>,
}

/// A page of receipts, the youngest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The receipts.
    pub receipts: Vec<Receipt>,
    /// Below which number the next, older page lies; `None` when there is none. Receipts that are added
    /// later are younger, so they shift nothing.
    pub next: Option<u64>,
    /// Above which number the next, younger page lies; `None` where nothing is known to be younger.
    pub newer: Option<u64>,
    /// Rows in between that do not read as this version writes them: edited by hand, or of a newer
    /// version. They hide no other receipt.
    pub unreadable: Vec<UnreadableRow>,
}

/// A row of the ledger that is no receipt as this version writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableRow {
    /// Order of first claim.
    pub id: u64,
    /// The step's key as it stands there, as far as it is text.
    pub key: Option<String>,
    /// The first column that does not read.
    pub column: &'static str,
}

/// A receipt could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the receipt could not be read")]
pub struct ReadError(#[from] LedgerFault);

/// Receipts could not be listed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the receipts could not be listed")]
pub struct ListError(#[from] LedgerFault);

/// A lease was not ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReleaseError {
    /// There is no such receipt.
    #[error("no receipt has the key `{0}`")]
    NoReceipt(StepKey),
    /// The step is not running.
    #[error("the step `{0}` holds no lease")]
    NotRunning(StepKey),
    /// The receipt changed since it was looked at.
    #[error("the receipt of `{0}` changed meanwhile")]
    Changed(StepKey),
    /// The server refused, or its answer was lost.
    #[error("the lease could not be ended")]
    Fault(#[from] LedgerFault),
}

macro_rules! fault_codes {
    ($($error:ident),*) => { $(
        impl $error {
            /// The stable code.
            pub const fn code(&self) -> &'static str {
                self.0.code()
            }

            /// Who can do something about it.
            pub const fn blame(&self) -> Blame {
                self.0.blame()
            }

            /// What to do about it.
            pub const fn help(&self) -> &'static str {
                self.0.help()
            }
        }
    )* };
}

fault_codes!(ReadError, ListError);

impl ReleaseError {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoReceipt(_) => "receipt-unknown",
            Self::NotRunning(_) => "receipt-not-running",
            Self::Changed(_) => "receipt-changed",
            Self::Fault(fault) => fault.code(),
        }
    }

    /// Who can do something about it.
    pub const fn blame(&self) -> Blame {
        match self {
            Self::NoReceipt(_) | Self::NotRunning(_) | Self::Changed(_) => Blame::Operator,
            Self::Fault(fault) => fault.blame(),
        }
    }

    /// What to do about it.
    pub const fn help(&self) -> &'static str {
        match self {
            Self::NoReceipt(_) | Self::NotRunning(_) => {
                "run `tollgate receipts` to see what is there"
            }
            Self::Changed(_) => "look at the receipt again",
            Self::Fault(fault) => fault.help(),
        }
    }
}

impl Ledger {
    /// The receipt of a step, as it stands now.
    pub async fn read(
        &self,
        connection: &mut TargetConnection,
        key: &StepKey,
    ) -> Result<Option<Receipt>, ReadError> {
        Ok(self.read_row(connection, key).await?.map(|row| row.receipt))
    }

    /// Those of the steps that are done, pruned or not.
    pub async fn done(
        &self,
        connection: &mut TargetConnection,
        keys: &[StepKey],
    ) -> Result<Vec<StepKey>, ReadError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let listed: Vec<String> = keys.iter().map(|key| literal(key.as_str())).collect();
        let query = format!(
            "SELECT r.step_idempotency_key AS step_key FROM {TABLE} r \
             WHERE r.status IN ('SUCCEEDED', 'PRUNED') AND r.step_idempotency_key IN ({})",
            listed.join(", ")
        );
        let rows = sql::rows(connection, self.options().statement_timeout, &query).await?;
        let read = |columns: &Columns| columns.required("step_key");
        Ok(rows.iter().map(read).collect::<Result<_, _>>().map_err(LedgerFault::from)?)
    }

    /// A page of receipts at a place, such as below [`Page::next`]; at most `size` and at most 500.
    pub async fn list(
        &self,
        connection: &mut TargetConnection,
        filter: &Filter,
        place: impl Into<Place>,
        size: u32,
    ) -> Result<Page, ListError> {
        let options = self.options();
        let (place, size) = (place.into(), size.clamp(1, PAGE_SIZE_MAX));
        let mut conditions = conditions(filter, options.executions_max);
        conditions.extend(place.condition("r.id"));
        let matching = if conditions.is_empty() {
            String::new()
        } else {
            format!(" WHERE {}", conditions.join(" AND "))
        };
        // One more than asked for tells whether another page follows.
        let query = format!(
            "SELECT {} FROM {TABLE} r{matching} ORDER BY r.id {} LIMIT {}",
            selection("r"),
            place.order(),
            size + 1
        );
        let rows = sql::rows(connection, options.statement_timeout, &query).await?;
        let Slice { items, newer, older } = Slice::cut(rows, place, size, row_id)?;
        Ok(Page { next: older, newer, ..page(&items, options.executions_max)? })
    }

    /// Ends a lease at an operator's word, when the server's clock put its deadline out of reach.
    ///
    /// The next delivery takes the step over and makes sure that its holder's session is gone; the
    /// receipt's last error code says `released-by-operator` until then.
    ///
    /// # Errors
    ///
    /// The step is unknown, not running, or its receipt has another generation than the operator saw.
    pub async fn release(
        &self,
        connection: &mut TargetConnection,
        key: &StepKey,
        generation: u64,
    ) -> Result<(), ReleaseError> {
        let row = self.read_row(connection, key).await?;
        let Some(row) = row else {
            return Err(ReleaseError::NoReceipt(key.clone()));
        };
        let state = State::Running {
            whose: Whose::Other,
            lease: LeaseTime::Open,
            previous: Previous::Present,
            executions: Executions::BelowBound,
        };
        let state = match row.receipt.status {
            super::Status::Running => state,
            super::Status::Succeeded | super::Status::Pruned => State::Succeeded { by_me: false },
            super::Status::Failed => State::Failed {
                by_me: false,
                previous: Previous::Gone,
                executions: Executions::BelowBound,
            },
        };
        let Transition { write: Some(_), answer: Answer::Released } =
            transition(state, Event::Release)
        else {
            return Err(ReleaseError::NotRunning(key.clone()));
        };
        if row.receipt.generation != generation {
            return Err(ReleaseError::Changed(key.clone()));
        }
        let bound = self.options().statement_timeout;
        if sql::execute(connection, bound, &writes::end_lease(&row)).await? != 1 {
            return Err(ReleaseError::Changed(key.clone()));
        }
        tracing::warn!(key = key.as_str(), generation, "a lease was ended by an operator");
        Ok(())
    }

    async fn read_row(
        &self,
        connection: &mut TargetConnection,
        key: &StepKey,
    ) -> Result<Option<LedgerRow>, LedgerFault> {
        let query = format!(
            "SELECT {} FROM {TABLE} r WHERE r.step_idempotency_key = {}",
            selection("r"),
            literal(key.as_str())
        );
        let options = self.options();
        let rows = sql::rows(connection, options.statement_timeout, &query).await?;
        match rows.first() {
            Some(columns) => LedgerRow::read(columns, options.executions_max),
            None => Ok(None),
        }
    }
}

/// The receipts of these rows, and the rows that are none. There is no other page.
pub(super) fn page(rows: &[Columns], executions_max: u32) -> Result<Page, LedgerFault> {
    let mut page = Page { receipts: Vec::new(), next: None, newer: None, unreadable: Vec::new() };
    for columns in rows {
        match LedgerRow::read(columns, executions_max) {
            Ok(row) => page.receipts.extend(row.map(|row| row.receipt)),
            Err(LedgerFault::Unreadable { column }) => {
                let key = columns.text("step_idempotency_key").unwrap_or_default();
                page.unreadable.push(UnreadableRow { id: row_id(columns)?, key, column });
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(page)
}

fn row_id(columns: &Columns) -> Result<u64, LedgerFault> {
    Ok(columns.required("id")?)
}

fn conditions(filter: &Filter, executions_max: u32) -> Vec<String> {
    let mut conditions = Vec::new();
    if let Some(environment) = &filter.environment {
        conditions.push(format!("r.environment_code = {}", literal(environment.as_str())));
    }
    if let Some(plugin) = &filter.plugin {
        conditions.push(format!("r.plugin_code = {}", literal(plugin.as_str())));
    }
    if let Some(direction) = filter.direction {
        conditions.push(format!("r.direction = {}", literal(direction.as_str())));
    }
    conditions.extend(filter.standing.map(|standing| has_standing(standing, executions_max)));
    conditions
}

/// [`Standing`] as a condition; it says the same as the reading of a row does.
pub(super) fn has_standing(standing: Standing, executions_max: u32) -> String {
    let over = "r.status = 'RUNNING' AND r.lease_deadline <= UTC_TIMESTAMP(6)";
    let marked = format!("{} IS NOT NULL", super::row::marker_holder("r"));
    let at_bound = format!("r.execution_count >= {executions_max}");
    match standing {
        Standing::Running => {
            "r.status = 'RUNNING' AND r.lease_deadline > UTC_TIMESTAMP(6)".to_owned()
        }
        Standing::PossiblyStillRunning => format!("{over} AND {marked}"),
        Standing::LeaseExpired => format!("{over} AND NOT ({marked}) AND NOT ({at_bound})"),
        Standing::Succeeded => "r.status = 'SUCCEEDED' AND r.execution_count > 0".to_owned(),
        Standing::NotApplicable => "r.status = 'SUCCEEDED' AND r.execution_count = 0".to_owned(),
        Standing::Pruned => "r.status = 'PRUNED'".to_owned(),
        Standing::Failed => format!("r.status = 'FAILED' AND NOT ({at_bound})"),
        Standing::NeedsAttention => {
            format!("{at_bound} AND (r.status = 'FAILED' OR ({over} AND NOT ({marked})))")
        }
    }
}
