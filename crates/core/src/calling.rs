//! The program's own system calls as threads make them ([`call`]), and how a scheduler answers all
//! calls of one type ([`Cpu::answer`]).
//!
//! Programs and their schedulers use both. `call.rs` has the types in between. The exchange is on
//! the heap, because the future may move while the scheduler has the request.

use crate::call::{Call, CallExchange, Syscall};
use crate::cpu::ask::{direct, retract};
use crate::cpu::inner::{Cpu, current};
use crate::cpu::slot::Ask;
use crate::trace::{Detached, Request, Trace};
use crate::waker;
use std::any::type_name;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

/// Makes a system call of the program's own, and waits for the reply.
///
/// # Panics
/// When polled outside of a Selvedge thread, because no scheduler could answer.
///
/// # Complexity
/// Two allocations for each call.
pub fn call<C: Syscall>(request: C) -> Calling<C> {
    Calling { request: Some(request), shared: None }
}

/// The future of [`call`].
#[must_use = "nothing happens until it is awaited"]
pub struct Calling<C: Syscall> {
    request: Option<C>,
    shared: Option<Arc<CallExchange<C>>>,
}

impl<C: Syscall> Unpin for Calling<C> {}

impl<C: Syscall> Future for Calling<C> {
    type Output = C::Reply;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<C::Reply> {
        if let Some(shared) = &self.shared {
            let reply = match shared.reply.take() {
                Some(reply) => reply,
                // The thread was woken for something else.
                None => ready!(shared.reply.poll(waker::tame(cx.waker().clone())))
                    .expect("only this function takes the reply"),
            };
            self.shared = None;
            return Poll::Ready(reply);
        }
        let request = self.request.take().expect("a call is not polled after it has ended");
        let shared = Arc::new(CallExchange::new(request));
        // The future may move. The exchange does not.
        let leaf = Arc::as_ptr(&shared);
        self.shared = Some(Arc::clone(&shared));
        let mut call = Box::new(Call::new(shared));
        match (direct(cx), current()) {
            (Some(cpu), _) if cpu.ask(leaf, Ask::Call) => cpu.put_call(call),
            (_, Some(cpu)) => {
                call.detach(waker::tame(cx.waker().clone()));
                cpu.spill(Request::Call(call), Waker::noop().clone());
            }
            (_, None) => {
                panic!("the system call {} needs a scheduler that answers it: here is none", type_name::<C>())
            }
        }
        Poll::Pending
    }
}

impl<C: Syscall> Drop for Calling<C> {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            retract(Arc::as_ptr(shared));
        }
    }
}

impl<C: Syscall> fmt::Debug for Calling<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Calling({})", type_name::<C>())
    }
}

impl Cpu {
    /// Answers the calls of type `C` in a node by `reply`, and returns the rest of the node:
    /// [`Trace::Blocked`] if nothing is left.
    ///
    /// A thread that waits for nothing else makes a call as [`Trace::Call`]. A thread that may move
    /// or be cancelled, or that makes the call within a `join!` or a `select!`, makes it as
    /// [`Trace::Detached`], and the call is among [`detached`](Cpu::detached). This answers both.
    /// Threads that go on are [woken](Cpu::woken). A scheduler passes each node through this, once
    /// for each type of call that it knows, before it acts on the node.
    ///
    /// # Examples
    /// ```
    /// use selvedge::scope::join;
    /// use selvedge::{Cpu, Syscall, Trace, call};
    ///
    /// struct Square(u32);
    /// impl Syscall for Square {
    ///     type Reply = u32;
    /// }
    ///
    /// let mut cpu = Cpu::new()?;
    /// let mut main = cpu.spawn_local(async {
    ///     let (one, other) = join((call(Square(2)), call(Square(3)))).await; // both at once
    ///     one + other + call(Square(4)).await
    /// })?;
    /// while let Some(thread) = cpu.woken() {
    ///     let node = thread.step(&mut cpu);
    ///     match cpu.answer(node, |Square(number)| number * number) {
    ///         Trace::Yield(thread) => cpu.make_ready(thread),
    ///         end => assert!(matches!(end, Trace::Blocked | Trace::Ret)),
    ///     }
    /// }
    /// assert_eq!(main.try_join().unwrap().unwrap(), 29);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn answer<C: Syscall>(&mut self, node: Trace, mut reply: impl FnMut(C) -> C::Reply) -> Trace {
        match node {
            Trace::Call(call) => self.answer_one(call, &mut reply).map_or(Trace::Blocked, Trace::Call),
            Trace::Detached => {
                // A woken thread may make more requests, which come after the present requests. The
                // requests that are not answered keep their order.
                let mut is_left = false;
                for _ in 0..self.detached_count() {
                    let Some(Detached { request, waker }) = self.detached() else { break };
                    let left = match request {
                        Request::Call(call) => self.answer_one(call, &mut reply).map(Request::Call),
                        other => Some(other),
                    };
                    if let Some(request) = left {
                        is_left = true;
                        self.put_back(Detached { request, waker });
                    }
                }
                if is_left { Trace::Detached } else { Trace::Blocked }
            }
            other => other,
        }
    }

    /// Answers a call if it is of type `C`. Otherwise it gives the call back.
    fn answer_one<C: Syscall>(
        &mut self,
        call: Box<Call>,
        reply: &mut impl FnMut(C) -> C::Reply,
    ) -> Option<Box<Call>> {
        match call.take::<C>() {
            Ok((request, answer)) => {
                let thread = answer.reply(reply(request));
                thread.into_iter().for_each(|thread| self.make_ready(thread));
                None
            }
            Err(other) => Some(other),
        }
    }
}
