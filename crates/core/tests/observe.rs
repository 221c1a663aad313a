//! The calls that an observer gets, and that they do not change the threads.

#[path = "common/never.rs"]
mod never;

use never::Never;
use selvedge_core::observe::{
    End, Ended, Note, Object, Observer, Seen, ThreadId, WaitReason, named, nudge, observe, running,
    waits_for, waits_on,
};
use selvedge_core::{
    Cpu, Deadline, Interest, JoinHandle, Local, NoEvents, Readiness, Syscall, Time, Trace, WaitFd, WaitQueue,
    call, exit, fork, nbio, park, round_robin, round_robin_over, sleep_until, spawn, spawn_local, yield_now,
};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// All calls that the observers of the process have got.
static TOLD: Mutex<Vec<Told>> = Mutex::new(Vec::new());
/// The tests take turns, because the whole process is observed.
static TURNS: Mutex<()> = Mutex::new(());

#[derive(Debug, Clone, PartialEq)]
enum Told {
    Ended(u32, String),
    Several(u32, String),
    Turn,
    Asleep,
    Awake,
    Mail(usize),
    Named(u32, String),
    WaitsFor(u32, &'static str),
    WaitsOn(WaitReason),
    Length(&'static str, usize),
}

/// Whether the observers ask for the lengths of the queues.
static SURVEYS: AtomicBool = AtomicBool::new(false);

struct Teller;

fn tell(told: Told) {
    TOLD.lock().unwrap().push(told);
}

impl Observer for Teller {
    fn ended(&mut self, step: Ended) {
        let end = match step.end {
            End::Wait(readiness) => format!("Wait {}", readiness.fd),
            End::Sleep(_) => "Sleep".into(),
            End::Fork(_) => "Fork".into(),
            other => format!("{other:?}"),
        };
        let of = if step.several { Told::Several } else { Told::Ended };
        tell(of(step.thread.get(), end));
    }

    fn turn(&mut self, cpu: &Cpu) {
        let _ = cpu.threads();
        tell(Told::Turn);
    }

    fn asleep(&mut self) {
        tell(Told::Asleep);
    }

    fn awake(&mut self) {
        tell(Told::Awake);
    }

    fn note(&mut self, note: Note) {
        match note {
            Note::Mail(n) => tell(Told::Mail(n)),
            other => panic!("{other:?}"),
        }
    }

    fn named(&mut self, thread: ThreadId, name: &Arc<str>) {
        tell(Told::Named(thread.get(), name.to_string()));
    }

    fn waits_for(&mut self, other: u32, tie: &'static str) {
        tell(Told::WaitsFor(other, tie));
    }

    fn waits_on(&mut self, reason: WaitReason) {
        tell(Told::WaitsOn(reason));
    }

    fn surveys(&mut self) -> bool {
        SURVEYS.load(Ordering::Relaxed)
    }

    fn length(&mut self, queue: &'static str, length: usize) {
        tell(Told::Length(queue, length));
    }

    fn surveyed(&mut self) {
        SURVEYS.store(false, Ordering::Relaxed);
    }

    fn seen(&self, thread: ThreadId) -> Option<Seen> {
        let waits_for = Some((thread.get(), "which it is"));
        Some(Seen {
            called: Some("it".into()),
            call: "waits".into(),
            since: Some(Duration::from_secs(2)),
            waits_for,
        })
    }
}

/// The program is observed while this lives.
struct Observing(#[expect(dead_code, reason = "it is held")] MutexGuard<'static, ()>);

fn observing() -> Observing {
    let turn = TURNS.lock().unwrap_or_else(|e| e.into_inner());
    TOLD.lock().unwrap().clear();
    observe(Some(|_| Box::new(Teller)));
    Observing(turn)
}

impl Drop for Observing {
    fn drop(&mut self) {
        observe(None);
        TOLD.lock().unwrap_or_else(|e| e.into_inner()).clear();
    }
}

/// The ends of the steps so far.
fn ends() -> Vec<String> {
    let told = std::mem::take(&mut *TOLD.lock().unwrap());
    let ends = told.into_iter().filter_map(|told| match told {
        Told::Ended(_, end) => Some(end),
        Told::Several(_, end) => Some(end + ", ..."),
        _ => None,
    });
    ends.collect()
}

struct Ask;
impl Syscall for Ask {
    type Reply = u8;
}

/// Steps a thread that ends its steps in all possible ways. Returns the nodes by name.
fn all_ends() -> Vec<&'static str> {
    let mut cpu = Cpu::new().unwrap();
    let mut nodes = Vec::new();
    let thread = cpu.thread(async {
        yield_now().await;
        fork(async {}).await;
        nbio(|| ()).await;
        let read = Readiness { fd: 7, deadline: Deadline::NEVER, interest: Interest::READ, fresh: true };
        WaitFd::new(read).await;
        sleep_until(Time::now() + Duration::from_millis(1)).await;
        assert_eq!(call(Ask).await, 3);
        park(|waker| waker.wake()).await;
        let child = spawn_local(yield_now());
        child.await.unwrap();
        exit().await;
    });
    let mut ready = vec![thread.unwrap()];
    while let Some(thread) = ready.pop().or_else(|| cpu.woken()) {
        let node = match thread.step(&mut cpu) {
            Trace::Yield(thread) => (ready.push(thread), "Yield").1,
            Trace::Fork { child, parent } => (ready.extend([parent, child]), "Fork").1,
            Trace::Nbio(action) => (ready.push(action.perform()), "Nbio").1,
            Trace::Wait(wait) => (ready.push(wait.thread), "Wait").1,
            Trace::Sleep(sleep) => {
                std::thread::sleep(sleep.until().since(Time::now()));
                ready.push(sleep.into_thread());
                "Sleep"
            }
            Trace::Call(call) => (ready.extend(call.take::<Ask>().unwrap().1.reply(3)), "Call").1,
            Trace::Detached => "Any",
            Trace::Blocked => "Blocked",
            Trace::Ret => "Ret",
            Trace::Panic(_) => "Panic",
        };
        nodes.push(node);
    }
    nodes
}

#[test]
fn every_end_of_a_step_is_told_and_the_scheduler_gets_the_same_nodes() {
    let turn = TURNS.lock().unwrap_or_else(|e| e.into_inner());
    let unobserved = all_ends();
    assert_eq!(ends(), [""; 0]);
    drop(turn);
    let _observing = observing();
    assert_eq!(all_ends(), unobserved);
    let call = format!("Call({:?})", std::any::type_name::<Ask>());
    let told = ends();
    // The waker of `park` may still be held elsewhere. That changes how the thread waits from there
    // on, observed or not.
    let expected = [
        "Yield", "Fork", "Return", "Nbio", "Wait 7", "Sleep", &call, "Yield", "Join", "Yield", "Return",
        "Return",
    ];
    assert_eq!(told, expected);
    assert_eq!(unobserved.len(), expected.len());
}

#[test]
fn the_thread_that_a_thread_waits_for() {
    let _observing = observing();
    let mut joined = None;
    round_robin(async {
        let other = spawn_local(async {
            yield_now().await;
            7
        });
        assert_eq!(other.await.unwrap(), 7);
    })
    .unwrap();
    for told in std::mem::take(&mut *TOLD.lock().unwrap()) {
        match told {
            Told::WaitsFor(other, "which it joins") => joined = Some(other),
            Told::Ended(thread, end) if end == "Return" && joined == Some(thread) => return,
            _ => {}
        }
    }
    panic!("the main thread waits for the other, which ends later");
}

#[test]
fn a_thread_that_waits_for_several_things() {
    let _observing = observing();
    let mut cpu = Cpu::new().unwrap();
    let fds =
        [3, 4].map(|fd| Readiness { fd, deadline: Deadline::NEVER, interest: Interest::READ, fresh: true });
    let thread = cpu.thread(async move {
        futures::future::join(WaitFd::new(fds[0]), WaitFd::new(fds[1])).await;
    });
    assert!(matches!(thread.unwrap().step(&mut cpu), Trace::Detached));
    assert_eq!(ends(), ["Wait 3, ..."]);
}

#[test]
fn turns_sleep_and_mail() {
    let _observing = observing();
    round_robin_over(&mut NoEvents::new(), async {
        let done = Arc::new(AtomicBool::new(false));
        while !done.load(Ordering::Acquire) {
            let done = done.clone();
            park(move |waker| {
                std::thread::spawn(move || {
                    while !TOLD.lock().unwrap().contains(&Told::Asleep) {
                        std::thread::yield_now();
                    }
                    done.store(true, Ordering::Release);
                    waker.wake();
                });
            })
            .await;
        }
    })
    .unwrap();
    let told = std::mem::take(&mut *TOLD.lock().unwrap());
    let asleep = told.iter().position(|t| *t == Told::Asleep).unwrap();
    assert_eq!(told[asleep + 1], Told::Awake);
    let mail = told.iter().position(|t| *t == Told::Mail(1)).unwrap();
    assert!(mail > asleep && told.contains(&Told::Turn), "{told:?}");
}

#[test]
fn names_and_the_running_thread_seen_from_another_os_thread() {
    static SEEN: AtomicU32 = AtomicU32::new(0);
    let _observing = observing();
    round_robin(async {
        spawn(async {
            named(&"the busy one".into());
            let me = ThreadId::current().unwrap();
            let watcher = std::thread::spawn(move || {
                let found = running().into_iter().find(|(_, thread)| *thread == me);
                assert!(me.info().unwrap().name().contains("names_and_the_running_thread"));
                SEEN.store(found.unwrap().1.get(), Ordering::Relaxed);
            });
            watcher.join().unwrap();
            assert_eq!(SEEN.load(Ordering::Relaxed), me.get());
        })
        .await
        .unwrap();
    })
    .unwrap();
    assert!(ThreadId::current().is_none());
    let named = Told::Named(SEEN.load(Ordering::Relaxed), "the busy one".into());
    assert!(TOLD.lock().unwrap().contains(&named));
    // The CPU of that thread is gone.
    assert!(!running().iter().any(|(_, thread)| thread.get() == SEEN.load(Ordering::Relaxed)));
}

#[test]
fn it_begins_and_ends_while_a_scheduler_runs() {
    let turn = TURNS.lock().unwrap_or_else(|e| e.into_inner());
    TOLD.lock().unwrap().clear();
    round_robin(async {
        for _ in 0..600 {
            yield_now().await;
        }
        assert_eq!(ends(), [""; 0]);
        observe(Some(|_| Box::new(Teller)));
        for _ in 0..600 {
            yield_now().await;
        }
        // The observer sees each step from some turn on.
        let told = ends();
        assert!(told.len() >= 300 && told.iter().all(|end| end == "Yield"), "{}", told.len());
        observe(None);
        for _ in 0..600 {
            yield_now().await;
        }
        assert!(ends().len() <= 300);
        for _ in 0..10 {
            yield_now().await;
        }
        assert_eq!(ends(), [""; 0]);
        // The CPU is not observed, so no observer is told.
        waits_for(1, "which is no thread");
        nudge(0);
    })
    .unwrap();
    drop(turn);
}

#[test]
fn what_a_thread_waits_for_and_the_lengths_of_the_queues() {
    let _observing = observing();
    let reason = || WaitReason { call: "read", object: Object::Part { fd: 5, offset: 4096, length: 512 } };
    round_robin(async move {
        waits_on(reason);
        let others: Vec<_> = (0..3).map(|_| spawn_local(async { yield_now().await })).collect();
        SURVEYS.store(true, Ordering::Relaxed);
        // This is longer than a turn. After a turn the scheduler polls the event source.
        for _ in 0..600 {
            yield_now().await;
        }
        let told = std::mem::take(&mut *TOLD.lock().unwrap());
        assert!(told.contains(&Told::WaitsOn(reason())));
        let lengths = told.iter().filter(|told| matches!(told, Told::Length(..)));
        // The lengths are told once, because the survey is over then.
        assert_eq!(lengths.collect::<Vec<_>>(), [&Told::Length("woken", 1)]);
        assert!(!SURVEYS.load(Ordering::Relaxed));
        drop(others);
    })
    .unwrap();
}

#[test]
fn a_deadlock_is_told_with_what_the_observer_knows() {
    let _observing = observing();
    let ended = round_robin(async {
        // The other thread joins itself.
        let own = Rc::new(RefCell::new(None::<JoinHandle<()>>));
        let theirs = own.clone();
        let other = spawn_local(async move {
            let itself = theirs.borrow_mut().take().expect("put there before it runs");
            itself.await.unwrap();
        });
        *own.borrow_mut() = Some(other);
        WaitQueue::<(), (), Local>::new(()).wait::<Never>(()).await;
    });
    let Err(selvedge_core::RunError::Deadlock(deadlock)) = ended else { panic!("{ended:?}") };
    let text = deadlock.to_string();
    let [one, _] = &deadlock.threads[..] else { panic!("{text}") };
    assert_eq!(one.seen().unwrap().called.as_deref(), Some("it"));
    let cycles = deadlock.cycles();
    assert_eq!(cycles.len(), 2, "each waits for itself, it says");
    let id = one.id();
    assert!(
        text.contains(&format!("\n  cycle: thread {id} \"it\" waits for itself, which it is\n")),
        "{text}"
    );
    let line =
        format!("\n  thread {id} \"it\" ({}): waits, for 2.0s; for thread {id}, which it is", one.name());
    assert!(text.contains(&line), "{text}");
}
