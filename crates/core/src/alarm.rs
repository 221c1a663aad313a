//! A sleep that is asked for behind a waker: what its asker and its event source know of each other.
//!
//! The asker may give up at any time and on any OS thread, long before the sleep is due: it lost a `select`, or its time-out was not
//! needed. The event source then need not keep the timer. So the two share a **bell**, a word that belongs to neither:
//!
//! ```text
//!              the asker gives up               the source is done with it
//!   RINGING ───────────────────────▶ GIVEN_UP ─────────────────────────────┐
//!      │                                                                   ▼
//!      └──────────────────────────▶ OVER ─────────────────────────────▶ in stock
//!         the source is done with it         the asker gives up
//! ```
//!
//! Each side makes its one transition with one swap, and the second of the two puts the bell back into stock. So nobody
//! reads a bell after its way back, and nobody waits for the other. While it rings the word is the address of a counter, which
//! the asker raises when it gives up: the source compares that with how many it knows of, and looks for them when they are many.
//! Setting and giving up take constant time, without a lock and, in the long run, without an allocation.
//! `tests/loom_alarm.rs` checks it.

use crate::Time;
use crate::primitives::{AtomicPtr, Mutex, Ordering};
use std::cell::RefCell;
use std::fmt;
use std::ptr::{self, without_provenance_mut};
use std::sync::PoisonError;
use std::sync::atomic::AtomicUsize;

/// The asker has gone.
const GIVEN_UP: *mut GivenUp = without_provenance_mut(1);
/// The event source has fired it, or forgotten it.
const OVER: *mut GivenUp = without_provenance_mut(2);

/// How many alarms were given up before they rang. It only rises; each event source looks at the difference.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct GivenUp(AtomicUsize);

impl GivenUp {
    /// How many there have been.
    #[inline]
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Of those that are asked for outside of any CPU.
pub(crate) static ELSEWHERE: GivenUp = GivenUp(AtomicUsize::new(0));

/// A sleep that somebody waits for behind a waker. An event source keeps it with the waker, and drops it when it has woken that, or
/// as soon as it is not [wanted](Alarm::is_wanted) any more.
///
/// A source that keeps it until it is due does no harm but to the memory: what is woken then bears it.
#[derive(Debug)]
pub struct Alarm {
    until: Time,
    bell: Bell,
}

const _: () = assert!(size_of::<Alarm>() == 16);

impl Alarm {
    /// An alarm, and the right to give it up.
    #[inline]
    #[doc(hidden)]
    pub fn new(until: Time, counter: &'static GivenUp) -> (Alarm, Asker) {
        let bell = Bell::take(counter);
        (Alarm { until, bell: Bell(bell) }, Asker(bell))
    }

    /// When it is to ring.
    #[inline]
    pub fn until(&self) -> Time {
        self.until
    }

    /// Whether the one who asked for it waits still.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.bell.is_wanted()
    }

    /// When it is to ring, and what is to be kept until then.
    #[inline]
    pub fn into_parts(self) -> (Time, Bell) {
        (self.until, self.bell)
    }
}

/// What a bell is.
type Word = AtomicPtr<GivenUp>;

/// The event source's side of an [`Alarm`], without the time: to be kept until it rings, or is not wanted any more.
pub struct Bell(&'static Word);

/// The asker's side of a bell: dropping it gives the alarm up.
#[doc(hidden)]
pub struct Asker(&'static Word);

impl Bell {
    /// Whether the one who asked for it waits still.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed) != GIVEN_UP
    }

    /// Where the one who asked for it counts that it gave up; `None` if it has done so.
    #[inline]
    pub fn counter(&self) -> Option<&'static GivenUp> {
        let word = self.0.load(Ordering::Relaxed);
        // SAFETY: the bell is not over while this side lives, so that its word is the address it was made with, of a static
        // counter, or GIVEN_UP.
        (word != GIVEN_UP).then(|| unsafe { &*word })
    }

    #[inline]
    fn take(counter: &'static GivenUp) -> &'static Word {
        let bell = stock(|stock| stock.pop()).flatten().unwrap_or_else(deliver);
        // Nobody else has it. Whom the alarm is sent to gets this store with it.
        bell.store(ptr::from_ref(counter).cast_mut(), Ordering::Relaxed);
        bell
    }
}

impl Drop for Bell {
    #[inline]
    fn drop(&mut self) {
        // Acquire and release: the bell goes back when both sides have let go of it, and its next user stores to it without a look.
        if self.0.swap(OVER, Ordering::AcqRel) == GIVEN_UP {
            put_back(self.0);
        }
    }
}

impl Drop for Asker {
    #[inline]
    fn drop(&mut self) {
        // As above.
        match self.0.swap(GIVEN_UP, Ordering::AcqRel) {
            OVER => put_back(self.0),
            // SAFETY: it was ringing, with the address of a static counter.
            counter => drop(unsafe { &*counter }.0.fetch_add(1, Ordering::Relaxed)),
        }
    }
}

impl Asker {
    /// Which bell it is.
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

/// How many bells change hands between an OS thread's stock and the central one at a time.
const BATCH: usize = if cfg!(loom) {
    1
} else if cfg!(miri) {
    4
} else {
    256
};

/// Bells that came back, for those OS threads that set more timers than they end.
#[cfg(not(loom))]
static CENTRAL: Mutex<Vec<Vec<&'static Word>>> = Mutex::new(Vec::new());
#[cfg(loom)]
crate::primitives::lazy_static! {
    static ref CENTRAL: Mutex<Vec<Vec<&'static Word>>> = Mutex::new(Vec::new());
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
struct Stock(Vec<&'static Word>);

impl Stock {
    #[inline]
    fn pop(&mut self) -> Option<&'static Word> {
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

/// Works on the stock of this OS thread; `None` when it is gone already.
#[inline]
fn stock<T>(work: impl FnOnce(&mut Stock) -> T) -> Option<T> {
    STOCK.try_with(|stock| work(&mut stock.borrow_mut())).ok()
}

/// A bell when the stock has none: from the central one, or new.
#[cold]
fn deliver() -> &'static Word {
    let batch = CENTRAL.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let mut batch = batch.unwrap_or_else(|| {
        let new: Vec<Word> = (0..BATCH).map(|_| AtomicPtr::new(OVER)).collect();
        Box::leak(new.into_boxed_slice()).iter().rev().collect()
    });
    let bell = batch.pop().expect("no empty batch is kept");
    stock(|stock| stock.0.append(&mut batch));
    bell
}

#[inline]
fn put_back(bell: &'static Word) {
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

/// The most bells that an OS thread keeps.
const STOCK_MAX: usize = if cfg!(loom) { 1 } else { 16 * BATCH };

#[cold]
fn hand_in(batch: Vec<&'static Word>) {
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
