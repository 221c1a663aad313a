//! A wait that nobody ends.

use selvedge_core::{Queue, Role};

/// Who waits as this waits for ever.
pub(crate) struct Never;

impl Role<(), ()> for Never {
    type Output = ();

    fn attempt(_: &mut (), _: &mut Queue<()>, _: &mut ()) -> Option<()> {
        None
    }

    fn granted(_: &mut ()) {}

    fn abandoned(_: &mut (), _: &mut Queue<()>, _: &mut ()) {}
}
