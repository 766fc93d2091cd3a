//! What names may stand in an expression.

/// The columns an expression may read, as they may be written there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope {
    pub(super) columns: &'static [&'static str],
    /// May sub-queries stand here?
    pub(super) queries: bool,
    /// Is it what ON DUPLICATE KEY UPDATE sets a column to?
    pub(super) updates: bool,
}

/// Nothing to read.
pub(super) const CONSTANT: Scope = Scope { columns: &[], queries: true, updates: false };

/// Table `t` alone.
pub(super) const OF_T: Scope = Scope {
    columns: &[
        "id",
        "name",
        "n",
        "j",
        "b",
        "d",
        "dt",
        "t.id",
        "`name`",
        "plugin_preview.t.n",
        "t . d",
        "`t`.`b`",
        "NAME",
    ],
    queries: true,
    updates: false,
};

/// Tables `t` and `u` joined: names that are in both are qualified.
pub(super) const OF_T_AND_U: Scope = Scope {
    columns: &[
        "t.id",
        "u.id",
        "tid",
        "v",
        "name",
        "n",
        "u.v",
        "t.dt",
        "`u`.`tid`",
        "t.b",
        "plugin_preview.u.v",
    ],
    queries: true,
    updates: false,
};

impl Scope {
    /// The same, without sub-queries.
    pub(super) fn without_queries(self) -> Self {
        Self { queries: false, ..self }
    }
}
