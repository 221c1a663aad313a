//! The programs of the figure `cost-of-abstractions`: join, select and time-out, on futures that
//! are ready and on futures that come later; and a one-shot channel. `child.rs` calls them.
//!
//! One text runs under both runtimes. `Combinators` is the trait through which each runtime brings
//! its own functions. A change of the text changes the work of both, so the rows stay comparable.

use super::clock::Times;
use super::fault;
use super::runtime::{Ours, Runtime, Tokio, Waits};
use futures::channel::oneshot;
use selvedge_scope::Selected;
use std::cell::RefCell;
use std::future::{Future, pending};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Runs the program `name` with its numbers. `false` if it is no program about join, select and
/// time-out.
///
/// # Errors
/// The program could not run.
pub(super) fn run(name: &str, numbers: &[u64]) -> Result<bool, String> {
    match (name, numbers) {
        ("join-ready", &[n]) => join_ready::<Ours>(n),
        ("join-later", &[n]) => join_later::<Ours>(n),
        ("select-ready", &[n]) => select_ready::<Ours>(n),
        ("select-later", &[n]) => select_later::<Ours>(n),
        ("timeout-ready", &[n]) => timeout_ready::<Ours>(n),
        ("timeout-later", &[n]) => timeout_later::<Ours>(n),
        ("oneshot", &[n]) => oneshot::<Ours>(n),
        ("tokio-join-ready", &[n]) => join_ready::<Tokio>(n),
        ("tokio-join-later", &[n]) => join_later::<Tokio>(n),
        ("tokio-select-ready", &[n]) => select_ready::<Tokio>(n),
        ("tokio-select-later", &[n]) => select_later::<Tokio>(n),
        ("tokio-timeout-ready", &[n]) => timeout_ready::<Tokio>(n),
        ("tokio-timeout-later", &[n]) => timeout_later::<Tokio>(n),
        ("tokio-oneshot", &[n]) => oneshot::<Tokio>(n),
        _ => return Ok(false),
    }
    Ok(true)
}

/// A runtime's combinators.
pub(super) trait Combinators: Runtime {
    /// Waits for both.
    fn join<A, B>(a: A, b: B) -> impl Future<Output = u64> + Send
    where
        A: Future<Output = u64> + Send,
        B: Future<Output = u64> + Send;

    /// Waits for the first, and drops the other.
    fn select<A, B>(a: A, b: B) -> impl Future<Output = u64> + Send
    where
        A: Future<Output = u64> + Send,
        B: Future<Output = u64> + Send;

    /// Waits for a minute at most.
    fn timeout<A>(future: A) -> impl Future<Output = u64> + Send
    where
        A: Future<Output = u64> + Send;
}

/// A limit that no operation here reaches.
const MINUTE: Duration = Duration::from_secs(60);

impl Combinators for Ours {
    async fn join<A, B>(a: A, b: B) -> u64
    where
        A: Future<Output = u64> + Send,
        B: Future<Output = u64> + Send,
    {
        let (a, b) = selvedge_scope::join((a, b)).await;
        a + b
    }

    async fn select<A, B>(a: A, b: B) -> u64
    where
        A: Future<Output = u64> + Send,
        B: Future<Output = u64> + Send,
    {
        match selvedge_scope::select((a, b)).await {
            Selected::First(output) | Selected::Second(output) => output,
        }
    }

    async fn timeout<A>(future: A) -> u64
    where
        A: Future<Output = u64> + Send,
    {
        selvedge_io::time::timeout(MINUTE, future).await.expect("a minute is enough")
    }
}

impl Combinators for Tokio {
    async fn join<A, B>(a: A, b: B) -> u64
    where
        A: Future<Output = u64> + Send,
        B: Future<Output = u64> + Send,
    {
        let (a, b) = tokio::join!(a, b);
        a + b
    }

    async fn select<A, B>(a: A, b: B) -> u64
    where
        A: Future<Output = u64> + Send,
        B: Future<Output = u64> + Send,
    {
        // In the order of the branches, as ours.
        tokio::select! {
            biased;
            a = a => a,
            b = b => b,
        }
    }

    async fn timeout<A>(future: A) -> u64
    where
        A: Future<Output = u64> + Send,
    {
        tokio::time::timeout(MINUTE, future).await.expect("a minute is enough")
    }
}

/// A future that is ready.
async fn ready() -> u64 {
    black_box(1)
}

/// A future that is pending `times` times.
async fn later<R: Combinators>(times: u64) -> u64 {
    for _ in 0..times {
        R::pause().await;
    }
    black_box(1)
}

/// Makes an operation `total` times; each returns how much it counts for.
fn repeat<R, F>(waits: Waits, total: u64, operation: fn() -> F)
where
    R: Combinators,
    F: Future<Output = u64> + Send + 'static,
{
    R::run(0, waits, async move {
        let mut sum = fault();
        let first = Times::now();
        for _ in 0..total {
            sum += operation().await;
        }
        first.print_until(Times::now(), total);
        println!("sum {sum}");
    });
}

fn join_ready<R: Combinators>(total: u64) {
    repeat::<R, _>(Waits::Nothing, total, || R::join(ready(), ready()));
}

fn join_later<R: Combinators>(total: u64) {
    repeat::<R, _>(Waits::Nothing, total, || R::join(later::<R>(1), later::<R>(1)));
}

fn select_ready<R: Combinators>(total: u64) {
    repeat::<R, _>(Waits::Nothing, total, || R::select(ready(), pending()));
}

fn select_later<R: Combinators>(total: u64) {
    repeat::<R, _>(Waits::Nothing, total, || R::select(later::<R>(1), later::<R>(2)));
}

fn timeout_ready<R: Combinators>(total: u64) {
    repeat::<R, _>(Waits::World, total, || R::timeout(ready()));
}

fn timeout_later<R: Combinators>(total: u64) {
    repeat::<R, _>(Waits::World, total, || R::timeout(later::<R>(1)));
}

thread_local! {
    static SENDER: RefCell<Option<oneshot::Sender<u64>>> = const { RefCell::new(None) };
}
static SENT: AtomicU64 = AtomicU64::new(0);

/// One thread waits for a one-shot channel of the futures crate, another answers it, `total` times.
fn oneshot<R: Combinators>(total: u64) {
    R::run(0, Waits::Nothing, async move {
        R::detach(async move {
            while SENT.load(Ordering::Relaxed) < total {
                let sender = SENDER.with(|slot| slot.borrow_mut().take());
                if let Some(sender) = sender {
                    SENT.fetch_add(1, Ordering::Relaxed);
                    sender.send(1).expect("the receiver waits for it");
                }
                R::pause().await;
            }
        })
        .await;
        let mut sum = fault();
        let first = Times::now();
        for _ in 0..total {
            let (sender, receiver) = oneshot::channel();
            SENDER.with(|slot| *slot.borrow_mut() = Some(sender));
            sum += receiver.await.expect("it is answered");
        }
        first.print_until(Times::now(), total);
        println!("sum {sum}");
    });
}
