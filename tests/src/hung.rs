//! A worker that hung, or died, in the middle of a step, and whose leases are over.

use crate::chain::{Chain, Plugin, TARGET_USER};
use crate::process::{Process, tollgate};
use crate::staged::Staged;

/// A worker that is stopped before its first statement. Its session is still on the target.
#[derive(Debug)]
pub struct Hung {
    process: Process,
    _staged: Staged,
}

impl Hung {
    /// Has a worker take the step that is due, and stops it there.
    ///
    /// # Panics
    ///
    /// When it does not get there.
    pub async fn hold(chain: &Chain, plugin: &Plugin) -> Self {
        let staged = Staged::new("statement=pause:{go}");
        let releases = plugin.root().display().to_string();
        let mut command = tollgate(chain, &[], &["work", "--releases", &releases]);
        let process = Process::spawn(staged.on(&mut command), &plugin.root().join("hung"));
        staged.wait_until_fired();
        process.stop();
        over(chain).await;
        Self { process, _staged: staged }
    }

    /// Kills it too, and sees its session gone from the target.
    pub async fn die(mut self, chain: &Chain) {
        self.process.kill9();
        chain.server.assert_session_count(TARGET_USER, 0).await;
    }
}

async fn over(chain: &Chain) {
    chain.expire_leases().await;
    chain.expire_claims().await;
}
