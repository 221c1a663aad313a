//! A server without sockets: a directory in memory, bytes in, bytes out. It does in one function
//! what a connection thread does, so that a test sees whole conversations.

use selvedge_http::body::Decoder;
use selvedge_http::conditional::ETag;
use selvedge_http::date::Clock;
use selvedge_http::error_page::{self, Extra};
use selvedge_http::representation::{Content, Representation};
use selvedge_http::request::{self, Limits, Method, Request};
use selvedge_http::response::Persistence;
use selvedge_http::status::Status;
use selvedge_http::{mime, target};

/// 1994-11-06T08:49:37Z
pub(crate) const MODIFIED: u64 = 784_111_777;
pub(crate) const NOW: u64 = MODIFIED + 1000;

/// One connection to the site.
pub(crate) struct Connection {
    files: Vec<(&'static [u8], Vec<u8>)>,
    input: Vec<u8>,
    body: Option<Decoder>,
    pub(crate) output: Vec<u8>,
    pub(crate) statuses: Vec<u16>,
    pub(crate) closed: bool,
    limits: Limits,
    clock: Clock,
}

impl Connection {
    pub(crate) fn new() -> Connection {
        Connection {
            files: vec![
                (b"ten.txt", b"0123456789".to_vec()),
                (b"big.bin", (0..16384u32).map(|n| n as u8).collect()),
                (b"empty.txt", Vec::new()),
                (b"index.html", b"<h1>Site</h1>".to_vec()),
                (b"docs/index.html", b"<h1>Docs</h1>".to_vec()),
                (b".well-known/key", b"key".to_vec()),
                (b".secret", b"secret".to_vec()),
            ],
            input: Vec::new(),
            body: None,
            output: Vec::new(),
            statuses: Vec::new(),
            closed: false,
            limits: Limits { head_bytes: 1024, target_bytes: 256, body_bytes: 64 },
            clock: Clock::at(NOW),
        }
    }

    /// What arrives in one read.
    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        let input = std::mem::take(&mut self.input);
        let mut rest = &input[..];
        while !self.closed {
            if let Some(body) = &mut self.body {
                match body.decode(rest) {
                    Ok(piece) => {
                        rest = &rest[piece.consumed..];
                        if piece.done {
                            self.body = None;
                        } else if rest.is_empty() {
                            break;
                        }
                    }
                    Err(_) => self.closed = true,
                }
                continue;
            }
            match request::parse(rest, &self.limits) {
                Ok(None) => break,
                Ok(Some(request)) => {
                    rest = &rest[request.len..];
                    self.reply(&request);
                }
                Err(status) => {
                    self.page(status, Extra::None, request::first_method(rest), Persistence::Close);
                    self.closed = true;
                }
            }
        }
        self.input = rest.to_vec();
    }

    fn reply(&mut self, request: &Request<'_>) {
        let body = Decoder::new(request.framing, self.limits.body_bytes);
        let persistence = Persistence::of(request, body.is_ok());
        self.closed = !persistence.keeps();
        let method = request.method;
        if let Err(status) = body {
            return self.page(status, Extra::None, method, persistence);
        }
        self.body = body.ok().filter(|body| !body.is_done());
        if let Some(status) = error_page::instead_of_file(request) {
            return self.page(status, Extra::None, method, persistence);
        }
        let mut name = Vec::new();
        if let Err(status) = target::resolve(request.path, &mut name) {
            return self.page(status, Extra::None, method, persistence);
        }
        if self.files.iter().any(|(file, _)| file.starts_with(&[&name[..], b"/"].concat()))
            && !name.is_empty()
        {
            let mut location = Vec::new();
            target::directory_location(&name, request.query, &mut location);
            return self.page(Status::MOVED_PERMANENTLY, Extra::Location(&location), method, persistence);
        }
        if name.is_empty() || name.ends_with(b"/") {
            name.extend_from_slice(b"index.html");
        }
        let Some((name, content)) = self.files.iter().find(|(file, _)| **file == name[..]) else {
            return self.page(Status::NOT_FOUND, Extra::None, method, persistence);
        };
        let len = content.len() as u64;
        let etag = ETag::of_file(7, (MODIFIED as i64, 5), len, NOW);
        let entry = Representation::new(mime::by_name(name), len, MODIFIED as i64, etag, NOW);
        let before = self.output.len();
        let answer = entry.answer(request, persistence, &self.clock, &mut self.output);
        match answer.content {
            Content::Nothing => {}
            Content::Span(span) => {
                self.output.extend_from_slice(&content[span.start as usize..span.end as usize]);
            }
            Content::Parts(parts) => {
                for (index, span) in parts.spans().iter().enumerate() {
                    parts.put_part_head(index, &mut self.output);
                    self.output.extend_from_slice(&content[span.start as usize..span.end as usize]);
                }
                parts.put_end(&mut self.output);
            }
        }
        let reply = &self.output[before..];
        let head = reply.windows(4).position(|end| end == b"\r\n\r\n").expect("a whole head") + 4;
        assert_eq!(reply.len() - head, answer.content_bytes as usize, "the log's figure is the bytes sent");
        self.statuses.push(answer.status.code());
    }

    fn page(&mut self, status: Status, extra: Extra<'_>, method: Method, persistence: Persistence) {
        error_page::put(status, extra, method, persistence, &self.clock, &mut self.output);
        self.statuses.push(status.code());
    }
}

/// Everything the site sends for `input`, received at once.
#[allow(dead_code)]
pub(crate) fn conversation(input: &[u8]) -> Connection {
    let mut connection = Connection::new();
    connection.receive(input);
    connection
}
