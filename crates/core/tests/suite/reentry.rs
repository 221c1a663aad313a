//! Code of the program that uses a wait queue from within an operation on it, or from within a
//! waker.

use selvedge_core::{Cpu, Local, Mode, Queue, Role, Shared, Trace, WaitQueue, spawn_local};
use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::process::Command;
use std::rc::Rc;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

/// Takes the value in the state, or is handed one later.
enum Take {}

impl Role<Option<u64>, Option<u64>> for Take {
    type Output = u64;

    fn attempt(state: &mut Option<u64>, _: &mut Queue<'_, Option<u64>>, _: &mut Option<u64>) -> Option<u64> {
        state.take()
    }

    fn granted(payload: &mut Option<u64>) -> u64 {
        payload.take().unwrap()
    }

    fn abandoned(state: &mut Option<u64>, _: &mut Queue<'_, Option<u64>>, payload: &mut Option<u64>) {
        *state = payload.take();
    }

    fn retry(state: &mut Option<u64>, _: &mut Queue<'_, Option<u64>>) -> Option<u64> {
        state.take()
    }
}

type Object<M> = WaitQueue<Option<u64>, Option<u64>, M>;

fn put<M: Mode>(object: &Object<M>, value: u64) {
    object.with(|state, queue| match queue.front() {
        Some(payload) => {
            *payload = Some(value);
            queue.grant();
        }
        None => *state = Some(value),
    });
}

#[test]
#[ignore = "ends its process"]
fn drops_a_wait_within_an_operation() {
    let object = Object::<Local>::new(None);
    let mut waits = Box::pin(object.wait::<Take>(None));
    assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let dropped = catch_unwind(AssertUnwindSafe(|| object.with(|_, _| drop(waits))));
    println!("came back: {}", dropped.is_ok());
}

#[test]
#[cfg_attr(miri, ignore = "starts a process")]
fn a_wait_that_is_dropped_within_an_operation_ends_the_process_before_its_memory_goes() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "reentry::drops_a_wait_within_an_operation", "--ignored", "--nocapture"]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{output:?}");
    assert!(said.contains("a wait was dropped within an operation on its own object"), "{said}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("came back"), "{output:?}");
}

#[test]
fn an_exchange_of_the_word_is_an_operation_too() {
    let object = Object::<Local>::with_word(Some(1), 5);
    let mut within = None;
    let exchanged = object.exchange(|word| {
        within = Some((
            catch_unwind(AssertUnwindSafe(|| object.with(|state, _| state.take()))).is_err(),
            object.exchange(|word| Some(word + 1)),
            object.word(),
        ));
        Some(word + 2)
    });
    assert_eq!(exchanged, Ok(5));
    assert_eq!(within, Some((true, Err(None), 5)), "nothing else is let in");
    assert_eq!((object.word(), object.with(|state, _| *state)), (7, Some(1)));
}

#[test]
fn an_exchange_that_panics_leaves_the_word() {
    let object = Object::<Local>::with_word(None, 5);
    let panicked = catch_unwind(AssertUnwindSafe(|| object.exchange(|_| panic!("as it should"))));
    assert!(panicked.is_err());
    assert_eq!(object.exchange(|_| None), Err(Some(5)));
    assert_eq!(object.exchange(|word| Some(word + 1)), Ok(5));
}

thread_local! {
    /// The function that a nosy waker calls whenever it is cloned, woken or dropped.
    static NOSY: RefCell<Option<Rc<dyn Fn()>>> = const { RefCell::new(None) };
}

/// A waker that runs code of the program whenever it is cloned, woken or dropped.
fn nosy() -> Waker {
    static VTABLE: RawWakerVTable = RawWakerVTable::new(
        |data| {
            pry();
            RawWaker::new(data, &VTABLE)
        },
        |_| pry(),
        |_| pry(),
        |_| pry(),
    );
    fn pry() {
        let look = NOSY.try_with(|look| look.borrow().clone()).ok().flatten();
        if let Some(look) = look {
            look();
        }
    }
    // SAFETY: the functions use no data, and may be called on any OS thread.
    unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &VTABLE)) }
}

/// Runs every operation that fires, clones or drops a waker, while that waker looks at the object.
fn with_nosy_wakers<M: Mode>() {
    let object = Rc::new(Object::<M>::new(None));
    let (looks, of) = (Rc::new(std::cell::Cell::new(0)), object.clone());
    let count = looks.clone();
    let looked = move || {
        count.set(count.get() + 1);
        of.with(|_, queue| queue.is_empty());
    };
    NOSY.set(Some(Rc::new(looked)));
    let looked_since = |what: &str, times: &mut u32| {
        assert!(looks.get() > *times, "{what} runs the waker's code");
        *times = looks.get();
    };
    let mut times = 0;
    {
        let waker = nosy();
        let mut cx = Context::from_waker(&waker);
        let mut first = pin!(object.wait::<Take>(None));
        assert!(first.as_mut().poll(&mut cx).is_pending());
        looked_since("a first poll", &mut times);
        assert!(first.as_mut().poll(&mut cx).is_pending());
        looked_since("a second poll", &mut times);
        object.with(|_, queue| queue.nudge());
        looked_since("a nudge", &mut times);
        // The nudge has used up the waker. A grant before the next poll finds no other waker.
        put(&object, 6);
        assert_eq!(first.as_mut().poll(&mut cx), Poll::Ready(6));
        let mut nudged = pin!(object.wait::<Take>(None));
        assert!(nudged.as_mut().poll(&mut cx).is_pending());
        object.with(|state, queue| {
            *state = Some(7);
            queue.nudge();
        });
        assert_eq!(nudged.as_mut().poll(&mut cx), Poll::Ready(7));
        let mut granted = pin!(object.wait::<Take>(None));
        assert!(granted.as_mut().poll(&mut cx).is_pending());
        times = looks.get();
        put(&object, 8);
        looked_since("a grant", &mut times);
        assert_eq!(granted.as_mut().poll(&mut cx), Poll::Ready(8));
        let mut given_up = Box::pin(object.wait::<Take>(None));
        assert!(given_up.as_mut().poll(&mut cx).is_pending());
        times = looks.get();
        drop(given_up);
        looked_since("giving up", &mut times);
    }
    NOSY.set(None);
}

#[test]
fn a_waker_may_come_back_to_the_object_that_it_is_kept_by() {
    with_nosy_wakers::<Local>();
    with_nosy_wakers::<Shared>();
}

/// A waker that panics when it is dropped, and when it is woken.
struct Panics;

impl std::task::Wake for Panics {
    fn wake(self: std::sync::Arc<Self>) {
        panic!("as it should");
    }
}

impl Drop for Panics {
    fn drop(&mut self) {
        panic!("as it should");
    }
}

#[test]
fn a_waker_that_panics_does_not_panic_again_while_its_thread_unwinds() {
    /// A destructor that grants a waiter its value.
    struct Puts<'a>(&'a Object<Shared>);
    impl Drop for Puts<'_> {
        fn drop(&mut self) {
            put(self.0, 1);
        }
    }
    let object = Object::new(None);
    let panics = std::mem::ManuallyDrop::new(Waker::from(std::sync::Arc::new(Panics)));
    let mut cx = Context::from_waker(&panics);
    let mut granted = pin!(object.wait::<Take>(None));
    assert!(granted.as_mut().poll(&mut cx).is_pending());
    let mut given_up = Box::pin(object.wait::<Take>(None));
    assert!(given_up.as_mut().poll(&mut cx).is_pending());
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let _puts = Puts(&object);
        let _given_up = given_up;
        panic!("the first");
    }));
    assert_eq!(unwound.unwrap_err().downcast_ref(), Some(&"the first"));
    assert_eq!(granted.as_mut().poll(&mut cx), Poll::Ready(1));
    let panics = std::mem::ManuallyDrop::into_inner(panics);
    assert!(catch_unwind(AssertUnwindSafe(|| drop(panics))).is_err());
}

/// A step of a thread of another CPU is made within a step.
#[test]
fn a_step_within_a_step_gives_the_outer_cpu_back() {
    let mut cpu = Cpu::new().unwrap();
    let thread = cpu.thread(async {
        let mut inner = Cpu::new().unwrap();
        let step = inner.thread(async {}).unwrap().step(&mut inner);
        assert!(matches!(step, Trace::Ret));
        drop(inner);
        drop(spawn_local(async {}));
    });
    assert!(matches!(thread.unwrap().step(&mut cpu), Trace::Ret));
    assert!(matches!(cpu.woken().expect("it was spawned on the outer one").step(&mut cpu), Trace::Ret));
    assert!(!selvedge_core::in_thread());
}

#[test]
fn the_debug_of_an_object_runs_no_code_of_the_programs_under_its_lock() {
    struct Nosy<'a>(&'a Object<Local>, Option<Pin<Box<dyn Future<Output = u64> + 'a>>>);
    impl std::fmt::Write for Nosy<'_> {
        fn write_str(&mut self, _: &str) -> std::fmt::Result {
            self.1 = None;
            put(self.0, 1);
            Ok(())
        }
    }
    let object = Object::new(None);
    let mut waits: Pin<Box<dyn Future<Output = u64>>> = Box::pin(object.wait::<Take>(None));
    assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let mut nosy = Nosy(&object, Some(waits));
    std::fmt::write(&mut nosy, format_args!("{object:?}")).unwrap();
    assert_eq!(object.with(|state, _| *state), Some(1));
}
