//! What a registry says, as it may be shown: in one line, shortened, and without what is secret.
//!
//! A registry can send back whatever it was sent, as it was or encoded.

use std::fmt::Write as _;

use oci_client::secrets::RegistryAuth;

/// Characters of an answer that are shown.
const SHOWN_MAX: usize = 300;
/// What stands in the place of a secret.
const MASK: &str = "…";

/// What is not to be shown, in every form in which it may come back.
#[derive(Clone, Default)]
pub(super) struct Discretion {
    secrets: Vec<String>,
    login: Option<String>,
}

impl Discretion {
    /// Of a login and its password.
    pub(super) fn of(auth: &RegistryAuth) -> Self {
        let mut discretion = Self::default();
        if let RegistryAuth::Basic(login, password) = auth {
            discretion.add(&format!("{login}:{password}"));
            discretion.add(password);
            discretion.login = Some(login.clone()).filter(|login| !login.is_empty());
        }
        discretion
    }

    /// Keeps one more secret.
    pub(super) fn add(&mut self, secret: &str) {
        let json = serde_json::Value::from(secret).to_string();
        let forms = [
            secret.to_owned(),
            json.trim_matches('"').to_owned(),
            base64(secret.as_bytes(), *b"+/"),
            base64(secret.as_bytes(), *b"-_"),
            percent(secret),
            url::form_urlencoded::byte_serialize(secret.as_bytes()).collect(),
        ];
        self.secrets.extend(forms.into_iter().filter(|form| !form.is_empty()));
        // The longest first: none leaves a rest of another one that it is in.
        self.secrets.sort_by_key(|form| std::cmp::Reverse(form.len()));
        self.secrets.dedup();
    }

    /// A text of the registry's as it may be shown.
    pub(super) fn told(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            text = text.replace(secret.as_str(), MASK);
        }
        if let Some(login) = &self.login {
            text = without_word(&text, login);
        }
        let shown = text.chars().map(|it| if it.is_control() { ' ' } else { it });
        let shown: String = shown.take(SHOWN_MAX).collect();
        shown.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// The text without a login. A short one may be part of many words, so only the whole word counts.
fn without_word(text: &str, login: &str) -> String {
    let is_part = |character: Option<char>| character.is_some_and(char::is_alphanumeric);
    let (mut kept, mut rest) = (String::with_capacity(text.len()), text);
    let mut before = None;
    while let Some((head, tail)) = rest.split_once(login) {
        let outside = head.chars().next_back().or(before);
        let is_whole = !is_part(outside) && !is_part(tail.chars().next());
        kept.push_str(head);
        kept.push_str(if is_whole { MASK } else { login });
        before = login.chars().next_back();
        rest = tail;
    }
    kept + rest
}

/// Base64 without padding, so that it is found with and without.
fn base64(bytes: &[u8], [plus, slash]: [u8; 2]) -> String {
    let digit = |value: u32| match u8::try_from(value & 63).unwrap_or_default() {
        value @ 0..26 => char::from(b'A' + value),
        value @ 26..52 => char::from(b'a' + value - 26),
        value @ 52..62 => char::from(b'0' + value - 52),
        62 => char::from(plus),
        _ => char::from(slash),
    };
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - chunk.len()));
        text.extend((0..=chunk.len()).map(|at| digit(bits >> (18 - 6 * at))));
    }
    text
}

/// Every byte but letters and digits as `%XX`.
fn percent(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        let _ = match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'_' | b'.' | b'~' => {
                write!(encoded, "{}", char::from(byte))
            }
            _ => write!(encoded, "%{byte:02X}"),
        };
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_rfc_4648() {
        for (text, encoded) in [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg"),
            ("fooba", "Zm9vYmE"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(text.as_bytes(), *b"+/"), encoded);
        }
        assert_eq!(base64(&[0xfb, 0xff], *b"-_"), "-_8");
    }

    #[test]
    fn no_form_of_a_secret_is_shown() {
        let auth = RegistryAuth::Basic("ann".into(), "p&\"w ü+".into());
        let mut discretion = Discretion::of(&auth);
        discretion.add("token-of-the-registry");
        for said in [
            "p&\"w ü+",
            &format!("Basic {}", base64("ann:p&\"w ü+".as_bytes(), *b"+/")),
            &format!("{}==", base64("p&\"w ü+".as_bytes(), *b"-_")),
            "?password=p%26%22w%20%C3%BC%2B",
            "?password=p%26%22w+%C3%BC%2B",
            r#"{"password":"p&\"w ü+"}"#,
            "Bearer token-of-the-registry",
        ] {
            let told = discretion.told(&format!("you said: {said}."));
            for rest in ["p&", "w ü", "cCYi", "YW5uOnAm", "%26", "token-of"] {
                assert!(!told.contains(rest), "{told}");
            }
            assert!(told.starts_with("you said: "), "{told}");
        }
        assert_eq!(discretion.told("ann may not, anna may"), "… may not, anna may");
    }

    #[test]
    fn what_is_shown_is_one_short_line() {
        let told = Discretion::default().told(&format!("a\r\n\x1b[31m\tb {}", "x".repeat(1000)));
        assert!(told.starts_with("a [31m b x") && told.chars().count() <= SHOWN_MAX, "{told}");
    }
}
