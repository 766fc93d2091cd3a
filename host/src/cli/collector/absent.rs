//! A program without the feature `otlp`: it sends no spans, and says so to whoever asks for them.

use tracing_subscriber::{Layer, Registry};

/// Sends nothing.
#[derive(Debug, Default)]
pub(in crate::cli) struct Collector {
    asked_for_by: Option<&'static str>,
}

impl Collector {
    /// Finds out whether spans are asked for.
    pub(in crate::cli) fn from_environment()
    -> (Self, Option<Box<dyn Layer<Registry> + Send + Sync>>) {
        (Self { asked_for_by: super::endpoint() }, None)
    }

    /// Says once that they are not sent.
    pub(in crate::cli) fn say(&self) {
        if let Some(variable) = self.asked_for_by {
            tracing::warn!(
                variable,
                help = "build it with `--features otlp`, or unset the variable",
                "no spans are sent: this program is built without OTLP"
            );
        }
    }

    /// There is nothing to send.
    #[expect(clippy::unused_self, reason = "the one that exports sends what is left")]
    pub(in crate::cli) fn end(self) {}
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Said(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Said {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn said(collector: Collector) -> String {
        let said = Said::default();
        let writer = said.clone();
        let subscriber =
            tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).finish();
        tracing::subscriber::with_default(subscriber, || {
            collector.say();
            collector.end();
        });
        String::from_utf8(said.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn who_asks_for_spans_is_told_that_there_are_none() {
        let asked = said(Collector { asked_for_by: Some("OTEL_EXPORTER_OTLP_ENDPOINT") });
        assert_eq!(asked.lines().count(), 1, "{asked}");
        for part in ["OTEL_EXPORTER_OTLP_ENDPOINT", "without OTLP", "--features otlp"] {
            assert!(asked.contains(part), "{part}: {asked}");
        }
        let (collector, layer) = Collector::from_environment();
        assert!(layer.is_none());
        assert_eq!(collector.asked_for_by, super::super::endpoint());
        assert_eq!(said(Collector::default()), "", "nobody asked");
    }
}
