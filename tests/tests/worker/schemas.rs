//! What `submit`, `outbox` and `compensate` print as JSON follows docs/schema.

use serde_json::{Value, json};
use tollgate_tests::chain::{Chain, Plugin};
use tollgate_tests::cli::run;
use tollgate_tests::process::tollgate;
use tollgate_tests::schema::Schema;

/// The lines a command prints.
fn lines(chain: &Chain, arguments: &[&str]) -> Vec<Value> {
    let run = run(&mut tollgate(chain, &[], arguments));
    assert_eq!(run.code(), Some(0), "{arguments:?}: {}", run.stderr);
    assert!(!run.stdout.contains("canary"), "{}", run.stdout);
    run.json_lines()
}

fn document(plugin: &Plugin, code: &str, plugins: &[&str]) -> String {
    let file = plugin.root().join(format!("{code}.json"));
    std::fs::write(&file, plugin.document_of(code, plugins)).unwrap();
    file.display().to_string()
}

/// One plan that goes through and one that meets a table that is not there.
struct Plans {
    chain: Chain,
    plugin: Plugin,
}

impl Plans {
    async fn new() -> Self {
        let chain = Chain::start().await;
        chain.control().await;
        let text = "CREATE TABLE IF NOT EXISTS a (id INT PRIMARY KEY)";
        let plugin = Plugin::install(text, Some("DROP TABLE IF EXISTS a"));
        let bad = "INSERT IGNORE INTO nowhere (id) VALUES (1)";
        plugin.install_as("bad", "1.0.0", bad, Some("DROP TABLE IF EXISTS a"));
        Self { chain, plugin }
    }

    fn releases(&self) -> String {
        self.plugin.root().display().to_string()
    }

    fn submit(&self, document: &str) -> Value {
        let arguments = ["submit", document, "--releases", &self.releases(), "--json"];
        lines(&self.chain, &arguments).remove(0)
    }

    fn work(&self) {
        let arguments = ["work", "--releases", &self.releases(), "--until-idle"];
        let run = run(&mut tollgate(&self.chain, &[], &arguments));
        assert_eq!(run.code(), Some(6), "one of the steps fails: {}", run.stderr);
    }
}

#[tokio::test]
async fn submit_outbox_and_compensate_follow_their_schemas() {
    let plans = Plans::new().await;
    let (submitted, outbox, compensated) =
        (Schema::of("submit"), Schema::of("outbox"), Schema::of("compensate"));
    let good = document(&plans.plugin, "good", &["orders"]);
    let bad = document(&plans.plugin, "bad", &["bad", "orders"]);

    let new = plans.submit(&good);
    submitted.assert_accepts(&new);
    assert_eq!((&new["enqueued"], &new["alreadySubmitted"]), (&json!(1), &json!(false)));
    plans.submit(&bad);
    plans.work();
    let again = plans.submit(&good);
    submitted.assert_accepts(&again);
    assert_eq!(again["counts"], json!({ "APPLIED": 1 }));

    let shown = lines(&plans.chain, &["outbox", "--json"]);
    for line in &shown {
        outbox.assert_accepts(line);
    }
    assert_eq!(shown[0]["counts"], json!({"APPLIED": 1, "NEEDS_ATTENTION": 1, "WAITING": 1}));
    assert_eq!(shown[1]["lastErrorCode"], json!("statement-failed"));
    let steps = lines(&plans.chain, &["outbox", "bad", "--json"]);
    for line in &steps {
        outbox.assert_accepts(line);
    }
    assert_eq!(steps.len(), 3);

    let taken_back = lines(&plans.chain, &["compensate", "good", "--json"]).remove(0);
    compensated.assert_accepts(&taken_back);
    assert_eq!(taken_back["enqueued"], json!(["good:1:compensate"]));

    submitted.assert_notices(&new, |it| it["counts"] = json!({}));
    submitted.assert_notices(&new, |it| it["fingerprint"] = json!("x"));
    outbox.assert_notices(&shown[0], |it| it["counts"]["DONE"] = json!(1));
    outbox.assert_notices(&shown[1], |it| it["status"] = json!("FAILED"));
    outbox.assert_notices(&shown[1], |it| it["leaseToken"] = json!("0"));
    outbox.assert_notices(&shown[1], |it| it["createdAt"] = json!("yesterday"));
    compensated.assert_notices(&taken_back, |it| it["enqueued"] = json!(1));
}
