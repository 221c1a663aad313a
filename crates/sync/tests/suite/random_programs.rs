//! Random programs of threads, under the reference scheduler and under a scheduler that picks at
//! random. Every value is delivered once, and when no thread can run any more, each waiting thread
//! has reason to wait.

use futures::channel::oneshot;
use futures::future::{Either, select};
use proptest::prelude::*;
use selvedge_core::*;
use selvedge_sync::MVar;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

const VARS: usize = 3;
/// The time is short, so that some alarms fire within a step or two.
const NAP: Duration = Duration::from_micros(50);

#[derive(Debug, Clone)]
enum Op {
    Yield,
    Put(usize),
    Take(usize),
    /// Takes from the first variable that has a value; the other `take` gives up.
    TakeEither(usize, usize),
    TakeOrNap(usize),
    TakeWhileYielding(usize),
    /// Asks for a sleep, and takes the request back.
    NapGivenUp,
    /// Takes, behind a foreign waker. When that waker is woken or dropped, it takes from the
    /// variable.
    TakeBehindNosy(usize),
    /// Writes the variable's `Debug` to a writer that then gives up a `take` of the variable.
    Show(usize),
    /// Waits for another OS thread.
    Foreign,
    Fork(Vec<Op>),
    Join(Vec<Op>),
    SpawnUnobserved(Vec<Op>),
    JoinCancelled(Vec<Op>),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let var = 0..VARS;
    let leaf = prop_oneof![
        3 => Just(Op::Yield),
        6 => var.clone().prop_map(Op::Put),
        4 => var.clone().prop_map(Op::Take),
        2 => (var.clone(), var.clone()).prop_map(|(a, b)| Op::TakeEither(a, b)),
        1 => var.clone().prop_map(Op::TakeOrNap),
        1 => var.clone().prop_map(Op::TakeWhileYielding),
        1 => var.clone().prop_map(Op::TakeBehindNosy),
        1 => var.prop_map(Op::Show),
        1 => Just(Op::NapGivenUp),
        1 => Just(Op::Foreign),
    ];
    let few = if cfg!(miri) { 3 } else { 6 };
    let some = prop::collection::vec(leaf, 0..few);
    some.prop_recursive(3, 24, 4, move |inner| {
        let with_children = prop_oneof![
            inner.clone().prop_map(Op::Fork),
            inner.clone().prop_map(Op::Join),
            inner.clone().prop_map(Op::SpawnUnobserved),
            inner.clone().prop_map(Op::JoinCancelled),
        ];
        (inner, prop::collection::vec(with_children, 0..3)).prop_map(|(mut ops, children)| {
            for (i, child) in children.into_iter().enumerate() {
                ops.insert((i * 2).min(ops.len()), child);
            }
            ops
        })
    })
}

type Pry = Rc<dyn Fn(usize)>;

thread_local! {
    /// Takes from a variable of the running program, if there is a value.
    static PRY: RefCell<Option<Pry>> = const { RefCell::new(None) };
}

/// A waker that takes from a variable when it is woken or dropped.
struct Nosy(usize, Waker);

impl Nosy {
    fn pry(&self) {
        let pry = PRY.with_borrow(Clone::clone);
        pry.into_iter().for_each(|pry| pry(self.0));
    }
}

impl Wake for Nosy {
    fn wake(self: Arc<Self>) {
        self.pry();
        self.1.wake_by_ref();
    }
}

impl Drop for Nosy {
    fn drop(&mut self) {
        self.pry();
    }
}

/// A writer that drops the waiting future when it is written to.
struct GivesUp<'a>(Option<Pin<Box<dyn Future<Output = ()> + 'a>>>);

impl fmt::Write for GivesUp<'_> {
    fn write_str(&mut self, _: &str) -> fmt::Result {
        self.0 = None;
        Ok(())
    }
}

/// The state that the threads of a program share and leave behind.
struct World<M: Mode> {
    vars: Vec<MVar<u32, M>>,
    next: Cell<u32>,
    put: RefCell<BTreeSet<u32>>,
    taken: RefCell<Vec<u32>>,
    /// For each thread, the operation that it is in at present.
    at: RefCell<BTreeMap<u32, Op>>,
    os_threads: RefCell<Vec<std::thread::JoinHandle<()>>>,
}

impl<M: Mode> World<M> {
    fn new(var: impl Fn() -> MVar<u32, M>) -> Rc<World<M>> {
        Rc::new(World {
            vars: (0..VARS).map(|_| var()).collect(),
            next: Cell::new(0),
            put: RefCell::default(),
            taken: RefCell::default(),
            at: RefCell::default(),
            os_threads: RefCell::default(),
        })
    }

    fn number(&self) -> u32 {
        self.next.set(self.next.get() + 1);
        self.next.get()
    }

    fn got(&self, value: u32) {
        self.taken.borrow_mut().push(value);
    }
}

/// Removes the thread's entry in `at` when the thread ends, in any way.
struct Alive<M: Mode>(Rc<World<M>>, u32);

impl<M: Mode> Drop for Alive<M> {
    fn drop(&mut self) {
        self.0.at.borrow_mut().remove(&self.1);
    }
}

fn thread<M: Mode>(world: Rc<World<M>>, ops: Vec<Op>) -> Pin<Box<dyn Future<Output = ()>>> {
    let alive = Alive(world.clone(), world.number());
    world.at.borrow_mut().insert(alive.1, Op::Yield);
    Box::pin(async move {
        // The closure captures the whole value, and not its number alone.
        let alive = alive;
        for op in ops {
            world.at.borrow_mut().insert(alive.1, op.clone());
            match op {
                Op::Yield => yield_now().await,
                Op::Put(v) => {
                    let value = world.number();
                    world.vars[v].put(value).await;
                    world.put.borrow_mut().insert(value);
                }
                Op::Take(v) => world.got(world.vars[v].take().await),
                Op::TakeEither(a, b) => {
                    let (a, b) = (pin!(world.vars[a].take()), pin!(world.vars[b].take()));
                    let (Either::Left((value, _)) | Either::Right((value, _))) = select(a, b).await;
                    world.got(value);
                }
                Op::TakeOrNap(v) => {
                    let (take, nap) = (pin!(world.vars[v].take()), pin!(sleep(NAP)));
                    if let Either::Right((value, _)) = select(nap, take).await {
                        world.got(value);
                    }
                }
                Op::TakeWhileYielding(v) => {
                    // The value is noted at once, because a thread that is cancelled between the
                    // yields has taken it all the same.
                    let take = async { world.got(world.vars[v].take().await) };
                    futures::join!(take, yield_now(), yield_now());
                }
                Op::TakeBehindNosy(v) => {
                    let mut take = pin!(world.vars[v].take());
                    let value = poll_fn(|cx| {
                        let nosy = Waker::from(Arc::new(Nosy(v, cx.waker().clone())));
                        take.as_mut().poll(&mut Context::from_waker(&nosy))
                    });
                    world.got(value.await);
                }
                Op::Show(v) => {
                    let mut take = Box::pin(async { world.got(world.vars[v].take().await) });
                    let waits = futures::poll!(take.as_mut()).is_pending();
                    let mut gives_up = GivesUp(waits.then_some(take));
                    write!(gives_up, "{:?}", world.vars[v]).unwrap();
                }
                Op::NapGivenUp => {
                    let mut nap = Box::pin(sleep(Duration::from_secs(1000)));
                    assert!(futures::poll!(nap.as_mut()).is_pending());
                }
                Op::Foreign => {
                    let (send, receive) = oneshot::channel();
                    world
                        .os_threads
                        .borrow_mut()
                        .push(std::thread::spawn(move || send.send(()).unwrap_or(())));
                    receive.await.unwrap();
                }
                Op::Fork(ops) => fork_local(thread(world.clone(), ops)).await,
                Op::Join(ops) => spawn_local(thread(world.clone(), ops)).await.unwrap(),
                Op::SpawnUnobserved(ops) => drop(spawn_local(thread(world.clone(), ops))),
                Op::JoinCancelled(ops) => {
                    let inner = thread(world.clone(), ops);
                    let ended = spawn_local(async move {
                        futures::future::select(inner, yield_now()).await;
                        exit().await
                    });
                    assert!(matches!(ended.await, Err(JoinError::Cancelled)));
                }
            }
        }
    })
}

/// The event source for sleeps. Time passes when all threads wait.
#[derive(Default)]
struct Clock {
    threads: Vec<selvedge_core::Sleep>,
    wakers: Vec<(Time, std::task::Waker)>,
}

impl Clock {
    fn submit(&mut self, cpu: &mut Cpu, node: Trace) {
        match node {
            Trace::Sleep(sleep) => self.threads.push(sleep),
            Trace::Detached => {
                while let Some(Detached { request, waker, .. }) = cpu.detached() {
                    let Request::Sleep(alarm) = request else { panic!("{request:?}") };
                    self.wakers.push((alarm.until(), waker));
                }
            }
            other => panic!("{other:?}"),
        }
    }

    /// Lets a nap pass. It wakes requests for later times too, because their askers have given up.
    fn pass(&mut self, cpu: &mut Cpu) {
        std::thread::sleep(2 * NAP);
        self.threads.drain(..).for_each(|sleep| cpu.make_ready(sleep.into_thread()));
        self.wakers.drain(..).for_each(|(_, waker)| cpu.wake(waker));
    }
}

fn run<M: Mode>(world: Rc<World<M>>, program: Vec<Vec<Op>>, seed: Option<u64>) {
    let of = world.clone();
    PRY.set(Some(Rc::new(move |v| of.vars[v].try_take().into_iter().for_each(|value| of.got(value)))));
    let mut cpu = Cpu::new().unwrap();
    let mut clock = Clock::default();
    let mut ready: Vec<Thread> = Vec::new();
    let mut random = seed.unwrap_or(0);
    for ops in program {
        ready.push(cpu.thread(thread(world.clone(), ops)).unwrap());
    }
    let mut idle = 0;
    // The program is over when it was idle for several turns: then naps have ended, and the
    // wake-ups from other OS threads have come.
    while idle < 3 {
        while let Some(thread) = cpu.woken() {
            ready.push(thread);
        }
        if ready.is_empty() {
            idle += 1;
            world.os_threads.take().into_iter().for_each(|t| t.join().unwrap());
            clock.pass(&mut cpu);
            continue;
        }
        idle = 0;
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let thread = match seed {
            Some(_) => ready.swap_remove((random >> 33) as usize % ready.len()),
            None => ready.remove(0),
        };
        match thread.step(&mut cpu) {
            Trace::Yield(thread) => ready.push(thread),
            Trace::Fork { child, parent } => ready.extend([child, parent]),
            Trace::Blocked | Trace::Ret => {}
            Trace::Panic(panic) => panic!("{panic}"),
            other => clock.submit(&mut cpu, other),
        }
    }
    // No thread waits for a value that is there.
    let full: Vec<bool> = world
        .vars
        .iter()
        .map(|var| {
            let value = var.try_take();
            value.into_iter().for_each(|v| world.got(v));
            value.is_some()
        })
        .collect();
    assert_eq!(cpu.waiting(), cpu.threads().len(), "{:?}", cpu.threads());
    for op in world.at.borrow().values() {
        match op {
            Op::Put(v) => assert!(full[*v], "waits to put into an empty variable"),
            Op::Take(v) | Op::TakeWhileYielding(v) | Op::TakeBehindNosy(v) => {
                assert!(!full[*v], "waits to take from a full one")
            }
            Op::TakeEither(a, b) => assert!(!full[*a] && !full[*b], "waits to take from full ones"),
            Op::Join(_) | Op::JoinCancelled(_) => {}
            lost => panic!("{lost:?} was never resumed"),
        }
    }
    // The remaining values come out of the variables one by one, as their putters get their turn.
    // After that each value was delivered once.
    drop(cpu);
    for var in &world.vars {
        while let Some(value) = var.try_take() {
            world.got(value);
        }
    }
    assert!(world.at.borrow().is_empty(), "the CPU's end cancels all");
    let mut taken = world.taken.take();
    let all = taken.len();
    taken.sort();
    taken.dedup();
    assert_eq!(taken.len(), all, "a value was delivered twice");
    for value in world.put.borrow().iter() {
        assert!(taken.binary_search(value).is_ok(), "the value {value} was lost");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 1 } else { 400 },
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn in_turn(program in prop::collection::vec(ops(), 1..5)) {
        run(World::new(MVar::empty_local), program.clone(), None);
        run(World::new(MVar::empty), program, None);
    }

    #[test]
    fn in_any_order(program in prop::collection::vec(ops(), 1..5), seed: u64) {
        run(World::new(MVar::empty_local), program.clone(), Some(seed));
        run(World::new(MVar::empty), program, Some(seed));
    }
}
