//! A registry that means harm: answers without an end, sizes that are not true, and secrets sent back.

use std::time::Duration;

use serde_json::json;
use tollgate::digest::Digest;
use tollgate::registry::{Registry, RegistryError};
use tollgate_tests::hostile_registry::{HostileRegistry, Reply, Request};
use tollgate_tests::oci::logged_in;
use tollgate_tests::peak::peak_kib;

use crate::fixture::{Bench, assert_refused};

const OK: &str = "200 OK";

/// A manifest of a policy whose layer has this digest and, as it says, this size.
fn manifest(component: &[u8], size: usize) -> Vec<u8> {
    json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {
            "mediaType": "application/vnd.wasm.config.v0+json",
            "digest": Digest::of("{}").to_string(),
            "size": 2,
        },
        "layers": [{
            "mediaType": "application/wasm",
            "digest": Digest::of(component).to_string(),
            "size": size,
        }],
    })
    .to_string()
    .into_bytes()
}

/// A registry that lets everyone in, with this manifest and this blob.
fn with(manifest: Reply, blob: Reply) -> HostileRegistry {
    HostileRegistry::start(move |request| match request {
        Request { line, .. } if line.contains("/manifests/") => manifest.clone(),
        Request { line, .. } if line.contains("/blobs/") => blob.clone(),
        _ => Reply::new(OK, &[], "{}"),
    })
}

/// Whoever wants to log in is sent to where this is answered.
fn asking_for_a_token(token: Reply) -> HostileRegistry {
    HostileRegistry::start(move |request| {
        let host = request
            .headers
            .lines()
            .find_map(|it| it.to_lowercase().strip_prefix("host: ").map(str::to_owned));
        let challenge = format!(
            "WWW-Authenticate: Bearer realm=\"http://{}/token\",service=\"s\"",
            host.unwrap_or_default()
        );
        match request {
            Request { line, .. } if line.contains("/token") => token.clone(),
            _ => Reply::new("401 Unauthorized", &[&challenge], ""),
        }
    })
}

#[test]
fn no_answer_is_read_to_an_end_that_it_has_not() {
    let bench = Bench::new();
    let good = Reply::new(OK, &[], manifest(&bench.component, bench.component.len()));
    for (name, registry, read, told) in [
        (
            "manifest",
            with(Reply::endless(OK), Reply::endless(OK)),
            4 << 20,
            "more than 4194304 bytes",
        ),
        ("blob", with(good.clone(), Reply::endless(OK)), 64 << 10, "sent more bytes for"),
        (
            "error",
            with(Reply::endless("403 Forbidden"), Reply::endless(OK)),
            64 << 10,
            "403 Forbidden",
        ),
        ("token", asking_for_a_token(Reply::endless(OK)), 64 << 10, "more than 65536 bytes"),
        (
            "refused token",
            asking_for_a_token(Reply::endless("403 Forbidden")),
            64 << 10,
            "asks for other credentials",
        ),
    ] {
        let place = registry.place("p:1.0.0");
        let run = bench.pull(&place, &[]);
        let code = if name == "blob" { 4 } else { 2 };
        assert_refused(&run, code, told);
        // Buffers of the system on both sides hold some megabytes.
        assert!(registry.sent() < read + (16 << 20), "{name}: {} bytes", registry.sent());
        let pull = ["policy", "pull", &place, "--to", "out"];
        let (_, peak) = peak_kib(&mut bench.command(&pull));
        assert!(peak < 200 << 10, "{name}: {peak} KiB");
        bench.assert_nothing_was_pulled();
    }
}

#[test]
fn a_layer_has_as_many_bytes_as_its_manifest_says() {
    let bench = Bench::new();
    let blob = Reply::new(OK, &[], bench.component.clone());
    let bytes = bench.component.len();
    for (size, told) in
        [(bytes - 1, "sent more bytes for"), (bytes + 1, &format!("sent {bytes} bytes"))]
    {
        let registry = with(Reply::new(OK, &[], manifest(&bench.component, size)), blob.clone());
        assert_refused(&bench.pull(&registry.place("p:1.0.0"), &[]), 4, told);
        bench.assert_nothing_was_pulled();
    }
    let registry = with(Reply::new(OK, &[], manifest(&bench.component, 1 << 30)), blob.clone());
    assert_refused(
        &bench.pull(&registry.place("p:1.0.0"), &[]),
        2,
        "its layer has 1073741824 bytes",
    );
    let registry = with(Reply::new(OK, &[], manifest(&bench.component, bytes)), blob);
    assert_eq!(bench.pull(&registry.place("hostile:0.0.0"), &[]).code(), Some(0));
}

#[tokio::test]
async fn a_registry_that_takes_its_time_is_given_up() {
    let registry = with(Reply::dripping(OK), Reply::dripping(OK));
    let place = registry.place("p:1.0.0").parse().unwrap();
    let asked = Registry::new(place).unwrap().with_budget(Duration::from_secs(1));
    let error = asked.pull(None, None).await.unwrap_err();
    assert!(matches!(error, RegistryError::Budget { .. }), "{error:?}");
    assert!(registry.sent() > 1, "it never fell silent");
}

#[test]
fn redirects_end() {
    let bench = Bench::new();
    let turn =
        Reply::new("307 Temporary Redirect", &["Location: /v2/policies/p/manifests/again"], "");
    let registry = with(turn.clone(), turn);
    assert_refused(&bench.pull(&registry.place("p:1.0.0"), &[]), 2, "redirects more than");
}

#[test]
fn what_a_registry_was_sent_is_not_shown_when_it_sends_it_back() {
    const PASSWORD: &str = "canary\"pass+word";
    let bench = Bench::new();
    let registry = HostileRegistry::start(|request| {
        let proof =
            request.headers.lines().find(|it| it.to_lowercase().starts_with("authorization"));
        match proof {
            _ if request.line.ends_with("/v2/ HTTP/1.1") => {
                Reply::new("401 Unauthorized", &["WWW-Authenticate: Basic realm=\"x\""], "")
            }
            Some(proof) => Reply::new(
                "403 Forbidden",
                &[],
                format!("no {proof},\nnot publisher with {PASSWORD} or canary%22pass%2Bword"),
            ),
            None => Reply::new("400 Bad Request", &[], "no proof"),
        }
    });
    let host = format!("127.0.0.1:{}", registry.port());
    logged_in(&bench.desk.path("docker"), &host, PASSWORD);
    let run = bench.pull(&registry.place("p:1.0.0"), &[]);
    assert_refused(&run, 2, "403 Forbidden");
    assert!(run.stderr.contains("Basic …"), "the proof came back: {run:?}");
    // `printf %s 'publisher:canary"pass+word' | base64`, and parts that any rest of it would have.
    for secret in ["canary", "publisher", "cHVibGlzaGVy", "Y2FuYXJ5"] {
        assert!(!run.stderr.contains(secret), "{}", run.stderr);
    }
    let answered = run.stderr.lines().filter(|line| line.contains("403 Forbidden"));
    assert!(
        answered.clone().count() == 1 && answered.into_iter().all(|it| it.contains("or …")),
        "{run:?}"
    );
}
