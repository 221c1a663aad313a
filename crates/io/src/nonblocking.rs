//! Descriptors that threads can wait for, and how a blocking call is made of non-blocking ones.

use crate::event_loop::LoopId;
use selvedge_core::{Deadline, Interest, Readiness, Time, WaitFd, yield_now};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

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
    /// The event loop in whose epoll set it is: [`LoopId::to_bits`].
    home: AtomicU32,
    /// How many calls have been made since the last wait or yield.
    streak: AtomicU8,
    read: Direction,
    write: Direction,
}

/// A thread that finds its descriptor ready this many times in a row lets the others run: a peer that is faster than we
/// are must not keep a worker to itself.
const STREAK_MAX: u8 = 64;

/// The state of one direction. Relaxed atomics: it is advice, and right in the end whatever is read.
struct Direction {
    drained: AtomicBool,
    /// [`Time`] in nanoseconds; 0 for none.
    deadline: AtomicU64,
}

impl Direction {
    const fn new() -> Direction {
        Direction { drained: AtomicBool::new(false), deadline: AtomicU64::new(0) }
    }

    /// The deadline for a wait that begins now.
    ///
    /// # Errors
    /// `TimedOut` when it has passed.
    #[inline]
    fn deadline(&self) -> io::Result<Deadline> {
        let at = self.deadline.load(Relaxed);
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

impl<T: AsFd> NonBlocking<T> {
    /// Puts a descriptor into non-blocking mode and takes it over.
    ///
    /// The mode belongs to the open file, which other descriptors may share: those of a terminal, say, with the shell.
    ///
    /// # Errors
    /// If the kernel refuses the mode.
    pub fn new(io: T) -> io::Result<NonBlocking<T>> {
        let flags = rustix::fs::fcntl_getfl(&io)?;
        if !flags.contains(rustix::fs::OFlags::NONBLOCK) {
            rustix::fs::fcntl_setfl(&io, flags | rustix::fs::OFlags::NONBLOCK)?;
        }
        Ok(NonBlocking::assume(io))
    }

    /// Takes over a descriptor that is in non-blocking mode already.
    pub(crate) fn assume(io: T) -> NonBlocking<T> {
        crate::global::install();
        let home = AtomicU32::new(LoopId::NONE.to_bits());
        NonBlocking { io, home, streak: AtomicU8::new(0), read: Direction::new(), write: Direction::new() }
    }

    /// Makes a call that may find nothing to read, and waits for as long as it does.
    ///
    /// `call` is repeated while it fails with `WouldBlock` or `Interrupted`.
    ///
    /// # Errors
    /// Any other error of `call`; `TimedOut` when the [read deadline](Self::set_read_deadline) passes.
    #[inline]
    pub async fn read_with<R>(&self, call: impl FnMut(&T) -> io::Result<R>) -> io::Result<R> {
        self.repeat(Interest::READ, &self.read, call).await
    }

    /// Makes a call that may find no room to write, and waits for as long as it does. As [`read_with`](Self::read_with)
    /// otherwise.
    ///
    /// # Errors
    /// Any other error of `call`; `TimedOut` when the [write deadline](Self::set_write_deadline) passes.
    #[inline]
    pub async fn write_with<R>(&self, call: impl FnMut(&T) -> io::Result<R>) -> io::Result<R> {
        self.repeat(Interest::WRITE, &self.write, call).await
    }

    /// Waits until there may be something to read. It is a hint: the call that follows may find nothing after all.
    ///
    /// # Errors
    /// `TimedOut` when the [read deadline](Self::set_read_deadline) passes.
    #[inline]
    pub async fn readable(&self) -> io::Result<()> {
        self.wait(Interest::READ, &self.read).await
    }

    /// Waits until there may be room to write. It is a hint: the call that follows may find none after all.
    ///
    /// # Errors
    /// `TimedOut` when the [write deadline](Self::set_write_deadline) passes.
    #[inline]
    pub async fn writable(&self) -> io::Result<()> {
        self.wait(Interest::WRITE, &self.write).await
    }

    /// Sets the point in time at which reads that still wait fail with `TimedOut`; `None` for no such point. It holds for all
    /// waits that begin later, until it is set again.
    ///
    /// A deadline is exact to about a [tick](crate::wheel::Tick::RESOLUTION), and costs no timer operation as long as it
    /// only ever moves on.
    #[inline]
    pub fn set_read_deadline(&self, deadline: Option<Time>) {
        self.read.deadline.store(deadline.map_or(0, |t| t.as_nanos().max(1)), Relaxed);
    }

    /// Sets the point in time at which writes fail. As [`set_read_deadline`](Self::set_read_deadline) otherwise.
    #[inline]
    pub fn set_write_deadline(&self, deadline: Option<Time>) {
        self.write.deadline.store(deadline.map_or(0, |t| t.as_nanos().max(1)), Relaxed);
    }

    /// Notes that nothing is left to read (or no room to write), so that the next call waits first. For streams a
    /// short read or write says so.
    ///
    /// Saying so when it is not true may make the next call wait for ever, since what is there already is not
    /// reported again.
    #[inline]
    pub fn drained(&self, direction: Interest) {
        if direction.contains(Interest::READ) {
            self.read.drained.store(true, Relaxed);
        }
        if direction.contains(Interest::WRITE) {
            self.write.drained.store(true, Relaxed);
        }
    }

    #[inline]
    async fn repeat<R>(
        &self,
        interest: Interest,
        direction: &Direction,
        mut call: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        loop {
            if direction.drained.load(Relaxed) {
                self.wait(interest, direction).await?;
            }
            let streak = self.streak.load(Relaxed);
            if streak >= STREAK_MAX {
                yield_now().await;
                self.streak.store(0, Relaxed);
            } else {
                self.streak.store(streak + 1, Relaxed);
            }
            match call(&self.io) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    direction.drained.store(true, Relaxed)
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    /// Waits for one direction, whatever is noted of it.
    #[inline]
    async fn wait(&self, interest: Interest, direction: &Direction) -> io::Result<()> {
        let deadline = direction.deadline()?;
        let here = LoopId::here().to_bits();
        let fresh = self.home.load(Relaxed) != here;
        WaitFd::new(Readiness { fd: self.io.as_fd().as_raw_fd(), deadline, interest, fresh }).await;
        // Only now has the loop surely served the request and registered the descriptor.
        self.home.store(here, Relaxed);
        self.streak.store(0, Relaxed);
        direction.drained.store(false, Relaxed);
        Ok(())
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
