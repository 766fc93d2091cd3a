//! Whether the ledger still has what an earlier step left there.

use super::registry::ExecutorRegistry;
use crate::ids::{ExecutorCode, StepKey};
use crate::ledger::ReadError;
use crate::target::{SessionContract, TargetError};

/// It is not known whether there is a receipt.
#[derive(Debug, thiserror::Error)]
pub enum ReceiptUnread {
    /// The target was not opened.
    #[error("the target was not opened")]
    Target(#[from] TargetError),
    /// The ledger was not read.
    #[error("the ledger was not read")]
    Ledger(#[from] ReadError),
}

impl ReceiptUnread {
    /// The stable code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Target(error) => error.code(),
            Self::Ledger(error) => error.code(),
        }
    }
}

impl ExecutorRegistry {
    /// Whether the ledger knows a step as done that this executor applied; none for executors that
    /// keep their receipts elsewhere or nowhere.
    ///
    /// # Errors
    ///
    /// The target or its ledger did not answer as it should.
    pub async fn has_receipt(
        &self,
        executor: &ExecutorCode,
        key: &StepKey,
    ) -> Result<Option<bool>, ReceiptUnread> {
        let Some((sessions, ledger)) = self.ledger_of(executor) else { return Ok(None) };
        let mut connection = sessions.confirmed_session(&SessionContract::default()).await?;
        let done = ledger.done(&mut connection, std::slice::from_ref(key)).await?;
        sessions.keep(connection).await;
        Ok(Some(!done.is_empty()))
    }
}
