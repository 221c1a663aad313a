//! The programs about several workers: threads that compute, yields, spawns, rings, a tree of
//! threads, and counters under locks. `child.rs` calls them for the figures in
//! `figures/src/cores.rs`.
//!
//! One text runs under both runtimes, through the trait `Runtime`. A ring is generic over its
//! `Cell` too, so our MVar, the hand-made one and tokio's channel do the same hops.

use super::clock::Times;
use super::fault;
use super::handmade::HandMadeShared;
use super::runtime::{Ours, Runtime, Tokio, Waits};
use selvedge_sync::MVar;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use std::time::Instant;
use tokio::sync::mpsc;

/// Runs the program `name` with its numbers. `false` if it is no program about several workers.
///
/// # Errors
/// The program could not run.
pub(super) fn run(name: &str, numbers: &[u64]) -> Result<bool, String> {
    match (name, numbers) {
        ("compute", &[w, threads, bursts, steps]) => compute::<Ours>(w, threads, bursts, steps),
        ("cores-switch", &[w, n, per]) => switch::<Ours, _>(w, n, per, Ours::yield_now),
        ("cores-spawn", &[w, total]) => spawn::<Ours>(w, total),
        ("cores-ring", &[w, k, tokens, hops]) => ring_mvar(w, k, tokens, hops),
        ("cores-ring-handmade", &[w, k, tokens, hops]) => ring_handmade::<Ours>(w, k, tokens, hops),
        ("skynet", &[w, leaves]) => skynet::<Ours>(w, leaves),
        ("counter-mutex", &[w, threads, total]) => counter_mutex(w, threads, total),
        ("counter-atomic", &[w, threads, total]) => counter_atomic(w, threads, total),
        ("counter-os-mutex", &[threads, total]) => counter_os_mutex(threads, total),
        ("counter-std-mutex", &[threads, total]) => counter_std_mutex(threads, total),
        ("tokio-compute", &[w, threads, bursts, steps]) => {
            compute::<Tokio>(w, threads, bursts, steps);
        }
        ("tokio-cores-switch-self-wake", &[w, n, per]) => switch::<Tokio, _>(w, n, per, Tokio::pause),
        ("tokio-cores-switch-yield-now", &[w, n, per]) => switch::<Tokio, _>(w, n, per, Tokio::yield_now),
        ("tokio-cores-spawn", &[w, total]) => spawn::<Tokio>(w, total),
        ("tokio-cores-ring-handmade", &[w, k, tokens, hops]) => {
            ring_handmade::<Tokio>(w, k, tokens, hops);
        }
        ("tokio-cores-ring-mpsc", &[w, k, tokens, hops]) => ring_mpsc(w, k, tokens, hops),
        ("tokio-skynet", &[w, leaves]) => skynet::<Tokio>(w, leaves),
        ("tokio-counter-mutex", &[w, threads, total]) => tokio_counter_mutex(w, threads, total),
        _ => return Ok(false),
    }
    Ok(true)
}

/// A xorshift generator: every step needs the one before.
pub(crate) fn burst(mut x: u64, steps: u64) -> u64 {
    for _ in 0..steps {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    x
}

/// `threads` threads, each of which computes and yields `bursts` times.
fn compute<R: Runtime>(workers: u64, threads: u64, bursts: u64, steps: u64) {
    let (seconds, sum) = R::run(workers as usize, Waits::Nothing, async move {
        let first = Instant::now();
        let mut handles = Vec::new();
        for seed in 1..=threads {
            handles.push(R::spawn(async move {
                let mut x = seed ^ fault();
                for _ in 0..bursts {
                    x = burst(x, steps);
                    R::yield_now().await;
                }
                x & 0xffff_ffff
            }));
        }
        let mut sum = 0;
        for handle in handles {
            sum += handle.await;
        }
        (first.elapsed().as_secs_f64(), sum)
    });
    println!("sum {sum}");
    println!("seconds {seconds:.6}");
}

static STARTED: AtomicU64 = AtomicU64::new(0);
static YIELDS: AtomicU64 = AtomicU64::new(0);
static FINISHED: AtomicU64 = AtomicU64::new(0);
static BEGIN: AtomicBool = AtomicBool::new(false);
static END: OnceLock<Times> = OnceLock::new();

/// `per` yields through `turn` of each of `n` threads, after all have started. Each thread counts
/// its own.
fn switch<R: Runtime, F>(workers: u64, n: u64, per: u64, turn: fn() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let made_by_each = per - fault();
    let first = R::run(workers as usize, Waits::Nothing, async move {
        for _ in 0..n {
            // Not forked: each fork would let all earlier threads yield before the next.
            drop(R::spawn(async move {
                STARTED.fetch_add(1, Ordering::Relaxed);
                while !BEGIN.load(Ordering::Relaxed) {
                    R::yield_now().await;
                }
                let mut made = 0;
                while made < made_by_each {
                    made += 1;
                    turn().await;
                }
                YIELDS.fetch_add(made, Ordering::Relaxed);
                if FINISHED.fetch_add(1, Ordering::SeqCst) + 1 == n {
                    END.get_or_init(Times::now);
                }
            }));
        }
        while STARTED.load(Ordering::Relaxed) < n {
            R::yield_now().await;
        }
        let first = Times::now();
        BEGIN.store(true, Ordering::Relaxed);
        while END.get().is_none() {
            R::yield_now().await;
        }
        first
    });
    first.print_until(*END.get().expect("the last thread has ended"), n * per);
    println!("yields {}", YIELDS.load(Ordering::Relaxed));
    println!("finished {}", FINISHED.load(Ordering::SeqCst));
}

/// Spawns, runs and joins `total` threads, a thousand at a time.
fn spawn<R: Runtime>(workers: u64, total: u64) {
    R::run(workers as usize, Waits::Nothing, async move {
        let mut handles = Vec::with_capacity(1000);
        let mut finished = fault();
        let first = Times::now();
        for _ in 0..total / 1000 {
            for _ in 0..1000_u64 {
                handles.push(R::spawn(async { 1_u64 }));
            }
            for handle in handles.drain(..) {
                finished += handle.await;
            }
        }
        first.print_until(Times::now(), total);
        println!("finished {finished}");
    });
}

/// A cell that is empty or full.
pub(super) trait Cell: Clone + Send + Sync + 'static {
    /// An empty cell.
    fn empty() -> Self;
    /// Waits until it is full, and empties it.
    fn take(&self) -> impl Future<Output = u64> + Send;
    /// Waits until it is empty, and fills it.
    fn put(&self, value: u64) -> impl Future<Output = ()> + Send;
}

impl Cell for Arc<MVar<u64>> {
    fn empty() -> Self {
        Arc::new(MVar::empty())
    }

    fn take(&self) -> impl Future<Output = u64> + Send {
        MVar::take(self)
    }

    fn put(&self, value: u64) -> impl Future<Output = ()> + Send {
        MVar::put(self, value)
    }
}

impl Cell for HandMadeShared<u64> {
    fn empty() -> Self {
        HandMadeShared::new()
    }

    fn take(&self) -> impl Future<Output = u64> + Send {
        HandMadeShared::take(self)
    }

    fn put(&self, value: u64) -> impl Future<Output = ()> + Send {
        HandMadeShared::put(self, value)
    }
}

/// A ring of `k` threads that hand `tokens` numbers on, each adding one.
fn ring<R: Runtime, C: Cell>(workers: u64, k: u64, tokens: u64, hops: u64) {
    let rounds = hops / k;
    R::run(workers as usize, Waits::Nothing, async move {
        let cells: Vec<C> = (0..k).map(|_| C::empty()).collect();
        let mut stations = Vec::new();
        for (from, to) in cells.iter().zip(cells.iter().cycle().skip(1)) {
            let (from, to) = (from.clone(), to.clone());
            stations.push(R::spawn(async move {
                for _ in 0..rounds {
                    let token = from.take().await;
                    to.put(token + 1).await;
                }
            }));
        }
        let starts: Vec<C> = (0..tokens).map(|i| cells[(i * k / tokens) as usize].clone()).collect();
        let first = Times::now();
        for cell in &starts {
            cell.put(fault()).await;
        }
        for station in stations {
            station.await;
        }
        first.print_until(Times::now(), rounds * k);
        let mut sum = 0;
        for cell in &starts {
            sum += cell.take().await;
        }
        println!("token {sum}");
    });
}

/// The ring through our MVar, under our runtime.
fn ring_mvar(workers: u64, k: u64, tokens: u64, hops: u64) {
    ring::<Ours, Arc<MVar<u64>>>(workers, k, tokens, hops);
}

/// The ring through the hand-made MVar, under either runtime.
fn ring_handmade<R: Runtime>(workers: u64, k: u64, tokens: u64, hops: u64) {
    ring::<R, HandMadeShared<u64>>(workers, k, tokens, hops);
}

/// The ring through tokio's channels of one place.
fn ring_mpsc(workers: u64, k: u64, tokens: u64, hops: u64) {
    let rounds = hops / k;
    Tokio::run(workers as usize, Waits::Nothing, async move {
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..k).map(|_| mpsc::channel::<u64>(1)).unzip();
        let mut stations = Vec::new();
        let nexts = senders.iter().cycle().skip(1).cloned();
        for (mut from, to) in receivers.into_iter().zip(nexts) {
            stations.push(Tokio::spawn(async move {
                for _ in 0..rounds {
                    let token = from.recv().await.expect("the ring is open");
                    to.send(token + 1).await.expect("the ring is open");
                }
                from
            }));
        }
        let first = Times::now();
        for i in 0..tokens {
            senders[(i * k / tokens) as usize].send(0).await.expect("the ring is open");
        }
        let mut ends = Vec::new();
        for station in stations {
            ends.push(station.await);
        }
        first.print_until(Times::now(), rounds * k);
        let mut sum = 0;
        for i in 0..tokens {
            sum += ends[(i * k / tokens) as usize].recv().await.expect("the token is back at its start");
        }
        println!("token {sum}");
    });
}

/// A tree of threads, ten below each. Its `size` leaves have the numbers from `number` on.
#[expect(clippy::manual_async_fn, reason = "a recursive function must say itself that its future is Send")]
fn tree<R: Runtime>(number: u64, size: u64) -> impl Future<Output = u64> + Send {
    async move {
        if size == 1 {
            return number;
        }
        let mut children = Vec::with_capacity(10);
        for i in 0..10 {
            children.push(R::spawn(tree::<R>(number + i * (size / 10), size / 10)));
        }
        let mut sum = 0;
        for child in children {
            sum += child.await;
        }
        sum
    }
}

/// The tree with this number of leaves, a power of ten.
fn skynet<R: Runtime>(workers: u64, leaves: u64) {
    let (ms, sum) = R::run(workers as usize, Waits::Nothing, async move {
        let first = Instant::now();
        let sum = R::spawn(tree::<R>(fault(), leaves)).await;
        (first.elapsed().as_secs_f64() * 1e3, sum)
    });
    println!("ms {ms:.4}");
    println!("sum {sum}");
}

/// Runs `threads` threads of the runtime, of which each makes its part of `total` increments.
fn counting<R, F>(workers: u64, threads: u64, total: u64, part: impl Fn(u64) -> F + Send + 'static) -> f64
where
    R: Runtime,
    F: Future<Output = ()> + Send + 'static,
{
    R::run(workers as usize, Waits::Nothing, async move {
        let first = Instant::now();
        let handles: Vec<_> = (0..threads).map(|_| R::spawn(part(total / threads - fault()))).collect();
        for handle in handles {
            handle.await;
        }
        first.elapsed().as_secs_f64()
    })
}

fn print_count(count: u64, seconds: f64) {
    println!("count {count}");
    println!("rate {:.4}", count as f64 / seconds / 1e6);
}

/// Threads of ours that count under our mutex.
fn counter_mutex(workers: u64, threads: u64, total: u64) {
    let counter = Arc::new(selvedge_sync::Mutex::new(0_u64));
    let shared = counter.clone();
    let seconds = counting::<Ours, _>(workers, threads, total, move |part| {
        let counter = shared.clone();
        async move {
            for _ in 0..part {
                *counter.lock().await += 1;
            }
        }
    });
    let count = *counter.try_lock().expect("every thread that held it has ended");
    print_count(count, seconds);
}

/// Tasks of tokio that count under tokio's mutex.
fn tokio_counter_mutex(workers: u64, threads: u64, total: u64) {
    let counter = Arc::new(tokio::sync::Mutex::new(0_u64));
    let shared = counter.clone();
    let seconds = counting::<Tokio, _>(workers, threads, total, move |part| {
        let counter = shared.clone();
        async move {
            for _ in 0..part {
                *counter.lock().await += 1;
            }
        }
    });
    let count = *counter.try_lock().expect("every thread that held it has ended");
    print_count(count, seconds);
}

/// Threads of ours that count with an atomic.
fn counter_atomic(workers: u64, threads: u64, total: u64) {
    let counter = Arc::new(AtomicU64::new(0));
    let shared = counter.clone();
    let seconds = counting::<Ours, _>(workers, threads, total, move |part| {
        let counter = shared.clone();
        async move {
            for _ in 0..part {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    print_count(counter.load(Ordering::Relaxed), seconds);
}

/// OS threads that each do their part; the moments before and after.
pub(super) fn os_threads(threads: u64, part: impl Fn(u64) + Sync) -> (Times, Times) {
    // No thread passes the second barrier before the clock is read.
    let (ready, start) = (Barrier::new(threads as usize + 1), Barrier::new(threads as usize + 1));
    let first = std::thread::scope(|scope| {
        for thread in 0..threads {
            let (ready, start, part) = (&ready, &start, &part);
            scope.spawn(move || {
                ready.wait();
                start.wait();
                part(thread);
            });
        }
        ready.wait();
        let first = Times::now();
        start.wait();
        first
    });
    (first, Times::now())
}

/// OS threads that each make their part of `total` increments; the seconds that they take.
fn counting_os(threads: u64, total: u64, increment: impl Fn() + Sync) -> f64 {
    let (first, last) = os_threads(threads, |_| (0..total / threads - fault()).for_each(|_| increment()));
    first.seconds_until(last)
}

/// OS threads that count under the standard library's mutex.
fn counter_std_mutex(threads: u64, total: u64) {
    let counter = Mutex::new(0_u64);
    let seconds = counting_os(threads, total, || {
        *counter.lock().expect("no panic under this lock") += 1;
    });
    print_count(counter.into_inner().expect("no panic under this lock"), seconds);
}

/// OS threads that count under our mutex.
fn counter_os_mutex(threads: u64, total: u64) {
    let counter = selvedge_sync::Mutex::new(0_u64);
    let seconds = counting_os(threads, total, || *counter.lock_blocking() += 1);
    print_count(counter.into_inner(), seconds);
}
