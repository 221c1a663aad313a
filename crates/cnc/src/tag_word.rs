//! A tag as the word of a ready step: [`to_word`] and [`tag_of`]. A tag that fits is the word
//! itself, and another tag lies in a box with the word as its address.
//!
//! [`about_tags!`] writes the methods of `Code` that read the tag of a word, for each kind of step.

use crate::key::{ItemKey, is_word};

/// A tag as the word of a `ReadyStep`. A tag that does not fit lies in a box.
#[inline]
pub(crate) fn to_word<T: ItemKey>(tag: T) -> u64 {
    if is_word::<T>() { tag.to_word() } else { Box::into_raw(Box::new(tag)).expose_provenance() as u64 }
}

/// What frees a tag's word.
pub(crate) fn free_of<T: ItemKey>() -> Option<unsafe fn(u64)> {
    if is_word::<T>() { None } else { Some(free_box::<T>) }
}

/// # Safety
/// The word is the address of a `Box<T>` that was given up, and is used no more.
pub(crate) unsafe fn free_box<T>(word: u64) {
    // SAFETY: as promised by the caller.
    drop(unsafe { Box::from_raw(std::ptr::with_exposed_provenance_mut::<T>(word as usize)) });
}

/// Gives `see` the tag of a word.
///
/// # Panics
/// If the type says that its keys fit in a word, and its `from_word` returns `None`.
///
/// # Safety
/// The word came from `to_word::<T>`, and was not freed.
#[inline]
pub(crate) unsafe fn with_tag<T: ItemKey, R>(word: u64, see: impl FnOnce(&T) -> R) -> R {
    // `to_word` makes the same test, so the tag is in a box if `is_word` is false. The result of
    // `from_word` decides nothing, because a safe implementation may be wrong.
    if is_word::<T>() {
        see(&T::from_word(word).expect(NO_KEY))
    } else {
        // SAFETY: `to_word` has put the tag into a box, because `is_word` is false.
        see(unsafe { &*std::ptr::with_exposed_provenance::<T>(word as usize) })
    }
}

/// The tag of a word.
///
/// # Panics
/// As [`with_tag`].
///
/// # Safety
/// As for [`with_tag`].
#[inline]
pub(crate) unsafe fn tag_of<T: ItemKey>(word: u64) -> T {
    if is_word::<T>() {
        T::from_word(word).expect(NO_KEY)
    } else {
        // SAFETY: as promised by the caller.
        unsafe { with_tag(word, T::clone) }
    }
}

/// The panic of an [`ItemKey`] that contradicts itself.
const NO_KEY: &str = "an `ItemKey` with `BITS` makes each key again from its word";

/// The methods of `Code` about tags. `$see` gives a closure the tag of a word.
macro_rules! about_tags {
    ($see:expr) => {
        unsafe fn tag(&self, word: u64) -> String {
            // SAFETY: as promised by the caller.
            unsafe { $see(word, |tag| $crate::key::text_of(tag)) }
        }

        unsafe fn order(&self, word: u64) -> u64 {
            // SAFETY: as promised by the caller.
            if $crate::key::is_word::<T>() { unsafe { $see(word, $crate::key::ItemKey::to_word) } } else { 0 }
        }

        unsafe fn identity(&self, word: u64) -> u64 {
            let identity = $crate::key::identity_of;
            // SAFETY: as promised by the caller.
            unsafe { $see(word, identity) }
        }

        unsafe fn priority(&self, word: u64) -> i64 {
            // SAFETY: as promised by the caller.
            unsafe { $see(word, |tag| self.hints.priority(tag)) }
        }

        unsafe fn affinity(&self, word: u64) -> Option<usize> {
            // SAFETY: as promised by the caller.
            unsafe { $see(word, |tag| self.hints.affinity(tag)) }
        }

        unsafe fn is_cancelled(&self, word: u64) -> bool {
            // SAFETY: as promised by the caller.
            unsafe { $see(word, |tag| self.hints.is_cancelled(tag)) }
        }

        unsafe fn makes(&self, word: u64) -> Vec<$crate::stuck::MadeItem> {
            // SAFETY: as promised by the caller.
            unsafe { $see(word, |tag| self.hints.makes(tag)) }
        }

        fn made_collections(&self) -> Vec<usize> {
            self.hints.made_collections()
        }
    };
}
pub(crate) use about_tags;
