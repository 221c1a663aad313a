//! [`Talk`]: one request on a connection to an application.
//!
//! A request with its body in memory is written at once. Otherwise a future of its own writes it,
//! which is polled together with the reading of the answer, so both flow at the same time. The
//! connection goes back to the pool when the
//! application has ended the request and the whole request was written. Otherwise it is closed, and
//! the application is told before that the request is given up.
//!
//! Most answers come as a whole. [`first_output`] gets along without a `Talk` for them.

use super::keeping::ConnectionKeeping;
use super::record::{self, BadRecord, Ended, RecordDecoder, kind};
use crate::cgi::claimed_length::ClaimedLength;
use crate::cgi::head::{self, BadHead};
use crate::error_log::{ErrorLines, ErrorLog};
use crate::replay::Replay;
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use selvedge_client::{Address, Error, ReadRoom};
use selvedge_core::{Time, now};
use selvedge_handler::{Body, BodyError};
use selvedge_io::net::Stream;
use selvedge_scope::{Selected, select};
use std::cell::RefCell;
use std::fmt;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The number of the request: there is one at a time on a connection.
pub(crate) const REQUEST: u16 = 1;

/// The number of bytes that one read of the connection asks for.
const PIECE_BYTES: usize = 32 << 10;

/// The most bytes of an answer that comes as a whole, with its records.
const WHOLE_BYTES: usize = 16 << 10;

/// The most bytes that are copied out of the room for reading. With more, the room itself goes on.
const COPIED_BYTES_MAX: usize = 8 << 10;

/// The time limits of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) send: Duration,
    pub(crate) read: Duration,
}

/// Where a connection goes afterwards.
pub(crate) struct Back {
    pub(crate) keeping: Arc<ConnectionKeeping>,
    pub(crate) address: Address,
}

/// Why an application gave no answer.
#[derive(Debug)]
pub(crate) enum ApplicationFailure {
    NotConnected(Error),
    /// The connection ended before anything of the answer came.
    Closed(Option<io::Error>),
    TooLate,
    Broken(io::Error),
    BadRecord(BadRecord),
    BadHead(BadHead),
    /// The application has ended the request without a head.
    Ended(Ended),
    /// The request's body broke off.
    Client(BodyError),
}

impl ApplicationFailure {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            ApplicationFailure::TooLate => StatusCode::GATEWAY_TIMEOUT,
            ApplicationFailure::NotConnected(error) if error.is_timeout() => StatusCode::GATEWAY_TIMEOUT,
            ApplicationFailure::Ended(Ended::Overloaded) => StatusCode::SERVICE_UNAVAILABLE,
            ApplicationFailure::Client(error) => error.status(),
            _ => StatusCode::BAD_GATEWAY,
        }
    }
}

impl fmt::Display for ApplicationFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApplicationFailure::NotConnected(error) => write!(f, "{error}"),
            ApplicationFailure::Closed(None) => {
                f.write_str("the application closed the connection without an answer")
            }
            ApplicationFailure::Closed(Some(error)) => {
                write!(f, "the connection broke before an answer: {error}")
            }
            ApplicationFailure::TooLate => f.write_str("no answer within the time limit"),
            ApplicationFailure::Broken(error) => write!(f, "the connection broke within the answer: {error}"),
            ApplicationFailure::BadRecord(BadRecord(why)) => write!(f, "the answer is no FastCGI: {why}"),
            ApplicationFailure::BadHead(BadHead(why)) => write!(f, "the answer is not valid: {why}"),
            ApplicationFailure::Ended(ended) => {
                write!(f, "the application ended the request without an answer: {ended:?}")
            }
            ApplicationFailure::Client(error) => write!(f, "the request broke off: {error}"),
        }
    }
}

/// Why the next piece of output cannot be read.
enum OutputCut {
    Closed,
    Io(io::Error),
    BadRecord(BadRecord),
    Client(BodyError),
}

type RequestFeed = Pin<Box<dyn Future<Output = Result<(), FeedError>>>>;

enum FeedError {
    /// The application takes no more. It may answer all the same.
    Io,
    Client(BodyError),
}

/// A request on its way out, as often as it is sent.
pub(crate) struct OutgoingRequest {
    /// All but the body. With a body in memory, the whole request.
    bytes: Vec<u8>,
    /// The body that is to follow.
    body: Option<Replay>,
}

impl OutgoingRequest {
    /// The request that begins so.
    pub(crate) fn new(mut beginning: Vec<u8>, body: Body) -> OutgoingRequest {
        let Some(content) = body.in_memory() else {
            return OutgoingRequest { bytes: beginning, body: Some(Replay::new(body)) };
        };
        record::put_content(kind::STDIN, REQUEST, content, &mut beginning);
        record::put_stream_end(kind::STDIN, REQUEST, &mut beginning);
        OutgoingRequest::whole(beginning)
    }

    /// The request that these records are all of.
    pub(crate) fn whole(bytes: Vec<u8>) -> OutgoingRequest {
        OutgoingRequest { bytes, body: None }
    }

    /// Whether it can be sent from its beginning.
    pub(crate) fn is_whole(&self) -> bool {
        self.body.as_ref().is_none_or(Replay::is_whole)
    }
}

/// Room for reading, which the requests of one handler share, because none holds it while it waits:
/// most answers are far shorter, and are copied out of it.
#[derive(Clone, Default)]
pub(crate) struct Scratch(Rc<RefCell<Vec<u8>>>);

impl Scratch {
    /// Reads without waiting. No bytes are the end of the stream.
    fn read(&self, stream: &Stream) -> io::Result<Bytes> {
        let mut room = self.0.take();
        room.clear();
        room.reserve_exact(PIECE_BYTES);
        let read = stream.try_read_to_spare(&mut room);
        if room.len() > COPIED_BYTES_MAX {
            return Ok(room.into());
        }
        let read = read.map(|_| Bytes::copy_from_slice(&room));
        self.0.replace(room);
        read
    }
}

/// A request on a connection.
pub(crate) struct Talk {
    /// The connection, until it is given back.
    stream: Option<Rc<Stream>>,
    /// Writes the request; `None` when it has ended.
    feed: Option<RequestFeed>,
    /// Whether the whole request was written.
    is_sent: bool,
    records: RecordDecoder,
    input: Bytes,
    /// Whether anything has come.
    is_begun: bool,
    /// Until when the next bytes must come, if that is not the time limit from now on.
    due: Option<Time>,
    /// Content of an end that has come in part.
    end: Vec<u8>,
    ended: Option<Ended>,
    /// Output that was read and not passed on.
    early: Bytes,
    lines: ErrorLines,
    limits: Limits,
    back: Option<Back>,
    scratch: Scratch,
}

/// On what terms a request is on a connection.
pub(crate) struct TalkTerms {
    pub(crate) limits: Limits,
    pub(crate) back: Back,
    pub(crate) scratch: Scratch,
    pub(crate) log: ErrorLog,
    /// What error output is logged under.
    pub(crate) program: String,
}

impl Talk {
    /// Begins a request. If it has its body in memory, it goes out as far as the stream takes it at
    /// once.
    pub(crate) fn begin(stream: Stream, request: &OutgoingRequest, terms: TalkTerms) -> Talk {
        let send = terms.limits.send;
        let mut talk = Talk::on(Some(stream), terms);
        if let Some(stream) = &talk.stream {
            (talk.feed, talk.is_sent) = match &request.body {
                None => rest(stream, &request.bytes, stream.try_write(&request.bytes), send),
                Some(body) => {
                    let body = Body::new(body.body());
                    let feed = feed(stream.clone(), request.bytes.clone(), body, send);
                    (Some(Box::pin(feed) as RequestFeed), false)
                }
            };
        }
        talk
    }

    /// Goes on with a whole request that the stream has taken as far as `written` says, and of the
    /// answer to which `input` was read. If that is nothing, something must come until `due`.
    pub(crate) fn begun(
        stream: Stream,
        request: &[u8],
        (written, input): (io::Result<usize>, Bytes),
        due: Time,
        terms: TalkTerms,
    ) -> Talk {
        let send = terms.limits.send;
        let mut talk = Talk::on(Some(stream), terms);
        (talk.is_begun, talk.input) = (!input.is_empty(), input);
        talk.due = Some(due).filter(|_| !talk.is_begun);
        if let Some(stream) = &talk.stream {
            (talk.feed, talk.is_sent) = rest(stream, request, written, send);
        }
        talk
    }

    /// A request that the application has ended after this output. Its connection was given back.
    pub(crate) fn over(output: Bytes, terms: TalkTerms) -> Talk {
        let mut talk = Talk::on(None, terms);
        (talk.early, talk.ended, talk.back) = (output, Some(Ended::Complete), None);
        talk
    }

    fn on(stream: Option<Stream>, terms: TalkTerms) -> Talk {
        let TalkTerms { limits, back, scratch, log, program } = terms;
        Talk {
            stream: stream.map(Rc::new),
            feed: None,
            is_sent: false,
            records: RecordDecoder::default(),
            input: Bytes::new(),
            is_begun: false,
            due: None,
            end: Vec::new(),
            ended: None,
            early: Bytes::new(),
            lines: ErrorLines::new(log, program),
            limits,
            back: Some(back),
            scratch,
        }
    }

    /// Reads the bytes of the head of the answer.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) async fn head(&mut self) -> Result<Bytes, ApplicationFailure> {
        loop {
            if let Some(length) = head::length(&self.early).map_err(ApplicationFailure::BadHead)? {
                return Ok(self.early.split_to(length));
            }
            match self.read().await {
                Ok(Some(piece)) => self.put_early(piece),
                Ok(None) => return Err(ApplicationFailure::Ended(self.ended.unwrap_or(Ended::Complete))),
                Err(OutputCut::Client(error)) => return Err(ApplicationFailure::Client(error)),
                Err(OutputCut::BadRecord(bad)) => return Err(ApplicationFailure::BadRecord(bad)),
                Err(OutputCut::Io(error)) if error.kind() == io::ErrorKind::TimedOut => {
                    return Err(ApplicationFailure::TooLate);
                }
                Err(OutputCut::Io(error)) if self.is_begun => return Err(ApplicationFailure::Broken(error)),
                Err(OutputCut::Io(error)) => return Err(ApplicationFailure::Closed(Some(error))),
                Err(OutputCut::Closed) if self.is_begun => {
                    return Err(ApplicationFailure::Broken(io::ErrorKind::UnexpectedEof.into()));
                }
                Err(OutputCut::Closed) => return Err(ApplicationFailure::Closed(None)),
            }
        }
    }

    /// The next piece of the output, while the request flows out. `None` when the application has
    /// ended the request.
    async fn read(&mut self) -> Result<Option<Bytes>, OutputCut> {
        loop {
            if let Some(piece) = self.decode()? {
                return Ok(Some(piece));
            }
            if self.ended.is_some() {
                self.give_back();
                return Ok(None);
            }
            let Some(stream) = self.stream.clone() else { return Ok(None) };
            let scratch = &self.scratch;
            let read = loop {
                // While the request flows, its writer's limit counts.
                let due = self.due.unwrap_or_else(|| now() + self.limits.read);
                stream.set_read_deadline(self.feed.is_none().then_some(due));
                let read = stream.read_with(|stream| scratch.read(stream));
                let Some(feed) = &mut self.feed else { break read.await };
                match select((read, feed.as_mut())).await {
                    Selected::First(read) => break read,
                    Selected::Second(fed) => {
                        (self.feed, self.due) = (None, None);
                        match fed {
                            Ok(()) => self.is_sent = true,
                            Err(FeedError::Io) => {}
                            Err(FeedError::Client(error)) => return Err(OutputCut::Client(error)),
                        }
                    }
                }
            };
            let read = read.map_err(OutputCut::Io)?;
            if read.is_empty() {
                return Err(OutputCut::Closed);
            }
            (self.input, self.is_begun, self.due) = (read, true, None);
        }
    }

    /// The next piece of output among the bytes that are there. The error output among them goes to
    /// the log.
    fn decode(&mut self) -> Result<Option<Bytes>, OutputCut> {
        while !self.input.is_empty() && self.ended.is_none() {
            let piece = self.records.decode(&self.input).map_err(OutputCut::BadRecord)?;
            let consumed = piece.consumed;
            let mut output = None;
            if let Some(part) = piece.part.filter(|part| part.request == REQUEST) {
                match part.kind {
                    kind::STDOUT if !part.content.is_empty() => {
                        output = Some(self.input.slice_ref(part.content))
                    }
                    kind::STDERR => self.lines.put(part.content),
                    kind::END if part.is_last && self.end.is_empty() => {
                        self.ended = Some(record::end(part.content).map_err(OutputCut::BadRecord)?);
                    }
                    kind::END => {
                        self.end.extend_from_slice(part.content);
                        if part.is_last {
                            self.ended = Some(record::end(&self.end).map_err(OutputCut::BadRecord)?);
                        }
                    }
                    _ => {}
                }
            }
            drop(self.input.split_to(consumed));
            if output.is_some() {
                return Ok(output);
            }
        }
        Ok(None)
    }

    /// The application has ended the request: gives the connection back, if nothing speaks against
    /// it.
    fn give_back(&mut self) {
        let Some(Back { keeping, address }) = self.back.take() else { return };
        // The future that wrote the request has ended, so no other part holds the stream.
        let stream = self.stream.take().and_then(Rc::into_inner);
        let is_whole = self.is_sent && self.input.is_empty();
        if let Some(stream) = stream.filter(|_| is_whole) {
            keeping.give_back(&address, stream);
        }
    }

    /// Puts a piece of output behind that which is not passed on. Most answers are one piece.
    fn put_early(&mut self, piece: Bytes) {
        if self.early.is_empty() {
            self.early = piece;
            return;
        }
        let early = std::mem::take(&mut self.early).try_into_mut();
        let mut joined = early.unwrap_or_else(|shared| BytesMut::from(&shared[..]));
        joined.extend_from_slice(&piece);
        self.early = joined.freeze();
    }

    /// Takes the output that is there to `early`. Returns whether it is all of an answer for
    /// which the program claims this length.
    fn is_whole(&mut self, length: Option<u64>) -> bool {
        // An error among the bytes is met again by the reader of the body.
        while self.early.len() <= PIECE_BYTES
            && let Ok(Some(piece)) = self.decode()
        {
            self.put_early(piece);
        }
        self.ended.is_some() && length.is_none_or(|length| length == self.early.len() as u64)
    }

    /// The rest of the output, if it is there and all of an answer for which the program claims
    /// this length.
    pub(crate) fn whole(&mut self, length: Option<u64>) -> Option<Bytes> {
        if !self.is_whole(length) {
            return None;
        }
        self.give_back();
        Some(std::mem::take(&mut self.early))
    }

    /// The rest of the output as the body of an answer.
    pub(crate) fn into_body(mut self, length: Option<u64>) -> Body {
        if let Some(content) = self.whole(length) {
            return content.into();
        }
        Body::produce(async move |mut out| {
            let mut measured = ClaimedLength::new(length);
            let mut piece = std::mem::take(&mut self.early);
            loop {
                let taken = measured.take(piece);
                if !taken.is_empty() {
                    out.put(taken).await;
                }
                match self.read().await {
                    Ok(Some(next)) => piece = next,
                    Ok(None) => return measured.end().map_err(BodyError::from),
                    Err(OutputCut::Client(error)) => return Err(error),
                    Err(OutputCut::Io(error)) => return Err(BodyError::from(error)),
                    Err(OutputCut::Closed | OutputCut::BadRecord(_)) => {
                        return Err(BodyError::from(io::Error::from(io::ErrorKind::UnexpectedEof)));
                    }
                }
            }
        })
    }

    /// Reads the output to its end, although it is not wanted.
    pub(crate) async fn run_on(&mut self) {
        while let Ok(Some(_)) = self.read().await {}
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        if let (Some(stream), None) = (&self.stream, self.ended) {
            abort(stream);
        }
    }
}

/// Tells the application that the request is given up.
fn abort(stream: &Stream) {
    let mut abort = Vec::with_capacity(record::HEAD_BYTES);
    record::put_abort(REQUEST, &mut abort);
    // If there is no room for it, the end of the connection says the same. A record that was
    // written in part would hide it too.
    let _ = stream.try_write(&abort);
}

/// A request that the application is told to give up when this is dropped.
struct RequestUnderWay<'s>(&'s Stream);

impl Drop for RequestUnderWay<'_> {
    fn drop(&mut self) {
        abort(self.0);
    }
}

/// What the first read of an answer has brought.
pub(crate) enum FirstOutput {
    /// All of the output, which lies there in the room. The application has ended the request.
    Whole(ReadRoom, Range<usize>),
    /// Anything else: how much of the request was written, and what was read, if anything was.
    Other(io::Result<usize>, Bytes),
}

/// Sends a whole request, and reads its answer if that comes as a whole and within `patience`.
///
/// It borrows the stream: a stream that it took would be in the future twice.
///
/// # Errors
/// Why there is no answer.
pub(crate) async fn first_output(
    stream: &Stream,
    request: &[u8],
    patience: Duration,
) -> Result<FirstOutput, ApplicationFailure> {
    let written = stream.try_write(request);
    if !written.as_ref().is_ok_and(|&written| written == request.len()) {
        return Ok(FirstOutput::Other(written, Bytes::new()));
    }
    stream.set_read_deadline(Some(now() + patience));
    let under_way = RequestUnderWay(stream);
    let mut read = None;
    let bytes = stream.read_with(|stream| {
        // Only now, because a request that waits needs no room.
        let room = read.get_or_insert_with(|| {
            let mut room = ReadRoom::empty();
            room.reserve(WHOLE_BYTES);
            room
        });
        stream.try_read_to_spare(room)
    });
    match (bytes.await, read) {
        (Err(error), _) if error.kind() == io::ErrorKind::TimedOut => {
            std::mem::forget(under_way);
            Ok(FirstOutput::Other(written, Bytes::new()))
        }
        (Err(error), _) => Err(ApplicationFailure::Closed(Some(error))),
        (Ok(1..), Some(mut room)) => {
            std::mem::forget(under_way);
            Ok(match record::whole_output(&mut room, REQUEST) {
                Some(output) => FirstOutput::Whole(room, output),
                None => FirstOutput::Other(written, room.into()),
            })
        }
        _ => Err(ApplicationFailure::Closed(None)),
    }
}

/// The future that writes the rest of a whole request, of which the stream has taken at once as
/// much as `written` says, if there is a rest; and whether all is written.
fn rest(
    stream: &Rc<Stream>,
    request: &[u8],
    written: io::Result<usize>,
    limit: Duration,
) -> (Option<RequestFeed>, bool) {
    let written = match written {
        Ok(written) if written == request.len() => return (None, true),
        Ok(written) => written,
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => 0,
        // The application takes no more. It may answer all the same.
        Err(_) => return (None, false),
    };
    let (stream, rest) = (stream.clone(), request[written..].to_vec());
    let rest = async move { write(&stream, &rest, limit).await };
    (Some(Box::pin(rest)), false)
}

async fn write(stream: &Stream, bytes: &[u8], limit: Duration) -> Result<(), FeedError> {
    stream.set_write_deadline(Some(now() + limit));
    stream.write_all(bytes).await.map_err(|_| FeedError::Io)
}

/// Writes a request.
async fn feed(stream: Rc<Stream>, head: Vec<u8>, mut body: Body, limit: Duration) -> Result<(), FeedError> {
    let mut out = head;
    while let Some(piece) = body.next().await.transpose().map_err(FeedError::Client)? {
        record::put_content(kind::STDIN, REQUEST, &piece, &mut out);
        write(&stream, &out, limit).await?;
        out.clear();
    }
    record::put_stream_end(kind::STDIN, REQUEST, &mut out);
    write(&stream, &out, limit).await
}
