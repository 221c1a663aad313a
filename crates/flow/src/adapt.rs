//! Sources from the streams and readers of other libraries, and streams and readers of sources.
//!
//! Programs call [`stream`], [`async_read`] and [`async_write`], and the methods
//! [`FlowSource::into_stream`] and [`FlowSource::into_read`]. The traits are those of
//! `futures-core` and `futures-io`.
//!
//! A stream is polled, and a source has futures. So `PolledSource` keeps the future that fills a
//! vector between two polls. It drops the source without `Source::close`, because the drop of a
//! stream cannot wait.

use crate::items::failed;
use crate::role::{FlowSource, FlowTarget, Source, Target, Upstream};
use futures_core::Stream;
use futures_io::{AsyncRead, AsyncWrite};
use selvedge_pipeline::{Flow, Item, StageError, Transduce, Unchanged};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// How many items a source takes at most before its stages see them, and how many bytes one read
/// asks for.
const CHUNK: (usize, usize) = (1024, 64 << 10);

/// The source of [`stream`].
pub struct FromStream<R: Stream> {
    stream: Pin<Box<R>>,
    items: Vec<R::Item>,
    ended: bool,
}

/// The items of a [`Stream`] of any library.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{collect, lift121};
/// use selvedge::flow::stream;
///
/// let doubled = selvedge::run_local(async {
///     (stream(futures::stream::iter([1, 2])) >> lift121(|n: &i32| n * 2) >> collect()).run().await
/// });
/// assert_eq!(doubled.unwrap().unwrap(), [2, 4]);
/// ```
pub fn stream<R>(stream: R) -> FlowSource<R::Item, R::Item, FromStream<R>, Unchanged>
where
    R: Stream<Item: Clone + Send + 'static> + Send,
{
    FlowSource::new(FromStream { stream: Box::pin(stream), items: Vec::new(), ended: false })
}

impl<R: Stream> fmt::Debug for FromStream<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromStream").field("ended", &self.ended).finish_non_exhaustive()
    }
}

impl<R: Stream<Item: Clone + Send + 'static> + Send> Source<R::Item> for FromStream<R> {
    async fn next(&mut self) -> Result<Option<&[R::Item]>, StageError> {
        self.items.clear();
        // All items that are ready, and at least one.
        poll_fn(|cx| {
            while !self.ended && self.items.len() < CHUNK.0 {
                match self.stream.as_mut().poll_next(cx) {
                    Poll::Ready(Some(item)) => self.items.push(item),
                    Poll::Ready(None) => self.ended = true,
                    Poll::Pending if self.items.is_empty() => return Poll::Pending,
                    Poll::Pending => break,
                }
            }
            Poll::Ready(())
        })
        .await;
        Ok((!self.items.is_empty()).then_some(&self.items))
    }
}

/// The source of [`async_read`].
#[derive(Debug)]
pub struct AsyncReading<R> {
    reader: Pin<Box<R>>,
    block: Vec<u8>,
    come: u64,
}

/// The bytes of an [`AsyncRead`] of any library.
///
/// # Errors
/// Those of the reader, with the number of bytes that came before.
///
/// # Examples
/// ```
/// use selvedge::pipeline::collect;
/// use selvedge::flow::async_read;
///
/// let read = selvedge::run_local(async {
///     (async_read(futures::io::Cursor::new(b"warp")) >> collect()).run().await
/// });
/// assert_eq!(read.unwrap().unwrap(), b"warp");
/// ```
pub fn async_read<R: AsyncRead + Send>(reader: R) -> FlowSource<u8, u8, AsyncReading<R>, Unchanged> {
    FlowSource::new(AsyncReading { reader: Box::pin(reader), block: vec![0; CHUNK.1], come: 0 })
}

impl<R: AsyncRead + Send> Source<u8> for AsyncReading<R> {
    async fn next(&mut self) -> Result<Option<&[u8]>, StageError> {
        let read = poll_fn(|cx| self.reader.as_mut().poll_read(cx, &mut self.block)).await;
        let length = read.map_err(|error| failed("async_read", self.come, error))?;
        self.come += length as u64;
        Ok((length > 0).then(|| &self.block[..length]))
    }
}

/// The target of [`async_write`].
#[derive(Debug)]
pub struct AsyncWriting<W> {
    writer: Pin<Box<W>>,
    written: u64,
}

/// Writes the bytes to an [`AsyncWrite`] of any library, and closes it at the end.
///
/// # Errors
/// Those of the writer, with the number of bytes that were written before.
///
/// # Examples
/// ```
/// use selvedge::pipeline::from_chunks;
/// use selvedge::flow::async_write;
///
/// let mut written = Vec::new();
/// futures::executor::block_on((from_chunks(["wa", "rp"]) >> async_write(&mut written)).run())?;
/// assert_eq!(written, b"warp");
/// # Ok::<(), selvedge::pipeline::StageError>(())
/// ```
pub fn async_write<W: AsyncWrite + Send>(writer: W) -> FlowTarget<u8, u8, Unchanged, AsyncWriting<W>> {
    FlowTarget::new(AsyncWriting { writer: Box::pin(writer), written: 0 })
}

impl<W: AsyncWrite + Send> Target<u8> for AsyncWriting<W> {
    async fn put(&mut self, items: &mut Vec<u8>) -> Result<Flow, StageError> {
        let mut left = &items[..];
        while !left.is_empty() {
            let wrote = poll_fn(|cx| self.writer.as_mut().poll_write(cx, left)).await;
            let wrote = wrote.and_then(|wrote| match wrote {
                0 => Err(io::ErrorKind::WriteZero.into()),
                _ => Ok(wrote),
            });
            let wrote = wrote.map_err(|error| failed("async_write", self.written, error))?;
            self.written += wrote as u64;
            left = &left[wrote..];
        }
        Ok(ControlFlow::Continue(()))
    }

    async fn finish(&mut self) -> Result<(), StageError> {
        let closed = poll_fn(|cx| self.writer.as_mut().poll_close(cx)).await;
        closed.map_err(|error| failed("async_write", self.written, error))
    }
}

/// A source, and the future in which it fills a vector.
struct PolledSource<A: ?Sized, B, S, T> {
    state: FillState<A, B, S, T>,
    items: Vec<B>,
    taken: usize,
}

type FillOutcome<A, B, S, T> = (Upstream<A, B, S, T>, Vec<B>, Result<bool, StageError>);

type FillFuture<A, B, S, T> = Pin<Box<dyn Future<Output = FillOutcome<A, B, S, T>> + Send>>;

enum FillState<A: ?Sized, B, S, T> {
    Idle(Upstream<A, B, S, T>),
    Fills(FillFuture<A, B, S, T>),
    Over(Option<StageError>),
}

impl<A, B, S, T> PolledSource<A, B, S, T>
where
    A: Item + ?Sized,
    B: Clone + Send + 'static,
    S: Source<A> + 'static,
    T: Transduce<A, B> + Send + 'static,
{
    fn new(source: FlowSource<A, B, S, T>) -> Self {
        let upstream = Upstream::new(source.source, source.stages.into_stage());
        PolledSource { state: FillState::Idle(upstream), items: Vec::new(), taken: 0 }
    }

    /// The items that are not taken yet: at least one, or none at the end.
    fn poll_items(&mut self, cx: &mut Context<'_>) -> Poll<Result<&[B], StageError>> {
        while self.taken == self.items.len() {
            match &mut self.state {
                FillState::Over(failure) => {
                    return Poll::Ready(match failure.take() {
                        Some(failure) => Err(failure),
                        None => Ok(&[]),
                    });
                }
                FillState::Fills(filling) => {
                    let (upstream, items, more) = ready!(filling.as_mut().poll(cx));
                    (self.items, self.taken) = (items, 0);
                    self.state = match more {
                        Ok(true) => FillState::Idle(upstream),
                        Ok(false) => FillState::Over(None),
                        Err(failure) => FillState::Over(Some(failure)),
                    };
                }
                state => {
                    let FillState::Idle(mut upstream) = std::mem::replace(state, FillState::Over(None))
                    else {
                        unreachable!("the other states are dealt with above")
                    };
                    let mut items = std::mem::take(&mut self.items);
                    items.clear();
                    self.taken = 0;
                    self.state = FillState::Fills(Box::pin(async move {
                        let more = upstream.fill(&mut items).await;
                        (upstream, items, more)
                    }));
                }
            }
        }
        Poll::Ready(Ok(&self.items[self.taken..]))
    }
}

/// A source as a [`Stream`]. See [`FlowSource::into_stream`].
pub struct IntoStream<A: ?Sized, B, S, T> {
    polled: PolledSource<A, B, S, T>,
}

/// A source of bytes as an [`AsyncRead`]. See [`FlowSource::into_read`].
pub struct IntoRead<A: ?Sized, S, T> {
    polled: PolledSource<A, u8, S, T>,
}

impl<A: ?Sized, B, S, T> fmt::Debug for IntoStream<A, B, S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntoStream").finish_non_exhaustive()
    }
}

impl<A: ?Sized, S, T> fmt::Debug for IntoRead<A, S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntoRead").finish_non_exhaustive()
    }
}

impl<A, B, S, T> FlowSource<A, B, S, T>
where
    A: Item + ?Sized,
    B: Clone + Send + 'static,
    S: Source<A> + 'static,
    T: Transduce<A, B> + Send + 'static,
{
    /// The items as a [`Stream`] for other libraries. A failure is the last item.
    ///
    /// # Complexity
    /// An allocation for each chunk.
    ///
    /// # Examples
    /// ```
    /// use futures::StreamExt;
    /// use selvedge::pipeline::from_iter;
    /// use selvedge::flow::made;
    ///
    /// let stream = made(from_iter([1, 2])).into_stream();
    /// let items: Vec<_> = futures::executor::block_on(stream.map(Result::unwrap).collect());
    /// assert_eq!(items, [1, 2]);
    /// ```
    pub fn into_stream(self) -> IntoStream<A, B, S, T> {
        IntoStream { polled: PolledSource::new(self) }
    }
}

impl<A, S, T> FlowSource<A, u8, S, T>
where
    A: Item + ?Sized,
    S: Source<A> + 'static,
    T: Transduce<A, u8> + Send + 'static,
{
    /// The bytes as an [`AsyncRead`] for other libraries. A failure is an error of the kind
    /// `Other`.
    ///
    /// # Complexity
    /// An allocation for each chunk.
    ///
    /// # Examples
    /// ```
    /// use futures::AsyncReadExt;
    /// use selvedge::pipeline::{from_chunks, lift121};
    /// use selvedge::flow::made;
    ///
    /// let upper = from_chunks(["warp"]) >> lift121(|c: &u8| c.to_ascii_uppercase());
    /// let mut text = String::new();
    /// futures::executor::block_on(made(upper).into_read().read_to_string(&mut text))?;
    /// assert_eq!(text, "WARP");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn into_read(self) -> IntoRead<A, S, T> {
        IntoRead { polled: PolledSource::new(self) }
    }
}

// `FillFuture` is boxed, so a move of the state leaves the pinned future in its place.
impl<A: ?Sized, B, S, T> Unpin for IntoStream<A, B, S, T> {}
impl<A: ?Sized, S, T> Unpin for IntoRead<A, S, T> {}

impl<A, B, S, T> Stream for IntoStream<A, B, S, T>
where
    A: Item + ?Sized,
    B: Clone + Send + 'static,
    S: Source<A> + 'static,
    T: Transduce<A, B> + Send + 'static,
{
    type Item = Result<B, StageError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let items = ready!(self.polled.poll_items(cx));
        let item = items.map(|items| items.first().cloned()).transpose();
        self.polled.taken += usize::from(matches!(item, Some(Ok(_))));
        Poll::Ready(item)
    }
}

impl<A, S, T> AsyncRead for IntoRead<A, S, T>
where
    A: Item + ?Sized,
    S: Source<A> + 'static,
    T: Transduce<A, u8> + Send + 'static,
{
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let bytes = ready!(self.polled.poll_items(cx)).map_err(io::Error::other)?;
        let length = bytes.len().min(buffer.len());
        buffer[..length].copy_from_slice(&bytes[..length]);
        self.polled.taken += length;
        Poll::Ready(Ok(length))
    }
}
