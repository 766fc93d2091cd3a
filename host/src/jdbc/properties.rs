//! Reads the properties of a URL.

use std::path::PathBuf;
use std::time::Duration;

use super::known::{CREDENTIALS, IGNORED, MAPPED, REFUSED};
use super::problem::JdbcUrlProblem as Problem;
use super::{TlsMode, TlsPolicy};

/// The mapped properties of one URL.
#[derive(Debug)]
pub(super) struct Properties {
    pub(super) tls: TlsPolicy,
    pub(super) connect_timeout: Option<Duration>,
    pub(super) socket_timeout: Option<Duration>,
    pub(super) keep_alive: bool,
    pub(super) socket: Option<PathBuf>,
}

impl Properties {
    pub(super) fn parse(query: &str) -> Result<Self, Vec<Problem>> {
        let mut given = Given::default();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            given.take(&name, value.into_owned());
        }
        let properties = given.properties();
        if given.problems.is_empty() { Ok(properties) } else { Err(given.problems) }
    }
}

/// What a URL gives, by the known property's own spelling.
#[derive(Default)]
struct Given {
    values: Vec<(&'static str, String)>,
    ignored: Vec<&'static str>,
    problems: Vec<Problem>,
}

impl Given {
    fn take(&mut self, name: &str, value: String) {
        // Connector/J reads names without regard to case.
        let is = |known: &str| known.eq_ignore_ascii_case(name);
        if CREDENTIALS.iter().any(|known| is(known)) {
            self.problems.push(Problem::Credentials);
        } else if let Some(&(name, reason)) = REFUSED.iter().find(|(known, _)| is(known)) {
            self.problems.push(Problem::PropertyRefused { name, reason });
        } else if let Some(&name) = IGNORED.iter().find(|known| is(known)) {
            self.once(name);
            self.ignored.push(name);
        } else if let Some(property) = MAPPED.iter().find(|property| is(property.name)) {
            self.once(property.name);
            self.values.push((property.name, value));
        } else {
            self.problems.push(unknown(name));
        }
    }

    fn once(&mut self, name: &'static str) {
        let before = self.values.iter().any(|(given, _)| *given == name);
        if before || self.ignored.contains(&name) {
            self.problems.push(Problem::PropertyTwice { name });
        }
    }

    fn properties(&mut self) -> Properties {
        self.character_encoding();
        Properties {
            tls: TlsPolicy { mode: self.tls_mode(), ca_file: self.ca_file() },
            connect_timeout: self.milliseconds("connectTimeout", 60_000),
            socket_timeout: self.milliseconds("socketTimeout", 86_400_000),
            keep_alive: self.flag("tcpKeepAlive").unwrap_or(true),
            socket: self.path("localSocket"),
        }
    }

    /// `sslMode`, or what the older flags say (Connector/J 8.0.13, "useSSL").
    fn tls_mode(&mut self) -> TlsMode {
        let flags = (
            self.flag("useSSL"),
            self.flag("requireSSL").unwrap_or(false),
            self.flag("verifyServerCertificate").unwrap_or(false),
        );
        let mode = match self.value("sslMode") {
            None => Some(match flags {
                (Some(false), _, _) => TlsMode::Disabled,
                (_, _, true) => TlsMode::VerifyCa,
                (_, true, false) => TlsMode::Required,
                (_, false, false) => TlsMode::Preferred,
            }),
            Some(text) => match text.to_ascii_uppercase().as_str() {
                "DISABLED" => Some(TlsMode::Disabled),
                "PREFERRED" => Some(TlsMode::Preferred),
                "REQUIRED" => Some(TlsMode::Required),
                "VERIFY_CA" => Some(TlsMode::VerifyCa),
                "VERIFY_IDENTITY" => Some(TlsMode::VerifyIdentity),
                _ => None,
            },
        };
        mode.unwrap_or_else(|| {
            self.refuse_value("sslMode");
            TlsMode::default()
        })
    }

    fn ca_file(&mut self) -> Option<PathBuf> {
        let is_pem =
            self.value("trustCertificateKeyStoreType").map(|it| it.eq_ignore_ascii_case("PEM"));
        if is_pem == Some(false) {
            self.refuse_value("trustCertificateKeyStoreType");
        }
        let store = "trustCertificateKeyStoreUrl";
        let from_store = self.value(store).map(|url| url.trim_start_matches("file:").to_owned());
        if from_store.is_some() && self.value("serverSslCert").is_some() {
            self.problems.push(Problem::PropertyTwice { name: store });
        }
        match from_store {
            None => self.path("serverSslCert"),
            Some(path) => {
                // `file:/p`, `file:///p` and `/p` are the same place.
                let path = format!("/{}", path.trim_start_matches('/'));
                // Connector/J's default type is a Java key store, which rustls cannot read.
                if is_pem.is_none() && !path.to_ascii_lowercase().ends_with(".pem") {
                    self.refuse_value(store);
                }
                Some(PathBuf::from(path))
            }
        }
    }

    /// Only what the pinned session is anyway.
    fn character_encoding(&mut self) {
        let name = "characterEncoding";
        let other = self.value(name).is_some_and(|value| {
            !["utf-8", "utf8", "utf8mb4"].iter().any(|it| it.eq_ignore_ascii_case(value))
        });
        if other {
            self.refuse_value(name);
        }
    }

    fn milliseconds(&mut self, name: &'static str, max: u64) -> Option<Duration> {
        match self.value(name)?.parse::<u64>() {
            Ok(0) => None,
            Ok(number) if number <= max => Some(Duration::from_millis(number)),
            _ => {
                self.refuse_value(name);
                None
            }
        }
    }

    fn flag(&mut self, name: &'static str) -> Option<bool> {
        let text = self.value(name)?.to_ascii_lowercase();
        match text.as_str() {
            "true" | "yes" => Some(true),
            "false" | "no" => Some(false),
            _ => {
                self.refuse_value(name);
                None
            }
        }
    }

    fn path(&mut self, name: &'static str) -> Option<PathBuf> {
        let path = PathBuf::from(self.value(name)?);
        if path.is_absolute() {
            Some(path)
        } else {
            self.refuse_value(name);
            None
        }
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.values.iter().find(|(given, _)| *given == name).map(|(_, value)| value.as_str())
    }

    fn refuse_value(&mut self, name: &'static str) {
        let rule = MAPPED.iter().find(|property| property.name == name).map_or("", |it| it.rule);
        self.problems.push(Problem::PropertyValue { name, rule });
    }
}

fn unknown(name: &str) -> Problem {
    let named = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if !(1..=64).contains(&name.len()) || !name.bytes().all(named) {
        return Problem::PropertyName;
    }
    let known = MAPPED.iter().map(|it| it.name).chain(IGNORED.iter().copied());
    let nearest = known
        .map(|known| {
            (strsim::damerau_levenshtein(&known.to_lowercase(), &name.to_lowercase()), known)
        })
        .min()
        .filter(|(distance, _)| distance * 3 <= name.len())
        .map(|(_, known)| known);
    Problem::PropertyUnknown { name: name.to_owned(), nearest }
}

#[cfg(test)]
mod tests {
    use super::super::JdbcUrl;
    use super::*;

    fn parse(query: &str) -> Result<JdbcUrl, Vec<Problem>> {
        JdbcUrl::parse(&format!("jdbc:mysql://db/p?{query}"))
    }

    #[test]
    fn ssl_mode_is_what_connector_j_makes_of_the_flags() {
        for (query, mode) in [
            ("", TlsMode::Preferred),
            ("useSSL=false", TlsMode::Disabled),
            ("useSSL=true", TlsMode::Preferred),
            ("useSSL=true&requireSSL=true", TlsMode::Required),
            ("useSSL=true&verifyServerCertificate=true", TlsMode::VerifyCa),
            ("useSSL=true&verifyServerCertificate=false", TlsMode::Preferred),
            ("sslmode=verify_identity&useSSL=false", TlsMode::VerifyIdentity),
        ] {
            assert_eq!(parse(query).expect(query).tls().mode(), mode, "{query}");
        }
    }

    #[test]
    fn a_ca_file_is_named_in_either_connectors_way() {
        for query in [
            "serverSslCert=/etc/ca.pem",
            "trustCertificateKeyStoreUrl=file:/etc/ca.pem",
            "trustCertificateKeyStoreUrl=file:///etc/ca.pem",
            "trustCertificateKeyStoreUrl=file%3A%2Fetc%2Fca.pem&trustCertificateKeyStoreType=PEM",
        ] {
            let url = parse(query).expect(query);
            assert_eq!(url.tls().ca_file(), Some(std::path::Path::new("/etc/ca.pem")), "{query}");
        }
        let java = parse("trustCertificateKeyStoreUrl=file:/etc/trust.jks").unwrap_err();
        assert!(java.iter().any(|it| it.help().contains("keytool")), "{java:?}");
    }

    #[test]
    fn timeouts_are_milliseconds_and_zero_is_the_default_bound() {
        let url = parse("connectTimeout=1500&socketTimeout=0").unwrap();
        assert_eq!(url.connect_timeout(), Some(Duration::from_millis(1_500)));
        assert_eq!(url.socket_timeout(), None);
        for query in ["connectTimeout=-1", "connectTimeout=60001", "socketTimeout=1.5"] {
            assert!(parse(query).is_err(), "{query}");
        }
    }

    #[test]
    fn an_unknown_property_is_refused_by_name() {
        let Err(problems) = parse("sslMod=DISABLED&colour=blue") else { panic!("accepted") };
        assert_eq!(
            problems,
            [
                Problem::PropertyUnknown { name: "sslMod".into(), nearest: Some("sslMode") },
                Problem::PropertyUnknown { name: "colour".into(), nearest: None },
            ]
        );
    }

    #[test]
    fn what_would_change_the_session_is_refused() {
        for query in ["sessionVariables=sql_mode=''", "createDatabaseIfNotExist=true", "dnsSrv=1"] {
            let problems = parse(query).expect_err(query);
            assert!(matches!(problems[..], [Problem::PropertyRefused { .. }]), "{query}");
        }
        assert!(matches!(
            parse("characterEncoding=gbk").unwrap_err()[..],
            [Problem::PropertyValue { .. }]
        ));
    }

    #[test]
    fn a_property_given_twice_is_refused() {
        assert_eq!(
            parse("useSSL=true&USESSL=false").unwrap_err(),
            [Problem::PropertyTwice { name: "useSSL" }]
        );
    }
}
