//! The story, section by section: each does something for real, shows it and says why it matters.

use std::fmt::Write as _;

use tollgate::config::SqlTargetConfig;
use tollgate::executor::{DryRunV1, Executor, ExecutorRegistry, Outcome};
use tollgate::ids::{Catalog, ContributionKey, Direction, StepKey};
use tollgate::ledger::Filter;
use tollgate::plan::{FolderCatalog, Step, read_release};
use tollgate::policy::Statement;
use tollgate::target::{SessionContract, Target};

use super::super::init::{self, Prepared};
use super::super::output::{self, visible};
use super::super::{Failure, check, configuration, execute, receipts};
use super::files;
use super::setting::{CONTROL, Setting, TARGET, unexpected};

const FORWARD_KEY: &str = "loyalty-1.0.0:tiers";
const BACK_KEY: &str = "loyalty-1.0.0:tiers:compensate";
const DENIED_KEY: &str = "loyalty-1.1.0:cleanup";

/// Tells all of it.
pub(super) async fn tell(setting: &Setting) -> Result<(), Failure> {
    let config = configuration::sql_target(&setting.config)?;
    preparation(setting, config).await?;
    let registry =
        ExecutorRegistry::open(&setting.config, &setting.store, &setting.runtime).await?;
    let executor = registry.configured().map_err(|error| {
        let help = error.help();
        unexpected(error.to_string()).with_help(help)
    })?;
    let forward = setting.step("1.0.0", "tiers", FORWARD_KEY, Direction::Forward)?;
    payload()?;
    decision(setting, &forward).await?;
    let before = counters(setting).await?;
    first_delivery(setting, &*executor, &forward).await?;
    let after = counters(setting).await?;
    second_delivery(setting, &*executor, &forward, &before, &after).await?;
    compensation(setting, &*executor).await?;
    denial(setting, &*executor).await?;
    ledger(config).await
}

impl Setting {
    fn step(
        &self,
        version: &str,
        contribution: &str,
        key: &str,
        direction: Direction,
    ) -> Result<Step, Failure> {
        let release = read_release(&files::release(&self.releases, version))?;
        let contribution: ContributionKey = contribution.parse().map_err(Failure::usage)?;
        let key: StepKey = key.parse().map_err(Failure::usage)?;
        let reverses = match direction {
            Direction::Forward => None,
            Direction::Compensate => Some(FORWARD_KEY.parse().map_err(Failure::usage)?),
        };
        execute::step(&release, &contribution, key, direction, reverses)
    }

    async fn deliver(&self, executor: &dyn Executor, step: &Step) -> Outcome {
        let folder = files::release(&self.releases, &step.release.version.to_string());
        executor.execute(step, &FolderCatalog::single(folder)).await
    }
}

fn section(number: u32, title: &str) -> Result<(), Failure> {
    let rule = "─".repeat(76_usize.saturating_sub(title.chars().count()));
    output::print(&format!("\n─ {number}  {title} {rule}\n\n"))?;
    Ok(())
}

/// What just happened and why it matters.
fn moral(text: &str) -> Result<(), Failure> {
    output::print(&format!("\n=> {text}\n"))?;
    Ok(())
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("   {line}").trim_end().to_owned() + "\n").collect()
}

async fn preparation(setting: &Setting, config: &SqlTargetConfig) -> Result<(), Failure> {
    section(1, "A target that plugins cannot leave")?;
    let server = &setting.server;
    let version = server.rows("SELECT VERSION()").await?;
    let mut text = format!(
        "   MariaDB {} runs privately on 127.0.0.1:{}, process {}.\n\
         \x20  It has the control side's catalog `{CONTROL}` and the isolated `{TARGET}`.\n\n\
         \x20  $ tollgate target grants --catalog {TARGET}      (run by the operator)\n",
        version.trim(),
        server.port(),
        server.pid().unwrap_or_default(),
    );
    let grants = setting.grants.lines().filter(|line| !line.starts_with("--"));
    for line in grants.filter(|line| !line.is_empty()) {
        let _ = writeln!(text, "   {line}");
    }
    text.push_str("\n   $ tollgate init control\n");
    match init::prepare_control(config).await? {
        Prepared::Created => text.push_str("   the control outbox is created and verified\n"),
        Prepared::WasThere => return Err(unexpected("a new catalog had an outbox already")),
    }
    text.push_str("   $ tollgate init target\n");
    match init::prepare(config).await? {
        Prepared::Created => text.push_str("   the receipt ledger is created and verified\n"),
        Prepared::WasThere => return Err(unexpected("a new catalog had a ledger already")),
    }
    output::print(&text)?;
    moral(
        "Every connection proves again that it is in this catalog and not in the control catalog,\n\
         \x20  and that its account reaches nothing else; otherwise it is closed and nothing runs.",
    )
}

fn payload() -> Result<(), Failure> {
    section(2, "A plugin ships SQL")?;
    output::print("   loyalty-1.0.0/forward.sql\n\n")?;
    output::print(&indented(files::text("loyalty-1.0.0/forward.sql")))?;
    moral(
        "Ordinary SQL: two tables with a foreign key, seed rows, an upsert, a clean-up. The quotes,\n\
         \x20  semicolons, backslashes, comments and JSON in its literals are where naive tools break.",
    )
}

async fn decision(setting: &Setting, step: &Step) -> Result<(), Failure> {
    section(3, "A sandboxed policy decides, and prints what may run")?;
    let catalog: Catalog = TARGET.parse().map_err(Failure::usage)?;
    let dry_run = DryRunV1::new(setting.policy.clone(), catalog);
    let folder = files::release(&setting.releases, "1.0.0");
    let report = dry_run
        .rehearse(step, &FolderCatalog::single(folder))
        .await
        .map_err(|error| unexpected(format!("the sample plugin is refused: {error}")))?;
    let pin = setting.policy.pin();
    let mut text = format!(
        "   policy    {} {}, a WebAssembly component without imports\n\
         \x20  digest    {}\n\
         \x20  decision  allow, {} statements\n\n",
        pin.name,
        pin.version,
        pin.sha256,
        report.statements().len()
    );
    for statement in report.statements() {
        text.push_str(&numbered(statement));
    }
    output::print(&text)?;
    moral(
        "The author's text never reaches the server. What does is printed from what the policy\n\
         \x20  understood: no comments, every table qualified, every name in backticks.",
    )
}

/// A statement, cut to lines that fit a screen.
fn numbered(statement: &Statement) -> String {
    let mut lines = vec![String::new()];
    for word in visible(&statement.text).split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() || line.chars().count() + word.chars().count() < 84 => {
                if !line.is_empty() {
                    line.push(' ');
                }
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    let number = statement.index + 1;
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate() {
        let head = if index == 0 { format!("{number:>4}") } else { "    ".to_owned() };
        let _ = writeln!(text, "{head}  {line}");
    }
    text
}

async fn first_delivery(
    setting: &Setting,
    executor: &dyn Executor,
    step: &Step,
) -> Result<(), Failure> {
    section(4, "The step runs once and leaves a receipt")?;
    let outcome = setting.deliver(executor, step).await;
    let receipt = applied(&outcome)?;
    let rows = setting
        .server
        .show(&format!(
            "SELECT code, label, benefits FROM {TARGET}.loyalty_tier ORDER BY code;
             SELECT id, customer, tier_code FROM {TARGET}.loyalty_member ORDER BY id;"
        ))
        .await?;
    output::print(&format!(
        "   step key  {FORWARD_KEY}\n   outcome   applied\n   receipt   {receipt}\n\n{}",
        indented(&rows)
    ))?;
    moral(
        "Every byte of the literals arrived. The receipt was completed in the transaction of the\n\
         \x20  last rows, so there is no row without a receipt and no receipt without its rows.",
    )
}

async fn second_delivery(
    setting: &Setting,
    executor: &dyn Executor,
    step: &Step,
    before: &[(String, u64)],
    after: &[(String, u64)],
) -> Result<(), Failure> {
    section(5, "The same step is delivered again: nothing runs")?;
    let outcome = setting.deliver(executor, step).await;
    let receipt = applied(&outcome)?;
    let now = counters(setting).await?;
    let mut text = format!(
        "   receipt   {receipt}\n\n   what the server counted    1st delivery   2nd delivery\n"
    );
    for (((name, before), (_, after)), (_, now)) in before.iter().zip(after).zip(&now) {
        let (first, second) = (after.saturating_sub(*before), now.saturating_sub(*after));
        let _ = writeln!(text, "   {name:<24} {first:>14} {second:>14}");
    }
    output::print(&text)?;
    if now != after {
        return Err(unexpected("the second delivery ran statements"));
    }
    moral(
        "A queue may deliver a step any number of times, also at once: one effect, one receipt.\n\
         \x20  (Inserts and updates of the first delivery include the receipt's own row.)",
    )
}

async fn compensation(setting: &Setting, executor: &dyn Executor) -> Result<(), Failure> {
    section(6, "The step is taken back")?;
    let step = setting.step("1.0.0", "tiers", BACK_KEY, Direction::Compensate)?;
    let receipt = applied(&setting.deliver(executor, &step).await)?;
    let tables = setting.server.rows(&format!("SHOW TABLES FROM {TARGET}")).await?;
    let forward = setting.step("1.0.0", "tiers", FORWARD_KEY, Direction::Forward)?;
    let late = match setting.deliver(executor, &forward).await {
        Outcome::NotApplied { error, retryable: false } => error,
        other => return Err(unexpected(format!("a late delivery was {}", other.as_str()))),
    };
    output::print(&format!(
        "   receipt                        {receipt}\n\
         \x20  tables left                    {}\n\
         \x20  a late delivery of the first   not applied: {late}\n",
        tables.split_whitespace().collect::<Vec<_>>().join(", ")
    ))?;
    moral(
        "The plugin's own compensation undid it, under a key and a receipt of its own, and a late\n\
         \x20  duplicate of the forward step can no longer bring it back.",
    )
}

async fn denial(setting: &Setting, executor: &dyn Executor) -> Result<(), Failure> {
    section(7, "A payload that is denied")?;
    let step = setting.step("1.1.0", "cleanup", DENIED_KEY, Direction::Forward)?;
    let error = match setting.deliver(executor, &step).await {
        Outcome::NotApplied { error, .. } => error,
        other => return Err(unexpected(format!("the bad payload was {}", other.as_str()))),
    };
    let findings = execute::findings(&error);
    if findings.is_empty() {
        return Err(unexpected(format!("the bad payload was not denied: {error}")));
    }
    let path = "loyalty-1.1.0/cleanup.sql";
    output::print(&check::underlined(path, files::text(path).as_bytes(), findings))?;
    let claimed = setting
        .server
        .rows(&format!(
            "SELECT COUNT(*) FROM {TARGET}.factory_plugin_target_receipt
             WHERE step_idempotency_key = '{DENIED_KEY}'"
        ))
        .await?;
    if claimed.trim() != "0" {
        return Err(unexpected("the denied step was claimed"));
    }
    moral(
        "Every problem is told at once, where it stands and with what to write instead. Nothing was\n\
         \x20  claimed, and no statement of the payload was sent.",
    )
}

async fn ledger(config: &SqlTargetConfig) -> Result<(), Failure> {
    section(8, "What the ledger remembers")?;
    let ledger = receipts::ledger(config);
    let mut connection = Target::new(config).open(&SessionContract::default()).await?;
    let page = ledger.list(&mut connection, &Filter::default(), None, 10).await;
    connection.close().await;
    output::print("   $ tollgate receipts\n")?;
    output::print(&indented(&receipts::table(&page?.receipts)))?;
    moral(
        "Each receipt holds the payload's, the policy's and the decision's digest: an auditor can\n\
         \x20  decide again offline, years later, and must get the same answer.",
    )
}

fn applied(outcome: &Outcome) -> Result<String, Failure> {
    match outcome {
        Outcome::Applied(receipt) => Ok(receipt.to_string()),
        Outcome::NotApplied { error, .. } => {
            Err(unexpected(format!("the step was not applied: {error}")).with_help(error.help()))
        }
        Outcome::Indeterminate { reason, .. } => {
            Err(unexpected(format!("the step's outcome is not known: {reason}")))
        }
    }
}

/// How often the server ran each kind of statement since it started, by its own count.
async fn counters(setting: &Setting) -> Result<Vec<(String, u64)>, Failure> {
    let rows = setting
        .server
        .rows(
            "SHOW GLOBAL STATUS WHERE Variable_name IN
             ('Com_create_table', 'Com_drop_table', 'Com_insert', 'Com_update', 'Com_delete')",
        )
        .await?;
    let counter = |line: &str| {
        let (name, value) = line.split_once('\t')?;
        Some((name.trim_start_matches("Com_").replace('_', " "), value.parse().ok()?))
    };
    let counters: Vec<_> = rows.lines().filter_map(counter).collect();
    if counters.is_empty() {
        return Err(unexpected("the server's statement counters cannot be read"));
    }
    Ok(counters)
}
