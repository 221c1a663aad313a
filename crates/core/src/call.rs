//! The program's own system calls: a request type, its reply type, and a scheduler that interprets
//! them.

use crate::Cpu;
use crate::cpu::ask::{direct, retract};
use crate::cpu::inner::current;
use crate::cpu::slot::Ask;
use crate::thread::Thread;
use crate::trace::{Detached, Request, Trace};
use crate::waker;
use std::any::{Any, type_name};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

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
    shared: Option<Arc<Exchange<C>>>,
}

/// What caller and scheduler share: each way is used once.
struct Exchange<C: Syscall> {
    request: Mutex<Option<C>>,
    reply: Mutex<Option<C::Reply>>,
    /// The caller, if it waits for other things too, or may move.
    waker: Mutex<Option<Waker>>,
}

/// What lies behind a lock that is held for a moment, and never while code of the program's runs.
fn of<T>(cell: &Mutex<T>) -> MutexGuard<'_, T> {
    cell.lock().expect("no panic under this lock")
}

impl<C: Syscall> Unpin for Calling<C> {}

impl<C: Syscall> Future for Calling<C> {
    type Output = C::Reply;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<C::Reply> {
        if let Some(shared) = &self.shared {
            let take = || of(&shared.reply).take();
            let reply = take().or_else(|| {
                // Woken for something else. A reply from another OS thread that came before the
                // waker is found after it.
                let waker = waker::tame(cx.waker().clone());
                let replaced = of(&shared.waker).replace(waker);
                drop(replaced);
                take()
            });
            return match reply {
                Some(reply) => {
                    self.shared = None;
                    Poll::Ready(reply)
                }
                None => Poll::Pending,
            };
        }
        let request = self.request.take().expect("a call is not polled after it has ended");
        let shared = Arc::new(Exchange {
            request: Mutex::new(Some(request)),
            reply: Mutex::new(None),
            waker: Mutex::new(None),
        });
        // The future may move; what it shares does not.
        let leaf = Arc::as_ptr(&shared);
        self.shared = Some(Arc::clone(&shared));
        let mut call = Box::new(Call { name: type_name::<C>(), exchange: shared, thread: None });
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
    /// Answers the calls of type `C` in a node by `reply`, and returns what is left for others to
    /// take: [`Trace::Blocked`] if nothing is.
    ///
    /// A call comes as [`Trace::Call`] from a thread that waits for nothing else, and through
    /// [`Trace::Any`], among [`detached`](Cpu::detached), from one that may move or be cancelled,
    /// or that made the call within a `join!` or a `select!`. This answers it in both; threads that
    /// go on are [woken](Cpu::woken). A scheduler passes what its threads' steps return through
    /// this, once for each type of call that it knows, before it acts on the node.
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
            Trace::Any => {
                // What a reply wakes may ask for more, behind those that are there now. The others
                // keep their order.
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
                if is_left { Trace::Any } else { Trace::Blocked }
            }
            other => other,
        }
    }

    /// Answers a call if it is of type `C`, else gives it back.
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

trait AnyExchange: Any {
    fn set_waker(&self, waker: Waker);
}

impl<C: Syscall> AnyExchange for Exchange<C> {
    fn set_waker(&self, waker: Waker) {
        *of(&self.waker) = Some(waker);
    }
}

/// A system call of the program's own, as the scheduler gets it: the request and the right to
/// answer it.
///
/// Dropping it cancels the caller; one that made the call within a `join!` or the like waits on,
/// for the other things.
pub struct Call {
    name: &'static str,
    exchange: Arc<dyn AnyExchange>,
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
        let exchange = Arc::into_raw(self.exchange).cast::<Exchange<C>>();
        // SAFETY: it is of this type, as `is` has just found, and came out of an Arc.
        let exchange = unsafe { Arc::from_raw(exchange) };
        let request = of(&exchange.request).take().expect("a call is made once");
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
    exchange: Arc<Exchange<C>>,
    thread: Option<Thread>,
}

impl<C: Syscall> Answer<C> {
    /// Answers, and returns the thread to go on with.
    ///
    /// `None` if the caller made the call within a `join!` or the like: it has been woken, and
    /// comes through [`Cpu::woken`](crate::Cpu::woken).
    pub fn reply(self, reply: C::Reply) -> Option<Thread> {
        *of(&self.exchange.reply) = Some(reply);
        let waker = of(&self.exchange.waker).take();
        if let Some(waker) = waker {
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
