//! What this policy is and what it asks of its host.

/// The session this policy's reading of SQL holds for.
#[derive(Debug, Clone, Copy)]
pub struct Session {
    /// The members of `sql_mode`, none besides them.
    pub sql_mode: &'static [&'static str],
    /// Client, connection and results character set.
    pub character_set: &'static str,
    /// `time_zone`, as an offset from UTC.
    pub time_zone: &'static str,
}

/// Bounds a payload has to stay within, all inclusive.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of a payload.
    pub payload_bytes_max: u32,
    /// Parsed statements of a payload.
    pub statement_count_max: u32,
    /// Operators of a statement that nest to the left.
    pub operator_count_max: u32,
    /// UNION and JOIN keywords of a statement.
    pub join_count_max: u32,
    /// Depth of parentheses, CASE and prefix operators in a statement.
    pub nesting_max: u32,
    /// Tokens of a payload.
    pub token_count_max: u32,
}

/// What a policy is.
#[derive(Debug, Clone, Copy)]
pub struct Description {
    /// The policy's name, kebab-case.
    pub name: &'static str,
    /// The policy's semantic version.
    pub version: &'static str,
    /// The executor codes it is written for.
    pub executor_codes: &'static [&'static str],
    /// The session it asks for.
    pub session: Session,
    /// The bounds it applies.
    pub limits: Limits,
}

/// The bounds of policy v1.
pub const LIMITS: Limits = Limits {
    payload_bytes_max: 1_048_576,
    statement_count_max: 100,
    // sqlparser's recursion limit does not see chains that nest to the left: about 1,400 of them
    // overflow a 1 MiB stack.
    operator_count_max: 1_000,
    // About 210 joins or 480 unions do the same.
    join_count_max: 200,
    // Below sqlparser's own recursion limit of 50, so that ours is the message people read.
    nesting_max: 40,
    // A payload of 1 MiB made of one-byte tokens with a separator each.
    token_count_max: 700_000,
};

/// Says what policy v1 is.
pub fn describe() -> Description {
    Description {
        name: "mysql-repeatable-subset",
        version: "1.0.0",
        executor_codes: &["sql-jdbc:v1"],
        session: Session {
            sql_mode: &["NO_ENGINE_SUBSTITUTION", "STRICT_TRANS_TABLES"],
            character_set: "utf8mb4",
            time_zone: "+00:00",
        },
        limits: LIMITS,
    }
}
