//! The event loop of futures that run outside the schedulers of this project: under tokio,
//! `futures::executor` and others. The functions of this crate that make a request call [`install`]
//! first.
//!
//! On such an executor no scheduler passes requests on, and none polls an event loop. So the first
//! request starts an OS thread with an epoll set and a timer wheel of its own. A request goes into
//! the loop's table under a lock, and the loop answers it through the request's waker.

use super::epoll::{BATCH, Reactor, UNPARK};
use super::unparker::Unparker;
use crate::sys::{self, Fd};
use rustix::event::Timespec;
use rustix::io::Errno;
use selvedge_core::internal::{PerProcess, quietly};
use selvedge_core::{Quiet, Request, Time, Unpark, set_fallback};
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
static FALLBACK: PerProcess<Mutex<Option<&'static FallbackLoop>>> = PerProcess::new();

#[derive(Debug)]
struct FallbackLoop {
    state: Mutex<FallbackState>,
    unparker: Unparker,
}

#[derive(Debug)]
struct FallbackState {
    reactor: Reactor<Waker>,
    /// Present while the loop's OS thread waits and no request is open. A new request removes it.
    quiet: Option<Quiet>,
}

/// How long a request holds up its executor's OS thread while no event loop can be started, for
/// lack of descriptors.
const WITHOUT_LOOP: Duration = Duration::from_millis(10);

/// Takes a request from outside any scheduler.
fn serve(request: Request, waker: Waker) {
    let fallback = {
        let mut fallback = lock(FALLBACK.get(Mutex::default));
        fallback.or_else(|| FallbackLoop::start().inspect(|new| *fallback = Some(new)).ok())
    };
    match fallback {
        Some(fallback) => fallback.submit(request, waker),
        None => {
            std::thread::sleep(WITHOUT_LOOP);
            waker.wake();
        }
    }
}

impl FallbackLoop {
    fn start() -> io::Result<&'static FallbackLoop> {
        let (reactor, unparker) = (Reactor::new()?, Unparker::new()?);
        reactor.add_unpark(&unparker)?;
        let epoll = reactor.epoll().clone();
        let fallback = FallbackLoop { state: Mutex::new(FallbackState { reactor, quiet: None }), unparker };
        let (sender, receiver) = channel::<&'static FallbackLoop>();
        let run = move || receiver.recv().into_iter().for_each(|fallback| fallback.run(&epoll));
        std::thread::Builder::new().name("selvedge-io".into()).spawn(run)?;
        // The value is leaked only here, after the OS thread has started. Without its OS thread,
        // the value is dropped.
        let fallback: &'static FallbackLoop = Box::leak(Box::new(fallback));
        sender.send(fallback).expect("its OS thread waits for it");
        Ok(fallback)
    }

    fn submit(&self, request: Request, waker: Waker) {
        let mut state = lock(&self.state);
        let reactor = &mut state.reactor;
        let before = reactor.next();
        // `submit` wakes these wakers after it has released the lock, like `run`. There is more
        // than one waker only when a descriptor is new.
        let mut ready = Vec::new();
        match request {
            Request::Wait(readiness) => {
                reactor.wait(waker, readiness, Time::now(), |waker| ready.push(waker))
            }
            Request::Sleep(alarm) => reactor.set(waker, alarm),
            other => panic!("{other:?} was asked outside of a Selvedge thread, where no scheduler serves it"),
        }
        let left = std::mem::take(reactor.left());
        let sooner = reactor.next().is_some_and(|next| before.is_none_or(|before| next < before));
        if reactor.armed() > 0 {
            state.quiet = None;
        }
        drop(state);
        drop(left);
        if sooner {
            self.unparker.unpark();
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
                let reactor = &mut state.reactor;
                reactor.tidy();
                reactor.resolve();
                let (armed, next) = (reactor.armed(), reactor.next());
                state.quiet = (armed == 0).then(Quiet::new);
                next
            };
            let asleep = self.unparker.fall_asleep();
            let wait = match (asleep, next) {
                (false, _) => Some(Duration::ZERO),
                (true, next) => next.map(|next| next.since(Time::now())),
            };
            let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
            let taken = sys::epoll_wait(epoll, &mut batch[..], wait.as_ref());
            if asleep {
                self.unparker.wake_up();
            }
            let events = match taken {
                Ok(events) => events,
                Err(Errno::INTR) => &[],
                Err(error) => panic!("epoll_wait: {error}"),
            };
            let mut state = lock(&self.state);
            state.quiet = None;
            let reactor = &mut state.reactor;
            for &event in events {
                if event.data.u64() != UNPARK {
                    reactor.event(event, |waker| ready.push(waker));
                }
            }
            reactor.expire(Time::now(), |waker| ready.push(waker));
            let left = std::mem::take(reactor.left());
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
