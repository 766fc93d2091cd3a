//! From text to a [`JdbcUrl`].

use super::problem::JdbcUrlProblem as Problem;
use super::properties::Properties;
use super::{Endpoint, JdbcUrl, PORT_DEFAULT};

/// A name of a catalog: MySQL's own bound (manual, "Identifier Length Limits").
const CATALOG_LENGTH_MAX: usize = 64;

pub(super) fn jdbc_url(text: &str) -> Result<JdbcUrl, Vec<Problem>> {
    let rest = after_scheme(text).map_err(|problem| vec![problem])?;
    // A raw `@` is user info, or a password that contains `/` or `?` and would be cut into pieces
    // below: nothing else of such a URL is looked at, so no piece of it is repeated.
    if rest.contains('@') || rest.to_ascii_lowercase().contains("%40") && has_user_info(rest) {
        return Err(vec![Problem::Credentials]);
    }
    let mut problems = Vec::new();
    let (rest, fragment) = cut(rest, '#');
    if fragment.is_some() {
        problems.push(Problem::Fragment);
    }
    let (place, query) = cut(rest, '?');
    let properties = match Properties::parse(query.unwrap_or_default()) {
        Ok(properties) => Some(properties),
        // As above: a password with `&` in it continues as properties of its own.
        Err(found) if found.contains(&Problem::Credentials) => {
            return Err(vec![Problem::Credentials]);
        }
        Err(found) => {
            problems.extend(found);
            None
        }
    };
    let (authority, catalog) = cut(place, '/');
    let endpoint = endpoint(authority).map_err(|problem| problems.push(problem)).ok();
    let catalog = checked_catalog(catalog).map_err(|problem| problems.push(problem)).ok();
    if let (Some(endpoint), Some(catalog), Some(properties)) = (endpoint, catalog, properties) {
        let url = assemble(endpoint, authority, catalog, properties);
        match url {
            Ok(url) if problems.is_empty() => return Ok(url),
            Ok(_) => {}
            Err(problem) => problems.push(problem),
        }
    }
    Err(problems)
}

fn assemble(
    endpoint: Endpoint,
    authority: &str,
    catalog: &str,
    properties: Properties,
) -> Result<JdbcUrl, Problem> {
    let endpoint = match properties.socket {
        None => endpoint,
        Some(_) if !authority.is_empty() && !authority.eq_ignore_ascii_case("localhost") => {
            return Err(Problem::SocketAndHost);
        }
        Some(_) if properties.tls.mode() > super::TlsMode::Preferred => {
            return Err(Problem::TlsOnSocket);
        }
        Some(path) => Endpoint::Socket(path),
    };
    Ok(JdbcUrl {
        endpoint,
        catalog: catalog.to_owned(),
        tls: properties.tls,
        connect_timeout: properties.connect_timeout,
        socket_timeout: properties.socket_timeout,
        keep_alive: properties.keep_alive,
    })
}

fn after_scheme(text: &str) -> Result<&str, Problem> {
    let (jdbc, rest) = text.split_once(':').ok_or(Problem::Scheme)?;
    let (scheme, rest) = rest.split_once("//").ok_or(Problem::Scheme)?;
    if !jdbc.eq_ignore_ascii_case("jdbc") {
        return Err(Problem::Scheme);
    }
    let scheme = scheme.to_ascii_lowercase();
    match scheme.as_str() {
        "mysql:" => Ok(rest),
        "mysql+srv:" => Err(Problem::SchemeOfSeveral),
        _ if scheme.starts_with("mysql:") || scheme.starts_with("mysql+srv:") => {
            Err(Problem::SchemeOfSeveral)
        }
        _ => Err(Problem::Scheme),
    }
}

/// An encoded `@` before the catalog is user info as well; in a property's value it is a character.
fn has_user_info(rest: &str) -> bool {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.to_ascii_lowercase().contains("%40")
}

fn endpoint(authority: &str) -> Result<Endpoint, Problem> {
    if authority.starts_with('(')
        || authority.to_ascii_lowercase().starts_with("address") && authority.contains('(')
    {
        return Err(Problem::HostInParentheses);
    }
    if authority.contains(',') {
        return Err(Problem::SeveralHosts);
    }
    if authority.starts_with('[') && !authority.contains(']') {
        return Err(Problem::Host);
    }
    let (host, port) = match authority.rfind(']') {
        Some(end) => {
            let (host, rest) = authority.split_at(end + 1);
            match rest.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if rest.is_empty() => (host, None),
                None => return Err(Problem::Host),
            }
        }
        None => cut(authority, ':'),
    };
    let port = match port {
        None | Some("") => PORT_DEFAULT,
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits.parse().ok().filter(|port| *port > 0).ok_or(Problem::Port)?
        }
        Some(_) => return Err(Problem::Port),
    };
    // Connector/J's own default for an empty host.
    let host = if host.is_empty() { "localhost" } else { host };
    let host = match url::Host::parse(host).map_err(|_| Problem::Host)? {
        url::Host::Domain(name) => name,
        url::Host::Ipv4(address) => address.to_string(),
        url::Host::Ipv6(address) => address.to_string(),
    };
    Ok(Endpoint::Tcp { host, port })
}

fn checked_catalog(catalog: Option<&str>) -> Result<&str, Problem> {
    let catalog = catalog.filter(|catalog| !catalog.is_empty()).ok_or(Problem::CatalogMissing)?;
    let named = |byte: u8| byte.is_ascii_alphanumeric() || b"_$-".contains(&byte);
    if catalog.len() <= CATALOG_LENGTH_MAX && catalog.bytes().all(named) {
        Ok(catalog)
    } else {
        Err(Problem::Catalog)
    }
}

fn cut(text: &str, at: char) -> (&str, Option<&str>) {
    match text.split_once(at) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::super::TlsMode;
    use super::*;

    fn problems(text: &str) -> Vec<Problem> {
        JdbcUrl::parse(text).expect_err(text)
    }

    #[test]
    fn the_forms_of_a_host_are_read() {
        for (text, host, port) in [
            ("jdbc:mysql://db.example/p", "db.example", 3306),
            ("jdbc:mysql://DB.Example:3307/p", "db.example", 3307),
            ("jdbc:mysql://10.0.0.7:3307/p", "10.0.0.7", 3307),
            ("jdbc:mysql://[2001:DB8::1]/p", "2001:db8::1", 3306),
            ("jdbc:mysql://[2001:db8::1]:3307/p", "2001:db8::1", 3307),
            ("jdbc:mysql:///p", "localhost", 3306),
            ("jdbc:mysql://my_service:/p", "my_service", 3306),
        ] {
            let url = JdbcUrl::parse(text).expect(text);
            assert!(url.endpoint == Endpoint::Tcp { host: host.into(), port }, "{text}");
        }
    }

    #[test]
    fn the_url_of_the_original_platform_is_read() {
        let url = JdbcUrl::parse(
            "jdbc:mysql://localhost:3306/ry-vue?useUnicode=true&characterEncoding=utf8\
             &zeroDateTimeBehavior=convertToNull&useSSL=true&serverTimezone=GMT%2B8",
        )
        .unwrap();
        assert_eq!(url.catalog(), "ry-vue");
        assert_eq!(url.tls().mode(), TlsMode::Preferred);
    }

    #[test]
    fn a_socket_takes_the_place_of_the_host() {
        let url = JdbcUrl::parse("jdbc:mysql:///p?localSocket=%2Frun%2Fmysqld.sock").unwrap();
        assert!(url.endpoint == Endpoint::Socket("/run/mysqld.sock".into()));
        let text = "jdbc:mysql://db/p?localSocket=/run/mysqld.sock";
        assert_eq!(problems(text), [Problem::SocketAndHost]);
        let text = "jdbc:mysql:///p?localSocket=/run/mysqld.sock&sslMode=REQUIRED";
        assert_eq!(problems(text), [Problem::TlsOnSocket]);
    }

    #[test]
    fn credentials_are_refused_and_no_piece_of_them_is_repeated() {
        for text in [
            "jdbc:mysql://user:canary@db/p",
            "jdbc:mysql://user:can/canary?ca&canary=1@db/p",
            "jdbc:mysql://user%40db/p",
            "jdbc:mysql://db/p?user=canary",
            "jdbc:mysql://db/p?PASSWORD=a&canary=b",
            "jdbc:mysql://db/p?trustCertificateKeyStorePassword=canary&canary=2",
        ] {
            let found = problems(text);
            assert_eq!(found, [Problem::Credentials], "{text}");
            assert!(!format!("{found:?}").contains("canary"), "{text}");
        }
    }

    #[test]
    fn what_is_not_one_server_is_refused() {
        for (text, problem) in [
            ("", Problem::Scheme),
            ("mysql://db/p", Problem::Scheme),
            ("jdbc:mariadb://db/p", Problem::Scheme),
            ("jdbc:h2:mem:p", Problem::Scheme),
            ("jdbc:mysql:loadbalance://a,b/p", Problem::SchemeOfSeveral),
            ("jdbc:mysql:replication://a,b/p", Problem::SchemeOfSeveral),
            ("jdbc:mysql+srv://a/p", Problem::SchemeOfSeveral),
            ("jdbc:mysql://a,b/p", Problem::SeveralHosts),
            ("jdbc:mysql://address=(host=a)(port=1)/p", Problem::HostInParentheses),
            ("jdbc:mysql://(host=a,port=1)/p", Problem::HostInParentheses),
            ("jdbc:mysql://a:0/p", Problem::Port),
            ("jdbc:mysql://a:65536/p", Problem::Port),
            ("jdbc:mysql://a:+1/p", Problem::Port),
            ("jdbc:mysql://a b/p", Problem::Host),
            ("jdbc:mysql://[::1/p", Problem::Host),
            ("jdbc:mysql://a", Problem::CatalogMissing),
            ("jdbc:mysql://a/", Problem::CatalogMissing),
            ("jdbc:mysql://a/p/q", Problem::Catalog),
            ("jdbc:mysql://a/p%20", Problem::Catalog),
            ("jdbc:mysql://a/p#x", Problem::Fragment),
        ] {
            assert_eq!(problems(text), [problem], "{text}");
        }
    }

    #[test]
    fn every_problem_is_reported_at_once() {
        let found = problems("jdbc:mysql://a,b:x/?ssIMode=DISABLED&connectTimeout=soon");
        assert_eq!(found.len(), 4, "{found:?}");
    }
}
