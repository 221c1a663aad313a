//! Sorting in a crate that is linked into every program, where it is seldom called.
//!
//! The standard library's sort is compiled once more for each type of element and each comparison,
//! with 5 to 9 KB each. Here all types share one copy, which sorts their indices.

use std::cmp::Ordering;

/// The items in the order of `compare`. Items that are equal keep their order.
pub(crate) fn ordered<T>(items: Vec<T>, compare: impl Fn(&T, &T) -> Ordering) -> Vec<T> {
    let mut indices: Vec<usize> = (0..items.len()).collect();
    sort(&mut indices, &|one, other| compare(&items[one], &items[other]));
    let mut items: Vec<Option<T>> = items.into_iter().map(Some).collect();
    indices.into_iter().filter_map(|i| items[i].take()).collect()
}

#[inline(never)]
fn sort(indices: &mut [usize], compare: &dyn Fn(usize, usize) -> Ordering) {
    indices.sort_unstable_by(|&one, &other| compare(one, other).then(one.cmp(&other)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_in_order_and_equal_ones_keep_theirs() {
        let items: Vec<(u32, u32)> = (0..1000).map(|i| (i * 7919 % 10, i)).collect();
        let mut expected = items.clone();
        expected.sort_by_key(|(key, _)| *key);
        assert_eq!(ordered(items, |one, other| one.0.cmp(&other.0)), expected);
    }
}
