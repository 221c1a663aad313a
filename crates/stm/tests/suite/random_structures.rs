//! Random programs over the structures made of variables, against slow obvious models: the
//! collections of std.

use proptest::prelude::*;
use selvedge_stm::{
    Abort, Engine, TArray, TBQueue, TChan, TMVar, TMap, TQueue, TSem, TSet, TWordArray, Tried, Tx,
    try_atomically_under,
};
use selvedge_sync::wait_blocking;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// A transaction: its operations, and whether it has an effect.
type Program<O> = Vec<(Vec<O>, bool)>;

fn programs<O: std::fmt::Debug>(op: impl Strategy<Value = O>) -> impl Strategy<Value = Program<O>> {
    let transaction = (prop::collection::vec(op, 0..30), prop::bool::weighted(0.8));
    prop::collection::vec(transaction, 1..10)
}

/// Runs each transaction, and its operations over the model as well, with equal answers. A
/// transaction that is given up leaves both as they were.
fn agree<E: Engine, O, M: Clone>(
    program: &Program<O>,
    model: &mut M,
    mut step: impl FnMut(&Tx<E>, &O, &mut M) -> Tried<()>,
) {
    for (ops, has_effect) in program {
        let before = model.clone();
        let result = wait_blocking(try_atomically_under::<E, (), ()>(|tx| {
            *model = before.clone();
            ops.iter().try_for_each(|op| step(tx, op, model))?;
            if *has_effect { Ok(()) } else { Err(Abort::Error(())) }
        }));
        assert_eq!(result.is_ok(), *has_effect);
        if !has_effect {
            *model = before;
        }
    }
}

/// The value, or `None` if the operation retries.
fn or_none<E: Engine, R>(tx: &Tx<E>, body: impl FnOnce(&Tx<E>) -> Tried<R>) -> Tried<Option<R>> {
    tx.or_else(|tx| body(tx).map(Some), |_| Ok(None))
}

#[derive(Debug, Clone)]
enum MapOp {
    Insert(u16, u32),
    Remove(u16),
    /// Adds to the value; without a number, removes the entry.
    Update(u16, Option<u32>),
    Get(u16),
    All,
    Clear,
}

fn map_op() -> impl Strategy<Value = MapOp> {
    let key = || 0..90_u16;
    prop_oneof![
        12 => (key(), any::<u32>()).prop_map(|(key, value)| MapOp::Insert(key, value)),
        6 => key().prop_map(MapOp::Remove),
        4 => (key(), any::<Option<u32>>()).prop_map(|(key, n)| MapOp::Update(key, n)),
        4 => key().prop_map(MapOp::Get),
        2 => Just(MapOp::All),
        1 => Just(MapOp::Clear),
    ]
}

/// Gives a third of the keys one hash, and a third of them hashes that differ in the last bits of
/// the trie alone.
#[derive(Default)]
struct BadHasher(u64);

impl Hasher for BadHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("the keys are numbers");
    }

    fn write_u16(&mut self, n: u16) {
        self.0 = match n % 3 {
            0 => 5,
            1 => u64::from(n) << 57,
            _ => u64::from(n).wrapping_mul(0x9E37_79B9_7F4A_7C15),
        };
    }
}

fn maps_agree<E: Engine>(program: &Program<MapOp>) {
    let map = TMap::<u16, u32, E, BuildHasherDefault<BadHasher>>::with_hasher(Default::default());
    let set = TSet::<u16, E, BuildHasherDefault<BadHasher>>::with_hasher(Default::default());
    let mut model = HashMap::new();
    agree(program, &mut model, |tx, op, model| {
        match *op {
            MapOp::Insert(key, value) => {
                assert_eq!(set.insert(tx, key)?, !model.contains_key(&key));
                assert_eq!(map.insert(tx, key, value)?.copied(), model.insert(key, value));
            }
            MapOp::Remove(key) => {
                assert_eq!(set.remove(tx, &key)?, model.contains_key(&key));
                assert_eq!(map.remove(tx, &key)?.copied(), model.remove(&key));
            }
            MapOp::Update(key, Some(n)) => {
                let new = |old: Option<&u32>| Some(old.unwrap_or(&0).wrapping_add(n));
                map.update(tx, key, new)?;
                set.insert(tx, key)?;
                model.insert(key, new(model.get(&key)).expect("a value"));
            }
            MapOp::Update(key, None) => {
                map.update(tx, key, |_| None)?;
                set.remove(tx, &key)?;
                model.remove(&key);
            }
            MapOp::Get(key) => {
                assert_eq!(map.get(tx, &key)?, model.get(&key));
                assert_eq!(map.contains_key(tx, &key)?, set.contains(tx, &key)?);
            }
            MapOp::All => {
                let all = map.iter(tx).map(|entry| entry.map(|(key, value)| (*key, *value)));
                assert_eq!(&all.collect::<Tried<HashMap<_, _>>>()?, model);
                let keys: HashSet<u16> = set.iter(tx).map(|key| key.copied()).collect::<Tried<_>>()?;
                assert_eq!(keys, model.keys().copied().collect());
                assert_eq!((map.len(tx)?, set.len(tx)?), (model.len(), model.len()));
                assert_eq!((map.is_empty(tx)?, set.is_empty(tx)?), (model.is_empty(), model.is_empty()));
            }
            MapOp::Clear => {
                map.clear(tx);
                set.clear(tx);
                model.clear();
            }
        }
        Ok(())
    });
}

#[derive(Debug, Clone)]
enum QueueOp {
    Push(u32),
    PushAll(Vec<u32>),
    Unget(u32),
    Pop,
    Peek,
    Flush,
}

fn queue_op() -> impl Strategy<Value = QueueOp> {
    prop_oneof![
        6 => any::<u32>().prop_map(QueueOp::Push),
        // Over two borders between segments at most.
        2 => prop::collection::vec(any::<u32>(), 0..20).prop_map(QueueOp::PushAll),
        2 => any::<u32>().prop_map(QueueOp::Unget),
        5 => Just(QueueOp::Pop),
        2 => Just(QueueOp::Peek),
        1 => Just(QueueOp::Flush),
    ]
}

fn queues_agree<E: Engine>(program: &Program<QueueOp>, capacity: usize) {
    let (queue, bounded) = (TQueue::<u32, E>::with_engine(), TBQueue::<u32, E>::with_engine(capacity));
    let mut model = (VecDeque::new(), VecDeque::new());
    agree(program, &mut model, |tx, op, (all, few): &mut (VecDeque<u32>, VecDeque<u32>)| {
        let has_room = few.len() < capacity;
        match *op {
            QueueOp::Push(value) => {
                queue.push(tx, value)?;
                all.push_back(value);
                assert_eq!(or_none(tx, |tx| bounded.push(tx, value))?.is_some(), has_room);
                few.extend(has_room.then_some(value));
            }
            QueueOp::PushAll(ref values) => {
                queue.push_all(tx, values.iter().copied())?;
                all.extend(values);
            }
            QueueOp::Unget(value) => {
                queue.unget(tx, value)?;
                all.push_front(value);
                assert_eq!(or_none(tx, |tx| bounded.unget(tx, value))?.is_some(), has_room);
                if has_room {
                    few.push_front(value);
                }
            }
            QueueOp::Pop => {
                assert_eq!(queue.try_pop(tx)?, all.pop_front());
                assert_eq!(or_none(tx, |tx| bounded.pop(tx))?, few.pop_front());
            }
            QueueOp::Peek => {
                assert_eq!(or_none(tx, |tx| queue.peek(tx).copied())?.as_ref(), all.front());
                assert_eq!(bounded.try_peek(tx)?, few.front());
            }
            QueueOp::Flush => {
                assert_eq!(queue.flush(tx)?, all.drain(..).collect::<Vec<_>>());
                assert_eq!(bounded.flush(tx)?, few.drain(..).collect::<Vec<_>>());
            }
        }
        assert_eq!((queue.is_empty(tx)?, bounded.is_empty(tx)?), (all.is_empty(), few.is_empty()));
        assert_eq!(queue.len(tx)?, all.len());
        assert_eq!((bounded.len(tx)?, bounded.is_full(tx)?), (few.len(), few.len() == capacity));
        Ok(())
    });
}

#[derive(Debug, Clone)]
enum ChanOp {
    Write(usize, u32),
    Dup(usize),
    DupFromHere(usize),
    Unget(usize, u32),
    Read(usize),
    Peek(usize),
}

fn chan_op() -> impl Strategy<Value = ChanOp> {
    let end = || 0..6_usize;
    prop_oneof![
        6 => (end(), any::<u32>()).prop_map(|(end, value)| ChanOp::Write(end, value)),
        1 => end().prop_map(ChanOp::Dup),
        1 => end().prop_map(ChanOp::DupFromHere),
        1 => (end(), any::<u32>()).prop_map(|(end, value)| ChanOp::Unget(end, value)),
        8 => end().prop_map(ChanOp::Read),
        2 => end().prop_map(ChanOp::Peek),
    ]
}

/// The model has a queue for each end. The ends of a transaction without effect are forgotten.
fn channels_agree<E: Engine>(program: &Program<ChanOp>) {
    let mut model = vec![(TChan::<u32, E>::with_engine(), VecDeque::<u32>::new())];
    agree(program, &mut model, |tx, op, ends| {
        let len = ends.len();
        match *op {
            ChanOp::Write(end, value) => {
                ends[end % len].0.write(tx, value)?;
                ends.iter_mut().for_each(|(_, values)| values.push_back(value));
            }
            ChanOp::Dup(end) => {
                let new = ends[end % len].0.dup(tx)?;
                ends.push((new, VecDeque::new()));
            }
            ChanOp::DupFromHere(end) => {
                let (chan, values) = &ends[end % len];
                let new = (chan.dup_from_here(tx)?, values.clone());
                ends.push(new);
            }
            ChanOp::Unget(end, value) => {
                ends[end % len].0.unget(tx, value)?;
                ends[end % len].1.push_front(value);
            }
            ChanOp::Read(end) => {
                let (chan, values) = &mut ends[end % len];
                assert_eq!(or_none(tx, |tx| chan.read(tx))?, values.pop_front());
            }
            ChanOp::Peek(end) => {
                let (chan, values) = &ends[end % len];
                assert_eq!(chan.try_peek(tx)?, values.front());
                assert_eq!(chan.is_empty(tx)?, values.is_empty());
            }
        }
        Ok(())
    });
}

#[derive(Debug, Clone)]
enum PlaceOp {
    Put(usize, u32),
    Take(usize),
    Swap(usize, u32),
    Write(usize, u32),
    Signal(u64),
    Wait,
}

fn place_op() -> impl Strategy<Value = PlaceOp> {
    let place = || 0..5_usize;
    prop_oneof![
        4 => (place(), any::<u32>()).prop_map(|(at, value)| PlaceOp::Put(at, value)),
        4 => place().prop_map(PlaceOp::Take),
        2 => (place(), any::<u32>()).prop_map(|(at, value)| PlaceOp::Swap(at, value)),
        1 => (place(), any::<u32>()).prop_map(|(at, value)| PlaceOp::Write(at, value)),
        1 => (0..3_u64).prop_map(PlaceOp::Signal),
        3 => Just(PlaceOp::Wait),
    ]
}

/// An array of optional values and several `TMVar`s do the same. A semaphore is beside them.
fn places_agree<E: Engine>(program: &Program<PlaceOp>) {
    let vars: Vec<TMVar<u32, E>> = (0..5).map(|_| TMVar::with_engine(None)).collect();
    let array = TArray::<Option<u32>, E>::with_engine([None; 5]);
    // 0 for `None`.
    let words = TWordArray::<u64, E>::with_engine([0; 5]);
    let bits = |value: Option<u32>| value.map_or(0, |value| u64::from(value) + 1);
    let sem = TSem::<E>::with_engine(2);
    let mut model = (vec![None; 5], 2_u64);
    agree(program, &mut model, |tx, op, (values, units): &mut (Vec<Option<u32>>, u64)| {
        match *op {
            PlaceOp::Put(at, value) => {
                assert_eq!(or_none(tx, |tx| vars[at].put(tx, value))?.is_some(), values[at].is_none());
                array.modify(tx, at, |old| old.or(Some(value)))?;
                words.modify(tx, at, |old| if old == 0 { bits(Some(value)) } else { old })?;
                values[at] = values[at].or(Some(value));
            }
            PlaceOp::Take(at) => {
                assert_eq!(vars[at].try_take(tx)?, values[at]);
                assert_eq!(words.swap(tx, at, 0)?, bits(values[at]));
                assert_eq!(array.swap(tx, at, None)?, &values[at].take());
            }
            PlaceOp::Swap(at, value) => {
                assert_eq!(or_none(tx, |tx| vars[at].swap(tx, value).copied())?, values[at]);
                values[at] = values[at].map(|_| value);
                array.write(tx, at, values[at]);
                words.write(tx, at, bits(values[at]));
            }
            PlaceOp::Write(at, value) => {
                vars[at].write(tx, value);
                array.write(tx, at, Some(value));
                words.write(tx, at, bits(Some(value)));
                values[at] = Some(value);
            }
            PlaceOp::Signal(n) => {
                sem.signal_n(tx, n)?;
                *units += n;
            }
            PlaceOp::Wait => {
                assert_eq!(or_none(tx, |tx| sem.wait(tx))?.is_some(), *units > 0);
                *units = units.saturating_sub(1);
            }
        }
        for (at, var) in vars.iter().enumerate() {
            assert_eq!(words.read(tx, at)?, bits(values[at]));
            assert_eq!((var.try_read(tx)?.copied(), *array.read(tx, at)?), (values[at], values[at]));
            assert_eq!(var.is_empty(tx)?, values[at].is_none());
        }
        assert_eq!(sem.available(tx)?, *units);
        Ok(())
    });
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 3 } else { 100 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn maps_and_sets_agree_with_the_model(program in programs(map_op())) {
        in_each_turn!(maps_agree(&program));
    }

    #[test]
    fn queues_agree_with_the_model(program in programs(queue_op()), capacity in 1..6_usize) {
        in_each_turn!(queues_agree(&program, capacity));
    }

    #[test]
    fn channels_agree_with_the_model(program in programs(chan_op())) {
        in_each_turn!(channels_agree(&program));
    }

    #[test]
    fn places_agree_with_the_model(program in programs(place_op())) {
        in_each_turn!(places_agree(&program));
    }
}
