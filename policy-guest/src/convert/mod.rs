//! From the parser's AST to the model, part by part.
//!
//! Every struct is taken apart field by field and every enum variant by variant: what the model does
//! not know is refused by name, and a field a new parser version adds does not compile.

mod expression;
mod function;
mod literal;
mod query;
mod types;

/// Refuses when any of these clauses is present.
macro_rules! refuse_present {
    ($context:expr, $code:expr, $span:expr, $($field:expr => $what:literal),+ $(,)?) => {{
        let mut absent = Some(());
        $(
            if $crate::convert::Clause::is_present(&$field) {
                let finding = $crate::diagnostics::Finding::new($code).message($what).near($span);
                absent = $context.refuse(finding);
            }
        )+
        absent
    }};
}
pub(crate) use refuse_present;

/// A part of the AST that may be there or not.
pub(crate) trait Clause {
    fn is_present(&self) -> bool;
}

impl<T> Clause for Option<T> {
    fn is_present(&self) -> bool {
        self.is_some()
    }
}

impl<T> Clause for Vec<T> {
    fn is_present(&self) -> bool {
        !self.is_empty()
    }
}

impl Clause for bool {
    fn is_present(&self) -> bool {
        *self
    }
}
