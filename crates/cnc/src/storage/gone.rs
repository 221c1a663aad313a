//! The keys of items that have gone: [`GoneKeys`].
//!
//! `StreamTable` (`storage/streamed.rs`) adds the word of each key when the key's item has gone,
//! and asks before it makes a place for a key. The words that follow one another are one run. So
//! the numbers of a stream take the memory of the gaps between them, and not of the numbers.

use std::collections::BTreeMap;

/// A set of words, as runs: the first word of each run, and the last one.
///
/// Two runs never touch, because [`GoneKeys::add`] joins them.
#[derive(Debug, Default)]
pub(super) struct GoneKeys(BTreeMap<u64, u64>);

impl GoneKeys {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn has(&self, word: u64) -> bool {
        self.0.range(..=word).next_back().is_some_and(|(_, &last)| word <= last)
    }

    /// Adds a word that is not in the set.
    pub(super) fn add(&mut self, word: u64) {
        let after = word.checked_add(1).and_then(|next| self.0.remove(&next));
        let last = after.unwrap_or(word);
        match self.0.range_mut(..word).next_back() {
            Some((_, before)) if before.checked_add(1) == Some(word) => *before = last,
            _ => {
                self.0.insert(word, last);
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::GoneKeys;
    use crate::key::fold;
    use std::collections::BTreeSet;

    #[test]
    fn words_in_any_order_are_as_in_a_set() {
        let (mut gone, mut words) = (GoneKeys::default(), BTreeSet::new());
        for n in 0..2_000 {
            let word = match fold(n) % 300 {
                at @ 0..8 => u64::MAX - at,
                at => at,
            };
            assert_eq!(gone.has(word), words.contains(&word), "{word}");
            if words.insert(word) {
                gone.add(word);
            }
            let runs = words.iter().filter(|&&word| word == 0 || !words.contains(&(word - 1))).count();
            assert_eq!(gone.0.len(), runs);
        }
        assert_eq!(gone.0.len(), 2, "all words of both ends were drawn");
    }
}
