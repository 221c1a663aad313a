//! [`HashState`]: the hashes of the keys of maps.

use foldhash::fast;
use std::fmt;
use std::hash::{BuildHasher, Hasher};

/// How a [`TMap`](crate::TMap) or a [`TSet`](crate::TSet) hashes its keys, unless the program gives
/// another hasher.
///
/// A number takes one multiplication, and a text one for each 16 bytes. Each `HashState` has a seed
/// of its own, so maps differ in the order of their entries, also between two runs of a program.
///
/// # Keys of an attacker
/// The seed makes it improbable that keys of one hash are found in advance. It does not stop an
/// attacker that measures how long operations of the running program take: the hash is no
/// cryptographic one. A map with such keys takes [`std::hash::RandomState`], by
/// [`TMap::with_hasher`](crate::TMap::with_hasher); its hash takes a hundred instructions more.
///
/// # Examples
/// ```
/// use selvedge::stm::{HashState, TMap, TSet, Versioned};
/// use std::hash::RandomState;
///
/// let fast: TMap<u64, u64, Versioned, HashState> = TMap::new();
/// let from_outside: TSet<String, Versioned, RandomState> = TSet::with_hasher(RandomState::new());
/// # let _ = (fast, from_outside);
/// ```
#[derive(Clone, Default)]
pub struct HashState(fast::RandomState);

impl BuildHasher for HashState {
    type Hasher = KeyHasher;

    #[inline(always)]
    fn build_hasher(&self) -> KeyHasher {
        KeyHasher(self.0.build_hasher())
    }
}

/// It does not show the seed.
impl fmt::Debug for HashState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HashState").finish_non_exhaustive()
    }
}

/// The hash of one key: see [`HashState`].
#[derive(Clone)]
pub struct KeyHasher(fast::FoldHasher<'static>);

macro_rules! hand_on {
    ($($write:ident: $type:ty),*) => {$(
        #[inline(always)]
        fn $write(&mut self, part: $type) {
            self.0.$write(part);
        }
    )*};
}

impl Hasher for KeyHasher {
    hand_on! { write: &[u8], write_u8: u8, write_u16: u16, write_u32: u32, write_u64: u64, write_u128: u128, write_usize: usize }

    #[inline(always)]
    fn finish(&self) -> u64 {
        self.0.finish()
    }
}

/// It does not show the seed.
impl fmt::Debug for KeyHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyHasher").finish_non_exhaustive()
    }
}
