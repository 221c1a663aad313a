//! The property of the language that the fuzz target `scripts` and `tests/suite/language.rs` check
//! on any text.

use crate::explain::plan;
use crate::kinds::check;
use crate::language::{parse, print};

/// Any text is a script or is refused with a place in the text. A script is printed as a text that
/// is the same script. One that fits has a plan.
///
/// # Panics
/// If this does not hold.
pub fn script(text: &str) {
    let tree = match parse(text) {
        Ok(tree) => tree,
        Err(complaint) => {
            assert!(complaint.span.begin <= complaint.span.end && complaint.span.end <= text.len());
            assert!(complaint.shown("script", text).contains(&complaint.message));
            return;
        }
    };
    let printed = print::script(&tree);
    assert_eq!(parse(&printed).as_ref(), Ok(&tree), "{printed}");
    match check(&tree) {
        Ok(()) => assert_eq!(plan(&tree).is_empty(), tree.is_empty()),
        Err(complaint) => assert!(complaint.shown("script", text).contains('^')),
    }
}
