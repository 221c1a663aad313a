//! Foreign wakers that panic, or that run other code when they are dropped. All foreign futures of
//! the process share one loop and one pool, which must go on.

use selvedge_io::pool::{Limits, Pool};
use selvedge_io::time::sleep;
use std::future::Future;
use std::num::NonZeroUsize;
use std::pin::{Pin, pin};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(10);

/// A waker that tells that it is woken, and then panics.
struct Panics(Sender<()>);

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        self.0.send(()).unwrap();
        panic!("as it should");
    }
}

struct Tells(Sender<()>);

impl Wake for Tells {
    fn wake(self: Arc<Self>) {
        let _ = self.0.send(());
    }
}

fn panics() -> (Waker, Receiver<()>) {
    let (sender, receiver) = channel();
    (Waker::from(Arc::new(Panics(sender))), receiver)
}

fn tells() -> (Waker, Receiver<()>) {
    let (sender, receiver) = channel();
    (Waker::from(Arc::new(Tells(sender))), receiver)
}

#[test]
fn one_that_panics_does_not_stop_the_clock_for_the_others() {
    let ((panics, panicked), (tells, told)) = (panics(), tells());
    let mut short = pin!(sleep(Duration::from_millis(10)));
    assert!(short.as_mut().poll(&mut Context::from_waker(&panics)).is_pending());
    panicked.recv_timeout(LONG).unwrap();
    let mut next = pin!(sleep(Duration::from_millis(10)));
    assert!(next.as_mut().poll(&mut Context::from_waker(&tells)).is_pending());
    told.recv_timeout(LONG).expect("the event loop lives on");
}

#[test]
fn one_that_panics_does_not_take_an_os_thread_from_the_pool() {
    let one = NonZeroUsize::MIN;
    let pool = Pool::new(Limits { threads_max: one, ..Limits::default() });
    let ((panics, panicked), (tells, told)) = (panics(), tells());
    let mut first = pin!(pool.run(|| 1));
    assert!(first.as_mut().poll(&mut Context::from_waker(&panics)).is_pending());
    panicked.recv_timeout(LONG).unwrap();
    let mut second = pin!(pool.run(|| 2));
    assert!(second.as_mut().poll(&mut Context::from_waker(&tells)).is_pending());
    told.recv_timeout(LONG).expect("the pool has its OS thread still");
}

/// A task that holds another call until the task's last waker is dropped.
struct Holds {
    _call: Held,
}

type Held = Arc<Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>>;

impl Wake for Holds {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn one_that_is_replaced_may_take_another_call_out_of_the_line() {
    let (done, is_done) = channel();
    std::thread::spawn(move || {
        let one = NonZeroUsize::MIN;
        let pool = Pool::new(Limits { threads_max: one, queue_max: one, ..Limits::default() });
        let (open, gate) = channel::<()>();
        let mut cx = Context::from_waker(Waker::noop());
        let mut at_work = pin!(pool.run(move || gate.recv().is_ok()));
        assert!(at_work.as_mut().poll(&mut cx).is_pending());
        while pool.load().taken == 0 {
            std::thread::yield_now();
        }
        let mut queued = pin!(pool.run(|| ()));
        assert!(queued.as_mut().poll(&mut cx).is_pending());
        let held = Held::default();
        let waker = Waker::from(Arc::new(Holds { _call: held.clone() }));
        let mut in_line = pin!(pool.run(|| ()));
        assert!(in_line.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        let behind = pool.run(|| ());
        let mut behind = Box::pin(async move { drop(behind.await) });
        assert!(behind.as_mut().poll(&mut cx).is_pending());
        assert_eq!(pool.load().in_line, 2);
        *held.lock().unwrap() = Some(behind);
        drop((held, waker));
        assert!(in_line.as_mut().poll(&mut cx).is_pending());
        assert_eq!(pool.load().in_line, 1);
        drop(open);
        done.send(()).unwrap();
    });
    is_done.recv_timeout(LONG).expect("the pool is not locked while the waker goes");
}
