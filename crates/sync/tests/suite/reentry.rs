//! A writer that a `Debug` writes to is code of the caller: it may use the same object, and may
//! drop a future that waits for it.

use selvedge_core::Mode;
use selvedge_sync::*;
use std::fmt::{self, Debug, Write};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};

type Waits<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A writer that drops a waiting future and uses the object, as soon as it is written to.
struct Nosy<'a> {
    waits: Option<Waits<'a>>,
    used: &'a dyn Fn(),
}

impl Write for Nosy<'_> {
    fn write_str(&mut self, _: &str) -> fmt::Result {
        self.waits = None;
        (self.used)();
        Ok(())
    }
}

fn ignore<T>(_: T) {}

/// Writes `object` to such a writer. `waits` waits for `object`, and `used` uses it.
fn show<'a>(object: &dyn Debug, waits: impl Future + 'a, used: &'a dyn Fn()) {
    let mut waits: Waits<'a> = Box::pin(async move {
        let _ = waits.await;
    });
    assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let mut nosy = Nosy { waits: Some(waits), used };
    write!(nosy, "{object:?}").unwrap();
    assert!(nosy.waits.is_none(), "it was written to");
}

struct Every<M: Mode> {
    var: MVar<u8, M>,
    fifo: Fifo<u8, M>,
    bounded: BoundedFifo<u8, M>,
    ends: (Putter<u8, M>, Taker<u8, M>),
    mutex: Mutex<u8, M>,
    lock: RwLock<u8, M>,
    semaphore: Semaphore<M>,
    condition: Condition<M>,
    barrier: Barrier<M>,
    event: Event<M>,
    latch: Latch<M>,
    promise: (Fulfiller<u8, M>, Promise<u8, M>),
    broadcast: (Broadcaster<u8, M>, Listener<u8, M>),
    watch: (Setter<u8, M>, Watcher<u8, M>),
}

fn every_kind<M: Mode>(every: Every<M>) {
    let Every {
        var,
        fifo,
        bounded,
        ends,
        mutex,
        lock,
        semaphore,
        condition,
        barrier,
        event,
        latch,
        promise,
        broadcast,
        watch,
    } = every;
    show(&var, var.take(), &|| ignore(var.try_put(1)));
    show(&fifo, fifo.take(), &|| fifo.put(1));
    show(&bounded, bounded.take(), &|| ignore(bounded.try_put(1)));
    show(&ends.0, ends.1.take(), &|| ignore(ends.0.try_put(1)));
    show(&ends.1, ends.0.put(2), &|| ignore(ends.1.try_take()));
    let guard = mutex.try_lock().unwrap();
    show(&mutex, mutex.lock(), &|| assert!(mutex.try_lock().is_none()));
    show(&condition, condition.wait(guard), &|| condition.notify_all());
    let writer = lock.try_write().unwrap();
    show(&lock, lock.read(), &|| assert!(lock.try_read().is_none()));
    drop(writer);
    show(&semaphore, semaphore.acquire_many(2), &|| drop(semaphore.try_acquire(1)));
    show(&barrier, barrier.wait(), &|| drop(barrier.wait()));
    show(&event, event.wait(), &|| event.set());
    show(&latch, latch.wait(), &|| latch.count_down());
    show(&promise.1, promise.1.claim(), &|| assert!(!promise.1.is_settled()));
    let (broadcaster, mut listener) = broadcast;
    show(&broadcaster, listener.listen(), &|| ignore(broadcaster.send(1)));
    let (setter, mut watcher) = watch;
    show(&setter, watcher.changed(), &|| drop(setter.set(1)));
}

#[test]
fn a_writer_may_use_what_it_is_shown_and_give_up_what_waits_for_it() {
    every_kind(Every {
        var: MVar::empty(),
        fifo: Fifo::new(),
        bounded: BoundedFifo::new(1),
        ends: BoundedFifo::ends(1),
        mutex: Mutex::new(0),
        lock: RwLock::new(0),
        semaphore: Semaphore::new(1),
        condition: Condition::new(),
        barrier: Barrier::new(2),
        event: Event::new(),
        latch: Latch::new(1),
        promise: Promise::new(),
        broadcast: broadcast(1),
        watch: watch(0),
    });
    every_kind(Every {
        var: MVar::empty_local(),
        fifo: Fifo::new_local(),
        bounded: BoundedFifo::new_local(1),
        ends: BoundedFifo::ends_local(1),
        mutex: Mutex::new_local(0),
        lock: RwLock::new_local(0),
        semaphore: Semaphore::new_local(1),
        condition: Condition::new_local(),
        barrier: Barrier::new_local(2),
        event: Event::new_local(),
        latch: Latch::new_local(1),
        promise: Promise::new_local(),
        broadcast: broadcast_local(1),
        watch: watch_local(0),
    });
}
