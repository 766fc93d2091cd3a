//! `tollgate doctor`: what is missing, and the exact next command.

use std::error::Error;
use std::fmt::Write as _;

use clap::Args;
use tollgate::config::{Config, ConfigErrors, ControlConfig, KEYS, SqlTargetConfig};
use tollgate::control::{Control, ControlError};
use tollgate::executor::session_contract;
use tollgate::ids::ExecutorCode;
use tollgate::ledger::ShapeError;
use tollgate::outbox::{Outbox, OutboxFault, RIGHTS};
use tollgate::policy::Policy;
use tollgate::target::{ServerFailure, Side, Target, TargetError};

use super::sandbox::{RuntimeArguments, StoreArguments};
use super::{Exit, Failure, Global, Run, configuration, output, receipts};

/// Explain what is missing and name the next command
///
/// Looks at the policy, the configuration, the target's isolation and rights, its ledger, the control
/// outbox and the rights on it, in this order, and stops at what has to be mended first. Changes nothing,
/// shows no URL, user or password.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tollgate doctor
  tollgate doctor --variables

Exit codes:
  0  everything that steps need is in place; `next` says what is left for workers
  1  the target is not ready, the outbox has another shape, or a right on it is missing
  2  usage or configuration; the SQL target is disabled
  4  the policy is not the pinned one")]
pub(super) struct Doctor {
    /// List every variable with its rule instead
    #[arg(long)]
    variables: bool,
    #[command(flatten)]
    store: StoreArguments,
    #[command(flatten)]
    runtime: RuntimeArguments,
}

impl Run for Doctor {
    fn run(self, global: &Global) -> Result<Exit, Failure> {
        if self.variables {
            output::print(&variables())?;
            return Ok(Exit::Done);
        }
        let policy = configuration::sql_policy(&self.store, &self.runtime)?;
        let mut findings = Findings::default();
        let pin = policy.pin();
        findings.holds(&format!("policy: {} {} for {}", pin.name, pin.version, pin.executor));
        let exit = match configuration::read(global) {
            Ok(config) => examine(&mut findings, &config, &policy)?,
            Err(errors) => broken(&mut findings, &errors),
        };
        output::print(&findings.text)?;
        Ok(exit)
    }
}

/// What was found, a line each.
#[derive(Default)]
struct Findings {
    text: String,
    has_notes: bool,
}

impl Findings {
    fn holds(&mut self, what: &str) {
        let _ = writeln!(self.text, "ok       {what}");
    }

    fn note(&mut self, what: &str) {
        let _ = writeln!(self.text, "note     {what}");
        self.has_notes = true;
    }

    fn is_missing(&mut self, what: &str) {
        let _ = writeln!(self.text, "missing  {what}");
    }

    fn next(&mut self, what: &str) {
        let _ = writeln!(self.text, "\nnext: {what}");
    }
}

/// A configuration with problems: nothing can be looked at until they are mended.
fn broken(findings: &mut Findings, errors: &ConfigErrors) -> Exit {
    for problem in errors.problems() {
        findings.is_missing(&format!("{problem}\n           {}", problem.help));
    }
    findings.next(
        "mend the variables above, then run `tollgate doctor` again; `tollgate doctor --variables` \
         lists every variable",
    );
    Exit::Usage
}

fn examine(findings: &mut Findings, config: &Config, policy: &Policy) -> Result<Exit, Failure> {
    let Some(target) = &config.sql_target else {
        findings.holds(&format!("configuration: steps are given to {}", config.executor));
        findings.is_missing("the SQL target is disabled");
        findings.next(
            "set `FACTORY_PLUGIN_SQL_TARGET_ENABLED=true`, then run `tollgate doctor` again: it \
             names every variable that is still missing",
        );
        return Ok(Exit::Usage);
    };
    let (environment, catalog) = (&target.environment, &target.catalog);
    findings.holds(&format!("configuration: environment {environment}, catalog {catalog}"));
    let outbox = configuration::block_on(async {
        match examine_target(findings, target, policy).await {
            Exit::Done => examine_outbox(findings, &target.control).await,
            exit => Err(exit),
        }
    })?;
    Ok(match outbox {
        Ok(outbox) => examine_executor(findings, config, outbox),
        Err(exit) => exit,
    })
}

/// What was found of the outbox, where nothing is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutboxFound {
    IsThere,
    None,
}

/// The last thing to look at, so it also says what comes next.
fn examine_executor(findings: &mut Findings, config: &Config, outbox: OutboxFound) -> Exit {
    if config.executor == ExecutorCode::sql_jdbc_v1() {
        findings.holds("executor: steps are given to sql-jdbc:v1");
        findings.next(match outbox {
            OutboxFound::None => {
                "`tollgate init control`, then `tollgate work --releases DIR`; `tollgate execute` for a \
                 single step needs no outbox"
            }
            OutboxFound::IsThere if findings.has_notes => {
                "`tollgate work --releases DIR`, or `tollgate execute` for a single step; everything \
                 is in place, but read the notes above"
            }
            OutboxFound::IsThere => {
                "`tollgate work --releases DIR`, or `tollgate execute` for a single step; everything \
                 is in place"
            }
        });
        return Exit::Done;
    }
    if config.executor != ExecutorCode::dry_run_v1() {
        findings.is_missing(&format!(
            "executor: no executor `{}` is installed; there are dry-run:v1 and sql-jdbc:v1",
            config.executor
        ));
        findings.next("set `FACTORY_PLUGIN_EXECUTOR_CODE=sql-jdbc:v1`, or leave it out");
        return Exit::NOT_READY;
    }
    findings.note(&format!("executor: steps are given to {}", config.executor));
    findings.next("set `FACTORY_PLUGIN_EXECUTOR_CODE=sql-jdbc:v1` to run SQL");
    Exit::Done
}

async fn examine_target(
    findings: &mut Findings,
    config: &SqlTargetConfig,
    policy: &Policy,
) -> Exit {
    let contract = session_contract(&policy.description().session);
    let mut connection = match Target::new(config).open(&contract).await {
        Ok(connection) => connection,
        Err(error) => {
            let side = match &error {
                TargetError::Server { side: Side::Control, .. } => "control",
                _ => "target",
            };
            findings.is_missing(&format!("{side}: {}", with_causes(&error)));
            findings.next(&next_for_target(&error, config));
            return Exit::NOT_READY;
        }
    };
    let server = connection.server();
    findings.holds(&format!(
        "target: reached, isolated, confined, with its rights, session pinned; {} {}",
        server.flavour(),
        server.version()
    ));
    for warning in connection.warnings() {
        let help = warning.help(connection.catalog());
        findings.note(&format!("{}: {warning}\n           help: {help}", warning.code()));
    }
    let shape = receipts::ledger(config).check_shape(&mut connection).await;
    connection.close().await;
    match shape {
        Ok(()) => {
            findings.holds("ledger: it is there and has its shape");
            Exit::Done
        }
        Err(error) => {
            findings.is_missing(&format!("ledger: {}", with_causes(&error)));
            if let ShapeError::Unfit(problems) = &error
                && !error.is_missing()
            {
                for problem in problems {
                    findings.is_missing(&format!("ledger: {}: {problem}", problem.code()));
                }
            }
            findings.next(error.help());
            Exit::NOT_READY
        }
    }
}

/// An outbox that is not there is no fault: the control side may be another's, which brings its own.
async fn examine_outbox(
    findings: &mut Findings,
    config: &ControlConfig,
) -> Result<OutboxFound, Exit> {
    let mut connection = match Control::new(config).open().await {
        Ok(connection) => connection,
        Err(error) => {
            findings.is_missing(&format!("control: {}", with_causes(&error)));
            findings.next(error.help());
            return Err(Exit::NOT_READY);
        }
    };
    let shape = Outbox::default().check_shape(&mut connection).await;
    let rights = match &shape {
        Ok(()) => connection.check_rights(RIGHTS).await,
        // Where there is no outbox, nothing of ours is done in the control catalog.
        Err(_) => Ok(()),
    };
    connection.close().await;
    if let Err(error) = rights {
        findings.is_missing(&format!("control: {}", with_causes(&error)));
        findings.next(&match &error {
            ControlError::GrantsMissing { .. } => grant_for_control(config),
            error => error.help().to_owned(),
        });
        return Err(Exit::NOT_READY);
    }
    match shape {
        Ok(()) => {
            findings.holds("outbox: it is there and has its shape, and the account has its rights");
            Ok(OutboxFound::IsThere)
        }
        Err(fault) if fault.is_missing() => {
            findings.note(
                "outbox: there is none in the control catalog; `tollgate work` needs one: \
                 `tollgate init control`",
            );
            Ok(OutboxFound::None)
        }
        Err(fault) => {
            match &fault {
                OutboxFault::Unfit(problems) => {
                    for problem in problems {
                        findings.is_missing(&format!("outbox: {}: {problem}", problem.code()));
                    }
                }
                fault => findings.is_missing(&format!("outbox: {}", with_causes(fault))),
            }
            findings.next(fault.help());
            Err(Exit::NOT_READY)
        }
    }
}

/// The command or edit for what a target lacks.
fn next_for_target(error: &TargetError, config: &SqlTargetConfig) -> String {
    match error {
        TargetError::GrantsBeyond { findings }
            if findings.iter().all(|finding| finding.through_public) =>
        {
            error.help().into_owned()
        }
        TargetError::GrantsBeyond { .. } => format!(
            "`tollgate target grants --catalog {}` prints the SQL for a confined account",
            config.catalog
        ),
        TargetError::Server { side: Side::Control, failure: ServerFailure::CatalogDenied } => {
            grant_for_control(&config.control)
        }
        error => error.help().into_owned(),
    }
}

/// What an administrator runs for the control account.
fn grant_for_control(config: &ControlConfig) -> String {
    format!(
        "run as an administrator of the control catalog's server, with the account of \
         FACTORY_PLUGIN_CONTROL_USERNAME, and `CREATE DATABASE` before if it is not there: \
         `GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON `{}`.* TO '<user>'@'<host>'`",
        config.endpoint.catalog()
    )
}

fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(text, "\n           because: {error}");
        cause = error.source();
    }
    text
}

/// Every variable with its rule.
fn variables() -> String {
    let mut text = String::new();
    for key in KEYS {
        let _ = writeln!(text, "{}\n    {}", key.name, key.rule);
    }
    text
}
