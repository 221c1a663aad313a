//! The word that a user may have meant. `parse.rs` calls [`nearest`] for the help of an error.

use strsim::generic_levenshtein;

/// The word that differs least, if one differs little: at most three characters are put in, taken
/// away or changed.
pub(super) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Words longer than 32 bytes are near to no word of the language.
    let begin: Vec<u8> = word.bytes().take(32).collect();
    let distance = |other: &str| generic_levenshtein(&begin, &other.as_bytes().to_vec());
    let near = known.map(|other| (distance(other), other)).min()?;
    (near.0 <= word.len().min(near.1.len()) / 2 && near.0 <= 3).then_some(near.1)
}
