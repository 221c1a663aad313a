//! [`CallContent`]: what a rank gives in a collective, in words. In a world that is
//! [checked](crate::Ranks::checked) `collective.rs` compares those of all ranks.

use std::any::type_name;
use std::fmt;

/// What a rank gives. Words that are empty fit all others: a call that does not say what it gives
/// fits each other call, and one that says no number fits each number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallContent {
    /// Of which type it is.
    of: String,
    /// How much it is, where all ranks give the same number.
    count: String,
}

impl CallContent {
    /// The content as a message holds it.
    pub(super) fn into_words(self) -> (String, String) {
        (self.of, self.count)
    }

    /// The content of a message.
    pub(super) fn of_words((of, count): (String, String)) -> CallContent {
        CallContent { of, count }
    }

    /// The same, with words behind the type.
    pub(super) fn with(mut self, words: &str) -> CallContent {
        self.of += words;
        self
    }

    /// Whether a rank that gives this may meet one that gives the other.
    pub(super) fn fits(&self, other: &CallContent) -> bool {
        let fits = |mine: &str, theirs: &str| mine.is_empty() || theirs.is_empty() || mine == theirs;
        fits(&self.of, &other.of) && fits(&self.count, &other.count)
    }
}

impl fmt::Display for CallContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count.is_empty() {
            true => f.write_str(&self.of),
            false => write!(f, "{} {}", self.count, self.of),
        }
    }
}

/// A value of this type.
pub(crate) fn value_of<T>() -> CallContent {
    CallContent { of: format!("a value of type {}", type_name::<T>()), count: String::new() }
}

/// Elements of this type, of which each rank may have another number.
pub(crate) fn elements_of<T>() -> CallContent {
    CallContent { of: format!("elements of type {}", type_name::<T>()), count: String::new() }
}

/// This number of elements of this type, which is the same on all ranks.
pub(crate) fn count_of<T>(count: usize) -> CallContent {
    CallContent { count: count.to_string(), ..elements_of::<T>() }
}

/// Parts of elements of this type, with these numbers on all ranks.
pub(crate) fn counts_of<T>(counts: impl Iterator<Item = usize>) -> CallContent {
    let count = format!("parts of {:?}", counts.collect::<Vec<_>>());
    CallContent { count, ..elements_of::<T>() }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_fits_all() {
        let (none, some, two, three) =
            (CallContent::default(), elements_of::<i32>(), count_of::<i32>(2), count_of::<i32>(3));
        for content in [&none, &some, &two, &three] {
            assert!(none.fits(content) && content.fits(&none) && content.fits(content));
        }
        assert!(some.fits(&two) && two.fits(&some));
        assert!(!two.fits(&three) && !two.fits(&count_of::<u8>(2)) && !some.fits(&value_of::<i32>()));
        assert_eq!(two.to_string(), "2 elements of type i32");
        assert_eq!(CallContent::of_words(two.clone().into_words()), two);
    }
}
