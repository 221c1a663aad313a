//! [`Client`]: sends requests over pooled connections; [`Builder`], its settings.

use crate::address::Address;
use crate::answer_body::AnswerBody;
use crate::answer_head::Asked;
use crate::error::{Error, ErrorCause};
use crate::exchange::{FirstRead, OnInterim, attempt, begin_plain, finish_plain};
use crate::field_line::TakeFields;
use crate::outgoing_request::OutgoingRequest;
use crate::plain::PlainReply;
use crate::pool::ConnectionPool;
use crate::redirect;
use crate::request_body::RequestBody;
use crate::request_builder::RequestBuilder;
use crate::request_head::{self, BodyFraming};
use crate::shared::{Limits, Shared};
use bytes::Bytes;
use http::header::EXPECT;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Body;
use selvedge_io::net::Stream;
use std::error::Error as StdError;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// An HTTP client with a pool of connections. A clone is cheap and shares the pool.
///
/// It may be used from threads on any worker. Whole requests are limited with
/// [`timeout`](selvedge_io::time::timeout): giving one up closes its connection.
///
/// # Examples
/// ```
/// use selvedge::client::Client;
/// use selvedge::net::TcpListener;
/// use selvedge::{run_local, spawn_local};
///
/// run_local(async {
///     let listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
///     let address = listener.local_addr();
///     drop(spawn_local(async move {
///         let (stream, _) = listener.accept().await?;
///         stream.read(&mut [0; 1000]).await?;
///         stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwarp").await
///     }));
///
///     let client = Client::new();
///     let answer = client.get(format!("http://{address}/cloth")).await?;
///     assert_eq!(answer.status(), 200);
///     assert_eq!(answer.into_body().text(1000).await?, "warp");
///     Ok::<(), Box<dyn std::error::Error>>(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
}

/// The settings of a [`Client`].
///
/// # Examples
/// ```
/// use selvedge::client::{Address, Client};
/// use std::time::Duration;
///
/// let client = Client::builder()
///     .connect_limit(Duration::from_secs(1))
///     .via(Address::unix("/run/app.sock"))
///     .redirects(0)
///     .build();
/// assert_eq!(client.idle_connections(), 0);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    limits: Limits,
    idle_per_address: usize,
    idle_limit: Duration,
    via: Option<Address>,
    redirects: u32,
}

impl Default for Builder {
    fn default() -> Builder {
        let limits = Limits {
            connect: Duration::from_secs(10),
            send: Duration::from_secs(30),
            answer: Duration::from_secs(60),
            read: Duration::from_secs(60),
            head_bytes: 64 << 10,
        };
        let idle_limit = Duration::from_secs(30);
        Builder { limits, idle_per_address: 64, idle_limit, via: None, redirects: 10 }
    }
}

impl Builder {
    /// The longest time for a connection to be made, look-up of the name included. 10 s if not set.
    pub fn connect_limit(mut self, limit: Duration) -> Builder {
        self.limits.connect = limit;
        self
    }

    /// The longest time for which the server may take no byte of the request. 30 s if not set.
    pub fn send_limit(mut self, limit: Duration) -> Builder {
        self.limits.send = limit;
        self
    }

    /// The longest time from the end of the request to the head of the answer. 60 s if not set.
    pub fn answer_limit(mut self, limit: Duration) -> Builder {
        self.limits.answer = limit;
        self
    }

    /// The longest time between two reads of the body of the answer. 60 s if not set.
    pub fn read_limit(mut self, limit: Duration) -> Builder {
        self.limits.read = limit;
        self
    }

    /// The most bytes of the head of an answer. 64 KiB if not set.
    pub fn head_bytes_max(mut self, bytes: usize) -> Builder {
        self.limits.head_bytes = bytes;
        self
    }

    /// The most idle connections to one server; with 0 each request gets a connection of its own.
    /// 64 if not set.
    pub fn idle_connections_max(mut self, connections: usize) -> Builder {
        self.idle_per_address = connections;
        self
    }

    /// The longest time for which a connection waits for another request. 30 s if not set.
    pub fn idle_limit(mut self, limit: Duration) -> Builder {
        self.idle_limit = limit;
        self
    }

    /// Sends all requests to this server, whatever host their URIs name.
    pub fn via(mut self, address: Address) -> Builder {
        self.via = Some(address);
        self
    }

    /// The most redirects that are followed; one more is an error. With 0 none is followed, and the
    /// redirect itself is the answer. 10 if not set.
    pub fn redirects(mut self, most: u32) -> Builder {
        self.redirects = most;
        self
    }

    /// The client.
    pub fn build(self) -> Client {
        let pool = ConnectionPool::new(self.idle_per_address, self.idle_limit);
        let shared = Shared { pool, limits: self.limits, via: self.via, redirects: self.redirects };
        Client { shared: Arc::new(shared) }
    }
}

impl Default for Client {
    fn default() -> Client {
        Client::new()
    }
}

/// The largest body that is looked at before the request is sent, so that it can be sent again.
const WHOLE_BYTES_MAX: u64 = 64 << 10;

/// Room for the head of a request.
const HEAD_BYTES: usize = 512;

impl Client {
    /// A client with the settings of [`Builder`].
    pub fn new() -> Client {
        Client::builder().build()
    }

    /// Settings for a client.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A `GET` request. Awaiting it sends it.
    pub fn get(&self, uri: impl AsRef<str>) -> RequestBuilder {
        self.request(Method::GET, uri)
    }

    /// A `HEAD` request.
    pub fn head(&self, uri: impl AsRef<str>) -> RequestBuilder {
        self.request(Method::HEAD, uri)
    }

    /// A `POST` request.
    pub fn post(&self, uri: impl AsRef<str>) -> RequestBuilder {
        self.request(Method::POST, uri)
    }

    /// A `PUT` request.
    pub fn put(&self, uri: impl AsRef<str>) -> RequestBuilder {
        self.request(Method::PUT, uri)
    }

    /// A `DELETE` request.
    pub fn delete(&self, uri: impl AsRef<str>) -> RequestBuilder {
        self.request(Method::DELETE, uri)
    }

    /// A request with any method.
    pub fn request(&self, method: Method, uri: impl AsRef<str>) -> RequestBuilder {
        RequestBuilder::new(self.clone(), method, uri.as_ref())
    }

    /// The number of connections that wait for another request.
    pub fn idle_connections(&self) -> usize {
        self.shared.pool.len()
    }

    /// Sends a request with any body to the server that its URI names, and returns the answer as
    /// soon as its head is there. Redirects are not followed.
    ///
    /// The framing of the body follows from its [size](Body::size_hint): `Content-Length` if it is
    /// known, chunks otherwise. An [`OnInterim`] among the extensions is told of interim answers.
    ///
    /// # Errors
    /// If there is no answer. A kept connection that turns out to be closed is no error: a request
    /// that may be repeated (its method is idempotent, its body small or empty) is sent once more
    /// on a new connection.
    pub async fn send<B>(&self, request: Request<B>) -> Result<Response<AnswerBody<B>>, Error>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn StdError + Send + Sync>>,
    {
        let address = match &self.shared.via {
            Some(address) => address.clone(),
            None => Address::of(request.uri())?,
        };
        self.send_to(&address, request).await
    }

    /// Sends a request to this server, whatever host its URI names. Otherwise like
    /// [`send`](Self::send).
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    pub async fn send_to<B>(
        &self,
        address: &Address,
        request: Request<B>,
    ) -> Result<Response<AnswerBody<B>>, Error>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn StdError + Send + Sync>>,
    {
        let on_interim = request.extensions().get::<OnInterim>().cloned();
        let inform = |status, fields| {
            if let Some(on_interim) = &on_interim {
                on_interim.tell(status, fields);
            }
        };
        self.send_informing(address, request, inform).await
    }

    /// Sends a request to this server, and calls `inform` with the status and the fields of each
    /// interim answer. Otherwise like [`send_to`](Self::send_to), but no [`OnInterim`] is told.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    pub async fn send_informing<B>(
        &self,
        address: &Address,
        request: Request<B>,
        inform: impl Fn(StatusCode, HeaderMap),
    ) -> Result<Response<AnswerBody<B>>, Error>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn StdError + Send + Sync>>,
    {
        let (mut parts, body) = request.into_parts();
        if parts.method == Method::CONNECT {
            return Err(Error::new(ErrorCause::Request("the client makes no tunnels")));
        }
        let length = if body.is_end_stream() { Some(0) } else { body.size_hint().exact() };
        let framing = BodyFraming::of(&parts.method, length);
        if length == Some(0) {
            // There is nothing that the server could ask for.
            parts.headers.remove(EXPECT);
        }
        let expects = parts
            .headers
            .get(EXPECT)
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        let mut body = (length != Some(0)).then(|| Box::pin(body));
        let whole = match length {
            Some(length) if !expects => whole(&mut body, length).await?,
            _ => Bytes::new(),
        };
        let written_head = || {
            let mut head = Vec::with_capacity(HEAD_BYTES);
            request_head::put(&parts, framing, &mut head).map(|()| head)
        };
        let mut head = Some(written_head()?);
        let asked =
            Asked { head: parts.method == Method::HEAD, upgrade: request_head::asks_for_upgrade(&parts) };
        let can_repeat = body.is_none() && is_idempotent(&parts);
        let shared = &self.shared;
        let sending = |head: Vec<u8>, body: Option<Pin<Box<B>>>| {
            let mut sending = OutgoingRequest::new(head, whole.clone(), body, framing, shared.limits.send);
            sending.is_held = expects;
            sending
        };
        if let Some(stream) = shared.pool.take(address) {
            // A request that can be repeated has no body left.
            let sending = sending(head.take().unwrap_or_default(), body.take());
            match attempt(shared, address, stream, sending, asked, &inform).await {
                Err(error) if can_repeat && error.is_unanswered() && !error.is_timeout() => {}
                sent => return sent,
            }
        }
        let stream = address.connect(shared.limits.connect).await?;
        let head = head.map_or_else(written_head, Ok)?;
        attempt(shared, address, stream, sending(head, body), asked, &inform).await
    }

    /// Sends a `GET` request without a body to this server. `head` is the head with the empty line
    /// at its end, of HTTP/1.1, as the caller has written it; it must ask for no upgrade. `inform`
    /// is called with the status and the fields of each interim answer, and `taker` gets the fields
    /// of an answer that is [whole](PlainReply::Whole). Of [another](PlainReply::Other) answer
    /// `taker` may have got some fields, which count for nothing.
    ///
    /// It is for callers that pass a head on. The client does not look at `head`, so the caller
    /// answers for it: what its own client has sent belongs there only if a parser has found that
    /// every reader sees the same fields.
    ///
    /// # Errors
    /// As for [`send`](Self::send). A kept connection that turns out to be closed is no error.
    pub async fn get_plain<B>(
        &self,
        address: &Address,
        head: &[u8],
        inform: impl Fn(StatusCode, HeaderMap),
        taker: &mut impl TakeFields,
    ) -> Result<PlainReply<B>, Error>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn StdError + Send + Sync>>,
    {
        let shared = &self.shared;
        if let Some(stream) = shared.pool.take(address) {
            match begin_plain(shared, &stream, head, taker).await {
                Ok(FirstRead::Whole(answer)) => {
                    keep(shared, address, stream);
                    return Ok(PlainReply::Whole(answer));
                }
                Ok(FirstRead::Other(begun)) => {
                    // In a box, as what is below: most requests find a kept connection and get a
                    // whole answer, and the whole future is copied when it is made.
                    let finished = Box::pin(finish_plain(shared, address, stream, begun, &inform)).await;
                    match finished {
                        Err(error) if error.is_unanswered() && !error.is_timeout() => {}
                        finished => return finished.map(|answer| PlainReply::Other(Box::new(answer))),
                    }
                }
                Err(error) if error.is_unanswered() && !error.is_timeout() => {}
                Err(error) => return Err(error),
            }
        }
        Box::pin(async {
            let stream = address.connect(shared.limits.connect).await?;
            match begin_plain(shared, &stream, head, taker).await? {
                FirstRead::Whole(answer) => {
                    keep(shared, address, stream);
                    Ok(PlainReply::Whole(answer))
                }
                FirstRead::Other(begun) => {
                    let finished = finish_plain(shared, address, stream, begun, &inform).await?;
                    Ok(PlainReply::Other(Box::new(finished)))
                }
            }
        })
        .await
    }

    /// Sends a request with a body that can be sent again, and follows redirects.
    pub(crate) async fn send_and_follow(
        &self,
        mut parts: Parts,
        mut payload: RequestBody,
    ) -> Result<Response<AnswerBody>, Error> {
        let mut followed = 0;
        loop {
            let request = Request::from_parts(parts.clone(), payload.clone());
            let answer = self.send(request).await?;
            let most = self.shared.redirects;
            let target = redirect::target(answer.status(), answer.headers(), &parts.uri);
            let Some(target) = target.filter(|_| most > 0) else { return Ok(answer) };
            followed += 1;
            if followed > most {
                return Err(Error::new(ErrorCause::Redirects));
            }
            if !redirect::follow(&mut parts, answer.status(), target) {
                payload = RequestBody::default();
            }
        }
    }
}

/// Keeps a connection on which nothing is left to read.
fn keep(shared: &Shared, address: &Address, stream: Stream) {
    stream.set_read_deadline(None);
    stream.set_write_deadline(None);
    shared.pool.put(address, stream);
}

/// Takes the content out of a body that has it all in one piece. The body is gone then.
async fn whole<B>(body: &mut Option<Pin<Box<B>>>, length: u64) -> Result<Bytes, Error>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    let Some(source) = body else { return Ok(Bytes::new()) };
    if length > WHOLE_BYTES_MAX {
        return Ok(Bytes::new());
    }
    let polled = poll_fn(|cx| Poll::Ready(source.as_mut().poll_frame(cx))).await;
    match polled {
        Poll::Pending => Ok(Bytes::new()),
        Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
            Ok(piece) if piece.len() as u64 > length => {
                Err(Error::with(ErrorCause::RequestBody, "it has more bytes than it said"))
            }
            Ok(piece) => {
                if piece.len() as u64 == length && source.is_end_stream() {
                    *body = None;
                }
                Ok(piece)
            }
            Err(_) => Err(Error::with(ErrorCause::RequestBody, "it has fewer bytes than it said")),
        },
        Poll::Ready(Some(Err(error))) => Err(Error::with(ErrorCause::RequestBody, error)),
        Poll::Ready(None) => Err(Error::with(ErrorCause::RequestBody, "it has fewer bytes than it said")),
    }
}

/// Whether a repeated request has the effect of one (RFC 9110 §9.2.2).
fn is_idempotent(parts: &Parts) -> bool {
    [Method::GET, Method::HEAD, Method::PUT, Method::DELETE, Method::OPTIONS, Method::TRACE]
        .contains(&parts.method)
        && !request_head::asks_for_upgrade(parts)
}
