//! Sessions on a MySQL-family server: opening one as a URL asks, and learning what answered.
//!
//! It knows neither targets nor rules: whether a session may be used is for `target` and `control`.
//! Nothing here keeps a driver error: the driver's messages repeat user names, hosts and statement
//! text, so only what is known about them is kept.

mod catalog_pattern;
mod columns;
mod failure;
mod grant_line;
mod identity;
mod literal;
mod open;
mod pin;
mod rights;
mod several;
mod tokens;
mod variables;

pub(crate) use catalog_pattern::{CatalogPattern, GrantReading};
pub(crate) use columns::{Columns, UnreadableColumn};
pub(crate) use failure::{CONTROL_GRANT_HELP, HELD_UP_HELP, held_up_help};
pub use failure::{ServerFailure, TlsProblem};
pub(crate) use grant_line::{GrantLine, GrantedOn};
pub(crate) use identity::IDENTITY_VARIABLES;
pub use identity::{Flavour, ServerIdentity, ServerVersion};
pub(crate) use literal::literal;
pub(crate) use open::{SessionSpec, close, open};
pub use pin::PinMismatch;
pub(crate) use pin::{Pin, SECURE_CLOCK, Wanted, pin};
pub(crate) use rights::Rights;
pub(crate) use several::{Answer, several};
pub(crate) use variables::Variables;
