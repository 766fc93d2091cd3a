//! A slot's control connection: opened when it is needed, and again after it broke.

use super::Shared;
use crate::control::ControlConnection;
use crate::executor::Missing;
use crate::metrics::{RenewedLease, metrics};
use crate::outbox::{Belonging, Claim, ClaimLost, OutboxFault, Recorded, Report};
use crate::text::with_causes;

/// The control server did not answer, or not as it must; the code says how.
#[derive(Debug, Clone, Copy)]
pub(super) struct Away {
    pub(super) code: &'static str,
}

/// A control connection, or none for now.
#[derive(Debug, Default)]
pub(super) struct Link(Option<ControlConnection>);

impl Link {
    pub(super) async fn claim(&mut self, shared: &Shared) -> Result<Option<Claim>, Away> {
        let claimed = shared.outbox.claim(self.open(shared).await?).await;
        self.checked(shared, claimed)
    }

    pub(super) async fn is_idle(&mut self, shared: &Shared) -> Result<bool, Away> {
        let is_idle = shared.outbox.is_idle(self.open(shared).await?).await;
        self.checked(shared, is_idle)
    }

    pub(super) async fn due_elsewhere(&mut self, shared: &Shared) -> Result<Vec<Belonging>, Away> {
        let found = shared.outbox.due_elsewhere(self.open(shared).await?).await;
        self.checked(shared, found)
    }

    pub(super) async fn renew(&mut self, shared: &Shared, claim: &Claim) -> Result<bool, Away> {
        let renewed = match self.open(shared).await {
            Ok(connection) => {
                let renewed = shared.outbox.renew(connection, claim).await;
                self.checked(shared, renewed)
            }
            Err(away) => Err(away),
        };
        metrics().renewal(
            RenewedLease::Delivery,
            match &renewed {
                Ok(true) => "renewed",
                Ok(false) => "lost",
                Err(_) => "error",
            },
        );
        renewed
    }

    pub(super) async fn record(
        &mut self,
        shared: &Shared,
        claim: &Claim,
        report: &Report,
    ) -> Result<Result<Recorded, ClaimLost>, Away> {
        let recorded = shared.outbox.record(self.open(shared).await?, claim, report).await;
        self.checked(shared, recorded)
    }

    pub(super) async fn close(self) {
        if let Some(connection) = self.0 {
            connection.close().await;
        }
    }

    async fn open(&mut self, shared: &Shared) -> Result<&mut ControlConnection, Away> {
        let connection = match self.0.take() {
            Some(connection) => connection,
            None => shared.control.open().await.map_err(|error| {
                let cause = Missing::new(error.code(), with_causes(&error), error.help());
                shared.readiness.is_away(cause);
                Away { code: error.code() }
            })?,
        };
        Ok(self.0.insert(connection))
    }

    /// After a fault the connection is not used again: whatever it was, a new one is in order.
    fn checked<T>(&mut self, shared: &Shared, answer: Result<T, OutboxFault>) -> Result<T, Away> {
        match answer {
            Ok(answer) => {
                shared.readiness.answers();
                Ok(answer)
            }
            Err(fault) => {
                self.0 = None;
                let cause = Missing::new(fault.code(), with_causes(&fault), fault.help());
                shared.readiness.is_away(cause);
                Err(Away { code: fault.code() })
            }
        }
    }
}
