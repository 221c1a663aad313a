//! `GET` requests with heads that their callers have written, and answers that came as a whole.
//!
//! A proxy passes most heads on as lines, and needs no table of their fields. `exchange.rs` looks
//! at what the first reads bring: an answer of the plainest kind stays bytes, and any other is read
//! as those of all requests are.

use crate::answer_body::AnswerBody;
use crate::answer_head::WholeExtent;
use crate::read_room::ReadRoom;
use bytes::Bytes;
use http::{Response, StatusCode};
use selvedge_http::FieldLines;

/// A final answer that came as a whole: the lines of its head, checked, and its content.
///
/// The answer is of HTTP/1.1, its status has content, and `Content-Length` and nothing else framed
/// it. The server keeps the connection open.
#[derive(Clone, Debug)]
pub struct WholeAnswer {
    status: StatusCode,
    lines: Bytes,
    content: Bytes,
}

impl WholeAnswer {
    /// The answer that is all of `read`.
    pub(crate) fn new(read: Vec<u8>, extent: &WholeExtent) -> WholeAnswer {
        let mut lines = Bytes::from_owner(ReadRoom(read));
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

/// The answer to a request of [`Client::get_plain`](crate::Client::get_plain).
#[derive(Debug)]
pub enum PlainReply<B> {
    /// All of it came at once.
    Whole(WholeAnswer),
    /// Any other answer.
    Other(Response<AnswerBody<B>>),
}
