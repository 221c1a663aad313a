//! Every primitive of `selvedge-sync`, and transactions, under thousands of seeds, and in every
//! order of its threads. The programs assert that an object gives no wake-up twice, that it serves
//! its waiters first come, first served, and that a cancelled waiter leaves the object usable. In
//! these programs a lost wake-up is a deadlock, which the simulation reports.
//!
//! Each program runs once with objects that OS threads share and once with local objects. A release
//! build, as the proof `optimized sim` makes, runs each program under 10,000 seeds and in every
//! order, without a bound. A debug build is 17 times slower; it takes 1,700 seeds, and where a
//! program has more than 2,000 orders, all orders with one preemption.

use futures::FutureExt;
use futures::future::select;
use selvedge_core::{spawn_local, yield_now};
use selvedge_sim::{Explorer, Simulation, VirtualTime, each_seed};
use selvedge_stm::{GlobalLock, TMVar, TQueue, TWord, Tx, Versioned, atomically_under};
use selvedge_sync::{
    Barrier, BoundedFifo, Condition, Event, Fifo, Latch, MVar, Mutex, OnceCell, Promise, RwLock, Semaphore,
    broadcast, broadcast_local, watch, watch_local,
};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;

/// The number of seeds and orders under which each program runs.
struct Extent {
    seeds: u64,
    /// The most orders of one program.
    orders_max: u64,
    /// If a program has more orders, it runs in all of its orders with this many preemptions.
    /// Without this number, more orders are a failure.
    preemptions: Option<u32>,
}

const EXTENT: Extent = if cfg!(debug_assertions) {
    Extent { seeds: 1_700, orders_max: 2_000, preemptions: Some(1) }
} else {
    // The largest of the programs has 222,874 orders.
    Extent { seeds: 10_000, orders_max: 1_000_000, preemptions: None }
};

/// Runs a program in all the ways that `EXTENT` names.
fn check<F: Future<Output = ()> + 'static>(program: impl Fn() -> F) {
    each_seed(0..EXTENT.seeds, |seed| {
        let simulation = if seed % 2 == 0 { Simulation::new(seed) } else { Simulation::pct(seed, 3, 60) };
        simulation.steps_max(10_000).run(&mut VirtualTime::new(), program()).unwrap();
    });
    let explored = Explorer::new().schedules_max(EXTENT.orders_max).check(&program).unwrap();
    if !explored.complete {
        let preemptions = EXTENT.preemptions.expect("every order was to be tried; there are more");
        let bounded = Explorer::new().preemptions_max(preemptions).check(&program).unwrap();
        assert!(bounded.complete, "{} orders and more", bounded.schedules);
    }
}

/// The way in which a wait is given up.
#[derive(Clone, Copy, Debug)]
enum How {
    /// The waiting thread is cancelled.
    Thread,
    /// The wait loses a race.
    Race,
}

/// Runs a future that waits, and gives it up at some point: before it begins, while it waits, after
/// it was woken and before it runs, or after it has ended.
async fn doomed(how: How, future: impl Future<Output = ()> + 'static) {
    match how {
        How::Thread => {
            let victim = spawn_local(future);
            yield_now().await;
            victim.cancel();
            let _ = victim.await;
        }
        How::Race => {
            let rival = spawn_local(yield_now());
            // The rival is polled first.
            drop(select(rival, Box::pin(future)).await);
        }
    }
}

/// Checks a program without a victim, and with a victim of each kind.
macro_rules! check {
    ($how:ident => $program:expr) => {
        for $how in [None, Some(How::Thread), Some(How::Race)] {
            check(|| $program);
        }
    };
}

/// A guard that is alive while its thread is inside the lock.
struct Inside(Rc<Cell<bool>>);

impl Inside {
    fn enter(inside: &Rc<Cell<bool>>) -> Inside {
        assert!(!inside.replace(true), "two are inside");
        Inside(inside.clone())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// Three threads (two threads and a victim) enter a lock, one at a time. If `$first_come`, they
/// enter in the order in which they came.
macro_rules! exclusive {
    ($new:expr, $lock:ident => $enter:expr, $first_come:expr) => {
        check!(how => async move {
            let lock = Rc::new($new);
            let inside = Rc::new(Cell::new(false));
            let (came, went) = (Rc::new(RefCell::new(Vec::new())), Rc::new(RefCell::new(Vec::new())));
            let one = |i: u32| {
                let (lock, inside, came, went) = (lock.clone(), inside.clone(), came.clone(), went.clone());
                async move {
                    came.borrow_mut().push(i);
                    let $lock = &*lock;
                    let guard = $enter.await;
                    let _inside = Inside::enter(&inside);
                    went.borrow_mut().push(i);
                    yield_now().await;
                    drop(guard);
                }
            };
            // If a thread is given up inside, `_inside` is dropped before `guard`, because locals
            // are dropped in reverse order. So `inside` is set back before the lock is unlocked.
            let others = [0, 1].map(|i| spawn_local(one(i)));
            match how {
                None => one(2).await,
                Some(how) => doomed(how, one(2)).await,
            }
            for other in others {
                other.await.unwrap();
            }
            came.borrow_mut().retain(|i| went.borrow().contains(i));
            if $first_come {
                assert_eq!(came, went, "operations are not served in the order in which they came");
            } else {
                came.borrow_mut().sort();
                went.borrow_mut().sort();
                assert_eq!(came, went, "an operation is not served, or served twice");
            }
            let $lock = &*lock;
            let _usable = $enter.await;
        });
    };
}

#[test]
fn mutex() {
    // A running thread may lock the mutex once before the thread that has waited longest.
    exclusive!(Mutex::new(()), m => m.lock(), false);
    exclusive!(Mutex::new_local(()), m => m.lock(), false);
}

#[test]
fn semaphore() {
    exclusive!(Semaphore::new(1), s => s.acquire(), true);
    exclusive!(Semaphore::new_local(3), s => s.acquire_many(3), true);
}

#[test]
fn read_write_lock_for_writers() {
    exclusive!(RwLock::new(()), l => l.write(), true);
    exclusive!(RwLock::new_local(()), l => l.write(), true);
}

/// Readers are inside together, a writer is inside alone. The victim is a writer before or behind
/// the readers in the queue.
macro_rules! readers {
    ($new:expr) => {
        check!(how => async move {
            let lock = Rc::new($new);
            let reader = |lock: Rc<RwLock<u32, _>>| async move {
                let value = lock.read().await;
                assert_eq!(*value % 2, 0, "a writer is at it");
                yield_now().await;
                assert_eq!(*value % 2, 0);
            };
            let writer = |lock: Rc<RwLock<u32, _>>| async move {
                let mut value = lock.write().await;
                *value += 1;
                // If the writer is given up at this point, the value stays odd, unless `fix` makes
                // it even.
                let fix = scopeguard(&mut *value);
                yield_now().await;
                drop(fix);
            };
            let readers = [0, 1].map(|_| spawn_local(reader(lock.clone())));
            match how {
                None => writer(lock.clone()).await,
                Some(how) => doomed(how, writer(lock.clone())).await,
            }
            for reader in readers {
                reader.await.unwrap();
            }
            assert_eq!(*lock.write().await % 2, 0);
            assert_eq!(lock.readers(), 0);
        });
    };
}

/// A guard that makes an odd number even when it is dropped.
fn scopeguard(value: &mut u32) -> impl Drop {
    struct Fix<'a>(&'a mut u32);
    impl Drop for Fix<'_> {
        fn drop(&mut self) {
            *self.0 += *self.0 % 2;
        }
    }
    Fix(value)
}

#[test]
fn read_write_lock_for_readers() {
    readers!(RwLock::new(0));
    readers!(RwLock::new_local(0));
}

/// One thread puts 0, 1, 2 in this order. Two threads take one value each, and a third thread (or a
/// victim) takes one too. The first taker to ask gets the first value. A value that the victim does
/// not take is left for another taker.
macro_rules! passing {
    ($new:expr, $object:ident, $value:ident => $put:expr, $take:expr) => {
        check!(how => async move {
            let object = Rc::new($new);
            let asked = Rc::new(Cell::new(0));
            let taken = Rc::new(RefCell::new(Vec::new()));
            let taker = || {
                let (object, asked, taken) = (object.clone(), asked.clone(), taken.clone());
                async move {
                    asked.set(asked.get() + 1);
                    let turn = asked.get() - 1;
                    let $object = &*object;
                    let value: u32 = $take.await;
                    taken.borrow_mut().push((turn, value));
                }
            };
            let putter = {
                let object = object.clone();
                spawn_local(async move {
                    let $object = &*object;
                    for $value in 0..3 {
                        let _ = $put.await;
                    }
                })
            };
            let takers = [(); 2].map(|()| spawn_local(taker()));
            match how {
                None => taker().await,
                Some(how) => doomed(how, taker()).await,
            }
            for taker in takers {
                taker.await.unwrap();
            }
            if taken.borrow().len() == 2 {
                taker().await; // takes the value that the victim has left
            }
            putter.await.unwrap();
            let mut taken = taken.take();
            if how.is_none() {
                assert!(taken.iter().all(|(turn, value)| turn == value), "not in turn: {taken:?}");
            }
            taken.sort_by_key(|taken| taken.1);
            let values: Vec<u32> = taken.iter().map(|taken| taken.1).collect();
            assert_eq!(values, [0, 1, 2]);
        });
    };
}

#[test]
fn mvar() {
    passing!(MVar::empty(), m, v => m.put(v), m.take());
    passing!(MVar::empty_local(), m, v => m.put(v), m.take());
}

#[test]
fn fifo() {
    passing!(Fifo::new(), f, v => { f.put(v); yield_now() }, f.take());
    passing!(Fifo::new_local(), f, v => { f.put(v); yield_now() }, f.take());
}

#[test]
fn bounded_fifo() {
    // No thread closes the queue.
    passing!(BoundedFifo::new(1), f, v => f.put(v), f.take().map(Option::unwrap));
    passing!(BoundedFifo::new_local(2), f, v => f.put(v), f.take().map(Option::unwrap));
}

/// The victim is a putter: its value is put as a whole or not at all, and the victim does not hold
/// up the other putters.
macro_rules! putting {
    ($new:expr, $object:ident, $value:ident => $put:expr, $take:expr, $try_take:expr) => {
        check!(how => async move {
            let object = Rc::new($new);
            let put = |$value: u32| {
                let object = object.clone();
                async move {
                    let $object = &*object;
                    let _ = $put.await;
                }
            };
            let others = [1, 2].map(|value| spawn_local(put(value)));
            let taken = Rc::new(RefCell::new(Vec::new()));
            let taker = {
                let (object, taken) = (object.clone(), taken.clone());
                spawn_local(async move {
                    while !(taken.borrow().contains(&1) && taken.borrow().contains(&2)) {
                        let $object = &*object;
                        let value: u32 = $take.await;
                        taken.borrow_mut().push(value);
                    }
                })
            };
            match how {
                None => put(3).await,
                Some(how) => doomed(how, put(3)).await,
            }
            for other in others {
                other.await.unwrap();
            }
            taker.await.unwrap();
            let $object = &*object;
            taken.borrow_mut().extend($try_take);
            let mut taken = taken.take();
            taken.sort();
            assert!(taken == [1, 2, 3] || how.is_some() && taken == [1, 2], "{taken:?}");
            assert!($try_take.is_none());
        });
    };
}

#[test]
fn putting_into_an_mvar() {
    putting!(MVar::empty(), m, v => m.put(v), m.take(), m.try_take());
    putting!(MVar::empty_local(), m, v => m.put(v), m.take(), m.try_take());
}

#[test]
fn putting_into_a_bounded_fifo() {
    // No thread closes the queue.
    putting!(BoundedFifo::new(1), f, v => f.put(v), f.take().map(Option::unwrap), f.try_take().ok());
    putting!(BoundedFifo::new_local(1), f, v => f.put(v), f.take().map(Option::unwrap), f.try_take().ok());
}

/// A giver gives two tokens, each with a notification. Two waiters take one token each, though a
/// third waiter may be notified and give up.
macro_rules! notified {
    ($mutex:expr, $condition:expr) => {
        check!(how => async move {
            let shared = Rc::new(($mutex, $condition));
            let waiter = || {
                let shared = shared.clone();
                async move {
                    let (tokens, given) = &*shared;
                    let mut tokens = given.wait_while(tokens.lock().await, |tokens| *tokens == 0).await;
                    *tokens -= 1;
                }
            };
            let waiters = [(); 2].map(|()| spawn_local(waiter()));
            let giver = {
                let shared = shared.clone();
                let tokens = if how.is_none() { 3 } else { 2 };
                spawn_local(async move {
                    for _ in 0..tokens {
                        *shared.0.lock().await += 1;
                        shared.1.notify_one();
                    }
                })
            };
            match how {
                None => waiter().await,
                Some(how) => {
                    doomed(how, waiter()).await;
                    giver.await.unwrap();
                    // If the victim has taken a token, one token is missing.
                    let missing = waiters.iter().filter(|waiter| !waiter.is_finished()).count();
                    for _ in 0..missing {
                        *shared.0.lock().await += 1;
                        shared.1.notify_one();
                    }
                }
            }
            for waiter in waiters {
                waiter.await.unwrap();
            }
        });
    };
}

#[test]
fn condition() {
    notified!(Mutex::new(0), Condition::new());
    notified!(Mutex::new_local(0), Condition::new_local());
}

/// A notification that was given to the victim goes to the next waiter, even if no other
/// notification comes.
macro_rules! passed_on {
    ($mutex:expr, $condition:expr) => {
        for how in [How::Thread, How::Race] {
            check(|| async move {
                let shared = Rc::new(($mutex, $condition));
                let took = Rc::new(Cell::new(0));
                let waiter = || {
                    let (shared, took) = (shared.clone(), took.clone());
                    async move {
                        let (tokens, given) = &*shared;
                        let mut tokens = given.wait_while(tokens.lock().await, |tokens| *tokens == 0).await;
                        *tokens -= 1;
                        took.set(took.get() + 1);
                    }
                };
                let other = spawn_local(waiter());
                let giver = {
                    let shared = shared.clone();
                    spawn_local(async move {
                        *shared.0.lock().await += 1;
                        shared.1.notify_one();
                    })
                };
                doomed(how, waiter()).await;
                giver.await.unwrap();
                if *shared.0.lock().await == 0 && took.get() == 1 && !other.is_finished() {
                    // The victim has taken the token; or the other waiter has taken it and has not
                    // ended yet.
                    *shared.0.lock().await += 1;
                    shared.1.notify_one();
                }
                other.await.unwrap();
            });
        }
    };
}

#[test]
fn notifications_go_on() {
    passed_on!(Mutex::new(0), Condition::new());
    passed_on!(Mutex::new_local(0), Condition::new_local());
}

/// No party passes the barrier before all have come, and one of them leads. A party that gives up
/// is not counted.
macro_rules! together {
    ($new:expr) => {
        check!(how => async move {
            let size = if how.is_none() { 3 } else { 2 };
            let barrier = Rc::new($new(size));
            let (came, leaders) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
            let party = || {
                let (barrier, came, leaders) = (barrier.clone(), came.clone(), leaders.clone());
                async move {
                    came.set(came.get() + 1);
                    let passed = barrier.wait().await;
                    assert!(came.get() >= size);
                    leaders.set(leaders.get() + u32::from(passed.is_leader()));
                }
            };
            let first = spawn_local(party());
            match how {
                None => {
                    let second = spawn_local(party());
                    party().await;
                    second.await.unwrap();
                    first.await.unwrap();
                    assert_eq!(leaders.get(), 1);
                }
                Some(how) => {
                    doomed(how, party()).await;
                    // The first party passes with the victim or with a party of the main thread.
                    drop(select(first, Box::pin(party())).await);
                }
            }
        });
    };
}

#[test]
fn barrier() {
    together!(Barrier::new);
    together!(Barrier::new_local);
}

macro_rules! happening {
    ($event:expr, $latch:expr) => {
        check!(how => async move {
            let shared = Rc::new(($event, $latch));
            let waiter = || {
                let shared = shared.clone();
                async move {
                    shared.0.wait().await;
                    assert!(shared.0.is_set());
                    shared.1.wait().await;
                    assert_eq!(shared.1.left(), 0);
                }
            };
            let waiters = [(); 2].map(|()| spawn_local(waiter()));
            let setter = {
                let shared = shared.clone();
                spawn_local(async move {
                    shared.1.count_down();
                    shared.0.set();
                    yield_now().await;
                    shared.1.count_down();
                })
            };
            match how {
                None => waiter().await,
                Some(how) => doomed(how, waiter()).await,
            }
            for thread in waiters.into_iter().chain([setter]) {
                thread.await.unwrap();
            }
            waiter().await;
        });
    };
}

#[test]
fn event_and_latch() {
    happening!(Event::new(), Latch::new(2));
    happening!(Event::new_local(), Latch::new_local(2));
}

/// The value is made once, by the first user that is not given up while it makes the value.
macro_rules! made_once {
    ($new:expr) => {
        check!(how => async move {
            let cell = Rc::new($new);
            let (begun, made) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
            let user = || {
                let (cell, begun, made) = (cell.clone(), begun.clone(), made.clone());
                async move {
                    let make = || async {
                        begun.set(begun.get() + 1);
                        yield_now().await;
                        made.set(made.get() + 1);
                        begun.get()
                    };
                    assert_eq!(*cell.get_or_init(make).await, begun.get());
                }
            };
            let users = [(); 2].map(|()| spawn_local(user()));
            match how {
                None => user().await,
                Some(how) => doomed(how, user()).await,
            }
            for user in users {
                user.await.unwrap();
            }
            user().await;
            assert_eq!(made.get(), 1);
            assert!(begun.get() == 1 || how.is_some() && begun.get() == 2);
        });
    };
}

#[test]
fn once_cell() {
    made_once!(OnceCell::new());
    made_once!(OnceCell::new_local());
}

macro_rules! promised {
    ($new:expr) => {
        for kept in [true, false] {
            check!(how => async move {
                let (fulfiller, promise) = $new;
                let claimer = || {
                    let promise = promise.clone();
                    async move { assert_eq!(promise.claim().await.ok(), kept.then_some(&7)) }
                };
                let claimers = [(); 2].map(|()| spawn_local(claimer()));
                let giver = spawn_local(async move {
                    yield_now().await;
                    if kept { fulfiller.fulfil(7) } else { drop(fulfiller) }
                });
                match how {
                    None => claimer().await,
                    Some(how) => doomed(how, claimer()).await,
                }
                for thread in claimers.into_iter().chain([giver]) {
                    thread.await.unwrap();
                }
                claimer().await;
            });
        }
    };
}

#[test]
fn promise() {
    promised!(Promise::<u32>::new());
    promised!(Promise::<u32, _>::new_local());
}

/// Every listener gets every value, in order. A listener that gave up one `listen` goes on at the
/// same value.
macro_rules! broadcasting {
    ($new:expr) => {
        check!(how => async move {
            let (broadcaster, listener) = $new(4);
            let all = [listener.clone(), listener.clone()].map(|mut listener| {
                spawn_local(async move {
                    let mut heard = Vec::new();
                    while let Ok(value) = listener.listen().await {
                        heard.push(value);
                    }
                    assert_eq!(heard, [0u32, 1]);
                })
            });
            let sender = spawn_local(async move {
                for value in 0..2 {
                    broadcaster.send(value);
                    yield_now().await;
                }
            });
            let listener = Rc::new(RefCell::new(listener));
            let heard = Rc::new(RefCell::new(Vec::new()));
            let listen = {
                let (listener, heard) = (listener.clone(), heard.clone());
                // Only the future that may be given up borrows the listener. No other code borrows
                // it meanwhile.
                #[expect(clippy::await_holding_refcell_ref, reason = "it is given up before the next one borrows")]
                async move {
                    let value = listener.borrow_mut().listen().await;
                    heard.borrow_mut().extend(value.ok());
                }
            };
            match how {
                None => listen.await,
                Some(how) => doomed(how, listen).await,
            }
            for thread in all.into_iter().chain([sender]) {
                thread.await.unwrap();
            }
            while let Ok(value) = listener.borrow_mut().try_listen() {
                heard.borrow_mut().push(value);
            }
            assert_eq!(heard.take(), [0, 1]);
        });
    };
}

#[test]
fn broadcast_to_all() {
    broadcasting!(broadcast);
    broadcasting!(broadcast_local);
}

/// A watcher sees the values in order, and it always sees the last value.
macro_rules! watching {
    ($new:expr) => {
        check!(how => async move {
            let (setter, watcher) = $new(0u32);
            let watch = |mut watcher: selvedge_sync::Watcher<u32, _>| async move {
                let mut last = 0;
                while last < 2 {
                    watcher.changed().await.unwrap();
                    let now = *watcher.latest();
                    assert!(now > last, "{now} after {last}");
                    last = now;
                }
            };
            let watchers = [(); 2].map(|()| spawn_local(watch(watcher.clone())));
            let setter = spawn_local(async move {
                setter.set(1);
                yield_now().await;
                setter.set(2);
                setter
            });
            match how {
                None => watch(watcher).await,
                Some(how) => doomed(how, watch(watcher)).await,
            }
            for watcher in watchers {
                watcher.await.unwrap();
            }
            drop(setter.await.unwrap());
        });
    };
}

#[test]
fn watching_a_value() {
    watching!(watch);
    watching!(watch_local);
}

/// Two threads and a victim take one value each, of two queues or of a third that comes last. What
/// the victim leaves stays in the queues.
macro_rules! taking_in_transactions {
    ($engine:ty) => {
        check!(how => async move {
            let (left, right) = (TQueue::<u32, $engine>::with_engine(), TQueue::<u32, $engine>::with_engine());
            let taken = Rc::new(RefCell::new(Vec::new()));
            let take = || {
                let (left, right, taken) = (left.clone(), right.clone(), taken.clone());
                async move {
                    let n = atomically_under::<$engine, _>(|tx| tx.or_else(|tx| left.pop(tx), |tx| right.pop(tx))).await;
                    taken.borrow_mut().push(n);
                }
            };
            let takers = [(); 2].map(|()| spawn_local(take()));
            let (one, other) = (left.clone(), right.clone());
            let giver = spawn_local(async move {
                atomically_under::<$engine, _>(|tx| other.push(tx, 1)).await;
                atomically_under::<$engine, _>(|tx| one.push(tx, 2).and(other.push(tx, 3))).await;
            });
            match how {
                None => take().await,
                Some(how) => doomed(how, take()).await,
            }
            for thread in takers.into_iter().chain([giver]) {
                thread.await.unwrap();
            }
            let rest = atomically_under::<$engine, _>(|tx| Ok([left.try_pop(tx)?, right.try_pop(tx)?])).await;
            let mut all = taken.take();
            all.extend(rest.into_iter().flatten());
            all.sort_unstable();
            assert_eq!(all, [1, 2, 3]);
        });
    };
}

#[test]
fn transactions() {
    taking_in_transactions!(Versioned);
    taking_in_transactions!(GlobalLock);
}

/// Three threads wait for predicates over two variables, of which one is given up.
macro_rules! waiting_for_predicates {
    ($engine:ty) => {
        check!(how => async move {
            let (x, y) = (TWord::<u32, $engine>::with_engine(0), TWord::<u32, $engine>::with_engine(0));
            let waits = |enough: u32| {
                let (x, y) = (x.clone(), y.clone());
                let sum = move |tx: &Tx<$engine>| Ok(x.read(tx)? + y.read(tx)? >= enough);
                atomically_under::<$engine, _>(move |tx| tx.wait_for(sum.clone()))
            };
            let waiters = [1, 2].map(|enough| spawn_local(waits(enough)));
            let writers = [&x, &y].map(|var| {
                let var = var.clone();
                spawn_local(async move { atomically_under::<$engine, _>(|tx| var.modify(tx, |n| n + 1)).await })
            });
            match how {
                None => waits(2).await,
                Some(how) => doomed(how, waits(2)).await,
            }
            for thread in waiters.into_iter().chain(writers) {
                thread.await.unwrap();
            }
            assert_eq!((x.read_now(), y.read_now()), (1, 1));
        });
    };
}

#[test]
fn waits_for_predicates() {
    waiting_for_predicates!(Versioned);
    waiting_for_predicates!(GlobalLock);
}

#[test]
fn transactional_mvar() {
    check!(how => async move {
        let var = TMVar::<u32>::empty();
        let (taken, takes) = (Rc::new(Cell::new(0)), var.clone());
        let sum = taken.clone();
        let taker = spawn_local(async move {
            for _ in 0..2 {
                sum.set(sum.get() + atomically_under::<Versioned, _>(|tx| takes.take(tx)).await);
            }
        });
        let put = |n: u32| {
            let var = var.clone();
            async move { atomically_under::<Versioned, _>(|tx| var.put(tx, n)).await }
        };
        let puts = [1, 10].map(|n| spawn_local(put(n)));
        match how {
            None => put(100).await,
            Some(how) => doomed(how, put(100)).await,
        }
        taker.await.unwrap();
        let rest = atomically_under::<Versioned, _>(|tx| var.try_take(tx)).await.unwrap_or(0);
        for thread in puts {
            thread.await.unwrap();
        }
        let last = atomically_under::<Versioned, _>(|tx| var.try_take(tx)).await.unwrap_or(0);
        let sum = taken.get() + rest + last;
        assert!(sum == 111 || sum == 11 && how.is_some(), "{sum}");
    });
}
