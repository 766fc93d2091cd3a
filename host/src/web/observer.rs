//! Everything the page knows: the status, the ledger and the outbox, read and never written.
//!
//! Its sessions are ones in which the server itself refuses writes; there are few of them at once,
//! and whatever is away, a reading ends in bounded time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use super::decision::{Decided, Redecider};
use super::frame::Trouble;
use crate::config::{Config, ConfigErrors};
use crate::control::{Control, ControlConnection, ControlError};
use crate::executor::{PolicyStatus, RegistryStatus, StatusReader, session_contract};
use crate::ids::{Catalog, EnvironmentCode, StepKey};
use crate::ledger::{Filter, Ledger, LedgerOptions, Page, Receipt, ReceiptCounts};
use crate::outbox::{Counts, ListedStep, NeedingAttention, Outbox, OutboxFault, Status};
use crate::paging::{Place, Slice};
use crate::plan::FolderCatalog;
use crate::policy::Policy;
use crate::target::{Awaited, Late, ServerFailure, SessionContract, Target, TargetConnection};

/// How long reading from one server may take, waiting for a turn and connecting included. Shorter
/// than people wait.
const READ_BUDGET: Duration = Duration::from_secs(4);

/// How long a page waits for the target to be verified before it is answered without.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// Sessions on each server at once, at most: a page that everybody opens when something is down must
/// not be what takes the server down.
const SESSIONS_MAX: usize = 4;

/// Receipts and steps on a page.
pub(super) const PAGE_SIZE: u32 = 50;

/// What a person has to see first, at most.
pub(super) const ATTENTION_MAX: u32 = 20;

/// Reads what the page shows. It holds nothing that could run a payload or write a row.
pub struct Observer {
    status: Source,
    environment: Option<EnvironmentCode>,
    target: Option<Reading>,
    control: Option<Control>,
    outbox: Outbox,
    redecider: Option<Redecider>,
    target_sessions: Semaphore,
    control_sessions: Semaphore,
}

/// Where the status comes from.
enum Source {
    /// A configuration that can be used.
    Reader(Arc<StatusReader>),
    /// One that has problems, which are all there is to say.
    Broken(Box<RegistryStatus>),
}

/// The target, for reading.
struct Reading {
    target: Target,
    ledger: Ledger,
    contract: SessionContract,
}

/// What the ledger has to say at a glance.
pub(super) struct LedgerOverview {
    pub(super) counts: ReceiptCounts,
    pub(super) unsettled: Page,
}

/// What the outbox has to say at a glance.
pub(super) struct OutboxOverview {
    pub(super) counts: Counts,
    pub(super) attention: NeedingAttention,
    pub(super) oldest_due: Option<Duration>,
}

impl Observer {
    /// Reads the installation of a configuration; nothing is connected yet. With installed releases
    /// an execution's statements can be shown: they are decided again, by this policy.
    pub fn new(config: &Config, policy: &Policy, releases: Option<FolderCatalog>) -> Self {
        let sql = config.sql_target.as_ref();
        let redecider = match (sql, releases) {
            (Some(sql), Some(releases)) => {
                Some(Redecider::new(policy.clone(), sql.catalog.clone(), releases))
            }
            _ => None,
        };
        Self {
            status: Source::Reader(Arc::new(StatusReader::watching(config, policy))),
            environment: sql.map(|sql| sql.environment.clone()),
            target: sql.map(|sql| Reading {
                target: Target::new(sql).read_only(),
                // The states depend on the bound of executions.
                ledger: Ledger::new(LedgerOptions {
                    executions_max: sql.bounds.execution_count_max,
                    ..LedgerOptions::default()
                }),
                contract: session_contract(&policy.description().session),
            }),
            control: config.control.as_ref().map(|control| Control::new(control).read_only()),
            outbox: Outbox::default(),
            redecider,
            target_sessions: Semaphore::new(SESSIONS_MAX),
            control_sessions: Semaphore::new(SESSIONS_MAX),
        }
    }

    /// Shows what is wrong with a configuration that has problems; there is nothing else to read.
    pub fn of_broken(errors: &ConfigErrors, policy: Option<PolicyStatus>) -> Self {
        let status = RegistryStatus::of_broken(errors, policy);
        Self {
            environment: status.environment.clone(),
            status: Source::Broken(Box::new(status)),
            target: None,
            control: None,
            outbox: Outbox::default(),
            redecider: None,
            target_sessions: Semaphore::new(SESSIONS_MAX),
            control_sessions: Semaphore::new(SESSIONS_MAX),
        }
    }

    /// The environment the target stands for.
    pub(super) fn environment(&self) -> Option<&EnvironmentCode> {
        self.environment.as_ref()
    }

    /// Whether there is an outbox to read.
    pub(super) fn has_control(&self) -> bool {
        self.control.is_some()
    }

    /// Whether the target is disabled, so that there is no ledger to read: a state and no trouble.
    pub(super) fn is_disabled(&self) -> bool {
        self.target.is_none() && !self.is_broken()
    }

    /// Whether the configuration has problems.
    pub(super) fn is_broken(&self) -> bool {
        matches!(self.status, Source::Broken(_))
    }

    /// The status value, the same as `tollgate status` prints.
    pub(super) async fn status(&self) -> RegistryStatus {
        match &self.status {
            Source::Reader(reader) => reader.status().await,
            Source::Broken(status) => (**status).clone(),
        }
    }

    /// The same when it is there soon. The look goes on without whoever asked for it, so that the
    /// next one finds its answer.
    pub(super) async fn status_soon(&self) -> Option<RegistryStatus> {
        match &self.status {
            Source::Reader(reader) => {
                let reader = Arc::clone(reader);
                let looking = tokio::spawn(async move { reader.status().await });
                tokio::time::timeout(PATIENCE, looking).await.ok()?.ok()
            }
            Source::Broken(status) => Some((**status).clone()),
        }
    }

    /// What was missing when the target was last looked at, and how long ago that was.
    pub(super) fn last_missing(&self) -> Option<(RegistryStatus, Duration)> {
        self.known().and_then(StatusReader::last_missing)
    }

    /// What is known of the status before anything is looked at.
    pub(super) fn known(&self) -> Option<&StatusReader> {
        match &self.status {
            Source::Reader(reader) => Some(reader),
            Source::Broken(_) => None,
        }
    }

    /// Counts by state, and what is neither done nor held.
    pub(super) async fn ledger_overview(&self) -> Result<LedgerOverview, Trouble> {
        let what = "The executions cannot be read";
        self.on_target(what, async |reading, connection| {
            let counts = reading.ledger.counts(connection).await;
            let counts =
                counts.map_err(|error| Trouble::of(what, &error, error.code(), error.help()))?;
            let unsettled = reading.ledger.unsettled(connection, ATTENTION_MAX).await;
            let unsettled =
                unsettled.map_err(|error| Trouble::of(what, &error, error.code(), error.help()))?;
            Ok(LedgerOverview { counts, unsettled })
        })
        .await
    }

    /// A page of receipts; with it, when asked for, what is neither done nor held.
    pub(super) async fn executions(
        &self,
        filter: &Filter,
        place: Place,
        with_unsettled: bool,
    ) -> Result<(Page, Option<Page>), Trouble> {
        let what = "The executions cannot be read";
        self.on_target(what, async |reading, connection| {
            let page = reading.ledger.list(connection, filter, place, PAGE_SIZE).await;
            let page =
                page.map_err(|error| Trouble::of(what, &error, error.code(), error.help()))?;
            if !with_unsettled {
                return Ok((page, None));
            }
            let unsettled = reading.ledger.unsettled(connection, ATTENTION_MAX).await;
            let unsettled =
                unsettled.map_err(|error| Trouble::of(what, &error, error.code(), error.help()))?;
            Ok((page, Some(unsettled)))
        })
        .await
    }

    /// The receipt of a step.
    pub(super) async fn receipt(&self, key: &StepKey) -> Result<Option<Receipt>, Trouble> {
        let what = "The receipt cannot be read";
        self.on_target(what, async |reading, connection| {
            let receipt = reading.ledger.read(connection, key).await;
            receipt.map_err(|error| Trouble::of(what, &error, error.code(), error.help()))
        })
        .await
    }

    /// Counts by state, what needs a person, and how long the oldest step waits.
    pub(super) async fn outbox_overview(&self) -> Result<OutboxOverview, Trouble> {
        self.on_control("The outbox cannot be read", async |outbox, connection| {
            Ok(OutboxOverview {
                counts: outbox.counts(connection, None).await?,
                attention: outbox.needing_attention(connection, ATTENTION_MAX).await?,
                oldest_due: outbox.oldest_due(connection).await?,
            })
        })
        .await
    }

    /// A page of steps; with it, when asked for, what needs a person.
    pub(super) async fn steps(
        &self,
        status: Option<Status>,
        place: Place,
        with_attention: bool,
    ) -> Result<(Slice<ListedStep>, NeedingAttention), Trouble> {
        self.on_control("The outbox cannot be read", async |outbox, connection| {
            let page = outbox.page(connection, status, place, PAGE_SIZE).await?;
            if !with_attention {
                return Ok((page, NeedingAttention::default()));
            }
            Ok((page, outbox.needing_attention(connection, ATTENTION_MAX).await?))
        })
        .await
    }

    /// A step as the outbox has it.
    pub(super) async fn step(&self, key: &StepKey) -> Result<Option<ListedStep>, Trouble> {
        self.on_control("The delivery cannot be read", async |outbox, connection| {
            outbox.step(connection, key).await
        })
        .await
    }

    /// The statements of a receipt's payload, decided again; why not, when they cannot be.
    pub(super) async fn redecided(&self, receipt: &Receipt) -> Decided {
        match &self.redecider {
            Some(redecider) => redecider.decide(receipt).await,
            None => Decided::NotAsked,
        }
    }

    async fn on_target<T>(
        &self,
        what: &'static str,
        read: impl AsyncFnOnce(&Reading, &mut TargetConnection) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let Some(reading) = &self.target else { return Err(self.no_target(what)) };
        let awaited = Awaited::default();
        let work = async {
            let _turn = turn(&self.target_sessions, what).await?;
            let opened = reading.target.open_watched(&reading.contract, &awaited).await;
            let mut connection =
                opened.map_err(|error| Trouble::of(what, &error, error.code(), &error.help()))?;
            let read = read(reading, &mut connection).await;
            connection.close().await;
            read
        };
        let read = tokio::time::timeout(READ_BUDGET, work).await;
        read.unwrap_or_else(|_| {
            let Late { code, message, help } = awaited.late(READ_BUDGET);
            Err(Trouble::new(what, code, &message, &help))
        })
    }

    async fn on_control<T>(
        &self,
        what: &'static str,
        read: impl AsyncFnOnce(&Outbox, &mut ControlConnection) -> Result<T, OutboxFault>,
    ) -> Result<T, Trouble> {
        let Some(control) = &self.control else { return Err(self.no_control(what)) };
        let is_open = AtomicBool::new(false);
        let work = async {
            let _turn = turn(&self.control_sessions, what).await?;
            let opened = control.open().await;
            let mut connection =
                opened.map_err(|error| Trouble::of(what, &error, error.code(), error.help()))?;
            is_open.store(true, Ordering::Relaxed);
            let read = read(&self.outbox, &mut connection).await;
            connection.close().await;
            read.map_err(|fault| Trouble::of(what, &fault, fault.code(), fault.help()))
        };
        let read = tokio::time::timeout(READ_BUDGET, work).await;
        read.unwrap_or_else(|_| Err(late_control(what, is_open.load(Ordering::Relaxed))))
    }

    fn no_target(&self, what: &'static str) -> Trouble {
        self.lacking(
            what,
            "target-disabled",
            "the SQL target is disabled",
            "set `FACTORY_PLUGIN_SQL_TARGET_ENABLED=true`, then run `tollgate doctor`",
        )
    }

    fn no_control(&self, what: &'static str) -> Trouble {
        self.lacking(
            what,
            "control-not-configured",
            "no control catalog is configured",
            "set `FACTORY_PLUGIN_CONTROL_JDBC_URL` and its account",
        )
    }

    /// A side that is not configured; under a broken configuration nothing tells whether it would be.
    fn lacking(
        &self,
        what: &'static str,
        code: &'static str,
        message: &'static str,
        help: &'static str,
    ) -> Trouble {
        match &self.status {
            Source::Broken(_) => Trouble::new(
                what,
                "configuration-broken",
                "the configuration has problems",
                "mend the variables that the status names, then start `tollgate serve` again",
            ),
            Source::Reader(_) => Trouble::new(what, code, message, help),
        }
    }

    /// The catalog payloads may touch, when one is configured.
    pub(super) fn catalog(&self) -> Option<&Catalog> {
        self.target.as_ref().map(|reading| &reading.target.config().catalog)
    }
}

/// Waits for a turn, for half of the time there is: who has one by then has time to see what is silent.
/// The semaphores are never closed, and if one were, nobody would have a turn.
async fn turn<'a>(
    sessions: &'a Semaphore,
    what: &'static str,
) -> Result<SemaphorePermit<'a>, Trouble> {
    let turn = tokio::time::timeout(READ_BUDGET / 2, sessions.acquire()).await;
    turn.ok().and_then(Result::ok).ok_or_else(|| {
        let message =
            format!("the page reads there {SESSIONS_MAX} times already, and none has ended");
        Trouble::new(
            what,
            "page-busy",
            &message,
            "try again; the status tells what does not answer",
        )
    })
}

/// On a session that was opened the server does answer, so something there holds the reading up.
fn late_control(what: &'static str, is_open: bool) -> Trouble {
    let (held_up, silence) = (
        OutboxFault::TimedOut { bound: READ_BUDGET },
        ControlError::Server(ServerFailure::TimedOut),
    );
    if is_open {
        return Trouble::of(what, &held_up, held_up.code(), held_up.help());
    }
    let message = format!("the control catalog did not answer within {} s", READ_BUDGET.as_secs());
    Trouble::new(what, silence.code(), &message, silence.help())
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").field("environment", &self.environment).finish_non_exhaustive()
    }
}
