//! [`Waiting`]: the future of one waiter, from its first attempt to the end of its wait.
//!
//! [`WaitQueue::wait`] creates it, and the objects of `selvedge-sync` await it. Its node is in the
//! list of the object while it is queued: see the head of `wait_queue.rs`.

use super::WaitQueue;
use super::list::{CONCERNS_OTHERS, DONE, GRANTED, IDLE, Node, QUEUED, Queue, fire};
use super::mode::Mode;
use super::role::Role;
use crate::budget;
use crate::cpu::ask::{direct, retract};
use crate::cpu::inner::{CpuInner, current};
use crate::lock::{Guard, Lock};
use crate::primitives::Ordering;
use crate::quietly::quietly;
use crate::wait_site::WaitSite;
use crate::waker::Waiter;
use std::fmt;
use std::future::Future;
use std::marker::{PhantomData, PhantomPinned};
use std::mem::replace;
use std::panic::Location;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll, ready};

impl<S, P, M: Mode> WaitQueue<S, P, M> {
    /// Waits in a role: the future tries, and if that fails, it queues until it is granted.
    ///
    /// Dropping the future gives up. A queued waiter leaves the queue, and a granted one passes the
    /// grant on. While it waits, the thread is listed with the place of the caller.
    ///
    /// # Complexity
    /// One critical section to try, none to collect a grant, one to give up.
    #[inline(always)]
    #[track_caller]
    pub fn wait<R: Role<S, P>>(&self, payload: P) -> Waiting<'_, S, P, R, M> {
        self.wait_at(payload, Location::caller())
    }

    /// As [`wait`](WaitQueue::wait), on behalf of a caller at `place`.
    #[inline(always)]
    pub fn wait_at<R: Role<S, P>>(
        &self,
        payload: P,
        place: &'static Location<'static>,
    ) -> Waiting<'_, S, P, R, M> {
        Waiting { queue: self, node: Node::new(place, payload), _role: PhantomData, _pinned: PhantomPinned }
    }
}

/// The future of a waiter, created by [`WaitQueue::wait`].
///
/// A future that polls several waits itself, with its own context, must poll each of them in every
/// step, as `select` and `join` do. Otherwise the thread may see a grant late. An example is a
/// thread of [`fork_local`](crate::fork_local) with a step that polls only a wait for an event. The
/// event source takes the whole thread. The thread then sees a grant to a wait of an earlier step
/// only after the event.
///
/// It must not be dropped within an operation on its own object: see [`WaitQueue::with`].
#[must_use = "nothing happens until it is awaited"]
pub struct Waiting<'a, S, P, R: Role<S, P>, M: Mode> {
    queue: &'a WaitQueue<S, P, M>,
    node: Node<P>,
    _role: PhantomData<fn() -> R>,
    _pinned: PhantomPinned,
}

// SAFETY: the future holds a reference to the queue, which may be sent because the queue is Sync, a
// payload, which is Send, and a node. The node is used under the lock of the queue while it is
// queued (see the head of this file), and by its owner alone otherwise. A `Local` queue is not
// Sync, so its waiters are not Send.
unsafe impl<S, P: Send, R: Role<S, P>, M: Mode> Send for Waiting<'_, S, P, R, M> where WaitQueue<S, P, M>: Sync
{}

impl<S, P, R: Role<S, P>, M: Mode> Future for Waiting<'_, S, P, R, M> {
    type Output = R::Output;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R::Output> {
        match self.node.state.load(Ordering::Acquire) {
            GRANTED => return Poll::Ready(self.collect()),
            IDLE => {}
            _ => return self.as_ref().look_again(cx),
        }
        if R::PASSES {
            ready!(budget::spend(cx, 1));
            // SAFETY: the state is IDLE, so the owner, which polls here, has the node alone.
            let payload = unsafe { &mut *self.node.payload.get() };
            if self.queue.inner.exchange(R::USUAL, |word| R::pass(word, payload)).is_ok() {
                self.node.state.store(DONE, Ordering::Relaxed);
                return Poll::Ready(R::granted(payload));
            }
            return self.as_ref().attempt_late(cx);
        }
        match CpuInner::of(cx) {
            Some(cpu) if R::IS_SHORT && (!R::IS_PAID || budget::is_left()) => {
                self.as_ref().attempt::<false>(Polls::Here(cpu))
            }
            _ => self.as_ref().attempt_with::<false>(cx),
        }
    }
}

/// The caller of a waiter's `poll`.
enum Polls<'a> {
    /// The thread that this CPU runs. The CPU must be told when the thread has to wait.
    Here(&'a CpuInner),
    /// A combinator or a foreign executor. Its waker is cloned before the lock is taken, because
    /// the clone is code that may come back to the object.
    Elsewhere(Waiter),
}

impl<'a> Polls<'a> {
    #[inline(always)]
    fn of(cx: &Context<'_>) -> Polls<'a> {
        match direct(cx) {
            Some(cpu) => Polls::Here(cpu),
            None => Polls::Elsewhere(Waiter::of(cx.waker().clone())),
        }
    }

    /// The CPU that runs a step on this OS thread.
    #[inline(always)]
    fn cpu(&self) -> Option<&'a CpuInner> {
        match *self {
            Polls::Here(cpu) => Some(cpu),
            Polls::Elsewhere(_) => current(),
        }
    }

    /// The `Waiter` for a node's links, and the CPU if it must be told.
    #[inline(always)]
    fn into_waiter(self) -> (Waiter, Option<&'a CpuInner>) {
        match self {
            Polls::Here(cpu) => (cpu.waiter(), Some(cpu)),
            Polls::Elsewhere(waiter) => (waiter, None),
        }
    }
}

/// The number of further attempts of a waiter that could not pass, before it queues. An OS thread
/// that holds the object may be about to release it.
const LOOKS: u32 = if cfg!(loom) { 0 } else { 8 };

impl<S, P, R: Role<S, P>, M: Mode> Waiting<'_, S, P, R, M> {
    #[inline(never)]
    fn attempt_late(self: Pin<&Self>, cx: &mut Context<'_>) -> Poll<R::Output> {
        if !M::LOCAL && self.node.state.load(Ordering::Relaxed) == IDLE {
            // SAFETY: the state is IDLE, so the owner, which polls here, has the node alone.
            let payload = unsafe { &mut *self.node.payload.get() };
            for _ in 0..LOOKS {
                std::hint::spin_loop();
                if self.queue.exchange(|word| R::pass(word, payload)).is_ok() {
                    self.node.state.store(DONE, Ordering::Relaxed);
                    return Poll::Ready(R::granted(payload));
                }
            }
        }
        self.attempt_with::<true>(cx)
    }

    /// The first attempt under the lock, with any context. `PAID` says that its price has been paid
    /// already.
    #[inline(never)]
    fn attempt_with<const PAID: bool>(self: Pin<&Self>, cx: &mut Context<'_>) -> Poll<R::Output> {
        if R::IS_PAID && !PAID {
            ready!(budget::spend(cx, 1));
        }
        self.attempt::<true>(Polls::of(cx))
    }

    /// The first attempt under the lock. `PAID` says that its price has been paid already.
    #[inline(always)]
    fn attempt<const PAID: bool>(self: Pin<&Self>, polls: Polls<'_>) -> Poll<R::Output> {
        let this = self.get_ref();
        let mut guard = this.queue.inner.enter();
        let ((state, list), word) = guard.parts();
        let mut queue = Queue::new(list, word, polls.cpu());
        // SAFETY: the callers have found the state IDLE, so the owner, which polls here, has the
        // node alone.
        let output = R::attempt(state, &mut queue, unsafe { &mut *this.node.payload.get() });
        let fires = queue.fires;
        let Some(output) = output else {
            let (waiter, cpu) = polls.into_waiter();
            // SAFETY: the node is idle, so it is in no list. It is pinned with this future, and the
            // drop of the future unlinks it. `guard` holds the lock.
            unsafe { list.push(NonNull::from(&this.node), waiter) };
            let granted = if fires { list.take_granted() } else { None };
            drop(guard);
            if let Some((first, others)) = granted {
                fire(first, others);
            }
            if R::IS_PAID && PAID {
                budget::refund(1);
            }
            this.block(cpu);
            return Poll::Pending;
        };
        let granted = if fires { list.take_granted() } else { None };
        drop(guard);
        this.node.state.store(DONE, Ordering::Relaxed);
        if R::IS_PAID && !PAID {
            budget::charge_one();
        }
        if let Some((first, others)) = granted {
            fire(first, others);
        }
        // The waker in `polls` may be foreign, so it is dropped after the lock is released.
        drop(polls);
        Poll::Ready(output)
    }

    /// Polls a waiter that is not idle any more.
    #[cold]
    #[inline(never)]
    fn look_again(self: Pin<&Self>, cx: &mut Context<'_>) -> Poll<R::Output> {
        let this = self.get_ref();
        let node = NonNull::from(&this.node);
        match this.node.state.load(Ordering::Acquire) {
            GRANTED => Poll::Ready(this.collect()),
            QUEUED => {
                // Both wakers may be foreign, so they are dropped after the lock is released.
                let mut polls = Some(Polls::of(cx));
                let mut replaced = None;
                let queued = this.queue.with(|state, queue| {
                    if this.node.state.load(Ordering::Relaxed) != QUEUED {
                        return Err(None);
                    }
                    if queue.list.first == Some(node)
                        && let Some(output) = R::retry(state, queue)
                    {
                        if this.node.state.load(Ordering::Relaxed) != QUEUED {
                            // `retry` has granted this waiter as well.
                            return Err(None);
                        }
                        // SAFETY: the state is QUEUED, so the node is in this list, and `with`
                        // holds the lock. After `unlink` the owner has the node alone. Its `Waiter`
                        // is moved out once, because the state becomes DONE.
                        unsafe {
                            queue.list.unlink(node);
                            replaced = Some((&raw const (*Node::links(node)).waiter).read());
                            this.node.state.store(DONE, Ordering::Relaxed);
                            R::withdrawn(state, queue, &mut *this.node.payload.get(), true);
                        }
                        return Err(Some(output));
                    }
                    if this.node.state.load(Ordering::Relaxed) != QUEUED {
                        return Err(None);
                    }
                    let (waiter, cpu) = polls.take().expect("made above").into_waiter();
                    // SAFETY: the state is QUEUED, so `push` has written the links, and `with`
                    // holds the lock.
                    replaced = Some(unsafe { replace(&mut (*Node::links(node)).waiter, waiter) });
                    Ok(cpu)
                });
                drop(replaced);
                match queued {
                    Ok(cpu) => {
                        this.block(cpu);
                        Poll::Pending
                    }
                    Err(Some(output)) => Poll::Ready(output),
                    Err(None) => Poll::Ready(this.collect()),
                }
            }
            _ => panic!("a wait was polled after it had ended"),
        }
    }

    #[inline(always)]
    fn block(&self, cpu: Option<&CpuInner>) {
        if let Some(cpu) = cpu {
            cpu.ask_block(&raw const self.node, WaitSite::of(self.node.place), M::LOCAL);
        }
    }

    #[inline(always)]
    fn collect(&self) -> R::Output {
        self.node.state.store(DONE, Ordering::Relaxed);
        // SAFETY: the callers have found the state GRANTED, with an Acquire load or under the lock.
        // So the owner, which polls here, has the node alone.
        R::granted(unsafe { &mut *self.node.payload.get() })
    }

    #[cold]
    fn give_up(&self) {
        retract(&raw const self.node);
        self.queue.inner.before_last();
        let node = NonNull::from(&self.node);
        let waiter = self.queue.with(|state, queue| {
            if self.node.state.load(Ordering::Relaxed) == QUEUED {
                let first = queue.list.first == Some(node);
                // SAFETY: the state is QUEUED, so the node is in this list, and `with` holds the
                // lock. After `unlink` the owner has the node alone. Its `Waiter` is moved out
                // once, because only `drop` calls this.
                unsafe {
                    queue.list.unlink(node);
                    R::withdrawn(state, queue, &mut *self.node.payload.get(), first);
                    Some((&raw const (*Node::links(node)).waiter).read())
                }
            } else {
                // SAFETY: `drop` has found the node queued or granted, and it is not queued. So it
                // is granted, and the owner has it alone. `with` holds the lock under which it was
                // granted, so the granter's changes are visible.
                R::abandoned(state, queue, unsafe { &mut *self.node.payload.get() });
                None
            }
        });
        // A foreign waker may panic when it is dropped, and this OS thread may be unwinding
        // already.
        if let Some(waiter) = waiter {
            quietly(|| drop(waiter));
        }
    }
}

impl<S, P, R: Role<S, P>, M: Mode> Drop for Waiting<'_, S, P, R, M> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.node.state.load(Ordering::Relaxed) & CONCERNS_OTHERS != 0 {
            self.give_up();
        }
    }
}

impl<S, P, R: Role<S, P>, M: Mode> fmt::Debug for Waiting<'_, S, P, R, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("place", &self.node.place).finish_non_exhaustive()
    }
}
