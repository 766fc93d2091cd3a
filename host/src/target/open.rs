//! Opening a target connection: every check, every time.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::awaited::Awaited;
use super::connection::{TargetConnection, TargetWarning};
use super::contract::SessionContract;
use super::control_isolation::{catalogs_differ, open_control, urls_differ};
use super::error::{Side, TargetError};
use super::kept::Standing;
use super::purpose::Purpose;
use super::{grant_check, pins, server_checks};
use crate::config::SqlTargetConfig;
use crate::metrics::metrics;
use crate::session::{
    self, GrantReading, IDENTITY_VARIABLES, ServerFailure, ServerIdentity, SessionSpec, Variables,
};

/// The isolated target. Cheap to clone; holds no connection.
#[derive(Clone)]
pub struct Target {
    config: Arc<SqlTargetConfig>,
    purpose: Purpose,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("environment", &self.config.environment)
            .field("catalog", &self.config.catalog)
            .field("purpose", &self.purpose)
            .finish_non_exhaustive()
    }
}

impl Target {
    /// The target a configuration describes. Nothing is opened.
    pub fn new(config: &SqlTargetConfig) -> Self {
        Self { config: Arc::new(config.clone()), purpose: Purpose::Steps }
    }

    /// The same target, opened for reading: in its sessions the server itself refuses every write, and
    /// ends what takes longer than 5 s; to read is all that the account has to be allowed. For whoever
    /// only looks.
    #[must_use]
    pub fn read_only(self) -> Self {
        Self { purpose: Purpose::Reading, ..self }
    }

    /// The same target, looked at as a step finds it: the server refuses every write, and the account
    /// has to have every right that steps need.
    #[must_use]
    pub fn looked_at(self) -> Self {
        Self { purpose: Purpose::Looking, ..self }
    }

    /// The same for whoever may have an account that can only read. Then what steps need is not known,
    /// which is a [warning](TargetWarning::ReadsOnly).
    #[must_use]
    pub fn watched(self) -> Self {
        Self { purpose: Purpose::Watching, ..self }
    }

    /// The configuration.
    pub fn config(&self) -> &SqlTargetConfig {
        &self.config
    }

    /// Opens a connection and proves on it that it leads to the isolated catalog and nowhere else:
    /// its catalog is the allowed one; it is not the control catalog, by URL, name, alias or
    /// content; its server is supported, allowed and takes writes; its session is pinned as the
    /// contract asks and read back; its account reaches nothing else and has the rights it needs.
    ///
    /// # Errors
    /// The first rule that does not hold. The connection is closed by then. All of it is bounded by
    /// `open_budget`.
    pub async fn open(&self, contract: &SessionContract) -> Result<TargetConnection, TargetError> {
        self.open_watched(contract, &Awaited::default()).await
    }

    /// The same for whoever may give up before it ends: meanwhile it tells whose answer it waits for.
    ///
    /// # Errors
    /// As [`Target::open`].
    pub async fn open_watched(
        &self,
        contract: &SessionContract,
        awaited: &Awaited,
    ) -> Result<TargetConnection, TargetError> {
        let begun = Instant::now();
        let opened = self.open_uncounted(contract, awaited).await;
        let result = opened.as_ref().map_or_else(TargetError::code, |_| "opened");
        metrics().target_opened(result, begun.elapsed());
        opened
    }

    async fn open_uncounted(
        &self,
        contract: &SessionContract,
        awaited: &Awaited,
    ) -> Result<TargetConnection, TargetError> {
        if let Some(problem) = contract.problem() {
            return Err(TargetError::Contract(problem));
        }
        urls_differ(&self.config)?;
        let budget = self.config.bounds.open_budget;
        let deadline = tokio::time::Instant::now() + budget;
        let (target, control) = tokio::join!(
            awaited.answer(Side::Target, self.open_target()),
            awaited.answer(Side::Control, open_control(&self.config)),
        );
        let (mut target, mut control) = match (target, control) {
            (Ok(target), Ok(control)) => (target, control),
            (Err(error), Ok(open)) => {
                awaited.answer(Side::Control, session::close(open)).await;
                return Err(error);
            }
            (Ok(open), Err(error)) => {
                awaited.answer(Side::Target, session::close(open)).await;
                return Err(error);
            }
            // Both failed: what is said about the target comes first.
            (Err(error), Err(_)) => return Err(error),
        };
        awaited.only(Some(Side::Target));
        let verifying = self.verify(&mut target, &mut control, contract, awaited);
        let verified = tokio::time::timeout_at(deadline, verifying).await;
        let verified = verified.unwrap_or_else(|_| {
            let side = awaited.side().unwrap_or(Side::Target);
            Err(TargetError::Server { side, failure: ServerFailure::TimedOut })
        });
        awaited.answer(Side::Control, session::close(control)).await;
        match verified {
            Ok(verified) => Ok(verified.into_connection(target, &self.config, contract)),
            Err(error) => {
                awaited.answer(Side::Target, session::close(target)).await;
                Err(error)
            }
        }
    }

    async fn open_target(&self) -> Result<Conn, TargetError> {
        let config = &self.config;
        let spec = SessionSpec {
            url: &config.endpoint,
            username: &config.credentials.username,
            password: &config.credentials.password,
            connect_timeout: config.bounds.connect_timeout,
        };
        session::open(&spec).await.map_err(TargetError::target)
    }

    async fn verify(
        &self,
        target: &mut Conn,
        control: &mut Conn,
        contract: &SessionContract,
        awaited: &Awaited,
    ) -> Result<Verified, TargetError> {
        let config = &self.config;
        let pins = pins::pins(contract, &config.bounds, self.purpose.reads_only());
        let known = self.variables(target, &pins).await?;
        let pins = session::Pin::settable(pins, &known);
        let server = ServerIdentity::read(target, &known).await.map_err(TargetError::target)?;
        server_checks::supported(&server)?;
        server_checks::allowed(&server, &config.allowed_servers)?;
        let place = Place::read(target).await?;
        place.is_allowed(config)?;
        awaited.only(Some(Side::Control));
        catalogs_differ(&server, config.catalog.as_str(), control).await?;
        awaited.only(Some(Side::Target));
        server_checks::writer(target, &known).await?;
        let settings = session::pin(target, &pins::names(), &pins, &known, pins::RECORDED)
            .await
            .map_err(TargetError::target)?
            .map_err(|mismatches| TargetError::SessionNotPinned { mismatches })?;
        let reading = GrantReading {
            catalog: config.catalog.as_str(),
            folds_case: settings.is_on("lower_case_table_names"),
            has_wildcards: !settings.is_on("partial_revokes"),
        };
        let mut warnings =
            grant_check::check(target, config, &server, reading, self.purpose).await?;
        warnings.extend(server_checks::warnings(&server, &settings));
        // The greeting carries the low half of the number; a proxy greets with its own.
        let is_proxied = u64::from(target.id()) != place.session_id & u64::from(u32::MAX);
        if is_proxied {
            warnings.push(TargetWarning::BehindProxy);
        }
        let standing = Standing::read(target, &pins, &known).await?;
        awaited.only(None);
        let session_id = place.session_id;
        Ok(Verified { session_id, is_proxied, server, settings, warnings, standing })
    }

    async fn variables(
        &self,
        target: &mut Conn,
        pins: &[session::Pin],
    ) -> Result<Variables, TargetError> {
        let mut names: Vec<&str> = pins::names_of(pins).collect();
        names.extend_from_slice(IDENTITY_VARIABLES);
        names.extend_from_slice(server_checks::SERVER_VARIABLES);
        Variables::session(target, &names).await.map_err(TargetError::target)
    }
}

/// Where a connection is, as its server says.
struct Place {
    session_id: u64,
    catalog: Option<String>,
    control_table: Option<String>,
}

impl Place {
    async fn read(conn: &mut Conn) -> Result<Self, TargetError> {
        // Asked before the session is pinned: no LIKE, whose escape depends on `sql_mode`.
        let statement = r"SELECT CONNECTION_ID(), DATABASE(),
            (SELECT MIN(table_name) FROM information_schema.tables
             WHERE table_schema = DATABASE() AND LEFT(table_name, 23) = 'factory_plugin_control_')";
        let row: Option<(u64, Option<String>, Option<String>)> = conn
            .query_first(statement)
            .await
            .map_err(|error| TargetError::target(ServerFailure::of(&error)))?;
        let (session_id, catalog, control_table) =
            row.ok_or(TargetError::target(ServerFailure::Unreadable))?;
        Ok(Self { session_id, catalog, control_table })
    }

    fn is_allowed(&self, config: &SqlTargetConfig) -> Result<(), TargetError> {
        if self.catalog.as_deref() != Some(config.catalog.as_str()) {
            let (allowed, found) = (config.catalog.clone(), self.catalog.clone());
            return Err(TargetError::CatalogMismatch { allowed, found });
        }
        match &self.control_table {
            Some(table) => Err(TargetError::ControlTables { table: table.clone() }),
            None => Ok(()),
        }
    }
}

/// What verification found out.
struct Verified {
    session_id: u64,
    is_proxied: bool,
    server: ServerIdentity,
    settings: Variables,
    warnings: Vec<TargetWarning>,
    standing: Standing,
}

impl Verified {
    fn into_connection(
        self,
        conn: Conn,
        config: &SqlTargetConfig,
        contract: &SessionContract,
    ) -> TargetConnection {
        TargetConnection {
            conn,
            session_id: self.session_id,
            is_proxied: self.is_proxied,
            server: self.server,
            catalog: config.catalog.clone(),
            settings: self.settings.into_map(),
            warnings: self.warnings,
            contract: contract.clone(),
            standing: self.standing,
            is_confirmed: true,
            is_payloads: false,
            marker: None,
            lock_wait: config.bounds.lock_wait_timeout,
            _counted: metrics().target_session(),
        }
    }
}
