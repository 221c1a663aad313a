//! [`WebSocket`]: messages in both directions over one connection (RFC 6455).
//!
//! `tungstenite` reads and writes frames, without I/O. It takes [`BufferedFrames`], two buffers,
//! for a stream. [`WebSocket`] fills the one from the connection and empties the other into it.

use crate::extract::{Context, FromParts};
use crate::rejection::Rejection;
use http::header::{
    CONNECTION, HeaderName, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use selvedge_handler::{Body, IntoResponse, Response, Upgraded};
use selvedge_io::net::Stream;
use selvedge_io::time::timeout;
use std::error::Error;
use std::fmt;
use std::io::{self, Read, Write};
use std::time::Duration;
use tungstenite::handshake::{client::generate_key, derive_accept_key};
use tungstenite::protocol::{Role, WebSocketConfig, WebSocketContext};

/// A message: text, bytes, a ping, a pong, or the close.
pub use tungstenite::Message;

/// Room for a read of the connection.
const READ_BYTES: usize = 16 << 10;

/// The longest head of a server's response.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// The longest message that is taken: 16 MiB.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// How long a peer may take to agree to a close.
const AGREEMENT_TIME: Duration = Duration::from_secs(5);

/// A request that asks for a WebSocket: an argument of a handler, which answers with
/// [`on_upgrade`](Self::on_upgrade).
///
/// A request that asks for none is answered with 426, or with 400 if it asks wrongly.
///
/// # Examples
/// ```
/// use selvedge::web::{Response, Router, WebSocketUpgrade};
///
/// async fn echo(upgrade: WebSocketUpgrade) -> Response {
///     upgrade.on_upgrade(async |mut socket| {
///         while let Ok(Some(message)) = socket.next().await {
///             if socket.send(message).await.is_err() {
///                 break;
///             }
///         }
///     })
/// }
///
/// let _router = Router::new().get("/echo", echo);
/// ```
#[derive(Debug)]
pub struct WebSocketUpgrade {
    accept: HeaderValue,
    /// The names of protocols that the client offers.
    offered: Vec<String>,
    protocol: Option<HeaderValue>,
    message_bytes_max: usize,
}

impl<S> FromParts<S> for WebSocketUpgrade {
    type Rejection = Response;

    fn from_parts(parts: &mut Parts, _: &Context<'_, S>) -> Result<WebSocketUpgrade, Response> {
        let fields = &parts.headers;
        if parts.method != Method::GET
            || !has(fields, CONNECTION, "upgrade")
            || !has(fields, UPGRADE, "websocket")
        {
            let mut response = StatusCode::UPGRADE_REQUIRED.into_response();
            response.headers_mut().insert(UPGRADE, HeaderValue::from_static("websocket"));
            return Err(response);
        }
        if !has(fields, SEC_WEBSOCKET_VERSION, "13") {
            let mut response = StatusCode::BAD_REQUEST.into_response();
            response.headers_mut().insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
            return Err(response);
        }
        let key = fields.get(SEC_WEBSOCKET_KEY).filter(|key| key.len() == 24);
        let accept = key.and_then(|key| HeaderValue::try_from(derive_accept_key(key.as_bytes())).ok());
        let Some(accept) = accept else {
            let reason = "the key of the WebSocket is missing or malformed";
            return Err(Rejection::new(StatusCode::BAD_REQUEST, reason).into_response());
        };
        let offered = fields.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
        let offered =
            offered.flat_map(|value| value.split(',')).map(|name| name.trim().to_string()).collect();
        Ok(WebSocketUpgrade { accept, offered, protocol: None, message_bytes_max: MESSAGE_BYTES_MAX })
    }
}

/// Whether the list in a field has an element, in any case of letters.
fn has(fields: &HeaderMap, name: HeaderName, element: &str) -> bool {
    let values = fields.get_all(name);
    let mut elements =
        values.iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    elements.any(|found| found.trim().eq_ignore_ascii_case(element))
}

impl WebSocketUpgrade {
    /// Agrees on the first of `known` that the client offers; on none if it offers none of them.
    pub fn protocols(mut self, known: &[&'static str]) -> WebSocketUpgrade {
        let agreed = known.iter().find(|name| self.offered.iter().any(|offered| offered == *name));
        self.protocol = agreed.map(|name| HeaderValue::from_static(name));
        self
    }

    /// The protocol that was agreed on.
    pub fn protocol(&self) -> Option<&str> {
        self.protocol.as_ref()?.to_str().ok()
    }

    /// The longest message that is taken. It is 16 MiB without this. A longer one closes the
    /// connection.
    pub fn message_bytes_max(mut self, bytes: usize) -> WebSocketUpgrade {
        self.message_bytes_max = bytes;
        self
    }

    /// The response that makes the connection a WebSocket, for which `handler` runs. When the
    /// handler has ended, the WebSocket is closed.
    pub fn on_upgrade(self, handler: impl AsyncFnOnce(WebSocket) + 'static) -> Response {
        let config = WebSocketConfig::default()
            .max_message_size(Some(self.message_bytes_max))
            .max_frame_size(Some(self.message_bytes_max));
        let body = Body::upgrade(async move |connection| {
            handler(WebSocket::new(connection, Role::Server, config)).await
        });
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let fields = response.headers_mut();
        fields.insert(UPGRADE, HeaderValue::from_static("websocket"));
        fields.insert(SEC_WEBSOCKET_ACCEPT, self.accept);
        if let Some(protocol) = self.protocol {
            fields.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        response
    }
}

/// A WebSocket. Pings are answered, and a close is agreed on, while [`next`](Self::next) waits.
///
/// Dropping it closes the connection without a farewell; [`close`](Self::close) says why.
pub struct WebSocket {
    context: WebSocketContext,
    wire: BufferedFrames,
    connection: Upgraded,
}

/// The two buffers that stand for the connection.
#[derive(Default)]
struct BufferedFrames {
    input: Vec<u8>,
    /// The bytes of the input that have been read.
    read: usize,
    output: Vec<u8>,
    /// The peer has ended its side.
    ended: bool,
}

impl Read for BufferedFrames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let unread = &self.input[self.read..];
        if unread.is_empty() {
            return if self.ended { Ok(0) } else { Err(io::ErrorKind::WouldBlock.into()) };
        }
        let count = unread.len().min(buffer.len());
        buffer[..count].copy_from_slice(&unread[..count]);
        self.read += count;
        Ok(count)
    }
}

impl Write for BufferedFrames {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Why a WebSocket can be used no longer: the connection broke, or the peer broke the protocol.
pub struct SocketError(Box<tungstenite::Error>);

impl WebSocket {
    fn new(connection: Upgraded, role: Role, config: WebSocketConfig) -> WebSocket {
        WebSocket {
            context: WebSocketContext::new(role, Some(config)),
            wire: BufferedFrames::default(),
            connection,
        }
    }

    /// The client's end of a connection that has become a WebSocket, for tests and clients.
    pub fn client(connection: Upgraded) -> WebSocket {
        WebSocket::new(connection, Role::Client, WebSocketConfig::default())
    }

    /// Asks for a WebSocket at `target` of `host`, on a connection to it.
    ///
    /// # Errors
    /// If the connection breaks, or the server answers with no WebSocket.
    pub async fn connect(
        stream: impl Into<Stream>,
        host: &str,
        target: &str,
    ) -> Result<WebSocket, SocketError> {
        let (stream, key) = (stream.into(), generate_key());
        let request = format!(
            "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut input = Vec::new();
        let len = loop {
            let mut fields = [httparse::EMPTY_HEADER; 64];
            let mut head = httparse::Response::new(&mut fields);
            let refused =
                || io::Error::new(io::ErrorKind::InvalidData, "the server answers with no WebSocket");
            match head.parse(&input).map_err(|_| refused())? {
                httparse::Status::Complete(len) => {
                    let mut fields = head.headers.iter();
                    let accept = fields.find(|field| field.name.eq_ignore_ascii_case("sec-websocket-accept"));
                    let is_accepted = accept.is_some_and(|accept| {
                        accept.value.trim_ascii() == derive_accept_key(key.as_bytes()).as_bytes()
                    });
                    if head.code != Some(101) || !is_accepted {
                        return Err(refused().into());
                    }
                    break len;
                }
                httparse::Status::Partial if input.len() > HEAD_BYTES_MAX => return Err(refused().into()),
                httparse::Status::Partial => {
                    input.reserve(1024);
                    if stream.read_to_spare(&mut input).await? == 0 {
                        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                    }
                }
            }
        };
        Ok(WebSocket::client(Upgraded::of_stream(input.split_off(len).into(), stream)))
    }

    /// The next text or bytes; `None` when the peer has closed. A wait that is given up loses
    /// nothing.
    ///
    /// # Errors
    /// If the connection breaks, or the peer breaks the protocol. The peer is told why.
    pub async fn next(&mut self) -> Result<Option<Message>, SocketError> {
        loop {
            // The answer to a ping, the agreement to a close, and what a wait that was given up has
            // left. It stands before `read`: no wait comes between a message and its return.
            self.flush().await?;
            match self.context.read(&mut self.wire) {
                Ok(message @ (Message::Text(_) | Message::Binary(_))) => return Ok(Some(message)),
                Ok(_) => {}
                Err(tungstenite::Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.flush().await?;
                    self.fill().await?;
                }
                Err(tungstenite::Error::ConnectionClosed | tungstenite::Error::AlreadyClosed) => {
                    self.flush().await?;
                    return Ok(None);
                }
                Err(error) => {
                    let error = SocketError(error.into());
                    self.refuse(&error).await;
                    return Err(error);
                }
            }
        }
    }

    /// Sends a message. It waits until the connection has taken it.
    ///
    /// # Errors
    /// If the connection is broken or closed.
    pub async fn send(&mut self, message: impl Into<Message>) -> Result<(), SocketError> {
        self.context.write(&mut self.wire, message.into())?;
        self.flush().await
    }

    /// Closes the WebSocket, and waits until the peer has agreed, for at most 5 s. Messages that
    /// come meanwhile are dropped.
    ///
    /// # Errors
    /// If the connection breaks, and `TimedOut` if the peer does not agree in time.
    pub async fn close(mut self) -> Result<(), SocketError> {
        match self.context.close(&mut self.wire, None) {
            Ok(()) | Err(tungstenite::Error::ConnectionClosed) => {}
            Err(error) => return Err(error.into()),
        }
        let agreement = async {
            self.flush().await?;
            while self.next().await?.is_some() {}
            Ok(())
        };
        let agreed = timeout(AGREEMENT_TIME, agreement).await;
        agreed.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
    }

    /// Tells the peer that it has broken the protocol.
    async fn refuse(&mut self, error: &SocketError) {
        use tungstenite::protocol::frame::{CloseFrame, coding::CloseCode};
        let code = match *error.0 {
            tungstenite::Error::Capacity(_) => CloseCode::Size,
            tungstenite::Error::Utf8(_) => CloseCode::Invalid,
            tungstenite::Error::Protocol(_) => CloseCode::Protocol,
            _ => return,
        };
        // The peer may be gone.
        let _ = self.context.close(&mut self.wire, Some(CloseFrame { code, reason: "".into() }));
        let _ = self.flush().await;
    }

    async fn fill(&mut self) -> Result<(), SocketError> {
        let wire = &mut self.wire;
        wire.input.drain(..wire.read);
        wire.read = 0;
        let start = wire.input.len();
        wire.input.resize(start + READ_BYTES, 0);
        let mut filled = FilledInput { input: &mut wire.input, end: start };
        let count = self.connection.read(&mut filled.input[start..]).await;
        filled.end += *count.as_ref().unwrap_or(&0);
        drop(filled);
        self.wire.ended = count? == 0;
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), SocketError> {
        match self.context.flush(&mut self.wire) {
            // `next` tells of an end.
            Ok(()) | Err(tungstenite::Error::ConnectionClosed | tungstenite::Error::AlreadyClosed) => {}
            Err(error) => return Err(error.into()),
        }
        // A frame that was begun must be ended, so what is under way is taken out bit by bit.
        while !self.wire.output.is_empty() {
            let written = std::future::poll_fn(|cx| {
                selvedge_handler::Duplex::poll_write(&self.connection, cx, &self.wire.output)
            });
            let written = written.await?;
            self.wire.output.drain(..written);
        }
        Ok(())
    }
}

/// The input while it is filled. Dropping it, also when the wait is given up, cuts off the room
/// that has not been filled.
struct FilledInput<'a> {
    input: &'a mut Vec<u8>,
    end: usize,
}

impl Drop for FilledInput<'_> {
    fn drop(&mut self) {
        self.input.truncate(self.end);
    }
}

impl From<tungstenite::Error> for SocketError {
    fn from(error: tungstenite::Error) -> SocketError {
        SocketError(error.into())
    }
}

impl From<io::Error> for SocketError {
    fn from(error: io::Error) -> SocketError {
        tungstenite::Error::Io(error).into()
    }
}

impl fmt::Display for SocketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for SocketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for SocketError {}

impl fmt::Debug for WebSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocket").field("connection", &self.connection).finish_non_exhaustive()
    }
}
