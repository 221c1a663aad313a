//! The counts of system calls: how often each kind is called, and how long the calls take. The
//! [system-call layer](crate::sys) counts through [`Counting`]; programs read the counts by
//! [`counted`].
//!
//! Each OS thread counts in a table of its own, with plain stores, and other OS threads read the
//! table. Reading the processor's clock twice costs more than all other parts, up to 40 ns on a
//! virtual machine. So only some calls of a frequent kind are timed. Nothing is counted before
//! [`count`] is called: until then the [system-call layer](crate::sys) does not look here at all.

use crate::sys::{COUNTED, Call, INTERPOSED};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How often a system call was made, and how long the calls took in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tally {
    /// The number of calls.
    pub calls: u64,
    /// The time that these calls took together. On each OS thread the first 64 calls of a kind are
    /// timed. After them about one call in eight is timed, chosen at random. Each timed call stands
    /// for all calls since the timed call before it, so the time is then an estimate.
    pub time: Duration,
}

/// The calls of all OS threads of the process, or of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Calls {
    /// The kinds that have been called, by the name of the system call. Handing operations to a
    /// ring is a call; the operations that the ring then performs are not.
    pub kinds: Vec<(&'static str, Tally)>,
    /// Calls of `epoll_wait` and `io_uring_enter` that were made to wait. They are in no kind,
    /// because their time is the time without work, which the event loops' schedulers know.
    pub waits: u64,
}

/// The index of the calls that wait for events, behind the indexes of the kinds.
pub(crate) const WAIT: usize = Call::ALL.len();
const KINDS: usize = WAIT + 1;

/// The table of one OS thread. Only that OS thread writes it.
#[derive(Debug)]
struct CallTable {
    os_thread: String,
    calls: [AtomicU64; KINDS],
    /// The number of calls when a call was last timed.
    timed: [AtomicU64; KINDS],
    /// The ticks of the calls up to that one: each timed call stands for all calls since the timed
    /// call before it. So this number only grows.
    ticks: [AtomicU64; KINDS],
    /// The number of calls before the next timed call of a kind.
    next: [AtomicU64; KINDS],
    /// The state of the random numbers that choose `next`.
    chance: AtomicU64,
}

impl Default for CallTable {
    fn default() -> CallTable {
        let os_thread = std::thread::current().name().unwrap_or("unnamed").to_owned();
        let zeros = || [const { AtomicU64::new(0) }; KINDS];
        let chance = AtomicU64::new(1);
        CallTable { os_thread, calls: zeros(), timed: zeros(), ticks: zeros(), next: zeros(), chance }
    }
}

/// All counts of the process.
#[derive(Debug)]
struct Counted {
    /// The table of each OS thread, with its sums at the time when counting began.
    tables: Vec<(Arc<CallTable>, Sums)>,
    /// The sums of the OS threads that have ended.
    past: Sums,
}

/// For each kind, the number of calls and their ticks.
type Sums = [[u64; 2]; KINDS];
const NOTHING: Sums = [[0; 2]; KINDS];

/// The number of calls of each kind that are all timed.
const ALL_TIMED: u64 = 64;

static COUNTS: Mutex<Counted> = Mutex::new(Counted { tables: Vec::new(), past: NOTHING });

fn counts() -> MutexGuard<'static, Counted> {
    COUNTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The table of this OS thread. When the OS thread ends, its sums go to `past`.
struct Here(Arc<CallTable>);

impl Here {
    fn new() -> Here {
        let table = Arc::new(CallTable::default());
        counts().tables.push((table.clone(), NOTHING));
        Here(table)
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        let mut counts = counts();
        if let Some(i) = counts.tables.iter().position(|(table, _)| Arc::ptr_eq(table, &self.0)) {
            let (table, before) = counts.tables.swap_remove(i);
            table.add_to(&before, &mut counts.past);
        }
    }
}

thread_local! {
    static HERE: Here = Here::new();
}

impl CallTable {
    /// A call begins. True if the caller must time it.
    #[inline]
    fn begin(&self, kind: usize) -> bool {
        let calls = self.calls[kind].load(Relaxed);
        self.calls[kind].store(calls + 1, Relaxed);
        if calls < self.next[kind].load(Relaxed) || kind == WAIT {
            return false;
        }
        let mut next = calls + 1;
        if next >= ALL_TIMED {
            // The distance is random, because calls may come in a rhythm.
            let chance = self.chance.load(Relaxed).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            self.chance.store(chance, Relaxed);
            next += chance >> 60;
        }
        self.next[kind].store(next, Relaxed);
        true
    }

    fn end(&self, kind: usize, ticks: u64) {
        let calls = self.calls[kind].load(Relaxed);
        let stands_for = calls - self.timed[kind].load(Relaxed);
        self.timed[kind].store(calls, Relaxed);
        self.ticks[kind].store(self.ticks[kind].load(Relaxed) + ticks * stands_for, Relaxed);
    }

    /// Adds the growth since `before` to `sums`.
    fn add_to(&self, before: &Sums, sums: &mut Sums) {
        for (kind, sum) in sums.iter_mut().enumerate() {
            let now = [&self.calls, &self.ticks].map(|counters| counters[kind].load(Relaxed));
            for (sum, (now, before)) in sum.iter_mut().zip(now.into_iter().zip(before[kind])) {
                *sum += now - before;
            }
        }
    }
}

/// Begins to count calls, from zero; or stops counting, and keeps the counts.
pub fn count(yes: bool) {
    EPOCH.get_or_init(|| (ticks(), Instant::now()));
    if !yes {
        INTERPOSED.fetch_and(!COUNTED, Relaxed);
        return;
    }
    let mut counts = counts();
    counts.past = NOTHING;
    for (table, before) in &mut counts.tables {
        *before = NOTHING;
        table.add_to(&NOTHING, before);
    }
    INTERPOSED.fetch_or(COUNTED, Relaxed);
}

/// The counts: of the whole process, and of each OS thread that lives, with its name.
///
/// # Examples
/// ```
/// use selvedge::round_robin_over;
/// use selvedge::{EventLoop, calls, net::UnixStream};
///
/// calls::count(true);
/// round_robin_over(&mut EventLoop::new()?, async {
///     let (one, other) = UnixStream::pair()?;
///     one.write_all(b"x").await?;
///     other.read(&mut [0]).await
/// })??;
/// let (total, _) = calls::counted();
/// let send = total.kinds.iter().find(|(name, _)| *name == "send").unwrap();
/// assert!(send.1.calls >= 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn counted() -> (Calls, Vec<(String, Calls)>) {
    let counts = counts();
    let tick = tick();
    let mut total = counts.past;
    let mut each = Vec::new();
    for (table, before) in &counts.tables {
        table.add_to(before, &mut total);
        let mut sums = NOTHING;
        table.add_to(before, &mut sums);
        each.push((table.os_thread.clone(), Calls::of(&sums, tick)));
    }
    (Calls::of(&total, tick), each)
}

impl Calls {
    fn of(sums: &Sums, tick: f64) -> Calls {
        let tally = |&[calls, ticks]: &[u64; 2]| Tally {
            calls,
            time: Duration::from_nanos((ticks as f64 * tick) as u64),
        };
        let kinds = sums[..WAIT].iter().enumerate().filter(|(_, [calls, ..])| *calls != 0);
        let kinds = kinds.map(|(kind, sum)| (Call::ALL[kind].name(), tally(sum)));
        Calls { kinds: kinds.collect(), waits: sums[WAIT][0] }
    }

    /// The sum of all calls, without the calls that waited.
    pub fn total(&self) -> Tally {
        let add = |sum: Tally, (_, tally): &(_, Tally)| Tally {
            calls: sum.calls + tally.calls,
            time: sum.time + tally.time,
        };
        self.kinds.iter().fold(Tally::default(), add)
    }
}

/// A guard for a call that is being made. The call is over when the guard is dropped.
#[derive(Debug)]
#[must_use = "the call is over when this is dropped"]
pub struct Counting {
    /// `KINDS` if the call is not timed.
    kind: usize,
    begun: u64,
}

impl Counting {
    #[inline]
    pub(crate) fn begin(kind: usize, counted: bool) -> Counting {
        // The call is not counted while the OS thread's thread-locals are being dropped.
        match counted && HERE.try_with(|here| here.0.begin(kind)).unwrap_or(false) {
            true => Counting { kind, begun: ticks() },
            false => Counting { kind: KINDS, begun: 0 },
        }
    }
}

impl Drop for Counting {
    #[inline]
    fn drop(&mut self) {
        if self.kind < KINDS {
            // The difference may be negative, because the clocks of two processors may differ by
            // some ticks.
            let ticks = ticks().wrapping_sub(self.begun) as i64;
            let ticks = ticks.max(0) as u64;
            let _ = HERE.try_with(|here| here.0.end(self.kind, ticks));
        }
    }
}

/// The time when counting first began, on both clocks.
static EPOCH: OnceLock<(u64, Instant)> = OnceLock::new();

/// The nanoseconds of a tick. The value is set after [`CALIBRATION`] and then never changes,
/// because otherwise a sum of ticks could seem to shrink.
static TICK: OnceLock<f64> = OnceLock::new();
/// The time after which `TICK` is set.
const CALIBRATION: Duration = Duration::from_secs(1);

/// The average nanoseconds of a tick.
fn tick() -> f64 {
    if let Some(&tick) = TICK.get() {
        return tick;
    }
    let Some((ticks_then, then)) = EPOCH.get() else { return 0.0 };
    let (passed, ticks) = (then.elapsed(), ticks().wrapping_sub(*ticks_then));
    let tick = passed.as_nanos() as f64 / ticks.max(1) as f64;
    if passed < CALIBRATION { tick } else { *TICK.get_or_init(|| tick) }
}

/// A clock that costs a few nanoseconds to read: the processor's time-stamp counter, which runs at
/// a constant rate on all processors of the last years.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn ticks() -> u64 {
    // SAFETY: every processor of this architecture has the instruction, and the kernel permits it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn ticks() -> u64 {
    selvedge_core::Time::now().as_nanos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys;

    const RING: usize = Call::RingEnter as usize;

    #[test]
    fn calls_are_counted_while_that_is_wanted_and_timed() {
        let made = |calls: &Calls, name| {
            calls.kinds.iter().find(|(n, _)| *n == name).map_or(Tally::default(), |(_, tally)| *tally)
        };
        let mine = || {
            let (total, each) = counted();
            let name = std::thread::current().name().unwrap().to_owned();
            let here = each.into_iter().find(|(n, _)| *n == name).map(|(_, calls)| calls);
            (total, here.unwrap_or_default())
        };
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        sys::write(&writer, b"x").unwrap();
        assert_eq!(made(&mine().1, "write").calls, 0, "it has not begun");
        count(true);
        for _ in 0..3 {
            sys::write(&writer, b"x").unwrap();
        }
        sys::read(&reader, &mut [0; 10]).unwrap();
        // This call takes long.
        let late = reader.try_clone().unwrap();
        let waiter = std::thread::Builder::new().name("late".into()).spawn(move || {
            sys::read(&late, &mut [0; 10]).unwrap();
        });
        std::thread::sleep(Duration::from_millis(50));
        sys::write(&writer, b"x").unwrap();
        waiter.unwrap().join().unwrap();
        count(false);
        sys::write(&writer, b"x").unwrap();
        let (total, here) = mine();
        assert_eq!((made(&here, "write").calls, made(&here, "read").calls), (4, 1), "{here:?}");
        assert_eq!(here.total().calls, 5);
        // That OS thread has ended, but its counts are kept.
        let read = made(&total, "read");
        let expected = Duration::from_millis(30)..Duration::from_secs(20);
        assert!(read.calls >= 2 && expected.contains(&read.time), "{total:?}");
    }

    #[test]
    fn of_many_calls_some_are_timed_and_stand_for_all() {
        let table = CallTable::default();
        let (mut sums, mut timed, mut before) = (NOTHING, 0, Duration::ZERO);
        for call in 0..80_000 {
            // Every second call takes long, and the first calls take very long.
            if table.begin(RING) {
                timed += 1;
                let ticks = match call {
                    0..30 => 20_000,
                    _ if call % 2 == 0 => 1000,
                    _ => 3000,
                };
                table.end(RING, ticks);
            }
            sums = NOTHING;
            table.add_to(&NOTHING, &mut sums);
            let time = Calls::of(&sums, 1.0).kinds[0].1.time;
            assert!(time >= before, "what is counted never shrinks");
            before = time;
        }
        let calls = sums[RING][0];
        assert!(calls == 80_000 && (8_000..12_000).contains(&timed), "{calls} {timed}");
        let Calls { kinds, .. } = Calls::of(&sums, 1.0);
        let [(name, tally)] = kinds[..] else { panic!("{kinds:?}") };
        let expected = Duration::from_nanos(80_000 * 1900)..Duration::from_nanos(80_000 * 2100);
        assert!(name == "io_uring_enter" && expected.contains(&tally.time), "{tally:?}");
        // A wait is only counted.
        assert!(!table.begin(WAIT) && table.calls[WAIT].load(Relaxed) == 1);
    }
}
