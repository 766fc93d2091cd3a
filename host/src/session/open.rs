//! Opening a session as a URL asks.

use std::time::Duration;

use mysql_async::{Conn, Opts, OptsBuilder, SslOpts};
use secrecy::{ExposeSecret, SecretString};

use super::failure::ServerFailure;
use crate::jdbc::{Endpoint, JdbcUrl, TlsMode};

/// What we send at most in one packet, and take: far above a normalised payload. Stated, because
/// otherwise the driver asks the server in a round trip of its own.
const PACKET_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The first statement of every session: with a limit that was set for every session, the server cuts
/// even what SHOW answers. See `Pin::every_row`.
const EVERY_ROW: &str = "SET SESSION sql_select_limit = 18446744073709551615";

/// The driver's own notion of an idle session; only its pool reads it, and we do not use that.
const DRIVER_IDLE_SECONDS: usize = 28_800;

/// How long a probe on an idle TCP connection takes to find out that the other side is gone.
const KEEP_ALIVE: Duration = Duration::from_mins(1);

/// How long an orderly goodbye may take before the socket is just closed.
const CLOSE_BUDGET: Duration = Duration::from_secs(2);

/// Where to connect, as whom.
#[derive(Clone, Copy)]
pub(crate) struct SessionSpec<'a> {
    /// Where.
    pub(crate) url: &'a JdbcUrl,
    /// User name.
    pub(crate) username: &'a SecretString,
    /// Password.
    pub(crate) password: &'a SecretString,
    /// Name resolution, TCP, TLS and login together.
    pub(crate) connect_timeout: Duration,
}

/// Opens a session. Its character set is utf8mb4 from the handshake on.
pub(crate) async fn open(spec: &SessionSpec<'_>) -> Result<Conn, ServerFailure> {
    let opening = async {
        let tls = tls_options(spec.url).await?;
        let error = match connect(spec, tls.clone()).await {
            Ok(conn) => return Ok(conn),
            Err(error) => error,
        };
        match second_attempt(spec.url.tls().mode(), tls, &error) {
            Some(tls) => connect(spec, tls).await.map_err(|error| ServerFailure::of(&error)),
            None => Err(ServerFailure::of(&error)),
        }
    };
    tokio::time::timeout(spec.connect_timeout, opening)
        .await
        .unwrap_or(Err(ServerFailure::TimedOut))
}

/// Says goodbye and closes. What the server thinks of it does not matter any more.
pub(crate) async fn close(conn: Conn) {
    let goodbye = tokio::time::timeout(CLOSE_BUDGET, conn.disconnect()).await;
    if !matches!(goodbye, Ok(Ok(()))) {
        tracing::debug!("a session could not be closed in order; its socket is closed");
    }
}

async fn connect(spec: &SessionSpec<'_>, tls: Option<SslOpts>) -> Result<Conn, mysql_async::Error> {
    Conn::new(options(spec, tls)).await
}

/// The TLS options to try next, when a mode does not mean what the driver made of it.
#[expect(clippy::option_option, reason = "no second attempt, and one without TLS")]
fn second_attempt(
    mode: TlsMode,
    tls: Option<SslOpts>,
    error: &mysql_async::Error,
) -> Option<Option<SslOpts>> {
    match mode {
        TlsMode::Preferred if ServerFailure::of(error) == ServerFailure::TlsNotOffered => {
            Some(None)
        }
        // The driver checks the host name even when it is told not to: it looks for an error rustls
        // no longer gives. The chain is checked before the name, and again with the name that the
        // certificate itself states, which is what VERIFY_CA asks for. A certificate that states no
        // name at all stays refused.
        TlsMode::VerifyCa => {
            let name = stated_name(&error.to_string())?;
            Some(tls.map(|tls| tls.with_danger_tls_hostname_override(Some(name))))
        }
        _ => None,
    }
}

/// The first DNS name a certificate states, out of rustls' refusal of another one. A wildcard is
/// filled in, so that it is a name.
fn stated_name(text: &str) -> Option<String> {
    let (_, names) = text.split_once("certificate is only valid for ")?;
    let (_, name) = names.split_once("DnsName(\"")?;
    let (name, _) = name.split_once('"')?;
    Some(name.replacen('*', "any", 1))
}

fn options(spec: &SessionSpec<'_>, tls: Option<SslOpts>) -> Opts {
    let builder = OptsBuilder::default()
        .user(Some(spec.username.expose_secret()))
        .pass(Some(spec.password.expose_secret()))
        .db_name(Some(spec.url.catalog()))
        // The driver would otherwise leave TCP, and with it TLS, for the server's own socket path.
        .prefer_socket(false)
        .max_allowed_packet(Some(PACKET_BYTES_MAX))
        .wait_timeout(Some(DRIVER_IDLE_SECONDS))
        .tcp_nodelay(true)
        .tcp_keepalive(spec.url.keep_alive().then_some(KEEP_ALIVE))
        .connect_attribute("program_name", "tollgate")
        .init(vec![EVERY_ROW])
        .ssl_opts(tls);
    match spec.url.endpoint() {
        Endpoint::Tcp { host, port } => builder.ip_or_hostname(host).tcp_port(*port),
        Endpoint::Socket(path) => builder.socket(Some(path.to_string_lossy())),
    }
    .into()
}

async fn tls_options(url: &JdbcUrl) -> Result<Option<SslOpts>, ServerFailure> {
    let mode = url.tls().mode();
    if mode == TlsMode::Disabled || matches!(url.endpoint(), Endpoint::Socket(_)) {
        return Ok(None);
    }
    let mut options = SslOpts::default();
    if mode < TlsMode::VerifyCa {
        options = options.with_danger_accept_invalid_certs(true);
    }
    if mode < TlsMode::VerifyIdentity {
        options = options.with_danger_skip_domain_validation(true);
    }
    if let Some(path) = url.tls().ca_file() {
        let pem = tokio::fs::read(path).await.map_err(|_| ServerFailure::CaFile)?;
        // The driver takes anything without a PEM section for a DER certificate.
        if !pem.starts_with(b"-----BEGIN") && !contains(&pem, b"-----BEGIN CERTIFICATE-----") {
            return Err(ServerFailure::CaFile);
        }
        options = options
            .with_root_certs(vec![pem.into()])
            // Named authorities are the only ones: any public one could vouch for any host.
            .with_disable_built_in_roots(true);
    }
    Ok(Some(options))
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificates_own_name_is_found_in_the_refusal_of_another() {
        let text = "certificate not valid for name \"a\"; certificate is only valid for ";
        let stated = |names: &str| stated_name(&format!("{text}{names}"));
        assert_eq!(stated("DnsName(\"db.test\")").as_deref(), Some("db.test"));
        assert_eq!(
            stated("IpAddress(10.0.0.1) or DnsName(\"*.db.test\")").as_deref(),
            Some("any.db.test")
        );
        assert_eq!(stated("IpAddress(10.0.0.1)"), None);
        assert_eq!(stated_name("invalid peer certificate: UnknownIssuer"), None);
    }
}
