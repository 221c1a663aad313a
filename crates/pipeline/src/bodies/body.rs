//! A stage written as a coroutine: an `async` body that asks for items and puts items.
//!
//! The body and the stage meet when the body needs more items, or has a chunk of them to pass on.
//! In between, [`Io`] holds a chunk of the input and one of the output by itself, so that an item
//! costs a move and no lock. The lock of [`Meet`] is taken twice for each meeting, and no other
//! thread holds it.
//!
//! A meeting is two polls' work, whatever the length of the chunk. So the stage gathers the items
//! that its neighbour puts one by one, and gives them to the body when there is a chunk of them, or
//! when the neighbour returns (`put` and `flush` of [`Transduce`]).
//!
//! The futures of [`Io`] are written by hand. Each is one word, the address of the `Io`, because
//! the state of the body keeps the future: what it holds is stored for each item. Each asks again
//! when it is polled again, so that it needs no state of its own. A flag of one byte there would
//! double the time of an item on processors that write whole words together.
//!
//! Users call `transducer` with an `async` body, or one of the functions in `roles.rs` for the
//! other roles. The body must await nothing but its `Io`, because a stage never waits.

use crate::bodies::queue::Queue;
use crate::item::{FINISHED, Flow, GO_ON};
use crate::role::Transducer;
use crate::stage::{Sink, Transduce};
use std::fmt;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// How many items a body puts before it passes them on: 4 KiB, so that the chunks of several bodies
/// in a row stay in the first level of the cache.
pub(crate) const fn chunk_length<B>() -> usize {
    length_of::<B>(4 << 10, 1024)
}

/// How many items a body is given at once at most: 8 KiB.
pub(crate) const fn piece_length<A>() -> usize {
    length_of::<A>(8 << 10, 8 << 10)
}

/// How many items have `bytes` together, from 64 to `most`.
const fn length_of<T>(bytes: usize, most: usize) -> usize {
    let size = if size_of::<T>() == 0 { 1 } else { size_of::<T>() };
    match bytes / size {
        ..64 => 64,
        length if length > most => most,
        length => length,
    }
}

/// Where the body and the stage meet.
pub(crate) struct Meet<A, B> {
    /// The next items for the body.
    pub(crate) input: Queue<A>,
    /// No items will follow.
    pub(crate) ended: bool,
    /// The items that the body has not taken, when it has returned.
    pub(crate) left: Vec<A>,
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
    /// The next items.
    input: Queue<A>,
    output: Vec<B>,
    ended: bool,
}

pub(crate) fn locked<A, B>(desk: &Mutex<Meet<A, B>>) -> MutexGuard<'_, Meet<A, B>> {
    // No code of the body runs under the lock.
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<A: Clone, B> Io<A, B> {
    /// The next item, or `None` when the input has ended, as often as it is asked.
    ///
    /// # Paper
    /// [Pipes, Transducers in the middle] `awaitT`.
    #[expect(clippy::should_implement_trait, reason = "it is no iterator, because it suspends")]
    #[inline(always)]
    pub fn next(&mut self) -> NextItem<'_, A, B> {
        NextItem { io: self }
    }

    /// Puts an item.
    ///
    /// # Paper
    /// [Pipes, Transducers in the middle] `yieldT`.
    #[inline(always)]
    pub fn put(&mut self, item: B) -> PutItem<'_, A, B> {
        self.output.push(item);
        PutItem { io: self }
    }

    /// Puts the items of a slice.
    ///
    /// # Complexity
    /// O(items), and at most one suspension.
    ///
    /// # Examples
    /// ```
    /// use selvedge::pipeline::{from_chunks, transducer};
    ///
    /// let wide = transducer(|mut io| async move {
    ///     while let Some(byte) = io.next().await {
    ///         io.put_chunk(&[byte, b' ']).await;
    ///     }
    /// });
    /// assert_eq!((from_chunks(["warp"]) >> wide).collect(), b"w a r p ");
    /// ```
    #[inline(always)]
    pub fn put_chunk(&mut self, items: &[B]) -> PutItem<'_, A, B>
    where
        B: Clone,
    {
        self.output.extend_from_slice(items);
        PutItem { io: self }
    }

    /// The next item, which remains the next item. `None` when the input has ended.
    ///
    /// # Examples
    /// ```
    /// use selvedge::pipeline::{from_iter, transducer};
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
    #[inline(always)]
    pub fn peek(&mut self) -> PeekItem<'_, A, B> {
        PeekItem { io: Some(self) }
    }

    /// Takes all items that are here. If none is here, the body waits for the next ones. The list
    /// is empty only when the input has ended. Its length depends on the cuts of the input.
    ///
    /// # Examples
    /// ```
    /// use selvedge::pipeline::{from_chunks, transducer};
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
        self.peek().await;
        self.input.take_all()
    }

    /// Gives an item back. It becomes the next item.
    ///
    /// # Examples
    /// ```
    /// use selvedge::pipeline::{from_chunks, transducer};
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
    #[inline(always)]
    pub fn unread(&mut self, item: A) {
        self.input.push_front(item);
    }
}

impl<A, B> Io<A, B> {
    /// Whether the next `put` finds memory for its item.
    #[inline(always)]
    fn has_room(&self) -> bool {
        // A vector of items without a size is never full.
        self.output.len()
            < if const { size_of::<B>() == 0 } { chunk_length::<B>() } else { self.output.capacity() }
    }

    /// Makes the output larger, or passes it on if it is a full chunk: then the body has to wait.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) -> Poll<()> {
        if self.output.len() < chunk_length::<B>() {
            self.output.reserve(1);
            return Poll::Ready(());
        }
        self.meet(Asks::Room);
        self.output.reserve(chunk_length::<B>());
        Poll::Pending
    }

    /// Asks the stage for items, if none is here. Pending if the body has to wait for them.
    #[cold]
    #[inline(never)]
    fn fill_input(&mut self) -> Poll<()> {
        let here = self.input.first().is_some() || self.ended || self.meet(Asks::Input);
        if here { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Passes the output to the stage, and takes what input there is. `false` if the body has to
    /// wait.
    fn meet(&mut self, asks: Asks) -> bool {
        let mut desk = locked(&self.desk);
        if desk.output.is_empty() {
            std::mem::swap(&mut desk.output, &mut self.output);
        } else {
            desk.output.append(&mut self.output);
        }
        if asks == Asks::Input {
            self.input.clear();
            std::mem::swap(&mut desk.input, &mut self.input);
            self.ended = desk.ended;
            if self.input.first().is_some() || self.ended {
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
        let mut left = self.input.take_all();
        left.append(&mut desk.input.take_all());
        desk.left = left;
    }
}

impl<A, B> fmt::Debug for Io<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Io").field("ended", &self.ended).finish_non_exhaustive()
    }
}

/// The future of [`Io::next`].
#[must_use = "a future does nothing until it is awaited"]
pub struct NextItem<'a, A, B> {
    io: &'a mut Io<A, B>,
}

impl<A: Clone, B> Future for NextItem<'_, A, B> {
    type Output = Option<A>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<A>> {
        match self.io.input.pop_front() {
            Some(item) => Poll::Ready(Some(item)),
            None => self.io.fill_input().map(|()| self.io.input.pop_front()),
        }
    }
}

impl<A, B> fmt::Debug for NextItem<'_, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextItem").finish_non_exhaustive()
    }
}

/// The future of [`Io::peek`].
#[must_use = "a future does nothing until it is awaited"]
pub struct PeekItem<'a, A, B> {
    /// `None` when the item has been told.
    io: Option<&'a mut Io<A, B>>,
}

impl<'a, A, B> Future for PeekItem<'a, A, B> {
    type Output = Option<&'a A>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<&'a A>> {
        let io = self.io.as_mut().expect("a future is not polled after its end");
        if io.input.first().is_none() && io.fill_input().is_pending() {
            return Poll::Pending;
        }
        Poll::Ready(self.io.take().and_then(|io| io.input.first()))
    }
}

impl<A, B> fmt::Debug for PeekItem<'_, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeekItem").finish_non_exhaustive()
    }
}

/// The future of [`Io::put`].
#[must_use = "the body puts too much if it does not await"]
pub struct PutItem<'a, A, B> {
    io: &'a mut Io<A, B>,
}

impl<A, B> Future for PutItem<'_, A, B> {
    type Output = ();

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
        if self.io.has_room() { Poll::Ready(()) } else { self.io.make_room() }
    }
}

impl<A, B> fmt::Debug for PutItem<'_, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PutItem").finish_non_exhaustive()
    }
}

/// The stage of [`transducer`].
pub struct Body<A, B, M, F> {
    /// The recipe.
    make: M,
    running: Option<BodyRun<A, B, F>>,
    /// Single items, until there is a chunk of them.
    gathered: Vec<A>,
    /// What the body had not taken when it returned.
    left: Vec<A>,
}

/// A body that runs.
pub(crate) struct BodyRun<A, B, F> {
    body: Pin<Box<F>>,
    pub(crate) desk: Arc<Mutex<Meet<A, B>>>,
    /// The output that was taken from the desk, for its memory.
    taken: Vec<B>,
}

/// Why a body has stopped.
pub(crate) enum BodyStop<R> {
    WantsInput,
    /// It has passed on a full chunk.
    WantsRoom,
    Returned(R),
}

impl<A, B: Clone + 'static, F: Future> BodyRun<A, B, F> {
    pub(crate) fn new(make: &mut impl FnMut(Io<A, B>) -> F) -> Self {
        let desk =
            Meet { input: Queue::new(), ended: false, left: Vec::new(), output: Vec::new(), asks: None };
        let desk = Arc::new(Mutex::new(desk));
        let io = Io { desk: desk.clone(), input: Queue::new(), output: Vec::new(), ended: false };
        BodyRun { body: Box::pin(make(io)), desk, taken: Vec::new() }
    }

    /// Runs the body until it stops, and passes its output on. Breaks if `out` does.
    pub(crate) fn step<S: Sink<B>>(&mut self, out: &mut S) -> ControlFlow<(), BodyStop<F::Output>> {
        let poll = self.body.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        self.taken.clear();
        let asks = {
            let mut desk = locked(&self.desk);
            std::mem::swap(&mut desk.output, &mut self.taken);
            desk.asks.take()
        };
        if !self.taken.is_empty() {
            out.put_store(&mut self.taken)?;
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
    pub(crate) fn resume<S: Sink<B>>(&mut self, out: &mut S) -> ControlFlow<(), Option<F::Output>> {
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
/// Two allocations for the body, and the buffers of one chunk of input and one of output. A stage
/// before the body that puts items one by one may put a chunk of them, 4 KiB, before the body takes
/// the first one, but no more than it makes of one call.
///
/// # Paper
/// [Pipes, Transducers in the middle]: a coroutine with `awaitT` and `yieldT`.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_iter, transducer};
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
    Transducer::new(Body { make: body, running: None, gathered: Vec::new(), left: Vec::new() })
}

/// The recipe once more: a body that runs is not copied.
impl<A, B, M: Clone, F> Clone for Body<A, B, M, F> {
    fn clone(&self) -> Self {
        Body { make: self.make.clone(), running: None, gathered: Vec::new(), left: Vec::new() }
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
                self.left = std::mem::take(&mut locked(&running.desk).left);
                FINISHED
            }
            None => GO_ON,
        }
    }

    /// Gives the single items to the body that it has gathered.
    #[inline(never)]
    fn give_gathered<S: Sink<B>>(&mut self, out: &mut S) -> Flow {
        let mut items = std::mem::take(&mut self.gathered);
        let flow = self.run(|desk| desk.input.fill_from(&mut items), out);
        self.gathered = items;
        flow
    }

    /// Gives the items to the body, a piece at a time. Returns how many it gave.
    pub(crate) fn feed<S: Sink<B>>(&mut self, items: &[A], out: &mut S) -> (usize, Flow)
    where
        A: Clone,
    {
        let mut given = 0;
        for piece in items.chunks(piece_length::<A>()) {
            given += piece.len();
            let flow = self.run(|desk| desk.input.fill(piece), out);
            if flow.is_break() {
                return (given, flow);
            }
        }
        (given, GO_ON)
    }

    /// The items that were given to the body, and that it had not taken when it returned.
    pub(crate) fn left(&mut self) -> Vec<A> {
        std::mem::take(&mut self.left)
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

    #[inline(always)]
    fn put<S: Sink<B>>(&mut self, item: &A, out: &mut S) -> Flow {
        self.gathered.push(item.clone());
        if self.gathered.len() < chunk_length::<A>() { GO_ON } else { self.flush(out) }
    }

    fn put_chunk<S: Sink<B>>(&mut self, chunk: &[A], out: &mut S) -> Flow {
        self.flush(out)?;
        self.feed(chunk, out).1
    }

    #[inline]
    fn flush<S: Sink<B>>(&mut self, out: &mut S) -> Flow {
        if self.gathered.is_empty() { GO_ON } else { self.give_gathered(out) }
    }

    fn put_store<S: Sink<B>>(&mut self, store: &mut Vec<A>, out: &mut S) -> Flow {
        self.flush(out)?;
        if store.len() <= piece_length::<A>() {
            return if store.is_empty() { GO_ON } else { self.run(|desk| desk.input.fill_from(store), out) };
        }
        self.put_chunk(store, out)?;
        store.clear();
        GO_ON
    }

    fn end<S: Sink<B>>(&mut self, out: &mut S) -> Flow {
        self.flush(out)?;
        self.run(|desk| desk.ended = true, out)
    }
}
