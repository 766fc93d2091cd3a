//! Everything there is at one moment.

use tollgate::ledger::state::{LeaseTime, Write};

/// Sessions there can be at once: two a worker, and what dead ones left.
pub(super) const SESSIONS_MAX: usize = 8;
/// How often a payload may be started.
pub(super) const EXECUTIONS_MAX: u8 = 2;

/// What the step consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Payload {
    /// DML alone: it commits with the receipt.
    Dml,
    /// DDL, which commits by itself when it ends.
    Ddl,
}

/// Who is at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cast {
    /// Two workers with the step.
    Two,
    /// One with the step, one with its compensation.
    OneAndBack,
    /// Two with the step, one with its compensation.
    TwoAndBack,
}

/// A step or its compensation; the index of its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The step.
    Forward = 0,
    /// Its compensation.
    Compensation = 1,
}

/// A lease token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token(pub u8);

/// The index of a session.
pub(super) type SessionId = u8;

/// What a receipt's status column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// RUNNING.
    Running,
    /// FAILED.
    Failed,
    /// SUCCEEDED.
    Succeeded,
}

/// A receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Row {
    /// Its status.
    pub status: Status,
    /// Its token; none is one that nobody has.
    pub token: Option<Token>,
    /// Its lease.
    pub lease: LeaseTime,
    /// How often its payload was started.
    pub executions: u8,
    /// The session it names, while that is on the server.
    pub holder: Option<SessionId>,
    /// Of the step: its compensation was begun.
    pub turned: bool,
    /// The session whose uncommitted completion locks it.
    pub lock: Option<SessionId>,
}

/// A ledger write that was sent and has not arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Underway {
    /// To the row of the session's own side.
    pub write: Write,
    /// To the forward row, in the same transaction.
    pub turn: Option<Write>,
    /// Whether each row is still as it was read.
    pub fresh: [bool; 2],
    /// Whether it undoes a grant under which nothing ran.
    pub withdraws: bool,
}

impl Underway {
    /// One that names its own token.
    pub(super) fn own(write: Write) -> Self {
        Self { write, turn: None, fresh: [false; 2], withdraws: false }
    }
}

/// What a session does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Doing {
    /// It waits for its client.
    Nothing,
    /// A statement of the payload.
    Statement,
    /// It refused that statement.
    Refused,
    /// A COMMIT.
    Commit,
}

/// A session on the server.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about a session")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Session {
    /// Whose payload it runs.
    pub side: Side,
    /// Under which token.
    pub token: Token,
    /// What it does.
    pub doing: Doing,
    /// DML that is not committed.
    pub effect: bool,
    /// A completion that is not committed.
    pub completes: bool,
    /// A write that its client sent before it gave the connection up.
    pub underway: Option<Underway>,
    /// Whether its client is there.
    pub client: bool,
    /// Whether it was killed, and may take its time to go.
    pub killed: bool,
}

/// Where a worker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Not in this model.
    Absent,
    /// Between deliveries.
    Idle,
    /// Its claim's connection broke: on a new one, it wants to see the old session gone.
    Resuming {
        /// The old one, while it is there.
        old: Option<SessionId>,
        /// Whether it was killed.
        killed: bool,
    },
    /// About to read what its claim depends on.
    Reading,
    /// About to send its claim's write.
    Writing {
        /// To its own row.
        write: Write,
        /// To the forward row, in the same transaction.
        turn: Option<Write>,
        /// Sessions that the rows named when they were read.
        named: [Option<SessionId>; 2],
        /// Whether each row is still as read.
        fresh: [bool; 2],
    },
    /// The lease is its own; it waits for earlier sessions to be gone.
    Clearing {
        /// Those that are not.
        named: [Option<SessionId>; 2],
        /// Whether they were killed.
        killed: bool,
    },
    /// The row names its session; it looks for the other direction.
    Granted,
    /// About to check its lease before the statement.
    Checking,
    /// About to send the statement.
    Sending,
    /// Waiting for the statement's answer.
    Waiting,
    /// About to complete the receipt.
    Completing,
    /// About to send COMMIT.
    Committing,
    /// Waiting for COMMIT's answer.
    Committed,
    /// About to record a failure.
    Failing,
    /// On a new session, it wants to see the old one gone and then to look.
    Settling {
        /// The old one, while it is there.
        old: Option<SessionId>,
        /// Whether it was killed.
        killed: bool,
        /// Whether what did not happen is recorded as failed.
        fails: bool,
    },
}

impl Phase {
    /// Whether the delivery has not got its lease yet.
    pub(super) fn is_claim(self) -> bool {
        matches!(
            self,
            Self::Resuming { .. }
                | Self::Reading
                | Self::Writing { .. }
                | Self::Clearing { .. }
                | Self::Granted
        )
    }
}

/// A worker at one delivery after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Worker {
    /// What it delivers.
    pub side: Side,
    /// Where it is.
    pub phase: Phase,
    /// The token of its delivery.
    pub token: Option<Token>,
    /// Its connection, while its session is on the server.
    pub session: Option<SessionId>,
}

/// What must never happen, happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Breach {
    /// A lease that was open was taken: two live tokens for one key.
    LiveLeaseTaken,
    /// Somebody without its token changed a receipt.
    StaleHolderWrote,
    /// SUCCEEDED was followed by something else.
    SuccessOverwritten,
    /// DML of somebody who does not hold the lease was committed.
    StaleDmlCommitted,
    /// DML took effect twice.
    DmlTwice,
    /// Two sessions were at the step at once, or one at the step and one at its compensation.
    TwoAtOnce,
    /// The step took effect after its compensation had begun or was done.
    ForwardAfterCompensation,
    /// The payload was started more often than it may be.
    BeyondBound,
    /// A receipt says SUCCEEDED without the effect.
    SucceededWithoutEffect,
    /// The next read shows something else than the machine said it would.
    AfterDisagrees,
}

/// What happened to the data, as far as it matters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Data {
    /// How often each side took effect, counted up to two.
    pub effects: [u8; 2],
    /// How often each side's payload was started, counted up to one more than it may be.
    pub starts: [u8; 2],
    /// Whether a statement of the compensation was sent.
    pub reversing: bool,
}

/// Everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct World {
    /// The rows: the step's and its compensation's.
    pub rows: [Option<Row>; 2],
    /// The sessions, by their number.
    pub sessions: [Option<Session>; SESSIONS_MAX],
    /// The workers.
    pub workers: [Worker; 3],
    /// The data.
    pub data: Data,
    /// Faults that may still happen; none is any number.
    pub faults: Option<u8>,
    /// What went wrong first.
    pub breach: Option<Breach>,
}

impl World {
    /// Nothing happened yet.
    pub(super) fn new(cast: Cast, faults: Option<u8>) -> Self {
        let worker = |side, is_there| {
            let phase = if is_there { Phase::Idle } else { Phase::Absent };
            Worker { side, phase, token: None, session: None }
        };
        Self {
            rows: [None; 2],
            sessions: [None; SESSIONS_MAX],
            workers: [
                worker(Side::Forward, true),
                worker(Side::Forward, cast != Cast::OneAndBack),
                worker(Side::Compensation, cast != Cast::Two),
            ],
            data: Data::default(),
            faults,
            breach: None,
        }
    }

    /// Notes a breach, if it is the first.
    pub(super) fn note(&mut self, breach: Breach) {
        self.breach.get_or_insert(breach);
    }

    pub(super) fn row(&self, side: Side) -> Option<&Row> {
        self.rows[side as usize].as_ref()
    }

    /// The worker's session, while it is there and nobody killed it.
    pub(super) fn connected(&self, worker: usize) -> Option<SessionId> {
        let id = self.workers[worker].session?;
        let session = self.sessions[usize::from(id)].as_ref()?;
        (!session.killed).then_some(id)
    }

    pub(super) fn session_mut(&mut self, id: SessionId) -> &mut Session {
        self.sessions[usize::from(id)]
            .as_mut()
            .expect("references to sessions that are gone are cleared")
    }

    pub(super) fn session(&self, id: SessionId) -> &Session {
        self.sessions[usize::from(id)]
            .as_ref()
            .expect("references to sessions that are gone are cleared")
    }

    /// Opens a session for a worker; none when the model has no room for another one.
    pub(super) fn open(&mut self, worker: usize, token: Token) -> Option<SessionId> {
        let free = self.sessions.iter().position(Option::is_none)?;
        let id = SessionId::try_from(free).expect("few sessions");
        self.sessions[free] = Some(Session {
            side: self.workers[worker].side,
            token,
            doing: Doing::Nothing,
            effect: false,
            completes: false,
            underway: None,
            client: true,
            killed: false,
        });
        self.workers[worker].session = Some(id);
        Some(id)
    }

    /// A token that nobody and nothing has.
    pub(super) fn fresh_token(&self) -> Token {
        let taken = |token: Token| {
            self.rows.iter().flatten().any(|row| row.token == Some(token))
                || self.workers.iter().any(|worker| worker.token == Some(token))
                || self.sessions.iter().flatten().any(|session| session.token == token)
        };
        (0..u8::MAX).map(Token).find(|token| !taken(*token)).expect("few tokens")
    }

    /// Undoes what the session did not commit.
    pub(super) fn roll_back(&mut self, id: SessionId) {
        let session = self.session_mut(id);
        session.effect = false;
        session.completes = false;
        for row in self.rows.iter_mut().flatten() {
            if row.lock == Some(id) {
                row.lock = None;
            }
        }
    }

    /// The session is gone, and with it what it did not commit.
    pub(super) fn remove(&mut self, id: SessionId) {
        self.roll_back(id);
        self.sessions[usize::from(id)] = None;
        let forget = |reference: &mut Option<SessionId>| {
            if *reference == Some(id) {
                *reference = None;
            }
        };
        for row in self.rows.iter_mut().flatten() {
            forget(&mut row.holder);
        }
        for worker in &mut self.workers {
            forget(&mut worker.session);
            match &mut worker.phase {
                Phase::Writing { named, .. } | Phase::Clearing { named, .. } => {
                    named.iter_mut().for_each(forget);
                }
                Phase::Settling { old, .. } | Phase::Resuming { old, .. } => forget(old),
                _ => {}
            }
        }
    }

    /// The worker's connection is gone without a word; the server may not know for long.
    pub(super) fn disconnect(&mut self, worker: usize) {
        if let Some(id) = self.workers[worker].session.take() {
            self.session_mut(id).client = false;
        }
    }

    /// The delivery is over; its connection is closed in order.
    pub(super) fn close(&mut self, worker: usize) {
        if let Some(id) = self.workers[worker].session {
            self.remove(id);
        }
        self.rest(worker);
    }

    /// The delivery is over; its connection is dropped.
    pub(super) fn drop_delivery(&mut self, worker: usize) {
        self.disconnect(worker);
        self.rest(worker);
    }

    fn rest(&mut self, worker: usize) {
        let Worker { side, .. } = self.workers[worker];
        self.workers[worker] = Worker { side, phase: Phase::Idle, token: None, session: None };
    }

    /// Nobody is at work, nothing acts on the server, and no delivery would run anything any more.
    pub fn is_over(&self) -> bool {
        let is_quiet = self.sessions.iter().all(Option::is_none)
            && self
                .workers
                .iter()
                .all(|worker| matches!(worker.phase, Phase::Idle | Phase::Absent));
        let is_done =
            |row: &Row| row.status == Status::Succeeded || row.executions >= EXECUTIONS_MAX;
        is_quiet
            && match (self.row(Side::Forward), self.row(Side::Compensation)) {
                (Some(forward), Some(compensation)) if forward.turned => is_done(compensation),
                (Some(forward), None) => is_done(forward),
                _ => false,
            }
    }
}
