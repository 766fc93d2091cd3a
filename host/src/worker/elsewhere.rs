//! Saying that steps are due which no worker of this environment takes.

use std::time::{Duration, Instant};

use super::Shared;
use super::link::Link;
use crate::outbox::Belonging;

/// How often a worker that has nothing to do looks.
const LOOK_INTERVAL: Duration = Duration::from_mins(1);

/// What was found last.
#[derive(Debug, Default)]
pub(super) struct Elsewhere {
    looked_at: Option<Instant>,
    told: Vec<Belonging>,
}

impl Elsewhere {
    /// Looks, unless it did a moment ago, and says what is new.
    pub(super) async fn look(&mut self, shared: &Shared, link: &mut Link) {
        if self.looked_at.is_some_and(|at| at.elapsed() < LOOK_INTERVAL) {
            return;
        }
        let Ok(found) = link.due_elsewhere(shared).await else { return };
        self.looked_at = Some(Instant::now());
        if !found.is_empty() && found != self.told {
            let environments: Vec<&str> = found.iter().map(Belonging::as_str).collect();
            tracing::warn!(
                environments = environments.join(","),
                own = shared.outbox.belonging().as_str(),
                "steps are due that only workers of other environments take"
            );
        }
        self.told = found;
    }
}
