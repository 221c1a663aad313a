//! The short way through [`Proxy`](crate::Proxy): a `GET` request and its answer go on as lines.
//!
//! Most requests that a proxy sees have no body, and most of their answers come as a whole. Their
//! heads are read once, line by line, and written again without the lines that are about one
//! connection. Whatever is unusual takes the long way, `proxy.rs`: a request with an upgrade, with
//! trailers, with options of its own in `Connection`; an answer in pieces. A test sends the same
//! requests both ways.

use crate::forwarding::{Hop, LineFate, fate_of_line, is_of_earlier_proxies, put_line};
use selvedge_client::{FieldLine, TakeFields, WholeAnswer};
use selvedge_handler::{PlainAnswer, PlainRequest};

/// Room for what a proxy adds to a head.
const ADDED_BYTES: usize = 384;

/// Room for the lines of an answer.
const LINES_BYTES: usize = 640;

/// The head for the server; `None` if the request takes the long way. `host` is the value of the
/// field `Host`, and the client asked for that of the request.
pub(crate) fn outgoing_head(request: &PlainRequest<'_>, hop: &Hop, host: &[u8]) -> Option<Vec<u8>> {
    if hop.trusts || request.path_and_query().is_none() {
        return None;
    }
    let mut head = Vec::with_capacity(request.target().len() + request.lines().len() + ADDED_BYTES);
    head.extend_from_slice(b"GET ");
    head.extend_from_slice(request.target());
    head.extend_from_slice(b" HTTP/1.1\r\nhost: ");
    head.extend_from_slice(host);
    head.extend_from_slice(b"\r\n");
    for (name, value) in request.fields() {
        if name.eq_ignore_ascii_case(b"host") || is_of_earlier_proxies(name) {
            continue;
        }
        match fate_of_line(name, value) {
            LineFate::GoesOn => put_line(request.lines(), name, value, &mut head),
            LineFate::StaysBehind => {}
            LineFate::Unclear => return None,
        }
    }
    hop.put_lines(request.peer(), request.host(), &mut head);
    head.extend_from_slice(b"\r\n");
    Some(head)
}

/// The lines of an answer for the client. What frames it, and what is about the connection, stays
/// behind.
#[derive(Default)]
pub(crate) struct PassedLines {
    lines: Vec<u8>,
    names_server: bool,
    names_date: bool,
}

impl TakeFields for PassedLines {
    fn begin(&mut self) {
        self.lines.clear();
        (self.names_server, self.names_date) = (false, false);
    }

    fn take(&mut self, field: &FieldLine<'_>) {
        let FieldLine { name, value, line } = *field;
        // The client has seen that no line is unclear, but for `TE`, which no answer has.
        if fate_of_line(name, value) != LineFate::GoesOn {
            return;
        }
        match name.len() {
            4 => self.names_date |= name.eq_ignore_ascii_case(b"date"),
            6 => self.names_server |= name.eq_ignore_ascii_case(b"server"),
            _ => {}
        }
        if self.lines.capacity() == 0 {
            self.lines.reserve(LINES_BYTES);
        }
        put_line(line, name, value, &mut self.lines);
    }
}

impl PassedLines {
    /// The answer that has these lines.
    pub(crate) fn answer(mut self, answer: WholeAnswer, hop: &Hop) -> PlainAnswer {
        hop.put_via(&mut self.lines);
        let PassedLines { lines, names_server, names_date } = self;
        let status = answer.status();
        let (lines, content) = (lines.into(), answer.into_content().into());
        PlainAnswer { status, lines, names_server, names_date, content }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_an_answer_are_its_own() {
        let take = |lines: &mut PassedLines, line: &'static [u8]| {
            let (name, value) = line.split_at(line.iter().position(|&byte| byte == b':').unwrap());
            lines.take(&FieldLine { name, value: value[1..].trim_ascii(), line });
        };
        let mut lines = PassedLines::default();
        lines.begin();
        take(&mut lines, b"Server: first\r\n");
        take(&mut lines, b"Date: never\r\n");
        lines.begin();
        take(&mut lines, b"X:\r\n");
        take(&mut lines, b"Y: z\r\n");
        take(&mut lines, b"Connection: close\r\n");
        assert_eq!(lines.lines, b"X: \r\nY: z\r\n");
        assert!(!lines.names_server && !lines.names_date);
    }
}
