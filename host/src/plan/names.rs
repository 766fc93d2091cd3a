//! Names that only plans and releases use, each with its own rule.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A text that does not follow the rule of the name it is meant to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {what}: {rule}")]
pub struct InvalidPlanName {
    what: &'static str,
    rule: &'static str,
    text: String,
}

macro_rules! plan_name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $rule:literal, $accepts:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(into = "String", try_from = "String")]
        pub struct $name(String);

        impl $name {
            /// The name as it was given.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidPlanName;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let accepts: fn(&str) -> bool = $accepts;
                if accepts(text) {
                    return Ok(Self(text.to_owned()));
                }
                // A name is short; what is longer is cut so that an error stays readable.
                let text = text.chars().take(160).collect();
                Err(InvalidPlanName { what: $what, rule: $rule, text })
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidPlanName;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

plan_name!(
    /// What a contribution is: `DATABASE_MIGRATION`, `PERMISSION`, `MENU` or another type.
    ContributionKind,
    "a contribution type",
    "use a letter, then at most 63 of `A-Z 0-9 _`, such as `DATABASE_MIGRATION`",
    |text| (1..=64).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
        && text.starts_with(|c: char| c.is_ascii_uppercase())
);

plan_name!(
    /// What a contribution is applied to: `sql` or another target.
    TargetName,
    "a contribution target",
    "use a lowercase letter, then at most 31 of `a-z 0-9 -`, such as `sql`",
    |text| (1..=32).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && text.starts_with(|c: char| c.is_ascii_lowercase())
);

plan_name!(
    /// The code of a transition plan.
    PlanCode,
    "a plan code",
    "use 1 to 100 of `A-Z a-z 0-9 . _ -`",
    |text| (1..=100).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
);

impl ContributionKind {
    /// `DATABASE_MIGRATION`: the only type that is SQL.
    pub const DATABASE_MIGRATION: &'static str = "DATABASE_MIGRATION";

    /// Whether this is `DATABASE_MIGRATION`.
    pub fn is_database_migration(&self) -> bool {
        self.0 == Self::DATABASE_MIGRATION
    }
}

impl TargetName {
    /// `sql`: the isolated target.
    pub const SQL: &'static str = "sql";

    /// Whether this is `sql`.
    pub fn is_sql(&self) -> bool {
        self.0 == Self::SQL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contribution_type_is_upper_case() {
        for text in ["DATABASE_MIGRATION", "PERMISSION", "MENU", "X2"] {
            assert!(text.parse::<ContributionKind>().is_ok(), "{text}");
        }
        for text in ["", "database_migration", "_X", "2X", "MENU ", &"A".repeat(65)] {
            assert!(text.parse::<ContributionKind>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_target_is_lower_case() {
        assert!("sql".parse::<TargetName>().is_ok_and(|target| target.is_sql()));
        for text in ["", "SQL", "-sql", "sql ", &"a".repeat(33)] {
            assert!(text.parse::<TargetName>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_plan_code_leaves_room_for_step_keys() {
        assert!("a".repeat(100).parse::<PlanCode>().is_ok());
        for text in ["", "a:b", "a b", &"a".repeat(101)] {
            assert!(text.parse::<PlanCode>().is_err(), "{text}");
        }
    }
}
