//! The program's own system calls as the scheduler gets them: a request type ([`Syscall`]), the
//! request of a thread ([`Call`]), and the right to answer it ([`Answer`]).
//!
//! `calling.rs` makes a `Call`, the CPU puts it into a node `Trace::Call` (`cpu/conclude.rs`), and
//! a scheduler takes it apart: `Cpu::answer` (`calling.rs`), or a scheduler of `sched` or of the
//! program. The caller's thread travels in the `Call` or the `Answer`, so dropping either cancels
//! it.

use crate::reply_cell::ReplyCell;
use crate::thread::Thread;
use std::any::{Any, type_name};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::task::Waker;

/// A system call of the program's own: the type is the request.
///
/// # Paper
/// [LZ07 §4.2]: adding a system call, its node, and its interpretation.
///
/// # Examples
/// A system call that the scheduler answers with the number of its turn:
/// ```
/// use selvedge::{Cpu, Syscall, Trace, call};
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
    /// The answer of the scheduler.
    type Reply: 'static;
}

/// The state that the caller and the scheduler share. The request and the reply go through it once
/// each.
pub(crate) struct CallExchange<C: Syscall> {
    request: Mutex<Option<C>>,
    /// It has the caller's waker if the caller waits for other things too, or may move.
    pub(crate) reply: ReplyCell<C::Reply>,
}

impl<C: Syscall> CallExchange<C> {
    pub(crate) fn new(request: C) -> CallExchange<C> {
        CallExchange { request: Mutex::new(Some(request)), reply: ReplyCell::default() }
    }
}

trait AnyExchange: Any {
    fn set_waker(&self, waker: Waker);
}

impl<C: Syscall> AnyExchange for CallExchange<C> {
    fn set_waker(&self, waker: Waker) {
        let polled = self.reply.poll(waker);
        debug_assert!(polled.is_pending(), "no scheduler has the call yet");
    }
}

/// A system call of the program's own, as the scheduler gets it: the request and the right to
/// answer it.
///
/// Dropping it cancels the caller. A caller that made the call within a `join!` or the like is not
/// cancelled: it waits on for the other things.
pub struct Call {
    name: &'static str,
    exchange: Arc<dyn AnyExchange>,
    /// `None` if the caller waits for other things too, and is to be woken.
    thread: Option<Thread>,
}

impl Call {
    pub(crate) fn new<C: Syscall>(exchange: Arc<CallExchange<C>>) -> Call {
        Call { name: type_name::<C>(), exchange, thread: None }
    }

    /// Whether it is a call of type `C`.
    pub fn is<C: Syscall>(&self) -> bool {
        let exchange: &dyn Any = &*self.exchange;
        exchange.is::<CallExchange<C>>()
    }

    /// The request and the right to answer it, if it is a call of type `C`.
    ///
    /// # Errors
    /// Gives the call back if it is another.
    pub fn take<C: Syscall>(self: Box<Self>) -> Result<(C, Answer<C>), Box<Call>> {
        if !self.is::<C>() {
            return Err(self);
        }
        let exchange = Arc::into_raw(self.exchange).cast::<CallExchange<C>>();
        // SAFETY: `is` has just found that it is of this type, and it came out of an `Arc`.
        let exchange = unsafe { Arc::from_raw(exchange) };
        let request =
            exchange.request.lock().expect("no panic under this lock").take().expect("a call is made once");
        Ok((request, Answer { exchange, thread: self.thread }))
    }

    /// The type of the call.
    pub(crate) fn name(&self) -> &'static str {
        self.name
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
    exchange: Arc<CallExchange<C>>,
    thread: Option<Thread>,
}

impl<C: Syscall> Answer<C> {
    /// Answers, and returns the thread to go on with.
    ///
    /// `None` if the caller made the call within a `join!` or the like. Then the caller has been
    /// woken, and comes through [`Cpu::woken`](crate::Cpu::woken).
    pub fn reply(self, reply: C::Reply) -> Option<Thread> {
        let put = self.exchange.reply.put(reply);
        debug_assert!(put.is_ok(), "a call is answered once");
        self.thread
    }
}

impl<C: Syscall> fmt::Debug for Answer<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Answer({}, {:?})", type_name::<C>(), self.thread)
    }
}
