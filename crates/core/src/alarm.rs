//! A sleep that is asked for behind a waker: [`Alarm`], which its event source keeps, and
//! [`Asker`], which its future keeps.
//!
//! `sleep_until` (`readiness.rs`) makes them. The **asker** is the future that sleeps. It may give
//! up at any time and on any OS thread, long before the sleep is due: it lost a `select`, or its
//! time-out was not needed. Then the event source need not keep the timer. So the two sides share a
//! **bell**, a word that belongs to neither:
//!
//! ```text
//!              the asker gives up               the source is done with it
//!   RINGING ───────────────────────▶ GIVEN_UP ─────────────────────────────┐
//!      │                                                                   ▼
//!      └──────────────────────────▶ OVER ─────────────────────────────▶ in stock
//!         the source is done with it         the asker gives up
//! ```
//!
//! Each side makes its single transition with one swap. The second side to do so puts the bell back
//! into stock. So neither side reads a bell after it went back, and neither waits for the other.
//! While the bell is ringing, the word is the address of a counter, which the asker raises when it
//! gives up. The source compares the counter with the number of given-up alarms that it has found,
//! and searches its timers for more when the difference is large. Setting and giving up take
//! constant time, without a lock and, in the long run, without an allocation. `tests/loom_alarm.rs`
//! checks it.

use crate::Time;
use crate::primitives::{AtomicPtr, Mutex, Ordering};
use std::cell::RefCell;
use std::fmt;
use std::ptr::{self, without_provenance_mut};
use std::sync::PoisonError;
use std::sync::atomic::AtomicUsize;

/// The asker has given up.
const GIVEN_UP: *mut GivenUp = without_provenance_mut(1);
/// The event source has fired the alarm, or has forgotten it.
const OVER: *mut GivenUp = without_provenance_mut(2);

/// The number of alarms that were given up before they rang. It only rises; each event source uses
/// the differences.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct GivenUp(AtomicUsize);

impl GivenUp {
    /// The number so far.
    #[inline]
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counter for alarms that are asked for outside of any CPU.
pub(crate) static ELSEWHERE: GivenUp = GivenUp(AtomicUsize::new(0));

/// A sleep for which an asker waits behind a waker. An event source keeps it together with the
/// waker. The source drops it when it has woken the waker, or as soon as the alarm is not
/// [wanted](Alarm::is_wanted) any more.
///
/// A source that keeps an unwanted alarm until it is due only wastes memory, because the woken
/// future must bear that wake-up.
#[derive(Debug)]
pub struct Alarm {
    until: Time,
    bell: Bell,
}

const _: () = assert!(size_of::<Alarm>() == 16);

impl Alarm {
    /// An alarm, and the asker's side of it.
    #[inline]
    #[doc(hidden)]
    pub fn new(until: Time, counter: &'static GivenUp) -> (Alarm, Asker) {
        let bell = Bell::take(counter);
        (Alarm { until, bell: Bell(bell) }, Asker(bell))
    }

    /// The time at which it is to ring.
    #[inline]
    pub fn until(&self) -> Time {
        self.until
    }

    /// Whether its asker still waits.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.bell.is_wanted()
    }

    /// The time at which it is to ring, and the bell to be kept until then.
    #[inline]
    pub fn into_parts(self) -> (Time, Bell) {
        (self.until, self.bell)
    }
}

/// The word of a bell.
type BellWord = AtomicPtr<GivenUp>;

/// The event source's side of an [`Alarm`], without the time. The source keeps it until the alarm
/// rings or is not wanted any more.
pub struct Bell(&'static BellWord);

/// The asker's side of a bell: dropping it gives the alarm up.
#[doc(hidden)]
pub struct Asker(&'static BellWord);

impl Bell {
    /// Whether its asker still waits.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed) != GIVEN_UP
    }

    /// The counter that the asker raises when it gives up. `None` if it has done so.
    #[inline]
    pub fn counter(&self) -> Option<&'static GivenUp> {
        let word = self.0.load(Ordering::Relaxed);
        // SAFETY: the bell is not OVER while this side lives, because only the drop of this side
        // stores OVER. So the word is GIVEN_UP, or the address that `take` stored, which is that of
        // a static counter.
        (word != GIVEN_UP).then(|| unsafe { &*word })
    }

    #[inline]
    fn take(counter: &'static GivenUp) -> &'static BellWord {
        let bell = stock(|stock| stock.pop()).flatten().unwrap_or_else(deliver);
        // The bell is not shared yet, so Relaxed is enough; sending the `Alarm` publishes this
        // store.
        bell.store(ptr::from_ref(counter).cast_mut(), Ordering::Relaxed);
        bell
    }
}

impl Drop for Bell {
    #[inline]
    fn drop(&mut self) {
        // Acquire and Release: the second side to let go puts the bell back, and the next user
        // stores to it without reading it. So that user must come after both swaps.
        if self.0.swap(OVER, Ordering::AcqRel) == GIVEN_UP {
            put_back(self.0);
        }
    }
}

impl Drop for Asker {
    #[inline]
    fn drop(&mut self) {
        // The ordering is as in the drop of `Bell`.
        match self.0.swap(GIVEN_UP, Ordering::AcqRel) {
            OVER => put_back(self.0),
            // SAFETY: neither side had let go, so the word is the address that `Bell::take` stored,
            // which is that of a static counter.
            counter => drop(unsafe { &*counter }.0.fetch_add(1, Ordering::Relaxed)),
        }
    }
}

impl Asker {
    /// The identity of the bell, for models.
    #[cfg(loom)]
    pub fn bell(&self) -> usize {
        (&raw const *self.0).addr()
    }

    /// Whether the event source has fired the alarm, or forgotten it.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed) == OVER
    }
}

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_wanted() { "ringing" } else { "given up" })
    }
}

impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_over() { "over" } else { "ringing" })
    }
}

/// The number of bells that move between the stock of an OS thread and the central stock at a time.
const BATCH: usize = if cfg!(loom) {
    1
} else if cfg!(miri) {
    4
} else {
    256
};

/// Bells that came back, for OS threads that set more timers than they end.
#[cfg(not(loom))]
static CENTRAL: Mutex<Vec<Vec<&'static BellWord>>> = Mutex::new(Vec::new());
#[cfg(loom)]
crate::primitives::lazy_static! {
    static ref CENTRAL: Mutex<Vec<Vec<&'static BellWord>>> = Mutex::new(Vec::new());
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
struct Stock(Vec<&'static BellWord>);

impl Stock {
    #[inline]
    fn pop(&mut self) -> Option<&'static BellWord> {
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

/// A bell for an OS thread with an empty stock: from the central stock, or new.
#[cold]
fn deliver() -> &'static BellWord {
    let batch = CENTRAL.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let mut batch = batch.unwrap_or_else(|| {
        let new: Vec<BellWord> = (0..BATCH).map(|_| AtomicPtr::new(OVER)).collect();
        Box::leak(new.into_boxed_slice()).iter().rev().collect()
    });
    let bell = batch.pop().expect("no empty batch is kept");
    stock(|stock| stock.0.append(&mut batch));
    bell
}

#[inline]
fn put_back(bell: &'static BellWord) {
    let full = stock(|stock| {
        stock.0.push(bell);
        (stock.0.len() >= STOCK_MAX).then(|| stock.0.split_off(STOCK_MAX - BATCH))
    });
    match full {
        Some(None) => {}
        Some(Some(batch)) => hand_in(batch),
        None => hand_in(vec![bell]),
    }
}

/// The largest number of bells that an OS thread keeps.
const STOCK_MAX: usize = if cfg!(loom) { 1 } else { 16 * BATCH };

#[cold]
fn hand_in(batch: Vec<&'static BellWord>) {
    CENTRAL.lock().unwrap_or_else(PoisonError::into_inner).push(batch);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    static COUNTER: GivenUp = GivenUp(AtomicUsize::new(0));

    #[test]
    fn a_bell_comes_back_when_both_sides_have_let_go() {
        let before = COUNTER.count();
        let (alarm, asker) = Alarm::new(Time::from_nanos(7), &COUNTER);
        let bell = asker.0;
        assert!(alarm.is_wanted() && alarm.bell.counter().is_some());
        drop(asker);
        assert!(!alarm.is_wanted() && alarm.bell.counter().is_none());
        assert_eq!(COUNTER.count(), before + 1);
        let (other, other_asker) = Alarm::new(Time::from_nanos(8), &COUNTER);
        assert!(!std::ptr::eq(other_asker.0, bell), "the source has it still");
        drop(alarm);
        let (third, third_asker) = Alarm::new(Time::from_nanos(9), &COUNTER);
        assert!(std::ptr::eq(third_asker.0, bell));
        drop((other, third));
        assert_eq!(format!("{third_asker:?}"), "over");
        drop((other_asker, third_asker));
        assert_eq!(COUNTER.count(), before + 1, "what is over is not given up");
    }

    #[test]
    fn bells_that_are_let_go_on_another_os_thread_are_used_again() {
        let mut all = std::collections::BTreeSet::new();
        for _ in 0..20 {
            let pairs: Vec<_> =
                (0..STOCK_MAX).map(|n| Alarm::new(Time::from_nanos(n as u64), &COUNTER)).collect();
            all.extend(pairs.iter().map(|(_, asker)| (&raw const *asker.0).addr()));
            std::thread::spawn(move || drop(pairs)).join().unwrap();
        }
        assert!(all.len() <= 4 * STOCK_MAX, "{} bells for {STOCK_MAX} timers at a time", all.len());
    }
}
