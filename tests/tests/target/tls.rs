//! TLS by `sslMode`, against a certificate of the test's own.

use std::path::Path;

use tollgate::target::{ServerFailure, Side, TargetError, TlsProblem};
use tollgate_tests::authority::Authority;
use tollgate_tests::server::{MariaDb, PrivateServer};

use crate::fixture::{CATALOG, Place, open, url};

/// A server with the authority's certificate.
fn server_of(authority: &Authority) -> PrivateServer {
    MariaDb::builder()
        .arg(format!("--ssl-ca={}", authority.path("ca.pem").display()))
        .arg(format!("--ssl-cert={}", authority.path("server.pem").display()))
        .arg(format!("--ssl-key={}", authority.path("server.key").display()))
        .start()
}

async fn opened(place: &Place, host: &str, properties: &str) -> Result<(), TargetError> {
    let mut config = place.config();
    let port = place.server.port();
    config.endpoint = url(&format!("jdbc:mysql://{host}:{port}/{CATALOG}?{properties}"));
    match open(&config).await {
        Ok(connection) => {
            connection.close().await;
            Ok(())
        }
        Err(error) => Err(error),
    }
}

fn refused_for(problem: TlsProblem) -> Result<(), TargetError> {
    Err(TargetError::Server { side: Side::Target, failure: ServerFailure::Tls(problem) })
}

fn trusting(mode: &str, ca: &Path) -> String {
    format!("sslMode={mode}&serverSslCert={}", ca.display())
}

#[tokio::test]
async fn each_mode_checks_what_it_says() {
    let authority = Authority::new("DNS:localhost");
    let stranger = Authority::new("DNS:localhost");
    let place = Place::of(server_of(&authority)).await;
    // From here on the account gets in by TLS only.
    place.server.execute(&["ALTER USER 'tollgate_target'@'%' REQUIRE SSL"]).await;
    let (own, other) = (authority.path("ca.pem"), stranger.path("ca.pem"));

    let plain = opened(&place, "localhost", "sslMode=DISABLED").await.unwrap_err();
    assert_eq!(plain.code(), "target-access-denied");
    for properties in ["sslMode=PREFERRED", "sslMode=REQUIRED", "useSSL=true&requireSSL=true"] {
        assert_eq!(opened(&place, "127.0.0.1", properties).await, Ok(()), "{properties}");
    }
    assert_eq!(opened(&place, "localhost", &trusting("VERIFY_CA", &own)).await, Ok(()));
    assert_eq!(opened(&place, "localhost", &trusting("VERIFY_IDENTITY", &own)).await, Ok(()));
    for mode in ["VERIFY_CA", "VERIFY_IDENTITY"] {
        let outcome = opened(&place, "localhost", &trusting(mode, &other)).await;
        assert_eq!(outcome, refused_for(TlsProblem::UnknownIssuer), "{mode}");
        let outcome = opened(&place, "localhost", &format!("sslMode={mode}")).await;
        assert_eq!(outcome, refused_for(TlsProblem::UnknownIssuer), "{mode} by public authorities");
    }
}

#[tokio::test]
async fn only_verify_identity_checks_the_host() {
    let authority = Authority::new("DNS:db.test");
    let place = Place::of(server_of(&authority)).await;
    let ca = authority.path("ca.pem");
    assert_eq!(opened(&place, "localhost", &trusting("VERIFY_CA", &ca)).await, Ok(()));
    let outcome = opened(&place, "localhost", &trusting("VERIFY_IDENTITY", &ca)).await;
    assert_eq!(outcome, refused_for(TlsProblem::OtherHost));
}

#[tokio::test]
async fn a_server_without_tls_is_refused_unless_tls_is_only_preferred() {
    let place = Place::of(MariaDb::start()).await;
    assert_eq!(opened(&place, "127.0.0.1", "sslMode=PREFERRED").await, Ok(()));
    let error = opened(&place, "127.0.0.1", "sslMode=REQUIRED").await.unwrap_err();
    assert_eq!(error.code(), "target-tls-not-offered");
}

#[tokio::test]
async fn an_unusable_authority_file_is_said_as_such() {
    let place = Place::of(MariaDb::start()).await;
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.pem");
    let text = folder.path().join("text.pem");
    std::fs::write(&text, "not a certificate").unwrap();
    for path in [missing, text] {
        let error = opened(&place, "127.0.0.1", &trusting("VERIFY_CA", &path)).await.unwrap_err();
        assert_eq!(error.code(), "target-ca-file-unusable", "{}", path.display());
    }
}
