//! The event loop of futures that run outside any scheduler of ours: under tokio, `futures::executor` and the like.
//!
//! There it is no scheduler that passes requests on, and none that polls. So the first such request starts an OS thread
//! with an epoll set and a timer wheel of its own; requests go into its table under a lock and come back through the
//! wakers they were made with.

use crate::epoll::{BATCH, Driver, UNPARK};
use crate::readiness::Wakes;
use crate::sys::{self, Fd};
use crate::unpark::Caller;
use rustix::event::Timespec;
use rustix::io::Errno;
use selvedge_core::{PerProcess, Quiet, Request, Time, Unpark, quietly, set_fallback};
use std::io;
use std::mem::MaybeUninit;
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::task::Waker;
use std::time::Duration;

/// Makes this loop the one that serves requests from outside any scheduler. Called wherever such a request may begin.
#[inline]
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| set_fallback(serve));
}

/// The loop, once there is one. It is never ended. The child of a `fork(2)` starts another, because it has not the OS thread.
static GLOBAL: PerProcess<Mutex<Option<&'static Global>>> = PerProcess::new();

#[derive(Debug)]
struct Global {
    state: Mutex<State>,
    caller: Caller,
}

#[derive(Debug)]
struct State {
    driver: Driver<Waker>,
    /// While the loop's OS thread waits and nothing is awaited. Who makes a request ends it.
    quiet: Option<Quiet>,
}

impl Wakes for Waker {
    fn is_replaced_by(&self, newer: &Waker) -> bool {
        self.will_wake(newer)
    }
}

/// How long an executor's thread is held up per request while no event loop can be had, for lack of descriptors.
const WITHOUT_LOOP: Duration = Duration::from_millis(10);

/// Takes over a request from outside any scheduler.
fn serve(request: Request, waker: Waker) {
    let global = {
        let mut global = lock(GLOBAL.get(Mutex::default));
        global.or_else(|| Global::start().inspect(|new| *global = Some(new)).ok())
    };
    match global {
        Some(global) => global.submit(request, waker),
        None => {
            std::thread::sleep(WITHOUT_LOOP);
            waker.wake();
        }
    }
}

impl Global {
    fn start() -> io::Result<&'static Global> {
        let (driver, caller) = (Driver::new()?, Caller::new()?);
        driver.add_unpark(&caller)?;
        let epoll = driver.epoll().clone();
        let global = Global { state: Mutex::new(State { driver, quiet: None }), caller };
        let (sender, receiver) = channel::<&'static Global>();
        let run = move || receiver.recv().into_iter().for_each(|global| global.run(&epoll));
        std::thread::Builder::new().name("selvedge-io".into()).spawn(run)?;
        // Not sooner: without its OS thread it is to go again.
        let global: &'static Global = Box::leak(Box::new(global));
        sender.send(global).expect("its OS thread waits for it");
        Ok(global)
    }

    fn submit(&self, request: Request, waker: Waker) {
        let mut state = lock(&self.state);
        let driver = &mut state.driver;
        let before = driver.next();
        // Woken without the lock, as below. There is more than one only when a descriptor is new.
        let mut ready = Vec::new();
        match request {
            Request::Wait(readiness) => driver.wait(waker, readiness, Time::now(), |waker| ready.push(waker)),
            Request::Sleep(alarm) => driver.set(waker, alarm),
            other => panic!("{other:?} was asked outside of a Selvedge thread, where no scheduler serves it"),
        }
        let left = std::mem::take(driver.left());
        let sooner = driver.next().is_some_and(|next| before.is_none_or(|before| next < before));
        if driver.armed() > 0 {
            state.quiet = None;
        }
        drop(state);
        drop(left);
        if sooner {
            self.caller.unpark();
        }
        for waker in ready {
            waker.wake();
        }
    }

    fn run(&self, epoll: &Fd) {
        let mut batch = Box::new([MaybeUninit::uninit(); BATCH]);
        let mut ready: Vec<Waker> = Vec::new();
        loop {
            let next = {
                let mut state = lock(&self.state);
                let driver = &mut state.driver;
                driver.tidy();
                driver.resolve();
                let (armed, next) = (driver.armed(), driver.next());
                state.quiet = (armed == 0).then(Quiet::new);
                next
            };
            let asleep = self.caller.fall_asleep();
            let wait = match (asleep, next) {
                (false, _) => Some(Duration::ZERO),
                (true, next) => next.map(|next| next.since(Time::now())),
            };
            let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
            let taken = sys::epoll_wait(epoll, &mut batch[..], wait.as_ref());
            if asleep {
                self.caller.wake_up();
            }
            let events = match taken {
                Ok(events) => events,
                Err(Errno::INTR) => &[],
                Err(error) => panic!("epoll_wait: {error}"),
            };
            let mut state = lock(&self.state);
            state.quiet = None;
            let driver = &mut state.driver;
            for &event in events {
                if event.data.u64() != UNPARK {
                    driver.event(event, |waker| ready.push(waker));
                }
            }
            driver.expire(Time::now(), |waker| ready.push(waker));
            let left = std::mem::take(driver.left());
            drop(state);
            quietly(|| drop(left));
            // Without the lock: waking may poll the future at once, which may come back with its next request.
            for waker in ready.drain(..) {
                quietly(|| waker.wake());
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
