//! A catalog as a grant names it: characters, and what stands for any.

/// How a server reads the names in grants of one catalog.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GrantReading<'a> {
    /// The catalog it is about.
    pub(crate) catalog: &'a str,
    /// Whether the server folds the case of catalogs (`lower_case_table_names`).
    pub(crate) folds_case: bool,
    /// Whether `%` and `_` are wildcards; not so under `partial_revokes`.
    pub(crate) has_wildcards: bool,
}

impl GrantReading<'_> {
    /// Whether a name, as the server tells it, is the catalog's.
    pub(crate) fn is_catalog(&self, name: &str) -> bool {
        name == self.catalog || self.folds_case && name.eq_ignore_ascii_case(self.catalog)
    }
}

/// The pieces of such a name.
pub(crate) struct CatalogPattern(Vec<Piece>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Piece {
    Char(char),
    AnyChar,
    AnyText,
}

impl CatalogPattern {
    /// `\_` and `\%` are the characters themselves (manual, "GRANT Statement").
    pub(crate) fn of(text: &str, has_wildcards: bool) -> Self {
        let mut pieces = Vec::new();
        let mut chars = text.chars();
        while let Some(char) = chars.next() {
            pieces.push(match char {
                _ if !has_wildcards => Piece::Char(char),
                '\\' => Piece::Char(chars.next().unwrap_or('\\')),
                '_' => Piece::AnyChar,
                '%' => Piece::AnyText,
                _ => Piece::Char(char),
            });
        }
        Self(pieces)
    }

    pub(crate) fn has_percent(&self) -> bool {
        self.0.contains(&Piece::AnyText)
    }

    pub(crate) fn has_underscore(&self) -> bool {
        self.0.contains(&Piece::AnyChar)
    }

    /// Whether the catalog is one that it stands for.
    pub(crate) fn matches(&self, reading: GrantReading<'_>) -> bool {
        // Where in the catalog's name what was read so far may have ended; more places than one after
        // a `%`. A name has 64 characters at most.
        let name: Vec<char> = reading.catalog.chars().collect();
        let mut ends = vec![false; name.len() + 1];
        if let Some(start) = ends.first_mut() {
            *start = true;
        }
        for piece in &self.0 {
            ends = piece.ends(&ends, &name, reading.folds_case);
        }
        ends.last().copied().unwrap_or_default()
    }

    /// As it reads without its backslashes.
    pub(crate) fn text(&self) -> String {
        self.0
            .iter()
            .map(|piece| match piece {
                Piece::Char(char) => *char,
                Piece::AnyChar => '_',
                Piece::AnyText => '%',
            })
            .collect()
    }
}

impl Piece {
    /// Where the piece may end, begun wherever the one before it may have ended.
    fn ends(self, begins: &[bool], name: &[char], folds_case: bool) -> Vec<bool> {
        let mut is_open = false;
        let mut ends = Vec::with_capacity(begins.len());
        if self != Self::AnyText {
            ends.push(false);
        }
        for (begin, char) in begins.iter().zip(name) {
            is_open |= *begin;
            ends.push(match self {
                Self::AnyText => is_open,
                Self::AnyChar => *begin,
                Self::Char(own) if folds_case => *begin && own.eq_ignore_ascii_case(char),
                Self::Char(own) => *begin && own == *char,
            });
        }
        if self == Self::AnyText {
            ends.push(is_open || begins.last().copied().unwrap_or_default());
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_match(pattern: &str, catalog: &str) -> bool {
        let reading = GrantReading { catalog, folds_case: false, has_wildcards: true };
        CatalogPattern::of(pattern, true).matches(reading)
    }

    #[test]
    fn wildcards_stand_for_what_the_manual_says() {
        for pattern in
            ["shop_a", r"shop\_a", "shop%", "%", "%a", "s%p%a", "shop_a%", "%shop_a", "______"]
        {
            assert!(is_match(pattern, "shop_a"), "{pattern}");
        }
        for pattern in ["", "shop", r"shop\%", "%b", "shop_a_", "shop_a_%", "Shop_a", "s%x%a"] {
            assert!(!is_match(pattern, "shop_a"), "{pattern}");
        }
        assert!(is_match("shop_a", "shopXa") && !is_match(r"shop\_a", "shopXa"));
    }

    #[test]
    fn without_wildcards_a_name_is_itself() {
        let reading = GrantReading { catalog: "shop_a", folds_case: true, has_wildcards: false };
        assert!(CatalogPattern::of("SHOP_a", false).matches(reading));
        assert!(!CatalogPattern::of("shop%", false).matches(reading));
        assert!(!CatalogPattern::of(r"shop\_a", false).matches(reading));
        assert!(reading.is_catalog("SHOP_A") && !reading.is_catalog("shop"));
    }
}
