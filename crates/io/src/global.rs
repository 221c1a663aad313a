//! The event loop of futures that run outside the schedulers of this project: under tokio,
//! `futures::executor` and others. The functions of this crate that make a request call [`install`]
//! first.
//!
//! On such an executor no scheduler passes requests on, and none polls an event loop. So the first
//! request starts an OS thread with an epoll set and a timer wheel of its own. A request goes into
//! the loop's table under a lock, and the loop answers it through the request's waker.

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

/// Makes this loop serve the requests from outside any scheduler. Every function that can make such
/// a request calls this.
#[inline]
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| set_fallback(serve));
}

/// The loop, once it has started. It never ends. The child of a `fork(2)` starts another loop,
/// because the child does not have the loop's OS thread.
static GLOBAL: PerProcess<Mutex<Option<&'static Global>>> = PerProcess::new();

#[derive(Debug)]
struct Global {
    state: Mutex<FallbackState>,
    caller: Caller,
}

#[derive(Debug)]
struct FallbackState {
    driver: Driver<Waker>,
    /// Present while the loop's OS thread waits and no request is open. A new request removes it.
    quiet: Option<Quiet>,
}

impl Wakes for Waker {
    fn is_replaced_by(&self, newer: &Waker) -> bool {
        self.will_wake(newer)
    }
}

/// How long a request holds up its executor's OS thread while no event loop can be started, for
/// lack of descriptors.
const WITHOUT_LOOP: Duration = Duration::from_millis(10);

/// Takes a request from outside any scheduler.
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
        let global = Global { state: Mutex::new(FallbackState { driver, quiet: None }), caller };
        let (sender, receiver) = channel::<&'static Global>();
        let run = move || receiver.recv().into_iter().for_each(|global| global.run(&epoll));
        std::thread::Builder::new().name("selvedge-io".into()).spawn(run)?;
        // The value is leaked only here, after the OS thread has started. Without its OS thread,
        // the value is dropped.
        let global: &'static Global = Box::leak(Box::new(global));
        sender.send(global).expect("its OS thread waits for it");
        Ok(global)
    }

    fn submit(&self, request: Request, waker: Waker) {
        let mut state = lock(&self.state);
        let driver = &mut state.driver;
        let before = driver.next();
        // `submit` wakes these wakers after it has released the lock, like `run`. There is more
        // than one waker only when a descriptor is new.
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
            // The wakers are woken without the lock, because waking may poll the future at once,
            // and that poll may make the next request.
            for waker in ready.drain(..) {
                quietly(|| waker.wake());
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
