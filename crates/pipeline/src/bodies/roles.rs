//! Stages of other roles than a transducer, written as coroutines: `generator`, `iteratee` and
//! `splitter`. `body.rs` has the handle `Io` and runs the bodies.
//!
//! A body that takes nothing, or puts nothing, has a handle with the item type `Infallible`, of
//! which there are no items.
//!
//! When a body returns, its `Io` puts the items that the body has not taken back on the desk. An
//! iteratee leaves them to the next consumer. A splitter must pass on each item of its input, so
//! these items become false.

use crate::bodies::body::{Body, BodyRun, BodyStop, Io, chunk_length, locked, piece_length};
use crate::bodies::queue::Queue;
use crate::item::{FINISHED, Flow, GO_ON};
use crate::role::{Generator, Iteratee, Splitter};
use crate::stage::{Consume, Generate, Sections, Sink, Split, Transduce};
use std::convert::Infallible;
use std::fmt;
use std::ops::ControlFlow;

/// The stage of [`generator`].
pub struct GeneratorBody<B, M, F> {
    /// The recipe.
    make: M,
    running: Option<BodyRun<Infallible, B, F>>,
}

/// A generator written as a coroutine. It yields what `body` puts, and ends when the body returns.
///
/// The body may put a chunk of items before the next stage takes the first one: 4 KiB, at least 64
/// items and at most 1024. If the next stage is finished, the body is dropped where it stands.
///
/// # Panics
/// If the body awaits anything but its [`Io`].
///
/// # Paper
/// [Pipes, Listing 10] `Generator`.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{generator, take};
///
/// let fibonacci = generator(|mut io| async move {
///     let (mut a, mut b) = (0_u64, 1);
///     loop {
///         io.put(a).await;
///         (a, b) = (b, a.wrapping_add(b));
///     }
/// });
/// assert_eq!((fibonacci >> take(8)).collect(), [0, 1, 1, 2, 3, 5, 8, 13]);
/// ```
pub fn generator<B, M, F>(body: M) -> Generator<B, GeneratorBody<B, M, F>>
where
    B: Clone + 'static,
    M: FnMut(Io<Infallible, B>) -> F,
    F: Future<Output = ()>,
{
    Generator::new(GeneratorBody { make: body, running: None })
}

impl<B, M, F> Generate<B> for GeneratorBody<B, M, F>
where
    B: Clone + 'static,
    M: FnMut(Io<Infallible, B>) -> F,
    F: Future<Output = ()>,
{
    fn pump<S: Sink<B>>(&mut self, out: &mut S) -> ControlFlow<(), bool> {
        let make = &mut self.make;
        let running = self.running.get_or_insert_with(|| {
            let running = BodyRun::new(make);
            // A body that asks for an item sees the end.
            locked(&running.desk).ended = true;
            running
        });
        let more = running.step(out).map_continue(|stop| !matches!(stop, BodyStop::Returned(())));
        if more != ControlFlow::Continue(true) {
            self.running = None;
        }
        more
    }
}

/// The recipe once more: a body that runs is not copied.
impl<B, M: Clone, F> Clone for GeneratorBody<B, M, F> {
    fn clone(&self) -> Self {
        GeneratorBody { make: self.make.clone(), running: None }
    }
}

impl<B, M, F> fmt::Debug for GeneratorBody<B, M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GeneratorBody").field("runs", &self.running.is_some()).finish_non_exhaustive()
    }
}

/// The stage of [`iteratee`].
pub struct IterateeBody<A, M, F: Future> {
    /// The recipe.
    make: M,
    running: Option<BodyRun<A, Infallible, F>>,
    /// Single items, until there is a chunk of them.
    gathered: Vec<A>,
    result: Option<F::Output>,
}

/// An iteratee written as a coroutine. Its result is that of `body`, and it is finished when the
/// body returns. The items that the body has not taken, or has [given back](Io::unread), are for
/// the next consumer of the stream: see [`Feeding::put_some`](crate::Feeding::put_some).
///
/// The body begins with the first item, or at the end of an empty input.
///
/// # Panics
/// If the body awaits anything but its [`Io`].
///
/// # Complexity
/// As [`transducer`](crate::transducer). An item that is given back after the body has taken items
/// of a later chunk is lost to the next consumer.
///
/// # Paper
/// [Pipes, Listing 10] `Iteratee`.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{Io, collect, from_chunks, iteratee};
///
/// // A number, which ends where another byte comes.
/// let number = iteratee(|mut io: Io<u8, _>| async move {
///     let mut number = 0;
///     while let Some(digit) = io.peek().await.filter(|byte| byte.is_ascii_digit()) {
///         number = number * 10 + u32::from(digit - b'0');
///         io.next().await;
///     }
///     number
/// });
/// let mut stream = from_chunks(["4", "2 warps"]).pull();
/// assert_eq!(stream.read(number).unwrap(), 42);
/// assert_eq!(stream.read(collect()).unwrap(), b" warps");
/// ```
pub fn iteratee<A, M, F>(body: M) -> Iteratee<A, IterateeBody<A, M, F>>
where
    A: Clone + 'static,
    M: FnMut(Io<A, Infallible>) -> F,
    F: Future,
{
    Iteratee::new(IterateeBody { make: body, running: None, gathered: Vec::new(), result: None })
}

/// The sink of a body that puts nothing.
struct NoItems;

impl Sink<Infallible> for NoItems {
    fn put(&mut self, item: &Infallible) -> Flow {
        match *item {}
    }
}

impl<A, M, F> IterateeBody<A, M, F>
where
    A: Clone + 'static,
    M: FnMut(Io<A, Infallible>) -> F,
    F: Future,
{
    /// Gives the body, which has not returned, the items that `fill` puts into its queue, or the
    /// end. Returns how many of them it has not taken, if it returns.
    fn resume(&mut self, fill: impl FnOnce(&mut Queue<A>), ended: bool) -> Option<usize> {
        let make = &mut self.make;
        let running = self.running.get_or_insert_with(|| BodyRun::new(make));
        {
            let mut desk = locked(&running.desk);
            fill(&mut desk.input);
            desk.ended = ended;
        }
        if let ControlFlow::Continue(Some(result)) = running.resume(&mut NoItems) {
            let left = locked(&running.desk).left.len();
            self.running = None;
            self.result = Some(result);
            return Some(left);
        }
        None
    }
}

impl<A, M, F> Consume<A> for IterateeBody<A, M, F>
where
    A: Clone + 'static,
    M: FnMut(Io<A, Infallible>) -> F,
    F: Future,
{
    type Result = F::Output;

    const CHUNKS: bool = true;

    #[inline(always)]
    fn put(&mut self, item: &A) -> Flow {
        self.gathered.push(item.clone());
        if self.gathered.len() < chunk_length::<A>() { GO_ON } else { Consume::<A>::flush(self) }
    }

    fn put_chunk(&mut self, chunk: &[A]) -> Flow {
        self.put_some(chunk).1
    }

    #[inline]
    fn flush(&mut self) -> Flow {
        if self.gathered.is_empty() {
            return GO_ON;
        }
        let mut items = std::mem::take(&mut self.gathered);
        let returned = self.resume(|queue| queue.fill_from(&mut items), false).is_some();
        self.gathered = items;
        if returned { FINISHED } else { GO_ON }
    }

    fn put_some(&mut self, chunk: &[A]) -> (usize, Flow) {
        let _gathered = Consume::<A>::flush(self);
        let mut given = 0;
        for piece in chunk.chunks(piece_length::<A>()) {
            if self.result.is_some() {
                return (given, FINISHED);
            }
            given += piece.len();
            if let Some(left) = self.resume(|queue| queue.fill(piece), false) {
                return (given.saturating_sub(left), FINISHED);
            }
        }
        (given, GO_ON)
    }

    fn finish(&mut self) -> Flow {
        let _gathered = Consume::<A>::flush(self);
        if self.result.is_none() {
            self.resume(Queue::clear, true);
        }
        FINISHED
    }

    fn end(self) -> F::Output {
        self.result.expect("a body that sees the end of its input returns")
    }
}

/// The recipe once more: a body that runs is not copied.
impl<A, M: Clone, F: Future> Clone for IterateeBody<A, M, F> {
    fn clone(&self) -> Self {
        IterateeBody { make: self.make.clone(), running: None, gathered: Vec::new(), result: None }
    }
}

impl<A, M, F: Future> fmt::Debug for IterateeBody<A, M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IterateeBody").field("runs", &self.running.is_some()).finish_non_exhaustive()
    }
}

/// An item or an end of a section, as the body of a [`splitter`] puts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SectionPart<A> {
    /// The next item of the input, in a section of this verdict.
    Item(bool, A),
    /// The section ends.
    Close(bool),
}

/// The stage of [`splitter`].
pub struct SplitterBody<A, M, F> {
    body: Body<A, SectionPart<A>, M, F>,
    /// The body has returned: all is false.
    over: bool,
    /// The verdict of the section that is open.
    open: Option<bool>,
}

/// A splitter written as a coroutine. The body puts each item that it takes, with its verdict, and
/// puts [`SectionPart::Close`] where a section ends. The splitter ends a section that is open at
/// the end of the input. When the body returns, the items that it has not taken are false.
///
/// # Panics
/// If the body awaits anything but its [`Io`].
///
/// # Paper
/// [Pipes, Listing 14] `Splitter`.
///
/// # Examples
/// ```
/// use selvedge::pipeline::SectionPart::{Close, Item};
/// use selvedge::pipeline::{from_iter, group_by, splitter};
///
/// // Each run of numbers that rise by one.
/// let runs = splitter(|mut io| async move {
///     while let Some(number) = io.next().await {
///         io.put(Item(true, number)).await;
///         if io.peek().await != Some(&(number + 1)) {
///             io.put(Close(true)).await;
///         }
///     }
/// });
/// let lists = (from_iter([1, 2, 3, 7, 8, 5]) >> group_by(runs)).collect();
/// assert_eq!(lists.iter().collect::<Vec<_>>(), [&[1, 2, 3][..], &[7, 8], &[5]]);
/// ```
pub fn splitter<A, M, F>(body: M) -> Splitter<A, SplitterBody<A, M, F>>
where
    A: Clone + 'static,
    M: FnMut(Io<A, SectionPart<A>>) -> F,
    F: Future<Output = ()>,
{
    Splitter::new(SplitterBody { body: crate::bodies::body::transducer(body).stage, over: false, open: None })
}

/// Makes sections of what the body puts.
struct ToSections<'a, P> {
    open: &'a mut Option<bool>,
    out: &'a mut P,
    /// `out` has broken.
    closed: bool,
}

impl<A: Clone + 'static, P: Sections<A>> Sink<SectionPart<A>> for ToSections<'_, P> {
    fn put(&mut self, part: &SectionPart<A>) -> Flow {
        let flow = match part {
            SectionPart::Item(verdict, item) => {
                *self.open = Some(*verdict);
                self.out.part(*verdict, item)
            }
            SectionPart::Close(verdict) => {
                *self.open = None;
                self.out.close(*verdict)
            }
        };
        self.closed = flow.is_break();
        flow
    }
}

impl<A, M, F> SplitterBody<A, M, F>
where
    A: Clone + 'static,
    M: FnMut(Io<A, SectionPart<A>>) -> F,
    F: Future<Output = ()>,
{
    /// Passes items on that the body does not want.
    fn pass<P: Sections<A>>(&mut self, items: &[A], out: &mut P) -> Flow {
        if items.is_empty() {
            return GO_ON;
        }
        if self.open == Some(true) {
            self.open = None;
            out.close(true)?;
        }
        self.open = Some(false);
        out.part_chunk(false, items)
    }
}

impl<A, M, F> Split<A> for SplitterBody<A, M, F>
where
    A: Clone + 'static,
    M: FnMut(Io<A, SectionPart<A>>) -> F,
    F: Future<Output = ()>,
{
    fn put<P: Sections<A>>(&mut self, item: &A, out: &mut P) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<P: Sections<A>>(&mut self, chunk: &[A], out: &mut P) -> Flow {
        if self.over {
            return self.pass(chunk, out);
        }
        let mut sections = ToSections { open: &mut self.open, out, closed: false };
        let (given, flow) = self.body.feed(chunk, &mut sections);
        if sections.closed {
            return FINISHED;
        }
        if flow.is_continue() {
            return GO_ON;
        }
        self.over = true;
        let left = self.body.left();
        self.pass(&left, out)?;
        self.pass(&chunk[given..], out)
    }

    fn end<P: Sections<A>>(&mut self, out: &mut P) -> Flow {
        if !self.over {
            let mut sections = ToSections { open: &mut self.open, out, closed: false };
            let _returned = self.body.end(&mut sections);
            if sections.closed {
                return FINISHED;
            }
            let left = self.body.left();
            self.pass(&left, out)?;
        }
        self.open.take().map_or(GO_ON, |verdict| out.close(verdict))
    }
}

/// The recipe once more: a body that runs is not copied.
impl<A, M: Clone, F> Clone for SplitterBody<A, M, F> {
    fn clone(&self) -> Self {
        SplitterBody { body: self.body.clone(), over: false, open: None }
    }
}

impl<A, M, F> fmt::Debug for SplitterBody<A, M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SplitterBody").field("over", &self.over).finish_non_exhaustive()
    }
}
