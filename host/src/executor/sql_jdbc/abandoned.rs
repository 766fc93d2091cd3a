//! Steps whose execution was dropped in the middle: their session is ended and their lease given back.
//!
//! A dropped future cannot do that itself, and without it the next delivery waits out the lease.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::SqlJdbcV1;
use crate::ids::StepKey;
use crate::ledger::{Inspection, Lease};

/// Leases remembered. One that is forgotten ends by itself, at its deadline.
const HELD_MAX: usize = 256;

/// The leases of executions that were dropped.
#[derive(Debug, Default)]
pub(super) struct Held(Mutex<VecDeque<Lease>>);

/// An execution under its lease. Dropping it means that the execution was dropped.
#[derive(Debug)]
pub(super) struct Holding<'a> {
    held: &'a Held,
    lease: Option<&'a Lease>,
}

impl Held {
    /// Watches over an execution.
    pub(super) fn hold<'a>(&'a self, lease: &'a Lease) -> Holding<'a> {
        Holding { held: self, lease: Some(lease) }
    }

    fn add(&self, lease: &Lease) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.truncate(HELD_MAX - 1);
        held.push_front(lease.clone());
    }

    /// Takes those of a step. Another execution of it that is alive is not among them.
    fn take(&self, key: &StepKey) -> VecDeque<Lease> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (of_step, others) = held.drain(..).partition(|lease| lease.key() == key);
        *held = others;
        of_step
    }
}

impl Holding<'_> {
    /// The execution came to its end.
    pub(super) fn ended(mut self) {
        self.lease = None;
    }
}

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        if let Some(lease) = self.lease {
            self.held.add(lease);
        }
    }
}

impl SqlJdbcV1 {
    /// Ends what a dropped execution of the step left: its session first, then its lease. What cannot
    /// be reached is left to the lease's deadline and to whoever takes the step over.
    pub(super) async fn give_up(&self, key: &StepKey) {
        for lease in self.held.take(key) {
            let Some((mut connection, Inspection::NotCommitted)) = self.inspected(&lease).await
            else {
                continue;
            };
            match self.ledger.give_back(&mut connection, &lease).await {
                Ok(()) => tracing::info!("the dropped step's lease is given back"),
                Err(error) => {
                    tracing::warn!(code = error.code(), "a dropped step's lease runs on");
                }
            }
            connection.close().await;
        }
    }
}
