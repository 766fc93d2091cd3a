//! The functions policy v1 runs: built-ins whose result depends on nothing but their arguments, and
//! the clock, which is allowed with an advisory.
//!
//! What is not here is denied: functions that read the session, the server or files, that wait, lock
//! or draw random numbers, and every function a server may have been given.

/// The names of every function that may be called, in alphabetical order.
pub fn function_names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|function| function.name)
}

/// How a function is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionSignature {
    /// Its name, in upper case.
    pub name: &'static str,
    /// The fewest arguments it takes.
    pub arguments_min: u8,
    /// The most arguments it takes; `None` for any number.
    pub arguments_max: Option<u8>,
    /// Is it about the rows of a group?
    pub aggregates: bool,
}

/// Every function that may be called, in alphabetical order.
pub fn functions() -> impl Iterator<Item = FunctionSignature> {
    FUNCTIONS.iter().map(|function| {
        let (least, most) = function.arity;
        FunctionSignature {
            name: function.name,
            arguments_min: least,
            arguments_max: (most != ANY).then_some(most),
            aggregates: function.kind == Kind::Aggregate,
        }
    })
}

/// How many arguments a function takes, inclusive; `u8::MAX` for any number.
type Arity = (u8, u8);

/// What a function's value depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Its arguments.
    Pure,
    /// The time at which it runs.
    Time,
    /// The rows of a group.
    Aggregate,
    /// Its arguments, the first of which is a unit of time.
    Unit,
}

/// A function that may be called.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) arity: Arity,
}

impl Function {
    /// The function of that name, in any case.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        let name = name.to_ascii_uppercase();
        FUNCTIONS
            .binary_search_by_key(&name.as_str(), |function| function.name)
            .ok()
            .and_then(|at| FUNCTIONS.get(at))
    }

    /// Does it take that many arguments?
    pub(crate) fn takes(&self, arguments: usize) -> bool {
        let (least, most) = self.arity;
        arguments >= usize::from(least) && (most == ANY || arguments <= usize::from(most))
    }

    /// Must its parenthesis follow directly? These names are read as functions only then
    /// (manual: "Function Name Parsing and Resolution").
    pub(crate) fn is_adjacent(&self) -> bool {
        const ADJACENT: &[&str] = &[
            "ADDDATE",
            "BIT_AND",
            "BIT_OR",
            "BIT_XOR",
            "COUNT",
            "CURDATE",
            "CURTIME",
            "DATE_ADD",
            "DATE_SUB",
            "GROUP_CONCAT",
            "MAX",
            "MID",
            "MIN",
            "NOW",
            "STD",
            "STDDEV",
            "STDDEV_POP",
            "STDDEV_SAMP",
            "SUBDATE",
            "SUBSTR",
            "SUBSTRING",
            "SUM",
            "SYSDATE",
            "VARIANCE",
            "VAR_POP",
            "VAR_SAMP",
        ];
        ADJACENT.contains(&self.name)
    }
}

/// The clock functions that may be written without parentheses.
pub(crate) const NILADIC: &[&str] = &[
    "CURRENT_DATE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "LOCALTIME",
    "LOCALTIMESTAMP",
    "UTC_DATE",
    "UTC_TIME",
    "UTC_TIMESTAMP",
];

/// The names by which the time of a statement may be a column's default.
/// Manual: "Automatic Initialization and Updating for TIMESTAMP and DATETIME".
pub(crate) const NOW_SYNONYMS: &[&str] =
    &["CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP", "NOW"];

/// Any number of arguments.
const ANY: u8 = u8::MAX;

macro_rules! functions {
    ($($name:literal $kind:ident $least:tt $most:tt,)*) => {
        &[$(Function { name: $name, kind: Kind::$kind, arity: ($least, $most) }),*]
    };
}

/// Sorted by name.
#[rustfmt::skip]
pub(crate) const FUNCTIONS: &[Function] = functions! {
    "ABS" Pure 1 1, "ACOS" Pure 1 1, "ADDDATE" Pure 2 2, "ADDTIME" Pure 2 2, "ASCII" Pure 1 1,
    "ASIN" Pure 1 1, "ATAN" Pure 1 2, "ATAN2" Pure 2 2, "AVG" Aggregate 1 1, "BIN" Pure 1 1,
    "BIT_AND" Aggregate 1 1, "BIT_COUNT" Pure 1 1, "BIT_LENGTH" Pure 1 1, "BIT_OR" Aggregate 1 1,
    "BIT_XOR" Aggregate 1 1, "CEIL" Pure 1 1, "CEILING" Pure 1 1, "CHAR" Pure 1 ANY,
    "CHARACTER_LENGTH" Pure 1 1, "CHAR_LENGTH" Pure 1 1, "COALESCE" Pure 1 ANY, "CONCAT" Pure 1 ANY,
    "CONCAT_WS" Pure 2 ANY, "CONV" Pure 3 3, "CONVERT_TZ" Pure 3 3, "COS" Pure 1 1, "COT" Pure 1 1,
    "COUNT" Aggregate 1 ANY, "CRC32" Pure 1 1, "CURDATE" Time 0 0, "CURRENT_DATE" Time 0 0,
    "CURRENT_TIME" Time 0 1, "CURRENT_TIMESTAMP" Time 0 1, "CURTIME" Time 0 1, "DATE" Pure 1 1,
    "DATEDIFF" Pure 2 2, "DATE_ADD" Pure 2 2, "DATE_FORMAT" Pure 2 2, "DATE_SUB" Pure 2 2,
    "DAY" Pure 1 1, "DAYNAME" Pure 1 1, "DAYOFMONTH" Pure 1 1, "DAYOFWEEK" Pure 1 1,
    "DAYOFYEAR" Pure 1 1, "DEGREES" Pure 1 1, "ELT" Pure 2 ANY, "EXP" Pure 1 1,
    "EXPORT_SET" Pure 3 5, "FIELD" Pure 2 ANY, "FIND_IN_SET" Pure 2 2, "FLOOR" Pure 1 1,
    "FORMAT" Pure 2 3, "FROM_BASE64" Pure 1 1, "FROM_DAYS" Pure 1 1, "FROM_UNIXTIME" Pure 1 2,
    "GREATEST" Pure 2 ANY, "GROUP_CONCAT" Aggregate 1 ANY, "HEX" Pure 1 1, "HOUR" Pure 1 1,
    "IF" Pure 3 3, "IFNULL" Pure 2 2, "INET6_ATON" Pure 1 1, "INET6_NTOA" Pure 1 1,
    "INET_ATON" Pure 1 1, "INET_NTOA" Pure 1 1, "INSERT" Pure 4 4, "INSTR" Pure 2 2,
    "ISNULL" Pure 1 1, "IS_IPV4" Pure 1 1, "IS_IPV6" Pure 1 1, "JSON_ARRAY" Pure 0 ANY,
    "JSON_ARRAY_APPEND" Pure 3 ANY, "JSON_ARRAY_INSERT" Pure 3 ANY, "JSON_CONTAINS" Pure 2 3,
    "JSON_CONTAINS_PATH" Pure 3 ANY, "JSON_DEPTH" Pure 1 1, "JSON_EXTRACT" Pure 2 ANY,
    "JSON_INSERT" Pure 3 ANY, "JSON_KEYS" Pure 1 2, "JSON_LENGTH" Pure 1 2,
    "JSON_MERGE_PATCH" Pure 2 ANY, "JSON_MERGE_PRESERVE" Pure 2 ANY, "JSON_OBJECT" Pure 0 ANY,
    "JSON_QUOTE" Pure 1 1, "JSON_REMOVE" Pure 2 ANY, "JSON_REPLACE" Pure 3 ANY,
    "JSON_SEARCH" Pure 3 ANY, "JSON_SET" Pure 3 ANY, "JSON_TYPE" Pure 1 1, "JSON_UNQUOTE" Pure 1 1,
    "JSON_VALID" Pure 1 1, "LAST_DAY" Pure 1 1, "LCASE" Pure 1 1, "LEAST" Pure 2 ANY,
    "LEFT" Pure 2 2, "LENGTH" Pure 1 1, "LN" Pure 1 1, "LOCALTIME" Time 0 1,
    "LOCALTIMESTAMP" Time 0 1, "LOCATE" Pure 2 3, "LOG" Pure 1 2, "LOG10" Pure 1 1, "LOG2" Pure 1 1,
    "LOWER" Pure 1 1, "LPAD" Pure 3 3, "LTRIM" Pure 1 1, "MAKEDATE" Pure 2 2, "MAKETIME" Pure 3 3,
    "MAKE_SET" Pure 2 ANY, "MAX" Aggregate 1 1, "MD5" Pure 1 1, "MICROSECOND" Pure 1 1,
    "MID" Pure 3 3, "MIN" Aggregate 1 1, "MINUTE" Pure 1 1, "MOD" Pure 2 2, "MONTH" Pure 1 1,
    "MONTHNAME" Pure 1 1, "NOW" Time 0 1, "NULLIF" Pure 2 2, "OCT" Pure 1 1,
    "OCTET_LENGTH" Pure 1 1, "ORD" Pure 1 1, "PERIOD_ADD" Pure 2 2, "PERIOD_DIFF" Pure 2 2,
    "PI" Pure 0 0, "POW" Pure 2 2, "POWER" Pure 2 2, "QUARTER" Pure 1 1, "QUOTE" Pure 1 1,
    "RADIANS" Pure 1 1, "REPEAT" Pure 2 2, "REPLACE" Pure 3 3, "REVERSE" Pure 1 1,
    "RIGHT" Pure 2 2, "ROUND" Pure 1 2, "RPAD" Pure 3 3, "RTRIM" Pure 1 1, "SECOND" Pure 1 1,
    "SEC_TO_TIME" Pure 1 1, "SHA" Pure 1 1, "SHA1" Pure 1 1, "SHA2" Pure 2 2, "SIGN" Pure 1 1,
    "SIN" Pure 1 1, "SOUNDEX" Pure 1 1, "SPACE" Pure 1 1, "SQRT" Pure 1 1, "STD" Aggregate 1 1,
    "STDDEV" Aggregate 1 1, "STDDEV_POP" Aggregate 1 1, "STDDEV_SAMP" Aggregate 1 1,
    "STRCMP" Pure 2 2, "STR_TO_DATE" Pure 2 2, "ST_ASTEXT" Pure 1 1, "ST_GEOMFROMTEXT" Pure 1 2,
    "ST_X" Pure 1 1, "ST_Y" Pure 1 1, "SUBDATE" Pure 2 2, "SUBSTR" Pure 2 3, "SUBSTRING" Pure 2 3,
    "SUBSTRING_INDEX" Pure 3 3, "SUBTIME" Pure 2 2, "SUM" Aggregate 1 1, "SYSDATE" Time 0 1,
    "TAN" Pure 1 1, "TIME" Pure 1 1, "TIMEDIFF" Pure 2 2, "TIMESTAMP" Pure 1 2,
    "TIMESTAMPADD" Unit 3 3, "TIMESTAMPDIFF" Unit 3 3, "TIME_FORMAT" Pure 2 2,
    "TIME_TO_SEC" Pure 1 1, "TO_BASE64" Pure 1 1, "TO_DAYS" Pure 1 1, "TO_SECONDS" Pure 1 1,
    "TRUNCATE" Pure 2 2, "UCASE" Pure 1 1, "UNHEX" Pure 1 1, "UNIX_TIMESTAMP" Time 0 1,
    "UPPER" Pure 1 1, "UTC_DATE" Time 0 0, "UTC_TIME" Time 0 1, "UTC_TIMESTAMP" Time 0 1,
    "VARIANCE" Aggregate 1 1, "VAR_POP" Aggregate 1 1, "VAR_SAMP" Aggregate 1 1, "WEEK" Pure 1 2,
    "WEEKDAY" Pure 1 1, "WEEKOFYEAR" Pure 1 1, "YEAR" Pure 1 1, "YEARWEEK" Pure 1 2,
};

/// A unit of time (manual: "Temporal Intervals").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unit(&'static str);

/// Sorted.
const UNITS: &[&str] = &[
    "DAY",
    "DAY_HOUR",
    "DAY_MICROSECOND",
    "DAY_MINUTE",
    "DAY_SECOND",
    "HOUR",
    "HOUR_MICROSECOND",
    "HOUR_MINUTE",
    "HOUR_SECOND",
    "MICROSECOND",
    "MINUTE",
    "MINUTE_MICROSECOND",
    "MINUTE_SECOND",
    "MONTH",
    "QUARTER",
    "SECOND",
    "SECOND_MICROSECOND",
    "WEEK",
    "YEAR",
    "YEAR_MONTH",
];

impl Unit {
    /// The unit of that name, in any case.
    pub(crate) fn named(name: &str) -> Option<Self> {
        UNITS.iter().find(|unit| unit.eq_ignore_ascii_case(name)).map(|unit| Self(unit))
    }

    pub(crate) const fn as_str(self) -> &'static str {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_functions_are_sorted_and_have_room_for_their_arguments() {
        assert!(FUNCTIONS.is_sorted_by_key(|function| function.name));
        assert!(FUNCTIONS.iter().all(|function| function.arity.0 <= function.arity.1));
    }

    #[test]
    fn nothing_that_reads_the_server_is_on_the_list() {
        for name in [
            "SLEEP",
            "BENCHMARK",
            "GET_LOCK",
            "RELEASE_LOCK",
            "IS_FREE_LOCK",
            "LOAD_FILE",
            "UUID",
            "UUID_SHORT",
            "RAND",
            "USER",
            "CURRENT_USER",
            "SESSION_USER",
            "SYSTEM_USER",
            "DATABASE",
            "SCHEMA",
            "VERSION",
            "CONNECTION_ID",
            "LAST_INSERT_ID",
            "ROW_COUNT",
            "FOUND_ROWS",
            "NEXTVAL",
            "LASTVAL",
            "SETVAL",
            "EXTRACTVALUE",
            "UPDATEXML",
            "MASTER_POS_WAIT",
            "NAME_CONST",
            "PASSWORD",
            "ENCRYPT",
            "CURRENT_ROLE",
            "SYS_EXEC",
            "COMPRESS",
            "DECODE",
        ] {
            assert!(Function::named(name).is_none(), "{name}");
        }
    }
}
