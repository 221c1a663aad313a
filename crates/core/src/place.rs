//! The places at which threads wait ([`Place`]), and the public description of a thread
//! ([`ThreadInfo`]).

use crate::arena::{self, Key};
use crate::observe::{Seen, ThreadId};
use crate::thread::{self, FINISHED, FREE, STATE, WAITING, WAITING_HERE};
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

/// The place in the program at which a thread waits, in 4 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place(pub(crate) u32);

impl Place {
    /// The thread waits behind a waker, or does not wait.
    pub(crate) const UNKNOWN: Place = Place(0);
    /// The thread waits at the join handle of the thread `key`. The highest bit of the key is left
    /// out. The result is odd, and no location lies at an odd address.
    #[inline(always)]
    pub(crate) fn join(key: Key) -> Place {
        Place(key.get() << 1 | 1)
    }

    /// Whether the place is a join handle.
    pub(crate) fn is_join(self) -> bool {
        self.0 & 1 == 1
    }

    #[inline(always)]
    pub(crate) fn of(location: &'static Location<'static>) -> Place {
        match thread::offset(location) {
            Some(offset) => Place(offset),
            None => Place::far(),
        }
    }

    /// The place of a location in another image: unknown. It is a function, so that the compiler
    /// branches and does not compute both places.
    #[cold]
    #[inline(never)]
    fn far() -> Place {
        Place::UNKNOWN
    }

    pub(crate) fn location(self) -> Option<&'static Location<'static>> {
        // SAFETY: a Place that is neither unknown nor a join was made by `of`, from the offset of a
        // Location. (No location lies at the anchor itself, so no such offset is 0.)
        (self != Place::UNKNOWN && !self.is_join()).then(|| unsafe { thread::at_offset(self.0) })
    }
}

/// A thread as its CPU sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadInfo {
    key: Key,
    name: &'static str,
    state: u32,
    place: Place,
    seen: Option<Arc<Seen>>,
}

impl ThreadInfo {
    /// `link` is the second word of the header, beside `head`.
    pub(crate) fn of(key: Key, head: u32, link: u32) -> ThreadInfo {
        let state = head & STATE;
        let waiting = state == WAITING || state == WAITING_HERE;
        let place = if waiting { Place(link) } else { Place::UNKNOWN };
        ThreadInfo { key, name: (thread::vtable(head).name)(), state, place, seen: None }
    }

    /// The description of the thread at `key` that can be given on any OS thread. `None` if there
    /// is no thread.
    pub(crate) fn at(key: Key) -> Option<ThreadInfo> {
        let head = arena::header(key).head();
        // The link is not read, because the thread's owner may be about to use it for something
        // else.
        (head != FREE && head & STATE != FINISHED).then(|| ThreadInfo::of(key, head, Place::UNKNOWN.0))
    }

    /// The number of the thread. A later thread may have the same number.
    pub fn id(&self) -> u32 {
        self.key.get()
    }

    /// Its identity.
    pub fn thread(&self) -> ThreadId {
        ThreadId(self.key)
    }

    /// The type name of its future; "main" for the main thread.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether only threads of its CPU can resume it. (A join handle can still cancel it.)
    pub(crate) fn waits_here(&self) -> bool {
        self.state == WAITING_HERE
    }

    /// Whether it waits for another thread or behind a waker. Otherwise it is ready, or an event
    /// source has it.
    pub fn is_waiting(&self) -> bool {
        self.state == WAITING || self.state == WAITING_HERE
    }

    /// The facts that an observer knows of it. They are there only in the report of a deadlock, and
    /// if the program is observed.
    pub fn seen(&self) -> Option<&Seen> {
        self.seen.as_deref()
    }

    pub(crate) fn with_seen(self, seen: Option<Seen>) -> ThreadInfo {
        ThreadInfo { seen: seen.map(Arc::new), ..self }
    }

    /// The line of the program on which it waits in a [`WaitQueue`](crate::WaitQueue). `None`
    /// behind a foreign waker or a join handle.
    pub fn place(&self) -> Option<&'static Location<'static>> {
        self.place.location()
    }
}

impl fmt::Display for ThreadInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread {} ", self.key)?;
        if let Some(Seen { called: Some(called), .. }) = self.seen() {
            write!(f, "\"{called}\" ")?;
        }
        write!(f, "({}): ", self.name)?;
        if let Some(Seen { call, since, waits_for, .. }) = self.seen() {
            write!(f, "{call}, for {since:.1?}")?;
            return waits_for.map_or(Ok(()), |(other, tie)| write!(f, "; for thread {other}, {tie}"));
        }
        match (self.is_waiting(), self.place()) {
            (true, None) if self.place.is_join() => write!(f, "waits to join another thread"),
            (true, Some(place)) => write!(f, "waits at {place}"),
            (true, None) => write!(f, "waits behind a waker"),
            (false, _) => write!(f, "is ready, or with an event source"),
        }
    }
}
