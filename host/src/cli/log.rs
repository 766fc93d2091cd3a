//! What a command says while it runs: events on standard error, spans to a collector.

use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry};

use super::collector::Collector;
use super::work::LogFormat;
use super::{Command, output};

/// What is logged when `TOLLGATE_LOG` does not say: what came of a step is what its command prints.
const FILTER: &str = "warn,tollgate::executor=error";

/// The same of a worker, which prints nothing: its log is what it has to say.
const WORKER_FILTER: &str = "info";

type Boxed = Box<dyn Layer<Registry> + Send + Sync>;

/// Begins to log, as long as the process runs. What is given back sends the last spans.
pub(super) fn begin(command: &Command) -> Collector {
    let (collector, spans) = match command {
        Command::Work(_) | Command::Serve(_) | Command::Execute(_) => Collector::from_environment(),
        // What they do is over before anybody looks.
        _ => (Collector::default(), None),
    };
    let layers: Vec<Boxed> = std::iter::once(to_stderr(command)).chain(spans).collect();
    tracing_subscriber::registry().with(layers).init();
    collector.say();
    collector
}

/// Events of the library on standard error; `TOLLGATE_LOG` says which.
fn to_stderr(command: &Command) -> Boxed {
    let (filter, format) = match command {
        Command::Work(work) => (WORKER_FILTER, Some(work.log_format())),
        _ => (FILTER, None),
    };
    let filter = std::env::var("TOLLGATE_LOG").unwrap_or_else(|_| filter.to_owned());
    let filter = EnvFilter::builder().parse_lossy(filter);
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(output::stderr_has_colour())
        .with_target(false);
    match format {
        Some(LogFormat::Json) => layer.json().with_filter(filter).boxed(),
        Some(LogFormat::Text) => layer.with_filter(filter).boxed(),
        None => layer.without_time().with_filter(filter).boxed(),
    }
}
