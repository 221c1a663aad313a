//! [`Proxy`]: the handler that passes requests on to other servers.
//!
//! One request goes the way [`Proxy::call`](Handler::call) shows: a server is picked, the cleaned
//! request is sent by the client, and the answer's head is passed on when it is there; the bodies
//! flow while their readers take them. `forwarding.rs` decides on the fields, `upstreams.rs` on the
//! server. `short_way.rs` is a short way for most `GET` requests.
//!
//! No message goes on as it came. The front has parsed the request and the client writes it anew,
//! with a framing of its own; likewise the answer. So a message that two readers see differently
//! ends here, in either direction.

use crate::departure::{attended, attended_plain};
use crate::error_log::ErrorLog;
use crate::forwarding::{Hop, cleaned, is_passed_on};
use crate::replay::{Replay, Replayed};
use crate::short_way::{PassedLines, outgoing_head};
use crate::upstreams::{Picked, Upstreams, host_of};
use bytes::Bytes;
use http::header::{HOST, HeaderName, HeaderValue, MAX_FORWARDS, RETRY_AFTER};
use http::request::Parts;
use http::{Method, StatusCode, Uri};
use http_body::{Frame, SizeHint};
use selvedge_client::{Address, AnswerBody, Client, Error, PlainReply, Switched};
use selvedge_handler::{
    Body, BodyError, Caller, Handler, HeaderMap, Placeholder, PlainCall, PlainOutcome, PlainRequest, Request,
    Response, Upgraded,
};
use selvedge_scope::try_join;
use std::error::Error as StdError;
use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

/// A reverse proxy: a handler that has other servers answer.
///
/// - Bodies stream in both directions: neither is ever in memory as a whole. Trailers, interim
///   answers, and what follows an `Upgrade` (WebSockets) go through.
/// - Fields that are about one connection stay behind. `Forwarded`, `X-Forwarded-For`, `-Host`,
///   `-Proto` and `Via` are added; what a client claims in them is dropped, unless the proxy
///   [trusts](Proxy::trust_forwarded) its clients.
/// - A server that cannot be reached has seen nothing, so the request goes to the next server. A
///   request that was sent and not answered goes to the next server once, if its method is
///   idempotent and its body small.
/// - A path with a name `.` or `..`, encoded or not, is answered 400: a server that resolves it
///   would leave the part of its paths that [`prefix`](Proxy::prefix) or a router leads to.
/// - The answer is 502 if no server could be reached or the answer is no HTTP, 504 if a time limit
///   of the [client](selvedge_client::Builder) has passed, and 503 if no server is in order.
///
/// A clone shares pool and servers.
///
/// # Examples
/// ```
/// use selvedge::client::{Address, Client};
/// use selvedge::gateway::{Proxy, Upstreams};
/// use std::time::Duration;
///
/// let client = Client::builder().answer_limit(Duration::from_secs(30)).build();
/// let upstreams = Upstreams::new([Address::tcp("127.0.0.1:8001"), Address::unix("/run/b.sock")]);
/// let proxy = Proxy::new(upstreams).client(client).prefix("/app", "/");
/// # let _ = proxy;
/// ```
#[derive(Clone, Debug)]
pub struct Proxy(Arc<ProxySettings>);

/// In one allocation, because each request has a clone of the proxy.
#[derive(Clone, Debug)]
struct ProxySettings {
    upstreams: Upstreams,
    client: Client,
    hop: Hop,
    prefix: Option<(String, String)>,
    host: Option<HeaderValue>,
    log: ErrorLog,
    outlives_client: bool,
}

impl Proxy {
    /// A proxy before these servers.
    pub fn new(upstreams: Upstreams) -> Proxy {
        let hop = Hop::new("selvedge", false);
        Proxy(Arc::new(ProxySettings {
            upstreams,
            client: Client::new(),
            hop,
            prefix: None,
            host: None,
            log: ErrorLog::default(),
            outlives_client: false,
        }))
    }

    fn settings(&mut self) -> &mut ProxySettings {
        Arc::make_mut(&mut self.0)
    }

    /// The client that sends the requests: its time limits and its pool. (Redirects are passed on,
    /// and never followed.)
    #[must_use]
    pub fn client(mut self, client: Client) -> Proxy {
        self.settings().client = client;
        self
    }

    /// The name in `Via`. `selvedge` if not set.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Proxy {
        let trusts = self.0.hop.trusts;
        self.settings().hop = Hop::new(&name.into(), trusts);
        self
    }

    /// Keeps what `Forwarded` and `X-Forwarded-*` say in requests, and appends to it. It is for a
    /// proxy behind another proxy.
    #[must_use]
    pub fn trust_forwarded(mut self) -> Proxy {
        self.settings().hop.trusts = true;
        self
    }

    /// Puts `to` in the place of `from` at the front of each path. A path that does not begin with
    /// `from` is left as it is.
    #[must_use]
    pub fn prefix(mut self, from: impl Into<String>, to: impl Into<String>) -> Proxy {
        self.settings().prefix = Some((from.into(), to.into()));
        self
    }

    /// The value of `Host` in all requests. If not set, it is the value that the client sent.
    #[must_use]
    pub fn host(mut self, host: HeaderValue) -> Proxy {
        self.settings().host = Some(host);
        self
    }

    /// Whether a request goes on when its client has left: for clients that close their direction
    /// of the connection and still read. `false` if not set.
    #[must_use]
    pub fn outlives_client(mut self, outlives: bool) -> Proxy {
        self.settings().outlives_client = outlives;
        self
    }

    /// Where failures go, each under the address of its server.
    #[must_use]
    pub fn error_log(mut self, log: ErrorLog) -> Proxy {
        self.settings().log = log;
        self
    }

    /// The servers.
    pub fn upstreams(&self) -> &Upstreams {
        &self.0.upstreams
    }

    /// The head of the request to a server; `None` if the request is not valid.
    fn outgoing(&self, parts: Parts, peer: Option<IpAddr>) -> Option<Parts> {
        if has_dot_segment(parts.uri.path().as_bytes()) {
            return None;
        }
        let (mut outgoing, ()) = http::Request::new(()).into_parts();
        outgoing.method = parts.method;
        outgoing.uri = match &self.0.prefix {
            Some((from, to)) => replaced(&parts.uri, from, to)?,
            None => parts.uri,
        };
        outgoing.headers = cleaned(parts.headers);
        self.0.hop.add_to(&mut outgoing.headers, peer, parts.version);
        if let Some(host) = &self.0.host {
            outgoing.headers.insert(HOST, host.clone());
        }
        Some(outgoing)
    }

    /// Sends a request to one server after the other, until one answers or none may be tried.
    /// `send` sends it to one of them, and is told whether it is the last; it returns `None` if the
    /// request cannot be sent again.
    async fn exchange<T>(
        &self,
        key: u64,
        mut may_repeat: bool,
        mut send: impl AsyncFnMut(&Address, bool) -> Option<Result<T, Error>>,
    ) -> Result<(T, Picked), Failure> {
        let mut tried = Vec::new();
        let mut last = None;
        while let Some(picked) = self.0.upstreams.pick(key, &tried) {
            let is_last = tried.len() + 1 == self.0.upstreams.len();
            let Some(sent) = send(picked.address(), is_last).await else { break };
            let error = match sent {
                Ok(answer) => {
                    picked.succeeded();
                    return Ok((answer, picked));
                }
                Err(error) => error,
            };
            if error.is_request_body() {
                return Err(Failure::Client(error));
            }
            picked.failed();
            self.0.log.say(&picked.address().to_string(), &with_causes(&error));
            let goes_on = error.is_connect() || error.is_unanswered() && !error.is_timeout() && may_repeat;
            // What was sent and not answered is repeated once.
            may_repeat &= error.is_connect();
            tried.push(picked.index);
            last = Some(error);
            if !goes_on {
                break;
            }
        }
        Err(last.map_or(Failure::NoServer, Failure::Server))
    }
}

/// What is told of interim answers, which go on to the client.
fn inform(caller: Option<&Caller>, status: StatusCode, fields: HeaderMap) {
    if let Some(caller) = caller.filter(|_| is_passed_on(status)) {
        caller.inform(status, cleaned(fields));
    }
}

/// Why there is no answer.
enum Failure {
    /// No server is in order.
    NoServer,
    Server(Error),
    /// The body of the request broke off.
    Client(Error),
}

impl Failure {
    fn response(&self) -> Response {
        let status = match self {
            Failure::NoServer => StatusCode::SERVICE_UNAVAILABLE,
            Failure::Server(error) if error.is_timeout() => StatusCode::GATEWAY_TIMEOUT,
            Failure::Server(_) => StatusCode::BAD_GATEWAY,
            Failure::Client(error) => {
                let body_error = error.source().and_then(|source| source.downcast_ref::<BodyError>());
                body_error.map_or(StatusCode::BAD_REQUEST, BodyError::status)
            }
        };
        let mut response = plain(status);
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

impl Handler for Proxy {
    async fn call(&self, request: Request) -> Response {
        let answer = async |request| self.answer(request).await;
        if self.0.outlives_client { answer(request).await } else { attended(request, answer).await }
    }

    fn call_plain(&self, request: &PlainRequest<'_>) -> Option<PlainCall> {
        if !request.is_bare_get() || self.0.prefix.is_some() || has_dot_segment(path_of(request.target())) {
            return None;
        }
        let host = self.0.host.as_ref().map_or(request.host(), HeaderValue::as_bytes);
        let head = outgoing_head(request, &self.0.hop, host)?;
        let (proxy, caller) = (self.clone(), request.caller().clone());
        let key = self.0.upstreams.key(caller.peer(), path_of(request.target()));
        Some(Box::pin(async move {
            let answer = pin!(proxy.answer_plain(&head, key, &caller));
            if proxy.0.outlives_client { answer.await } else { attended_plain(&caller, answer).await }
        }))
    }
}

impl Proxy {
    async fn answer(&self, request: Request) -> Response {
        let (mut parts, body) = request.into_parts();
        if let Some(response) = last_hop(&mut parts) {
            return response;
        }
        let caller = parts.extensions.get::<Caller>().cloned();
        let peer = caller.as_ref().and_then(Caller::peer);
        let key = self.0.upstreams.key(peer, parts.uri.path().as_bytes());
        let Some(outgoing) = self.outgoing(parts, peer) else {
            return plain(StatusCode::BAD_REQUEST);
        };
        let replay = Replay::new(body);
        let may_repeat = is_idempotent(&outgoing);
        let mut outgoing = Some(outgoing);
        let send = async |address: &Address, is_last| {
            if !replay.is_whole() {
                return None;
            }
            let mut parts = if is_last { outgoing.take() } else { outgoing.clone() }?;
            if !parts.headers.contains_key(HOST)
                && let Ok(host) = HeaderValue::from_str(&host_of(address))
            {
                parts.headers.insert(HOST, host);
            }
            let request = http::Request::from_parts(parts, replay.body());
            let inform = |status, fields| inform(caller.as_ref(), status, fields);
            Some(self.0.client.send_informing(address, request, inform).await)
        };
        match self.exchange(key, may_repeat, send).await {
            Ok((answer, picked)) => self.pass_on(answer, picked),
            Err(failure) => failure.response(),
        }
    }

    /// The short way of `short_way.rs`.
    async fn answer_plain(&self, head: &[u8], key: u64, caller: &Caller) -> PlainOutcome {
        let inform = |status, fields| inform(Some(caller), status, fields);
        let mut lines = PassedLines::default();
        let send = async |address: &Address, _| {
            Some(self.0.client.get_plain(address, head, inform, &mut lines).await)
        };
        match self.exchange(key, true, send).await {
            Ok((PlainReply::Whole(answer), _)) => PlainOutcome::Plain(lines.answer(answer, &self.0.hop)),
            Ok((PlainReply::Other(answer), picked)) => self.pass_on(*answer, picked).into(),
            Err(failure) => failure.response().into(),
        }
    }

    /// The answer for the client.
    fn pass_on(&self, answer: http::Response<AnswerBody<Replayed>>, picked: Picked) -> Response {
        let (parts, body) = answer.into_parts();
        let mut fields = cleaned(parts.headers);
        self.0.hop.add_via(&mut fields, parts.version);
        let body = match body.into_bytes().map_err(AnswerBody::into_upgraded) {
            Ok(content) => content.into(),
            Err(Ok(upstream)) => Body::upgrade(async move |client| {
                // The request is under way until the connections are closed.
                let _picked = picked;
                // An error of one side ends both: there is no client that could be told.
                let _ = copy_both_ways(&client, &upstream).await;
            }),
            Err(Err(body)) => Body::new(Passing { body, _picked: picked }),
        };
        let mut response = Response::new(body);
        *response.status_mut() = parts.status;
        *response.headers_mut() = fields;
        response
    }
}

/// RFC 9110 §7.6.2: a proxy answers `OPTIONS` and `TRACE` itself when no hop is left.
fn last_hop(parts: &mut Parts) -> Option<Response> {
    if parts.method != Method::OPTIONS && parts.method != Method::TRACE {
        return None;
    }
    let hops: u32 = parts.headers.get(MAX_FORWARDS)?.to_str().ok()?.parse().ok()?;
    match hops.checked_sub(1) {
        Some(left) => {
            parts.headers.insert(MAX_FORWARDS, left.into());
            None
        }
        None if parts.method == Method::OPTIONS => Some(plain(StatusCode::NO_CONTENT)),
        None => Some(plain(StatusCode::METHOD_NOT_ALLOWED)),
    }
}

/// The words of an error and of what has caused it.
fn with_causes(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(one) = cause {
        let words = one.to_string();
        // Some errors say their cause themselves, without its number.
        let words = words.split(" (os error").next().unwrap_or_default();
        if !text.contains(words) {
            text = format!("{text}: {words}");
        }
        cause = one.source();
    }
    text
}

/// A response that says its status.
pub(crate) fn plain(status: StatusCode) -> Response {
    let text = format!("{status}\n");
    let mut response =
        Response::new(if status == StatusCode::NO_CONTENT { Body::empty() } else { text.into() });
    *response.status_mut() = status;
    let content_type = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(HeaderName::from_static("content-type"), content_type);
    response.extensions_mut().insert(Placeholder);
    response
}

/// The URI with `to` in the place of `from` at the front of its path.
fn replaced(uri: &Uri, from: &str, to: &str) -> Option<Uri> {
    let Some(rest) = uri.path().strip_prefix(from) else { return Some(uri.clone()) };
    if !(rest.is_empty() || rest.starts_with('/') || from.ends_with('/')) {
        // The prefix ends within a name.
        return Some(uri.clone());
    }
    let path = match (to.ends_with('/'), rest.strip_prefix('/')) {
        (true, Some(rest)) => format!("{to}{rest}"),
        (false, None) if !rest.is_empty() => format!("{to}/{rest}"),
        _ => format!("{to}{rest}"),
    };
    let path = if path.starts_with('/') { path } else { format!("/{path}") };
    match uri.query() {
        Some(query) => format!("{path}?{query}").parse().ok(),
        None => path.parse().ok(),
    }
}

/// The path of a target.
fn path_of(target: &[u8]) -> &[u8] {
    target.split(|&byte| byte == b'?').next().unwrap_or_default()
}

/// Whether a server could read a name of the path as `.` or `..`, and so leave the part of its
/// paths that the proxy leads to. Some servers decode the path before they split it, take `\` for
/// `/`, or cut a name at its `;`.
fn has_dot_segment(path: &[u8]) -> bool {
    // Most paths have no name that begins with a dot, and no byte that stands for another.
    let mut before = b'/';
    let may_have = path.iter().any(|&byte| {
        let before = std::mem::replace(&mut before, byte);
        byte == b'%' || byte == b'.' && matches!(before, b'/' | b'\\')
    });
    if !may_have {
        return false;
    }
    let mut rest = path;
    // The dots of a name that has nothing else yet.
    let mut dots = Some(0);
    loop {
        let is_dot_segment = matches!(dots, Some(1 | 2));
        let byte;
        (byte, rest) = match rest {
            [] => return is_dot_segment,
            [b'%', b'2', b'e' | b'E', after @ ..] => (b'.', after),
            [b'%', b'2', b'f' | b'F', after @ ..] => (b'/', after),
            [b'%', b'5', b'c' | b'C', after @ ..] => (b'/', after),
            [b'%', b'3', b'b' | b'B', after @ ..] => (b';', after),
            [byte, after @ ..] => (*byte, after),
        };
        match byte {
            b'/' | b'\\' | b';' if is_dot_segment => return true,
            b'/' | b'\\' => dots = Some(0),
            b'.' => dots = dots.map(|dots| dots + 1),
            _ => dots = None,
        }
    }
}

/// Whether a repeated request has the effect of one (RFC 9110 §9.2.2).
pub(crate) fn is_idempotent(parts: &Parts) -> bool {
    [Method::GET, Method::HEAD, Method::PUT, Method::DELETE, Method::OPTIONS, Method::TRACE]
        .contains(&parts.method)
        && !parts.headers.contains_key(http::header::UPGRADE)
}

/// The body of an answer on its way, and the server that counts it as under way.
struct Passing {
    body: AnswerBody<Replayed>,
    _picked: Picked,
}

impl http_body::Body for Passing {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The number of bytes that one read of an upgraded connection asks for.
const PIECE_BYTES: usize = 16 << 10;

/// Copies between a client and a server until both directions have ended.
async fn copy_both_ways(client: &Upgraded, server: &Switched) -> io::Result<()> {
    let to_server = async {
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match client.read(&mut piece).await? {
                0 => break server.stream.shutdown(std::net::Shutdown::Write),
                read => server.stream.write_all(&piece[..read]).await?,
            }
        }
    };
    let to_client = async {
        client.write_all(&server.early).await?;
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match server.stream.read(&mut piece).await? {
                0 => break client.finish().await,
                read => client.write_all(&piece[..read]).await?,
            }
        }
    };
    try_join((to_server, to_client)).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dot_segments() {
        for path in [
            "/..",
            "/.",
            "/a/../b",
            "/a/%2E./b",
            "/a/.%2e",
            "/..%2Fa",
            "/a%2f..",
            "/..%5ca",
            "/..;a",
            "/a\\..",
            "/.%3B",
        ] {
            assert!(has_dot_segment(path.as_bytes()), "{path}");
        }
        for path in ["/", "*", "", "/a.b/c..", "/...", "/%2e%2e.", "/..a", "/;..", "/..%", "/..%2", "/%2525"]
        {
            assert!(!has_dot_segment(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn prefixes() {
        let replaced = |uri: &str, from, to| replaced(&uri.parse().unwrap(), from, to).unwrap().to_string();
        for (uri, from, to, expected) in [
            ("/app/x?y", "/app", "/", "/x?y"),
            ("/app", "/app", "/", "/"),
            ("/app?y", "/app", "/", "/?y"),
            ("/apple", "/app", "/", "/apple"),
            ("/other", "/app", "/", "/other"),
            ("/app/x", "/app/", "/v1", "/v1/x"),
            ("/app/x", "/app/", "/v1/", "/v1/x"),
            ("/app/x", "/app", "/v1", "/v1/x"),
            ("/x", "/", "/v1/", "/v1/x"),
        ] {
            assert_eq!(replaced(uri, from, to), expected, "{uri} {from} {to}");
        }
    }
}
