//! The step of a thread, and its common ends.
//!
//! [`Thread::step`] is how schedulers call it; it gives a node. `round_robin.rs` enters the CPU
//! once (`Stepping`) and acts on a [`Brief`] without a node. The files of `cpu` and `joinable.rs`
//! complete it: a leaf fills the slot during the poll (`ask.rs`), and `run` acts on the slot's kind
//! after it. These functions are the hot path, compiled into each scheduler's loop: an end that is
//! not common belongs into `conclude.rs`. `figures -- instructions` counts their instructions.

use super::inner::{CURRENT, Cpu, CpuInner, leave};
use super::keep::strayed;
use super::slot::SlotKind;
use super::step::{NESTED, SHARED};
use crate::arena::Key;
use crate::body;
use crate::header::{MOBILE, NOTIFIED, STICKY, WAITING};
use crate::thread::Thread;
use crate::trace::{Trace, Wait};
use crate::vtable::vtable;
use crate::wait_site::WaitSite;
use std::ptr;
use std::sync::atomic::Ordering;

/// The end of a step, on which a scheduler's loop acts without making a [`Trace`].
pub(crate) enum Brief {
    Yield(Thread),
    Blocked,
    Ret,
    Fork {
        child: Thread,
        parent: Thread,
    },
    /// All others. [`Cpu::end_of_step`] is to be called next.
    Other,
}

/// A CPU that is the current one of its OS thread, for a loop that makes many steps and runs no
/// code of the program between them. When this is dropped, the CPU before it is the current one
/// again.
pub(crate) struct Stepping<'a> {
    cpu: &'a CpuInner,
    outer: *const CpuInner,
}

impl Stepping<'_> {
    /// As [`Cpu::woken`], but it does not take in the mail.
    #[inline(always)]
    pub(crate) fn woken(&self) -> Option<Thread> {
        self.cpu.pop_woken()
    }

    /// As [`Cpu::make_ready`].
    #[inline(always)]
    pub(crate) fn make_ready(&self, thread: Thread) {
        self.cpu.push_woken(thread);
    }

    /// As [`Cpu::step`], but without the node of an uncommon end.
    #[inline(always)]
    pub(crate) fn step(&self, thread: Thread) -> Brief {
        self.cpu.run(self.cpu.at_home(thread))
    }
}

impl Drop for Stepping<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        leave(self.outer);
    }
}

impl Cpu {
    #[inline(always)]
    pub(crate) fn step(&mut self, thread: Thread) -> Trace {
        match self.step_briefly(thread) {
            Brief::Yield(thread) => Trace::Yield(thread),
            Brief::Blocked => Trace::Blocked,
            Brief::Ret => Trace::Ret,
            Brief::Fork { child, parent } => Trace::Fork { child, parent },
            Brief::Other => self.end_of_step(),
        }
    }

    /// As [`step`](Cpu::step), but without the node of an uncommon end.
    #[inline(always)]
    fn step_briefly(&mut self, thread: Thread) -> Brief {
        let thread = self.inner().at_home(thread);
        if !CURRENT.get().is_null() {
            self.inner().step_within();
        }
        CURRENT.set(self.inner.as_ptr());
        let brief = self.inner().run(thread);
        CURRENT.set(ptr::null());
        brief
    }

    /// Makes the CPU the current one of this OS thread, as in a step, until the result is dropped.
    #[inline(always)]
    pub(crate) fn enter(&mut self) -> Stepping<'_> {
        Stepping { cpu: self.inner(), outer: CURRENT.replace(self.inner.as_ptr()) }
    }

    /// The node of a step that ended as [`Brief::Other`].
    #[inline(always)]
    pub(crate) fn end_of_step(&mut self) -> Trace {
        self.inner().end_of_step()
    }
}

impl Thread {
    /// Runs the thread to its next system call. A step of a thread that yields takes 4-5 ns.
    ///
    /// A panic in it ends this thread alone: it becomes [`Trace::Panic`], or reaches the thread's
    /// joiner.
    ///
    /// # Panics
    /// If another CPU created the thread, and this one would have to keep it (in a debug build:
    /// always). A thread that may move runs on all CPUs of its group. The thread is cancelled.
    #[inline(always)]
    pub fn step(self, cpu: &mut Cpu) -> Trace {
        cpu.step(self)
    }
}

impl CpuInner {
    /// The thread. A debug build checks that it may run here.
    #[inline(always)]
    fn at_home(&self, thread: Thread) -> Thread {
        if cfg!(debug_assertions) && !self.owns(thread.key()) && !self.is_home_to(thread.key()) {
            strayed(thread);
        }
        thread
    }

    /// Runs a thread to the end of its step. The CPU is the current one already.
    #[inline(always)]
    fn run(&self, thread: Thread) -> Brief {
        let key = thread.into_key();
        let (head, body) = (self.base.header(key).head(), self.base.body(key));
        self.step.running.store(key.get(), Ordering::Relaxed);
        // SAFETY: the handle owned the thread, so it is live. This function holds it until it
        // passes the thread on below, according to the result.
        unsafe { body::poll(head, body, self) };
        let slot = &self.slot;
        if self.step.flags.load(Ordering::Relaxed) != 0 {
            return Brief::Other;
        }
        // Comparisons in this order, and not a `match`, because the compiler would make a jump
        // through a table of it.
        let stop = slot.kind.get();
        if stop == SlotKind::Yield {
            slot.kind.set(SlotKind::Nothing);
            // SAFETY: it is pending and held here; it goes to the handle.
            return Brief::Yield(unsafe { Thread::from_key(key) });
        }
        if stop.is_block() {
            let head = self.base.header(key).head();
            if head & (STICKY | MOBILE) == 0 && self.owns(key) {
                slot.kind.set(SlotKind::Nothing);
                self.keep_own(key, head, stop as u32, WaitSite(slot.word.get()));
                return Brief::Blocked;
            }
        } else if stop == SlotKind::Done {
            if self.owns(key) {
                slot.kind.set(SlotKind::Nothing);
                // SAFETY: `Done` says that the body is dropped. The block was held here, and lies
                // in a chunk of this CPU.
                unsafe {
                    let head = self.base.header(key).head();
                    (*self.slab.get()).free(self.base, key, vtable(head).granules as usize);
                }
                return Brief::Ret;
            }
        } else if stop == SlotKind::JoinerTold {
            slot.kind.set(SlotKind::Nothing);
            return Brief::Ret;
        } else if stop == SlotKind::Fork {
            slot.kind.set(SlotKind::Nothing);
            // SAFETY: `Fork` says that the slot owned the child, by the key in it. The parent is
            // held here.
            unsafe {
                let child = Thread::from_key(Key::new_unchecked(slot.word.get()));
                return Brief::Fork { child, parent: Thread::from_key(key) };
            }
        }
        Brief::Other
    }

    /// The step that begins is within a step of another CPU, which runs on when this one ends.
    #[cold]
    #[inline(never)]
    fn step_within(&self) {
        self.outer.set(CURRENT.get());
        self.step.flags.fetch_or(NESTED, Ordering::Relaxed);
    }

    /// The key and the head of the thread that has just made its step.
    #[inline(always)]
    pub(super) fn stopped(&self) -> (Key, u32) {
        // SAFETY: `run` has put a key there, and no code clears it before the end of the step.
        let key = unsafe { Key::new_unchecked(self.step.running.load(Ordering::Relaxed)) };
        (key, self.base.header(key).head())
    }

    /// The end of a step that [`run`](CpuInner::run) has not dealt with. Each of its calls is its
    /// last action, so that it saves no register.
    #[inline(never)]
    fn end_of_step(&self) -> Trace {
        let (key, head) = self.stopped();
        let slot = &self.slot;
        let (flags, stop) = (self.step.flags.load(Ordering::Relaxed), slot.kind.get());
        if flags & !SHARED == 0 && (stop == SlotKind::Nothing || stop.is_block()) {
            return self.end_waiting(key, head);
        }
        if flags == 0 {
            match stop {
                SlotKind::JoinerPending => {
                    slot.kind.set(SlotKind::Nothing);
                    return self.end_joined(key, head);
                }
                SlotKind::Wait if head & (STICKY | MOBILE) == 0 => {
                    slot.kind.set(SlotKind::Nothing);
                    // SAFETY: it is pending and held here; it goes to the handle.
                    let thread = unsafe { Thread::from_key(key) };
                    return Trace::Wait(Wait::new(thread, slot.readiness.get()));
                }
                _ => {}
            }
        }
        self.end_otherwise()
    }

    /// As [`end_of_step`](CpuInner::end_of_step), without a flag or with `SHARED` alone: the thread
    /// waits for a waker, or in a queue. This is the end of each step that waits for a primitive of
    /// another crate.
    #[inline(never)]
    fn end_waiting(&self, key: Key, head: u32) -> Trace {
        let site = match self.slot.kind.get() {
            SlotKind::Nothing => WaitSite::UNKNOWN,
            _ => WaitSite(self.slot.word.get()),
        };
        let mobile = head & MOBILE != 0;
        if !mobile && !self.owns(key) {
            return self.end_otherwise();
        }
        // The step has given the lent waker back, so no other code writes to the flags now.
        self.step.flags.store(0, Ordering::Relaxed);
        self.slot.kind.set(SlotKind::Nothing);
        if !mobile {
            self.keep_own(key, head | STICKY, WAITING, site);
            return Trace::Blocked;
        }
        // Another OS thread may resume the thread from now on, so this CPU does not run it.
        self.step.running.store(0, Ordering::Relaxed);
        // `park` finds a wake-up that has come since.
        match self.keep_mobile(key, head & !NOTIFIED, site) {
            true => Trace::Blocked,
            // SAFETY: it is pending and held here; it goes to the handle.
            false => Trace::Yield(unsafe { Thread::from_key(key) }),
        }
    }

    /// As [`end_of_step`](CpuInner::end_of_step): the end of a thread that is joined.
    #[inline(never)]
    fn end_joined(&self, key: Key, head: u32) -> Trace {
        // The code that is told may look at the CPU.
        self.step.running.store(0, Ordering::Relaxed);
        // SAFETY: it was held here, and `JoinerPending` says that it has just ended.
        unsafe { self.tell_joiner(key, head) };
        Trace::Ret
    }

    /// As [`end_of_step`](CpuInner::end_of_step): all the others.
    #[inline(never)]
    fn end_otherwise(&self) -> Trace {
        if self.step.flags.load(Ordering::Relaxed) & NESTED != 0 {
            self.step.flags.fetch_and(!NESTED, Ordering::Relaxed);
            leave(self.outer.get());
        }
        let (key, mut head) = self.stopped();
        if head & MOBILE != 0 {
            // `park` finds a wake-up that has come since.
            head &= !NOTIFIED;
        }
        // Destructors and observers may look at the CPU.
        self.step.running.store(0, Ordering::Relaxed);
        let stop = self.slot.kind.get();
        let ask = self.slot.take();
        self.conclude(key, head, stop.polled(), ask)
    }
}
