//! Rows of our own tables, column by column.

use std::str::FromStr;

use mysql_async::{Row, Value};

/// A column is not what its table's script makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnreadableColumn(pub(crate) &'static str);

/// A row whose columns are taken by name.
pub(crate) struct Columns(Row);

impl From<Row> for Columns {
    fn from(row: Row) -> Self {
        Self(row)
    }
}

impl Columns {
    /// The column's text, `None` for NULL.
    pub(crate) fn text(&self, column: &'static str) -> Result<Option<String>, UnreadableColumn> {
        match self.0.get_opt::<Value, _>(column) {
            Some(Ok(Value::NULL)) => Ok(None),
            Some(Ok(Value::Bytes(bytes))) => {
                String::from_utf8(bytes).map(Some).map_err(|_| UnreadableColumn(column))
            }
            Some(Ok(Value::Int(number))) => Ok(Some(number.to_string())),
            Some(Ok(Value::UInt(number))) => Ok(Some(number.to_string())),
            _ => Err(UnreadableColumn(column)),
        }
    }

    /// The column's value, read by the type's own rule; `None` for NULL.
    pub(crate) fn value<T: FromStr>(
        &self,
        column: &'static str,
    ) -> Result<Option<T>, UnreadableColumn> {
        self.text(column)?
            .map(|text| text.parse().map_err(|_| UnreadableColumn(column)))
            .transpose()
    }

    /// The column's value, which must not be NULL.
    pub(crate) fn required<T: FromStr>(&self, column: &'static str) -> Result<T, UnreadableColumn> {
        self.value(column)?.ok_or(UnreadableColumn(column))
    }
    /// The column as a truth value; NULL is false.
    pub(crate) fn flag(&self, column: &'static str) -> Result<bool, UnreadableColumn> {
        Ok(self.value::<i64>(column)?.is_some_and(|number| number != 0))
    }
}
