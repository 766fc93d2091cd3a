//! Character sets and collations that may be named.

/// A character set every supported server knows, in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Charset(&'static str);

/// A collation of such a character set, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Collation(String);

/// Sets whose literals may be introduced: the server's reading of their bytes is ours.
const INTRODUCERS: &[&str] = &["ascii", "binary", "latin1", "utf8", "utf8mb3", "utf8mb4"];

/// Sets a column or a table may have.
const STORED: &[&str] = &[
    "ascii", "armscii8", "big5", "binary", "cp1250", "cp1251", "cp1256", "cp1257", "cp850",
    "cp852", "cp866", "cp932", "euckr", "gb2312", "gbk", "greek", "hebrew", "koi8r", "koi8u",
    "latin1", "latin2", "latin5", "latin7", "macce", "macroman", "sjis", "swe7", "tis620", "ucs2",
    "ujis", "utf16", "utf32", "utf8", "utf8mb3", "utf8mb4",
];

fn among(list: &'static [&'static str], name: &str) -> Option<Charset> {
    list.iter().find(|known| known.eq_ignore_ascii_case(name)).map(|known| Charset(known))
}

impl Charset {
    /// The set of a column, a table or a conversion.
    pub(crate) fn stored(name: &str) -> Option<Self> {
        among(STORED, name)
    }

    /// The set of a literal.
    pub(crate) fn introduced(name: &str) -> Option<Self> {
        among(INTRODUCERS, name)
    }

    pub(crate) const fn as_str(self) -> &'static str {
        self.0
    }
}

impl Collation {
    /// A collation belongs to the set its name starts with (manual: "Collation Naming
    /// Conventions").
    pub(crate) fn new(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let well_formed = name.len() <= 64
            && name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        let known = name == "binary"
            || name
                .split_once('_')
                .is_some_and(|(set, rest)| !rest.is_empty() && Charset::stored(set).is_some());
        (well_formed && known).then_some(Self(name))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collation_belongs_to_a_known_set() {
        for name in ["utf8mb4_0900_ai_ci", "UTF8_BIN", "binary", "latin1_swedish_ci"] {
            assert!(Collation::new(name).is_some(), "{name}");
        }
        for name in ["", "utf8", "filename_x", "utf8_bin; x", "utf8_", "utf8_b`n"] {
            assert!(Collation::new(name).is_none(), "{name}");
        }
    }
}
