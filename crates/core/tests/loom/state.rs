//! All interleavings of a mobile thread's owner and its wakers: no wake-up is lost, and the thread
//! never has two owners.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use loom::thread;
use selvedge_core::internal::{Woken, Word, park_state, take_notification, wake_state};

struct Head(AtomicU32);

impl Word for Head {
    fn load(&self, order: Ordering) -> u32 {
        self.0.load(order)
    }
    fn compare_exchange(&self, from: u32, to: u32, ok: Ordering, err: Ordering) -> Result<u32, u32> {
        self.0.compare_exchange(from, to, ok, err)
    }
    fn fetch_and(&self, bits: u32, order: Ordering) -> u32 {
        self.0.fetch_and(bits, order)
    }
}

/// The head of an owned, mobile thread.
const OWNED: u32 = 0b1000;

/// A thread that counts the events it sees, and the CPUs that run it.
struct Model {
    head: Head,
    /// The number of events that have happened. A waker raises it before it wakes the thread.
    events: AtomicUsize,
    /// The number of CPUs that run the thread now: never more than 1.
    running: AtomicUsize,
    seen: AtomicUsize,
}

impl Model {
    fn new() -> Arc<Model> {
        Arc::new(Model {
            head: Head(AtomicU32::new(OWNED)),
            events: AtomicUsize::new(0),
            running: AtomicUsize::new(0),
            seen: AtomicUsize::new(0),
        })
    }

    /// Runs the thread, as its owner, until it parks.
    fn run(&self) {
        loop {
            assert_eq!(self.running.fetch_add(1, Ordering::Relaxed), 0, "two owners");
            // Relaxed, because the orderings of the head alone must make the waker's changes
            // visible.
            self.seen.store(self.events.load(Ordering::Relaxed), Ordering::Relaxed);
            self.running.fetch_sub(1, Ordering::Relaxed);
            if park_state(&self.head, OWNED) {
                return;
            }
            take_notification(&self.head);
        }
    }

    fn wake(&self) {
        self.events.fetch_add(1, Ordering::Relaxed);
        if wake_state(&self.head, self.head.load(Ordering::Relaxed)) == Woken::Ours {
            self.run();
        }
    }
}

#[test]
fn the_last_event_is_seen_whichever_cpu_runs_the_thread() {
    // All interleavings take two minutes. Three preemptions are enough to reach every state of the
    // diagram.
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let model = Model::new();
        let wakers: Vec<_> = (0..2)
            .map(|_| {
                let model = model.clone();
                thread::spawn(move || model.wake())
            })
            .collect();
        model.run();
        for waker in wakers {
            waker.join().unwrap();
        }
        assert_eq!(model.seen.load(Ordering::Relaxed), 2);
    });
}
