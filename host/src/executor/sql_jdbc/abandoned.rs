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

/// The leases under which payloads run, or ran until they were dropped.
#[derive(Debug, Default)]
pub(super) struct Held(Mutex<VecDeque<Lease>>);

impl Held {
    pub(super) fn add(&self, lease: &Lease) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.truncate(HELD_MAX - 1);
        held.push_front(lease.clone());
    }

    pub(super) fn remove(&self, lease: &Lease) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|other| other != lease);
    }

    /// Takes those of a step.
    fn take(&self, key: &StepKey) -> VecDeque<Lease> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (of_step, others) = held.drain(..).partition(|lease| lease.key() == key);
        *held = others;
        of_step
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
