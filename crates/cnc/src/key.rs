//! Keys of items, and tags: [`ItemKey`] and [`Grid`].
//!
//! A key says how it can be stored. A key that fits in a word is compared and hashed as that word.
//! A key of a grid is a place in an array. All others are hashed.
//!
//! `item_store.rs` and `storage.rs` store items by these answers, `tag_word.rs` stores tags by
//! them, and `error.rs` and the reports print and sort keys. The program implements [`ItemKey`] for
//! types of its own.
//!
//! The trait is safe, so an implementation may contradict itself. No `unsafe` code may rely on an
//! answer of `to_word`, `from_word` or `place`. A wrong answer may confuse two items or cause a
//! panic.
//!
//! Paper: [NCM11 Appendix A].

use crate::first_panic::drop_payload;
use std::array;
use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

/// The text for a tag that does not fit in a word and is not kept.
pub(crate) const NO_TAG: &str = "..";

/// The most axes that a grid may have.
const AXES_MAX: usize = 4;

/// The lengths of the axes of a grid.
pub type AxisLengths = [usize; AXES_MAX];

/// A key of an item, or a tag.
///
/// Integers, `bool`, `char`, `()`, and `Option`, `Result`, arrays and tuples of two, three and four
/// of them fit in a word if their bits do. All others are hashed: integers of 128 bits, `String`,
/// `&'static str`, `Box<str>`, `Arc<str>`, `Vec`, and what contains one of them. A type of your own
/// need not fit: `impl ItemKey for Mine {}` is enough.
///
/// The graph hands keys to any worker. Reports print them with `Debug`, and sort them with `Ord`.
/// Of a key with a `Debug` that panics, a report says that.
///
/// # Paper
/// [NCM11 Appendix A] `FitInWord`, `GMapKey`, `ChooseRepr`: the map is chosen by the key's type.
///
/// # Differences
/// 1. The number of bits is a constant of the type, so that the compiler chooses.
/// 2. The paper's `toWord` sets bits of the first half where the second half is negative. Here the
///    sign is flipped instead, so that words are different and are ordered as the keys are.
///
/// # Examples
/// ```
/// use selvedge::cnc::ItemKey;
///
/// #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
/// struct Url(String);
/// impl ItemKey for Url {}
///
/// assert_eq!(<(i16, i16)>::BITS, Some(32));
/// assert_eq!(<(i16, i16)>::from_word((0_i16, -1_i16).to_word()), Some((0, -1)));
/// assert_eq!(Url::BITS, None);
/// ```
#[doc(alias = "GMapKey")]
#[doc(alias = "FitInWord")]
pub trait ItemKey: Clone + Ord + Hash + Debug + Send + Sync {
    /// The number of bits of a key, if it fits in a word.
    const BITS: Option<u32> = None;

    /// The key as a word: different for different keys, and in the order of the keys. It is 0 if
    /// [`BITS`](ItemKey::BITS) is `None`.
    fn to_word(&self) -> u64 {
        0
    }

    /// The key that is this word. `None` if [`BITS`](ItemKey::BITS) is `None`.
    fn from_word(_word: u64) -> Option<Self> {
        None
    }

    /// The place of the key in a grid with these lengths, in row-major order. `None` outside of the
    /// grid, and for a key that is no [`Grid`].
    fn place(&self, _lengths: &AxisLengths) -> Option<usize> {
        None
    }
}

/// A key that is a place in a grid: an unsigned integer, a tuple of two, three or four of them, or
/// `()` for a grid of one place.
///
/// The extent of a grid is a key too: the first one beyond, on each axis.
///
/// # Examples
/// ```
/// use selvedge::cnc::{Grid, ItemKey};
///
/// let (rows, columns) = (3_u32, 5_u32);
/// let lengths = (rows, columns).lengths();
/// assert_eq!((2_u32, 1_u32).place(&lengths), Some(11));
/// assert_eq!((1_u32, 5_u32).place(&lengths), None);
/// assert_eq!(<(u32, u32)>::at(&lengths, 11), (2, 1));
/// ```
pub trait Grid: ItemKey {
    /// The lengths of the axes of a grid with this extent; 1 for the axes that the key has not.
    fn lengths(&self) -> AxisLengths;

    /// The key at a place.
    fn at(lengths: &AxisLengths, place: usize) -> Self;
}

/// Whether the keys of a type are stored as words.
pub(crate) const fn is_word<K: ItemKey>() -> bool {
    matches!(K::BITS, Some(bits) if bits <= 64)
}

macro_rules! unsigned {
    ($($int:ty),*) => {$(
        impl ItemKey for $int {
            const BITS: Option<u32> = Some(<$int>::BITS);

            #[inline]
            fn to_word(&self) -> u64 {
                *self as u64
            }

            #[inline]
            fn from_word(word: u64) -> Option<Self> {
                Some(word as $int)
            }

            #[inline]
            fn place(&self, lengths: &AxisLengths) -> Option<usize> {
                let place = *self as usize;
                (place < lengths[0]).then_some(place)
            }
        }

        impl Grid for $int {
            fn lengths(&self) -> AxisLengths {
                [*self as usize, 1, 1, 1]
            }

            fn at(_: &AxisLengths, place: usize) -> Self {
                place as $int
            }
        }
    )*};
}

unsigned!(u8, u16, u32, u64, usize);

macro_rules! signed {
    ($($int:ty as $unsigned:ty),*) => {$(
        impl ItemKey for $int {
            const BITS: Option<u32> = Some(<$int>::BITS);

            #[inline]
            fn to_word(&self) -> u64 {
                ((*self as $unsigned) ^ (1 << (<$int>::BITS - 1))) as u64
            }

            #[inline]
            fn from_word(word: u64) -> Option<Self> {
                Some(((word as $unsigned) ^ (1 << (<$int>::BITS - 1))) as $int)
            }
        }
    )*};
}

signed!(i8 as u8, i16 as u16, i32 as u32, i64 as u64, isize as usize);

impl ItemKey for () {
    const BITS: Option<u32> = Some(0);

    fn from_word(_: u64) -> Option<()> {
        Some(())
    }

    #[inline]
    fn place(&self, _: &AxisLengths) -> Option<usize> {
        Some(0)
    }
}

impl Grid for () {
    fn lengths(&self) -> AxisLengths {
        [1; AXES_MAX]
    }

    fn at(_: &AxisLengths, _: usize) {}
}

impl ItemKey for bool {
    const BITS: Option<u32> = Some(1);

    fn to_word(&self) -> u64 {
        u64::from(*self)
    }

    fn from_word(word: u64) -> Option<bool> {
        Some(word & 1 == 1)
    }
}

impl ItemKey for char {
    const BITS: Option<u32> = Some(21);

    fn to_word(&self) -> u64 {
        u64::from(u32::from(*self))
    }

    fn from_word(word: u64) -> Option<char> {
        u32::try_from(word).ok().and_then(char::from_u32)
    }
}

impl ItemKey for u128 {}
impl ItemKey for i128 {}
impl ItemKey for String {}
impl ItemKey for &'static str {}
impl ItemKey for Box<str> {}
impl ItemKey for Arc<str> {}
impl<K: ItemKey> ItemKey for Vec<K> {}

/// The paper's `Maybe`: one more bit, which is 0 for `None`.
impl<K: ItemKey> ItemKey for Option<K> {
    const BITS: Option<u32> = sum(&[Some(1), K::BITS]);

    #[inline]
    fn to_word(&self) -> u64 {
        match (self, Self::BITS) {
            (Some(key), Some(bits)) => append::<K>(1, key, bits - 1),
            _ => 0,
        }
    }

    #[inline]
    fn from_word(word: u64) -> Option<Self> {
        let bits = Self::BITS? - 1;
        if word >> bits & 1 == 0 { Some(None) } else { K::from_word(word & low(bits)).map(Some) }
    }
}

/// The paper's `Either`: one more bit than the larger of the two, which is 0 for `Ok`.
impl<A: ItemKey, B: ItemKey> ItemKey for Result<A, B> {
    const BITS: Option<u32> = either(A::BITS, B::BITS);

    #[inline]
    fn to_word(&self) -> u64 {
        match (self, Self::BITS) {
            (Ok(key), Some(bits)) => append::<A>(0, key, bits - 1),
            (Err(key), Some(bits)) => append::<B>(1, key, bits - 1),
            _ => 0,
        }
    }

    #[inline]
    fn from_word(word: u64) -> Option<Self> {
        let bits = Self::BITS? - 1;
        if word >> bits & 1 == 0 {
            A::from_word(word & low(bits)).map(Ok)
        } else {
            B::from_word(word & low(bits)).map(Err)
        }
    }
}

impl<K: ItemKey, const N: usize> ItemKey for [K; N] {
    const BITS: Option<u32> = times(K::BITS, N);

    #[inline]
    fn to_word(&self) -> u64 {
        match (Self::BITS, K::BITS) {
            (Some(_), Some(bits)) => self.iter().fold(0, |word, key| append(word, key, bits)),
            _ => 0,
        }
    }

    #[inline]
    fn from_word(word: u64) -> Option<Self> {
        let (_, bits) = (Self::BITS?, K::BITS?);
        let shift = |at: usize| bits * (N - 1 - at) as u32;
        let keys: [Option<K>; N] =
            array::from_fn(|at| K::from_word(word.checked_shr(shift(at)).unwrap_or(0) & low(bits)));
        if keys.iter().any(Option::is_none) {
            return None;
        }
        Some(keys.map(|key| key.expect("no key is missing")))
    }
}

const fn either(a: Option<u32>, b: Option<u32>) -> Option<u32> {
    match (a, b) {
        (Some(a), Some(b)) => sum(&[Some(1), Some(if a > b { a } else { b })]),
        _ => None,
    }
}

const fn times(bits: Option<u32>, n: usize) -> Option<u32> {
    match bits {
        Some(0) => Some(0),
        Some(bits) if n <= 64 && bits as usize * n <= 64 => Some(bits * n as u32),
        _ => None,
    }
}

/// A word in which the lowest `bits` bits are set.
#[inline]
const fn low(bits: u32) -> u64 {
    match 1_u64.checked_shl(bits) {
        Some(bit) => bit - 1,
        None => u64::MAX,
    }
}

const fn sum(bits: &[Option<u32>]) -> Option<u32> {
    let (mut total, mut at) = (0, 0);
    while at < bits.len() {
        match bits[at] {
            Some(bits) => total += bits,
            None => return None,
        }
        at += 1;
    }
    if total <= 64 { Some(total) } else { None }
}

/// The word of `key` in `bits` bits, behind the bits of the keys before it.
#[inline]
fn append<K: ItemKey>(before: u64, key: &K, bits: u32) -> u64 {
    let word = key.to_word();
    assert!(word.checked_shr(bits).unwrap_or(0) == 0, "the word of {key:?} has more than {bits} bits");
    // A shift by 64 is possible only if no other key has a bit.
    before.checked_shl(bits).unwrap_or(0) | word
}

/// The last key of a word, and what is before it.
#[inline]
fn split<K: ItemKey>(word: u64) -> Option<(u64, K)> {
    let bits = K::BITS.unwrap_or(0);
    Some((word.checked_shr(bits).unwrap_or(0), K::from_word(word & low(bits))?))
}

macro_rules! tuple {
    ($($key:ident $at:tt),+; $($back:ident),+) => {
        impl<$($key: ItemKey),+> ItemKey for ($($key,)+) {
            const BITS: Option<u32> = sum(&[$($key::BITS),+]);

            #[inline]
            fn to_word(&self) -> u64 {
                if Self::BITS.is_none() {
                    return 0;
                }
                let word = 0;
                $(let word = append(word, &self.$at, $key::BITS.unwrap_or(0));)+
                word
            }

            #[inline]
            #[allow(non_snake_case)]
            fn from_word(word: u64) -> Option<Self> {
                Self::BITS?;
                $(let (word, $back) = split::<$back>(word)?;)+
                let _ = word;
                Some(($($key,)+))
            }

            #[inline]
            fn place(&self, lengths: &AxisLengths) -> Option<usize> {
                let place = 0;
                $(let place = place * lengths[$at] + self.$at.place(&[lengths[$at], 1, 1, 1])?;)+
                Some(place)
            }
        }

        impl<$($key: Grid),+> Grid for ($($key,)+) {
            fn lengths(&self) -> AxisLengths {
                let mut lengths = [1; AXES_MAX];
                $(lengths[$at] = self.$at.lengths()[0];)+
                lengths
            }

            #[allow(non_snake_case)]
            fn at(lengths: &AxisLengths, place: usize) -> Self {
                let mut place = place;
                let mut axis = [0; AXES_MAX];
                for at in (0..AXES_MAX).rev() {
                    axis[at] = place % lengths[at];
                    place /= lengths[at];
                }
                ($($key::at(&[lengths[$at], 1, 1, 1], axis[$at]),)+)
            }
        }
    };
}

tuple!(A 0, B 1; B, A);
tuple!(A 0, B 1, C 2; C, B, A);
tuple!(A 0, B 1, C 2, D 3; D, C, B, A);

/// A key or tag as text. The `Debug` of the program may panic. Then there is a text that says so,
/// because a report must not end the run in place of the fault that it tells.
pub(crate) fn text_of(key: &impl Debug) -> String {
    text_if_any(key).unwrap_or_else(|| "(its `Debug` panicked)".to_owned())
}

/// A key or tag as text, unless the `Debug` of the program panics.
pub(crate) fn text_if_any(key: &impl Debug) -> Option<String> {
    let text = panic::catch_unwind(AssertUnwindSafe(|| format!("{key:?}")));
    text.map_err(drop_payload).ok()
}

/// Spreads a word over all bits: the product of two words, its halves folded.
#[inline]
pub(crate) fn fold(word: u64) -> u64 {
    let product = u128::from(word ^ 0x9E37_79B9_7F4A_7C15) * 0xD6E8_FEB8_6659_FD93;
    (product as u64) ^ ((product >> 64) as u64)
}

/// A word that is the same for a key in each run of the program: its word, or its hash if it does
/// not fit.
#[inline]
pub(crate) fn identity_of<K: ItemKey>(key: &K) -> u64 {
    if is_word::<K>() { key.to_word() } else { hash_of(key) }
}

/// The hash of a key that does not fit in a word.
pub(crate) fn hash_of<K: ItemKey>(key: &K) -> u64 {
    let mut hasher = Folding(0);
    key.hash(&mut hasher);
    hasher.finish()
}

struct Folding(u64);

impl Hasher for Folding {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(word) ^ (part.len() as u64) << 56);
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = fold(self.0.rotate_left(5) ^ word);
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}
