//! hyper's runtime: I/O, a clock and executors.
//!
//! With the feature `hyper-server`, [`serve`] is a whole server. It is an accept loop of ours with
//! a thread for each connection. A program with other needs writes this loop itself:
//!
//! ```
//! use http_body_util::{BodyExt, Empty, Full};
//! use hyper::body::Bytes;
//! use hyper::service::service_fn;
//! use hyper::{Request, Response};
//! use selvedge_compat::Compat;
//! use selvedge_compat::hyper::Clock;
//! use selvedge::{round_robin_over, spawn_local};
//! use selvedge::EventLoop;
//! use selvedge::net::{TcpListener, TcpStream};
//! use std::convert::Infallible;
//!
//! async fn serve(listener: TcpListener) -> std::io::Result<()> {
//!     let mut http = hyper::server::conn::http1::Builder::new();
//!     http.timer(Clock);
//!     loop {
//!         let (stream, _) = listener.accept().await?;
//!         let body = || Full::<Bytes>::from("hello");
//!         let hello = move |_| async move { Ok::<_, Infallible>(Response::new(body())) };
//!         let connection = http.serve_connection(Compat::new(stream), service_fn(hello));
//!         // Dropping the handle lets the thread run on.
//!         drop(spawn_local(async move {
//!             if let Err(error) = connection.await {
//!                 eprintln!("{error}");
//!             }
//!         }));
//!     }
//! }
//!
//! round_robin_over(&mut EventLoop::new()?, async {
//!     let listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
//!     let address = listener.local_addr();
//!     drop(spawn_local(serve(listener)));
//!
//!     let stream = Compat::new(TcpStream::connect(address).await?);
//!     let (mut requests, connection) = hyper::client::conn::http1::handshake(stream).await?;
//!     drop(spawn_local(connection));
//!     let request = Request::get("/").header("host", "localhost").body(Empty::<Bytes>::new())?;
//!     let answer = requests.send_request(request).await?;
//!     assert_eq!(answer.into_body().collect().await?.to_bytes(), "hello");
//!     Ok::<(), Box<dyn std::error::Error>>(())
//! })??;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Time-outs within hyper (`header_read_timeout`, say) need the
//! [`Clock`]; HTTP/2 needs an executor besides, [`Spawn`] or [`SpawnLocal`].

#[cfg(feature = "hyper-server")]
#[path = "serve.rs"]
mod serve;

#[cfg(feature = "hyper-server")]
pub use serve::{PeerAddr, Serve, ServeError, serve};

use crate::compat::write_as;
use crate::{Compat, PollRead};
use hyper::rt::{Executor, Read, ReadBufCursor, Timer, Write};
use pin_project_lite::pin_project;
use selvedge_core::{SleepUntil, Time, spawn, spawn_local};
use selvedge_io::time::sleep_until;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

impl<S: PollRead + Unpin> Read for Compat<S> {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // SAFETY: nothing is de-initialised: it is only ever written to.
        let free = unsafe { buffer.as_mut() };
        let read = ready!(this.io.poll_read_uninit(&mut this.read, cx, free))?;
        // SAFETY: the start of the free part has `read` bytes that were read: each implementation
        // of `PollRead` promises that.
        unsafe { buffer.advance(read) };
        Poll::Ready(Ok(()))
    }
}

write_as!(Write, poll_shutdown, is_write_vectored);

/// hyper's timer by the clock and the event loop of the thread that waits.
///
/// A time-out that is moved on again and again, as hyper does with each request of a connection,
/// sets no new timer until the old one has gone off.
///
/// # Examples
/// ```
/// use selvedge_compat::hyper::Clock;
///
/// let mut http = hyper::server::conn::http1::Builder::new();
/// http.timer(Clock).header_read_timeout(std::time::Duration::from_secs(10));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock;

impl Clock {
    /// [`Time`]'s origin. All instants that [`Clock`] gives out or takes are counted from here, so
    /// that hyper's time is ours, in whatever way ours passes.
    fn origin() -> Instant {
        static ORIGIN: OnceLock<Instant> = OnceLock::new();
        *ORIGIN.get_or_init(|| {
            let now = Instant::now();
            now.checked_sub(Duration::from_nanos(Time::now().as_nanos())).unwrap_or(now)
        })
    }

    fn time(instant: Instant) -> Time {
        Time::default() + instant.saturating_duration_since(Clock::origin())
    }
}

impl Timer for Clock {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(MovableSleep::new(Time::now() + duration))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(MovableSleep::new(Clock::time(deadline)))
    }

    fn now(&self) -> Instant {
        Clock::origin() + Duration::from_nanos(Time::now().as_nanos())
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn hyper::rt::Sleep>>, new_deadline: Instant) {
        match sleep.as_mut().downcast_mut_pin::<MovableSleep>() {
            Some(sleep) => sleep.reset(Clock::time(new_deadline)),
            None => *sleep = self.sleep_until(new_deadline),
        }
    }
}

pin_project! {
    /// A sleep with an end that can be moved.
    #[derive(Debug)]
    struct MovableSleep {
        until: Time,
        // The alarm is set to this: to `until`, or to an earlier end from before it was moved.
        set_to: Time,
        #[pin]
        alarm: SleepUntil,
    }
}

impl MovableSleep {
    fn new(until: Time) -> MovableSleep {
        MovableSleep { until, set_to: until, alarm: sleep_until(until) }
    }

    fn reset(self: Pin<&mut Self>, until: Time) {
        let mut this = self.project();
        *this.until = until;
        if until < *this.set_to {
            *this.set_to = until;
            this.alarm.set(sleep_until(until));
        }
    }
}

impl Future for MovableSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        loop {
            ready!(this.alarm.as_mut().poll(cx));
            if *this.set_to >= *this.until {
                return Poll::Ready(());
            }
            *this.set_to = *this.until;
            this.alarm.set(sleep_until(*this.until));
        }
    }
}

impl hyper::rt::Sleep for MovableSleep {}

/// An executor for futures that may move between OS threads: each becomes a thread of ours, created
/// as by [`spawn`].
///
/// A future that no task waits for any more runs on; its panic is reported and ends that thread
/// alone.
///
/// # Panics
/// When it is used outside of a thread of ours, where there is no scheduler to run the future.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spawn;

impl<F> Executor<F> for Spawn
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        drop(spawn(future));
    }
}

/// An executor for all futures: each becomes a thread that stays on its OS thread, created as by
/// [`spawn_local`]. As [`Spawn`] otherwise.
///
/// # Panics
/// When it is used outside of a thread of ours.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpawnLocal;

impl<F: Future + 'static> Executor<F> for SpawnLocal {
    fn execute(&self, future: F) {
        drop(spawn_local(future));
    }
}

#[cfg(feature = "futures-io")]
pin_project! {
    /// hyper's I/O traits for what has those of `futures-io`: a TLS connection, for one.
    ///
    /// Reading initialises the memory it reads to, since `futures-io` asks for that.
    pub struct FuturesIo<T> {
        #[pin]
        io: T,
    }
}

#[cfg(feature = "futures-io")]
mod from_futures_io {
    use super::*;
    use futures_io::{AsyncRead, AsyncWrite};
    use std::fmt;
    use std::io::IoSlice;

    impl<T> FuturesIo<T> {
        /// Adapts a stream.
        pub fn new(io: T) -> FuturesIo<T> {
            FuturesIo { io }
        }

        /// The stream itself.
        pub fn get_ref(&self) -> &T {
            &self.io
        }

        /// Gives the stream back.
        pub fn into_inner(self) -> T {
            self.io
        }
    }

    impl<T: fmt::Debug> fmt::Debug for FuturesIo<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_tuple("FuturesIo").field(&self.io).finish()
        }
    }

    impl<T: AsyncRead> Read for FuturesIo<T> {
        fn poll_read(
            self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            mut buffer: ReadBufCursor<'_>,
        ) -> Poll<io::Result<()>> {
            let free = buffer.initialize_unfilled();
            let room = free.len();
            let read = ready!(self.project().io.poll_read(cx, free))?;
            assert!(read <= room, "a stream has read {read} bytes to a place for {room}");
            // SAFETY: all of the free part is initialised, and has at least `read` bytes.
            unsafe { buffer.advance(read) };
            Poll::Ready(Ok(()))
        }
    }

    impl<T: AsyncWrite> Write for FuturesIo<T> {
        fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            self.project().io.poll_write(cx, bytes)
        }

        fn poll_write_vectored(
            self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            parts: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            self.project().io.poll_write_vectored(cx, parts)
        }

        fn is_write_vectored(&self) -> bool {
            // `futures-io` does not tell; what is not vectored writes the first part then.
            true
        }

        fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.project().io.poll_flush(cx)
        }

        fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.project().io.poll_close(cx)
        }
    }
}
