//! The cache against a list that is searched from its beginning.

use super::*;
use crate::record::DomainName;
use proptest::collection::vec;
use proptest::prelude::*;

const BYTES_MAX: usize = 4 * ENTRY_BYTES + 200;

fn key(number: u8) -> CacheKey {
    let name = DomainName::vec_from_str(&format!("n{number}.example")).unwrap();
    CacheKey { name: NameKey::new(&name), rtype: Rtype::A }
}

fn at(seconds: u64) -> Time {
    Time::from_nanos(seconds * 1_000_000_000 + 5)
}

/// The entries, those used last at the end: key, value, second of storing, seconds, bytes.
#[derive(Default)]
struct Slow(Vec<(u8, u32, u64, u32, usize)>);

impl Slow {
    fn get(&mut self, key: u8, now: u64) -> Option<(u32, u32)> {
        let index = self.0.iter().position(|entry| entry.0 == key)?;
        let entry = self.0.remove(index);
        if now - entry.2 >= entry.3.into() {
            return None;
        }
        self.0.push(entry);
        Some((entry.1, (now - entry.2) as u32))
    }

    fn insert(&mut self, key: u8, value: u32, seconds: u32, bytes: usize, now: u64) {
        self.0.retain(|entry| entry.0 != key);
        let bytes = bytes + ENTRY_BYTES;
        if seconds == 0 || bytes > BYTES_MAX {
            return;
        }
        while self.0.iter().map(|entry| entry.4).sum::<usize>() + bytes > BYTES_MAX {
            self.0.remove(0);
        }
        self.0.push((key, value, now, seconds, bytes));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Get(u8),
    Insert(u8, u32, usize),
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..7_u8).prop_map(Step::Get),
        (0..7_u8, 0..20_u32, 0..2000_usize)
            .prop_map(|(key, seconds, bytes)| Step::Insert(key, seconds, bytes)),
        (0..7_u8, 1..20_u32, 0..100_usize)
            .prop_map(|(key, seconds, bytes)| Step::Insert(key, seconds, bytes)),
        (0..8_u64).prop_map(Step::Pass),
    ];
    vec(step, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn it_does_what_the_list_does(steps in steps()) {
        let mut cache = Cache::new(BYTES_MAX);
        let mut slow = Slow::default();
        let mut now = 0;
        for (value, step) in steps.into_iter().enumerate() {
            let value = value as u32;
            match step {
                Step::Get(number) => {
                    prop_assert_eq!(cache.get(&key(number), at(now)), slow.get(number, now));
                }
                Step::Insert(number, seconds, bytes) => {
                    cache.insert(key(number), value, seconds, bytes, at(now));
                    slow.insert(number, value, seconds, bytes, now);
                }
                Step::Pass(seconds) => now += seconds,
            }
            prop_assert_eq!(cache.len(), slow.0.len());
            prop_assert_eq!(cache.uses.len(), cache.entries.len());
            prop_assert!(cache.bytes <= BYTES_MAX);
        }
    }
}
