//! The program's own system calls: a request type, its reply type, and a scheduler that interprets them.

use crate::cpu::{Ask, current, direct, retract};
use crate::thread::Thread;
use crate::trace::Request;
use std::any::{Any, type_name};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// A system call of the program's own: the type is the request.
///
/// # Paper
/// [LZ07 §4.2]: adding a system call, its node, and its interpretation.
///
/// # Examples
/// A system call that the scheduler answers with the number of its turn:
/// ```
/// use selvedge_core::{Cpu, Syscall, Trace, call};
///
/// struct Turn;
/// impl Syscall for Turn {
///     type Reply = u32;
/// }
///
/// let mut cpu = Cpu::new()?;
/// let mut thread = Some(cpu.thread(async {
///     assert_eq!(call(Turn).await, 0);
///     assert_eq!(call(Turn).await, 1);
/// })?);
/// let mut turn = 0;
/// while let Some(next) = thread.take() {
///     match next.step(&mut cpu) {
///         Trace::Call(request) => {
///             let (Turn, answer) = request.take::<Turn>().unwrap();
///             thread = answer.reply(turn);
///             turn += 1;
///         }
///         end => assert!(matches!(end, Trace::Ret)),
///     }
/// }
/// assert_eq!(turn, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Syscall: 'static {
    /// What the scheduler answers.
    type Reply: 'static;
}

/// Makes a system call of the program's own, and waits for the reply.
///
/// # Panics
/// When polled outside of a thread of ours: nobody could answer.
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
    shared: Option<Rc<Exchange<C>>>,
}

/// What caller and scheduler share: each way is used once.
struct Exchange<C: Syscall> {
    request: Cell<Option<C>>,
    reply: Cell<Option<C::Reply>>,
    /// The caller, if it waits for other things too.
    waker: RefCell<Option<Waker>>,
}

impl<C: Syscall> Unpin for Calling<C> {}

impl<C: Syscall> Future for Calling<C> {
    type Output = C::Reply;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<C::Reply> {
        if let Some(shared) = &self.shared {
            if let Some(reply) = shared.reply.take() {
                self.shared = None;
                return Poll::Ready(reply);
            }
            // Woken for something else.
            *shared.waker.borrow_mut() = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let request = self.request.take().expect("a call is not polled after it has ended");
        let shared = Rc::new(Exchange {
            request: Cell::new(Some(request)),
            reply: Cell::new(None),
            waker: RefCell::new(None),
        });
        // The future may move; what it shares does not.
        let leaf = Rc::as_ptr(&shared);
        self.shared = Some(Rc::clone(&shared));
        let mut call = Box::new(Call { name: type_name::<C>(), exchange: shared, thread: None });
        match (direct(cx), current()) {
            (Some(cpu), _) if cpu.ask(leaf, Ask::Call) => cpu.put_call(call),
            (_, Some(cpu)) => {
                call.detach(cx.waker().clone());
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
            retract(Rc::as_ptr(shared));
        }
    }
}

impl<C: Syscall> fmt::Debug for Calling<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Calling({})", type_name::<C>())
    }
}

trait AnyExchange: Any {
    fn set_waker(&self, waker: Waker);
}

impl<C: Syscall> AnyExchange for Exchange<C> {
    fn set_waker(&self, waker: Waker) {
        *self.waker.borrow_mut() = Some(waker);
    }
}

/// A system call of the program's own, as the scheduler gets it: the request and the right to answer it.
///
/// Dropping it cancels the caller; one that made the call within a `join!` or the like waits on, for the other things.
pub struct Call {
    name: &'static str,
    exchange: Rc<dyn AnyExchange>,
    /// `None` if the caller waits for other things too, and is to be woken.
    thread: Option<Thread>,
}

impl Call {
    /// Whether it is a call of type `C`.
    pub fn is<C: Syscall>(&self) -> bool {
        let exchange: &dyn Any = &*self.exchange;
        exchange.is::<Exchange<C>>()
    }

    /// The request and the right to answer it, if it is a call of type `C`.
    ///
    /// # Errors
    /// Gives the call back if it is another.
    pub fn take<C: Syscall>(self: Box<Self>) -> Result<(C, Answer<C>), Box<Call>> {
        if !self.is::<C>() {
            return Err(self);
        }
        let exchange: Rc<dyn Any> = self.exchange;
        let exchange = exchange.downcast::<Exchange<C>>().expect("just looked at its type");
        let request = exchange.request.take().expect("a call is made once");
        Ok((request, Answer { exchange, thread: self.thread }))
    }

    pub(crate) fn carry(&mut self, thread: Thread) {
        self.thread = Some(thread);
    }

    pub(crate) fn detach(&mut self, waker: Waker) {
        self.exchange.set_waker(waker);
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Call({}, {:?})", self.name, self.thread)
    }
}

/// The right to answer a call, once. Dropping it cancels the caller, as dropping the [`Call`] does.
pub struct Answer<C: Syscall> {
    exchange: Rc<Exchange<C>>,
    thread: Option<Thread>,
}

impl<C: Syscall> Answer<C> {
    /// Answers, and returns the thread to go on with.
    ///
    /// `None` if the caller made the call within a `join!` or the like: it has been woken, and comes through
    /// [`Cpu::woken`](crate::Cpu::woken).
    pub fn reply(self, reply: C::Reply) -> Option<Thread> {
        self.exchange.reply.set(Some(reply));
        if let Some(waker) = self.exchange.waker.take() {
            waker.wake();
        }
        self.thread
    }
}

impl<C: Syscall> fmt::Debug for Answer<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Answer({}, {:?})", type_name::<C>(), self.thread)
    }
}
