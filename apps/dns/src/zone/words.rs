//! [`plain`]: an entry of a zone file in the words that the library's scanner knows. `file.rs`
//! calls it for each entry.
//!
//! Zone files have two more kinds of words: `@` for the origin, also within the data of a record,
//! and times with units as BIND has them (`1h30m`). Which words are names or times, the type of the
//! record says. A word `@` of a TXT record is a text.

use std::borrow::Cow;
use std::ops::Range;

/// The types of which the data has names, and no texts.
const TYPES_WITH_NAMES: [&str; 11] =
    ["CNAME", "DNAME", "NS", "PTR", "MX", "SRV", "RP", "AFSDB", "KX", "SVCB", "HTTPS"];

/// The units of times, with their seconds.
const UNITS: [(u8, u32); 5] = [(b's', 1), (b'm', 60), (b'h', 3600), (b'd', 86_400), (b'w', 604_800)];

/// What the words of an entry are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WordKind {
    Name,
    Time,
    Other,
}

/// The entry with the origin in place of `@` in the data, and with times in seconds. `origin` is as
/// the scanner reads it.
pub(super) fn plain<'a>(entry: &'a [u8], origin: &[u8]) -> Cow<'a, [u8]> {
    let words = words(entry);
    let mut out = Vec::new();
    let mut done = 0;
    for (word, kind) in words.iter().zip(kinds(entry, &words)) {
        let text = &entry[word.clone()];
        let other: Option<Cow<'_, [u8]>> = match kind {
            WordKind::Name if text == b"@" => Some(origin.into()),
            WordKind::Time => seconds(text).map(|seconds| seconds.to_string().into_bytes().into()),
            _ => None,
        };
        let Some(other) = other else { continue };
        out.extend_from_slice(&entry[done..word.start]);
        out.extend_from_slice(&other);
        done = word.end;
    }
    if done == 0 {
        return entry.into();
    }
    out.extend_from_slice(&entry[done..]);
    out.into()
}

/// What each word of an entry is.
fn kinds(entry: &[u8], words: &[Range<usize>]) -> Vec<WordKind> {
    let text = |index: usize| words.get(index).map_or(&b""[..], |word| &entry[word.clone()]);
    let mut kinds = vec![WordKind::Other; words.len()];
    if text(0).starts_with(b"$") {
        let is_ttl = text(0).eq_ignore_ascii_case(b"$TTL") && words.len() > 1;
        is_ttl.then(|| kinds[1] = WordKind::Time);
        return kinds;
    }
    // An entry that begins with a space has no name.
    let mut at = usize::from(!entry.starts_with(b" ") && !entry.starts_with(b"\t"));
    while is_in_front_of_type(text(at)) {
        kinds[at] = WordKind::Time;
        at += 1;
    }
    let is_type = |rtype: &&str| text(at).eq_ignore_ascii_case(rtype.as_bytes());
    for (index, kind) in kinds.iter_mut().enumerate().skip(at + 1) {
        *kind = match index - at {
            1 | 2 if is_type(&"SOA") => WordKind::Name,
            // The third one is the serial number.
            4.. if is_type(&"SOA") => WordKind::Time,
            _ if TYPES_WITH_NAMES.iter().any(is_type) => WordKind::Name,
            _ => WordKind::Other,
        };
    }
    kinds
}

/// Whether a word is a class or a TTL, which stand in front of the type in any order.
fn is_in_front_of_type(word: &[u8]) -> bool {
    let is_class = [&b"IN"[..], b"CH", b"HS", b"CS"].iter().any(|class| word.eq_ignore_ascii_case(class));
    is_class || word.first().is_some_and(u8::is_ascii_digit)
}

/// The seconds of a time with units. `None` for another word, and for a time without a unit.
fn seconds(word: &[u8]) -> Option<u32> {
    let (mut sum, mut number) = (0_u32, None);
    for byte in word {
        if byte.is_ascii_digit() {
            let digit = u32::from(byte - b'0');
            number = Some(number.unwrap_or(0_u32).checked_mul(10)?.checked_add(digit)?);
        } else {
            let (_, unit) = UNITS.iter().find(|(letter, _)| *letter == byte.to_ascii_lowercase())?;
            sum = sum.checked_add(number.take()?.checked_mul(*unit)?)?;
        }
    }
    let ends_with_unit = number.is_none() && !word.is_empty();
    ends_with_unit.then_some(sum)
}

/// Where the words of an entry are that are not quoted. A quoted one is a word of no kind, so it
/// has a range too.
fn words(entry: &[u8]) -> Vec<Range<usize>> {
    let mut words: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    while at < entry.len() {
        let length = match entry[at] {
            b' ' | b'\t' | b'\r' | b'\n' | b'(' | b')' => 1,
            b';' => length_until(&entry[at..], |byte| byte == b'\n'),
            b'"' => 2 + length_until(&entry[at + 1..], |byte| byte == b'"'),
            _ => length_until(&entry[at..], |byte| b" \t\r\n();\"".contains(&byte)),
        };
        // A quoted string may lack its end.
        let end = (at + length).min(entry.len());
        if !b" \t\r\n();".contains(&entry[at]) {
            words.push(at..end);
        }
        at = end;
    }
    words
}

/// How many bytes stand in front of the first one that is an end, and is not escaped.
fn length_until(text: &[u8], is_end: impl Fn(u8) -> bool) -> usize {
    let mut is_escaped = false;
    let end = text.iter().position(|&byte| {
        let ends = !is_escaped && is_end(byte);
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    });
    end.unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plained(entry: &str) -> String {
        String::from_utf8(plain(entry.as_bytes(), b"example.org.").into_owned()).unwrap()
    }

    #[test]
    fn the_origin_stands_for_a_free_at_sign() {
        assert_eq!(plained("www 300 IN CNAME @ ; @\n"), "www 300 IN CNAME example.org. ; @\n");
        assert_eq!(plained("  MX 10 @"), "  MX 10 example.org.");
        assert_eq!(plained("ns ns @"), "ns ns example.org.");
        assert_eq!(plained("@ SOA @ @ (1\n2 3 4 5)"), "@ SOA example.org. example.org. (1\n2 3 4 5)");
        for same in ["@ A 192.0.2.1", "a TXT @", "a CNAME \\@", "a CNAME @b", "cname TXT @", "a MX 10 \"@\""]
        {
            assert_eq!(plained(same), same);
        }
    }

    #[test]
    fn times_with_units_are_seconds() {
        assert_eq!(plained("$TTL 1d"), "$TTL 86400");
        assert_eq!(plained("$ttl 1W2D3h4M5s ; 1d"), "$ttl 788645 ; 1d");
        assert_eq!(plained("1h 1h IN 1h"), "1h 3600 IN 3600");
        assert_eq!(plained("\tIN 1h30m A 192.0.2.1\n"), "\tIN 5400 A 192.0.2.1\n");
        assert_eq!(
            plained("@ SOA ns host (\n 1 ; 1h\n 2h 30m 2w 1h )"),
            "@ SOA ns host (\n 1 ; 1h\n 7200 1800 1209600 3600 )"
        );
        for same in ["$TTL 3600", "$TTL h", "$TTL 1x", "$TTL 9999999999h", "$ORIGIN 1h", "a TXT 1h", "a 1h2"]
        {
            assert_eq!(plained(same), same);
        }
    }

    #[test]
    fn words_end_where_the_scanner_ends_them() {
        let cut = |text: &'static str| -> Vec<&str> {
            words(text.as_bytes()).into_iter().map(|word| &text[word]).collect()
        };
        assert_eq!(cut("a(b)c;d\n e\\;f \"g \\\" h\"i"), ["a", "b", "c", "e\\;f", "\"g \\\" h\"", "i"]);
        assert_eq!(cut("\"open"), ["\"open"]);
        assert_eq!(cut("\\"), ["\\"]);
        assert_eq!(cut(""), [""; 0]);
    }
}
