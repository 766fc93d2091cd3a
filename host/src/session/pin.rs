//! Setting session variables and reading them back.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::failure::ServerFailure;
use super::variables::Variables;

/// The session's clock.
const CLOCK: &[&str] = &["timestamp"];

/// MariaDB's variable that says who may set [`CLOCK`].
pub(crate) const SECURE_CLOCK: &str = "secure_timestamp";

/// How long a read takes at most in a session that only looks: as long as a status waits for all of its
/// own, and longer than a page.
const READ_SECONDS: u64 = 5;

/// A session variable and the value it has to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pin {
    /// The variable. Where its name differs between servers: the names, the first that exists is
    /// meant.
    pub(crate) names: &'static [&'static str],
    /// What `SET` assigns: an SQL expression made of constants of this host or checked values. None
    /// for what `NAMES` sets.
    pub(crate) expression: Option<String>,
    /// What reading back gives.
    pub(crate) wanted: Wanted,
    /// Whether a server without the variable is fine.
    pub(crate) optional: bool,
}

/// What a variable has to read as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// This text, without regard to case.
    Text(String),
    /// This number, however many decimals the server shows.
    Number(u64),
    /// This set of words, separated by commas in any order, none besides them.
    Words(Vec<String>),
    /// Whatever it reads as: what was set is not what is read back.
    Anything,
}

/// A variable that does not have the value it was set to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the session's `{name}` is `{found}` and has to be `{wanted}`")]
#[non_exhaustive]
pub struct PinMismatch {
    /// The variable.
    pub name: String,
    /// The value it has to have.
    pub wanted: String,
    /// The value it has; empty when the server has no such variable.
    pub found: String,
}

/// Sets `names` (a `NAMES …` clause) and every pin in one statement, and reads all of them back.
///
/// The inner error lists every variable that did not take its value.
pub(crate) async fn pin(
    conn: &mut Conn,
    names: &str,
    pins: &[Pin],
    known: &Variables,
    also_read: &[&str],
) -> Result<Result<Variables, Vec<PinMismatch>>, ServerFailure> {
    let mut statement = format!("SET {names}");
    for pin in pins {
        if let (Some(expression), Some(name)) = (&pin.expression, pin.name_in(known)) {
            statement.push_str(", SESSION ");
            statement.push_str(name);
            statement.push_str(" = ");
            statement.push_str(expression);
        }
    }
    conn.query_drop(statement).await.map_err(|error| ServerFailure::of(&error))?;
    let mut names: Vec<&str> = pins.iter().flat_map(|pin| pin.names.iter().copied()).collect();
    names.extend_from_slice(also_read);
    let found = Variables::session(conn, &names).await?;
    let mismatches: Vec<_> = pins.iter().filter_map(|pin| pin.mismatch(&found)).collect();
    Ok(if mismatches.is_empty() { Ok(found) } else { Err(mismatches) })
}

impl Pin {
    /// Sets the first of `names` to a text and wants it back.
    pub(crate) fn text(names: &'static [&'static str], text: &str) -> Self {
        let wanted = Wanted::Text(text.to_owned());
        Self { names, expression: Some(format!("'{text}'")), wanted, optional: false }
    }

    /// Sets the first of `names` to a number and wants it back.
    pub(crate) fn number(names: &'static [&'static str], number: u64) -> Self {
        let wanted = Wanted::Number(number);
        Self { names, expression: Some(number.to_string()), wanted, optional: false }
    }

    /// Sets a switch and wants it back.
    pub(crate) fn switch(names: &'static [&'static str], on: bool) -> Self {
        let (digit, word) = if on { ("1", "ON") } else { ("0", "OFF") };
        let wanted = Wanted::Text(word.to_owned());
        Self { names, expression: Some(digit.to_owned()), wanted, optional: false }
    }

    /// Only wants a text back: `NAMES` sets it.
    pub(crate) fn read_back(names: &'static [&'static str], text: &str) -> Self {
        let wanted = Wanted::Text(text.to_owned());
        Self { names, expression: None, wanted, optional: false }
    }

    /// Makes a node of a Galera cluster see every write that any node has committed before it reads,
    /// changes or inserts. Without it a node answers from what it has applied so far, so that a
    /// receipt that was committed on another node may be absent, a claim that is held may seem lost,
    /// and a compensation that was begun may not show; writes that rest on such a reading fail, but
    /// an answer that needs no write would be wrong.
    ///
    /// Bits 1, 2 and 4 of `wsrep_sync_wait`: reads and the beginning of a transaction; UPDATE and
    /// DELETE; INSERT and REPLACE (MariaDB manual, "Galera Cluster System Variables"; Galera manual,
    /// "`wsrep_sync_wait`"). Not SHOW, which is about the node itself. A wait that is not over within
    /// the provider's `repl.causal_read_timeout` ends with error 1205, which is transient. A server
    /// outside a cluster has the variable and nothing to wait for, or has it not.
    pub(crate) fn causal_reads() -> Self {
        Self::number(&["wsrep_sync_wait"], 7).where_known()
    }

    /// Lets the session's clock run. One that was stopped, as `init_connect` can, would never see a
    /// lease end. Setting the default makes it run again; what it then reads is the time.
    pub(crate) fn running_clock() -> Self {
        Self {
            names: CLOCK,
            expression: Some("DEFAULT".to_owned()),
            wanted: Wanted::Anything,
            optional: true,
        }
    }

    /// Lets a SELECT give all its rows. A limit that was set for every session would cut lists short
    /// without a word, and what is decided on a list would be decided on a part of it. The number and
    /// not `DEFAULT`: that is whatever was set globally (MySQL manual, "SET Syntax for Variable
    /// Assignment").
    pub(crate) fn every_row() -> Self {
        Self::number(&["sql_select_limit"], u64::MAX)
    }

    /// Has the server itself end a read that takes longer than anybody waits for it, in a session that
    /// only looks: whoever looks gives up, and closes the connection, which a server notices when the
    /// read is done.
    ///
    /// MariaDB's `max_statement_time` is in seconds (MariaDB manual, "Aborting Statements that Exceed a
    /// Certain Time to Execute": error 1969), MySQL's `max_execution_time` in milliseconds and about
    /// SELECT alone (MySQL manual, "Server System Variables": from 5.7.8 on, error 3024). MySQL 5.6 has
    /// neither: there a read that was given up goes on to its end.
    pub(crate) fn bounded_reads() -> [Self; 2] {
        [
            Self::number(&["max_statement_time"], READ_SECONDS).where_known(),
            Self::number(&["max_execution_time"], READ_SECONDS * 1_000).where_known(),
        ]
    }

    /// The pins that the account may set: MariaDB's `secure_timestamp` takes the clock away from every
    /// account like ours, and then nobody can have stopped it (MariaDB, "Server System Variables").
    /// `known` has to have been asked for [`SECURE_CLOCK`].
    pub(crate) fn settable(pins: Vec<Self>, known: &Variables) -> Vec<Self> {
        let is_secure =
            known.value(SECURE_CLOCK).is_some_and(|value| !value.eq_ignore_ascii_case("NO"));
        pins.into_iter().filter(|pin| !is_secure || pin.names != CLOCK).collect()
    }

    /// For a variable not every server has.
    pub(crate) fn where_known(self) -> Self {
        Self { optional: true, ..self }
    }

    /// Whether it has a value of its own to be read back. The session's clock has another every time.
    pub(crate) fn is_read_back(&self) -> bool {
        self.wanted != Wanted::Anything
    }

    /// The name this server has for it.
    pub(crate) fn name_in(&self, known: &Variables) -> Option<&'static str> {
        self.names.iter().copied().find(|name| known.value(name).is_some())
    }

    fn mismatch(&self, found: &Variables) -> Option<PinMismatch> {
        let value = self.names.iter().find_map(|name| found.value(name));
        let holds = match value {
            None => self.optional,
            Some(value) => self.wanted.is(value),
        };
        (!holds).then(|| PinMismatch {
            name: self.names.first().copied().unwrap_or_default().to_owned(),
            wanted: self.wanted.text(),
            found: value.unwrap_or_default().to_owned(),
        })
    }
}

impl Wanted {
    fn is(&self, found: &str) -> bool {
        match self {
            Self::Text(text) => {
                text.eq_ignore_ascii_case(found)
                    || switch(text).is_some() && switch(text) == switch(found)
            }
            Self::Number(number) => {
                found.split('.').next().and_then(|whole| whole.parse().ok()) == Some(*number)
                    && found.split('.').nth(1).is_none_or(|rest| rest.bytes().all(|b| b == b'0'))
            }
            Self::Anything => true,
            Self::Words(words) => {
                let mut wanted: Vec<_> =
                    words.iter().map(|word| word.to_ascii_uppercase()).collect();
                let mut found: Vec<_> = found
                    .split(',')
                    .map(|word| word.trim().to_ascii_uppercase())
                    .filter(|word| !word.is_empty())
                    .collect();
                wanted.sort_unstable();
                wanted.dedup();
                found.sort_unstable();
                wanted == found
            }
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
            Self::Words(words) => words.join(","),
            Self::Anything => String::new(),
        }
    }
}

/// Switches are shown as words by some servers and as digits by others.
fn switch(text: &str) -> Option<bool> {
    match text.to_ascii_uppercase().as_str() {
        "ON" | "1" => Some(true),
        "OFF" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_compared_as_a_set() {
        let wanted =
            Wanted::Words(vec!["STRICT_TRANS_TABLES".into(), "NO_ENGINE_SUBSTITUTION".into()]);
        assert!(wanted.is("NO_ENGINE_SUBSTITUTION,STRICT_TRANS_TABLES"));
        assert!(!wanted.is("STRICT_TRANS_TABLES"));
        assert!(!wanted.is("STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION,ANSI_QUOTES"));
        assert!(Wanted::Words(vec![]).is(""));
    }

    #[test]
    fn numbers_and_switches_are_read_as_servers_show_them() {
        assert!(Wanted::Number(900).is("900.000000"));
        assert!(!Wanted::Number(900).is("900.5"));
        assert!(Wanted::Text("ON".into()).is("1"));
        assert!(!Wanted::Text("ON".into()).is("OFF"));
        assert!(!Wanted::Text("+00:00".into()).is("SYSTEM"));
    }

    #[test]
    fn a_missing_variable_is_a_mismatch_unless_it_is_optional() {
        let pin = |optional| Pin {
            names: &["a", "b"],
            expression: None,
            wanted: Wanted::Number(1),
            optional,
        };
        assert!(pin(false).mismatch(&Variables::default()).is_some());
        assert!(pin(true).mismatch(&Variables::default()).is_none());
        assert!(pin(true).mismatch(&Variables::given(&[("b", "2")])).is_some());
    }
}
