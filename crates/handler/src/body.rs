//! [`Body`]: the content of a request or of a response, in memory, in a file, or as a stream.

use crate::{BodyError, Cause, Incoming, Out, Produced, Upgraded};
use bytes::{Bytes, BytesMut};
use futures_core::Stream;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use selvedge_io::blocking;
use selvedge_io::fs::Handle;
use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// How much of a file is read at a time, where it cannot be sent without reading it.
const READ_BYTES: usize = 64 << 10;

/// The content of a request or of a response.
///
/// It is a stream of pieces that implements [`http_body::Body`]. An engine that can do better than
/// to take pieces looks [what it is](Self::into_source).
///
/// # Examples
/// ```
/// use selvedge_handler::Body;
///
/// // Made piece by piece, while the client takes them.
/// let mut body = Body::produce(async |mut out| {
///     for cloth in ["linen", "wool"] {
///         out.put(format!("{cloth}\n")).await;
///     }
///     Ok::<(), std::io::Error>(())
/// });
/// selvedge::round_robin(async move {
///     assert_eq!(body.next().await.unwrap().unwrap(), "linen\n");
///     assert_eq!(body.next().await.unwrap().unwrap(), "wool\n");
///     assert!(body.next().await.is_none());
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub struct Body {
    source: Source,
    trailers: Option<Box<HeaderMap>>,
}

/// What a body is made of.
#[non_exhaustive]
pub enum Source {
    /// Nothing.
    Empty,
    /// Bytes in memory.
    Bytes(Bytes),
    /// A span of a file.
    File(FileSpan),
    /// The body of a request on a connection.
    Incoming(Incoming),
    /// Pieces that come one after the other.
    Stream(Pin<Box<dyn http_body::Body<Data = Bytes, Error = BodyError>>>),
    /// No content: the connection is handed over behind the head.
    Upgrade(OnUpgrade),
}

/// The code that gets the connection behind a `101`.
pub type OnUpgrade = Box<dyn FnOnce(Upgraded) -> Pin<Box<dyn Future<Output = ()>>>>;

/// A span of an open file.
#[derive(Clone, Debug)]
pub struct FileSpan {
    /// The file.
    pub file: Arc<Handle>,
    /// The bytes of it.
    pub span: Range<u64>,
}

impl Body {
    const fn of(source: Source) -> Body {
        Body { source, trailers: None }
    }

    /// No content.
    pub const fn empty() -> Body {
        Body::of(Source::Empty)
    }

    /// The content of another library's body.
    pub fn new<B>(body: B) -> Body
    where
        B: http_body::Body<Data = Bytes> + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        Body::of(Source::Stream(Box::pin(ForeignBody { body: Box::pin(body) })))
    }

    /// The items of a stream, one after the other.
    pub fn from_stream<S, P, E>(stream: S) -> Body
    where
        S: Stream<Item = Result<P, E>> + 'static,
        P: Into<Bytes>,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        Body::of(Source::Stream(Box::pin(StreamBody { stream: Box::pin(stream) })))
    }

    /// The pieces that `block` puts into [`Out`]. The block runs in the thread that sends the body,
    /// and only as fast as the client takes the pieces. It is dropped when the client is gone. An
    /// error of it cuts the body short, so that the client notices.
    pub fn produce<E>(block: impl AsyncFnOnce(Out) -> Result<(), E> + 'static) -> Body
    where
        E: Into<Box<dyn Error + Send + Sync>> + 'static,
    {
        let produced = Produced::new(move |out| async move { block(out).await });
        Body::of(Source::Stream(Box::pin(produced)))
    }

    /// A span of an open file. An engine sends it without reading it, where it can.
    pub fn file(file: Arc<Handle>, span: Range<u64>) -> Body {
        Body::of(Source::File(FileSpan { file, span }))
    }

    /// No content. The response must have the status `101 Switching Protocols` and the field
    /// `Upgrade`. Behind its head the engine runs `handler` with the connection.
    ///
    /// # Examples
    /// ```
    /// use selvedge_handler::{Body, Response, StatusCode, header};
    ///
    /// let response = Response::builder()
    ///     .status(StatusCode::SWITCHING_PROTOCOLS)
    ///     .header(header::UPGRADE, "echo")
    ///     .body(Body::upgrade(async |connection| {
    ///         let mut buffer = [0; 1000];
    ///         while let Ok(count @ 1..) = connection.read(&mut buffer).await {
    ///             if connection.write_all(&buffer[..count]).await.is_err() {
    ///                 break;
    ///             }
    ///         }
    ///     }));
    /// assert!(response.is_ok());
    /// ```
    pub fn upgrade(handler: impl AsyncFnOnce(Upgraded) + 'static) -> Body {
        Body::of(Source::Upgrade(Box::new(move |upgraded| Box::pin(async move { handler(upgraded).await }))))
    }

    /// What it is made of, for code that can do better with some sources than to take pieces.
    pub fn into_source(self) -> Source {
        self.source
    }

    /// The content, if all of it is in memory.
    pub fn in_memory(&self) -> Option<&[u8]> {
        match &self.source {
            Source::Empty => Some(&[]),
            Source::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The number of bytes that are to come, if it is known.
    pub fn len(&self) -> Option<u64> {
        http_body::Body::size_hint(self).exact()
    }

    /// Whether it is known that no bytes are to come.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// The next piece; `None` at the end. The [trailers](Self::trailers) are known then.
    pub async fn next(&mut self) -> Option<Result<Bytes, BodyError>> {
        loop {
            match poll_fn(|cx| http_body::Body::poll_frame(Pin::new(self), cx)).await? {
                Ok(frame) => match frame.into_data() {
                    Ok(piece) => return Some(Ok(piece)),
                    Err(frame) => {
                        if let Ok(trailers) = frame.into_trailers() {
                            self.trailers = Some(Box::new(trailers));
                        }
                    }
                },
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// The trailers that came behind the last piece. There are none before [`next`](Self::next) has
    /// returned `None`.
    pub fn trailers(&self) -> Option<&HeaderMap> {
        self.trailers.as_deref()
    }

    /// Reads it to its end.
    ///
    /// # Errors
    /// [`Cause::TooLarge`] if it has more than `bytes_max` bytes; and those of the body.
    pub async fn read_all(mut self, bytes_max: u64) -> Result<Bytes, BodyError> {
        if self.len().is_some_and(|len| len > bytes_max) {
            return Err(BodyError::new(Cause::TooLarge));
        }
        if let Source::Bytes(bytes) = &mut self.source {
            return Ok(std::mem::take(bytes));
        }
        let Some(first) = self.next().await.transpose()? else { return Ok(Bytes::new()) };
        let within = |len: usize| match len as u64 <= bytes_max {
            true => Ok(()),
            false => Err(BodyError::new(Cause::TooLarge)),
        };
        within(first.len())?;
        let Some(second) = self.next().await.transpose()? else { return Ok(first) };
        within(first.len() + second.len())?;
        let mut all = BytesMut::from(first);
        all.extend_from_slice(&second);
        while let Some(piece) = self.next().await.transpose()? {
            within(all.len() + piece.len())?;
            all.extend_from_slice(&piece);
        }
        Ok(all.freeze())
    }
}

impl From<Source> for Body {
    fn from(source: Source) -> Body {
        Body::of(source)
    }
}

impl Default for Body {
    fn default() -> Body {
        Body::empty()
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Body {
        Body::of(if bytes.is_empty() { Source::Empty } else { Source::Bytes(bytes) })
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Body {
        Bytes::from_static(text.as_bytes()).into()
    }
}

impl From<String> for Body {
    fn from(text: String) -> Body {
        Bytes::from(text).into()
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Body {
        Bytes::from(bytes).into()
    }
}

impl From<Incoming> for Body {
    fn from(incoming: Incoming) -> Body {
        Body::of(Source::Incoming(incoming))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        match &mut this.source {
            Source::Empty | Source::Upgrade(_) => Poll::Ready(None),
            Source::Bytes(bytes) => {
                let bytes = std::mem::take(bytes);
                this.source = Source::Empty;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Source::File(FileSpan { file, span }) => {
                this.source = read(file.clone(), span.clone());
                Pin::new(this).poll_frame(cx)
            }
            Source::Incoming(incoming) => Pin::new(incoming).poll_frame(cx),
            Source::Stream(stream) => stream.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Empty | Source::Upgrade(_) => true,
            Source::Bytes(_) => false,
            Source::File(FileSpan { span, .. }) => span.is_empty(),
            Source::Incoming(incoming) => incoming.is_end_stream(),
            Source::Stream(stream) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Empty | Source::Upgrade(_) => SizeHint::with_exact(0),
            Source::Bytes(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Source::File(FileSpan { span, .. }) => SizeHint::with_exact(span.end.saturating_sub(span.start)),
            Source::Incoming(incoming) => incoming.size_hint(),
            Source::Stream(stream) => stream.size_hint(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Body").field(&self.source).finish()
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Empty => f.write_str("Empty"),
            Source::Bytes(bytes) => f.debug_tuple("Bytes").field(&bytes.len()).finish(),
            Source::File(FileSpan { span, .. }) => f.debug_tuple("File").field(span).finish(),
            Source::Incoming(incoming) => incoming.fmt(f),
            Source::Stream(_) => f.write_str("Stream"),
            Source::Upgrade(_) => f.write_str("Upgrade"),
        }
    }
}

/// The pieces of a file, each read on the blocking pool.
fn read(file: Arc<Handle>, span: Range<u64>) -> Source {
    let block = move |mut out: Out| async move {
        let mut at = span.start;
        while at < span.end {
            let room = usize::try_from(span.end - at).map_or(READ_BYTES, |left| left.min(READ_BYTES));
            let file = file.clone();
            let call = move || {
                let mut buffer = vec![0; room];
                let count = file.read_at(&mut buffer, at)?;
                buffer.truncate(count);
                Ok::<_, std::io::Error>(buffer)
            };
            let piece = blocking(call).await.map_err(std::io::Error::from)??;
            if piece.is_empty() {
                return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof));
            }
            at += piece.len() as u64;
            out.put(piece).await;
        }
        Ok(())
    };
    Source::Stream(Box::pin(Produced::new(block)))
}

/// A body of another library, with its errors as [`BodyError`].
struct ForeignBody<B> {
    body: Pin<Box<B>>,
}

impl<B> http_body::Body for ForeignBody<B>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = ready!(self.body.as_mut().poll_frame(cx));
        Poll::Ready(frame.map(|frame| frame.map_err(BodyError::failed)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A stream as a body.
struct StreamBody<S> {
    stream: Pin<Box<S>>,
}

impl<S, P, E> http_body::Body for StreamBody<S>
where
    S: Stream<Item = Result<P, E>>,
    P: Into<Bytes>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let item = ready!(self.stream.as_mut().poll_next(cx));
        Poll::Ready(item.map(|item| match item {
            Ok(piece) => Ok(Frame::data(piece.into())),
            Err(error) => Err(BodyError::failed(error)),
        }))
    }
}
