//! Giving up at every point at which an operation can be suspended: before it starts, while it
//! waits, and when it has been served but not polled since. After each of these, the other tasks go
//! on, and the object is as good as new.

use selvedge_sync::*;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

type Task = Pin<Box<dyn Future<Output = ()>>>;

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Polls the woken tasks in turn until all have ended. The task at `victim` is dropped after
/// `polls` polls, either at once or, with `served`, not before it has been woken again.
///
/// # Panics
/// When a task other than the victim is left and will never be woken.
fn run(tasks: Vec<Task>, victim: usize, polls: usize, served: bool) -> bool {
    let new = |task| (Some(task), Arc::new(Flag(AtomicBool::new(true))), 0);
    let mut tasks: Vec<(Option<Task>, Arc<Flag>, usize)> = tasks.into_iter().map(new).collect();
    let mut gave_up = false;
    loop {
        let mut progress = false;
        for (number, (task, flag, polled)) in tasks.iter_mut().enumerate() {
            let due = number == victim && *polled == polls;
            if due && task.is_some() && (!served || flag.0.load(Ordering::Relaxed)) {
                *task = None;
                gave_up = true;
                progress = true;
                continue;
            }
            if let Some(running) = task
                && flag.0.swap(false, Ordering::Relaxed)
            {
                progress = true;
                *polled += 1;
                let waker = Waker::from(flag.clone());
                if running.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                    *task = None;
                }
            }
        }
        let left = tasks.iter().filter(|(task, ..)| task.is_some()).count();
        if left == 0 {
            return gave_up;
        }
        if !progress {
            let victim = tasks[victim].0.is_some();
            assert!(victim && left == 1, "{left} are left that will never be woken");
            // The victim waits for ever, with reason: it is dropped at the end of the test.
            return gave_up;
        }
    }
}

async fn pause() {
    let mut paused = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut paused, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The largest number of polls before the victim gives up. Miri takes long over each, so it checks
/// the first points only.
const POLLS: usize = if cfg!(miri) { 3 } else { 12 };

/// Runs a scenario of three tasks. Each task gives up at each point once.
fn at_every_point(scenario: impl Fn() -> (Vec<Task>, Box<dyn FnOnce()>)) {
    let mut points = 0;
    let count = scenario().0.len();
    for victim in 0..count {
        for served in [false, true] {
            for polls in 0..POLLS {
                let (tasks, usable) = scenario();
                points += u32::from(run(tasks, victim, polls, served));
                usable();
            }
        }
    }
    assert!(points > if cfg!(miri) { 4 } else { 8 }, "{points} points are hardly all");
}

fn task(future: impl Future<Output = ()> + 'static) -> Task {
    Box::pin(future)
}

#[test]
fn mutexes() {
    at_every_point(|| {
        let mutex = Rc::new(Mutex::new(0));
        let add = |mutex: Rc<Mutex<u32>>| async move {
            let mut sum = mutex.lock().await;
            pause().await;
            *sum += 1;
        };
        let tasks = (0..3).map(|_| task(add(mutex.clone()))).collect();
        (tasks, Box::new(move || assert!(*mutex.try_lock().expect("free") >= 2)))
    });
}

#[test]
fn rw_locks() {
    at_every_point(|| {
        let lock = Rc::new(RwLock::new(0));
        let (one, two, three) = (lock.clone(), lock.clone(), lock.clone());
        let read = |lock: Rc<RwLock<u32>>| async move {
            let value = lock.read().await;
            pause().await;
            assert!(*value <= 1);
        };
        let write = async move {
            let mut value = two.write().await;
            pause().await;
            *value += 1;
        };
        let tasks = vec![task(read(one)), task(write), task(read(three))];
        (tasks, Box::new(move || assert!(lock.try_write().is_some())))
    });
}

#[test]
fn semaphores() {
    at_every_point(|| {
        let semaphore = Rc::new(Semaphore::new(2));
        let enter = |semaphore: Rc<Semaphore>, permits| async move {
            let _permit = Semaphore::acquire_owned(semaphore, permits).await;
            pause().await;
        };
        let tasks = [2, 2, 1].map(|permits| task(enter(semaphore.clone(), permits))).into();
        (tasks, Box::new(move || assert_eq!(semaphore.available(), 2)))
    });
}

#[test]
fn conditions() {
    // There is one notification, for the first waiter. If that waiter gives up, the notification
    // goes to the other.
    let scenario = |all: bool| {
        move || {
            let shared = Rc::new((Mutex::new(()), Condition::new(), Cell::new(0)));
            let wait = |shared: Rc<(Mutex<()>, Condition, Cell<u32>)>| async move {
                let guard = shared.1.wait(shared.0.lock().await).await;
                shared.2.set(shared.2.get() + 1);
                pause().await;
                drop(guard);
            };
            let theirs = shared.clone();
            let notify = async move {
                pause().await;
                pause().await;
                match all {
                    true => theirs.1.notify_all(),
                    false => theirs.1.notify_one(),
                }
                pause().await;
                pause().await;
                pause().await;
                // A waiter that has not been notified by then will not be.
                theirs.1.notify_all();
            };
            let tasks = vec![task(wait(shared.clone())), task(wait(shared.clone())), task(notify)];
            let usable: Box<dyn FnOnce()> = Box::new(move || assert!(shared.0.try_lock().is_some()));
            (tasks, usable)
        }
    };
    for all in [false, true] {
        let scenario = scenario(all);
        // The notifier never gives up, because without it all waiters wait for ever.
        for victim in 0..2 {
            for served in [false, true] {
                for polls in 0..POLLS.min(8) {
                    let (tasks, usable) = scenario();
                    run(tasks, victim, polls, served);
                    usable();
                }
            }
        }
    }
}

#[test]
fn mvars() {
    at_every_point(|| {
        let var = Rc::new(MVar::empty());
        let (put, take, last) = (var.clone(), var.clone(), var.clone());
        // If one of the tasks gives up, the sweeper still supplies the other side.
        let putter = async move {
            put.put(1).await;
            put.put(2).await;
        };
        let taker = async move {
            pause().await;
            take.take().await;
        };
        let sweeper = async move {
            for _ in 0..12 {
                pause().await;
                last.try_take();
                let _ = last.try_put(3);
            }
        };
        let usable = move || {
            while var.try_take().is_some() {}
            assert_eq!(var.try_put(5), Ok(()));
            assert_eq!(var.try_take(), Some(5));
        };
        (vec![task(putter), task(taker), task(sweeper)], Box::new(usable))
    });
}

#[test]
fn bounded_fifos() {
    for capacity in 0..3 {
        at_every_point(|| {
            let (putter, taker) = BoundedFifo::ends(capacity);
            let other = taker.clone();
            let fill = async move {
                for value in 0..4 {
                    if putter.put(value).await.is_err() {
                        break;
                    }
                }
            };
            // The values may come out of order, because a value goes back if a taker that was
            // handed it gives up before it is polled.
            let seen = Rc::new([const { Cell::new(false) }; 4]);
            let drain = |taker: Taker<usize>, seen: Rc<[Cell<bool>; 4]>| async move {
                while let Some(value) = taker.take().await {
                    assert!(!seen[value].replace(true), "{value} twice");
                    pause().await;
                }
            };
            let (one, two) = (task(drain(taker, seen.clone())), task(drain(other, seen.clone())));
            // All values that were put have been taken, because one taker is always left. They are
            // the first ones.
            let usable = move || assert!(seen.is_sorted_by_key(|seen| !seen.get()), "{seen:?}");
            (vec![task(fill), one, two], Box::new(usable))
        });
    }
}

#[test]
fn barriers() {
    at_every_point(|| {
        let barrier = Rc::new(Barrier::new(2));
        let come = |barrier: Rc<Barrier>| async move {
            barrier.wait().await;
        };
        // Three tasks come to a barrier for two. The fourth wait is for the task that is left over.
        let spare = barrier.clone();
        let spare = async move {
            for _ in 0..8 {
                pause().await;
            }
            if format!("{spare:?}").contains("(1 of") {
                spare.wait().await;
            }
        };
        let tasks = vec![task(come(barrier.clone())), task(come(barrier.clone())), task(spare)];
        let usable = move || assert_eq!(format!("{barrier:?}"), "Barrier(0 of 2 have come)");
        (tasks, Box::new(usable))
    });
}

#[test]
fn once_cells() {
    at_every_point(|| {
        let cell = Rc::new(OnceCell::new());
        let get = |cell: Rc<OnceCell<u32>>, value| async move {
            cell.get_or_init(|| async {
                pause().await;
                value
            })
            .await;
        };
        let tasks = (0..3).map(|value| task(get(cell.clone(), value))).collect();
        (tasks, Box::new(move || assert!(cell.get().is_some())))
    });
}

#[test]
fn promises() {
    at_every_point(|| {
        let (fulfiller, promise) = Promise::new();
        let claim = |promise: Promise<u32>| async move {
            let _ = promise.claim().await;
        };
        let fulfil = async move {
            pause().await;
            pause().await;
            // If this task gives up before, the promise is broken.
            fulfiller.fulfil(4);
        };
        let tasks = vec![task(claim(promise.clone())), task(claim(promise.clone())), task(fulfil)];
        (tasks, Box::new(move || assert!(promise.is_settled())))
    });
}

#[test]
fn broadcasts_and_watched_values() {
    at_every_point(|| {
        let (broadcaster, listener) = broadcast(2);
        let (setter, watcher) = watch(0);
        let mut other = listener.clone();
        let listen = |mut listener: Listener<u32>| async move {
            while listener.listen().await != Err(ListenError::Closed) {
                pause().await;
            }
        };
        let speak = async move {
            for value in 1..6 {
                pause().await;
                broadcaster.send(value);
                setter.set(value);
            }
        };
        let follow = |mut watcher: Watcher<u32>| async move { while watcher.changed().await.is_ok() {} };
        let tasks = vec![task(listen(listener)), task(follow(watcher.clone())), task(speak)];
        let usable = move || while other.try_listen() != Err(TryListenError::Closed) {};
        (tasks, Box::new(usable))
    });
}

#[test]
fn events() {
    at_every_point(|| {
        let (event, latch) = (Rc::new(Event::new()), Rc::new(Latch::new(2)));
        let (one, two) = ((event.clone(), latch.clone()), (event.clone(), latch.clone()));
        let first = async move {
            // Counts down also if the task gives up.
            struct Count(Rc<Latch>);
            impl Drop for Count {
                fn drop(&mut self) {
                    self.0.count_down();
                }
            }
            let _count = Count(one.1);
            one.0.wait().await;
        };
        let second = async move {
            pause().await;
            two.0.set();
            two.1.count_down();
            two.1.wait().await;
        };
        let theirs = event.clone();
        let setter = async move {
            pause().await;
            pause().await;
            theirs.set();
            latch.count_down();
        };
        (vec![task(first), task(second), task(setter)], Box::new(move || assert!(event.is_set())))
    });
}
