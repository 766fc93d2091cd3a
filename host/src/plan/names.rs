//! Names that only plans and releases use, each with its own rule.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ids::{InvalidName, name};

name!(
    /// What a contribution is: `DATABASE_MIGRATION`, `PERMISSION`, `MENU` or another type.
    ContributionKind,
    "a contribution type",
    "use a letter, then at most 63 of `A-Z 0-9 _`, such as `DATABASE_MIGRATION`",
    |text| (1..=64).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
        && text.starts_with(|c: char| c.is_ascii_uppercase())
);

name!(
    /// What a contribution is applied to: `sql` or another target.
    TargetName,
    "a contribution target",
    "use a lowercase letter, then at most 31 of `a-z 0-9 -`, such as `sql`",
    |text| (1..=32).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && text.starts_with(|c: char| c.is_ascii_lowercase())
);

name!(
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
