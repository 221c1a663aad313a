//! `GET` requests whose heads their callers have written, and answers that came as a whole.
//!
//! A proxy passes most heads on as lines, and needs no table of their fields. `exchange.rs` looks
//! at what the first reads bring: an answer of the plainest kind stays bytes, and any other is read
//! as those of all requests are.

use crate::address::Address;
use crate::answer_body::AnswerBody;
use crate::answer_head::WholeExtent;
use crate::client::Client;
use crate::error::Error;
use crate::exchange::attempt_plain;
use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use http_body::Body;
use selvedge_http::FieldLines;
use std::error::Error as StdError;

/// A final answer that came as a whole: the lines of its head, checked, and its content.
///
/// The answer is of HTTP/1.1, its status is one whose answer has content, and `Content-Length` and
/// nothing else framed it. The server keeps the connection open.
#[derive(Clone, Debug)]
pub struct WholeAnswer {
    status: StatusCode,
    lines: Bytes,
    content: Bytes,
}

impl WholeAnswer {
    /// The answer that is all of `read`.
    pub(crate) fn new(read: Vec<u8>, extent: &WholeExtent) -> WholeAnswer {
        let mut lines = Bytes::from(read);
        let content = lines.split_off(extent.head_bytes);
        WholeAnswer { status: extent.status, lines: lines.split_off(extent.line_bytes), content }
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The fields in their order.
    pub fn fields(&self) -> FieldLines<'_> {
        FieldLines::new(&self.lines)
    }

    /// The lines that have the fields, and the empty line behind them.
    pub fn lines(&self) -> &[u8] {
        &self.lines
    }

    /// The content.
    pub fn into_content(self) -> Bytes {
        self.content
    }
}

/// The answer to a request of [`Client::get_plain`].
#[derive(Debug)]
pub enum PlainReply<B> {
    /// All of it came at once.
    Whole(WholeAnswer),
    /// Any other answer.
    Other(Response<AnswerBody<B>>),
}

impl Client {
    /// Sends a `GET` request without a body to this server. `head` is the head with the empty line
    /// at its end, of HTTP/1.1, as the caller has written it; it must ask for no upgrade. `inform`
    /// is called with the status and the fields of each interim answer.
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
    ) -> Result<PlainReply<B>, Error>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn StdError + Send + Sync>>,
    {
        let shared = self.shared();
        if let Some(stream) = shared.pool.take(address) {
            match attempt_plain(shared, address, stream, head.to_vec(), &inform).await {
                Err(error) if error.is_unanswered() && !error.is_timeout() => {}
                sent => return sent,
            }
        }
        let stream = address.connect(shared.limits.connect).await?;
        attempt_plain(shared, address, stream, head.to_vec(), &inform).await
    }
}
