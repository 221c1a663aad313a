//! The programs of the figure `timers`: a million timers that are set, cancelled or fired, and
//! threads that sleep. `child.rs` calls them for `figures/src/timers.rs`.
//!
//! `Timers` is the trait through which both runtimes run one text. The delays are spread over a
//! second in no order. The timers are allocated before the clock is read, because the allocator's
//! work is no part of the figure.

use super::clock::Times;
use super::fault;
use super::runtime::{Ours, Runtime, Tokio, Waits};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// Runs the program `name` with its numbers. `false` if it is no program about timers.
///
/// # Errors
/// The program could not run.
pub(super) fn run(name: &str, numbers: &[u64]) -> Result<bool, String> {
    match (name, numbers) {
        ("timers-cancel", &[n]) => cancel::<Ours>(n),
        ("timers-fire", &[n, millis]) => fire::<Ours>(n, millis),
        ("timers-threads", &[n, millis]) => threads::<Ours>(n, millis),
        ("timers-cancel-threads", &[n]) => cancel_threads::<Ours>(n),
        ("tokio-timers-cancel-threads", &[n]) => cancel_threads::<Tokio>(n),
        ("tokio-timers-cancel", &[n]) => cancel::<Tokio>(n),
        ("tokio-timers-fire", &[n, millis]) => fire::<Tokio>(n, millis),
        ("tokio-timers-threads", &[n, millis]) => threads::<Tokio>(n, millis),
        _ => return Ok(false),
    }
    Ok(true)
}

/// A runtime's timers.
pub(super) trait Timers: Runtime {
    /// A timer, set when it is polled for the first time.
    type Sleep: Future<Output = ()> + Send;

    /// A timer that ends `after` from now.
    fn sleep(after: Duration) -> Self::Sleep;
}

impl Timers for Ours {
    type Sleep = selvedge_core::SleepUntil;

    fn sleep(after: Duration) -> Self::Sleep {
        selvedge_io::time::sleep(after)
    }
}

impl Timers for Tokio {
    type Sleep = tokio::time::Sleep;

    fn sleep(after: Duration) -> Self::Sleep {
        tokio::time::sleep(after)
    }
}

/// The delay of the timer with the given number: spread over a second, in no order.
fn delay(i: u64, base: Duration) -> Duration {
    base + Duration::from_micros(i * 2_654_435_761 % 1_000_000)
}

/// Counts the timers that have fired.
#[derive(Debug, Default)]
struct Counter(AtomicU64);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Made, but not yet set: the allocator's work is no part of the figure.
fn timers<R: Timers>(n: u64, base: Duration) -> Vec<Pin<Box<R::Sleep>>> {
    (0..n).map(|i| Box::pin(R::sleep(delay_or_fault(i, base)))).collect()
}

/// The delay that a wrong timer has instead of its own.
const FAULTY: Duration = Duration::from_millis(20);

/// The delay of the timer with the given number. The first is much too early in a run that is to be
/// wrong.
fn delay_or_fault(i: u64, base: Duration) -> Duration {
    if i < fault() { FAULTY } else { delay(i, base) }
}

/// Lets a wrong timer fire; does nothing in a run that is not to be wrong.
async fn let_the_fault_happen<R: Timers>() {
    if fault() == 1 {
        R::sleep(2 * FAULTY).await;
    }
}

/// Sets the timers; each wakes the counter when it fires.
fn set<S: Future<Output = ()>>(timers: &mut [Pin<Box<S>>], counter: &Arc<Counter>) {
    let waker = Waker::from(Arc::clone(counter));
    let mut context = Context::from_waker(&waker);
    for timer in timers {
        let polled = timer.as_mut().poll(&mut context);
        assert_eq!(polled, Poll::Pending, "a timer that is due already is not set");
    }
}

/// Sets `n` timers that are far away and cancels them all.
fn cancel<R: Timers>(n: u64) {
    R::run(0, Waits::World, async move {
        let counter = Arc::default();
        let mut timers = timers::<R>(n, Duration::from_secs(3600));
        R::yield_now().await;
        let first = Times::now();
        set(&mut timers, &counter);
        // Requests that are handed over at the end of a step have been handed over.
        R::yield_now().await;
        let set = Times::now();
        let_the_fault_happen::<R>().await;
        drop(timers);
        R::yield_now().await;
        let last = Times::now();
        first.print_as("set_ns", set, n);
        set.print_as("cancel_ns", last, n);
        println!("fired {}", counter.0.load(Ordering::Relaxed));
    });
}

/// Sets `n` timers that end within the second that begins in `millis`, and waits for all.
fn fire<R: Timers>(n: u64, millis: u64) {
    R::run(0, Waits::World, async move {
        let counter: Arc<Counter> = Arc::default();
        let base = Duration::from_millis(millis);
        let start = Instant::now();
        let mut timers = timers::<R>(n, base);
        set(&mut timers, &counter);
        R::yield_now().await;
        let set = Times::now();
        let_the_fault_happen::<R>().await;
        let early = counter.0.load(Ordering::Relaxed);
        assert!(start.elapsed() < base, "setting them took longer than the first was away");
        R::sleep((base + Duration::from_secs(1)).saturating_sub(start.elapsed())).await;
        while counter.0.load(Ordering::Relaxed) < n {
            R::sleep(Duration::from_millis(1)).await;
        }
        set.print_as("fire_ns", Times::now(), n);
        println!("fired {}", counter.0.load(Ordering::Relaxed));
        println!("early {early}");
    });
}

static ASLEEP: AtomicU64 = AtomicU64::new(0);
static AWAKE: AtomicU64 = AtomicU64::new(0);
static EARLY: AtomicU64 = AtomicU64::new(0);

/// `n` threads that each sleep once, until within the second that begins in `millis`.
fn threads<R: Timers>(n: u64, millis: u64) {
    R::run(0, Waits::World, async move {
        let base = Duration::from_millis(millis);
        let first = Times::now();
        let start = Instant::now();
        for i in 0..n {
            R::detach(async move {
                ASLEEP.fetch_add(1, Ordering::Relaxed);
                let begun = Instant::now();
                let time = delay(i, base);
                R::sleep(if i < fault() { FAULTY } else { time }).await;
                if begun.elapsed() < time {
                    EARLY.fetch_add(1, Ordering::Relaxed);
                }
                AWAKE.fetch_add(1, Ordering::Relaxed);
            })
            .await;
        }
        while ASLEEP.load(Ordering::Relaxed) < n {
            R::yield_now().await;
        }
        let asleep = Times::now();
        R::sleep((base + Duration::from_secs(1)).saturating_sub(start.elapsed())).await;
        while AWAKE.load(Ordering::Relaxed) < n {
            R::sleep(Duration::from_millis(1)).await;
        }
        first.print_as("set_ns", asleep, n);
        asleep.print_as("fire_ns", Times::now(), n);
        println!("fired {}", AWAKE.load(Ordering::Relaxed));
        println!("early {}", EARLY.load(Ordering::Relaxed));
    });
}

static CANCELLED: AtomicU64 = AtomicU64::new(0);

/// Counts the threads that are no more.
struct Gone;

impl Drop for Gone {
    fn drop(&mut self) {
        CANCELLED.fetch_add(1, Ordering::Relaxed);
    }
}

/// `n` threads that sleep for an hour and are cancelled.
fn cancel_threads<R: Timers>(n: u64) {
    R::run(0, Waits::World, async move {
        let mut handles = Vec::with_capacity(n as usize);
        for i in 0..n {
            handles.push(R::spawn(async move {
                let _gone = Gone;
                ASLEEP.fetch_add(1, Ordering::Relaxed);
                R::sleep(delay_or_fault(i, Duration::from_secs(3600))).await;
                AWAKE.fetch_add(1, Ordering::Relaxed);
            }));
        }
        while ASLEEP.load(Ordering::Relaxed) < n {
            R::yield_now().await;
        }
        let_the_fault_happen::<R>().await;
        let first = Times::now();
        for handle in handles {
            R::cancel(&handle);
        }
        while CANCELLED.load(Ordering::Relaxed) < n {
            R::yield_now().await;
        }
        first.print_as("cancel_ns", Times::now(), n);
        println!("cancelled {}", CANCELLED.load(Ordering::Relaxed));
        println!("fired {}", AWAKE.load(Ordering::Relaxed));
    });
}
