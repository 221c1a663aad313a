//! A sleep that is asked for behind a waker: [`Alarm`] with its [`CancelFlag`], which its event
//! source keeps, and [`SleepHandle`], which its future keeps.
//!
//! `sleep_until` (`readiness.rs`) makes them. The future may cancel the sleep at any time and on
//! any OS thread, long before the sleep is due: because it lost a `select`, or because its time-out
//! was not needed. Then the event source need not keep the timer. So the two sides share a
//! **flag**, a word that belongs to neither:
//!
//! ```text
//!             SleepHandle is dropped               CancelFlag is dropped
//!   pending ──────────────────────────▶ CANCELLED ───────────────────────┐
//!      │                                                                 ▼
//!      └───────────────────────────────▶ DONE ───────────────────────▶ in stock
//!             CancelFlag is dropped              SleepHandle is dropped
//! ```
//!
//! Each side makes its single transition with one swap. The second side to do so puts the flag back
//! into stock. So neither side reads a flag after it went back, and neither waits for the other.
//!
//! While the sleep is pending, the word is the address of a [`CancelCount`], which the future
//! raises when it cancels. The source compares that count with the number of cancelled alarms that
//! it has found, and searches its timers for more when the difference is large. Setting and
//! cancelling take constant time, without a lock and, in the long run, without an allocation.
//! `tests/loom/alarm.rs` checks it.

use crate::Time;
use crate::primitives::{AtomicPtr, Mutex, Ordering};
use std::cell::RefCell;
use std::fmt;
use std::ptr::{self, without_provenance_mut};
use std::sync::PoisonError;
use std::sync::atomic::AtomicUsize;

/// The sleep is cancelled: its future has dropped the [`SleepHandle`].
const CANCELLED: *mut CancelCount = without_provenance_mut(1);
/// The event source has fired the alarm, or has forgotten it.
const DONE: *mut CancelCount = without_provenance_mut(2);

/// The number of alarms that were cancelled before they fired. It only rises, and each event source
/// uses the differences.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct CancelCount(AtomicUsize);

impl CancelCount {
    /// The number so far.
    #[inline]
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counter for alarms that are asked for outside of any CPU.
pub(crate) static ELSEWHERE: CancelCount = CancelCount(AtomicUsize::new(0));

/// A sleep that a future has asked for behind a waker. An event source keeps it together with the
/// waker. The source drops it when it has woken the waker, or when the alarm is
/// [cancelled](Alarm::is_cancelled).
///
/// A source that keeps a cancelled alarm until it is due only wastes memory, because futures must
/// bear the wake-up.
#[derive(Debug)]
pub struct Alarm {
    until: Time,
    flag: CancelFlag,
}

const _: () = assert!(size_of::<Alarm>() == 16);

impl Alarm {
    /// An alarm, and the future's side of it.
    #[inline]
    #[doc(hidden)]
    pub fn new(until: Time, counter: &'static CancelCount) -> (Alarm, SleepHandle) {
        let flag = CancelFlag::take(counter);
        (Alarm { until, flag: CancelFlag(flag) }, SleepHandle(flag))
    }

    /// The time at which it is due.
    #[inline]
    pub fn until(&self) -> Time {
        self.until
    }

    /// Whether its future has cancelled it.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.flag.is_cancelled()
    }

    /// The time at which it is due, and the flag that the source keeps until then.
    #[inline]
    pub fn into_parts(self) -> (Time, CancelFlag) {
        (self.until, self.flag)
    }
}

/// The word of a flag.
type FlagWord = AtomicPtr<CancelCount>;

/// The event source's side of an [`Alarm`], without the time. The source keeps it until it fires
/// the alarm, or finds it cancelled.
pub struct CancelFlag(&'static FlagWord);

/// The future's side of an alarm. Dropping it cancels the alarm.
#[doc(hidden)]
pub struct SleepHandle(&'static FlagWord);

impl CancelFlag {
    /// Whether the future has cancelled the alarm.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed) == CANCELLED
    }

    /// The counter that the future raises when it cancels the alarm. `None` if it has done so.
    #[inline]
    pub fn counter(&self) -> Option<&'static CancelCount> {
        let word = self.0.load(Ordering::Relaxed);
        // SAFETY: the word is not DONE while this side lives, because only the drop of this side
        // stores DONE. So the word is CANCELLED, or the address that `take` stored, which is that
        // of a static counter.
        (word != CANCELLED).then(|| unsafe { &*word })
    }

    #[inline]
    fn take(counter: &'static CancelCount) -> &'static FlagWord {
        let flag = stock(|stock| stock.pop()).flatten().unwrap_or_else(deliver);
        // The flag is not shared yet, so Relaxed is enough; sending the `Alarm` publishes this
        // store.
        flag.store(ptr::from_ref(counter).cast_mut(), Ordering::Relaxed);
        flag
    }
}

impl Drop for CancelFlag {
    #[inline]
    fn drop(&mut self) {
        // Acquire and Release: the second side to let go puts the flag back, and the next user
        // stores to it without reading it. So that user must come after both swaps.
        if self.0.swap(DONE, Ordering::AcqRel) == CANCELLED {
            put_back(self.0);
        }
    }
}

impl Drop for SleepHandle {
    #[inline]
    fn drop(&mut self) {
        // The ordering is as in the drop of `CancelFlag`.
        match self.0.swap(CANCELLED, Ordering::AcqRel) {
            DONE => put_back(self.0),
            // SAFETY: neither side had let go, so the word is the address that `CancelFlag::take`
            // stored, which is that of a static counter.
            counter => drop(unsafe { &*counter }.0.fetch_add(1, Ordering::Relaxed)),
        }
    }
}

impl SleepHandle {
    /// The identity of the flag, for models.
    #[cfg(loom)]
    pub fn flag(&self) -> usize {
        (&raw const *self.0).addr()
    }

    /// Whether the event source has fired the alarm, or forgotten it.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.0.load(Ordering::Relaxed) == DONE
    }
}

impl fmt::Debug for CancelFlag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_cancelled() { "cancelled" } else { "pending" })
    }
}

impl fmt::Debug for SleepHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_done() { "done" } else { "pending" })
    }
}

/// The number of flags that move between the stock of an OS thread and the central stock at a time.
const BATCH: usize = if cfg!(loom) {
    1
} else if cfg!(miri) {
    4
} else {
    256
};

/// Flags that came back, for OS threads that set more timers than they end.
#[cfg(not(loom))]
static CENTRAL: Mutex<Vec<Vec<&'static FlagWord>>> = Mutex::new(Vec::new());
#[cfg(loom)]
crate::primitives::lazy_static! {
    static ref CENTRAL: Mutex<Vec<Vec<&'static FlagWord>>> = Mutex::new(Vec::new());
}

#[cfg(not(loom))]
thread_local! {
    static STOCK: RefCell<Stock> = const { RefCell::new(Stock(Vec::new())) };
}
#[cfg(loom)]
crate::primitives::thread_local! {
    static STOCK: RefCell<Stock> = RefCell::new(Stock(Vec::new()));
}

/// The stock of one OS thread.
struct Stock(Vec<&'static FlagWord>);

impl Stock {
    #[inline]
    fn pop(&mut self) -> Option<&'static FlagWord> {
        self.0.pop()
    }
}

// In a model the stock is always empty.
#[cfg(not(loom))]
impl Drop for Stock {
    fn drop(&mut self) {
        let left = std::mem::take(&mut self.0);
        if !left.is_empty() {
            CENTRAL.lock().unwrap_or_else(PoisonError::into_inner).push(left);
        }
    }
}

/// Works on the stock of this OS thread. `None` when the stock is gone, because the OS thread ends.
#[inline]
fn stock<T>(work: impl FnOnce(&mut Stock) -> T) -> Option<T> {
    STOCK.try_with(|stock| work(&mut stock.borrow_mut())).ok()
}

/// A flag for an OS thread with an empty stock: from the central stock, or new.
#[cold]
fn deliver() -> &'static FlagWord {
    let batch = CENTRAL.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let mut batch = batch.unwrap_or_else(|| {
        let new: Vec<FlagWord> = (0..BATCH).map(|_| AtomicPtr::new(DONE)).collect();
        Box::leak(new.into_boxed_slice()).iter().rev().collect()
    });
    let flag = batch.pop().expect("no empty batch is kept");
    stock(|stock| stock.0.append(&mut batch));
    flag
}

#[inline]
fn put_back(flag: &'static FlagWord) {
    let full = stock(|stock| {
        stock.0.push(flag);
        (stock.0.len() >= STOCK_MAX).then(|| stock.0.split_off(STOCK_MAX - BATCH))
    });
    match full {
        Some(None) => {}
        Some(Some(batch)) => hand_in(batch),
        None => hand_in(vec![flag]),
    }
}

/// The largest number of flags that an OS thread keeps.
const STOCK_MAX: usize = if cfg!(loom) { 1 } else { 16 * BATCH };

#[cold]
fn hand_in(batch: Vec<&'static FlagWord>) {
    CENTRAL.lock().unwrap_or_else(PoisonError::into_inner).push(batch);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    static COUNTER: CancelCount = CancelCount(AtomicUsize::new(0));

    #[test]
    fn a_flag_comes_back_when_both_sides_have_let_go() {
        let before = COUNTER.count();
        let (alarm, handle) = Alarm::new(Time::from_nanos(7), &COUNTER);
        let flag = handle.0;
        assert!(!alarm.is_cancelled() && alarm.flag.counter().is_some());
        drop(handle);
        assert!(alarm.is_cancelled() && alarm.flag.counter().is_none());
        assert_eq!(COUNTER.count(), before + 1);
        let (other, other_handle) = Alarm::new(Time::from_nanos(8), &COUNTER);
        assert!(!std::ptr::eq(other_handle.0, flag), "the source has it still");
        drop(alarm);
        let (third, third_handle) = Alarm::new(Time::from_nanos(9), &COUNTER);
        assert!(std::ptr::eq(third_handle.0, flag));
        drop((other, third));
        assert_eq!(format!("{third_handle:?}"), "done");
        drop((other_handle, third_handle));
        assert_eq!(COUNTER.count(), before + 1, "an alarm that is done is not cancelled");
    }

    #[test]
    fn flags_that_are_let_go_on_another_os_thread_are_used_again() {
        let mut all = std::collections::BTreeSet::new();
        for _ in 0..if cfg!(miri) { 6 } else { 20 } {
            let pairs: Vec<_> =
                (0..STOCK_MAX).map(|n| Alarm::new(Time::from_nanos(n as u64), &COUNTER)).collect();
            all.extend(pairs.iter().map(|(_, handle)| (&raw const *handle.0).addr()));
            std::thread::spawn(move || drop(pairs)).join().unwrap();
        }
        assert!(all.len() <= 4 * STOCK_MAX, "{} flags for {STOCK_MAX} timers at a time", all.len());
    }
}
