//! The public description of a thread ([`ThreadInfo`]) and its identity ([`ThreadId`]), and what an
//! observer adds to it ([`Seen`]).
//!
//! Reports of deadlocks (`deadlock.rs`), dumps (`see`), and names of lock holders (`sync`'s
//! `holder.rs`) are made of it. The identity is a place in memory, which a later thread may have
//! again.

use crate::arena::{self, Key};
use crate::header::{FINISHED, FREE, STATE, WAITING, WAITING_HERE};
use crate::vtable::vtable;
use crate::wait_site::WaitSite;
use crate::written_name::written_name;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

/// The identity of a thread while it lives. A later thread may have the same identity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub(crate) Key);

impl ThreadId {
    /// The number: [`Thread::id`](crate::Thread::id), [`ThreadInfo::id`].
    pub fn get(self) -> u32 {
        self.0.get()
    }

    /// The facts about the thread that any OS thread can read: its name, and whether it waits, but
    /// not its place. `None` if it is over.
    pub fn info(self) -> Option<ThreadInfo> {
        ThreadInfo::at(self.0)
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ThreadId({})", self.0)
    }
}

/// The facts that an observer knows of a waiting thread, for the report of a
/// [`Deadlock`](crate::Deadlock).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The name that the thread was given.
    pub called: Option<Arc<str>>,
    /// The thing it waits for, in words.
    pub call: String,
    /// The time that it has waited. `None` if the program was not observed.
    pub since: Option<Duration>,
    /// The only thread that can wake it, and why. See [`waits_for`](crate::observe::waits_for).
    pub waits_for: Option<(u32, &'static str)>,
}

/// A thread as its CPU sees it.
#[derive(Clone, PartialEq, Eq)]
pub struct ThreadInfo {
    key: Key,
    /// The type of its future. Most lists of threads show no name, so it is cut when one is asked
    /// for.
    future: &'static str,
    state: u32,
    place: WaitSite,
    seen: Option<Arc<Seen>>,
}

impl ThreadInfo {
    /// `link` is the second word of the header, beside `head`.
    pub(crate) fn of(key: Key, head: u32, link: u32) -> ThreadInfo {
        let state = head & STATE;
        let waiting = state == WAITING || state == WAITING_HERE;
        let place = if waiting { WaitSite(link) } else { WaitSite::UNKNOWN };
        ThreadInfo { key, future: (vtable(head).name)(), state, place, seen: None }
    }

    /// The description of the thread at `key` that can be given on any OS thread. `None` if there
    /// is no thread.
    pub(crate) fn at(key: Key) -> Option<ThreadInfo> {
        let head = arena::header(key).head();
        // The link is not read, because the thread's owner may be about to use it for something
        // else.
        (head != FREE && head & STATE != FINISHED).then(|| ThreadInfo::of(key, head, WaitSite::UNKNOWN.0))
    }

    /// The number of the thread. A later thread may have the same number.
    pub fn id(&self) -> u32 {
        self.key.get()
    }

    /// Its identity.
    pub fn thread(&self) -> ThreadId {
        ThreadId(self.key)
    }

    /// The function or the type of the program that its future comes from; "main" for the main
    /// thread.
    pub fn name(&self) -> &'static str {
        written_name(self.future)
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

    /// The facts that an observer knows of it, or that it has said itself. They are there only in
    /// the report of a deadlock.
    pub fn seen(&self) -> Option<&Seen> {
        self.seen.as_deref()
    }

    /// What it waits for, and for which thread, as far as that is known.
    pub(crate) fn doing(&self) -> String {
        match self.seen() {
            Some(Seen { call, waits_for: Some((other, tie)), .. }) => {
                format!("{call}; for thread {other}, {tie}")
            }
            Some(Seen { call, .. }) => call.clone(),
            None => self.words(),
        }
    }

    /// What it waits for, as far as its CPU knows.
    pub(crate) fn words(&self) -> String {
        match (self.is_waiting(), self.place()) {
            (true, None) if self.place.is_join() => "waits to join another thread".into(),
            (true, Some(place)) => format!("waits at {place}"),
            (true, None) => "waits behind a waker".into(),
            (false, _) => "is ready, or with an event source".into(),
        }
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

impl fmt::Debug for ThreadInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadInfo")
            .field("key", &self.key)
            .field("name", &self.name())
            .field("state", &self.state)
            .field("place", &self.place)
            .field("seen", &self.seen)
            .finish()
    }
}

impl fmt::Display for ThreadInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread {} ", self.key)?;
        if let Some(Seen { called: Some(called), .. }) = self.seen() {
            write!(f, "\"{called}\" ")?;
        }
        write!(f, "({}): ", self.name())?;
        if let Some(Seen { call, since, waits_for, .. }) = self.seen() {
            f.write_str(call)?;
            since.map_or(Ok(()), |since| write!(f, ", for {since:.1?}"))?;
            return waits_for.map_or(Ok(()), |(other, tie)| write!(f, "; for thread {other}, {tie}"));
        }
        f.write_str(&self.words())
    }
}
