//! Random transactions of several OS threads, replayed in the order of their commits against a
//! sequential model.
//!
//! The order is that of the tickets of `selvedge_stm::testing`, and not that of the versions that
//! an engine gives: `Versioned` may give a lower version to the later one of two commits that have
//! no written variable in common.

use crate::shaken_alone;
use selvedge_stm::testing::{ticket, tickets};
use selvedge_stm::{Engine, TVar, TWord, Tried, Tx, atomically_under};
use selvedge_sync::wait_blocking;
use std::thread;

const VARS: usize = 10;
const OS_THREADS: u64 = 3;

/// Each variable is a word if its number is even, else a node.
struct Vars<E: Engine>(Vec<(TWord<u64, E>, TVar<u64, E>)>);

impl<E: Engine> Vars<E> {
    fn read(&self, tx: &Tx<E>, at: usize) -> Tried<u64> {
        let (word, node) = &self.0[at];
        Ok(if at.is_multiple_of(2) { word.read(tx)? } else { *node.read(tx)? })
    }

    fn write(&self, tx: &Tx<E>, at: usize, n: u64) {
        let (word, node) = &self.0[at];
        if at.is_multiple_of(2) { word.write(tx, n) } else { node.write(tx, n) }
    }
}

/// A committed transaction. The values that it wrote are its own.
#[derive(Debug, Default, Clone)]
struct Record {
    /// The tickets given before it began and after it ended.
    span: (u64, u64),
    /// Its own ticket, if it has written.
    ticket: Option<u64>,
    /// Variables with the values that the transaction found there, not written by itself.
    reads: Vec<(usize, u64)>,
    writes: Vec<(usize, u64)>,
}

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

fn run_some<E: Engine>(vars: &Vars<E>, os_thread: u64, many: u64) -> Vec<Record> {
    let mut random = Random(os_thread * 0x9E37_79B9 + 77);
    let mut one = |n: u64| {
        let steps: Vec<(usize, bool)> = (0..1 + random.below(8))
            .map(|_| (random.below(VARS as u64) as usize, random.below(3) == 0))
            .collect();
        let before = tickets();
        let mut record = wait_blocking(atomically_under::<E, _>(|tx| {
            let mut record = Record::default();
            for (step, &(var, writes)) in (0..).zip(&steps) {
                let value = vars.read(tx, var)?;
                if record.writes.iter().all(|write| write.0 != var) {
                    record.reads.push((var, value));
                }
                if writes {
                    let new = os_thread << 40 | n << 8 | step;
                    vars.write(tx, var, new);
                    record.writes.push((var, new));
                }
            }
            Ok(record)
        }));
        record.ticket = (!record.writes.is_empty()).then(ticket);
        record.span = (before, tickets());
        record
    };
    (0..many).map(&mut one).collect()
}

/// The first record that does not fit, if there is one.
fn replay(records: &[Record]) -> Result<(), &Record> {
    let mut writers: Vec<&Record> = records.iter().filter(|record| record.ticket.is_some()).collect();
    writers.sort_by_key(|record| record.ticket);
    let mut states = vec![(0, [0; VARS])];
    let fits = |record: &Record, state: &[u64; VARS]| record.reads.iter().all(|&(at, n)| state[at] == n);
    for writer in writers {
        let mut state = states[states.len() - 1].1;
        if !fits(writer, &state) {
            return Err(writer);
        }
        writer.writes.iter().for_each(|&(at, n)| state[at] = n);
        states.push((writer.ticket.expect("a writer"), state));
    }
    for reader in records.iter().filter(|record| record.ticket.is_none()) {
        let (begin, end) = reader.span;
        // The last state before it began, and all until it ended.
        let first = states.partition_point(|state| state.0 <= begin) - 1;
        let mut possible = states[first..].iter().take_while(|state| state.0 <= end);
        if !possible.any(|state| fits(reader, &state.1)) {
            return Err(reader);
        }
    }
    Ok(())
}

fn commits_have_an_order<E: Engine>() {
    let many = if cfg!(miri) { 20 } else { 6_000 };
    for one_in in [0, 6] {
        let _alone = shaken_alone(one_in);
        let vars = Vars::<E>((0..VARS).map(|_| (TWord::with_engine(0), TVar::with_engine(0))).collect());
        let records: Vec<Record> = thread::scope(|scope| {
            let vars = &vars;
            let all: Vec<_> =
                (1..=OS_THREADS).map(|n| scope.spawn(move || run_some(vars, n, many))).collect();
            all.into_iter().flat_map(|one| one.join().expect("no panic")).collect()
        });
        assert!(records.iter().any(|record| record.ticket.is_none()), "transactions that only read");
        if let Err(record) = replay(&records) {
            panic!("no order of the commits explains {record:?}");
        }
    }
}

/// The replay finds a lost update, and a state that never was.
#[test]
fn the_replay_can_fail() {
    let record = |ticket, reads: &[_], writes: &[_]| Record {
        span: (0, 2),
        ticket,
        reads: reads.to_vec(),
        writes: writes.to_vec(),
    };
    let both = record(Some(1), &[(0, 0)], &[(0, 5), (1, 5)]);
    assert!(replay(&[record(Some(2), &[(0, 5)], &[(0, 6)]), both.clone()]).is_ok());
    assert!(replay(&[record(Some(2), &[(0, 0)], &[(0, 6)]), both.clone()]).is_err());
    assert!(replay(&[record(None, &[(0, 5), (1, 5)], &[]), both.clone()]).is_ok());
    assert!(replay(&[record(None, &[(0, 5), (1, 0)], &[]), both]).is_err());
}

under_each_engine! {
    commits_have_an_order
}
