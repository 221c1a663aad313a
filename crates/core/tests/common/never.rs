//! A wait that never ends.

use selvedge_core::{Queue, Role};

/// A waiter in this role waits for ever.
pub(crate) struct Never;

impl Role<(), ()> for Never {
    type Output = ();

    fn attempt(_: &mut (), _: &mut Queue<()>, _: &mut ()) -> Option<()> {
        None
    }

    fn granted(_: &mut ()) {}

    fn abandoned(_: &mut (), _: &mut Queue<()>, _: &mut ()) {}
}
