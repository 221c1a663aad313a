//! The access log: one line for each request in Apache's combined format, written into a buffer.
//!
//! ```text
//! 192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.1" 200 612 "-" "curl/8.5.0"
//! ```
//!
//! The worker's log (`access_log.rs`) owns a [`Lines`] and puts a [`Line`] into it for each
//! request.
//!
//! The client determines three texts of a line: the request line, `Referer` and `User-Agent`. A
//! byte of these texts that is `"`, `\`, a control byte or not ASCII is written as `\xNN`. So a
//! client can neither end a line nor end a field.
//!
//! # Cost
//!
//! [`Lines::put`] makes room for the whole line once. It then copies each part to its place: the
//! address from a table of octets, the date with the text around it as [`Clock`] keeps it for a
//! second, the numbers from a table of digit pairs. While it copies a text of the client it also
//! examines the bytes, 16 at a time. If some byte needs an escape, it writes the line again with
//! escapes.

use crate::date::Clock;
use crate::decimal::{self, DIGITS_MAX};
use crate::status::Status;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wide::u8x16;

/// The content of one line.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// The client; `None` (a Unix socket) prints `-`.
    pub peer: Option<IpAddr>,
    /// The request line; an empty one prints `-`.
    pub request: &'a [u8],
    /// The status of the reply.
    pub status: Status,
    /// Bytes of content that were sent; 0 prints `-`, as in Apache.
    pub content_bytes: u64,
    /// The value of `Referer`; an empty one prints `-`.
    pub referer: &'a [u8],
    /// The value of `User-Agent`; an empty one prints `-`.
    pub user_agent: &'a [u8],
    /// The host that the request names; the combined format has no place for it.
    pub host: &'a [u8],
}

/// Bytes of the longest IPv6 address.
const ADDRESS_MAX: usize = 39;

/// Room that one line takes besides the texts of the client: at most 39 bytes of address, 35 of
/// date, 20 of number, and 17 of quotes, spaces, status, dashes and line end. The rest is for parts
/// that [`write`] writes in windows of a fixed size, of which the end is overwritten later.
const FIXED_BYTES: usize = 128;

/// Lines one after another in one piece of memory.
///
/// # Examples
/// ```
/// use selvedge::http::{date::Clock, log::{Line, Lines}, status::Status};
/// let mut lines = Lines::with_room(1000);
/// let line = Line {
///     peer: "192.0.2.7".parse().ok(),
///     request: b"GET / HTTP/1.1",
///     status: Status::OK,
///     content_bytes: 612,
///     referer: b"",
///     user_agent: b"curl/8.5.0",
///     host: b"example.org",
/// };
/// lines.put(&line, &Clock::at(971_186_136));
/// assert_eq!(
///     lines.as_bytes(),
///     b"192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] \
///     \"GET / HTTP/1.1\" 200 612 \"-\" \"curl/8.5.0\"\n"
/// );
/// ```
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// All of it is initialised, so that safe code can write anywhere in it.
    room: Vec<u8>,
    /// Bytes of lines at the start of `room`.
    len: usize,
}

impl Lines {
    /// No lines, and room for `bytes` bytes of them.
    pub fn with_room(bytes: usize) -> Lines {
        Lines { room: vec![0; bytes], len: 0 }
    }

    /// Appends `line` with the time that `clock` shows.
    ///
    /// # Complexity
    /// Linear in the length of the line. It allocates only if the room is used up.
    ///
    /// # Paper
    /// \[Mighty\] "Logging": IP address and zoned time, no intermediate data between the values and
    /// the buffer.
    #[inline(always)]
    pub fn put(&mut self, line: &Line<'_>, clock: &Clock) {
        let texts = line.request.len() + line.referer.len() + line.user_agent.len();
        let (len, needs_escapes) = write(line, clock, self.spare(FIXED_BYTES + texts), put_clean);
        if needs_escapes {
            return self.put_escaped(line, clock, FIXED_BYTES + 4 * texts);
        }
        self.len += len;
    }

    /// As [`put`](Self::put), for a line that has bytes to escape and takes at most `bytes` of
    /// room.
    #[cold]
    fn put_escaped(&mut self, line: &Line<'_>, clock: &Clock, bytes: usize) {
        self.len += write(line, clock, self.spare(bytes), put_with_escapes).0;
    }

    /// The room behind the lines: at least `bytes`.
    #[inline]
    fn spare(&mut self, bytes: usize) -> &mut [u8] {
        if self.room.len() - self.len < bytes {
            self.grow(bytes);
        }
        &mut self.room[self.len..]
    }

    #[cold]
    fn grow(&mut self, bytes: usize) {
        self.room.resize((2 * self.room.len()).max(self.len + bytes), 0);
    }

    /// The lines, each with its newline.
    pub fn as_bytes(&self) -> &[u8] {
        &self.room[..self.len]
    }

    /// Bytes of all lines.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no line.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of lines for which there is room in all.
    pub fn room(&self) -> usize {
        self.room.len()
    }

    /// Appends a line that is written already, with its newline.
    pub(crate) fn put_written(&mut self, line: &[u8]) {
        self.spare(line.len())[..line.len()].copy_from_slice(line);
        self.len += line.len();
    }

    /// Removes the lines behind the first `len` bytes.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Removes all lines and keeps the room.
    pub fn clear(&mut self) {
        self.len = 0;
    }
}

/// Writes `line` at the start of `out`, with the texts of the client as `put` writes them. Returns
/// the length of the line, and whether `put` returned true for one of the texts.
///
/// `put` writes a text at the start of a slice. It returns the bytes written and a flag.
#[inline(always)]
fn write(
    line: &Line<'_>,
    clock: &Clock,
    out: &mut [u8],
    put: impl Fn(&[u8], &mut [u8]) -> (usize, bool),
) -> (usize, bool) {
    let mut flagged = false;
    let mut at = match line.peer {
        Some(IpAddr::V4(address)) => {
            let front: &mut [u8; 64] = window(out, 0);
            let at = put_ipv4(address, front);
            *window(front, at) = *clock.log_field();
            at + clock.log_field().len()
        }
        peer => put_front(peer, clock, out),
    };
    at = put_text(line.request, &put, at, out, &mut flagged);
    let middle: &mut [u8; 40] = window(out, at);
    let code = line.status.digits();
    *window(middle, 0) = [b'"', b' ', code[0], code[1], code[2], b' '];
    let digits = match line.content_bytes {
        0 => {
            middle[6] = b'-';
            1
        }
        bytes => decimal::put(bytes, &mut middle[6..]),
    };
    let end = 6 + digits.min(DIGITS_MAX);
    if line.referer.is_empty() && line.user_agent.is_empty() {
        *window(middle, end) = *b" \"-\" \"-\"\n";
        return (at + end + 9, flagged);
    }
    *window(middle, end) = *b" \"";
    at = put_text(line.referer, &put, at + end + 2, out, &mut flagged);
    *window(out, at) = *b"\" \"";
    at = put_text(line.user_agent, &put, at + 3, out, &mut flagged);
    *window(out, at) = *b"\"\n";
    (at + 2, flagged)
}

/// Writes a text of the client at `at`, as `put` writes it, and returns where it ends.
#[inline(always)]
fn put_text(
    text: &[u8],
    put: &impl Fn(&[u8], &mut [u8]) -> (usize, bool),
    at: usize,
    out: &mut [u8],
    flagged: &mut bool,
) -> usize {
    let (len, flag) = put(if text.is_empty() { b"-" } else { text }, &mut out[at..]);
    *flagged |= flag;
    at + len
}

/// The `N` bytes of `out` from `at` on.
#[inline(always)]
fn window<const N: usize>(out: &mut [u8], at: usize) -> &mut [u8; N] {
    out[at..].first_chunk_mut().expect("`Lines::spare` has made room for the line")
}

/// Writes the address of `peer` and the date, if `peer` is not a plain IPv4 address.
#[cold]
fn put_front(peer: Option<IpAddr>, clock: &Clock, out: &mut [u8]) -> usize {
    let at = match peer.map(|peer| peer.to_canonical()) {
        Some(IpAddr::V4(address)) => put_ipv4(address, window(out, 0)),
        Some(IpAddr::V6(address)) => put_ipv6(address, window(out, 0)),
        None => {
            out[0] = b'-';
            1
        }
    };
    *window(out, at) = *clock.log_field();
    at + clock.log_field().len()
}

/// Copies `text`. Returns its length, and whether it has a byte that needs an escape.
#[inline(always)]
fn put_clean(text: &[u8], out: &mut [u8]) -> (usize, bool) {
    let len = text.len();
    let out = &mut out[..len];
    let found = match (text.first_chunk(), text.last_chunk()) {
        (Some(first), Some(last)) if len <= 32 => {
            *window(out, 0) = *first;
            *window(out, len - 16) = *last;
            examine(first) | examine(last) != u8x16::ZERO
        }
        _ => put_unusual(text, out),
    };
    (len, found)
}

/// Copies a text of another length than 16 to 32 bytes. Returns whether it has a byte that needs an
/// escape.
#[inline(never)]
fn put_unusual(text: &[u8], out: &mut [u8]) -> bool {
    out.copy_from_slice(text);
    if let Some(last) = text.last_chunk() {
        let (chunks, _) = text.as_chunks();
        return chunks.iter().fold(examine(last), |found, chunk| found | examine(chunk)) != u8x16::ZERO;
    }
    if let (Some(&first), Some(&last)) = (text.first_chunk(), text.last_chunk()) {
        return word_needs_escape(u64::from_ne_bytes(first)) | word_needs_escape(u64::from_ne_bytes(last));
    }
    text.iter().any(|&byte| needs_escape(byte))
}

/// 16 bytes of which those are not 0 that stand where a byte of `bytes` needs an escape.
#[inline(always)]
fn examine(bytes: &[u8; 16]) -> u8x16 {
    let bytes = u8x16::from(*bytes);
    let unprintable = (bytes - u8x16::splat(b' ')).saturating_sub(u8x16::splat(b'~' - b' '));
    unprintable | bytes.simd_eq(u8x16::splat(b'"')) | bytes.simd_eq(u8x16::splat(b'\\'))
}

/// Whether one of the eight bytes of `word` needs an escape.
#[inline(always)]
fn word_needs_escape(word: u64) -> bool {
    const ONES: u64 = u64::MAX / 255;
    // The high bit of a byte is set in one of these terms if the byte needs an escape. If no byte
    // does, then no subtraction borrows, no addition carries, and no high bit is set.
    let control = word.wrapping_sub(u64::from(b' ') * ONES);
    let delete = word.wrapping_add(ONES);
    let quote = (word ^ (u64::from(b'"') * ONES)).wrapping_sub(ONES);
    let backslash = (word ^ (u64::from(b'\\') * ONES)).wrapping_sub(ONES);
    (word | control | delete | quote | backslash) & (0x80 * ONES) != 0
}

#[inline]
fn needs_escape(byte: u8) -> bool {
    !(b' '..=b'~').contains(&byte) | (byte == b'"') | (byte == b'\\')
}

/// Appends `text` with escapes; `-` if it is empty.
pub(crate) fn put_escaped_text(text: &[u8], out: &mut Vec<u8>) {
    let text = if text.is_empty() { b"-" } else { text };
    let start = out.len();
    out.resize(start + 4 * text.len(), 0);
    let (len, _) = put_with_escapes(text, &mut out[start..]);
    out.truncate(start + len);
}

/// Appends the address of a client; `-` for a client at a Unix socket.
pub(crate) fn put_address(peer: Option<IpAddr>, out: &mut Vec<u8>) {
    match peer.map(|peer| peer.to_canonical()) {
        Some(address) => out.extend_from_slice(address.to_string().as_bytes()),
        None => out.push(b'-'),
    }
}

/// Writes `text` with escapes. Returns the bytes written, and false.
fn put_with_escapes(text: &[u8], out: &mut [u8]) -> (usize, bool) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut at = 0;
    for &byte in text {
        if needs_escape(byte) {
            let (high, low) = (DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]);
            out[at..at + 4].copy_from_slice(&[b'\\', b'x', high, low]);
            at += 4;
        } else {
            out[at] = byte;
            at += 1;
        }
    }
    (at, false)
}

/// Writes `address` in dotted form and returns its length. Bytes behind it may be written too.
///
/// # Paper
/// \[Mighty\] "Logging" (own pretty printer instead of getNameInfo).
#[inline]
fn put_ipv4(address: Ipv4Addr, out: &mut [u8; 64]) -> usize {
    /// Each octet in decimal with a dot behind it, the first digit in the lowest byte, and the bits
    /// that this takes.
    static OCTETS: [(u32, u32); 256] = {
        let mut octets = [(0, 0); 256];
        let mut octet = 0;
        while octet < 256 {
            let (hundreds, tens, ones) =
                (b'0' + octet as u8 / 100, b'0' + octet as u8 / 10 % 10, b'0' + octet as u8 % 10);
            let (text, len) = match octet {
                100.. => ([hundreds, tens, ones, b'.'], 4),
                10.. => ([tens, ones, b'.', 0], 3),
                _ => ([ones, b'.', 0, 0], 2),
            };
            octets[octet] = (u32::from_le_bytes(text), 8 * len);
            octet += 1;
        }
        octets
    };
    // Two octets and their dots are eight bytes at most.
    let pair = |first: u8, second: u8| {
        let (first, second) = (OCTETS[usize::from(first)], OCTETS[usize::from(second)]);
        let text = u64::from(first.0) | u64::from(second.0) << (first.1 & 63);
        (text.to_le_bytes(), (first.1 + second.1) as usize / 8)
    };
    let [a, b, c, d] = address.octets();
    let ((one, one_len), (two, two_len)) = (pair(a, b), pair(c, d));
    // The masks change nothing, but tell the compiler that all lies within `out`.
    let one_len = one_len & 15;
    *window(out, 0) = one;
    *window(out, one_len) = two;
    (one_len + two_len - 1) & 15
}

/// Writes `address` as RFC 5952 says, and returns its length: lower case, no leading zeros, the
/// first longest run of two or more zero groups as `::`.
///
/// # Paper
/// \[Mighty\] "Logging" (own pretty printer instead of getNameInfo).
fn put_ipv6(address: Ipv6Addr, out: &mut [u8; ADDRESS_MAX]) -> usize {
    let groups = address.segments();
    let (mut run_start, mut run_len) = (8, 1);
    let mut start = 0;
    while start < 8 {
        let len = groups[start..].iter().take_while(|&&group| group == 0).count();
        if len > run_len {
            (run_start, run_len) = (start, len);
        }
        start += len.max(1);
    }
    let mut at = 0;
    let mut push = |byte: u8| {
        out[at] = byte;
        at += 1;
    };
    let mut index = 0;
    while index < 8 {
        if index == run_start {
            push(b':');
            push(b':');
            index += run_len;
            continue;
        }
        if index > 0 && index != run_start + run_len {
            push(b':');
        }
        let digits = (16 - groups[index].leading_zeros()).div_ceil(4).max(1);
        for digit in (0..digits).rev() {
            push(b"0123456789abcdef"[usize::from(groups[index] >> (4 * digit) & 15)]);
        }
        index += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn logged(line: &Line<'_>) -> String {
        let mut lines = Lines::default();
        lines.put(line, &Clock::at(971_186_136));
        String::from_utf8(lines.as_bytes().to_vec()).unwrap()
    }

    const LINE: Line<'static> = Line {
        peer: Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7))),
        request: b"GET / HTTP/1.1",
        status: Status::OK,
        content_bytes: 612,
        referer: b"https://example.org/",
        user_agent: b"curl/8.5.0",
        host: b"example.org",
    };

    #[test]
    fn lines() {
        assert_eq!(
            logged(&LINE),
            "192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] \"GET / HTTP/1.1\" 200 612 \"https://example.org/\" \
             \"curl/8.5.0\"\n"
        );
        let nothing = Line {
            peer: None,
            request: b"",
            status: Status::REQUEST_TIMEOUT,
            content_bytes: 0,
            referer: b"",
            user_agent: b"",
            host: b"",
        };
        assert_eq!(logged(&nothing), "- - - [10/Oct/2000:13:55:36 +0000] \"-\" 408 - \"-\" \"-\"\n");
    }

    #[test]
    fn nothing_a_client_sends_breaks_the_line() {
        let nasty = Line { request: b"GET /\"\\\n\x1b\xff HTTP/1.1", ..LINE };
        assert!(logged(&nasty).contains("\"GET /\\x22\\x5C\\x0A\\x1B\\xFF HTTP/1.1\" 200"));
        let mapped = Line { peer: Some("::ffff:192.0.2.7".parse().unwrap()), ..LINE };
        assert_eq!(logged(&mapped), logged(&LINE));
    }

    #[test]
    fn many_lines_lie_one_after_another_however_long_they_are() {
        let mut lines = Lines::with_room(10);
        let mut expected = String::new();
        for len in 0..300 {
            let text = vec![if len % 7 == 0 { b'\n' } else { b'x' }; len];
            let address = format!("2001:db8:1111:2222:3333:4444:5555:{:x}", 0xf000 + len);
            let peer = if len % 2 == 0 { address.parse().ok() } else { LINE.peer };
            let content_bytes = [u64::MAX, 0, 9_999, 10_000][len % 4];
            let line =
                Line { peer, content_bytes, request: &text, referer: &text, user_agent: &text, ..LINE };
            lines.put(&line, &Clock::at(971_186_136));
            expected += &logged(&line);
        }
        assert_eq!(String::from_utf8(lines.as_bytes().to_vec()).unwrap(), expected);
        assert_eq!(expected.lines().count(), 300);
        lines.clear();
        assert!(lines.is_empty() && lines.room() >= expected.len());
    }

    /// Mostly bytes that need no escape, and the neighbours of the other bytes.
    fn near_the_bounds() -> impl Strategy<Value = u8> {
        prop_oneof![30 => Just(b'a'), 4 => 0x1eu8..0x24, 2 => 0x5au8..0x5f, 2 => 0x7du8..0x82, 1 => any::<u8>()]
    }

    proptest! {
        #[test]
        fn a_line_is_escaped_if_a_byte_of_it_needs_that(
            text in prop::collection::vec(near_the_bounds(), 0..40),
        ) {
            let mut escaped = vec![0; 4 * text.len()];
            let (len, _) = put_with_escapes(&text, &mut escaped);
            escaped.truncate(len);
            let expected = if text.is_empty() { "-".into() } else { String::from_utf8(escaped).unwrap() };
            let line = logged(&Line { referer: &text, ..LINE });
            prop_assert_eq!(line, logged(&LINE).replace("https://example.org/", &expected));
        }

        #[test]
        fn clean_is_what_has_no_byte_to_escape(text in prop::collection::vec(near_the_bounds(), 0..40)) {
            let mut copied = vec![0; text.len() + 10];
            let expected = (text.len(), text.iter().any(|&byte| needs_escape(byte)));
            prop_assert_eq!(put_clean(&text, &mut copied), expected);
            prop_assert_eq!(&copied[..text.len()], &text[..]);
            prop_assert!(copied[text.len()..].iter().all(|&byte| byte == 0));
        }

        #[test]
        fn any_text_is_one_quoted_word(text in prop::collection::vec(any::<u8>(), 0..40)) {
            let line = logged(&Line { user_agent: &text, ..LINE });
            prop_assert_eq!(line.matches('"').count(), 6);
            prop_assert_eq!(line.find('\n'), Some(line.len() - 1));
            prop_assert!(line.trim_end().bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        }

        #[test]
        fn addresses_print_as_std_prints_them(
            v4: u32,
            groups in prop::array::uniform8(prop_oneof![Just(0u16), Just(0), 0..0x20u16, any::<u16>()]),
        ) {
            let mut out = [0; 64];
            let len = put_ipv4(v4.into(), &mut out);
            prop_assert_eq!(std::str::from_utf8(&out[..len]).unwrap(), Ipv4Addr::from(v4).to_string());
            let address = Ipv6Addr::from(groups);
            prop_assume!(address.to_ipv4_mapped().is_none());
            let mut out = [0; ADDRESS_MAX];
            let len = put_ipv6(address, &mut out);
            prop_assert_eq!(std::str::from_utf8(&out[..len]).unwrap(), address.to_string());
        }
    }
}
