//! What happened to every row of the outbox and of the ledger, written down by triggers of the
//! servers' own, and whether all of it was allowed to happen.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use mysql_async::prelude::Queryable as _;

use crate::chain::{CONTROL, Chain, TARGET};
use crate::server::PrivateServer;

/// A change of a row, in the order the servers made them.
#[derive(Debug, Clone)]
struct Change {
    key: String,
    from: String,
    to: String,
    /// The claim before and after.
    tokens: (String, String),
    /// Whether the lease before was over by the server's clock.
    lease_was_over: bool,
}

/// A row of the outbox, at the end.
#[derive(Debug, Clone)]
struct Step {
    key: String,
    plan: String,
    /// Whether it takes a step back.
    back: bool,
    position: u32,
    status: String,
}

/// What a run left behind.
#[derive(Debug)]
pub struct History {
    outbox: Vec<Change>,
    ledger: Vec<Change>,
    rows: Vec<Step>,
    /// Key and status of each receipt, at the end.
    receipts: Vec<(String, String)>,
    /// The plans that were taken back meanwhile.
    taken_back: BTreeSet<String>,
    /// The keys of those plans' steps, which their compensations bar.
    barred: BTreeSet<String>,
}

/// Makes both servers write down every change from now on.
///
/// Changes are put in order by the moment each was made, not by their number: nodes of a cluster give
/// out numbers of their own (manual of MariaDB, "`wsrep_auto_increment_control`"), and all of them are on
/// this machine and have one clock. `SYSDATE()` is that moment; `UTC_TIMESTAMP()` would be the
/// beginning of a statement that may have waited.
pub async fn watch(chain: &Chain) {
    for (server, catalog, table) in sides(chain) {
        let mut admin = server.admin().await;
        admin.query_drop("CREATE DATABASE IF NOT EXISTS history").await.unwrap();
        admin
            .query_drop(format!(
                "CREATE TABLE history.{table} (id BIGINT AUTO_INCREMENT PRIMARY KEY, k VARCHAR(128), \
                 old_status VARCHAR(16), new_status VARCHAR(16), old_token VARCHAR(32), \
                 new_token VARCHAR(32), was_over INT, at DATETIME(6)) ENGINE=InnoDB"
            ))
            .await
            .unwrap();
        admin.query_drop(format!("USE {catalog}")).await.unwrap();
        admin
            .query_drop(format!(
                "CREATE DEFINER='root'@'localhost' TRIGGER watch AFTER UPDATE ON {table} FOR EACH \
                 ROW INSERT INTO history.{table} (k, old_status, new_status, old_token, new_token, \
                 was_over, at) VALUES (OLD.step_idempotency_key, OLD.status, NEW.status, \
                 COALESCE(OLD.lease_token, ''), COALESCE(NEW.lease_token, ''), \
                 COALESCE(OLD.lease_deadline <= UTC_TIMESTAMP(6), 1), SYSDATE(6))"
            ))
            .await
            .unwrap();
        admin.disconnect().await.unwrap();
    }
}

const OUTBOX: &str = "factory_plugin_control_outbox";
const LEDGER: &str = "factory_plugin_target_receipt";

fn sides(chain: &Chain) -> [(&PrivateServer, &str, &str); 2] {
    [(chain.control_server(), CONTROL, OUTBOX), (&chain.server, TARGET, LEDGER)]
}

async fn changes(server: &PrivateServer, table: &str) -> Vec<Change> {
    let query = format!(
        "SELECT k, old_status, new_status, old_token, new_token, was_over FROM history.{table} \
         ORDER BY at, id"
    );
    let mut admin = server.admin().await;
    let rows: Vec<(String, String, String, String, String, i64)> =
        admin.query(query).await.unwrap();
    admin.disconnect().await.unwrap();
    rows.into_iter()
        .map(|(key, from, to, old, new, was_over)| Change {
            key,
            from,
            to,
            tokens: (old, new),
            lease_was_over: was_over != 0,
        })
        .collect()
}

async fn steps(chain: &Chain) -> Vec<Step> {
    let query = format!(
        "SELECT step_idempotency_key, plan_code, direction, position, status FROM {OUTBOX} \
         ORDER BY id"
    );
    let rows: Vec<(String, String, String, u32, String)> = chain.control_rows(&query).await;
    rows.into_iter()
        .map(|(key, plan, direction, position, status)| Step {
            key,
            plan,
            back: direction == "COMPENSATE",
            position,
            status,
        })
        .collect()
}

impl History {
    /// Reads it, of a run in which these plans were taken back.
    pub async fn read(chain: &Chain, taken_back: BTreeSet<String>) -> Self {
        let [(control, ..), (target, ..)] = sides(chain);
        let rows = steps(chain).await;
        let is_barred = |row: &&Step| !row.back && taken_back.contains(&row.plan);
        let barred = rows.iter().filter(is_barred).map(|row| row.key.clone()).collect();
        Self {
            outbox: changes(control, OUTBOX).await,
            ledger: changes(target, LEDGER).await,
            rows,
            receipts: chain
                .rows("SELECT step_idempotency_key, status FROM factory_plugin_target_receipt")
                .await,
            taken_back,
            barred,
        }
    }

    /// Asserts that nothing happened that must not, to this many steps that went forward.
    pub fn check(&self, step_count: usize) {
        self.nothing_is_lost(step_count);
        self.every_step_is_applied_once();
        self.plans_are_in_order();
        self.nothing_goes_on_after_it_was_taken_back();
        self.no_two_live_tokens(&self.outbox, "CLAIMED");
        self.no_two_live_tokens(&self.ledger, "RUNNING");
    }

    /// How often a receipt was taken over from a holder whose lease was over.
    pub fn receipts_taken_over(&self) -> usize {
        Self::takeovers(&self.ledger, "RUNNING")
    }

    fn nothing_is_lost(&self, step_count: usize) {
        let forward = self.rows.iter().filter(|row| !row.back).count();
        assert_eq!(forward, step_count);
        let receipts: BTreeMap<&str, &str> =
            self.receipts.iter().map(|(key, status)| (key.as_str(), status.as_str())).collect();
        assert_eq!(receipts.len(), self.receipts.len(), "a key has two receipts");
        for row in &self.rows {
            let receipt = receipts.get(row.key.as_str());
            match row.status.as_str() {
                "APPLIED" => assert_eq!(receipt, Some(&"SUCCEEDED"), "{row:?}"),
                "SUPERSEDED" if !row.back && self.taken_back.contains(&row.plan) => {}
                _ => panic!("not applied: {row:?}"),
            }
        }
        let asked: BTreeSet<&str> = self.rows.iter().map(|row| row.key.as_str()).collect();
        for key in receipts.keys() {
            assert!(asked.contains(key), "the receipt of a step nobody asked for: {key}");
        }
    }

    fn every_step_is_applied_once(&self) {
        for (changes, end) in [(&self.outbox, "APPLIED"), (&self.ledger, "SUCCEEDED")] {
            let mut ends: BTreeMap<&str, u32> = BTreeMap::new();
            for change in changes {
                let turns = self.is_turn(change) && change.from == change.to;
                assert!(change.from != end || turns, "changed after its end: {change:?}");
                if change.to == end && change.from != end {
                    *ends.entry(&change.key).or_default() += 1;
                }
            }
            assert!(ends.values().all(|count| *count == 1), "{ends:?}");
            for row in self.rows.iter().filter(|row| row.status == "APPLIED") {
                // A compensation that has nothing to reverse is recorded as done at once.
                let is_known = ends.contains_key(row.key.as_str()) || row.back;
                assert!(is_known, "it ended, and nobody saw it: {row:?}");
            }
        }
    }

    /// A step is claimed only when all steps before it are applied, and its receipt is completed
    /// only after theirs.
    fn plans_are_in_order(&self) {
        let place: BTreeMap<&str, &Step> =
            self.rows.iter().map(|row| (row.key.as_str(), row)).collect();
        for (changes, end) in [(&self.outbox, "APPLIED"), (&self.ledger, "SUCCEEDED")] {
            let mut done: BTreeMap<(&str, bool), u32> = BTreeMap::new();
            for change in changes {
                let step = place[change.key.as_str()];
                if change.to == "SUPERSEDED" || self.is_turn(change) {
                    continue;
                }
                let before = done.entry((&step.plan, step.back)).or_default();
                // What is recorded as done at once leaves no change in the ledger.
                let in_turn = if step.back && end == "SUCCEEDED" {
                    *before <= step.position
                } else {
                    *before == step.position
                };
                assert!(in_turn, "out of order: {change:?}");
                if change.to == end {
                    *before = step.position + 1;
                }
            }
        }
    }

    /// Once a plan's compensation is claimed, none of its steps is.
    fn nothing_goes_on_after_it_was_taken_back(&self) {
        let place: BTreeMap<&str, &Step> =
            self.rows.iter().map(|row| (row.key.as_str(), row)).collect();
        let mut going_back: BTreeSet<&str> = BTreeSet::new();
        for change in self.outbox.iter().filter(|change| change.to == "CLAIMED") {
            let step = place[change.key.as_str()];
            if step.back {
                going_back.insert(&step.plan);
            }
            assert!(
                step.back || !going_back.contains(step.plan.as_str()),
                "a step went on while its plan was taken back: {change:?}"
            );
        }
    }

    /// Whether a compensation barred the step: nobody's token, and not to run again.
    fn is_turn(&self, change: &Change) -> bool {
        self.barred.contains(&change.key)
            && change.tokens.0 != change.tokens.1
            && matches!(change.to.as_str(), "FAILED" | "SUCCEEDED")
    }

    fn takeovers(changes: &[Change], live: &str) -> usize {
        changes.iter().filter(|change| is_takeover(change, live)).count()
    }

    /// While a claim is live nobody else gets one, and nobody ends what another has.
    fn no_two_live_tokens(&self, changes: &[Change], live: &str) {
        for change in changes.iter().filter(|change| change.from == live) {
            let (before, after) = &change.tokens;
            assert!(before == after || change.lease_was_over, "a live claim was taken: {change:?}");
            // A takeover is a claim of its own: no end is written under another's token.
            let is_own = before == after || change.to == live || self.is_turn(change);
            assert!(is_own, "ended by another: {change:?}");
        }
    }
}

fn is_takeover(change: &Change, live: &str) -> bool {
    change.from == live && change.to == live && change.tokens.0 != change.tokens.1
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let claims = self
            .outbox
            .iter()
            .filter(|change| change.to == "CLAIMED" && change.tokens.0 != change.tokens.1)
            .count();
        let handed_back = self
            .outbox
            .iter()
            .filter(|change| change.from == "CLAIMED" && change.to == "PENDING")
            .count();
        write!(
            f,
            "{} steps, {claims} claims, {handed_back} handed back, {} taken over from dead workers, \
             {} receipts taken over, {} changes in all",
            self.rows.len(),
            Self::takeovers(&self.outbox, "CLAIMED"),
            Self::takeovers(&self.ledger, "RUNNING"),
            self.outbox.len() + self.ledger.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A history in which one plan of two steps went well.
    fn sound() -> History {
        let change = |key: &str, from: &str, to: &str, tokens: (&str, &str)| Change {
            key: key.to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
            tokens: (tokens.0.to_owned(), tokens.1.to_owned()),
            lease_was_over: false,
        };
        let outbox = vec![
            change("a:1", "PENDING", "CLAIMED", ("", "x")),
            change("a:1", "CLAIMED", "APPLIED", ("x", "x")),
            change("a:2", "WAITING", "PENDING", ("", "")),
            change("a:2", "PENDING", "CLAIMED", ("", "y")),
            change("a:2", "CLAIMED", "APPLIED", ("y", "y")),
        ];
        let ledger = vec![
            change("a:1", "RUNNING", "SUCCEEDED", ("r", "r")),
            change("a:2", "RUNNING", "SUCCEEDED", ("s", "s")),
        ];
        let row = |position: u32| Step {
            key: format!("a:{}", position + 1),
            plan: "a".to_owned(),
            back: false,
            position,
            status: "APPLIED".to_owned(),
        };
        let receipt = |key: &str| (key.to_owned(), "SUCCEEDED".to_owned());
        History {
            outbox,
            ledger,
            rows: vec![row(0), row(1)],
            receipts: vec![receipt("a:1"), receipt("a:2")],
            taken_back: BTreeSet::new(),
            barred: BTreeSet::new(),
        }
    }

    /// Whether the checker objects to a history that was sound before this was done to it.
    fn is_refused(spoil: impl FnOnce(&mut History)) -> bool {
        let mut history = sound();
        spoil(&mut history);
        std::panic::catch_unwind(|| history.check(2)).is_err()
    }

    #[test]
    fn the_checker_accepts_what_is_sound_and_nothing_else() {
        sound().check(2);
        assert!(is_refused(|history| history.rows[1].status = "PENDING".to_owned()), "a lost step");
        assert!(is_refused(|history| drop(history.receipts.pop())), "a lost receipt");
        assert!(is_refused(|history| history.ledger.swap(0, 1)), "out of order on the target");
        assert!(is_refused(|history| history.outbox.swap(1, 3)), "out of order in the outbox");
        let again = |changes: &mut Vec<Change>| changes.extend(changes.last().cloned());
        assert!(is_refused(|history| again(&mut history.outbox)), "applied twice");
        assert!(is_refused(|history| again(&mut history.ledger)), "completed twice");
        let takeover = |change: &Change, lease_was_over| Change {
            to: change.from.clone(),
            tokens: (change.tokens.0.clone(), "z".to_owned()),
            lease_was_over,
            ..change.clone()
        };
        for lease_was_over in [false, true] {
            let refused = is_refused(|history| {
                let stolen = takeover(&history.outbox[1], lease_was_over);
                history.outbox[1].tokens = ("z".to_owned(), "z".to_owned());
                history.outbox.insert(1, stolen);
            });
            assert_eq!(refused, !lease_was_over, "a live claim that was taken");
        }
        let overwritten = |history: &mut History| history.outbox[1].tokens.1 = "z".to_owned();
        assert!(is_refused(overwritten), "an end under another's token");
    }
}
