//! The stack, and the two threads that are its event loop.

use crate::engine::StackEngine;
use crate::options::StackOptions;
use crate::wire::Wire;
use selvedge_core::{JoinHandle, Time, spawn};
use selvedge_io::time::{sleep_until, timeout};
use smoltcp::time::Instant;
use std::fmt;
use std::future::{pending, poll_fn};
use std::io;
use std::mem;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A network stack of the program, at one end of a [`Wire`].
///
/// Its clones are the same stack. When the last clone and the last socket are gone, it goes on
/// until the peers have acknowledged what was written, for [`StackOptions::linger`] at most.
/// [`finish`](Self::finish) waits for that, and tells how much was lost. When the program ends, its
/// threads end, and those of the stack too.
///
/// A frame costs one search in a table of the connections, and each operation of a socket
/// takes the one lock of the stack. A frame for an address of the stack itself does not go to the
/// wire: the stack takes it.
///
/// # Paper
/// [LZ07 §6]: "this loop is driven by packet I/O events, timer events, and user thread requests".
#[derive(Clone)]
pub struct Stack(Arc<StackThreads>);

/// A stack and its threads, which end with it.
struct StackThreads {
    shared: Arc<StackState>,
}

struct StackState {
    engine: Mutex<StackEngine>,
    wire: Arc<dyn Wire>,
    alarm: Mutex<NextTimer>,
}

/// The thread that sleeps until the next timer.
#[derive(Default)]
struct NextTimer {
    set_to: Option<Instant>,
    sleeper: Option<Waker>,
}

impl Stack {
    /// Starts a stack: two threads, within a running program.
    ///
    /// # Panics
    /// Outside of a thread.
    ///
    /// # Examples
    /// ```
    /// use selvedge::stack::{SimulatedWire, Stack, StackOptions, TcpListener, TcpStream, Weather};
    ///
    /// # fn main() -> Result<(), selvedge::SchedulerError> {
    /// selvedge::run(async {
    ///     let (left, right) = SimulatedWire::pair(7, Weather { lost: 20, ..Weather::default() });
    ///     let options = |last: u8| {
    ///         let options = StackOptions::new().hardware([2, 0, 0, 0, 0, last]);
    ///         options.address([10, 0, 0, last].into(), 24).unwrap()
    ///     };
    ///     let (loom, mill) = (Stack::start(options(1), left), Stack::start(options(2), right));
    ///
    ///     let listener = TcpListener::bind(&mill, "10.0.0.2:80".parse().unwrap()).unwrap();
    ///     let weaver = selvedge::spawn(async move {
    ///         let (stream, _) = listener.accept().await.unwrap();
    ///         stream.write_all(b"cloth").await.unwrap();
    ///     });
    ///     let stream = TcpStream::connect(&loom, "10.0.0.2:80".parse().unwrap()).await.unwrap();
    ///     let mut cloth = [0; 5];
    ///     stream.read_exact(&mut cloth).await.unwrap();
    ///     assert_eq!(&cloth, b"cloth");
    ///     weaver.await.unwrap();
    /// })
    /// # }
    /// ```
    pub fn start(options: StackOptions, wire: impl Wire) -> Stack {
        let engine = Mutex::new(StackEngine::new(options, instant(Time::now())));
        let shared = Arc::new(StackState { engine, wire: Arc::new(wire), alarm: Mutex::default() });
        let input = spawn(worker_tcp_input(shared.clone()));
        drop(spawn(worker_tcp_timer(shared.clone(), input)));
        Stack(Arc::new(StackThreads { shared }))
    }

    /// Waits until the peers have acknowledged all that was written to the stack's connections, and
    /// their ends, for `limit` at most. Returns the bytes that no peer has acknowledged: the bytes
    /// that are still on their way, and those of streams that the program had dropped before their
    /// peers went away.
    ///
    /// # Examples
    /// ```
    /// use selvedge::stack::{SimulatedWire, Stack, StackOptions, TcpListener, TcpStream, Weather};
    /// use std::time::Duration;
    ///
    /// # fn main() -> Result<(), selvedge::SchedulerError> {
    /// selvedge::run(async {
    ///     let (left, right) = SimulatedWire::pair(7, Weather::default());
    ///     let options = |last: u8| {
    ///         let options = StackOptions::new().hardware([2, 0, 0, 0, 0, last]);
    ///         options.address([10, 0, 0, last].into(), 24).unwrap()
    ///     };
    ///     let (loom, mill) = (Stack::start(options(1), left), Stack::start(options(2), right));
    ///     let listener = TcpListener::bind(&mill, "10.0.0.2:80".parse().unwrap()).unwrap();
    ///     let stream = TcpStream::connect(&loom, "10.0.0.2:80".parse().unwrap()).await.unwrap();
    ///     stream.write_all(b"cloth").await.unwrap();
    ///     drop(stream);
    ///     assert_eq!(loom.finish(Duration::from_secs(5)).await, 0);
    ///     # drop(listener);
    /// })
    /// # }
    /// ```
    pub async fn finish(&self, limit: Duration) -> u64 {
        let settled = poll_fn(|cx| self.poll(cx, |engine, _, waker| engine.is_settled(waker).then_some(())));
        // After the limit the sum says the same as the error.
        let _ = timeout(limit, settled).await;
        self.operate(|engine, _| engine.unacknowledged_bytes())
    }

    /// Makes an attempt that gets the waker of the calling thread. If it gives nothing, the thread
    /// waits for what the attempt has given the waker to.
    pub(crate) fn poll<R>(
        &self,
        cx: &Context<'_>,
        attempt: impl FnOnce(&mut StackEngine, Instant, &mut Option<Waker>) -> Option<R>,
    ) -> Poll<R> {
        // To clone a waker and to drop one may run any code, so both happen outside of the lock.
        let mut waker = Some(cx.waker().clone());
        match self.operate(|engine, now| attempt(engine, now, &mut waker)) {
            Some(result) => Poll::Ready(result),
            None => Poll::Pending,
        }
    }

    /// As [`Wire::takes`].
    pub(crate) fn takes(&self, local: SocketAddr, peer: Option<SocketAddr>) -> bool {
        self.0.shared.wire.takes(local, peer)
    }

    /// Does something with the state, sends the frames that come of it, and wakes threads.
    pub(crate) fn operate<R>(&self, f: impl FnOnce(&mut StackEngine, Instant) -> R) -> R {
        self.0.shared.operate(f)
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stack").finish_non_exhaustive()
    }
}

impl Drop for StackThreads {
    fn drop(&mut self) {
        // The timer's thread sees that the stack is over, or wakes when it is.
        self.shared.operate(|engine, now| engine.end(now));
    }
}

impl StackState {
    fn operate<R>(&self, f: impl FnOnce(&mut StackEngine, Instant) -> R) -> R {
        let (result, frames, woken, next) = {
            let mut engine = self.engine.lock().unwrap();
            let now = instant(selvedge_core::now());
            let result = f(&mut engine, now);
            engine.loop_back(now);
            let woken = mem::take(&mut *engine.woken.lock().unwrap());
            (result, mem::take(&mut engine.frames.to_go), woken, engine.next_event())
        };
        if !frames.is_empty() {
            self.wire.send_all(&frames);
        }
        let sleeper = {
            let mut alarm = self.alarm.lock().unwrap();
            let sooner = next.is_some_and(|next| alarm.set_to.is_none_or(|set_to| next < set_to));
            if sooner { alarm.sleeper.take() } else { None }
        };
        woken.into_iter().chain(sleeper).for_each(Waker::wake);
        result
    }
}

/// Takes frames from the wire to their sockets: the packet I/O of the paper.
async fn worker_tcp_input(shared: Arc<StackState>) {
    loop {
        match shared.wire.receive().await {
            Ok(frames) => shared.operate(|engine, now| {
                for frame in frames {
                    engine.take(frame, now);
                }
            }),
            Err(error) => return shared.operate(|engine, _| engine.fail(error.kind())),
        }
        // A wire that always has frames must not hold up the other threads.
        selvedge_core::yield_now().await;
    }
}

/// Sleeps until the next timer, and lets its socket send again: the timer events of the paper.
/// It outlives the [`Stack`] while there is something to send, and ends `input` with itself.
async fn worker_tcp_timer(shared: Arc<StackState>, input: JoinHandle<()>) {
    loop {
        let (over, next) = shared.operate(|engine, now| {
            engine.expire(now);
            (engine.is_over(now), engine.next_event())
        });
        if over {
            return input.cancel();
        }
        // Timers that expire all the time must not hold up the other threads.
        selvedge_core::yield_now().await;
        let expiry = async {
            match next {
                Some(at) => sleep_until(Time::from_nanos(at.total_micros() as u64 * 1000)).await,
                None => pending().await,
            }
        };
        let mut expiry = pin!(expiry);
        poll_fn(|cx| {
            let alarm = NextTimer { set_to: next, sleeper: Some(cx.waker().clone()) };
            let before = mem::replace(&mut *shared.alarm.lock().unwrap(), alarm);
            drop(before);
            // A timer that was set before the lines above found no sleeper to wake.
            let now_next = shared.engine.lock().unwrap().next_event();
            if now_next.is_some_and(|at| next.is_none_or(|next| at < next)) {
                return Poll::Ready(());
            }
            expiry.as_mut().poll(cx)
        })
        .await;
    }
}

/// A time as smoltcp counts it, rounded up, so that no timer that has expired seems to be ahead.
fn instant(time: Time) -> Instant {
    Instant::from_micros(time.as_nanos().div_ceil(1000) as i64)
}

/// The error of a socket if the stack takes no more frames.
pub(crate) fn broken(kind: io::ErrorKind) -> io::Error {
    io::Error::new(kind, "the wire of the stack is broken")
}
