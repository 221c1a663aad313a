//! Threads that talk through the kernel come together on one worker.

use selvedge_core::{spawn, spawn_local, yield_now};
use selvedge_io::EventLoop;
use selvedge_io::pipe::{self, Receiver, Sender};
use selvedge_sched::work_stealing;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// Long enough for a machine with much other work.
const PATIENCE: Duration = Duration::from_secs(120);
/// This many messages in a row on one worker are no accident.
const TOGETHER: usize = 200;

/// A step that ends only when another such step runs on another worker.
fn meet(here: &AtomicUsize) {
    here.fetch_add(1, SeqCst);
    while here.load(SeqCst) < 2 {
        std::thread::yield_now();
    }
}

/// The shared state of a pair: where each thread ran last, and the number of messages for which
/// both have run on one worker.
#[derive(Default)]
struct Pair {
    places: Mutex<[Option<ThreadId>; 2]>,
    together: AtomicUsize,
    done: AtomicBool,
}

impl Pair {
    /// Passes on each byte that the other thread sends, until both have been together for a while.
    async fn talk(self: Arc<Pair>, me: usize, from: Receiver, to: Sender) {
        let begun = Instant::now();
        loop {
            let both = {
                let mut places = self.places.lock().unwrap();
                places[me] = Some(std::thread::current().id());
                *places
            };
            if both[0] == both[1] {
                self.together.fetch_add(1, SeqCst);
            } else {
                self.together.store(0, SeqCst);
            }
            if self.together.load(SeqCst) >= TOGETHER || begun.elapsed() > PATIENCE {
                self.done.store(true, SeqCst);
            }
            // The other thread may have ended.
            if to.write_all(&[0]).await.is_err() || self.done.load(SeqCst) {
                return;
            }
            if !matches!(from.read(&mut [0]).await, Ok(1)) {
                return;
            }
        }
    }
}

/// A thread that is always ready, so that its worker neither sleeps nor steals.
async fn busy(until: Arc<AtomicUsize>) {
    while until.load(SeqCst) > 0 {
        yield_now().await;
    }
}

/// Starts one side of all pairs on this worker, and keeps the worker busy until the pairs are done.
fn start<F: Future<Output = ()> + Send + 'static>(side: Vec<F>, left: Arc<AtomicUsize>) {
    drop(spawn_local(busy(left.clone())));
    for talk in side {
        let left = left.clone();
        drop(spawn(async move {
            talk.await;
            left.fetch_sub(1, SeqCst);
        }));
    }
}

#[test]
fn threads_on_two_busy_workers_that_wake_each_other_come_together_and_stay() {
    const PAIRS: usize = 2;
    let pairs: Vec<Arc<Pair>> = (0..PAIRS).map(|_| Arc::default()).collect();
    let all = pairs.clone();
    work_stealing(2, |_| EventLoop::new(), async move {
        let (mut here, mut there) = (Vec::new(), Vec::new());
        for pair in all {
            let ((a_to, b_from), (b_to, a_from)) = (pipe::pipe().unwrap(), pipe::pipe().unwrap());
            here.push(pair.clone().talk(0, a_from, a_to));
            there.push(pair.talk(1, b_from, b_to));
        }
        let met = Arc::new(AtomicUsize::new(0));
        let left = Arc::new(AtomicUsize::new(2 * PAIRS));
        let other = {
            let (met, left) = (met.clone(), left.clone());
            spawn(async move {
                meet(&met);
                start(there, left);
            })
        };
        yield_now().await;
        meet(&met);
        start(here, left.clone());
        other.await.unwrap();
        busy(left).await;
    })
    .unwrap();
    for (number, pair) in pairs.iter().enumerate() {
        assert!(pair.together.load(SeqCst) >= TOGETHER, "pair {number} remained apart");
    }
}
