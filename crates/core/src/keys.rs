//! [`Keys`]: the threads that are to be resumed, in the order in which they were first added.
//!
//! The [`Inbox`](crate::internal::Inbox) of a CPU keeps one. Other OS threads add the keys of
//! threads that they wake, and the CPU takes the whole list at its next look.

use std::collections::HashSet;

/// The length of the list up to which duplicates are not searched.
const FEW: usize = if cfg!(loom) { 1 } else { 64 };

/// Keys in order. Of a key that is added again and again, only a few copies are kept.
///
/// Each time the list has grown to twice its length after the last removal, duplicates are removed
/// again. So the list is never longer than about twice the number of different keys, and adding a
/// key takes constant time in the long run.
#[derive(Debug)]
pub(crate) struct Keys {
    list: Vec<u32>,
    /// At this length duplicates are removed.
    full: usize,
}

impl Default for Keys {
    fn default() -> Keys {
        Keys { list: Vec::new(), full: FEW }
    }
}

impl Keys {
    /// Adds a key, unless a duplicate is found.
    pub(crate) fn add(&mut self, key: u32) {
        if self.list.len() >= self.full {
            let mut seen = HashSet::with_capacity(self.list.len());
            self.list.retain(|&key| seen.insert(key));
            self.full = FEW.max(2 * self.list.len());
            if seen.contains(&key) {
                return;
            }
        }
        self.list.push(key);
    }

    /// Takes all keys. Each is in the list at least once.
    pub(crate) fn take(&mut self) -> Vec<u32> {
        std::mem::take(self).list
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_added_again_and_again_take_no_more_room_and_keep_their_order() {
        const MANY: u32 = if cfg!(miri) { 100 } else { 500 };
        let mut keys = Keys::default();
        for round in 0..if cfg!(miri) { 4 } else { 1000 } {
            (1..=MANY).for_each(|key| keys.add(key));
            assert!(keys.list.len() <= 2 * MANY as usize + 1, "in round {round}");
        }
        let mut taken = keys.take();
        assert_eq!(taken[..MANY as usize], (1..=MANY).collect::<Vec<_>>());
        taken.sort();
        taken.dedup();
        assert_eq!(taken.len(), MANY as usize);
        keys.add(7);
        assert_eq!(keys.take(), [7]);
    }
}
