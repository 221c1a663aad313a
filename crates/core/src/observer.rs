//! The observer of a CPU ([`Observer`]), and the words in which it is told of steps: [`Ended`],
//! [`End`], [`WaitReason`], [`Object`], [`Note`].
//!
//! `crates/see` implements the trait (`recorder.rs`). The CPU calls it at the end of each step
//! (`cpu/conclude.rs`), and `observe.rs` has the functions by which blocking objects and event
//! loops say what a thread waits for. Without an observer none of this runs: a bit in the CPU's
//! flags sends an observed step the long way.

use crate::cpu::inner::Cpu;
use crate::thread_info::{Seen, ThreadId};
use crate::time::Time;
use crate::trace::{Readiness, Request};
use crate::wait_site::WaitSite;
use std::fmt;
use std::os::fd::RawFd;
use std::panic::Location;
use std::sync::Arc;

/// How a step ended: by which system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// It lets other threads run, or it was woken before its step ended.
    Yield,
    /// It has created a thread by [`fork`](crate::fork).
    Fork(ThreadId),
    /// It asks for a non-blocking action.
    Nbio,
    /// It waits for a descriptor.
    Wait(Readiness),
    /// It waits for a point in time.
    Sleep(Time),
    /// It waits for the answer to a call of the program's own, by the type of the call.
    Call(&'static str),
    /// It waits in a queue, at this place of the program.
    Block(Option<&'static Location<'static>>),
    /// It waits for the end of another thread.
    Join,
    /// It waits behind a waker.
    Park,
    /// It is over.
    Return,
    /// It is over by a panic, and no join handle gets the panic.
    Panic,
}

/// The end of a step, as an [`Observer`] is told of it, before the CPU hands the thread on.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Ended {
    /// The thread that made the step.
    pub thread: ThreadId,
    /// How it ended.
    pub end: End,
    /// Whether the thread waits for other things too. Then `end` is one of them.
    pub several: bool,
}

/// The thing for which a thread waits, behind a waker or in a queue. The server of the request
/// describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitReason {
    /// The action, as the sentence "waits to ..." goes on: `read`, `look up`.
    pub call: &'static str,
    /// The object of the action.
    pub object: Object,
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = self.call;
        match &self.object {
            Object::None => write!(f, "waits to {call}"),
            Object::Descriptor(fd) => write!(f, "waits to {call} descriptor {fd}"),
            Object::Part { fd, offset, length } => {
                write!(f, "waits to {call} {length} bytes at {offset} of descriptor {fd}")
            }
            Object::Name(name) => write!(f, "waits to {call} {name}"),
            Object::Code(code) => write!(f, "waits for the blocking pool to {call} {code}"),
            Object::Process(id) => write!(f, "waits for process {id} to {call}"),
        }
    }
}

/// The object of a [`WaitReason`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Object {
    /// There is none, or it has no name.
    None,
    /// An open file.
    Descriptor(RawFd),
    /// A part of an open file.
    Part {
        /// The descriptor of the file.
        fd: RawFd,
        /// The position at which the part begins, in bytes.
        offset: u64,
        /// The length of the part, in bytes.
        length: u64,
    },
    /// A thing by its name: the path of a file, or a host.
    Name(Arc<str>),
    /// Code of the program, by the name of its type.
    Code(&'static str),
    /// A process by its number.
    Process(u32),
}

/// Other actions of a scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// It has taken this many threads from another CPU of its group.
    Stole(usize),
    /// This many wake-ups have come from other OS threads.
    Mail(usize),
}

/// An observer of one CPU. The CPU calls it on its own OS thread. An observer that makes system
/// calls or wakes threads disturbs the program that it observes. An observer that panics takes the
/// scheduler down.
pub trait Observer: Send {
    /// A step has ended.
    fn ended(&mut self, step: Ended);

    /// The scheduler's turn: the CPU is about to look for events, or has just done so.
    fn turn(&mut self, _cpu: &Cpu) {}

    /// The CPU is about to wait in its event source.
    fn asleep(&mut self) {}

    /// The wait in the event source is over.
    fn awake(&mut self) {}

    /// The scheduler has done something else that is worth a note.
    fn note(&mut self, _note: Note) {}

    /// The running thread has given itself a name.
    fn named(&mut self, _thread: ThreadId, _name: &Arc<str>) {}

    /// The running thread is about to wait until thread `other` acts. See
    /// [`waits_for`](crate::observe::waits_for).
    fn waits_for(&mut self, _other: u32, _tie: &'static str) {}

    /// The running thread has taken back its request, and goes on. What it has told in this step
    /// with `waits_for` and `waits_on` was told for that request.
    fn waits_not(&mut self) {}

    /// The running thread is about to wait for this reason. See
    /// [`waits_on`](crate::observe::waits_on).
    fn waits_on(&mut self, _reason: WaitReason) {}

    /// Whether the observer wants the lengths of the queues now. The CPU asks once per turn.
    fn surveys(&mut self) -> bool {
        false
    }

    /// The length of a queue. `woken` is the queue of the CPU, which is also the ready queue of a
    /// simple scheduler. The other queues belong to the scheduler or to the event source.
    fn length(&mut self, _queue: &'static str, _length: usize) {}

    /// All lengths have been told.
    fn surveyed(&mut self) {}

    /// The facts that the observer knows of a waiting thread.
    fn seen(&self, _thread: ThreadId) -> Option<Seen> {
        None
    }
}

/// A function that is told the length of a queue, by the name of the queue.
pub type Lengths<'a> = dyn FnMut(&'static str, usize) + 'a;

impl End {
    /// The end of a step without a request in the slot; `request` is the last one that was made on
    /// behalf of a waker.
    pub(crate) fn of_request(request: Option<&Request>) -> End {
        match request {
            None => End::Park,
            Some(Request::Wait(readiness)) => End::Wait(*readiness),
            Some(Request::Sleep(alarm)) => End::Sleep(alarm.until()),
            Some(Request::Call(call)) => End::Call(call.name()),
        }
    }

    pub(crate) fn of_site(site: WaitSite) -> End {
        if site.is_join() { End::Join } else { End::Block(site.location()) }
    }
}
