//! A stage written as a coroutine: an `async` body that asks for items and puts items.
//!
//! The body and the stage meet when the body needs more items, or has a chunk of them to pass on.
//! In between, [`Io`] holds a chunk of the input and one of the output by itself, so that an item
//! costs a move and no lock. The lock of [`Meet`] is taken twice for each meeting, and no other
//! thread holds it.
//!
//! Users call `transducer` with an `async` body, or one of the functions in `bodies.rs` for the
//! other roles. The body must await nothing but its `Io`, because a stage never waits.

use super::item::{FINISHED, Flow, GO_ON};
use super::role::Transducer;
use super::stage::{Sink, Transduce};
use std::fmt;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// How many items a body puts before it passes them on.
const CHUNK: usize = 1024;

/// Where the body and the stage meet.
pub(super) struct Meet<A, B> {
    /// The next items for the body, the first one last. When the body has returned, these are the
    /// items that it has not taken.
    pub(super) input: Vec<A>,
    /// No items will follow.
    pub(super) ended: bool,
    /// What the body has put.
    output: Vec<B>,
    /// What the body waits for, if it waits for the stage.
    asks: Option<Asks>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Asks {
    Input,
    /// The output is a full chunk.
    Room,
}

/// The handle of a body: it takes items of type `A`, and puts items of type `B`.
///
/// Its operations take `&mut`, so that a body does one thing at a time.
pub struct Io<A, B> {
    desk: Arc<Mutex<Meet<A, B>>>,
    /// The next items, the first one last.
    input: Vec<A>,
    ended: bool,
    output: Vec<B>,
}

pub(super) fn locked<A, B>(desk: &Mutex<Meet<A, B>>) -> MutexGuard<'_, Meet<A, B>> {
    // No code of the body runs under the lock.
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<A, B> Io<A, B> {
    /// The next item, or `None` when the input has ended, as often as it is asked.
    ///
    /// # Paper
    /// [Pipes, Transducers in the middle] `awaitT`.
    #[expect(clippy::should_implement_trait, reason = "it is no iterator, because it suspends")]
    pub fn next(&mut self) -> NextItem<'_, A, B> {
        NextItem { io: self }
    }

    /// Puts an item.
    ///
    /// # Paper
    /// [Pipes, Transducers in the middle] `yieldT`.
    pub fn put(&mut self, item: B) -> PutItem<'_, A, B> {
        self.output.push(item);
        PutItem { io: self, passed: false }
    }

    /// Puts the items of a slice.
    ///
    /// # Complexity
    /// O(items), and at most one suspension.
    ///
    /// # Examples
    /// ```
    /// use selvedge::coroutine::pipeline::{from_chunks, transducer};
    ///
    /// let wide = transducer(|mut io| async move {
    ///     while let Some(byte) = io.next().await {
    ///         io.put_chunk(&[byte, b' ']).await;
    ///     }
    /// });
    /// assert_eq!((from_chunks(["warp"]) >> wide).collect(), b"w a r p ");
    /// ```
    pub fn put_chunk(&mut self, items: &[B]) -> PutItem<'_, A, B>
    where
        B: Clone,
    {
        self.output.extend_from_slice(items);
        PutItem { io: self, passed: false }
    }

    /// The next item, which remains the next item. `None` when the input has ended.
    ///
    /// # Examples
    /// ```
    /// use selvedge::coroutine::pipeline::{from_iter, transducer};
    ///
    /// // Neighbours that are equal become one.
    /// let unique = transducer(|mut io| async move {
    ///     while let Some(number) = io.next().await {
    ///         if io.peek().await != Some(&number) {
    ///             io.put(number).await;
    ///         }
    ///     }
    /// });
    /// assert_eq!((from_iter([1, 1, 2, 3, 3, 1]) >> unique).collect(), [1, 2, 3, 1]);
    /// ```
    pub async fn peek(&mut self) -> Option<&A> {
        FillInput { io: &mut *self }.await;
        self.input.last()
    }

    /// Takes all items that are here. If none is here, the body waits for the next ones. The list
    /// is empty only when the input has ended. Its length depends on the cuts of the input.
    ///
    /// # Examples
    /// ```
    /// use selvedge::coroutine::pipeline::{from_chunks, transducer};
    ///
    /// let loud = transducer(|mut io| async move {
    ///     loop {
    ///         let mut chunk: Vec<u8> = io.chunk().await;
    ///         if chunk.is_empty() {
    ///             return;
    ///         }
    ///         chunk.make_ascii_uppercase();
    ///         io.put_chunk(&chunk).await;
    ///     }
    /// });
    /// assert_eq!((from_chunks(["warp ", "weft"]) >> loud).collect(), b"WARP WEFT");
    /// ```
    pub async fn chunk(&mut self) -> Vec<A> {
        FillInput { io: &mut *self }.await;
        let mut items = std::mem::take(&mut self.input);
        items.reverse();
        items
    }

    /// Gives an item back. It becomes the next item.
    ///
    /// # Examples
    /// ```
    /// use selvedge::coroutine::pipeline::{from_chunks, transducer};
    ///
    /// // Each line break is one byte, if the input has two.
    /// let breaks = transducer(|mut io| async move {
    ///     while let Some(byte) = io.next().await {
    ///         match io.next().await {
    ///             Some(b'\n') if byte == b'\r' => io.put(b'\n').await,
    ///             Some(other) => {
    ///                 io.unread(other);
    ///                 io.put(byte).await;
    ///             }
    ///             None => io.put(byte).await,
    ///         }
    ///     }
    /// });
    /// assert_eq!((from_chunks(["warp\r", "\nweft\r"]) >> breaks).collect(), b"warp\nweft\r");
    /// ```
    pub fn unread(&mut self, item: A) {
        self.input.push(item);
    }

    /// Passes the output to the stage, and takes what input there is. `false` if the body has to
    /// wait.
    fn meet(&mut self, asks: Asks) -> bool {
        let mut desk = locked(&self.desk);
        desk.output.append(&mut self.output);
        if asks == Asks::Input {
            std::mem::swap(&mut desk.input, &mut self.input);
            self.ended = desk.ended;
            if !self.input.is_empty() || self.ended {
                return true;
            }
        }
        desk.asks = Some(asks);
        false
    }
}

/// What the body has put, and what it has not taken, reaches the stage when the body has ended.
impl<A, B> Drop for Io<A, B> {
    fn drop(&mut self) {
        let mut desk = locked(&self.desk);
        desk.output.append(&mut self.output);
        // If the body has not asked for items, then those on the desk come after its own.
        desk.input.append(&mut self.input);
    }
}

impl<A, B> fmt::Debug for Io<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Io").field("ended", &self.ended).finish_non_exhaustive()
    }
}

/// Waits until there is an item, or the input has ended.
struct FillInput<'a, A, B> {
    io: &'a mut Io<A, B>,
}

impl<A, B> Future for FillInput<'_, A, B> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
        let here = !self.io.input.is_empty() || self.io.ended || self.io.meet(Asks::Input);
        if here { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// The future of [`Io::next`].
#[must_use = "a future does nothing until it is awaited"]
pub struct NextItem<'a, A, B> {
    io: &'a mut Io<A, B>,
}

impl<A, B> Future for NextItem<'_, A, B> {
    type Output = Option<A>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<A>> {
        if let Some(item) = self.io.input.pop() {
            return Poll::Ready(Some(item));
        }
        if self.io.ended {
            return Poll::Ready(None);
        }
        if self.io.meet(Asks::Input) { Poll::Ready(self.io.input.pop()) } else { Poll::Pending }
    }
}

impl<A, B> fmt::Debug for NextItem<'_, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextItem").finish_non_exhaustive()
    }
}

/// The future of [`Io::put`].
#[must_use = "the body puts too much if it does not await"]
pub struct PutItem<'a, A, B> {
    io: &'a mut Io<A, B>,
    passed: bool,
}

impl<A, B> Future for PutItem<'_, A, B> {
    type Output = ();

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
        if self.passed || self.io.output.len() < CHUNK {
            return Poll::Ready(());
        }
        self.passed = true;
        self.io.meet(Asks::Room);
        Poll::Pending
    }
}

impl<A, B> fmt::Debug for PutItem<'_, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PutItem").field("passed", &self.passed).finish_non_exhaustive()
    }
}

/// The stage of [`transducer`].
pub struct Body<A, B, M, F> {
    /// The recipe.
    make: M,
    running: Option<BodyRun<A, B, F>>,
    /// What the body had not taken when it returned, the first item last.
    left: Vec<A>,
}

/// A body that runs.
pub(super) struct BodyRun<A, B, F> {
    body: Pin<Box<F>>,
    pub(super) desk: Arc<Mutex<Meet<A, B>>>,
    /// The output that was taken from the desk, for its memory.
    taken: Vec<B>,
}

/// Why a body has stopped.
pub(super) enum BodyStop<R> {
    WantsInput,
    /// It has passed on a full chunk.
    WantsRoom,
    Returned(R),
}

impl<A, B: Clone + 'static, F: Future> BodyRun<A, B, F> {
    pub(super) fn new(make: &mut impl FnMut(Io<A, B>) -> F) -> Self {
        let desk = Meet { input: Vec::new(), ended: false, output: Vec::new(), asks: None };
        let desk = Arc::new(Mutex::new(desk));
        let io = Io { desk: desk.clone(), input: Vec::new(), ended: false, output: Vec::new() };
        BodyRun { body: Box::pin(make(io)), desk, taken: Vec::new() }
    }

    /// Runs the body until it stops, and passes its output on. Breaks if `out` does.
    pub(super) fn step<S: Sink<B>>(&mut self, out: &mut S) -> ControlFlow<(), BodyStop<F::Output>> {
        let poll = self.body.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        self.taken.clear();
        let asks = {
            let mut desk = locked(&self.desk);
            std::mem::swap(&mut desk.output, &mut self.taken);
            desk.asks.take()
        };
        if !self.taken.is_empty() {
            out.put_chunk(&self.taken)?;
        }
        ControlFlow::Continue(match (poll, asks) {
            (Poll::Ready(result), _) => BodyStop::Returned(result),
            (Poll::Pending, Some(Asks::Input)) => BodyStop::WantsInput,
            (Poll::Pending, Some(Asks::Room)) => BodyStop::WantsRoom,
            (Poll::Pending, None) => panic!(
                "the body of a pipeline's stage awaited something else than its Io: step the pipeline \
                 with Transducer::step(), and await outside"
            ),
        })
    }

    /// Runs the body until it wants input. Returns its result, if it has returned.
    pub(super) fn resume<S: Sink<B>>(&mut self, out: &mut S) -> ControlFlow<(), Option<F::Output>> {
        loop {
            match self.step(out)? {
                BodyStop::WantsRoom => {}
                BodyStop::WantsInput => return ControlFlow::Continue(None),
                BodyStop::Returned(result) => return ControlFlow::Continue(Some(result)),
            }
        }
    }
}

/// A transducer written as a coroutine. It yields what `body` puts, and is finished when the body
/// returns.
///
/// The body begins with the first item, or at the end of an empty input. If the next stage is
/// finished, the body is dropped where it stands.
///
/// # Panics
/// If the body awaits anything but its [`Io`]: a stage never waits. The holder of a pipeline does
/// that, with [`Transducer::step`].
///
/// # Complexity
/// Two allocations for the body, and the buffers of one chunk of input and one of output.
///
/// # Paper
/// [Pipes, Transducers in the middle]: a coroutine with `awaitT` and `yieldT`.
///
/// # Examples
/// ```
/// use selvedge::coroutine::pipeline::{from_iter, transducer};
///
/// let differences = transducer(|mut io| async move {
///     let Some(mut before) = io.next().await else { return };
///     while let Some(number) = io.next().await {
///         io.put(number - before).await;
///         before = number;
///     }
/// });
/// assert_eq!((from_iter([1, 4, 9, 16]) >> differences).collect(), [3, 5, 7]);
/// ```
pub fn transducer<A, B, M, F>(body: M) -> Transducer<A, B, Body<A, B, M, F>>
where
    A: Clone + 'static,
    B: Clone + 'static,
    M: FnMut(Io<A, B>) -> F,
    F: Future<Output = ()>,
{
    Transducer::new(Body { make: body, running: None, left: Vec::new() })
}

/// The recipe once more: a body that runs is not copied.
impl<A, B, M: Clone, F> Clone for Body<A, B, M, F> {
    fn clone(&self) -> Self {
        Body { make: self.make.clone(), running: None, left: Vec::new() }
    }
}

impl<A, B, M, F> fmt::Debug for Body<A, B, M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("runs", &self.running.is_some()).finish_non_exhaustive()
    }
}

impl<A, B, M, F> Body<A, B, M, F>
where
    B: Clone + 'static,
    M: FnMut(Io<A, B>) -> F,
    F: Future<Output = ()>,
{
    /// Gives `input` to the body, and runs it until it asks for more. A body that is finished or
    /// cut is dropped.
    fn run<S: Sink<B>>(&mut self, input: impl FnOnce(&mut Meet<A, B>), out: &mut S) -> Flow {
        let flow = self.resume(input, out);
        if flow.is_break() {
            self.running = None;
        }
        flow
    }

    fn resume<S: Sink<B>>(&mut self, input: impl FnOnce(&mut Meet<A, B>), out: &mut S) -> Flow {
        let make = &mut self.make;
        let running = self.running.get_or_insert_with(|| BodyRun::new(make));
        input(&mut locked(&running.desk));
        match running.resume(out)? {
            Some(()) => {
                self.left = std::mem::take(&mut locked(&running.desk).input);
                FINISHED
            }
            None => GO_ON,
        }
    }

    /// The items that the body had not taken when it returned.
    pub(super) fn left(&mut self) -> Vec<A> {
        let mut left = std::mem::take(&mut self.left);
        left.reverse();
        left
    }
}

impl<A, B, M, F> Transduce<A, B> for Body<A, B, M, F>
where
    A: Clone + 'static,
    B: Clone + 'static,
    M: FnMut(Io<A, B>) -> F,
    F: Future<Output = ()>,
{
    const CHUNKS: bool = true;

    fn put<S: Sink<B>>(&mut self, item: &A, out: &mut S) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<S: Sink<B>>(&mut self, chunk: &[A], out: &mut S) -> Flow {
        if chunk.is_empty() {
            return GO_ON;
        }
        self.run(|desk| desk.input.extend(chunk.iter().rev().cloned()), out)
    }

    fn end<S: Sink<B>>(&mut self, out: &mut S) -> Flow {
        self.run(|desk| desk.ended = true, out)
    }
}
