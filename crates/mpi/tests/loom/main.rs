//! All interleavings of the protocols in shared memory, the ring, the bell and the loan, and of the
//! lock around MPI.
//!
//! The files of the protocols are compiled here again, with loom's primitives in place of std's.
#![cfg(loom)]

#[allow(dead_code, reason = "the crate uses all of it")]
#[path = "../../src/processes/bell.rs"]
mod bell;
#[allow(dead_code, reason = "the crate uses all of it")]
#[path = "../../src/processes/loan.rs"]
mod loan;
#[allow(dead_code, reason = "the crate uses all of it")]
#[path = "../../src/libmpi/mail_lock.rs"]
mod mail_lock;
mod primitives;
#[allow(dead_code, reason = "the crate uses all of it")]
#[path = "../../src/processes/ring.rs"]
mod ring;

use bell::Bell;
use loan::{LoanCell, LoanEnd};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use mail_lock::MailLock;
use primitives::{ByteCell, Mutex};
use ring::{RingControl, RingMemory, RingReader, RingWriter};
use std::mem::{MaybeUninit, take};

/// What two processes share: a ring from one to the other, and the bell of each.
struct SharedMemory {
    control: RingControl,
    cells: Vec<ByteCell>,
    writers_bell: Bell,
    readers_bell: Bell,
}

#[derive(Clone)]
struct TwoProcesses(Arc<SharedMemory>);

impl RingMemory for TwoProcesses {
    fn control(&self) -> &RingControl {
        &self.0.control
    }

    fn cells(&self) -> &[ByteCell] {
        &self.0.cells
    }
}

fn shared(capacity: usize) -> TwoProcesses {
    TwoProcesses(Arc::new(SharedMemory {
        control: RingControl::new(),
        cells: (0..capacity).map(|_| ByteCell::new()).collect(),
        writers_bell: Bell::new(),
        readers_bell: Bell::new(),
    }))
}

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// The sleep of the futex: until the count is another.
fn sleep(bell: &Bell, rung: u32) {
    while bell.rung() == rung {
        thread::yield_now();
    }
}

/// Writes all bytes, as `RankRings` and the attendant do.
fn write_all(shared: &TwoProcesses, bytes: &[u8]) {
    // SAFETY: each model calls it once.
    let mut writer = unsafe { RingWriter::new(shared.clone()) };
    let bell = &shared.0.writers_bell;
    let mut sent = 0;
    while sent < bytes.len() {
        let rung = bell.rung();
        bell.arm();
        let written = writer.write(&bytes[sent..]);
        if written > 0 {
            writer.publish();
            let _ = shared.0.readers_bell.ring();
            sent += written;
        } else if !writer.starve() {
            sleep(bell, rung);
        }
    }
}

/// Reads this number of bytes.
fn read_all(shared: &TwoProcesses, count: usize) -> Vec<u8> {
    // SAFETY: each model calls it once.
    let mut reader = unsafe { RingReader::new(shared.clone()) };
    let bell = &shared.0.readers_bell;
    let mut bytes = Vec::new();
    while bytes.len() < count {
        let rung = bell.rung();
        bell.arm();
        let mut piece = [MaybeUninit::uninit(); 4];
        let length = reader.read(&mut piece);
        if length == 0 {
            sleep(bell, rung);
            continue;
        }
        // SAFETY: `read` has initialised this number.
        bytes.extend(piece[..length].iter().map(|byte| unsafe { byte.assume_init() }));
        reader.release();
        if reader.control().is_writer_starved() {
            let _ = shared.0.writers_bell.ring();
        }
    }
    bytes
}

/// The reader sleeps, and is woken for each piece.
#[test]
fn a_reader_that_sleeps_is_woken() {
    check(|| {
        let shared = shared(4);
        let there = shared.clone();
        let writes = thread::spawn(move || {
            write_all(&there, b"a");
            // The ring has room, so nothing is waited for.
        });
        assert_eq!(read_all(&shared, 1), b"a");
        writes.join().unwrap();
    });
}

/// The ring is full, so the writer sleeps for room; and the positions go round.
#[test]
fn a_writer_that_waits_for_room_is_woken() {
    check(|| {
        let shared = shared(1);
        let there = shared.clone();
        let writes = thread::spawn(move || write_all(&there, b"ab"));
        assert_eq!(read_all(&shared, 2), b"ab");
        writes.join().unwrap();
    });
}

/// One OS thread looks without a bell for a while; the other sleeps. What comes is found by either.
#[test]
fn a_thread_that_looks_itself_leaves_nothing_to_a_sleeper_that_is_not_rung() {
    check(|| {
        let shared = shared(2);
        let there = shared.clone();
        let writes = thread::spawn(move || write_all(&there, b"a"));
        let sleeper = shared.clone();
        let found = Arc::new(loom::sync::atomic::AtomicU32::new(0));
        let seen = found.clone();
        let looks = thread::spawn(move || {
            let bell = &sleeper.0.readers_bell;
            bell.disarm();
            let before = sleeper.control().has_bytes();
            bell.arm();
            if before || sleeper.control().has_bytes() {
                seen.store(1, loom::sync::atomic::Ordering::Release);
                bell.ring_anyway();
            }
        });
        let bell = &shared.0.readers_bell;
        let rung = bell.rung();
        bell.arm();
        if !shared.control().has_bytes() && found.load(loom::sync::atomic::Ordering::Acquire) == 0 {
            sleep(bell, rung);
        }
        looks.join().unwrap();
        writes.join().unwrap();
        assert!(shared.control().has_bytes());
    });
}

/// Empties the queue, as a holder does.
fn serve(queue: Arc<Mutex<u32>>) -> impl FnMut(&mut u32) {
    move |served| *served += take(&mut *queue.lock().unwrap())
}

/// Two threads post a piece of mail each, and a third one holds the value meanwhile. When all have
/// gone, no mail is left.
#[test]
fn mail_is_served_by_the_thread_that_posts_it_or_by_the_holder() {
    check(|| {
        let served = Arc::new(MailLock::new(0));
        let queue = Arc::new(Mutex::new(0));
        let posts = [(); 2].map(|()| {
            let (served, queue) = (served.clone(), queue.clone());
            thread::spawn(move || {
                *queue.lock().unwrap() += 1;
                served.post(serve(queue));
            })
        });
        served.hold(|_| (), serve(queue.clone()));
        posts.into_iter().for_each(|post| post.join().unwrap());
        assert_eq!(served.hold(|served| *served, |_| unreachable!("mail is left")), Some(2));
    });
}

/// Mail that a thread has posted before a call of its own is served before that call.
#[test]
fn a_holder_serves_the_mail_of_its_thread_first() {
    check(|| {
        let served = Arc::new(MailLock::new(0));
        let queue = Arc::new(Mutex::new(0));
        let (there, others) = (served.clone(), queue.clone());
        let holds = thread::spawn(move || there.hold(|_| (), serve(others)));
        *queue.lock().unwrap() += 1;
        served.post(serve(queue.clone()));
        if let Some(served) = served.hold(|served| *served, serve(queue)) {
            assert_eq!(served, 1);
        }
        holds.join().unwrap();
    });
}

/// The memory of a lender. The kernel reads it for another process while the lender may write.
struct LentMemory {
    cell: LoanCell,
    words: [AtomicU64; 2],
}

impl LentMemory {
    fn write(&self, number: u64) {
        self.words.iter().for_each(|word| word.store(number, Ordering::Relaxed));
    }
}

/// A lender lends its memory twice, with other contents, and writes it as soon as it has it back.
/// The reader takes the loan of which it hears. A copy that counts is of that loan.
#[test]
fn a_reader_has_all_bytes_of_a_loan_or_knows_that_it_has_none() {
    check(|| {
        let lent =
            Arc::new(LentMemory { cell: LoanCell::new(), words: [AtomicU64::new(0), AtomicU64::new(0)] });
        let told = Arc::new(AtomicU64::new(0));
        let (there, heard) = (lent.clone(), told.clone());
        let reads = thread::spawn(move || {
            let number = heard.load(Ordering::Acquire);
            if number == 0 || !there.cell.take(number) {
                return 0;
            }
            let copy = [0, 1].map(|at: usize| there.words[at].load(Ordering::Relaxed));
            if !there.cell.give_back(number) {
                return 0;
            }
            assert_eq!(copy, [number; 2]);
            number
        });
        let mut read = 0;
        for number in [1, 2] {
            lent.write(number);
            assert_eq!(lent.cell.lend(), Some(number));
            told.store(number, Ordering::Release);
            match lent.cell.end(number) {
                LoanEnd::Read => read = number,
                end => assert_eq!(end, LoanEnd::Withdrawn),
            }
            lent.write(0);
            lent.cell.release(number);
        }
        assert_eq!(reads.join().unwrap(), read);
    });
}
