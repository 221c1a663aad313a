//! [`describe`]: variables in words, for reports of waiting threads.

use crate::variable::Inner;
use std::collections::HashMap;
use std::fmt::Write;

/// The number of names or types that a report lists.
const LISTED: usize = 8;

/// The variables in words, in their order: those with names by their names, the others by the types
/// of their values.
pub(crate) fn describe<'a>(variables: impl Iterator<Item = &'a Inner>) -> String {
    let mut listed: Vec<(String, usize)> = Vec::new();
    let mut places = HashMap::new();
    for inner in variables {
        let word = match inner.name() {
            Some(name) => format!("\"{name}\""),
            None => format!("a variable of type {}", (inner.kind.type_name)()),
        };
        let at = *places.entry(word.clone()).or_insert(listed.len());
        match listed.get_mut(at) {
            Some((_, times)) => *times += 1,
            None => listed.push((word, 1)),
        }
    }
    let more = listed.len().saturating_sub(LISTED);
    let mut text = String::new();
    for (at, (word, times)) in listed.iter().take(LISTED).enumerate() {
        let is_last = at + 1 == listed.len() && at > 0;
        text.push_str(if is_last {
            " or "
        } else if at > 0 {
            ", "
        } else {
            ""
        });
        text.push_str(word);
        if *times > 1 {
            let _ = write!(text, " ({times} of them)");
        }
    }
    if more > 0 {
        let _ = write!(text, " or {more} others");
    }
    text
}
