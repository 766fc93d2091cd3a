//! Two worker processes, as an operator would run them on two machines.

use std::process::Stdio;

use serde_json::Value;
use tollgate::plan::{Plan, publish, read_release};

use super::super::Failure;
use super::files;
use super::server::bound_to_this_process;
use super::setting::{Setting, unexpected};

/// Variables of the command line that would lead a worker away from the demo.
const OTHERS: [&str; 4] =
    ["TOLLGATE_CONFIG", "TOLLGATE_LOG", "TOLLGATE_POLICIES", "TOLLGATE_POLICY_KEY"];

/// A worker process that ended.
pub(super) struct Worked {
    pub(super) process: u32,
    /// The steps it recorded.
    pub(super) done: Vec<Done>,
}

/// A step that a worker recorded.
pub(super) struct Done {
    pub(super) step: String,
    pub(super) status: String,
}

/// Publishes the plan that applies one release of a sample plugin.
pub(super) fn plan(setting: &Setting, plugin: &str, version: &str) -> Result<Plan, Failure> {
    let release = read_release(&files::release(&setting.releases, plugin, version))?;
    let code = format!("{plugin}-{version}").parse().map_err(Failure::usage)?;
    let document = publish(&code, &[release]).map_err(Failure::usage)?;
    Ok(Plan::parse(document.as_bytes())?)
}

/// Starts both workers, waits until nothing is left to do, and tells what each recorded.
pub(super) async fn work(setting: &Setting) -> Result<[Worked; 2], Failure> {
    let (first, second) = tokio::join!(worker(setting), worker(setting));
    Ok([first?, second?])
}

/// One worker with one slot, so that two plans are worth two workers.
async fn worker(setting: &Setting) -> Result<Worked, Failure> {
    let mut command = bound_to_this_process(&std::env::current_exe()?);
    command.args(["work", "--until-idle", "--concurrency", "1", "--log-format", "json"]);
    command.arg("--releases").arg(&setting.releases);
    // Nothing of this process's own configuration: the demo has one of its own.
    for (name, _) in std::env::vars_os() {
        let is_ours = name.to_string_lossy().starts_with("FACTORY_PLUGIN_");
        if is_ours || OTHERS.iter().any(|other| name == *other) {
            command.env_remove(name);
        }
    }
    let child = command
        .envs(&setting.variables)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let process = child.id().unwrap_or_default();
    let output = child.wait_with_output().await?;
    let log = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(unexpected(format!("a worker ended with {}:\n{log}", output.status)));
    }
    Ok(Worked { process, done: log.lines().filter_map(recorded).collect() })
}

/// The event of its log that says what was recorded.
fn recorded(line: &str) -> Option<Done> {
    let event: Value = serde_json::from_str(line).ok()?;
    let text = |pointer: &str| Some(event.pointer(pointer)?.as_str()?.to_owned());
    if text("/fields/message")? != "step recorded" {
        return None;
    }
    Some(Done { step: text("/span/step_key")?, status: text("/fields/status")? })
}
