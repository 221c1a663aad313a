//! All interleavings of waiting, granting, collecting and giving up on a shared wait queue.

use loom::sync::{Arc, Notify};
use loom::thread;
use selvedge_core::{Queue, Role, Shared, WaitQueue};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Wake, Waker};

/// A slot for one value, which is handed to the first waiter.
type Slot = WaitQueue<Option<u32>, Option<u32>, Shared>;

enum Take {}

impl Role<Option<u32>, Option<u32>> for Take {
    type Output = u32;

    fn attempt(state: &mut Option<u32>, _: &mut Queue<Option<u32>>, _: &mut Option<u32>) -> Option<u32> {
        state.take()
    }

    fn granted(payload: &mut Option<u32>) -> u32 {
        payload.take().expect("granted with a value")
    }

    fn abandoned(state: &mut Option<u32>, queue: &mut Queue<Option<u32>>, payload: &mut Option<u32>) {
        give(state, queue, payload.take().expect("granted with a value"));
    }
}

fn give(state: &mut Option<u32>, queue: &mut Queue<Option<u32>>, value: u32) {
    match queue.front() {
        Some(taker) => {
            *taker = Some(value);
            queue.grant();
        }
        None => assert!(state.replace(value).is_none(), "two values in one slot"),
    }
}

struct WakeSignal(Notify);

impl Wake for WakeSignal {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.notify();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let signal = std::sync::Arc::new(WakeSignal(Notify::new()));
    let waker = Waker::from(signal.clone());
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            // A lost wake-up would be a deadlock of the model.
            Poll::Pending => signal.0.wait(),
        }
    }
}

#[test]
fn a_value_reaches_the_waiter() {
    loom::model(|| {
        let slot = Arc::new(Slot::new(None));
        let giver = {
            let slot = slot.clone();
            thread::spawn(move || slot.with(|state, queue| give(state, queue, 5)))
        };
        assert_eq!(block_on(slot.wait::<Take>(None)), 5);
        giver.join().unwrap();
    });
}

#[test]
fn a_value_given_to_a_waiter_that_gives_up_reaches_the_other() {
    loom::model(|| {
        let slot = Arc::new(Slot::new(None));
        let taker = {
            let slot = slot.clone();
            thread::spawn(move || block_on(slot.wait::<Take>(None)))
        };
        let giver = {
            let slot = slot.clone();
            thread::spawn(move || slot.with(|state, queue| give(state, queue, 4)))
        };
        let taken = {
            let waiting = pin!(slot.wait::<Take>(None));
            waiting.poll(&mut Context::from_waker(Waker::noop()))
        };
        if let Poll::Ready(value) = taken {
            slot.with(|state, queue| give(state, queue, value));
        }
        giver.join().unwrap();
        assert_eq!(taker.join().unwrap(), 4);
    });
}

#[test]
fn a_value_given_to_a_waiter_that_gives_up_is_not_lost() {
    loom::model(|| {
        let slot = Arc::new(Slot::new(None));
        let giver = {
            let slot = slot.clone();
            thread::spawn(move || slot.with(|state, queue| give(state, queue, 9)))
        };
        let taken = {
            let mut waiting = pin!(slot.wait::<Take>(None));
            let first = waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            match first {
                Poll::Ready(value) => Some(value),
                Poll::Pending => match waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                    Poll::Ready(value) => Some(value),
                    Poll::Pending => None,
                },
            }
            // The future is dropped here, queued or granted.
        };
        giver.join().unwrap();
        let left = slot.with(|state, _| state.take());
        assert_eq!(taken.or(left), Some(9));
        assert!(taken.is_none() || left.is_none(), "the value was doubled");
    });
}

/// A gate that lets one thread in at a time. The word says whether a thread is inside and whether
/// any waits. A thread that finds the word as it expects needs no lock.
struct Gate {
    queue: WaitQueue<(), (), Shared>,
    inside: loom::cell::UnsafeCell<u32>,
}

const PASSED: u32 = 1;
const WAITED: u32 = 2;

enum Enter {}

impl Enter {
    fn leave(queue: &mut Queue<()>) {
        let handed_over = !queue.is_empty();
        queue.grant();
        let still_waited = !queue.is_empty();
        *queue.word() = if handed_over { PASSED } else { 0 } | if still_waited { WAITED } else { 0 };
    }
}

impl Role<(), ()> for Enter {
    type Output = ();

    const PASSES: bool = true;

    fn pass(word: u32, _: &()) -> Option<u32> {
        (word == 0).then_some(PASSED)
    }

    fn attempt(_: &mut (), queue: &mut Queue<()>, _: &mut ()) -> Option<()> {
        let passed = *queue.word() & PASSED != 0;
        *queue.word() |= if passed { WAITED } else { PASSED };
        (!passed).then_some(())
    }

    fn granted(_: &mut ()) {}

    fn abandoned(_: &mut (), queue: &mut Queue<()>, _: &mut ()) {
        Enter::leave(queue);
    }

    fn withdrawn(_: &mut (), queue: &mut Queue<()>, _: &mut (), _: bool) {
        if queue.is_empty() {
            *queue.word() &= !WAITED;
        }
    }
}

impl Gate {
    fn new() -> Arc<Gate> {
        Arc::new(Gate { queue: WaitQueue::new(()), inside: loom::cell::UnsafeCell::new(0) })
    }

    fn enter_at_once(&self) -> bool {
        self.queue.exchange(|word| Enter::pass(word, &())).is_ok()
    }

    async fn enter(&self) {
        self.queue.wait::<Enter>(()).await;
    }

    fn leave(&self) {
        // Loom reports a second thread inside.
        self.inside.with_mut(|inside| unsafe { *inside += 1 });
        if self.queue.exchange(|word| (word == PASSED).then_some(0)).is_err() {
            self.queue.with(|_, queue| Enter::leave(queue));
        }
    }
}

#[test]
fn past_the_lock_or_through_it_one_at_a_time_gets_in() {
    loom::model(|| {
        let gate = Gate::new();
        let other = {
            let gate = gate.clone();
            thread::spawn(move || {
                block_on(gate.enter());
                gate.leave();
            })
        };
        block_on(gate.enter());
        gate.leave();
        other.join().unwrap();
        assert!(gate.enter_at_once(), "free in the end");
        assert_eq!(gate.inside.with(|inside| unsafe { *inside }), 2);
    });
}

#[test]
fn a_waiter_that_gives_up_before_the_gate_leaves_it_as_it_was() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let gate = Gate::new();
        let others = [0, 1].map(|_| {
            let gate = gate.clone();
            thread::spawn(move || {
                block_on(gate.enter());
                gate.leave();
            })
        });
        {
            let entering = pin!(gate.enter());
            if entering.poll(&mut Context::from_waker(Waker::noop())).is_ready() {
                gate.leave();
            }
        }
        others.into_iter().for_each(|other| other.join().unwrap());
        assert!(gate.enter_at_once(), "free in the end");
    });
}
