//! Descriptors that threads can wait for: [`NonBlocking`] makes a blocking call of non-blocking
//! ones.
//!
//! Every socket, pipe and terminal of this crate holds a `NonBlocking` (`net`, `pipe`, `signal`,
//! `stdio`, `process`), and programs wrap other descriptors in it. It tries the call, waits by
//! `selvedge_core::WaitFd` if the call would block, and tries again; the event loop of the OS
//! thread serves the wait. Its `Registrations` and its drained notes let a wait go on without a
//! call that fails. `reactor/mod.rs` has the argument that no edge is lost, and it relies on two
//! rules here: a call that found the descriptor drained is noted before the next await, and a loop
//! is added to `registrations` only if it has served a fresh wait.

use crate::reactor::drained::{self, Drained};
use crate::reactor::{Fresh, LoopId, Registrations, fallback};
use crate::shorts::Shorts;
use selvedge_core::{Deadline, Interest, Readiness, Time, WaitFd, budget};
use std::fmt;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

/// An owned descriptor in non-blocking mode: a socket, a pipe, a terminal, an eventfd.
///
/// It makes blocking calls of non-blocking ones, after the pattern *try; if it would block, wait
/// and try again*:
///
/// ```
/// # use selvedge::NonBlocking;
/// # use std::{io, os::fd::OwnedFd};
/// async fn read(pipe: &NonBlocking<OwnedFd>, buffer: &mut [u8]) -> io::Result<usize> {
///     pipe.read_with(|fd| Ok(rustix::io::read(fd, &mut *buffer)?)).await
/// }
/// ```
///
/// For each direction it keeps a deadline, and a note that the descriptor is *drained*. The note is
/// set after a call that would have blocked, and by [`drained`](Self::drained). Then the next call
/// waits before it tries, so the failing call is not made twice.
///
/// Any number of threads may use it at once; each event resumes all threads that wait for it. Each
/// call costs a part of the [`budget`] of the step, so a thread that never has to wait lets others
/// run after 64 calls at most.
///
/// # Paper
/// [LZ07 Figure 11]: `sock_accept`, a blocking call built from a non-blocking one and `sys_epoll_wait`.
///
/// # Differences
/// 1. The paper's call registers with epoll for each wait; here the descriptor is registered once,
///    and anew when its threads have gone to another event loop.
/// 2. A wait may end by a deadline.
pub struct NonBlocking<T> {
    io: T,
    registrations: Registrations,
    // All of these are advice, and a stale value does no harm, so relaxed atomics are enough.
    read_drained: AtomicBool,
    write_drained: AtomicBool,
    shorts: Shorts,
    /// A [`Time`] in nanoseconds; 0 means none.
    read_deadline: AtomicU64,
    write_deadline: AtomicU64,
}

/// Waits until a descriptor is ready, in a thread or on a foreign executor. The answer is a hint:
/// the call that follows may find nothing, and then the caller waits again.
///
/// This is the bare system call, for descriptors that a program seldom waits for, because each wait
/// asks the kernel for the state of the descriptor. For many waits there is [`NonBlocking`].
///
/// # Paper
/// [LZ07 Figure 10] `sys_epoll_wait`.
pub fn wait(fd: BorrowedFd<'_>, interest: Interest) -> impl Future<Output = ()> {
    fallback::install();
    selvedge_core::wait(fd, interest)
}

impl<T: AsFd> NonBlocking<T> {
    /// Puts a descriptor into non-blocking mode and takes it over.
    ///
    /// The mode belongs to the open file, which other descriptors may share. For example, a program
    /// shares its terminal with the shell.
    ///
    /// # Errors
    /// If the kernel refuses the mode.
    pub fn new(io: T) -> io::Result<NonBlocking<T>> {
        crate::sys::set_nonblocking(&io)?;
        Ok(NonBlocking::assume(io))
    }

    /// Takes over a descriptor that is in non-blocking mode already.
    pub(crate) fn assume(io: T) -> NonBlocking<T> {
        fallback::install();
        NonBlocking::unserved(io)
    }

    /// As [`assume`](Self::assume), for a caller that calls
    /// [`install`](crate::reactor::fallback::install) before the first wait.
    pub(crate) fn unserved(io: T) -> NonBlocking<T> {
        NonBlocking {
            io,
            registrations: Registrations::default(),
            read_drained: AtomicBool::new(false),
            write_drained: AtomicBool::new(false),
            shorts: Shorts::ProveNothing,
            read_deadline: AtomicU64::new(0),
            write_deadline: AtomicU64::new(0),
        }
    }

    /// Makes a call that may find nothing to read, and waits for as long as it finds nothing.
    ///
    /// `call` is repeated while it fails with `WouldBlock` or `Interrupted`.
    ///
    /// # Errors
    /// Any other error of `call`; `TimedOut` when the [read deadline](Self::set_read_deadline)
    /// passes.
    #[inline]
    pub fn read_with<R, C>(&self, call: C) -> Repeat<'_, T, C>
    where
        C: FnMut(&T) -> io::Result<R> + Unpin,
    {
        Repeat { wait: Waiting::new(self, Interest::READ), call, at_once: false }
    }

    /// Makes a call that may find no room to write, and waits for as long as it finds none.
    /// Otherwise like [`read_with`](Self::read_with).
    ///
    /// # Errors
    /// Any other error of `call`; `TimedOut` when the [write deadline](Self::set_write_deadline)
    /// passes.
    #[inline]
    pub fn write_with<R, C>(&self, call: C) -> Repeat<'_, T, C>
    where
        C: FnMut(&T) -> io::Result<R> + Unpin,
    {
        Repeat { wait: Waiting::new(self, Interest::WRITE), call, at_once: false }
    }

    /// Waits until there may be something to read. It is a hint: the call that follows may find
    /// nothing, above all in a combinator (`select!`, a time-out), where the wait ends whenever it
    /// is polled again.
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

    /// Sets the point in time at which reads that still wait fail with `TimedOut`; `None` for no
    /// such point. It holds for all waits that begin later, until it is set again.
    ///
    /// A deadline is exact to about a [tick](crate::wheel::Tick::RESOLUTION), and costs no timer
    /// operation as long as it moves on only.
    #[inline]
    pub fn set_read_deadline(&self, deadline: Option<Time>) {
        self.read_deadline.store(deadline.map_or(0, |t| t.as_nanos().max(1)), Relaxed);
    }

    /// Sets the point in time at which writes fail. Otherwise like
    /// [`set_read_deadline`](Self::set_read_deadline).
    #[inline]
    pub fn set_write_deadline(&self, deadline: Option<Time>) {
        self.write_deadline.store(deadline.map_or(0, |t| t.as_nanos().max(1)), Relaxed);
    }

    /// The same descriptor, with the knowledge of what a short read of it proves.
    pub(crate) fn with_shorts(self, shorts: Shorts) -> NonBlocking<T> {
        NonBlocking { shorts, ..self }
    }

    #[inline]
    pub(crate) fn shorts(&self) -> Shorts {
        self.shorts
    }

    /// Notes that nothing is left to read (or no room to write), so that the next call waits first.
    /// A short write proves this. A short read proves it for a pipe without packets and for a TCP
    /// connection; it does not for a terminal, for a Unix socket through which descriptors may be
    /// passed, or for a pipe with packets (`O_DIRECT`).
    ///
    /// Call this right after the call that has shown it, before you await anything. If the note is
    /// wrong, the next call may wait for ever, because the kernel does not report again the bytes
    /// that are there already.
    #[inline]
    pub fn drained(&self, direction: Interest) {
        self.found_drained(direction, Drained::Short);
    }

    #[inline]
    fn found_drained(&self, direction: Interest, by: Drained) {
        drained::note(self.io.as_fd().as_raw_fd(), direction, by);
        if direction.contains(Interest::READ) {
            self.read_drained.store(true, Relaxed);
        }
        if direction.contains(Interest::WRITE) {
            self.write_drained.store(true, Relaxed);
        }
    }

    /// Notes what a read of a byte stream proves. A short read has emptied the stream, if the
    /// descriptor's [`Shorts`] say so. A read at the end has found nothing, but the next call does
    /// not wait, because the end stays. `cut` says that the kernel has left out descriptors or
    /// credentials that came with the bytes.
    #[inline]
    pub(crate) fn note_read(&self, read: usize, room: usize, cut: bool) {
        if read == room {
            return;
        }
        if read == 0 {
            drained::note(self.io.as_fd().as_raw_fd(), Interest::READ, Drained::Nothing);
        } else if self.shorts != Shorts::ProveNothing && !cut {
            self.drained(Interest::READ);
        }
    }

    /// Notes what a write to a byte stream proves: a short write has filled the stream.
    #[inline]
    pub(crate) fn note_written(&self, written: usize, length: usize) {
        if written < length {
            self.drained(Interest::WRITE);
        }
    }

    /// Reads from a byte stream by a call that notes what it proves. With no `room` the call is
    /// made at once.
    #[inline]
    pub(crate) fn read_into<R, C>(&self, room: usize, call: C) -> Repeat<'_, T, C>
    where
        C: FnMut(&T) -> io::Result<R> + Unpin,
    {
        Repeat { at_once: room == 0, ..self.read_with(call) }
    }

    /// Writes to a byte stream by a call that notes what it proves. With a `length` of 0 the call
    /// is made at once.
    #[inline]
    pub(crate) fn write_from<R, C>(&self, length: usize, call: C) -> Repeat<'_, T, C>
    where
        C: FnMut(&T) -> io::Result<R> + Unpin,
    {
        Repeat { at_once: length == 0, ..self.write_with(call) }
    }

    /// Reads from a byte stream until `buffer` is full, by calls that note what they prove;
    /// `UnexpectedEof` if the stream ends before.
    #[inline]
    pub(crate) fn read_exact_with(
        &self,
        mut buffer: &mut [u8],
        mut read: impl FnMut(&mut [u8]) -> io::Result<usize> + Unpin,
    ) -> impl Future<Output = io::Result<()>> {
        self.read_into(buffer.len(), move |_| {
            if buffer.is_empty() {
                return Ok(());
            }
            match read(buffer)? {
                0 => Err(io::ErrorKind::UnexpectedEof.into()),
                read => {
                    buffer = &mut mem::take(&mut buffer)[read..];
                    // The call is repeated: at once, or after a wait if that read has emptied the
                    // stream.
                    if buffer.is_empty() { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
                }
            }
        })
    }

    /// Writes all of `bytes` to a byte stream, by calls that note what they prove.
    #[inline]
    pub(crate) fn write_all_with(
        &self,
        mut bytes: &[u8],
        mut write: impl FnMut(&[u8]) -> io::Result<usize> + Unpin,
    ) -> impl Future<Output = io::Result<()>> {
        self.write_from(bytes.len(), move |_| {
            if bytes.is_empty() {
                return Ok(());
            }
            bytes = &bytes[write(bytes)?..];
            // A short write has filled the stream.
            if bytes.is_empty() { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
        })
    }
}

impl<T> NonBlocking<T> {
    fn is_drained(&self, interest: Interest) -> &AtomicBool {
        if interest == Interest::READ { &self.read_drained } else { &self.write_drained }
    }

    /// Checks the write deadline, for callers that wait by other means.
    ///
    /// # Errors
    /// `TimedOut` when the deadline has passed.
    pub(crate) fn check_write_deadline(&self) -> io::Result<()> {
        self.deadline(Interest::WRITE).map(drop)
    }

    /// The deadline for a wait that begins now.
    ///
    /// # Errors
    /// `TimedOut` when the deadline has passed.
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

    /// A wait is over or given up. It may have been fresh.
    #[inline]
    fn left(&self, interest: Interest, fresh: Option<Fresh>) {
        if let Some(at) = fresh.and_then(Fresh::served) {
            self.registrations.add(at);
        }
        self.is_drained(interest).store(false, Relaxed);
    }
}

/// The wait of a caller that polls instead of awaiting. Such a caller keeps one for each direction,
/// from poll to poll. See [`NonBlocking::poll_read_with`].
///
/// It may move between polls, and between tasks: each poll that finds nothing makes the event loop
/// wake the task that has polled. It belongs to the descriptor that it was first used with.
#[derive(Debug, Default)]
pub struct PollState {
    /// On the heap, because the address of a request identifies it. The first wait makes it, and
    /// all later waits use it again.
    wait: Option<Box<WaitFd>>,
    waiting: bool,
    /// Present if the wait is fresh in the event loop that serves it.
    fresh: Option<Fresh>,
}

impl<T: AsFd> NonBlocking<T> {
    /// [`read_with`](Self::read_with) for code that polls, for example to implement the traits of
    /// other libraries. `Pending` when there is nothing to read; the task of `cx` is woken when
    /// there may be.
    ///
    /// # Errors
    /// As for [`read_with`](Self::read_with).
    #[inline]
    pub fn poll_read_with<R>(
        &self,
        state: &mut PollState,
        cx: &mut Context<'_>,
        call: impl FnMut(&T) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.poll_with(Interest::READ, state, cx, call)
    }

    /// [`write_with`](Self::write_with) for code that polls.
    ///
    /// # Errors
    /// As for [`write_with`](Self::write_with).
    #[inline]
    pub fn poll_write_with<R>(
        &self,
        state: &mut PollState,
        cx: &mut Context<'_>,
        call: impl FnMut(&T) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.poll_with(Interest::WRITE, state, cx, call)
    }

    #[inline]
    fn poll_with<R>(
        &self,
        interest: Interest,
        state: &mut PollState,
        cx: &mut Context<'_>,
        mut call: impl FnMut(&T) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        loop {
            if state.waiting || self.is_drained(interest).load(Relaxed) {
                ready!(self.poll_wait(interest, state, cx))?;
            }
            if let Some(result) = self.attempt(interest, cx, &mut call) {
                return result;
            }
        }
    }

    fn poll_wait(
        &self,
        interest: Interest,
        state: &mut PollState,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if !state.waiting {
            let wait;
            (wait, state.fresh) = self.wait(interest)?;
            match &mut state.wait {
                Some(place) => **place = wait,
                place => *place = Some(Box::new(wait)),
            }
            state.waiting = true;
            // An edge may resume this wait, and then the caller may give it up without a sign. That
            // edge does not come again, so the next caller must try before it waits.
            self.is_drained(interest).store(false, Relaxed);
        }
        let wait = state.wait.as_mut().expect("it waits");
        ready!(Pin::new(&mut **wait).poll(cx));
        state.waiting = false;
        self.left(interest, state.fresh);
        Poll::Ready(Ok(()))
    }

    /// Makes a call, and repeats it while it is interrupted. `None` if the call would block, or if
    /// it must be repeated after a wait.
    #[inline]
    fn attempt<R>(
        &self,
        interest: Interest,
        cx: &mut Context<'_>,
        mut call: impl FnMut(&T) -> io::Result<R>,
    ) -> Option<Poll<io::Result<R>>> {
        loop {
            if budget::spend_on_call(cx).is_pending() {
                return Some(Poll::Pending);
            }
            match call(&self.io) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    budget::refund(budget::CALL);
                    self.found_drained(interest, Drained::Nothing);
                    return None;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    if self.is_drained(interest).load(Relaxed) {
                        return None;
                    }
                }
                result => return Some(Poll::Ready(result)),
            }
        }
    }

    /// A wait that begins now, and the note of it if it is fresh.
    #[inline]
    fn wait(&self, interest: Interest) -> io::Result<(WaitFd, Option<Fresh>)> {
        let deadline = self.deadline(interest)?;
        let fd = self.io.as_fd().as_raw_fd();
        let here = LoopId::here();
        let fresh = !here.is_some_and(|here| self.registrations.have(here));
        Ok((
            WaitFd::new(Readiness { fd, deadline, interest, fresh }),
            here.filter(|_| fresh).map(|here| Fresh::at(here, fd)),
        ))
    }
}

/// The future of [`NonBlocking::readable`] and [`NonBlocking::writable`].
#[must_use = "nothing happens until it is awaited"]
pub struct Waiting<'a, T> {
    of: &'a NonBlocking<T>,
    /// Present while the future waits.
    wait: Option<WaitFd>,
    /// Present if the wait is fresh in the event loop that serves it.
    fresh: Option<Fresh>,
    interest: Interest,
}

impl<'a, T> Waiting<'a, T> {
    #[inline]
    fn new(of: &'a NonBlocking<T>, interest: Interest) -> Waiting<'a, T> {
        Waiting { of, wait: None, fresh: None, interest }
    }
}

impl<T: AsFd> Future for Waiting<'_, T> {
    type Output = io::Result<()>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let wait = match &mut this.wait {
            Some(wait) => wait,
            None => {
                let wait;
                (wait, this.fresh) = this.of.wait(this.interest)?;
                this.wait.insert(wait)
            }
        };
        ready!(Pin::new(wait).poll(cx));
        this.wait = None;
        this.of.left(this.interest, this.fresh);
        Poll::Ready(Ok(()))
    }
}

impl<T> Drop for Waiting<'_, T> {
    /// An edge may have resumed a wait that is given up, and that edge does not come again. So the
    /// next caller must try before it waits.
    #[inline]
    fn drop(&mut self) {
        if self.wait.is_some() {
            self.of.left(self.interest, self.fresh);
        }
    }
}

impl<T> fmt::Debug for Waiting<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("interest", &self.interest).finish_non_exhaustive()
    }
}

/// The future of [`NonBlocking::read_with`] and [`NonBlocking::write_with`]: a call that is
/// repeated until it does not block.
#[must_use = "nothing happens until it is awaited"]
pub struct Repeat<'a, T, C> {
    wait: Waiting<'a, T>,
    call: C,
    /// The first call is made even if the descriptor is drained, because the call has no bytes to
    /// wait for.
    at_once: bool,
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
        let (of, interest) = (this.wait.of, this.wait.interest);
        loop {
            let waits = this.wait.wait.is_some() || of.is_drained(interest).load(Relaxed);
            if waits && !mem::take(&mut this.at_once) {
                ready!(Pin::new(&mut this.wait).poll(cx))?;
            }
            if let Some(result) = of.attempt(interest, cx, &mut this.call) {
                return result;
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
    /// The inner value, to make non-blocking calls on directly.
    #[inline]
    pub fn get_ref(&self) -> &T {
        &self.io
    }

    /// Gives back the inner value. Its descriptor stays in non-blocking mode.
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
