//! `GET` requests with heads that their callers have written, and answers that came as a whole.
//!
//! A proxy passes most heads on as lines, and needs no table of their fields. `exchange.rs` looks
//! at what the first reads bring: an answer of the plainest kind stays bytes, and any other is read
//! as those of all requests are.

use crate::answer_body::AnswerBody;
use crate::answer_head::WholeExtent;
use crate::read_room::ReadRoom;
use bytes::{Buf, Bytes};
use http::{Response, StatusCode};

/// A final answer that came as a whole: its status and its content.
///
/// The answer is of HTTP/1.1, its status has content, and `Content-Length` and nothing else framed
/// it. The server keeps the connection open.
#[derive(Clone, Debug)]
pub struct WholeAnswer {
    status: StatusCode,
    content: Bytes,
}

impl WholeAnswer {
    /// The answer that is all of `read`.
    pub(crate) fn new(read: Vec<u8>, extent: &WholeExtent) -> WholeAnswer {
        let mut content = Bytes::from(ReadRoom(read));
        content.advance(extent.head_bytes);
        WholeAnswer { status: extent.status, content }
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.status
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
    /// Any other answer. In a box, because most answers are whole, and a reply is moved often.
    Other(Box<Response<AnswerBody<B>>>),
}
