//! Runs that end with the first result that cannot be passed on: a reader of the output went away, or
//! a disk is full.

use std::ops::ControlFlow;

/// What kept a result from being passed on, if anything did.
#[derive(Debug)]
pub(crate) struct Until<E>(Option<E>);

impl<E> Until<E> {
    /// Nothing did so far.
    pub(crate) const fn failure() -> Self {
        Self(None)
    }

    /// Goes on when this was passed on; otherwise the run ends, and what kept it is remembered.
    pub(crate) fn passed(&mut self, result: Result<(), E>) -> ControlFlow<()> {
        match result {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.0 = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// What came of the run.
    pub(crate) fn ended(self) -> Result<(), E> {
        self.0.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_with_the_first_failure_and_tells_it() {
        let mut until = Until::failure();
        assert!(until.passed(Ok(())).is_continue());
        assert!(until.passed(Err("full")).is_break());
        assert_eq!(until.ended(), Err("full"));
        assert_eq!(Until::<&str>::failure().ended(), Ok(()));
    }
}
