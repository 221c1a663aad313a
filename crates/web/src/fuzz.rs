//! What fuzzing holds of the parsers of this crate, for any input.

use crate::cookies::Cookies;
use crate::multipart::{FormSplitter, SplitterFound};

/// Splits `body` whole and at `cut`: the same parts, or both are refused.
pub fn multipart(body: &[u8], cut: usize) {
    let whole = outline(&[body]);
    let (one, other) = body.split_at(cut.min(body.len()));
    assert_eq!(outline(&[one, other]), whole);
}

/// The number of parts and their contents, and whether the form has its end.
fn outline(pieces: &[&[u8]]) -> Option<(Vec<Vec<u8>>, bool)> {
    let mut splitter = FormSplitter::new(b"b");
    let (mut parts, mut pieces) = (Vec::<Vec<u8>>::new(), pieces.iter());
    loop {
        match splitter.find().ok()? {
            SplitterFound::More => match pieces.next() {
                Some(piece) => splitter.put(piece),
                None => {
                    // How much of an open part has come out depends on the cuts.
                    parts.pop();
                    return Some((parts, false));
                }
            },
            SplitterFound::Head(_) => parts.push(Vec::new()),
            SplitterFound::Content(piece) => {
                assert!(!piece.is_empty());
                parts.last_mut().expect("content comes behind a head").extend_from_slice(&piece);
            }
            SplitterFound::PartEnd => {}
            SplitterFound::End => return Some((parts, true)),
        }
    }
}

/// Reads `field` as cookies.
pub fn cookies(field: &str) {
    let mut cookies = Cookies::default();
    cookies.parse(field);
    assert!(cookies.iter().count() <= field.matches('=').count());
}
