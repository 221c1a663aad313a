//! [`serve_fastcgi`]: a handler as a FastCGI application.
//!
//! A thread serves each connection, one request after the other. While the handler, or the body of
//! its response, runs, [`Connection::attend`] reads the request's body as the handler asks for it;
//! when the body has ended, it waits for the server to give the request up.

use super::InheritedListener;
use super::request::{put_head, request};
use crate::fastcgi::record::{self, BadRecord, Ended, RESPONDER, RecordDecoder, kind};
use crate::proxy::plain;
use bytes::{Buf, Bytes};
use http::{Method, StatusCode};
use selvedge_core::{Time, spawn_local};
use selvedge_handler::{BodyError, Cause, DynHandler, Feeder, Handler, Response, Wanted, incoming};
use selvedge_io::net::Stream;
use selvedge_scope::{Selected, select};
use std::future::poll_fn;
use std::io;
use std::net::Shutdown;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

/// The most bytes of the parameters of one request.
const PARAMS_BYTES_MAX: usize = 256 << 10;

/// The longest time for which input behind the last answer is read.
const LINGER: Duration = Duration::from_secs(2);

/// The number of bytes that one read of the connection asks for.
const PIECE_BYTES: usize = 32 << 10;

/// A listener that accepts streams.
pub trait Accepts {
    /// Waits for the next connection.
    ///
    /// # Errors
    /// Those of the listener.
    fn accept(&self) -> impl Future<Output = io::Result<Stream>>;
}

impl Accepts for InheritedListener {
    async fn accept(&self) -> io::Result<Stream> {
        match self {
            InheritedListener::Tcp(listener) => Accepts::accept(listener).await,
            InheritedListener::Unix(listener) => Accepts::accept(listener).await,
        }
    }
}

impl Accepts for selvedge_io::net::TcpListener {
    async fn accept(&self) -> io::Result<Stream> {
        let (stream, _) = self.accept().await?;
        stream.set_nodelay(true)?;
        Ok(stream.into())
    }
}

impl Accepts for selvedge_io::net::UnixListener {
    async fn accept(&self) -> io::Result<Stream> {
        Ok(self.accept().await?.into())
    }
}

/// Answers the requests of a web server, by FastCGI, for as long as the listener accepts
/// connections. Each connection is served by a thread of its own, on this OS thread.
///
/// When the server gives a request up, or closes the connection, the handler's future is dropped. A
/// handler that upgrades the connection is answered with 500, because FastCGI has no such thing.
/// Interim responses and trailers are dropped.
///
/// # Errors
/// Those of the listener.
pub async fn serve_fastcgi(listener: impl Accepts, handler: impl Handler) -> io::Result<()> {
    let handler: Rc<dyn DynHandler> = Rc::new(handler);
    loop {
        let stream = listener.accept().await?;
        let handler = handler.clone();
        drop(spawn_local(async move {
            // A connection that breaks, or on which nonsense comes, ends. There is nothing to tell.
            let _ = Connection::new(stream).serve(&*handler).await;
        }));
    }
}

/// A connection from a web server.
struct Connection {
    stream: Rc<Stream>,
    reader: Reader,
}

/// The direction from the web server.
struct Reader {
    stream: Rc<Stream>,
    records: RecordDecoder,
    input: Bytes,
}

/// A whole record, but for content that belongs to a stream: of this a part may come alone.
struct Came {
    kind: u8,
    request: u16,
    content: Bytes,
    is_last: bool,
}

/// A request that has begun.
struct Begun {
    id: u16,
    keeps: bool,
    params: Vec<u8>,
}

fn invalid(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

impl From<BadRecord> for io::Error {
    fn from(BadRecord(why): BadRecord) -> io::Error {
        invalid(why)
    }
}

impl Connection {
    fn new(stream: Stream) -> Connection {
        let stream = Rc::new(stream);
        let reader =
            Reader { stream: stream.clone(), records: RecordDecoder::default(), input: Bytes::new() };
        Connection { stream, reader }
    }

    async fn serve(mut self, handler: &dyn DynHandler) -> io::Result<()> {
        while let Some(begun) = self.begin().await? {
            let (id, keeps) = (begun.id, begun.keeps);
            if !self.answer(begun, handler).await? {
                return Ok(());
            }
            let mut out = Vec::new();
            record::put_end(id, Ended::Complete, &mut out);
            self.stream.write_all(&out).await?;
            if !keeps {
                self.linger().await;
                break;
            }
        }
        Ok(())
    }

    /// Lets the server read the answer before the connection is closed, because a connection with
    /// unread input would be reset.
    async fn linger(&mut self) {
        // The server may be gone, and then there is nothing to wait for.
        let _ = self.stream.shutdown(Shutdown::Write);
        self.stream.set_read_deadline(Some(Time::now() + LINGER));
        while let Ok(Some(_)) = self.reader.next().await {}
    }

    /// Reads the next request's begin and parameters. It skips records of requests that are over.
    async fn begin(&mut self) -> io::Result<Option<Begun>> {
        let (mut begun, mut content): (Option<Begun>, Vec<u8>) = (None, Vec::new());
        while let Some(came) = self.reader.next().await? {
            match (came.kind, &mut begun) {
                (kind::BEGIN | kind::GET_VALUES, _) => {
                    content.extend_from_slice(&came.content);
                    if content.len() > PARAMS_BYTES_MAX {
                        return Err(invalid("the parameters are too long"));
                    }
                    if !came.is_last {
                        continue;
                    }
                    let content = std::mem::take(&mut content);
                    if came.kind == kind::GET_VALUES {
                        self.tell_values(&content).await?;
                        continue;
                    }
                    let (role, keeps) = record::begin(&content)?;
                    let refusal = match &begun {
                        _ if role != RESPONDER => Some(Ended::UnknownRole),
                        Some(_) => Some(Ended::CannotMultiplex),
                        None => None,
                    };
                    if let Some(refusal) = refusal {
                        let mut out = Vec::new();
                        record::put_end(came.request, refusal, &mut out);
                        self.stream.write_all(&out).await?;
                    } else {
                        begun = Some(Begun { id: came.request, keeps, params: Vec::new() });
                    }
                }
                (kind::PARAMS, Some(request)) if request.id == came.request => {
                    request.params.extend_from_slice(&came.content);
                    if came.content.is_empty() {
                        return Ok(begun);
                    }
                    if request.params.len() > PARAMS_BYTES_MAX {
                        return Err(invalid("the parameters are too long"));
                    }
                }
                (kind::ABORT, Some(request)) if request.id == came.request => {
                    let mut out = Vec::new();
                    record::put_end(request.id, Ended::Complete, &mut out);
                    self.stream.write_all(&out).await?;
                    begun = None;
                }
                (unknown, _) if came.request == 0 && came.is_last => {
                    let mut out = Vec::new();
                    record::put_content(kind::UNKNOWN, 0, &[unknown, 0, 0, 0, 0, 0, 0, 0], &mut out);
                    self.stream.write_all(&out).await?;
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// Tells the server what it asks about this application.
    async fn tell_values(&self, content: &[u8]) -> io::Result<()> {
        let mut values = Vec::new();
        for (name, _) in record::pairs(content)? {
            if name == b"FCGI_MPXS_CONNS" {
                record::put_pair(name, b"0", &mut values);
            }
        }
        let mut out = Vec::new();
        if values.is_empty() {
            record::put_stream_end(kind::GET_VALUES_RESULT, 0, &mut out);
        } else {
            record::put_content(kind::GET_VALUES_RESULT, 0, &values, &mut out);
        }
        self.stream.write_all(&out).await
    }

    /// Answers a request, but for its end. False if the server has closed the connection.
    async fn answer(&mut self, begun: Begun, handler: &dyn DynHandler) -> io::Result<bool> {
        let Begun { id, params, .. } = begun;
        let asked = record::pairs(&params).map_err(|BadRecord(why)| why);
        let asked = asked.and_then(|pairs| request(pairs.into_iter()));
        let Ok((mut asked, length)) = asked else {
            send(&self.stream, id, plain(StatusCode::BAD_REQUEST), false).await?;
            return Ok(true);
        };
        let mut feeder = None;
        if length > 0 {
            let (end, body) = incoming(Some(length));
            (*asked.body_mut(), feeder) = (body.into(), Some(end));
        }
        let is_head = asked.method() == Method::HEAD;
        let respond = async {
            let response = handler.call_boxed(asked).await;
            send(&self.stream, id, response, is_head).await
        };
        match select((respond, self.reader.attend(id, feeder, length))).await {
            Selected::First(sent) => sent.map(|()| true),
            Selected::Second(is_open) => is_open,
        }
    }
}

/// Sends a response.
async fn send(stream: &Stream, id: u16, response: Response, is_head: bool) -> io::Result<()> {
    let response = match response.status().is_informational() {
        true => plain(StatusCode::INTERNAL_SERVER_ERROR),
        false => response,
    };
    let (parts, mut body) = response.into_parts();
    let (mut head, mut out) = (Vec::new(), Vec::new());
    put_head(&parts, body.len(), &mut head);
    record::put_content(kind::STDOUT, id, &head, &mut out);
    while !is_head && let Some(piece) = body.next().await.transpose()? {
        record::put_content(kind::STDOUT, id, &piece, &mut out);
        stream.write_all(&out).await?;
        out.clear();
    }
    record::put_stream_end(kind::STDOUT, id, &mut out);
    stream.write_all(&out).await
}

impl Reader {
    /// The next record, or part of one. `None` at the end of the connection.
    async fn next(&mut self) -> io::Result<Option<Came>> {
        loop {
            let piece = self.records.decode(&self.input)?;
            let came = piece.part.map(|part| Came {
                kind: part.kind,
                request: part.request,
                content: if part.content.is_empty() {
                    Bytes::new()
                } else {
                    self.input.slice_ref(part.content)
                },
                is_last: part.is_last,
            });
            let consumed = piece.consumed;
            self.input.advance(consumed);
            if came.is_some() {
                return Ok(came);
            }
            let mut buffer = Vec::with_capacity(PIECE_BYTES);
            if self.stream.read_to_spare(&mut buffer).await? == 0 {
                return Ok(None);
            }
            self.input = buffer.into();
        }
    }

    /// Reads the body of a request as the handler asks for it, and then waits until the server
    /// gives the request up (true), or closes the connection (false).
    async fn attend(&mut self, id: u16, mut feeder: Option<Feeder>, length: u64) -> io::Result<bool> {
        let mut left = length;
        loop {
            if let Some(end) = &feeder
                && poll_fn(|cx| end.poll_wanted(cx)).await == Wanted::Nothing
            {
                feeder = None;
            }
            let Some(came) = self.next().await? else { return Ok(false) };
            match came.kind {
                kind::ABORT if came.request == id => return Ok(true),
                kind::STDIN if came.request == id => {
                    // What is behind the length is no part of the body.
                    let mut content = came.content.clone();
                    content.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                    left -= content.len() as u64;
                    // The handler is polled by this task, so this task has to run again.
                    poll_fn(|cx| {
                        match (came.content.is_empty(), &feeder) {
                            (false, Some(end)) if !content.is_empty() => end.put(content.clone(), cx),
                            (true, Some(_)) => {
                                let cut = || BodyError::new(Cause::Disconnected);
                                let ended = if left == 0 { Ok(None) } else { Err(cut()) };
                                if let Some(end) = feeder.take() {
                                    end.end(ended, cx);
                                }
                            }
                            _ => {}
                        }
                        cx.waker().wake_by_ref();
                        Poll::Ready(())
                    })
                    .await;
                }
                _ => {}
            }
        }
    }
}
