//! The replies on a connection: where each ends, and whether it is the reply that was asked for.
//!
//! Only what delimits replies is read: the status, `Content-Length` and `Connection`. A head that
//! is byte for byte the last one seen for that page (all of them between two changes of `Date`) is
//! not parsed at all.
//!
//! `client.rs` passes each piece of input to [`Replies::receive`]. No I/O is done here.

/// The largest head that is accepted.
const HEAD_MAX: usize = 64 * 1024;

/// What is known of a page from its replies so far.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The last head, and what it says.
    head: Vec<u8>,
    reply: Reply,
    /// The length of the body in the first reply, which all others must have.
    body_bytes: Option<u64>,
}

/// What a head says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reply {
    status: u16,
    body_bytes: u64,
    /// The server closes the connection after it.
    close: bool,
}

/// What is wrong with a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyError {
    /// It is no HTTP/1.1 reply with a length, or its head never ends.
    Malformed,
    /// Its status is not 200.
    Status(u16),
    /// Its body is not as long as that of the page's first reply.
    Length {
        /// How long it is.
        got: u64,
        /// How long the first was.
        first: u64,
    },
    /// It answers no request.
    Unasked,
}

impl std::error::Error for ReplyError {}

impl std::fmt::Display for ReplyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReplyError::Malformed => f.write_str("a reply is no HTTP/1.1 reply with a Content-Length"),
            ReplyError::Status(status) => write!(f, "a reply has status {status}"),
            ReplyError::Length { got, first } => {
                write!(f, "a reply has {got} bytes of body, the page's first had {first}")
            }
            ReplyError::Unasked => f.write_str("a reply came to no request"),
        }
    }
}

/// The receiving half of a conversation: the requests that are under way, and how far the reply to
/// the first of them has come.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    /// The pages asked for, in order; those before `answered` have been answered.
    asked: Vec<u32>,
    answered: usize,
    /// The beginning of a head of which the end has not come yet.
    partial: Vec<u8>,
    /// The reply of which the body is being received, and what is missing of it.
    body: Option<(Reply, u64)>,
    close: bool,
}

/// The replies that were completed by a piece of input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Completed {
    pub(crate) replies: u64,
    pub(crate) body_bytes: u64,
}

impl Replies {
    /// Starts a batch of requests; the last one must be complete.
    pub(crate) fn ask(&mut self, pages: impl Iterator<Item = u32>) {
        debug_assert!(self.all_answered(), "a batch is asked for when the last one is answered");
        self.answered = 0;
        self.asked.clear();
        self.asked.extend(pages);
    }

    /// The pages asked for in this batch.
    pub(crate) fn pages(&self) -> impl Iterator<Item = u32> {
        self.asked.iter().copied()
    }

    /// Whether nothing of this batch's replies has come.
    pub(crate) fn is_fresh(&self) -> bool {
        self.answered == 0 && self.body.is_none() && self.partial.is_empty()
    }

    /// Whether every request has its reply.
    pub(crate) fn all_answered(&self) -> bool {
        self.answered == self.asked.len()
    }

    /// Whether the server has said that it closes the connection after a reply that is complete.
    pub(crate) fn is_last(&self) -> bool {
        self.close
    }

    /// Takes what has been received.
    ///
    /// # Errors
    /// The first fault; the conversation cannot go on after it.
    #[inline]
    pub(crate) fn receive(&mut self, mut input: &[u8], known: &mut [Known]) -> Result<Completed, ReplyError> {
        let mut completed = Completed::default();
        while !input.is_empty() {
            let (reply, missing) = match self.body.take() {
                Some(body) => body,
                None => {
                    let Some(&page) = self.asked.get(self.answered) else { return Err(ReplyError::Unasked) };
                    let Some((reply, taken)) = self.head(input, &mut known[page as usize])? else {
                        return Ok(completed);
                    };
                    input = &input[taken..];
                    (reply, reply.body_bytes)
                }
            };
            let here = missing.min(input.len() as u64);
            input = &input[here as usize..];
            if here < missing {
                self.body = Some((reply, missing - here));
                return Ok(completed);
            }
            completed.replies += 1;
            completed.body_bytes += reply.body_bytes;
            self.answered += 1;
            if reply.close {
                self.close = true;
                return Ok(completed);
            }
        }
        Ok(completed)
    }

    /// Takes a head from the input: what it says, and how much of the input it took. `None` when
    /// its end is still to come.
    #[inline]
    fn head(&mut self, input: &[u8], known: &mut Known) -> Result<Option<(Reply, usize)>, ReplyError> {
        if self.partial.is_empty() && !known.head.is_empty() && input.starts_with(&known.head) {
            return Ok(Some((known.reply, known.head.len())));
        }
        self.unknown_head(input, known)
    }

    #[cold]
    fn unknown_head(
        &mut self,
        input: &[u8],
        known: &mut Known,
    ) -> Result<Option<(Reply, usize)>, ReplyError> {
        let before = self.partial.len();
        self.partial.extend_from_slice(input);
        // Three bytes of the end may have come before.
        let from = before.saturating_sub(3);
        let Some(end) = self.partial[from..].windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
            return if self.partial.len() > HEAD_MAX { Err(ReplyError::Malformed) } else { Ok(None) };
        };
        let end = from + end + 4;
        let reply = parse(&self.partial[..end]).ok_or(ReplyError::Malformed)?;
        if reply.status != 200 {
            return Err(ReplyError::Status(reply.status));
        }
        let first = *known.body_bytes.get_or_insert(reply.body_bytes);
        if first != reply.body_bytes {
            return Err(ReplyError::Length { got: reply.body_bytes, first });
        }
        known.head.clear();
        known.head.extend_from_slice(&self.partial[..end]);
        known.reply = reply;
        self.partial.clear();
        Ok(Some((reply, end - before)))
    }
}

/// Reads a head. `None` if it is none, or does not say how long the body is.
fn parse(head: &[u8]) -> Option<Reply> {
    let text = std::str::from_utf8(head).ok()?;
    let mut lines = text.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.1 ")?;
    let status: u16 = status.get(..3)?.parse().ok()?;
    let mut body_bytes = None;
    let mut close = false;
    for line in lines.take_while(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':')?;
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            let value = value.parse().ok()?;
            if body_bytes.replace(value).is_some_and(|first| first != value) {
                return None;
            }
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            return None;
        } else if name.eq_ignore_ascii_case("connection") {
            close |= value.split(',').any(|option| option.trim().eq_ignore_ascii_case("close"));
        }
    }
    Some(Reply { status, body_bytes: body_bytes?, close })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "HTTP/1.1 200 OK\r\nDate: today\r\nContent-Length: 5\r\n\r\n";

    fn replies(text: &str, requests: u32) -> Result<(Completed, Replies), ReplyError> {
        let mut replies = Replies::default();
        replies.ask((0..requests).map(|_| 0));
        let completed = replies.receive(text.as_bytes(), &mut [Known::default()])?;
        Ok((completed, replies))
    }

    #[test]
    fn every_split_of_a_stream_gives_the_same_replies() {
        let stream = format!("{HEAD}hello{HEAD}again{}", HEAD.replace("today", "tomorrow") + "third");
        for first in 0..=stream.len() {
            for second in first..=stream.len() {
                let mut replies = Replies::default();
                replies.ask([0, 0, 0].into_iter());
                let mut known = [Known::default()];
                let mut sum = Completed::default();
                for piece in [&stream[..first], &stream[first..second], &stream[second..]] {
                    let completed = replies.receive(piece.as_bytes(), &mut known).unwrap();
                    sum.replies += completed.replies;
                    sum.body_bytes += completed.body_bytes;
                }
                assert_eq!(sum, Completed { replies: 3, body_bytes: 15 }, "{first} {second}");
                assert!(replies.all_answered() && !replies.is_last());
            }
        }
    }

    #[test]
    fn a_body_of_another_length_is_a_fault() {
        let other = HEAD.replace('5', "6");
        let error = replies(&format!("{HEAD}hello{other}hello!"), 2).unwrap_err();
        assert_eq!(error, ReplyError::Length { got: 6, first: 5 });
    }

    #[test]
    fn faults() {
        assert_eq!(replies(&HEAD.replace("200", "404"), 1).unwrap_err(), ReplyError::Status(404));
        assert_eq!(replies(&format!("{HEAD}hello!"), 1).unwrap_err(), ReplyError::Unasked);
        for malformed in [
            "HTTP/1.1 200 OK\r\n\r\n".to_owned(),
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n".to_owned(),
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n".to_owned(),
            "SSH-2.0-OpenSSH\r\n\r\n".to_owned(),
            "x".repeat(HEAD_MAX + 1),
        ] {
            assert_eq!(replies(&malformed, 1).unwrap_err(), ReplyError::Malformed, "{malformed:.40}");
        }
    }

    #[test]
    fn a_server_may_close_after_a_reply() {
        let head = HEAD.replace("Date: today", "Connection: keep-alive, Close");
        let (completed, replies) = replies(&format!("{head}hello"), 2).unwrap();
        assert_eq!(completed.replies, 1);
        assert!(replies.is_last() && !replies.all_answered());
    }
}
