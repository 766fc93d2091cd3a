//! The reference worker: claims steps from the control outbox, has executors carry them out, and
//! records what came of it.
//!
//! A [`Worker`] has a fixed number of slots. Each has a control connection of its own, carries out
//! one step at a time outside any control transaction, and renews its claim beside it. One turnstile
//! lets a single slot look for work at a time, at an interval that adapts; so a worker asks the
//! control server no more often the more slots it has, and takes no more than it can carry out.
//!
//! Any number of workers, on any number of machines, share one outbox: nothing but the control
//! server coordinates them.
//!
//! [`check_control`] is what has to hold before a worker is started, [`check_plan`] before a plan is
//! enqueued; [`reconcile()`] holds what was applied
//! against the ledger.

mod delivery;
mod drain;
mod elsewhere;
mod link;
mod pace;
mod readiness;
mod receipt;
mod reconcile;
mod slot;
mod start;
mod submission;
mod tally;
mod target_watch;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, Notify};
use tokio::task::JoinSet;

use crate::config::{Config, WorkerBounds};
use crate::control::Control;
use crate::executor::ExecutorRegistry;
use crate::outbox::{Outbox, OutboxOptions};
use crate::plan::ContributionCatalog;

use self::elsewhere::Elsewhere;
use self::pace::Pace;
use self::readiness::Watch;
use self::tally::Tally;

pub use drain::Drain;
pub use readiness::{NotReady, Readiness, Trouble};
pub(crate) use readiness::{by_side, reason_words};
pub use reconcile::{ReconcileError, reconcile};
pub use start::{StartError, check_control};
pub use submission::{StepProblem, SubmissionError, check_plan};
pub use tally::Ended;

/// Bounds of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerOptions {
    /// Steps carried out at once, at least one.
    pub concurrency: usize,
    /// How long running steps may go on once a drain is asked for.
    pub grace: Duration,
    /// Whose outbox it works on, and its bounds.
    pub outbox: OutboxOptions,
    /// Drain as soon as nothing is left to do: no step is due now or later, and none is claimed.
    pub until_idle: bool,
}

impl From<&Config> for WorkerOptions {
    fn from(config: &Config) -> Self {
        Self {
            concurrency: config.worker.concurrency,
            grace: config.worker.grace,
            outbox: OutboxOptions::from(config),
            until_idle: false,
        }
    }
}

impl Default for WorkerOptions {
    fn default() -> Self {
        let bounds = WorkerBounds::default();
        Self {
            concurrency: bounds.concurrency,
            grace: bounds.grace,
            outbox: OutboxOptions::default(),
            until_idle: false,
        }
    }
}

/// A worker on one control outbox.
pub struct Worker {
    shared: Arc<Shared>,
}

/// What the slots of a worker share.
struct Shared {
    control: Control,
    outbox: Outbox,
    registry: Arc<ExecutorRegistry>,
    contributions: Arc<dyn ContributionCatalog>,
    options: WorkerOptions,
    drain: Drain,
    readiness: Watch,
    tally: Tally,
    /// Only its holder looks for work; what it guards is the interval of looking.
    turnstile: Mutex<Pace>,
    elsewhere: Mutex<Elsewhere>,
    /// A step of ours made the next one due.
    work: Notify,
}

impl Worker {
    /// A worker. Nothing is opened before [`Worker::run`].
    pub fn new(
        control: Control,
        registry: Arc<ExecutorRegistry>,
        contributions: Arc<dyn ContributionCatalog>,
        options: WorkerOptions,
    ) -> Self {
        let drain = Drain::default();
        Self {
            shared: Arc::new(Shared {
                control,
                outbox: Outbox::new(options.outbox.clone()),
                registry,
                contributions,
                options,
                readiness: Watch::default(),
                tally: Tally::default(),
                drain,
                turnstile: Mutex::default(),
                elsewhere: Mutex::default(),
                work: Notify::new(),
            }),
        }
    }

    /// Asks this worker to stop; may be kept and used from anywhere.
    pub fn drain(&self) -> Drain {
        self.shared.drain.clone()
    }

    /// What it can do now.
    pub fn readiness(&self) -> Readiness {
        self.shared.readiness.now(self.shared.drain.is_requested())
    }

    /// Works until a drain is asked for and over. Dropping the future stops it in the middle: what
    /// it had claimed is free again when the leases are over.
    pub async fn run(&self) -> Ended {
        let shared = &self.shared;
        let mut slots = JoinSet::new();
        for _ in 0..shared.options.concurrency.max(1) {
            slots.spawn(slot::run(Arc::clone(shared)));
        }
        let grace = async {
            shared.drain.requested().await;
            tokio::time::sleep(shared.options.grace).await;
            shared.drain.end_grace();
        };
        let looking = target_watch::keep(shared);
        tokio::pin!(grace, looking);
        let mut is_over = false;
        loop {
            tokio::select! {
                joined = slots.join_next() => match joined {
                    None => {
                        shared.registry.rest().await;
                        return shared.tally.ended();
                    }
                    Some(Ok(())) => {}
                    Some(Err(error)) => {
                        // An executor's panic: its step's claim runs out, the slot is replaced.
                        tracing::error!(panicked = error.is_panic(), "a slot of the worker ended early");
                        if !shared.drain.is_requested() {
                            slots.spawn(slot::run(Arc::clone(shared)));
                        }
                    }
                },
                () = &mut grace, if !is_over => is_over = true,
                // It ends with this future: nobody asks a worker that is gone.
                () = &mut looking => {}
            }
        }
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("options", &self.shared.options)
            .field("readiness", &self.readiness())
            .finish_non_exhaustive()
    }
}
