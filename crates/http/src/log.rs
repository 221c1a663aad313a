//! The access log: one line per request in Apache's combined format, formatted straight into a byte buffer.
//!
//! ```text
//! 192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.1" 200 612 "https://example.org/" "curl/8.5.0"
//! ```
//!
//! A byte that comes from the client and is `"`, `\`, a control byte or not ASCII is written `\xNN`, so that a line
//! stays a line and its fields stay apart whatever is sent.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::date::{Clock, LOG_LEN};
use crate::response::put_number;
use crate::status::Status;

/// What one line tells.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// The client; `None` (a Unix socket) prints `-`.
    pub peer: Option<IpAddr>,
    /// The request line; an empty one prints `-`.
    pub request: &'a [u8],
    /// The status answered.
    pub status: Status,
    /// Bytes of content sent; 0 prints `-`, as in Apache.
    pub content_bytes: u64,
    /// `Referer`
    pub referer: Option<&'a [u8]>,
    /// `User-Agent`
    pub user_agent: Option<&'a [u8]>,
}

/// Appends `line` at the time that `clock` shows, with its newline.
///
/// # Paper
/// \[Mighty\] "Logging": IP address and zoned time, no intermediate data between the values and the buffer.
#[inline]
pub fn combined(line: &Line<'_>, clock: &Clock, out: &mut Vec<u8>) {
    let texts = [Some(line.request), line.referer, line.user_agent];
    if texts.iter().flatten().all(|text| is_clean(text)) {
        put_line(line, clock, out, |text, out| out.extend_from_slice(text));
    } else {
        put_line(line, clock, out, put_escaped);
    }
}

/// Appends `line`, with what comes from the client as `put` appends it.
#[inline(always)]
fn put_line(line: &Line<'_>, clock: &Clock, out: &mut Vec<u8>, put: impl Fn(&[u8], &mut Vec<u8>)) {
    match line.peer.map(|peer| peer.to_canonical()) {
        Some(IpAddr::V4(address)) => put_ipv4(address, out),
        Some(IpAddr::V6(address)) => put_ipv6(address, out),
        None => out.push(b'-'),
    }
    let mut when = *b" - - [00/Mon/0000:00:00:00 +0000] \"";
    when[6..][..LOG_LEN].copy_from_slice(clock.log());
    out.extend_from_slice(&when);
    put(or_dash(Some(line.request)), out);
    let code = line.status.code();
    let digit = |n: u16| b'0' + (n % 10) as u8;
    out.extend_from_slice(&[b'"', b' ', digit(code / 100), digit(code / 10), digit(code), b' ']);
    match line.content_bytes {
        0 => out.push(b'-'),
        bytes => put_number(bytes, out),
    }
    out.extend_from_slice(b" \"");
    put(or_dash(line.referer), out);
    out.extend_from_slice(b"\" \"");
    put(or_dash(line.user_agent), out);
    out.extend_from_slice(b"\"\n");
}

#[inline]
fn or_dash(text: Option<&[u8]>) -> &[u8] {
    text.filter(|text| !text.is_empty()).unwrap_or(b"-")
}

#[cold]
fn put_escaped(text: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in text {
        if needs_escape(byte) {
            let (high, low) = (DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]);
            out.extend_from_slice(&[b'\\', b'x', high, low]);
        } else {
            out.push(byte);
        }
    }
}

/// Whether no byte needs an escape. It looks at eight at a time.
#[inline]
fn is_clean(text: &[u8]) -> bool {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = 0x80 * ONES;
    // The high bit of some byte is set if a byte of `word` is below `n`; so for the lowest such byte, and no other without it.
    let below = |word: u64, n: u64| word.wrapping_sub(n * ONES) & !word & HIGH;
    let equal = |word: u64, byte: u8| below(word ^ (u64::from(byte) * ONES), 1);
    let dirty = |word: [u8; 8]| {
        let word = u64::from_ne_bytes(word);
        let unprintable = (word & HIGH) | below(word, b' '.into()) | equal(word, 0x7f);
        unprintable | equal(word, b'"') | equal(word, b'\\')
    };
    let (words, rest) = text.as_chunks::<8>();
    let found = words.iter().fold(0, |found, &word| found | dirty(word));
    // The last bytes are looked at together with some before them, if there are such.
    let last = match text.last_chunk::<8>() {
        Some(&last) => dirty(last),
        None => u64::from(rest.iter().any(|&byte| needs_escape(byte))),
    };
    found | last == 0
}

#[inline]
fn needs_escape(byte: u8) -> bool {
    !(b' '..=b'~').contains(&byte) | (byte == b'"') | (byte == b'\\')
}

/// Appends `address` in dotted form.
///
/// # Paper
/// \[Mighty\] "Logging" (own pretty printer instead of getNameInfo).
#[inline]
pub fn put_ipv4(address: Ipv4Addr, out: &mut Vec<u8>) {
    /// Each octet in decimal with a dot behind it, and how many bytes that takes.
    static OCTETS: [([u8; 4], u8); 256] = {
        let mut octets = [([0; 4], 0); 256];
        let mut octet = 0;
        while octet < 256 {
            let (hundreds, tens, ones) =
                (b'0' + octet as u8 / 100, b'0' + octet as u8 / 10 % 10, b'0' + octet as u8 % 10);
            octets[octet] = match octet {
                100.. => ([hundreds, tens, ones, b'.'], 4),
                10.. => ([tens, ones, b'.', 0], 3),
                _ => ([ones, b'.', 0, 0], 2),
            };
            octet += 1;
        }
        octets
    };
    let mut text = [0; 16];
    let mut at = 0;
    for octet in address.octets() {
        let (digits, len) = OCTETS[usize::from(octet)];
        text[at..at + 4].copy_from_slice(&digits);
        at += usize::from(len);
    }
    out.extend_from_slice(&text[..at - 1]);
}

/// Appends `address` as RFC 5952 says: lower case, no leading zeros, the first longest run of two or more zero groups
/// as `::`.
///
/// # Paper
/// \[Mighty\] "Logging" (own pretty printer instead of getNameInfo).
pub fn put_ipv6(address: Ipv6Addr, out: &mut Vec<u8>) {
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
    let mut index = 0;
    while index < 8 {
        if index == run_start {
            out.extend_from_slice(b"::");
            index += run_len;
            continue;
        }
        if index > 0 && index != run_start + run_len {
            out.push(b':');
        }
        let digits = (16 - groups[index].leading_zeros()).div_ceil(4).max(1);
        for digit in (0..digits).rev() {
            out.push(b"0123456789abcdef"[usize::from(groups[index] >> (4 * digit) & 15)]);
        }
        index += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn logged(line: &Line<'_>) -> String {
        let mut out = Vec::new();
        combined(line, &Clock::at(971_186_136), &mut out);
        String::from_utf8(out).unwrap()
    }

    const LINE: Line<'static> = Line {
        peer: Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7))),
        request: b"GET / HTTP/1.1",
        status: Status::OK,
        content_bytes: 612,
        referer: Some(b"https://example.org/"),
        user_agent: Some(b"curl/8.5.0"),
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
            referer: None,
            user_agent: Some(b""),
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

    /// Mostly bytes that need no escape, and the others' neighbours.
    fn near_the_bounds() -> impl Strategy<Value = u8> {
        prop_oneof![30 => Just(b'a'), 4 => 0x1eu8..0x24, 2 => 0x5au8..0x5f, 2 => 0x7du8..0x82, 1 => any::<u8>()]
    }

    proptest! {
        #[test]
        fn a_line_is_escaped_if_a_byte_of_it_needs_that(
            text in prop::collection::vec(near_the_bounds(), 0..40),
        ) {
            let mut escaped = Vec::new();
            put_escaped(&text, &mut escaped);
            let expected = if text.is_empty() { "-".into() } else { String::from_utf8(escaped).unwrap() };
            let line = logged(&Line { referer: Some(&text), ..LINE });
            prop_assert_eq!(line, logged(&LINE).replace("https://example.org/", &expected));
        }

        #[test]
        fn clean_is_what_has_no_byte_to_escape(text in prop::collection::vec(near_the_bounds(), 0..40)) {
            prop_assert_eq!(is_clean(&text), !text.iter().any(|&byte| needs_escape(byte)));
        }

        #[test]
        fn any_text_is_one_quoted_word(text in prop::collection::vec(any::<u8>(), 0..40)) {
            let line = logged(&Line { user_agent: Some(&text), ..LINE });
            prop_assert_eq!(line.matches('"').count(), 6);
            prop_assert_eq!(line.find('\n'), Some(line.len() - 1));
            prop_assert!(line.trim_end().bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        }

        #[test]
        fn addresses_print_as_std_prints_them(
            v4: u32,
            groups in prop::array::uniform8(prop_oneof![Just(0u16), Just(0), 0..0x20u16, any::<u16>()]),
        ) {
            let mut out = Vec::new();
            put_ipv4(v4.into(), &mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), Ipv4Addr::from(v4).to_string());
            let address = Ipv6Addr::from(groups);
            prop_assume!(address.to_ipv4_mapped().is_none());
            let mut out = Vec::new();
            put_ipv6(address, &mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), address.to_string());
        }
    }
}
