//! What a process that holds passwords does not give away when it dies: its memory, in a core file,
//! and values, in a panic's message.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::Write as _;
use std::io::Write as _;
use std::panic::PanicHookInfo;

/// Before anything secret is read.
pub(super) fn keep() {
    forbid_core_files();
    std::panic::set_hook(Box::new(report));
}

/// No core file is written, and no other process of the same user looks at this one's memory and
/// environment: prctl(2), `PR_SET_DUMPABLE`. A limit on core files would not bind a system that pipes
/// them to a program.
#[cfg(target_os = "linux")]
fn forbid_core_files() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    // Linux refuses no process this.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Core files are limited to nothing: all that these systems have in common.
#[cfg(all(unix, not(target_os = "linux")))]
fn forbid_core_files() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
}

#[cfg(not(unix))]
fn forbid_core_files() {}

/// Says where a bug is and not what it was about: a message that was put together at run time may
/// quote anything, a password or a payload. One that stands in the source quotes nothing. A
/// backtrace, with `RUST_BACKTRACE`, has names and places alone.
fn report(panic: &PanicHookInfo<'_>) {
    let mut text = String::from("error: a bug stopped this thread");
    if let Some(place) = panic.location() {
        let _ = write!(text, " at {place}");
    }
    match panic.payload().downcast_ref::<&'static str>() {
        Some(literal) => {
            let _ = writeln!(text, ": {literal}");
        }
        None => text.push_str("; its message is not shown, since it may quote a secret\n"),
    }
    text.push_str("  help: report it with this place, and a backtrace: set `RUST_BACKTRACE=1`\n");
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        let _ = writeln!(text, "{backtrace}");
    }
    // Nobody is left to tell when this fails.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
