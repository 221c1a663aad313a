//! The framing of a request body: where it ends, and which bytes of it are content.
//!
//! The connection gives the bytes that it has read to a [`Decoder`], in pieces of any size. The
//! decoder returns the content as slices of that input, and has no buffer of its own. A server that
//! ignores a body drops the slices.
//!
//! The decoder reads chunked coding (RFC 9112 §7.1) strictly: `1*16HEXDIG`, lines end in CRLF,
//! white space only around the `;` and the `=` of an extension, no control bytes. It checks the
//! form of extensions (a token, or a token with a token or a quoted string), and drops them. It
//! checks the form of trailer fields too, and returns them as slices of the input.
//!
//! ```text
//!            digit            CR            LF, size > 0      size bytes        CR      LF
//!   Size ───────────▶ Size ───────▶ SizeLf ───────────▶ Data ───────────▶ DataCr ─▶ DataLf ─▶ Size
//!    │ ";" / SP                        │ LF, size = 0
//!    ▼                                 ▼         tchar           ":"         CR         LF
//!   extensions                     Trailer ───────────▶ Name ───────▶ Value ──▶ ValueLf ─▶ Trailer
//!    │ CR                              │ CR
//!    ▼                                 ▼          LF
//!   SizeLf                           EndLf ───────────▶ Done
//!
//!   extensions, with SP in each state but within words:
//!         ";"        tchar            "="            tchar
//!   Pad ───▶ Extension ───▶ ExtensionName ───▶ ExtensionValue ───▶ ExtensionToken ─";"─▶ Extension
//!                               │ ";"                 │ DQUOTE          DQUOTE
//!                               ▼                     ▼
//!                           Extension               Quoted ───────────▶ QuotedEnd ─";"─▶ Extension
//! ```

use crate::status::Status;

/// How the length of a request body is known (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// `Content-Length` bytes.
    Length(u64),
    /// Chunks until one of size 0.
    Chunked,
}

impl Framing {
    /// Whether there is, or may be, a byte of content.
    pub fn has_content(self) -> bool {
        !matches!(self, Framing::None | Framing::Length(0))
    }
}

/// The most bytes that the chunk extensions and trailer fields of one body may take together. A
/// body with more of them is refused with 431.
pub const OVERHEAD_BYTES_MAX: u32 = 16 << 10;

/// Decodes one body.
#[derive(Clone, Debug)]
pub struct Decoder {
    state: FramingState,
    /// Content bytes of this body, or of the chunk, that are still to come.
    left: u64,
    /// The most content bytes that further chunks may have.
    allowance: u64,
    overhead: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FramingState {
    Length,
    /// In the digits of a chunk size. The number says how many digits have been read.
    Size(u8),
    /// In white space before the `;` of an extension.
    Pad,
    /// After that `;`, before the extension's name.
    Extension,
    ExtensionName,
    /// In white space after the name.
    NameEnd,
    /// After the `=`, before the extension's value.
    ExtensionValue,
    ExtensionToken,
    Quoted,
    /// After the `\` in a quoted string.
    Escaped,
    /// After the closing quote.
    QuotedEnd,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    Trailer,
    Name,
    Value,
    ValueLf,
    EndLf,
    Done,
}

impl FramingState {
    /// Whether the byte that comes next belongs to the trailer section.
    fn is_trailer(self) -> bool {
        use FramingState::{EndLf, Name, Trailer, Value, ValueLf};
        matches!(self, Trailer | Name | Value | ValueLf | EndLf)
    }

    /// Whether the byte that comes next belongs to an extension or a trailer field, and counts
    /// against [`OVERHEAD_BYTES_MAX`].
    fn is_overhead(self) -> bool {
        use FramingState::{
            Escaped, Extension, ExtensionName, ExtensionToken, ExtensionValue, Name, NameEnd, Pad, Quoted,
            QuotedEnd, Value,
        };
        matches!(
            self,
            Pad | Extension
                | ExtensionName
                | NameEnd
                | ExtensionValue
                | ExtensionToken
                | Quoted
                | Escaped
                | QuotedEnd
                | Name
                | Value
        )
    }
}

/// The part of the input that one call of [`Decoder::decode`] has dealt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'b> {
    /// Bytes of the input that belong to the body and are dealt with, framing and content.
    pub consumed: usize,
    /// The content among these bytes. It may be empty.
    pub content: &'b [u8],
    /// The part of the trailer section among these bytes: field lines, and the empty line at its
    /// end.
    pub trailers: &'b [u8],
    /// Whether the body is complete. If it is not, call `decode` again with the rest of the input,
    /// or with new input if there is no rest.
    pub done: bool,
}

impl Decoder {
    /// A decoder for a body framed as `framing`, of at most `bytes_max` bytes of content.
    ///
    /// # Errors
    /// 413 if `framing` has a length, and the length exceeds `bytes_max`.
    pub fn new(framing: Framing, bytes_max: u64) -> Result<Decoder, Status> {
        let (state, left) = match framing {
            Framing::None | Framing::Length(0) => (FramingState::Done, 0),
            Framing::Length(length) if length > bytes_max => return Err(Status::CONTENT_TOO_LARGE),
            Framing::Length(length) => (FramingState::Length, length),
            Framing::Chunked => (FramingState::Size(0), 0),
        };
        Ok(Decoder { state, left, allowance: bytes_max, overhead: 0 })
    }

    /// Forbids more than `bytes_max` further bytes of content. False if that many are known to
    /// come.
    pub fn restrict(&mut self, bytes_max: u64) -> bool {
        self.allowance = self.allowance.min(bytes_max);
        self.left <= bytes_max
    }

    /// Whether the body is complete.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.state == FramingState::Done
    }

    /// Takes bytes of the body from the front of `input`. It stops after one run of content.
    ///
    /// # Errors
    /// 400 if the framing has an error, 413 if the content exceeds its limit, 431 if extensions and
    /// trailers exceed theirs. After an error the caller must close the connection, because the
    /// start of the next request is unknown.
    pub fn decode<'b>(&mut self, input: &'b [u8]) -> Result<Piece<'b>, Status> {
        let mut at = 0;
        let mut trailers_at = None;
        loop {
            if let FramingState::Length | FramingState::Data = self.state {
                let take = usize::try_from(self.left).unwrap_or(usize::MAX).min(input.len() - at);
                self.left -= take as u64;
                if self.left == 0 {
                    self.state = if self.state == FramingState::Data {
                        FramingState::DataCr
                    } else {
                        FramingState::Done
                    };
                }
                let content = &input[at..at + take];
                return Ok(Piece { consumed: at + take, content, trailers: &[], done: self.is_done() });
            }
            if self.is_done() || at == input.len() {
                let trailers = &input[trailers_at.unwrap_or(at)..at];
                return Ok(Piece { consumed: at, content: &[], trailers, done: self.is_done() });
            }
            if self.state.is_trailer() {
                trailers_at.get_or_insert(at);
            }
            self.state = self.framing_byte(input[at])?;
            at += 1;
        }
    }

    /// The state after one byte that is not content.
    fn framing_byte(&mut self, byte: u8) -> Result<FramingState, Status> {
        if self.state.is_overhead() {
            self.overhead += 1;
            if self.overhead > OVERHEAD_BYTES_MAX {
                return Err(Status::FIELDS_TOO_LARGE);
            }
        }
        Ok(match (self.state, byte) {
            (FramingState::Size(digits), b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') if digits < 16 => {
                let digit = char::from(byte).to_digit(16).map_or(0, u64::from);
                self.left = self.left << 4 | digit;
                FramingState::Size(digits + 1)
            }
            (FramingState::Size(1..), b'\r') => FramingState::SizeLf,
            (FramingState::Size(1..), b';') => FramingState::Extension,
            (FramingState::Size(1..) | FramingState::Pad, b' ' | b'\t') => FramingState::Pad,
            (FramingState::Pad, b';') => FramingState::Extension,
            (FramingState::Extension, b' ' | b'\t') => FramingState::Extension,
            (FramingState::Extension | FramingState::ExtensionName, byte) if is_tchar(byte) => {
                FramingState::ExtensionName
            }
            (FramingState::ExtensionName | FramingState::NameEnd, b' ' | b'\t') => FramingState::NameEnd,
            (FramingState::ExtensionName | FramingState::NameEnd, b'=') => FramingState::ExtensionValue,
            (FramingState::ExtensionValue, b' ' | b'\t') => FramingState::ExtensionValue,
            (FramingState::ExtensionValue, b'"') => FramingState::Quoted,
            (FramingState::ExtensionValue | FramingState::ExtensionToken, byte) if is_tchar(byte) => {
                FramingState::ExtensionToken
            }
            (FramingState::Quoted, b'"') => FramingState::QuotedEnd,
            (FramingState::Quoted, b'\\') => FramingState::Escaped,
            (FramingState::Quoted | FramingState::Escaped, byte) if is_text(byte) => FramingState::Quoted,
            (FramingState::ExtensionToken | FramingState::QuotedEnd, b' ' | b'\t') => FramingState::Pad,
            (
                FramingState::ExtensionName
                | FramingState::NameEnd
                | FramingState::ExtensionToken
                | FramingState::QuotedEnd,
                b';',
            ) => FramingState::Extension,
            (FramingState::ExtensionName | FramingState::ExtensionToken | FramingState::QuotedEnd, b'\r') => {
                FramingState::SizeLf
            }
            (FramingState::SizeLf, b'\n') if self.left == 0 => FramingState::Trailer,
            (FramingState::SizeLf, b'\n') => {
                self.allowance = self.allowance.checked_sub(self.left).ok_or(Status::CONTENT_TOO_LARGE)?;
                FramingState::Data
            }
            (FramingState::DataCr, b'\r') => FramingState::DataLf,
            (FramingState::DataLf, b'\n') => FramingState::Size(0),
            (FramingState::Trailer, b'\r') => FramingState::EndLf,
            (FramingState::Trailer | FramingState::Name, byte) if is_tchar(byte) => FramingState::Name,
            (FramingState::Name, b':') => FramingState::Value,
            (FramingState::Value, b'\r') => FramingState::ValueLf,
            (FramingState::Value, byte) if is_text(byte) => FramingState::Value,
            (FramingState::ValueLf, b'\n') => FramingState::Trailer,
            (FramingState::EndLf, b'\n') => FramingState::Done,
            _ => return Err(Status::BAD_REQUEST),
        })
    }
}

/// Whether `byte` may stand in a field value or a quoted string: a control byte may not, except the
/// tab.
fn is_text(byte: u8) -> bool {
    byte == b'\t' || byte >= b' ' && byte != 0x7f
}

/// Whether `byte` may stand in a token (RFC 9110 §5.6.2).
pub(crate) fn is_tchar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The slow obvious version reads the whole body at once, line by line. It returns the content,
    /// and the bytes behind the body.
    fn oracle(input: &[u8]) -> Option<(Vec<u8>, &[u8])> {
        let mut content = Vec::new();
        let mut rest = input;
        loop {
            let (line, behind) = line(rest)?;
            let (size, extension) = match line.iter().position(|b| !b.is_ascii_hexdigit()) {
                Some(end) => line.split_at(end),
                None => (line, &b""[..]),
            };
            if size.len() > 16 || !extensions_are_formed(extension) {
                return None;
            }
            let size = usize::from_str_radix(std::str::from_utf8(size).ok()?, 16).ok()?;
            if size == 0 {
                rest = behind;
                break;
            }
            content.extend_from_slice(behind.get(..size)?);
            rest = behind.get(size..)?.strip_prefix(b"\r\n")?;
        }
        loop {
            let (trailer, behind) = line(rest)?;
            rest = behind;
            if trailer.is_empty() {
                return Some((content, rest));
            }
            let colon = trailer.iter().position(|&b| b == b':')?;
            if colon == 0 || !trailer[..colon].iter().all(|&b| is_tchar(b)) {
                return None;
            }
        }
    }

    /// `*( BWS ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] )`, taken apart from its
    /// front.
    fn extensions_are_formed(text: &[u8]) -> bool {
        let blank = |text: &[u8]| text.iter().take_while(|b| b" \t".contains(b)).count();
        let token = |text: &[u8]| text.iter().take_while(|&&b| is_tchar(b)).count();
        if text.is_empty() {
            return true;
        }
        let Some(rest) = text[blank(text)..].strip_prefix(b";") else { return false };
        let rest = &rest[blank(rest)..];
        let name = token(rest);
        if name == 0 {
            return false;
        }
        let rest = &rest[name..];
        let Some(value) = rest[blank(rest)..].strip_prefix(b"=") else {
            return extensions_are_formed(rest);
        };
        let value = &value[blank(value)..];
        if let Some(mut quoted) = value.strip_prefix(b"\"") {
            loop {
                quoted = match quoted {
                    [b'"', rest @ ..] => return extensions_are_formed(rest),
                    [b'\\', _, rest @ ..] | [_, rest @ ..] => rest,
                    [] => return false,
                };
            }
        }
        let len = token(value);
        len > 0 && extensions_are_formed(&value[len..])
    }

    fn line(input: &[u8]) -> Option<(&[u8], &[u8])> {
        let end = input.windows(2).position(|pair| pair == b"\r\n")?;
        let line = &input[..end];
        line.iter().all(|&b| is_text(b)).then_some((line, &input[end + 2..]))
    }

    /// Decodes `input` in pieces that end at `cuts`. Returns the content, the unread bytes, and
    /// whether the body was complete.
    fn run(framing: Framing, input: &[u8], cuts: &[usize]) -> Result<(Vec<u8>, Vec<u8>, bool), Status> {
        let mut decoder = Decoder::new(framing, 1 << 20)?;
        let (mut content, mut start) = (Vec::new(), 0);
        for &cut in cuts.iter().chain([&input.len()]) {
            while start < cut && !decoder.is_done() {
                let piece = decoder.decode(&input[start..cut])?;
                content.extend_from_slice(piece.content);
                start += piece.consumed;
            }
        }
        Ok((content, input[start..].to_vec(), decoder.is_done()))
    }

    #[test]
    fn no_body_and_empty_body_are_done_at_once() {
        for framing in [Framing::None, Framing::Length(0)] {
            let mut decoder = Decoder::new(framing, 0).unwrap();
            assert_eq!(
                decoder.decode(b"GET"),
                Ok(Piece { consumed: 0, content: b"", trailers: b"", done: true })
            );
        }
    }

    #[test]
    fn a_body_with_a_length_ends_there_at_every_split() {
        for cut in 0..=8 {
            let expected = (b"hello".to_vec(), b"GET".to_vec(), true);
            assert_eq!(run(Framing::Length(5), b"helloGET", &[cut]), Ok(expected));
        }
    }

    #[test]
    fn limits() {
        assert_eq!(Decoder::new(Framing::Length(11), 10).unwrap_err(), Status::CONTENT_TOO_LARGE);
        let mut decoder = Decoder::new(Framing::Chunked, 10).unwrap();
        assert_eq!(decoder.decode(b"6\r\n123456\r\n").unwrap().content, b"123456");
        assert_eq!(decoder.decode(b"\r\n5\r\n"), Err(Status::CONTENT_TOO_LARGE));
        let mut decoder = Decoder::new(Framing::Chunked, 10).unwrap();
        assert_eq!(decoder.decode(b"ffffffffffffffff\r\n"), Err(Status::CONTENT_TOO_LARGE));
        let long = [b"1;".to_vec(), vec![b'x'; OVERHEAD_BYTES_MAX as usize + 1]].concat();
        assert_eq!(run(Framing::Chunked, &long, &[]), Err(Status::FIELDS_TOO_LARGE));
    }

    #[test]
    fn chunks_with_extensions_and_trailers_at_every_split() {
        let input = b"4;a=b ; c = \"d;\\\"\xff\" ;e\r\nWiki\r\n5 ;x\t;y;z=1\r\npedia\r\n0\r\nExpires: never\r\nA:\r\n\r\nGET";
        for first in 0..input.len() {
            for second in first..input.len() {
                let expected = (b"Wikipedia".to_vec(), b"GET".to_vec(), true);
                assert_eq!(run(Framing::Chunked, input, &[first, second]), Ok(expected));
            }
        }
    }

    #[test]
    fn chunks_with_an_error_in_the_framing_are_refused() {
        for input in [
            &b"\r\n"[..],
            b"5\nhello\r\n0\r\n\r\n",
            b" 5\r\nhello\r\n",
            b"5 \r\nhello\r\n",
            b"0x5\r\nhello\r\n",
            b"+5\r\nhello\r\n",
            b"-1\r\n",
            b"5\r\nhelloX\r\n",
            b"5\r\nhello\n0\r\n\r\n",
            b"5\r\nhello\r\r\n",
            b"5\rhello",
            b"5;a\nb\r\nhello\r\n",
            b"5;a\0\r\nhello\r\n",
            b"5;\r\nhello\r\n",
            b"5; \r\nhello\r\n",
            b"5;;a\r\nhello\r\n",
            b"5;=b\r\nhello\r\n",
            b"5;a=\r\nhello\r\n",
            b"5;a \r\nhello\r\n",
            b"5;a=b \r\nhello\r\n",
            b"5;a b\r\nhello\r\n",
            b"5;a=b c\r\nhello\r\n",
            b"5;a=b=c\r\nhello\r\n",
            b"5;a=\"b\r\nhello\r\n",
            b"5;a=\"b\"c\r\nhello\r\n",
            b"5;a=\"b\\\"\r\nhello\r\n",
            b"5;\"a\"\r\nhello\r\n",
            b"5;a[]\r\nhello\r\n",
            b"00000000000000005\r\nhello\r\n",
            b"0\r\n\n",
            b"0\r\n folded: x\r\n\r\n",
            b"0\r\nname : x\r\n\r\n",
            b"0\r\n: x\r\n\r\n",
            b"0\r\nname\r\n\r\n",
            b"0\r\nname: x\n\r\n",
        ] {
            for cut in 0..=input.len() {
                assert_eq!(run(Framing::Chunked, input, &[cut]), Err(Status::BAD_REQUEST), "{input:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn decodes_as_the_oracle_does(
            pieces in prop::collection::vec(
                prop_oneof![
                    4 => prop::collection::vec(any::<u8>(), 1..20).prop_map(|data| {
                        [format!("{:x}\r\n", data.len()).as_bytes(), &data, b"\r\n"].concat()
                    }),
                    1 => "[0-9a-fA-F]{0,2}[ ]{0,1}(;[a-z=\" ;\\\\]{0,5}){0,2}(\r\n|\n|\r|x)".prop_map(String::into_bytes),
                    1 => Just(b"0\r\n".to_vec()),
                    1 => "[a-z ]{0,3}:[ a-z]{0,4}(\r\n|\n)".prop_map(String::into_bytes),
                    1 => Just(b"\r\n".to_vec()),
                ],
                0..8,
            ),
            end in prop::bool::weighted(0.8),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let mut input = pieces.concat();
            if end {
                input.extend_from_slice(b"0\r\n\r\nrest");
            }
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(input.len() + 1)).collect();
            cuts.sort_unstable();
            let decoded = run(Framing::Chunked, &input, &cuts);
            match oracle(&input) {
                Some((content, rest)) => prop_assert_eq!(decoded, Ok((content, rest.to_vec(), true))),
                None => prop_assert!(!matches!(decoded, Ok((.., true))), "{:?}", decoded),
            }
        }
    }
}
