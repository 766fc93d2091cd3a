//! Several statements of the host's own in one round trip.

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Row};

/// What one of the statements answered.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Rows it changed; 0 of a query.
    pub(crate) changed: u64,
    /// Rows it gave.
    pub(crate) rows: Vec<Row>,
}

/// Sends the statements in one packet. The server carries them out one after the other, up to the
/// first that it refuses (MySQL manual, "Multiple Statement Execution Support"). What was answered
/// before an error is in `answers` all the same, also when this future is dropped.
///
/// Texts of the host alone come this way. A payload's statement is a packet of its own, and prepared,
/// so that the server itself refuses a second one in it.
pub(crate) async fn several(
    conn: &mut Conn,
    statements: &[&str],
    answers: &mut Vec<Answer>,
) -> Result<(), mysql_async::Error> {
    let mut result = conn.query_iter(statements.join("; ")).await?;
    for _ in statements {
        let has_rows = !result.columns_ref().is_empty();
        // Of a statement without rows this is all of its answer. When the driver has met an error in
        // its place it says so only when asked to go on, so nothing is noted before.
        let changed = if has_rows { 0 } else { result.affected_rows() };
        let rows = result.collect().await?;
        answers.push(Answer { changed, rows });
    }
    result.drop_result().await
}
