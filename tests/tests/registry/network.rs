//! What is tried again, what is not, and to whom plain HTTP is spoken.

use tollgate_tests::gate::{Gate, Passage};
use tollgate_tests::oci::OciRegistry;

use crate::fixture::{Bench, assert_refused, json};

/// A registry behind a gate that treats the first connections badly.
fn behind(registry: &OciRegistry, count: usize, bad: &Passage) -> Gate {
    let bad = bad.clone();
    Gate::before(
        registry.port(),
        move |number, _| {
            if number < count { bad.clone() } else { Passage::Through }
        },
    )
}

#[test]
fn broken_connections_and_overload_are_tried_again() {
    let registry = OciRegistry::start();
    for (name, bad) in [
        ("hung-up", Passage::HungUp),
        ("unavailable", Passage::status("503 Service Unavailable")),
        ("too-many", Passage::status("429 Too Many Requests")),
    ] {
        let bench = Bench::new();
        let gate = behind(&registry, 3, &bad);
        let place = format!("127.0.0.1:{}/policies/{name}:1", gate.port());
        let published = json(&bench.publish(&place, &["--format", "json"]));
        assert_eq!(published["isNew"], true, "{name}");
        assert!(gate.seen().len() > 3, "{name}: the gate was not in the way");
        let gate = behind(&registry, 3, &bad);
        let place = format!("127.0.0.1:{}/policies/{name}:1", gate.port());
        let run = bench.pull(&place, &["--digest", &bench.digest().to_string()]);
        assert_eq!(run.code(), Some(0), "{name}: {run:?}");
        assert!(gate.seen().len() > 3, "{name}: the gate was not in the way");
    }
}

#[test]
fn a_registry_that_never_answers_is_given_up() {
    let (bench, registry) = (Bench::new(), OciRegistry::start());
    let gate = behind(&registry, usize::MAX, &Passage::HungUp);
    let run = bench.pull(&format!("127.0.0.1:{}/policies/p:1", gate.port()), &[]);
    assert_refused(&run, 2, "cannot be reached");
    // The client itself sends a request once more when a connection it kept is closed.
    assert!((5..=10).contains(&gate.seen().len()), "{:?}", gate.seen());
    bench.assert_nothing_was_pulled();
}

#[test]
fn a_registry_that_fails_is_told_from_one_that_is_away() {
    let (bench, registry) = (Bench::new(), OciRegistry::start());
    let gate = behind(&registry, usize::MAX, &Passage::status("500 Internal Server Error"));
    let run = bench.pull(&format!("127.0.0.1:{}/policies/p:1", gate.port()), &[]);
    assert_refused(&run, 2, "fails, however often it is asked: 500 Internal Server Error");
    assert!(run.stderr.contains("it can be reached"), "{run:?}");
    bench.assert_nothing_was_pulled();
}

#[test]
fn a_refusal_is_final_and_told_in_one_line() {
    let (bench, registry) = (Bench::new(), OciRegistry::start());
    let body = r#"{"errors":[{"code":"DENIED","message":"not \u001b[31m you\nbut others"}]}"#;
    let denied = Passage::Answered(format!(
        "HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    ));
    let gate = behind(&registry, usize::MAX, &denied);
    let run = bench.pull(&format!("127.0.0.1:{}/policies/p:1", gate.port()), &[]);
    assert_refused(&run, 2, "answered:");
    assert!(run.stderr.contains("you but others"), "{run:?}");
    assert!(!run.stderr.contains('\x1b'), "{run:?}");
    let seen = gate.seen();
    let manifests = seen.iter().filter(|request| request.contains("/manifests/")).count();
    assert_eq!(manifests, 1, "{seen:?}");
}

#[test]
fn plain_http_is_for_this_machine_alone() {
    let bench = Bench::new();
    // Any machine but this one, as far as the address says.
    let listener = Gate::before(0, |_, _| Passage::HungUp);
    let elsewhere = format!("0.0.0.0:{}/policies/p:1", listener.port());
    assert_refused(&bench.pull(&format!("http://{elsewhere}"), &[]), 2, "begins with a scheme");
    assert_eq!(listener.seen(), Vec::<String>::new(), "not a packet was sent");

    assert_refused(&bench.pull(&elsewhere, &[]), 2, "cannot be reached");
    let seen = listener.seen();
    // A TLS handshake, record type 22.
    assert!(!seen.is_empty() && seen.iter().all(|head| head.starts_with('\x16')), "{seen:?}");
}

#[test]
fn a_redirect_to_plain_http_elsewhere_leads_nowhere() {
    let bench = Bench::new();
    let elsewhere = Gate::before(0, |_, _| Passage::status("200 OK"));
    let port = elsewhere.port();
    let redirecting = Gate::before(0, move |_, request| {
        if request.contains("/manifests/") {
            Passage::Answered(format!(
                "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://0.0.0.0:{port}/x\r\n\
                 Content-Length: 0\r\nConnection: close\r\n\r\n"
            ))
        } else {
            Passage::status("200 OK")
        }
    });
    let run = bench.pull(&format!("127.0.0.1:{}/policies/p:1", redirecting.port()), &[]);
    assert_refused(&run, 2, "leads to 0.0.0.0 over plain HTTP");
    assert!(redirecting.seen().iter().any(|request| request.contains("/manifests/")));
    assert_eq!(elsewhere.seen(), Vec::<String>::new());
}

#[test]
fn a_realm_to_log_in_at_over_plain_http_elsewhere_gets_no_password() {
    let bench = Bench::new();
    let elsewhere = Gate::before(0, |_, _| Passage::status("200 OK"));
    let port = elsewhere.port();
    let asking = Gate::before(0, move |_, _| {
        Passage::Answered(format!(
            "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer realm=\"http://0.0.0.0:{port}/t\"\
             ,service=\"s\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        ))
    });
    let host = format!("127.0.0.1:{}", asking.port());
    tollgate_tests::oci::logged_in(&bench.desk.path("docker"), &host, "canary");
    let run = bench.pull(&format!("{host}/policies/p:1"), &[]);
    assert_refused(&run, 2, "leads to 0.0.0.0 over plain HTTP");
    assert!(!asking.seen().is_empty());
    assert_eq!(elsewhere.seen(), Vec::<String>::new());
}

#[test]
fn names_below_localhost_are_other_machines() {
    let bench = Bench::new();
    let redirecting = Gate::before(0, move |_, request| {
        if request.contains("/manifests/") {
            Passage::Answered(
                "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://registry.localhost/x\r\n\
                 Content-Length: 0\r\nConnection: close\r\n\r\n"
                    .into(),
            )
        } else {
            Passage::status("200 OK")
        }
    });
    let run = bench.pull(&format!("127.0.0.1:{}/policies/p:1", redirecting.port()), &[]);
    assert_refused(&run, 2, "leads to registry.localhost over plain HTTP");
}

#[test]
fn a_registry_without_https_is_told_apart_from_one_that_is_away() {
    let bench = Bench::new();
    let plain = Gate::before(0, |_, _| Passage::status("400 Bad Request"));
    let run = bench.pull(&format!("0.0.0.0:{}/policies/p:1", plain.port()), &[]);
    assert_refused(&run, 2, "does not speak HTTPS");
    assert_eq!(plain.seen().len(), 1, "asking again would not help");
}
