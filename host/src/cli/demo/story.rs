//! The story, section by section: each does something for real, shows it and says why it matters.

use std::fmt::Write as _;

use tollgate::config::SqlTargetConfig;
use tollgate::executor::{DryRunV1, Executor, ExecutorRegistry, Outcome};
use tollgate::ids::{Catalog, ContributionKey, Direction, ExecutorCode, StepKey};
use tollgate::ledger::Filter;
use tollgate::outbox::{ExecutorChoice, Outbox};
use tollgate::plan::{FolderCatalog, PlanCode, Step, read_release};
use tollgate::policy::Statement;
use tollgate::target::{SessionContract, Target};
use tollgate::worker::check_plan;

use super::super::init::{self, Prepared};
use super::super::output::{self, visible};
use super::super::{Failure, check, compensate, configuration, execute, outbox, receipts, submit};
use super::files;
use super::setting::{CONTROL, Setting, TARGET, unexpected};
use super::workers::{self, Done};

/// The keys a plan gives its steps: its code and their number.
const FORWARD_KEY: &str = "loyalty-1.0.0:1";
const DENIED_KEY: &str = "loyalty-1.1.0:1";

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
    let forward = setting.step("1.0.0", "tiers", FORWARD_KEY)?;
    payload()?;
    decision(setting, &forward).await?;
    let before = submission(setting, config, &registry).await?;
    first_delivery(setting).await?;
    let after = counters(setting).await?;
    second_delivery(setting, &*executor, &forward, &before, &after).await?;
    compensation(setting, config, &*executor).await?;
    denial(setting, &*executor).await?;
    ledger(setting, config).await
}

impl Setting {
    fn step(&self, version: &str, contribution: &str, key: &str) -> Result<Step, Failure> {
        let release = read_release(&files::release(&self.releases, "loyalty", version))?;
        let contribution: ContributionKey = contribution.parse().map_err(Failure::usage)?;
        let key: StepKey = key.parse().map_err(Failure::usage)?;
        execute::step(&release, &contribution, key, Direction::Forward, None)
    }

    async fn deliver(&self, executor: &dyn Executor, step: &Step) -> Outcome {
        executor.execute(step, &FolderCatalog::tree(&self.releases)).await
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
    match init::prepare_control(&config.control).await? {
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
    let report = dry_run
        .rehearse(step, &FolderCatalog::tree(&setting.releases))
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

/// Submits a plan for each sample plugin; gives the server's counters after that.
async fn submission(
    setting: &Setting,
    config: &SqlTargetConfig,
    registry: &ExecutorRegistry,
) -> Result<Vec<(String, u64)>, Failure> {
    section(4, "Two plans are submitted, two workers carry them out")?;
    let executors = ExecutorChoice { sql: ExecutorCode::sql_jdbc_v1() };
    let releases = FolderCatalog::tree(&setting.releases);
    for plugin in ["loyalty", "badges"] {
        let plan = workers::plan(setting, plugin, "1.0.0")?;
        check_plan(&plan, &executors, registry, &releases).await?;
        let submitted =
            submit::enqueue(&Outbox::of(&setting.config), &config.control, &plan, &executors)
                .await?;
        let told = submit::human(&plan, &submitted);
        output::print(&format!(
            "   $ tollgate submit {}.json --releases plugins\n{}",
            plan.code(),
            indented(told.lines().next().unwrap_or_default())
        ))?;
    }
    counters(setting).await
}

async fn first_delivery(setting: &Setting) -> Result<(), Failure> {
    let done = worked(setting, 2).await?;
    if !done.iter().any(|done| done.step == FORWARD_KEY) {
        return Err(unexpected("no worker recorded the sample plugin's step"));
    }
    let rows = setting
        .server
        .show(&format!(
            "SELECT code, label, benefits FROM {TARGET}.loyalty_tier ORDER BY code;
             SELECT id, customer, tier_code FROM {TARGET}.loyalty_member ORDER BY id;"
        ))
        .await?;
    output::print(&format!("\n{}", indented(&rows)))?;
    moral(
        "Every byte of the literals arrived. The receipt was completed in the transaction of the\n\
         \x20  last rows, so there is no row without a receipt and no receipt without its rows.",
    )
}

/// Has both workers do what is enqueued, and shows who did what.
async fn worked(setting: &Setting, step_count: usize) -> Result<Vec<Done>, Failure> {
    output::print("   $ tollgate work --releases plugins --until-idle     (twice, at once)\n")?;
    let mut text = String::new();
    let mut done = Vec::new();
    for (worked, number) in workers::work(setting).await?.into_iter().zip(1..) {
        let process = worked.process;
        if worked.done.is_empty() {
            let _ = writeln!(text, "   worker {number}, process {process:<8} the other was faster");
        }
        for Done { step, status } in &worked.done {
            let _ = writeln!(text, "   worker {number}, process {process:<8} {step:<28} {status}");
        }
        done.extend(worked.done);
    }
    output::print(&text)?;
    if done.len() != step_count || done.iter().any(|done| done.status != "APPLIED") {
        return Err(unexpected("the workers did not apply each step once"));
    }
    Ok(done)
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

async fn compensation(
    setting: &Setting,
    config: &SqlTargetConfig,
    executor: &dyn Executor,
) -> Result<(), Failure> {
    section(6, "The plan is taken back")?;
    let plan = workers::plan(setting, "loyalty", "1.0.0")?;
    let compensated =
        compensate::enqueue(&Outbox::of(&setting.config), &config.control, plan.code(), None)
            .await?;
    let told = compensate::human(plan.code(), &compensated);
    output::print(&format!(
        "   $ tollgate compensate {}\n{}",
        plan.code(),
        indented(told.lines().next().unwrap_or_default())
    ))?;
    worked(setting, 1).await?;
    let tables = setting.server.rows(&format!("SHOW TABLES FROM {TARGET}")).await?;
    let forward = setting.step("1.0.0", "tiers", FORWARD_KEY)?;
    let late = match setting.deliver(executor, &forward).await {
        Outcome::NotApplied { error, retryable: false } => error,
        other => return Err(unexpected(format!("a late delivery was {}", other.as_str()))),
    };
    output::print(&format!(
        "\n   tables left                    {}\n\
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
    let step = setting.step("1.1.0", "cleanup", DENIED_KEY)?;
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

async fn ledger(setting: &Setting, config: &SqlTargetConfig) -> Result<(), Failure> {
    section(8, "What the outbox and the ledger remember")?;
    let plan: PlanCode = "loyalty-1.0.0".parse().map_err(Failure::usage)?;
    let shown = outbox::shown(&Outbox::of(&setting.config), &config.control, Some(&plan)).await?;
    output::print(&format!("   $ tollgate outbox {plan}\n{}\n", indented(&shown.human())))?;
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
