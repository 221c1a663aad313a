//! The trace: one node for each system call, owning what is left of the thread.

use crate::time::{Deadline, Time};
use crate::{Alarm, Call, Nbio, Panic, Thread};
use std::ops::BitOr;
use std::os::fd::RawFd;
use std::task::Waker;

/// What a thread did in one step: its next system call, and the continuation(s) that go on from there.
///
/// A scheduler is a traversal of this tree: it takes a thread, [steps](Thread::step) it, acts on the node and keeps the
/// threads in it for later. Dropping a node cancels the threads in it.
///
/// # Paper
/// [LZ07 §3.1, Figures 5, 6 and 14]; the program's own calls: [LZ07 §4.2].
///
/// # Differences
/// 1. The paper's tree is lazy and is forced node by node; here a node is the result of a step.
/// 2. `SYS_THROW` and `SYS_CATCH` are no nodes: exceptions are `Result` and [`catch`](crate::catch()) inside the
///    thread, so that a scheduler has no handler stacks to keep.
/// 3. [`Blocked`](Trace::Blocked): a thread that waits in a [`WaitQueue`](crate::WaitQueue) has handed itself over.
#[derive(Debug)]
pub enum Trace {
    /// The thread lets others run.
    Yield(Thread),
    /// The thread has created another.
    Fork {
        /// The new thread.
        child: Thread,
        /// The rest of the thread that created it.
        parent: Thread,
    },
    /// The thread asks for a non-blocking action to be performed.
    Nbio(Box<Nbio>),
    /// The thread waits until a descriptor is ready.
    Wait(Wait),
    /// The thread waits for a point in time.
    Sleep(Sleep),
    /// A system call of the program's own.
    Call(Box<Call>),
    /// Several requests at once, or requests on behalf of wakers (`join!`, `select!`, foreign combinators; all that a thread that may
    /// move waits for; sleeps and calls of one that can be cancelled): they are in
    /// [`Cpu::detached`](crate::Cpu::detached). The thread itself comes back through [`Cpu::woken`](crate::Cpu::woken).
    Any,
    /// The thread waits for another thread, or behind a waker. The CPU keeps it, and gives it back through
    /// [`Cpu::woken`](crate::Cpu::woken).
    Blocked,
    /// The thread has come to its end.
    Ret,
    /// The thread has ended by a panic, and there is no join handle to tell. A scheduler [reports](Panic::report) it and goes on:
    /// the other threads are none the worse.
    Panic(Box<Panic>),
}

const _: () = assert!(size_of::<Trace>() <= 16, "a trace node is returned in two registers");

/// A thread that waits for a descriptor.
///
/// # Paper
/// [LZ07 Figures 10 and 16]: `sys_epoll_wait`, and the registered event that carries the continuation.
#[derive(Debug)]
#[non_exhaustive]
pub struct Wait {
    /// The rest of the thread.
    pub thread: Thread,
    /// What it waits for.
    pub readiness: Readiness,
}

impl Wait {
    pub(crate) fn new(thread: Thread, readiness: Readiness) -> Wait {
        Wait { thread, readiness }
    }
}

/// A thread that sleeps.
#[derive(Debug)]
pub struct Sleep {
    thread: Thread,
    /// In halves, so that the node stays within two registers.
    until: [u32; 2],
}

impl Sleep {
    pub(crate) fn new(thread: Thread, until: Time) -> Sleep {
        let until = until.as_nanos();
        Sleep { thread, until: [(until >> 32) as u32, until as u32] }
    }

    /// When it wants to go on.
    pub fn until(&self) -> Time {
        Time::from_nanos((self.until[0] as u64) << 32 | self.until[1] as u64)
    }

    /// The rest of the thread.
    pub fn into_thread(self) -> Thread {
        self.thread
    }
}

/// When a descriptor is ready for what a thread wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness {
    /// The descriptor. Its owner keeps it open while a thread waits for it; if it does not, the wait lasts until the
    /// deadline or wakes early, and nothing worse happens.
    pub fd: RawFd,
    /// When to wake the thread even so.
    pub deadline: Deadline,
    /// Reading, writing, or both.
    pub interest: Interest,
    /// True for the first wait on this descriptor by its owner: what an event loop remembers of the number is of an
    /// earlier file.
    pub fresh: bool,
}

impl Readiness {
    pub(crate) const NONE: Readiness =
        Readiness { fd: -1, deadline: Deadline::NEVER, interest: Interest::READ, fresh: false };
}

/// Which directions a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interest(u8);

impl Interest {
    /// There is something to read, or the other side has closed.
    pub const READ: Interest = Interest(1);
    /// There is room to write, or the connection is broken.
    pub const WRITE: Interest = Interest(2);

    /// Whether all of `other` is in this.
    pub const fn contains(self, other: Interest) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Interest {
    type Output = Interest;

    fn bitor(self, other: Interest) -> Interest {
        Interest(self.0 | other.0)
    }
}

/// A system call without its thread.
#[derive(Debug)]
#[non_exhaustive]
pub enum Request {
    /// Wait for a descriptor.
    Wait(Readiness),
    /// Wait for a point in time, unless it is given up before.
    Sleep(Alarm),
    /// A call of the program's own, which knows whom to wake.
    Call(Box<Call>),
}

/// A request made on behalf of a waker, because the thread waits for several things at once.
#[derive(Debug)]
pub struct Detached {
    /// What is asked.
    pub request: Request,
    /// Who is to be woken; pass it to [`Cpu::wake`](crate::Cpu::wake). A [`Request::Call`] carries its own and leaves
    /// this one without effect.
    pub waker: Waker,
}
