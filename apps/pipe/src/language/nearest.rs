//! The word that a user may have meant. `parse.rs` calls [`nearest`] for the help of an error.

/// The word that differs least, if one differs little.
pub(super) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.map(|other| (distance(word, other), other)).min()?;
    (near.0 <= word.len().min(near.1.len()) / 2 && near.0 <= 3).then_some(near.1)
}

/// How many characters must be put in, taken away or changed.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    // Words longer than 32 bytes are near to no word of the language.
    for (i, a) in a.bytes().take(32).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in b.bytes().enumerate() {
            let change = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
