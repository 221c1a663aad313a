//! The trace: [`Trace`] has one node for each system call. The node owns the rest of the thread.
//!
//! [`Thread::step`] makes the nodes; schedulers and event sources act on them.
//!
//! `cpu/run.rs` makes the frequent nodes, and `cpu/conclude.rs` the others.

use crate::alarm::Alarm;
use crate::call::Call;
use crate::exception::Panic;
use crate::nbio::Nbio;
use crate::thread::Thread;
use crate::time::{Deadline, Time};
use std::ops::BitOr;
use std::os::fd::RawFd;
use std::task::Waker;

/// The result of one step of a thread: its next system call, and the rest of the thread.
///
/// A scheduler walks this tree: it takes a thread, [steps](Thread::step) it, acts on the node, and
/// keeps the threads in the node for later. Dropping a node cancels the threads in it.
///
/// # Paper
/// [LZ07 §3.1, Figures 5, 6 and 14]; the program's own calls: [LZ07 §4.2].
///
/// # Differences
/// 1. The paper's tree is lazy and is forced node by node. Here a node is the result of a step.
/// 2. `SYS_THROW` and `SYS_CATCH` are not nodes. Exceptions are `Result` and
///    [`catch`](crate::catch()) inside the thread, so a scheduler keeps no handler stacks.
/// 3. [`Blocked`](Trace::Blocked) is new: a thread that waits in a [`WaitQueue`](crate::WaitQueue)
///    has handed itself over.
#[derive(Debug)]
pub enum Trace {
    /// The thread lets other threads run.
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
    /// Several requests at once, or requests on behalf of wakers. They are in
    /// [`Cpu::detached`](crate::Cpu::detached). Such requests come from `join!`, `select!` and
    /// foreign combinators, from any wait of a thread that may move, and from sleeps and calls of a
    /// thread that can be cancelled. The thread itself comes back through
    /// [`Cpu::woken`](crate::Cpu::woken).
    Detached,
    /// The thread waits for another thread, or behind a waker. The CPU keeps the thread, and gives
    /// it back through
    /// [`Cpu::woken`](crate::Cpu::woken).
    Blocked,
    /// The thread has come to its end.
    Ret,
    /// The thread has ended by a panic, and there is no join handle that gets it. A scheduler
    /// [reports](Panic::report) it and goes on, because the other threads are not affected.
    Panic(Box<Panic>),
}

const _: () = assert!(size_of::<Trace>() <= 16, "a trace node is returned in two registers");

/// A thread that waits for a descriptor.
///
/// # Paper
/// [LZ07 Figures 10 and 16]: `sys_epoll_wait`, and the registered event that carries the
/// continuation.
#[derive(Debug)]
#[non_exhaustive]
pub struct Wait {
    /// The rest of the thread.
    pub thread: Thread,
    /// The readiness it waits for.
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
    /// The time in two halves, so that the node fits into two registers.
    until: [u32; 2],
}

impl Sleep {
    pub(crate) fn new(thread: Thread, until: Time) -> Sleep {
        let until = until.as_nanos();
        Sleep { thread, until: [(until >> 32) as u32, until as u32] }
    }

    /// The time at which the thread is to go on.
    pub fn until(&self) -> Time {
        Time::from_nanos((self.until[0] as u64) << 32 | self.until[1] as u64)
    }

    /// The rest of the thread.
    pub fn into_thread(self) -> Thread {
        self.thread
    }
}

/// The condition under which a descriptor is ready for a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness {
    /// The descriptor. Its owner keeps it open while a thread waits for it. If the owner does not,
    /// the wait lasts until the deadline or ends early; there is no other harm.
    pub fd: RawFd,
    /// The time at which the thread is woken even if the descriptor is not ready.
    pub deadline: Deadline,
    /// Reading, writing, or both.
    pub interest: Interest,
    /// True for the owner's first wait for this descriptor. Then all that an event loop remembers
    /// of the number belongs to an earlier file.
    pub fresh: bool,
}

impl Readiness {
    pub(crate) const NONE: Readiness =
        Readiness { fd: -1, deadline: Deadline::NEVER, interest: Interest::READ, fresh: false };
}

/// The directions for which a thread waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interest(u8);

impl Interest {
    /// There is something to read, or the other side has closed.
    pub const READ: Interest = Interest(1);
    /// There is room to write, or the connection is broken.
    pub const WRITE: Interest = Interest(2);

    /// Whether this has all directions of `other`.
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
    /// Wait for a point in time, unless the asker gives up before.
    Sleep(Alarm),
    /// A call of the program's own, which carries its waker.
    Call(Box<Call>),
}

/// A request on behalf of a waker. It is made when the thread waits for several things at once.
#[derive(Debug)]
pub struct Detached {
    /// The request.
    pub request: Request,
    /// The waker to be woken with [`Cpu::wake`](crate::Cpu::wake). A [`Request::Call`] carries its
    /// own, and waking this one has no effect.
    pub waker: Waker,
}
