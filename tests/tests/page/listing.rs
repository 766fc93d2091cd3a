//! Executions: filters, pages that neither repeat nor skip, and what one of them shows.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tollgate::executor::Outcome;
use tollgate::ids::Direction;
use tollgate_tests::chain::{Chain, Plugin};
use tollgate_tests::page::{InUse, LEDGER, Served};

/// Keys of the list, in its order.
fn keys(page: &str) -> Vec<String> {
    page.split("<tr role=\"row\" id=\"r")
        .skip(1)
        .map(|row| row.split("<bdi>").nth(1).unwrap().split('<').next().unwrap().to_owned())
        .collect()
}

/// Where the link with this text leads.
fn link(page: &str, text: &str) -> Option<String> {
    let (before, _) = page.split_once(&format!("\">{text}</a>"))?;
    let (_, target) = before.rsplit_once("href=\"")?;
    Some(target.replace("&#38;", "&").replace("&amp;", "&"))
}

#[tokio::test]
async fn ten_thousand_receipts_are_paged_while_more_are_added() {
    let folder = tempfile::tempdir().unwrap();
    let in_use = InUse::start().await;
    in_use.add_many("bulk", 10_000).await;
    let served = Served::start(&in_use.chain, &[], &[], &folder.path().join("log"));
    let expected: Vec<String> = in_use
        .chain
        .rows(&format!("SELECT step_idempotency_key FROM {LEDGER} ORDER BY id DESC"))
        .await;
    assert!(expected.len() > 10_000);
    let (mut seen, mut path, mut slowest) = (Vec::new(), "/executions".to_owned(), Duration::ZERO);
    let mut pages = 0;
    loop {
        let begun = Instant::now();
        let answer = served.get(&path);
        slowest = slowest.max(begun.elapsed());
        assert_eq!(answer.status, 200);
        seen.extend(keys(&answer.body));
        pages += 1;
        if pages % 20 == 1 {
            in_use.add_many(&format!("late-{pages}"), 30).await;
        }
        let Some(next) = link(&answer.body, "Older") else { break };
        path = next;
    }
    println!("{} receipts on {pages} pages, the slowest {slowest:?}", seen.len());
    assert_eq!(seen.len(), expected.len());
    assert_eq!(seen, expected);
    assert!(slowest < Duration::from_secs(4), "{slowest:?}");
}

#[tokio::test]
async fn filters_show_what_they_say_and_keep_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let in_use = InUse::start().await;
    in_use.add_many("bulk", 120).await;
    in_use
        .change("bulk-7", "environment_code = 'live', external_receipt = 'sql:live:bulk-7'")
        .await;
    let served = Served::start(&in_use.chain, &[], &[], &folder.path().join("log"));
    let listed = |query: &str| {
        let answer = served.get(&format!("/executions?{query}"));
        assert_eq!(answer.status, 200, "{query}: {}", answer.body);
        keys(&answer.body)
    };
    for (state, key) in [
        ("running", "summer-7:1"),
        ("lease-expired", "summer-7:2"),
        ("possibly-still-running", "summer-7:3"),
        ("needs-attention", "summer-7:4"),
        ("pruned", "summer-7:6"),
        ("not-applicable", "summer-7:6:compensate"),
    ] {
        assert_eq!(listed(&format!("state={state}")), [key], "{state}");
    }
    assert_eq!(listed("state=failed"), ["summer-7:5", "spring-campaign:1"]);
    assert_eq!(listed("plugin=badges"), ["spring-campaign:1"]);
    assert_eq!(listed("environment=live"), ["bulk-7"]);
    assert_eq!(listed("direction=COMPENSATE"), ["summer-7:6:compensate"]);
    // As the command line writes it.
    assert_eq!(listed("direction=compensate"), ["summer-7:6:compensate"]);
    assert_eq!(listed("state=RUNNING"), ["summer-7:1"]);
    assert_eq!(listed("plugin=badges&state=succeeded"), Vec::<String>::new());
    assert_eq!(listed("plugin=+badges+&state=&environment="), ["spring-campaign:1"]);

    // A filter is kept from page to page, by every link.
    let first = served.get("/executions?state=succeeded&plugin=loyalty").body;
    let older = link(&first, "Older").unwrap();
    assert!(older.contains("state=succeeded") && older.contains("plugin=loyalty"), "{older}");
    let second = served.get(&older).body;
    assert!(keys(&second).iter().all(|key| !keys(&first).contains(key)));
    assert_eq!(link(&second, "Newest").unwrap(), "/executions?state=succeeded&plugin=loyalty");

    // What cannot be asked for is said where it was written, and nothing of it is lost.
    let wrong = served.get("/executions?state=fine&plugin=%3Cb%3E%26&environment=Preview&before=x");
    assert_eq!(wrong.status, 400);
    assert!(wrong.body.contains("value=\"&#60;b&#62;&#38;\""), "{}", wrong.body);
    assert!(wrong.body.contains("value=\"Preview\""));
    assert_eq!(wrong.body.matches("class=\"problem").count(), 4, "{}", wrong.body);
    assert_eq!(served.get("/executions?state=failed&state=running").status, 400);
    assert_eq!(served.get("/executions?before=99999999999999999999999").status, 400);
    assert_eq!(served.get("/outbox?state=fine").status, 400);
    let waiting = served.get("/outbox?state=WAITING");
    assert!(waiting.body.contains("spring-campaign:2"), "{}", waiting.body);
}

#[tokio::test]
async fn back_and_forth_nothing_is_seen_twice_or_skipped_while_receipts_are_added() {
    let folder = tempfile::tempdir().unwrap();
    let in_use = InUse::start().await;
    in_use.add_many("bulk", 230).await;
    let served = Served::start(&in_use.chain, &[], &[], &folder.path().join("log"));
    let mut path = "/executions?plugin=loyalty&state=succeeded".to_owned();
    let mut down = Vec::new();
    let last = loop {
        let page = served.get(&path).body;
        assert_eq!(link(&page, "Newer").is_some(), !down.is_empty(), "{page}");
        down.push(keys(&page));
        match link(&page, "Older") {
            Some(older) => path = older,
            None => break page,
        }
    };
    assert_eq!(down.len(), 5);
    in_use.add_many("late", 60).await;
    let (mut up, mut page) = (Vec::new(), last);
    while let Some(newer) = link(&page, "Newer") {
        page = served.get(&newer).body;
        assert!(link(&page, "Older").is_some(), "{page}");
        up.push(keys(&page));
    }
    up.reverse();
    // Those that were there are on the same pages, what came meanwhile on pages of its own.
    assert_eq!(up[up.len() - 4..], down[..4]);
    let late: Vec<&String> = up[..up.len() - 4].iter().flatten().collect();
    let expected: Vec<String> = (1..=60).rev().map(|number| format!("late-{number}")).collect();
    assert_eq!(late, expected.iter().collect::<Vec<_>>());
    assert!(up.iter().all(|page| !page.is_empty()));

    // Beyond either end there is a way back.
    let beyond = served.get("/executions?after=99999999").body;
    assert!(beyond.contains("No newer executions."), "{beyond}");
    let back = served.get(&link(&beyond, "Older").unwrap()).body;
    assert_eq!(keys(&back)[0], "late-60");
    let below = served.get("/executions?before=1").body;
    assert!(below.contains("No older executions."), "{below}");
    assert_eq!(keys(&served.get(&link(&below, "Newer").unwrap()).body).len(), 50);
    assert_eq!(served.get("/executions?before=9&after=3").status, 400);

    // The dialog keeps its place in the list.
    let second = served.get(&path).body;
    let open = second.split("class=\"step\" href=\"").nth(1).unwrap().split('"').next().unwrap();
    let open = open.replace("&#38;", "&").replace("&amp;", "&");
    assert!(open.contains("before=") && open.contains("plugin=loyalty"), "{open}");
    let steps = served.get("/outbox?after=0").body;
    assert!(steps.contains("spring-campaign:1") && link(&steps, "Older").is_some(), "{steps}");
}

#[tokio::test]
async fn what_needs_attention_comes_first_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let in_use = InUse::start().await;
    in_use.add_many("bulk", 60).await;
    let served = Served::start(&in_use.chain, &[], &[], &folder.path().join("log"));
    for path in ["/", "/executions"] {
        let page = served.get(path).body;
        let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("no `{text}`: {page}"));
        assert!(place("summer-7:4") < place("summer-7:3"), "{path}");
        assert!(place("summer-7:3") < place("summer-7:2"), "{path}");
        assert!(place("summer-7:2") < place("summer-7:5"), "{path}");
        assert!(place("possibly still running on the server") > 0);
    }
    let page = served.get("/").body;
    assert!(page.contains("tollgate outbox retry"), "{page}");
    let step = page.split("<li>").find(|item| item.contains("/executions/spring-campaign:1\""));
    let step = step.unwrap();
    assert!(step.contains("1146") && step.contains("the plan stands still"), "{step}");
    assert_eq!(page.matches("/executions/spring-campaign:1\"").count(), 1, "said once");
    assert!(!page.contains("is still on the server, and"), "{page}");

    // The outbox begins with the same, until it is filtered.
    let steps = served.get("/outbox").body;
    let (first, rest) = steps.split_once("All steps, the youngest first").unwrap();
    assert!(first.contains("spring-campaign:1") && first.contains("outbox retry"), "{first}");
    assert!(!first.contains("loyalty-1.0.0:1") && rest.contains("loyalty-1.0.0:1"), "{steps}");
    let filtered = served.get("/outbox?state=applied").body;
    assert!(!filtered.contains("spring-campaign:1") && filtered.contains("loyalty-1.0.0:1"));

    // A session that may still run is told whatever the state.
    let zombie = "session_id = 4711, session_marker = 'tollgate-page-zombie', server_id = 's'";
    in_use.change("summer-7:4", zombie).await;
    let page = served.get("/").body;
    let item = page.split("<li>").find(|item| item.contains("/executions/summer-7:4\"")).unwrap();
    assert!(item.contains("needs attention") && item.contains("is still on the server"), "{item}");
    assert!(item.contains("KILL 4711"), "{item}");

    // What was edited by hand is before all of it, also when it says that it succeeded.
    in_use.change("bulk-3", "completed_at = NULL").await;
    for path in ["/", "/executions"] {
        let page = served.get(path).body;
        let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("no `{text}`: {page}"));
        assert!(place("bulk-3<") < place("summer-7:4<"), "{path}");
        assert!(page.contains("edited by hand"), "{path}: {page}");
    }
    let metrics = served.get("/metrics").body;
    assert!(metrics.contains("tollgate_executions_edited 1\n"), "{metrics}");
}

#[tokio::test]
async fn an_execution_shows_its_receipt_its_delivery_and_its_statements() {
    let folder = tempfile::tempdir().unwrap();
    let in_use = InUse::start().await;
    let releases = in_use.releases();
    let log = folder.path().join("log");
    let served = Served::start(&in_use.chain, &[], &["--releases", &releases], &log);
    let page = served.get("/executions/loyalty-1.0.0:1");
    assert_eq!(page.status, 200);
    for text in [
        "sql-jdbc:v1",
        "sql:preview:loyalty-1.0.0:1",
        "forward",
        "3 of 3",
        "digest is the receipt&#39;s",
        "CREATE TABLE IF NOT EXISTS `plugin_preview`.`tier`",
        "DELETE FROM `plugin_preview`.`tier`",
        "applied",
        "1; counted against the limit: 0 that failed, 0 that never reported",
    ] {
        assert!(page.body.contains(text), "no `{text}`: {}", page.body);
    }
    let time = page.body.split("datetime=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(time.starts_with("20") && time.ends_with('Z'), "{time}");

    // The same over the list, whose own links then lead nowhere, and which closing leads back to.
    let over = served.get("/executions?plugin=loyalty&open=loyalty-1.0.0%3A1").body;
    assert!(over.contains("<dialog open") && over.contains("<div class=\"page\" inert>"), "{over}");
    assert!(link(&over, "Close").is_none(), "the link has focus");
    assert!(over.contains("href=\"/executions?plugin=loyalty#r"), "{over}");

    // What is not known is not claimed.
    let failed = served.get("/executions/spring-campaign:1").body;
    assert!(failed.contains("server-1146") && failed.contains("needs attention"), "{failed}");
    let pruned = served.get("/executions/summer-7:6").body;
    assert!(pruned.contains("names no decision any more"), "{pruned}");
    in_use.plugin.install_as("loyalty", "1.0.0", "DROP TABLE IF EXISTS tier;", None);
    let other = served.get("/executions/loyalty-1.0.0:1").body;
    assert!(other.contains("is installed with another payload"), "{other}");
    let without = Served::start(&in_use.chain, &[], &[], &folder.path().join("without"));
    let page = without.get("/executions/loyalty-1.0.0:1").body;
    assert!(page.contains("keeps digests and no payload") && !page.contains("CREATE"), "{page}");

    assert_eq!(served.get("/executions/nothing").status, 404);
    assert_eq!(served.get("/executions/no%20key").status, 400);
    let waiting = served.get("/executions/spring-campaign:2");
    assert_eq!(waiting.status, 200, "the outbox knows it, the ledger does not");
    assert!(waiting.body.contains("waiting for an earlier step"), "{}", waiting.body);
}

#[tokio::test]
async fn hostile_texts_and_rows_are_shown_and_hide_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let in_use = InUse::start().await;
    let long = format!("<script>alert('{}')</script>\u{202e}", "x".repeat(900));
    in_use.change("summer-7:5", &format!("last_error = '{}'", long.replace('\'', "''"))).await;
    in_use.change("summer-7:4", "last_error_code = '<img src=x>'").await;
    in_use.copy("'edited-1'", "").await;
    in_use.change("edited-1", "plugin_code = '<script>1'").await;
    in_use.copy("'edited-2'", "").await;
    in_use.change("edited-2", "completed_at = NULL").await;
    let releases = in_use.releases();
    let served =
        Served::start(&in_use.chain, &[], &["--releases", &releases], &folder.path().join("log"));
    let mut pages = BTreeSet::new();
    for path in [
        "/",
        "/executions",
        "/executions?state=failed",
        "/executions/summer-7:5",
        "/executions/orders-1.0.0:1",
        "/executions?plugin=%22%3E%3Cscript%3E&state=%3Cscript%3E&before=%3Cscript%3E",
        "/executions?open=%3Cscript%3E",
        "/outbox?state=%3Cscript%3E%E2%80%AE",
        "/executions/%3Cscript%3E",
        "/%3Cscript%3E",
    ] {
        let page = served.get(path).body;
        assert!(!page.contains("<script") && !page.contains("<img"), "{path}: {page}");
        assert!(!page.contains('\u{202e}'), "{path}: {page}");
        pages.insert(page);
    }
    let failed = served.get("/executions/summer-7:5").body;
    assert!(failed.contains("&#60;script&#62;alert"), "{failed}");
    assert!(failed.contains("show all") && failed.contains("&#60;U+202E&#62;"), "{failed}");
    let statements = served.get("/executions/orders-1.0.0:1").body;
    assert!(statements.contains("&#60;script&#62;alert(1)"), "{statements}");
    let list = served.get("/executions").body;
    assert!(list.contains("<code>plugin_code</code> does not read"), "{list}");
    assert!(list.contains("edited by hand"), "{list}");
    assert!(keys(&list).contains(&"loyalty-1.0.0:1".to_owned()), "the others are there");
}

#[tokio::test]
async fn a_receipt_that_does_not_read_is_not_taken_for_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let chain = Chain::start().await;
    chain.control().await;
    let plugin = Plugin::install("DROP TABLE IF EXISTS unused", None);
    let applied = chain.deliver(&plugin, &plugin.step("up", Direction::Forward)).await;
    assert!(matches!(applied, Outcome::Applied(_)), "{applied:?}");
    let edit = "status = 'FAILED', execution_count = 50, executor_code = '?'";
    chain.admin_run(&format!("UPDATE {LEDGER} SET {edit}")).await;
    let served = Served::start(&chain, &[], &[], &folder.path().join("log"));
    let page = served.get("/").body;
    assert!(!page.contains("Nothing needs attention"), "{page}");
    assert!(page.contains("A receipt cannot be read"), "{page}");
    assert!(page.contains("<code>executor_code</code> is not as this version writes it"), "{page}");
}
