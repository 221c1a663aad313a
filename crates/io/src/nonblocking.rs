//! Descriptors that threads can wait for, and how a blocking call is made of non-blocking ones.

use crate::event_loop::LoopId;
use crate::places::Places;
use selvedge_core::{Deadline, Interest, Readiness, Time, WaitFd};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

/// An owned descriptor in non-blocking mode: a socket, a pipe, a terminal, an eventfd.
///
/// It makes blocking calls of non-blocking ones, after the pattern *try; if it would block, wait and try again*:
///
/// ```
/// # use selvedge_io::NonBlocking;
/// # use std::{io, os::fd::OwnedFd};
/// async fn read(pipe: &NonBlocking<OwnedFd>, buffer: &mut [u8]) -> io::Result<usize> {
///     pipe.read_with(|fd| Ok(rustix::io::read(fd, &mut *buffer)?)).await
/// }
/// ```
///
/// Per direction it keeps a deadline and a note that the descriptor is *drained*. After a call that would have
/// blocked, or one that [`drained`](Self::drained) was told of, the next one waits before it tries: the failing call is
/// not made twice.
///
/// Any number of threads may use it at once; each event resumes all of those who wait for it. A thread that never
/// has to wait lets the others run after every 64th call.
///
/// # Paper
/// [LZ07 Figure 11]: `sock_accept`, a blocking call built from a non-blocking one and `sys_epoll_wait`.
///
/// # Differences
/// 1. The paper's call registers with epoll for each wait; here the descriptor is registered once.
/// 2. A wait may end by a deadline.
pub struct NonBlocking<T> {
    io: T,
    places: Places,
    // All of these are advice, and right in the end whatever is read: relaxed atomics.
    read_drained: AtomicBool,
    write_drained: AtomicBool,
    /// How many calls have been made since the last wait or yield.
    streak: AtomicU8,
    /// [`Time`] in nanoseconds; 0 for none.
    read_deadline: AtomicU64,
    write_deadline: AtomicU64,
}

/// A thread that finds its descriptor ready this many times in a row lets the others run: a peer that is faster than we
/// are must not keep a worker to itself.
const STREAK_MAX: u8 = 64;

impl<T: AsFd> NonBlocking<T> {
    /// Puts a descriptor into non-blocking mode and takes it over.
    ///
    /// The mode belongs to the open file, which other descriptors may share: those of a terminal, say, with the shell.
    ///
    /// # Errors
    /// If the kernel refuses the mode.
    pub fn new(io: T) -> io::Result<NonBlocking<T>> {
        crate::sys::set_nonblocking(&io)?;
        Ok(NonBlocking::assume(io))
    }

    /// Takes over a descriptor that is in non-blocking mode already.
    pub(crate) fn assume(io: T) -> NonBlocking<T> {
        crate::global::install();
        NonBlocking {
            io,
            places: Places::default(),
            read_drained: AtomicBool::new(false),
            write_drained: AtomicBool::new(false),
            streak: AtomicU8::new(0),
            read_deadline: AtomicU64::new(0),
            write_deadline: AtomicU64::new(0),
        }
    }

    /// Makes a call that may find nothing to read, and waits for as long as it does.
    ///
    /// `call` is repeated while it fails with `WouldBlock` or `Interrupted`.
    ///
    /// # Errors
    /// Any other error of `call`; `TimedOut` when the [read deadline](Self::set_read_deadline) passes.
    #[inline]
    pub fn read_with<R, C>(&self, call: C) -> Repeat<'_, T, C>
    where
        C: FnMut(&T) -> io::Result<R> + Unpin,
    {
        Repeat { wait: Waiting::new(self, Interest::READ), call }
    }

    /// Makes a call that may find no room to write, and waits for as long as it does. As [`read_with`](Self::read_with)
    /// otherwise.
    ///
    /// # Errors
    /// Any other error of `call`; `TimedOut` when the [write deadline](Self::set_write_deadline) passes.
    #[inline]
    pub fn write_with<R, C>(&self, call: C) -> Repeat<'_, T, C>
    where
        C: FnMut(&T) -> io::Result<R> + Unpin,
    {
        Repeat { wait: Waiting::new(self, Interest::WRITE), call }
    }

    /// Waits until there may be something to read. It is a hint: the call that follows may find nothing after all, above all
    /// in a combinator (`select!`, a time-out), where it ends whenever it is polled again.
    ///
    /// # Errors
    /// `TimedOut` when the [read deadline](Self::set_read_deadline) passes.
    #[inline]
    pub fn readable(&self) -> Waiting<'_, T> {
        Waiting::new(self, Interest::READ)
    }

    /// Waits until there may be room to write. It is a hint, as [`readable`](Self::readable) is.
    ///
    /// # Errors
    /// `TimedOut` when the [write deadline](Self::set_write_deadline) passes.
    #[inline]
    pub fn writable(&self) -> Waiting<'_, T> {
        Waiting::new(self, Interest::WRITE)
    }

    /// Sets the point in time at which reads that still wait fail with `TimedOut`; `None` for no such point. It holds for all
    /// waits that begin later, until it is set again.
    ///
    /// A deadline is exact to about a [tick](crate::wheel::Tick::RESOLUTION), and costs no timer operation as long as it
    /// only ever moves on.
    #[inline]
    pub fn set_read_deadline(&self, deadline: Option<Time>) {
        self.read_deadline.store(deadline.map_or(0, |t| t.as_nanos().max(1)), Relaxed);
    }

    /// Sets the point in time at which writes fail. As [`set_read_deadline`](Self::set_read_deadline) otherwise.
    #[inline]
    pub fn set_write_deadline(&self, deadline: Option<Time>) {
        self.write_deadline.store(deadline.map_or(0, |t| t.as_nanos().max(1)), Relaxed);
    }

    /// Notes that nothing is left to read (or no room to write), so that the next call waits first. For streams a
    /// short read or write says so.
    ///
    /// Saying so when it is not true may make the next call wait for ever, since what is there already is not
    /// reported again.
    #[inline]
    pub fn drained(&self, direction: Interest) {
        if direction.contains(Interest::READ) {
            self.read_drained.store(true, Relaxed);
        }
        if direction.contains(Interest::WRITE) {
            self.write_drained.store(true, Relaxed);
        }
    }

    /// Makes the next yield come sooner, by so many calls: for calls that take long.
    pub(crate) fn tire(&self, calls: u8) {
        self.streak.store(self.streak.load(Relaxed).saturating_add(calls), Relaxed);
    }
}

impl<T> NonBlocking<T> {
    fn is_drained(&self, interest: Interest) -> &AtomicBool {
        if interest == Interest::READ { &self.read_drained } else { &self.write_drained }
    }

    /// Whether the write deadline has passed, for those who wait otherwise.
    ///
    /// # Errors
    /// `TimedOut` when it has.
    pub(crate) fn check_write_deadline(&self) -> io::Result<()> {
        self.deadline(Interest::WRITE).map(drop)
    }

    /// The deadline for a wait that begins now.
    ///
    /// # Errors
    /// `TimedOut` when it has passed.
    #[inline]
    fn deadline(&self, interest: Interest) -> io::Result<Deadline> {
        let at = if interest == Interest::READ { &self.read_deadline } else { &self.write_deadline };
        let at = at.load(Relaxed);
        if at == 0 {
            return Ok(Deadline::NEVER);
        }
        let (at, now) = (Time::from_nanos(at), selvedge_core::now());
        if now >= at {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(Deadline::after(now, at.since(now)))
    }
}

/// The future of [`NonBlocking::readable`] and [`NonBlocking::writable`].
#[must_use = "nothing happens until it is awaited"]
pub struct Waiting<'a, T> {
    of: &'a NonBlocking<T>,
    /// Present while it waits.
    wait: Option<WaitFd>,
    /// The event loop that was asked, and whether that knew nothing of the descriptor.
    asked: LoopId,
    fresh: bool,
    interest: Interest,
}

impl<'a, T> Waiting<'a, T> {
    #[inline]
    fn new(of: &'a NonBlocking<T>, interest: Interest) -> Waiting<'a, T> {
        Waiting { of, wait: None, asked: LoopId::GLOBAL, fresh: false, interest }
    }
}

impl<T: AsFd> Future for Waiting<'_, T> {
    type Output = io::Result<()>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let of = this.of;
        let wait = match &mut this.wait {
            Some(wait) => wait,
            None => {
                let deadline = of.deadline(this.interest)?;
                let fd = of.io.as_fd();
                this.asked = LoopId::here();
                this.fresh = of.places.begin(this.asked, fd);
                let (fd, interest, fresh) = (fd.as_raw_fd(), this.interest, this.fresh);
                this.wait.insert(WaitFd::new(Readiness { fd, deadline, interest, fresh }))
            }
        };
        ready!(Pin::new(wait).poll(cx));
        this.wait = None;
        // Only now has the loop surely served the request and registered the descriptor.
        of.places.end(this.asked, this.fresh, true);
        of.streak.store(0, Relaxed);
        of.is_drained(this.interest).store(false, Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl<T> Drop for Waiting<'_, T> {
    /// A wait that is given up may have been resumed already, by an edge that does not come again. So whoever is next tries
    /// before it waits.
    #[inline]
    fn drop(&mut self) {
        if self.wait.is_some() {
            self.of.is_drained(self.interest).store(false, Relaxed);
            self.of.places.end(self.asked, self.fresh, false);
        }
    }
}

impl<T> fmt::Debug for Waiting<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("interest", &self.interest).finish_non_exhaustive()
    }
}

/// The future of [`NonBlocking::read_with`] and [`NonBlocking::write_with`]: a call, tried again and again.
#[must_use = "nothing happens until it is awaited"]
pub struct Repeat<'a, T, C> {
    wait: Waiting<'a, T>,
    call: C,
}

impl<T, R, C> Future for Repeat<'_, T, C>
where
    T: AsFd,
    C: FnMut(&T) -> io::Result<R> + Unpin,
{
    type Output = io::Result<R>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<R>> {
        let this = self.get_mut();
        let of = this.wait.of;
        let drained = of.is_drained(this.wait.interest);
        loop {
            if this.wait.wait.is_some() || drained.load(Relaxed) {
                ready!(Pin::new(&mut this.wait).poll(cx))?;
            }
            let streak = of.streak.load(Relaxed);
            if streak >= STREAK_MAX {
                of.streak.store(0, Relaxed);
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            of.streak.store(streak + 1, Relaxed);
            match (this.call)(&of.io) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => drained.store(true, Relaxed),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return Poll::Ready(result),
            }
        }
    }
}

impl<T, C> fmt::Debug for Repeat<'_, T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repeat").field("interest", &self.wait.interest).finish_non_exhaustive()
    }
}

impl<T> NonBlocking<T> {
    /// What it was made of, to make non-blocking calls on directly.
    #[inline]
    pub fn get_ref(&self) -> &T {
        &self.io
    }

    /// Gives back what it was made of, still in non-blocking mode.
    pub fn into_inner(self) -> T {
        self.io
    }
}

impl<T: AsFd> AsFd for NonBlocking<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

impl<T: fmt::Debug> fmt::Debug for NonBlocking<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NonBlocking").field(&self.io).finish()
    }
}
