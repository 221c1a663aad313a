//! [`Multipart`]: a form with files (`multipart/form-data`, RFC 7578), read piece by piece.
//!
//! [`FormSplitter`] does no I/O: it takes bytes, and gives heads of parts, content and ends. It
//! keeps back as many bytes as could begin a delimiter.
//!
//! ```text
//!           delimiter           empty line          delimiter
//! Preamble ───────────▶ Behind ───────────▶ Content ───────────▶ Behind
//!                         │ "--"
//!                         ▼
//!                        End
//! ```

use crate::extract::{Context, FromRequest, has_type, unsupported};
use crate::rejection::Rejection;
use bytes::{Buf, Bytes, BytesMut};
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use memchr::memmem::Finder;
use selvedge_handler::{Body, BodyError, Cause, Request};

/// The longest head of a part.
const HEAD_BYTES_MAX: usize = 8 << 10;

/// The most fields in the head of a part.
const FIELDS_MAX: usize = 16;

/// The longest boundary (RFC 2046 §5.1.1).
const BOUNDARY_BYTES_MAX: usize = 70;

/// A form with files: the last argument of a handler. It is read piece by piece, so it has no limit
/// but that of the [engine](selvedge_http::HandlerLimits).
///
/// # Examples
/// ```
/// use selvedge::web::{Multipart, Rejection, Router, testing::{TestRequest, ask}};
///
/// async fn upload(mut form: Multipart) -> Result<String, Rejection> {
///     let mut told = String::new();
///     while let Some(mut part) = form.next().await? {
///         let (name, mut bytes) = (part.file_name().unwrap_or("?").to_string(), 0);
///         while let Some(piece) = part.next().await? {
///             bytes += piece.len();
///         }
///         told += &format!("{name}: {bytes}\n");
///     }
///     Ok(told)
/// }
///
/// selvedge::run_local(async {
///     let router = Router::new().post("/", upload);
///     let head = "Content-Disposition: form-data; name=\"f\"; filename=\"a.txt\"";
///     let body = format!("--x\r\n{head}\r\n\r\nwarp\r\n--x--\r\n");
///     let call = TestRequest::post("/").body(body);
///     let call = call.header("content-type", "multipart/form-data; boundary=x");
///     assert_eq!(ask(&router, call).await.text(), "a.txt: 4\n");
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[derive(Debug)]
pub struct Multipart {
    body: Body,
    splitter: FormSplitter,
}

/// One part of a form. A part that is not read to its end is passed over.
#[derive(Debug)]
pub struct FormPart<'m> {
    form: &'m mut Multipart,
    fields: HeaderMap,
    name: Option<String>,
    file_name: Option<String>,
    ended: bool,
}

impl<S> FromRequest<S> for Multipart {
    type Rejection = Rejection;

    async fn from_request(request: Request, _: &Context<'_, S>) -> Result<Multipart, Rejection> {
        let (parts, body) = request.into_parts();
        if !has_type(&parts.headers, |name| name.eq_ignore_ascii_case("multipart/form-data")) {
            return Err(unsupported("multipart/form-data"));
        }
        let named = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let boundary = named.and_then(|named| parameter(named, "boundary"));
        let boundary = boundary.filter(|text| !text.is_empty() && text.len() <= BOUNDARY_BYTES_MAX);
        let boundary =
            boundary.ok_or_else(|| Rejection::new(StatusCode::BAD_REQUEST, "the form has no boundary"))?;
        Ok(Multipart { body, splitter: FormSplitter::new(boundary.as_bytes()) })
    }
}

impl Multipart {
    /// The next part; `None` behind the last.
    ///
    /// # Errors
    /// If the body is no form, and those of the body.
    pub async fn next(&mut self) -> Result<Option<FormPart<'_>>, Rejection> {
        loop {
            match self.advance().await? {
                SplitterFound::Head(fields) => {
                    let disposition = fields.get(CONTENT_DISPOSITION).map(|value| value.as_bytes());
                    let disposition = String::from_utf8_lossy(disposition.unwrap_or_default()).into_owned();
                    let name = parameter(&disposition, "name");
                    let file_name = parameter(&disposition, "filename");
                    return Ok(Some(FormPart { form: self, fields, name, file_name, ended: false }));
                }
                SplitterFound::End => return Ok(None),
                // The rest of a part that was not read.
                SplitterFound::Content(_) | SplitterFound::PartEnd | SplitterFound::More => {}
            }
        }
    }

    async fn advance(&mut self) -> Result<SplitterFound, Rejection> {
        loop {
            match self.splitter.find()? {
                SplitterFound::More => match self.body.next().await.transpose()? {
                    Some(piece) => self.splitter.put(&piece),
                    None => return Err(BodyError::new(Cause::Disconnected).into()),
                },
                found => return Ok(found),
            }
        }
    }
}

impl FormPart<'_> {
    /// The name of the field of the form.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The name of the file, as the client gives it. It may be a path or worse: a program must not
    /// open a file by it.
    pub fn file_name(&self) -> Option<&str> {
        self.file_name.as_deref()
    }

    /// The type of the content, as the client gives it.
    pub fn content_type(&self) -> Option<&str> {
        self.fields.get(CONTENT_TYPE)?.to_str().ok()
    }

    /// All fields in the head of the part.
    pub fn fields(&self) -> &HeaderMap {
        &self.fields
    }

    /// The next piece of the content; `None` at its end.
    ///
    /// # Errors
    /// If the body is no form, and those of the body.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Rejection> {
        // Behind the end the splitter stands before the next head, which is not this part's.
        if self.ended {
            return Ok(None);
        }
        match self.form.advance().await? {
            SplitterFound::Content(piece) => Ok(Some(piece)),
            _ => {
                self.ended = true;
                Ok(None)
            }
        }
    }

    /// The content to its end, of at most `bytes_max` bytes.
    ///
    /// # Errors
    /// 413 if the content is longer, and those of [`next`](Self::next).
    pub async fn read_all(mut self, bytes_max: usize) -> Result<Bytes, Rejection> {
        let mut all = BytesMut::new();
        while let Some(piece) = self.next().await? {
            if all.len() + piece.len() > bytes_max {
                return Err(BodyError::new(Cause::TooLarge).into());
            }
            all.extend_from_slice(&piece);
        }
        Ok(all.freeze())
    }

    /// The content as text, of at most `bytes_max` bytes.
    ///
    /// # Errors
    /// 400 if it is not UTF-8, and those of [`read_all`](Self::read_all).
    pub async fn text(self, bytes_max: usize) -> Result<String, Rejection> {
        let bytes = self.read_all(bytes_max).await?;
        String::from_utf8(bytes.into()).map_err(|_| malformed("a field is not UTF-8"))
    }
}

fn malformed(what: &str) -> Rejection {
    Rejection::new(StatusCode::BAD_REQUEST, format!("the form is malformed: {what}"))
}

/// The parameter `name` of a field value such as `form-data; name="a"`.
fn parameter(value: &str, name: &str) -> Option<String> {
    let mut rest = value.split_once(';')?.1;
    loop {
        let (key, behind) = rest.split_once('=')?;
        let (text, next) = match behind.trim_start().strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => {
                let (text, next) = behind.split_once(';').unwrap_or((behind, ""));
                (text.trim().to_string(), next)
            }
        };
        if key.trim().eq_ignore_ascii_case(name) {
            return Some(text);
        }
        rest = next;
    }
}

/// The text up to the closing quote, and what follows the `;` behind it.
fn unquoted(quoted: &str) -> Option<(String, &str)> {
    let (mut text, mut chars) = (String::new(), quoted.char_indices());
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => {
                let behind = &quoted[at + 1..];
                return Some((text, behind.split_once(';').map_or("", |(_, next)| next)));
            }
            // Browsers write `%22` for a quote, and no backslash before others.
            '\\' if quoted[at + 1..].starts_with(['"', '\\']) => text.extend(chars.next().map(|(_, c)| c)),
            char => text.push(char),
        }
    }
    None
}

/// Splits a body at its delimiters.
#[derive(Debug)]
pub(crate) struct FormSplitter {
    /// CR, LF, `--` and the boundary.
    delimiter: Finder<'static>,
    /// The end of the last field line, and the empty line behind it.
    head_end: Finder<'static>,
    buffer: BytesMut,
    state: SplitState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SplitState {
    /// Before the first delimiter.
    Preamble,
    /// Behind a delimiter, before the head of a part or the end.
    Behind,
    Content,
    End,
}

/// What a splitter found.
#[derive(Debug)]
pub(crate) enum SplitterFound {
    /// It needs more bytes.
    More,
    /// The head of a part.
    Head(HeaderMap),
    /// Content of the part, never empty.
    Content(Bytes),
    /// The end of the part.
    PartEnd,
    /// The end of the form.
    End,
}

impl FormSplitter {
    pub(crate) fn new(boundary: &[u8]) -> FormSplitter {
        let delimiter = [b"\r\n--", boundary].concat();
        // The first delimiter needs no line end before it.
        let buffer = BytesMut::from(&b"\r\n"[..]);
        FormSplitter {
            delimiter: Finder::new(&delimiter).into_owned(),
            head_end: Finder::new(b"\r\n\r\n"),
            buffer,
            state: SplitState::Preamble,
        }
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// What comes next.
    ///
    /// # Errors
    /// 400 if the body is no form.
    pub(crate) fn find(&mut self) -> Result<SplitterFound, Rejection> {
        loop {
            match self.state {
                SplitState::End => return Ok(SplitterFound::End),
                SplitState::Preamble | SplitState::Content => {
                    let in_part = self.state == SplitState::Content;
                    let len = self.delimiter.needle().len();
                    match self.delimiter.find(&self.buffer) {
                        Some(0) => {
                            self.buffer.advance(len);
                            self.state = SplitState::Behind;
                            if in_part {
                                return Ok(SplitterFound::PartEnd);
                            }
                        }
                        Some(at) if in_part => {
                            return Ok(SplitterFound::Content(self.buffer.split_to(at).freeze()));
                        }
                        Some(at) => self.buffer.advance(at),
                        None => {
                            let free = self.buffer.len().saturating_sub(len - 1);
                            match (free, in_part) {
                                (0, _) => return Ok(SplitterFound::More),
                                (_, true) => {
                                    return Ok(SplitterFound::Content(self.buffer.split_to(free).freeze()));
                                }
                                (_, false) => self.buffer.advance(free),
                            }
                        }
                    }
                }
                SplitState::Behind => return self.behind(),
            }
        }
    }

    /// Reads what stands behind a delimiter.
    fn behind(&mut self) -> Result<SplitterFound, Rejection> {
        if self.buffer.len() < 2 {
            return Ok(SplitterFound::More);
        }
        if self.buffer.starts_with(b"--") {
            self.state = SplitState::End;
            return Ok(SplitterFound::End);
        }
        // Blanks may stand behind the boundary (RFC 2046 §5.1.1).
        let blanks = self.buffer.iter().take_while(|byte| b" \t".contains(byte)).count();
        let line_end = &self.buffer[blanks..];
        if line_end.len() >= 2 && !line_end.starts_with(b"\r\n") || blanks > HEAD_BYTES_MAX {
            return Err(malformed("a delimiter"));
        }
        let Some(lines) = line_end.get(2..) else { return Ok(SplitterFound::More) };
        // The head is parsed once, when it is whole: a client may send it byte by byte.
        let len = match self.head_end.find(lines) {
            _ if lines.starts_with(b"\r\n") => "\r\n".len(),
            Some(at) => at + self.head_end.needle().len(),
            None if lines.len() <= HEAD_BYTES_MAX => return Ok(SplitterFound::More),
            None => return Err(malformed("a long head")),
        };
        if len > HEAD_BYTES_MAX {
            return Err(malformed("a long head"));
        }
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        match httparse::parse_headers(&lines[..len], &mut fields) {
            Ok(httparse::Status::Complete((parsed, fields))) if parsed == len => {
                let mut map = HeaderMap::new();
                for field in fields {
                    let name = HeaderName::from_bytes(field.name.as_bytes());
                    let value = HeaderValue::from_bytes(field.value);
                    let (Ok(name), Ok(value)) = (name, value) else { return Err(malformed("a head")) };
                    map.append(name, value);
                }
                self.buffer.advance(blanks + "\r\n".len() + len);
                self.state = SplitState::Content;
                Ok(SplitterFound::Head(map))
            }
            // A bare LF ends no line, and no head.
            _ => Err(malformed("a head")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parameters_of_a_disposition() {
        let value = r#"form-data; name="a; b"; filename="c\"d.txt"; other=x"#;
        let of = |name| parameter(value, name);
        assert_eq!(of("name").unwrap(), "a; b");
        assert_eq!(of("filename").unwrap(), "c\"d.txt");
        assert_eq!(of("other").unwrap(), "x");
        assert_eq!(of("missing"), None);
        assert_eq!(parameter(r#"form-data; name="C:\a\b""#, "name").unwrap(), r"C:\a\b");
        assert_eq!(parameter(r#"form-data; name="open"#, "name"), None);
    }

    /// The names and contents of the parts, as a splitter finds them in pieces that end at `cuts`.
    fn parts(body: &[u8], cuts: &[usize]) -> Result<Vec<(String, Vec<u8>)>, Rejection> {
        let mut splitter = FormSplitter::new(b"XX");
        let (mut parts, mut start) = (Vec::new(), 0);
        let mut cuts = cuts.iter().copied().chain([body.len()]);
        loop {
            match splitter.find()? {
                SplitterFound::More => match cuts.next() {
                    Some(cut) => {
                        splitter.put(&body[start..cut.max(start)]);
                        start = cut.max(start);
                    }
                    None => return Err(malformed("its end")),
                },
                SplitterFound::Head(fields) => {
                    let disposition = fields.get(CONTENT_DISPOSITION).map(|value| value.to_str().unwrap());
                    let name = disposition.and_then(|value| parameter(value, "name"));
                    parts.push((name.unwrap_or_default(), Vec::new()));
                }
                SplitterFound::Content(piece) => parts.last_mut().unwrap().1.extend_from_slice(&piece),
                SplitterFound::PartEnd => {}
                SplitterFound::End => return Ok(parts),
            }
        }
    }

    fn form(parts: &[(String, Vec<u8>)]) -> Vec<u8> {
        let mut body = b"a preamble\r\n".to_vec();
        for (name, content) in parts {
            let head = format!("--XX \r\nContent-Disposition: form-data; name={name}\r\n\r\n");
            body.extend_from_slice(head.as_bytes());
            body.extend_from_slice(content);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"--XX--\r\nan epilogue");
        body
    }

    #[test]
    fn bodies_that_are_no_forms() {
        for body in
            ["", "--XX", "--XXy\r\n\r\n", "--XX\r\nno field\r\n\r\n", "--XX\r\nA: b\r\n\r\ncontent\r\n--X"]
        {
            assert!(parts(body.as_bytes(), &[]).is_err(), "{body:?}");
        }
        let long = format!("--XX\r\nA: {}\r\n\r\n", "x".repeat(HEAD_BYTES_MAX));
        assert!(parts(long.as_bytes(), &[]).is_err());
    }

    #[test]
    fn a_head_is_parsed_when_it_is_whole() {
        let mut splitter = FormSplitter::new(b"XX");
        splitter.put(b"--XX\r\nA b: a field that is none\r\n");
        assert!(matches!(splitter.find(), Ok(SplitterFound::More)));
        splitter.put(b"\r\n");
        assert!(splitter.find().is_err());
        // A bare LF ends no line.
        assert!(parts(b"--XX\r\nA: b\n\ncontent\r\n--XX--", &[]).is_err());
        assert!(parts(b"--XX\r\nA: b\n\ncontent\r\n\r\n--XX--", &[]).is_err());
        assert_eq!(parts(b"--XX\r\n\r\na\r\n--XX--", &[]).unwrap(), [("".to_string(), b"a".to_vec())]);
    }

    proptest! {
        #[test]
        fn parts_come_out_as_they_went_in(
            sent in prop::collection::vec(("[a-z]{1,5}", prop::collection::vec(prop::sample::select(b"\r\n-Xab".to_vec()), 0..40)), 0..5),
            cuts in prop::collection::vec(0usize..400, 0..8),
        ) {
            prop_assume!(sent.iter().all(|(_, content)| {
                !content.windows(6).any(|part| part == b"\r\n--XX")
            }));
            let body = form(&sent);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(body.len())).collect();
            cuts.sort_unstable();
            prop_assert_eq!(parts(&body, &cuts).unwrap(), sent);
        }
    }
}
