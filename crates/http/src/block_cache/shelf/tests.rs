//! The rule against "the least recently used leaves", on requests as a site has them.

use super::*;
use std::collections::BTreeMap;

/// The bytes of each value in these tests.
const BYTES: usize = 4096;

/// The room, in values.
const ROOM: usize = 200;

/// Numbers as if by chance, the same in each run.
struct Chance(u64);

impl Chance {
    /// A number from 0 to 1, without 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Draws from `files` files, number n in proportion to 1/(n+1).
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(files: usize) -> Zipf {
        let mut sum = 0.0;
        let mut upto: Vec<f64> = Vec::with_capacity(files);
        for n in 0..files {
            sum += 1.0 / (n + 1) as f64;
            upto.push(sum);
        }
        upto.iter_mut().for_each(|one| *one /= sum);
        Zipf(upto)
    }

    fn draw(&self, chance: &mut Chance) -> u64 {
        let at = chance.next();
        self.0.partition_point(|&upto| upto <= at) as u64
    }
}

/// The least recently used leaves.
#[derive(Default)]
struct Lru {
    by_key: HashMap<u64, u64>,
    by_time: BTreeMap<u64, u64>,
    time: u64,
}

impl Lru {
    /// Whether it has the key. Then it has it as the last one used.
    fn ask(&mut self, key: u64) -> bool {
        self.time += 1;
        let before = self.by_key.insert(key, self.time);
        if let Some(before) = before {
            self.by_time.remove(&before);
        } else if self.by_key.len() > ROOM {
            let (_, oldest) = self.by_time.pop_first().expect("it is full");
            self.by_key.remove(&oldest);
        }
        self.by_time.insert(self.time, key);
        before.is_some()
    }
}

/// The parts of requests for popular files that find them, with this rule and with `Lru`. After
/// each `pause` of them a client reads `scan` files of its own.
fn compared(pause: usize, scan: usize) -> (f64, f64) {
    const REQUESTS: usize = 100_000;
    let (mut shelf, mut lru) = (Shelf::new(ROOM * BYTES), Lru::default());
    let (zipf, mut chance, mut evicted) = (Zipf::new(2000), Chance(7), Vec::new());
    let (mut hits, mut of_lru, mut own) = (0, 0, 1 << 32);
    let mut ask = |key: u64, shelf: &mut Shelf<u64, ()>, lru: &mut Lru| {
        let hit = shelf.get(&key).is_some();
        if !hit {
            shelf.insert(key, (), BYTES, &mut evicted);
        }
        assert!(shelf.bytes() <= ROOM * BYTES);
        (hit, lru.ask(key))
    };
    for request in 0..REQUESTS {
        let (hit, hit_lru) = ask(zipf.draw(&mut chance), &mut shelf, &mut lru);
        hits += usize::from(hit);
        of_lru += usize::from(hit_lru);
        if request % pause == pause - 1 {
            for _ in 0..scan {
                own += 1;
                ask(own, &mut shelf, &mut lru);
            }
        }
    }
    (hits as f64 / REQUESTS as f64, of_lru as f64 / REQUESTS as f64)
}

/// Without a scan the rule is the better of the two. A scan takes hits from the other rule, and
/// next to none from this one.
#[test]
fn a_scan_ruins_nothing() {
    let (alone, lru_alone) = compared(1000, 0);
    let (scanned, lru_scanned) = compared(1000, 1000);
    println!("hits: {alone:.3} alone, {scanned:.3} with a scan; LRU {lru_alone:.3} and {lru_scanned:.3}");
    assert!(alone > lru_alone, "{alone} {lru_alone}");
    assert!(scanned > alone - 0.05, "{scanned} {alone}");
    assert!(scanned > lru_scanned + 0.1, "{scanned} {lru_scanned}");
}

/// All that is held is in one queue, once, and the sums are right.
#[test]
fn the_sums_are_right() {
    let mut shelf = Shelf::<u64, u64>::new(50 * BYTES);
    let (zipf, mut chance, mut evicted) = (Zipf::new(300), Chance(1), Vec::new());
    let (mut inserted, mut out) = (0, 0);
    for _ in 0..20_000 {
        let key = zipf.draw(&mut chance);
        match shelf.get(&key) {
            Some(value) => assert_eq!(*value, key),
            None => {
                shelf.insert(key, key, BYTES * (1 + key as usize % 3), &mut evicted);
                inserted += 1;
            }
        }
        out += evicted.drain(..).count();
        let in_queues = shelf.young.len() + shelf.old.len();
        assert_eq!((in_queues, inserted - out), (shelf.held.len(), shelf.held.len()));
    }
    let sum = |keys: &VecDeque<u64>| keys.iter().map(|key| shelf.held[key].bytes).sum::<usize>();
    assert_eq!((sum(&shelf.young), sum(&shelf.young) + sum(&shelf.old)), (shelf.young_bytes, shelf.bytes));
    assert!(shelf.ghosts.bytes <= 50 * BYTES && shelf.ghosts.last.len() <= shelf.ghosts.queue.len());
}

#[test]
fn what_has_no_room_is_not_kept() {
    let mut shelf = Shelf::<u64, ()>::new(BYTES);
    let mut evicted = Vec::new();
    shelf.insert(1, (), BYTES + 1, &mut evicted);
    assert!(!shelf.has(&1) && shelf.bytes() == 0);
    for key in 2..5 {
        shelf.insert(key, (), BYTES, &mut evicted);
        assert!(shelf.has(&key) && shelf.bytes() == BYTES);
    }
    assert_eq!(evicted.len(), 2);
}

/// A value that leaves and comes back soon stays longer than the new ones around it.
#[test]
fn a_value_that_comes_back_is_kept() {
    let mut shelf = Shelf::<u64, ()>::new(20 * BYTES);
    let mut evicted = Vec::new();
    (0..21).for_each(|key| shelf.insert(key, (), BYTES, &mut evicted));
    assert!(!shelf.has(&0), "the first has left");
    shelf.insert(0, (), BYTES, &mut evicted);
    (100..130).for_each(|key| shelf.insert(key, (), BYTES, &mut evicted));
    assert!(shelf.has(&0) && !shelf.has(&1) && !shelf.has(&100));
}

#[test]
fn a_smaller_room_sends_values_away() {
    let (mut shelf, mut evicted) = (Shelf::new(10 * BYTES), Vec::new());
    for key in 0..10u64 {
        shelf.insert(key, key, BYTES, &mut evicted);
    }
    // Two that are asked for often stay.
    for key in [0, 7, 0, 7, 0, 7] {
        assert_eq!(shelf.get(&key), Some(&key));
    }
    shelf.resize(3 * BYTES + 1, &mut evicted);
    assert_eq!((shelf.bytes(), evicted.len()), (3 * BYTES, 7));
    assert!(shelf.has(&0) && shelf.has(&7) && !shelf.has(&1));
    shelf.insert(11, 11, BYTES, &mut evicted);
    assert_eq!((shelf.bytes(), evicted.len()), (3 * BYTES, 8));
    shelf.resize(10 * BYTES, &mut evicted);
    shelf.insert(12, 12, BYTES, &mut evicted);
    assert_eq!((shelf.bytes(), evicted.len()), (4 * BYTES, 8));
    shelf.resize(0, &mut evicted);
    assert_eq!((shelf.bytes(), evicted.len()), (0, 12));
}
