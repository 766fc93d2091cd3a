//! Links of the page to itself.

use std::fmt;

use crate::ids::StepKey;

/// A path with a query; parts that are empty are left out.
#[derive(Debug, Clone)]
pub(super) struct Link {
    path: &'static str,
    parts: Vec<(&'static str, String)>,
}

impl Link {
    pub(super) fn to(path: &'static str) -> Self {
        Self { path, parts: Vec::new() }
    }

    /// With this part, in place of one of the same name.
    pub(super) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.parts.retain(|(known, _)| *known != name);
        if !value.is_empty() {
            self.parts.push((name, value.to_owned()));
        }
        self
    }
}

/// The page of one execution. In a path `.` and `..` are no names but ways to another place, also
/// when they are percent-encoded (RFC 3986, section 6.2.2.3; WHATWG URL, "double-dot URL path
/// segment"), so browsers would never ask for a step with such a key: it stands in the query.
pub(super) fn to_execution(key: &StepKey) -> String {
    match key.as_str() {
        "." | ".." => Link::to("/execution").with("key", key.as_str()).to_string(),
        // No character of a key means anything in a path.
        key => format!("/executions/{key}"),
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.path)?;
        for (index, (name, value)) in self.parts.iter().enumerate() {
            let mark = if index == 0 { '?' } else { '&' };
            write!(f, "{mark}{name}=")?;
            // RFC 3986: everything but unreserved characters is percent-encoded.
            for byte in value.bytes() {
                if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                    write!(f, "{}", char::from(byte))?;
                } else {
                    write!(f, "%{byte:02X}")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_a_path_would_swallow_stands_in_the_query() {
        let link = |key: &str| to_execution(&key.parse().unwrap());
        assert_eq!(link("up:1"), "/executions/up:1");
        assert_eq!(link("..."), "/executions/...");
        assert_eq!(link("."), "/execution?key=.");
        assert_eq!(link(".."), "/execution?key=..");
    }

    #[test]
    fn parts_are_encoded_and_empty_ones_left_out() {
        let link = Link::to("/executions").with("plugin", "a&b=\"é\"").with("state", "");
        assert_eq!(link.to_string(), "/executions?plugin=a%26b%3D%22%C3%A9%22");
        let link = link.with("before", "7").with("before", "6").with("plugin", "x");
        assert_eq!(link.to_string(), "/executions?before=6&plugin=x");
        let bare = link.with("before", "").with("plugin", "");
        assert_eq!(bare.to_string(), "/executions");
    }
}
