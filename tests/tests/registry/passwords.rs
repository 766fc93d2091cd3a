//! Passwords: taken from docker's configuration and from files, and printed nowhere.

use std::fs;
use std::process::Command;

use tollgate_tests::cli::{self, Run};
use tollgate_tests::oci::{OciRegistry, PASSWORD, USER, logged_in};

use crate::fixture::{Bench, assert_refused};

/// Stops the test when the password is in the output, as it is or as it is sent.
#[track_caller]
fn assert_discreet(run: &Run) {
    // `printf %s publisher:canary-registry-password | base64`
    let sent = "cHVibGlzaGVyOmNhbmFyeS1yZWdpc3RyeS1wYXNzd29yZA";
    for output in [&run.stdout, &run.stderr] {
        for secret in [PASSWORD, sent, "canary"] {
            assert!(!output.contains(secret), "{output}");
        }
    }
}

#[test]
fn who_may_publish_is_taken_from_docker_s_configuration() {
    let (bench, registry) = (Bench::new(), OciRegistry::with_password());
    let place = registry.place("hostile:0.0.0");
    let host = format!("127.0.0.1:{}", registry.port());
    assert_refused(&bench.publish(&place, &[]), 2, "asks for other credentials");
    assert_refused(&bench.pull(&place, &[]), 2, "asks for other credentials");

    let docker = bench.desk.path("docker");
    logged_in(&docker, &host, "canary-wrong-password");
    for run in [bench.publish(&place, &[]), bench.pull(&place, &[])] {
        assert_refused(&run, 2, "asks for other credentials");
        assert_discreet(&run);
    }

    logged_in(&docker, &host, PASSWORD);
    let publish = ["policy", "publish", "p.wasm", &place];
    let run = cli::run(bench.command(&publish).env("TOLLGATE_LOG", "trace"));
    assert_eq!(run.code(), Some(0), "{run:?}");
    assert!(run.stderr.contains("/v2/"), "the log tells of requests: {}", run.stderr);
    assert_discreet(&run);
    let run = bench.pull(&place, &["--digest", &bench.digest().to_string()]);
    assert_eq!(run.code(), Some(0), "{run:?}");
    assert_discreet(&run);

    // Of another registry: nobody in particular here.
    logged_in(&docker, "registry.example", PASSWORD);
    assert_refused(&bench.pull(&place, &[]), 2, "asks for other credentials");
    fs::write(docker.join("config.json"), "{ no json").unwrap();
    assert_refused(&bench.pull(&place, &[]), 2, "docker/config.json` cannot be read");
    let entry = format!(r#"{{"auths":{{"{host}":{{"identitytoken":"canary-token"}}}}}}"#);
    fs::write(docker.join("config.json"), entry).unwrap();
    let run = bench.pull(&place, &[]);
    assert_refused(&run, 2, "identity token");
    assert_discreet(&run);
}

#[test]
fn a_credential_helper_is_asked_and_its_failure_is_not_repeated() {
    use std::os::unix::fs::PermissionsExt as _;

    let (bench, registry) = (Bench::new(), OciRegistry::with_password());
    let place = registry.place("hostile:0.0.0");
    bench.desk.write("docker/config.json", r#"{"credsStore":"canary"}"#);
    let helper = |script: &str| {
        let path = bench.desk.write("bin/docker-credential-canary", script);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!(
            "{}:{}",
            bench.desk.path("bin").display(),
            std::env::var("PATH").unwrap_or_default()
        );
        cli::run(bench.command(&["policy", "publish", "p.wasm", &place]).env("PATH", path))
    };
    let run = helper(
        "#!/bin/sh\ncat >/dev/null\necho '{\"Username\":\"U\",\"Secret\":\"canary-s\"}'; echo canary-e >&2; exit 1\n",
    );
    assert_refused(&run, 2, "credential helper");
    assert!(!run.stderr.contains("canary-s") && !run.stderr.contains("canary-e"), "{run:?}");
    let run = helper(
        "#!/bin/sh\ncat >/dev/null\necho 'credentials not found in native keychain'; exit 1\n",
    );
    assert_refused(&run, 2, "asks for other credentials");
    let told = format!(
        "#!/bin/sh\ncat >/dev/null\necho '{{\"ServerURL\":\"x\",\"Username\":\"{USER}\",\"Secret\":\"{PASSWORD}\"}}'\n"
    );
    let run = helper(&told);
    assert_eq!(run.code(), Some(0), "{run:?}");
    assert_discreet(&run);
}

#[test]
fn a_protected_key_signs_with_the_password_of_a_file() {
    let (bench, registry) = (Bench::new(), OciRegistry::start());
    let place = registry.place("hostile:0.0.0");
    let mut minisign = Command::new("minisign");
    minisign.args(["-G", "-s", "k.key", "-p", "k.pub"]).current_dir(bench.desk.folder());
    let run = cli::run_with_input(&mut minisign, b"canary-key-password\ncanary-key-password\n");
    assert_eq!(run.code(), Some(0), "{run:?}");
    let sign = ["--sign-key", "k.key"];
    assert_refused(&bench.publish(&place, &sign), 2, "TOLLGATE_SIGN_PASSWORD_FILE");
    bench.desk.write("right", "canary-key-password\n");
    let mut publish =
        bench.command(&["policy", "publish", "p.wasm", &place, "--sign-key", "k.key"]);
    let run = cli::run(publish.env("TOLLGATE_SIGN_PASSWORD_FILE", bench.desk.path("right")));
    assert_eq!(run.code(), Some(0), "{run:?}");
    assert_discreet(&run);
    assert_eq!(bench.pull(&place, &["--verify-key", "k.pub"]).code(), Some(0));
}
