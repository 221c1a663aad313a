//! The end of a step the long way: the observer is told, requests are detached, threads that are
//! over are freed.
//!
//! `run.rs` calls `conclude` for each end that it has no short way for: a flag of `step.rs` is set,
//! or the end is a rare one. A joinable body (`joinable.rs`) calls `tell_in_step` in its last poll.
//! Each arm passes the thread on exactly once: into the node, to `keep.rs`, to the ready queue, or
//! to its end.

use super::inner::{CURRENT, CpuInner, leave};
use super::slot::Ask;
use super::step::{NOTIFIED, OBSERVED, SHARED, SHIELDED, SPILLED, TIRED};
use crate::Panic;
use crate::arena::{self, Key};
use crate::body;
use crate::header::{CANCELLABLE, FINISHED, MOBILE, STATE, STICKY, WAITING, WAITING_HERE};
use crate::observer::{End, Ended};
use crate::quietly::quietly;
use crate::thread::Thread;
use crate::thread_info::ThreadId;
use crate::trace::{Detached, Request, Sleep, Trace, Wait};
use crate::vtable::{Polled, vtable};
use crate::wait_site::WaitSite;
use crate::waker;
use std::sync::atomic::Ordering;
use std::task::Waker;

impl CpuInner {
    /// The end of a step that [`run`](CpuInner::run) and `end_of_step` have not dealt with.
    #[inline(never)]
    pub(super) fn conclude(&self, key: Key, head: u32, polled: Polled, ask: Ask) -> Trace {
        // The step has given the lent waker back, so no other code writes to the flags now.
        let mut flags = self.step.flags.load(Ordering::Relaxed);
        self.step.flags.store(flags & OBSERVED, Ordering::Relaxed);
        flags &= !(TIRED | SHIELDED);
        if flags & OBSERVED != 0 {
            flags &= !OBSERVED;
            self.tell_end(key, polled, ask, flags);
        }
        let (call, nbio, alarm) = (self.call.take(), self.nbio.take(), self.alarm.take());
        if polled != Polled::Pending || matches!(ask, Ask::Exit) {
            let end = self.end(key, head, polled);
            return if flags & SPILLED == 0 { end } else { self.also_any(end) };
        }
        // SAFETY: it is pending and held here. No foreign code runs before it is passed on.
        let hand_over = || unsafe { Thread::from_key(key) };
        // When other code or an event source has a waker of the thread, the thread can be woken at
        // any time. So it can when it waits in a queue but was woken in this step, because it goes
        // on and then waits for something else.
        let detaching = flags != 0
            && matches!(ask, Ask::Wait(_) | Ask::Sleep(_) | Ask::Call | Ask::Block(_) | Ask::BlockHere(_));
        // A mobile thread can be woken at any time anyway.
        let mobile = head & MOBILE != 0;
        let sticky = !mobile && (flags & SHARED != 0 || detaching || head & STICKY != 0);
        if sticky && head & STICKY == 0 {
            arena::header(key).set_head(head | STICKY);
        }
        // For `keep`, which writes the whole word.
        let head = if sticky { head | STICKY } else { head };
        let alone = flags == 0 && !sticky && head & (MOBILE | CANCELLABLE) == 0;
        match ask {
            // Without an observer, `end_of_step` has dealt with it. For threads that can be
            // cancelled see [`Thread::is_cancellable`].
            Ask::Wait(readiness) if flags == 0 && !sticky && !mobile => {
                return Trace::Wait(Wait::new(hand_over(), readiness));
            }
            Ask::Sleep(until) if alone => return Trace::Sleep(Sleep::new(hand_over(), until)),
            Ask::Call if alone => {
                let mut call = call.expect("put into the slot with Ask::Call");
                call.carry(hand_over());
                return Trace::Call(call);
            }
            Ask::Nbio if flags & SPILLED == 0 => {
                let mut nbio = nbio.expect("put into the slot with Ask::Nbio");
                nbio.carry(hand_over());
                return Trace::Nbio(nbio);
            }
            Ask::Fork(child) if flags & SPILLED == 0 => {
                // SAFETY: the slot owned the child.
                return Trace::Fork { child: unsafe { Thread::from_key(child) }, parent: hand_over() };
            }
            Ask::Yield if flags & SPILLED == 0 => return Trace::Yield(hand_over()),
            _ => {}
        }
        // The thread waits for several things, or other code can wake it. So its request goes to
        // the event source with a waker, and the thread stays here.
        let mut runnable = flags & NOTIFIED != 0;
        let mut site = WaitSite::UNKNOWN;
        match ask {
            Ask::Wait(readiness) => self.detach(key, Request::Wait(readiness)),
            Ask::Sleep(_) => {
                let alarm = alarm.expect("put beside the slot with Ask::Sleep");
                self.detach(key, Request::Sleep(alarm));
            }
            Ask::Call => {
                let mut call = call.expect("put into the slot with Ask::Call");
                call.detach(waker::of(self.step.id, key.get()));
                self.detach(key, Request::Call(call));
            }
            Ask::Nbio => {
                nbio.expect("put into the slot with Ask::Nbio").perform_detached();
                runnable = true;
            }
            Ask::Fork(child) => {
                // SAFETY: the slot owned the child.
                self.push_woken(unsafe { Thread::from_key(child) });
                runnable = true;
            }
            Ask::Yield => runnable = true,
            Ask::Block(at) | Ask::BlockHere(at) => site = at,
            Ask::Nothing | Ask::Exit => {}
        }
        let any = !self.spilled.borrow().is_empty();
        if runnable {
            if !any {
                return Trace::Yield(hand_over());
            }
            self.push_woken(hand_over());
        } else if mobile {
            if !self.keep_mobile(key, head, site) {
                if !any {
                    return Trace::Yield(hand_over());
                }
                self.push_woken(hand_over());
            }
        } else {
            let state =
                if matches!(ask, Ask::BlockHere(_)) && !sticky && !any { WAITING_HERE } else { WAITING };
            self.keep(key, head, state, site);
        }
        if any { Trace::Detached } else { Trace::Blocked }
    }

    /// Tells the observer how a step has ended, before other code has the thread.
    fn tell_end(&self, key: Key, polled: Polled, ask: Ask, flags: u8) {
        let end = match (polled, ask) {
            (Polled::Panicked, _) => End::Panic,
            (Polled::Done | Polled::JoinerTold | Polled::JoinerPending, _) | (_, Ask::Exit) => End::Return,
            (_, Ask::Fork(child)) => End::Fork(ThreadId(child)),
            (_, Ask::Nbio) => End::Nbio,
            (_, Ask::Yield) => End::Yield,
            _ if flags & NOTIFIED != 0 => End::Yield,
            (_, Ask::Wait(readiness)) => End::Wait(readiness),
            (_, Ask::Sleep(until)) => End::Sleep(until),
            (_, Ask::Call) => {
                let call = self.call.take();
                let name = call.as_ref().map_or("", |call| call.name());
                self.call.set(call);
                End::Call(name)
            }
            (_, Ask::Block(site) | Ask::BlockHere(site)) => End::of_site(site),
            (_, Ask::Nothing) => End::of_request(self.spilled.borrow().back().map(|d| &d.request)),
        };
        // A thread that waits in a queue or for an event, and has also given its waker away, waits
        // for the waker too.
        let several = flags & SPILLED != 0 || flags & SHARED != 0 && !matches!(ask, Ask::Nothing);
        let ended = Ended { thread: ThreadId(key), end, several };
        self.tell(|observer| observer.ended(ended));
    }

    fn detach(&self, key: Key, request: Request) {
        self.spilled.borrow_mut().push_back(Detached { request, waker: waker::of(self.step.id, key.get()) });
    }

    /// The step ended the thread, and left detached requests, of combinators that outlive it.
    fn also_any(&self, end: Trace) -> Trace {
        match end {
            Trace::Ret => Trace::Detached,
            // The panic is reported first; the requests come with the next step, or when the
            // scheduler is idle.
            end => {
                self.step.flags.fetch_or(SPILLED, Ordering::Relaxed);
                end
            }
        }
    }

    /// The thread is over: it returned, panicked, or called `exit`.
    fn end(&self, key: Key, head: u32, polled: Polled) -> Trace {
        let vtable = vtable(head);
        match polled {
            Polled::Pending => {
                let outer = CURRENT.replace(self);
                // SAFETY: `exit` has left the thread pending, and it is held here.
                drop(unsafe { Thread::from_key(key) });
                leave(outer);
                Trace::Ret
            }
            Polled::JoinerPending => {
                // SAFETY: it was held here, and `JoinerPending` says that it has just ended.
                unsafe { self.tell_joiner(key, head) };
                Trace::Ret
            }
            Polled::JoinerTold => Trace::Ret,
            Polled::Done | Polled::Panicked => {
                // SAFETY: `polled` says that the body is dropped. The block was held here.
                unsafe { self.free_block(key, vtable.granules as usize) };
                match self.payload.take() {
                    Some(payload) => Trace::Panic(Box::new(Panic::new(key.get(), (vtable.name)(), payload))),
                    None => Trace::Ret,
                }
            }
        }
    }

    /// The end of a thread that is joined.
    ///
    /// # Safety
    /// The caller held the thread, which has just ended as `JoinerPending`.
    pub(super) unsafe fn tell_joiner(&self, key: Key, head: u32) {
        // While this CPU is the current one, a joiner of this CPU is woken here, not by mail.
        let outer = CURRENT.replace(self);
        // SAFETY: the caller's contract.
        unsafe { body::conclude(key, head, vtable(head)) };
        leave(outer);
    }

    /// Marks the block of the running thread, which has just ended. After that its joiner may be
    /// told.
    #[inline(always)]
    pub(crate) fn mark_finished(&self) {
        let (key, head) = self.stopped();
        self.base.header(key).set_head(head & !STATE | FINISHED);
    }

    /// Tells the joiner of the running thread, which has ended and has marked its block. A panic of
    /// foreign code ends here, because the step would take it for a panic of the thread. While
    /// foreign code wakes the joiner, no thread counts as the running one.
    #[inline(never)]
    pub(crate) fn tell_in_step(&self, joiner: Waker) {
        let key = self.step.running.load(Ordering::Relaxed);
        quietly(|| {
            if let Err(foreign) = waker::fire_here(joiner) {
                self.step.running.store(0, Ordering::Relaxed);
                foreign.wake();
            }
        });
        self.step.running.store(key, Ordering::Relaxed);
    }
}
