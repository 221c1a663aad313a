//! Each type of key that fits in a word, with random values and the ends of its range: the word is
//! another one for another key, has the key's order and no more than its bits, and the key comes
//! back. And the items of a graph are found by keys of each type, packed or hashed.

use selvedge_cnc::schedulers::Stealing;
use selvedge_cnc::{Grid, ItemKey, Items, graph};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

/// A random value, often at an end of its range.
trait Sample: Sized {
    fn sample(seed: &mut u64) -> Self;
}

fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed ^ *seed >> 29
}

macro_rules! sample_integers {
    ($($int:ty),*) => {$(
        impl Sample for $int {
            fn sample(seed: &mut u64) -> $int {
                match random(seed) >> 32 & 7 {
                    0 => <$int>::MIN,
                    1 => <$int>::MAX,
                    2 => 0,
                    3 => (0 as $int).wrapping_sub(1),
                    4 => 1,
                    _ => random(seed) as $int,
                }
            }
        }
    )*};
}

sample_integers!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize);

impl Sample for bool {
    fn sample(seed: &mut u64) -> bool {
        random(seed) >> 40 & 1 == 1
    }
}

impl Sample for char {
    fn sample(seed: &mut u64) -> char {
        char::from_u32((random(seed) >> 32) as u32 % 0x11_0000).unwrap_or(char::MAX)
    }
}

impl Sample for () {
    fn sample(_: &mut u64) {}
}

impl<T: Sample> Sample for Option<T> {
    fn sample(seed: &mut u64) -> Option<T> {
        bool::sample(seed).then(|| T::sample(seed))
    }
}

impl<A: Sample, B: Sample> Sample for Result<A, B> {
    fn sample(seed: &mut u64) -> Result<A, B> {
        if bool::sample(seed) { Ok(A::sample(seed)) } else { Err(B::sample(seed)) }
    }
}

impl<T: Sample, const N: usize> Sample for [T; N] {
    fn sample(seed: &mut u64) -> [T; N] {
        std::array::from_fn(|_| T::sample(seed))
    }
}

macro_rules! sample_tuples {
    ($($($key:ident)+),*) => {$(
        impl<$($key: Sample),+> Sample for ($($key,)+) {
            fn sample(seed: &mut u64) -> Self {
                ($($key::sample(seed),)+)
            }
        }
    )*};
}

sample_tuples!(A B, A B C, A B C D);

impl Sample for Box<str> {
    fn sample(seed: &mut u64) -> Box<str> {
        random(seed).to_string().into()
    }
}

impl Sample for Arc<str> {
    fn sample(seed: &mut u64) -> Arc<str> {
        random(seed).to_string().into()
    }
}

const SAMPLES: usize = if cfg!(miri) { 2 } else { 60 };

fn samples<K: Sample>() -> Vec<K> {
    let mut seed = 7;
    (0..SAMPLES).map(|_| K::sample(&mut seed)).collect()
}

fn check_word<K: ItemKey + Sample>() {
    let name = std::any::type_name::<K>();
    let bits = K::BITS.unwrap_or_else(|| panic!("{name} fits in a word"));
    let keys = samples::<K>();
    for a in &keys {
        let word = a.to_word();
        assert!(bits == 64 || word >> bits == 0, "{name}: {a:?} has {bits} bits, and its word {word:x}");
        assert_eq!(K::from_word(word).as_ref(), Some(a), "{name}");
        for b in &keys {
            assert_eq!(a.cmp(b), word.cmp(&b.to_word()), "{name}: {a:?} and {b:?}");
        }
    }
}

fn check_graph<K: ItemKey + Sample>() {
    let name = std::any::type_name::<K>();
    let expected: BTreeMap<K, usize> =
        samples().into_iter().enumerate().map(|(number, key)| (key, number)).collect();
    let found = graph(|graph| {
        let tags = graph.tags::<K>("tags");
        let (items, copies) = (graph.items::<K, usize>("items"), graph.items::<K, usize>("copies"));
        graph.prescribe(tags, "copy", move |key, step| {
            let number = *step.get(items, key.clone())?;
            step.put(copies, key, number)
        });
        graph
            .initialize(|env| {
                expected.keys().try_for_each(|key| env.put_tag(tags, key.clone()))?;
                expected.iter().try_for_each(|(key, number)| env.put(items, key.clone(), *number))
            })
            .unwrap();
        let finished = graph.run(&Stealing::new(2)).unwrap();
        finished.finalize(|view| view.iter(copies).map(|(key, number)| (key, *number)).collect::<Vec<_>>())
    });
    // Also in the order of the keys.
    assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{name}");
}

macro_rules! check_words {
    ($($key:ty),* $(,)?) => {$(
        check_word::<$key>();
        check_graph::<$key>();
    )*};
}

#[test]
fn every_key_that_fits_in_a_word() {
    check_words!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, bool, char, ());
    check_words!((u8, i8), (i16, u32), (u32, u32), (i32, i32), (bool, char), ((), u64), (i64, ()));
    check_words!((u8, u16, u32), (char, char, char), (i8, (), i32));
    check_words!((u16, u16, u16, u16), (i16, bool, char, u8), (u8, i8, u8, i8), ((), u64, (), ()));
    check_words!(Option<u8>, Option<i32>, Option<Option<char>>, (Option<bool>, Option<i16>), Option<()>);
    check_words!(Result<u8, i32>, Result<i32, u8>, Result<(), u32>, Option<Result<char, (u8, bool)>>);
    check_words!([u8; 8], [i16; 4], [bool; 64], [u64; 1], [char; 3], [u8; 0], [(); 100], [[i8; 2]; 3]);
}

#[test]
fn every_key_that_is_hashed() {
    fn check<K: ItemKey + Sample>() {
        assert_eq!(K::BITS, None, "{}", std::any::type_name::<K>());
        check_graph::<K>();
    }
    check::<u128>();
    check::<i128>();
    check::<Box<str>>();
    check::<Arc<str>>();
    check::<Option<u64>>();
    check::<Option<Arc<str>>>();
    check::<Result<u8, i64>>();
    check::<Result<Box<str>, u8>>();
    check::<[u8; 9]>();
    check::<[u64; 2]>();
    check::<(u64, bool)>();
}

/// Each place of a grid has its key, and no key outside has a place.
fn check_grid<K: Grid + Debug>(extent: K, places: usize, outside: &[K]) {
    let lengths = extent.lengths();
    let mut before: Option<K> = None;
    for place in 0..places {
        let key = K::at(&lengths, place);
        assert_eq!(key.place(&lengths), Some(place), "{key:?} of {extent:?}");
        assert!(before.is_none_or(|before| before < key), "{key:?} of {extent:?}");
        before = Some(key);
    }
    for key in outside {
        assert_eq!(key.place(&lengths), None, "{key:?} of {extent:?}");
    }
}

#[test]
fn every_grid() {
    check_grid(200_u8, 200, &[200, u8::MAX]);
    check_grid(300_u16, 300, &[300, u16::MAX]);
    check_grid(9_u32, 9, &[9, u32::MAX]);
    check_grid(9_u64, 9, &[9, u64::MAX]);
    check_grid(9_usize, 9, &[9, usize::MAX]);
    check_grid((), 1, &[]);
    check_grid((3_u8, 4_u16), 12, &[(3, 0), (0, 4)]);
    check_grid((3_u32, 4_usize, 2_u8), 24, &[(3, 0, 0), (0, 4, 0), (0, 0, 2)]);
    let outside = [(3, 0, 0, 0), (0, 4, 0, 0), (0, 0, 2, 0), (0, 0, 0, 5)];
    check_grid((3_u8, 4_u16, 2_u32, 5_u64), 120, &outside);
    // A grid of four axes in a graph.
    let sum = graph(|graph| {
        let tags = graph.tags::<(u8, u8, u8, u8)>("tags");
        let items = graph.items_in("items", Items::dense((2_u8, 3_u8, 2_u8, 2_u8)));
        graph.prescribe(tags, "put", move |(a, b, c, d), step| {
            step.put(items, (a, b, c, d), u32::from(a + b + c + d))
        });
        graph
            .initialize(|env| {
                (0..24_u8).try_for_each(|n| env.put_tag(tags, (n % 2, n / 2 % 3, n / 6 % 2, n / 12)))
            })
            .unwrap();
        graph.run(&Stealing::new(2)).unwrap().finalize(|view| view.iter(items).map(|(_, n)| n).sum::<u32>())
    });
    assert_eq!(sum, 24 + 12 * 3);
}
