//! The canonical form of a request's path, in which paths and patterns are compared.
//!
//! Two spellings of one path must not take two routes, because a rule of access would be passed by
//! the other spelling. `RouteTable` is asked with canonical paths only. The form is still
//! percent-encoded, so it can stand in a `Location` and in a request to another server.
//!
//! | in the path | canonical |
//! |---|---|
//! | `%41`, `%7e` | `A`, `~`: a character that needs no encoding is decoded |
//! | `%c3`, a byte above 127 | `%C3` |
//! | `%2f` | `%2F`: it is no separator |
//! | `.`, `..`, also encoded | removed as RFC 3986 §5.2.4 says, but `..` above the root is refused |
//! | `//` | `/` |
//! | `%00`, `%4`, `%zz` | refused |

use std::borrow::Cow;

/// A path that has no canonical form: the reply is 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathError;

/// For each byte, whether it stands in a canonical path as it is.
const IS_LITERAL: [bool; 256] = {
    let mut literal = [false; 256];
    let marks = b"-._~!$&'()*+,;=:@";
    let mut byte = 0;
    while byte < 128 {
        literal[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let mut mark = 0;
    while mark < marks.len() {
        literal[marks[mark] as usize] = true;
        mark += 1;
    }
    literal
};

fn is_literal(byte: u8) -> bool {
    IS_LITERAL[usize::from(byte)]
}

/// Whether `path` is canonical.
fn is_canonical(path: &[u8]) -> bool {
    let Some((b'/', rest)) = path.split_first() else { return false };
    let mut before = b'/';
    for &byte in rest {
        // A component that begins with a dot may be `.` or `..`; the long way finds out.
        if !(is_literal(byte) || byte == b'/') || before == b'/' && (byte == b'/' || byte == b'.') {
            return false;
        }
        before = byte;
    }
    true
}

/// The canonical form of `path`, which starts with `/`.
///
/// # Errors
/// The path has a wrong percent-encoding or a NUL, leads above the root, or does not start with
/// `/`.
///
/// # Complexity
/// One pass. Allocates only if the path is not canonical already, or has a component that begins
/// with a dot.
///
/// # Examples
/// ```
/// use selvedge_site::path::{PathError, canonical};
/// assert_eq!(&*canonical(b"/a/./b/..//%7Ealice/%e4%2f")?, b"/a/~alice/%E4%2F");
/// assert_eq!(canonical(b"/%2e%2e/secret"), Err(PathError));
/// # Ok::<(), PathError>(())
/// ```
pub fn canonical(path: &[u8]) -> Result<Cow<'_, [u8]>, PathError> {
    if is_canonical(path) {
        return Ok(Cow::Borrowed(path));
    }
    let rest = path.strip_prefix(b"/").ok_or(PathError)?;
    let mut out = b"/".to_vec();
    let mut segments = rest.split(|&byte| byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        // `out` ends in `/` here.
        let start = out.len();
        put_segment(segment, &mut out)?;
        match &out[start..] {
            b"" => {}
            b"." => out.truncate(start),
            b".." => {
                let parent = out[..start - 1].iter().rposition(|&byte| byte == b'/').ok_or(PathError)?;
                out.truncate(parent + 1);
            }
            _ if segments.peek().is_some() => out.push(b'/'),
            _ => {}
        }
    }
    Ok(Cow::Owned(out))
}

fn put_segment(segment: &[u8], out: &mut Vec<u8>) -> Result<(), PathError> {
    let mut bytes = segment.iter().copied();
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                let (high, low) = (digit().ok_or(PathError)?, digit().ok_or(PathError)?);
                (high << 4 | low) as u8
            }
            byte => byte,
        };
        if byte == 0 {
            return Err(PathError);
        }
        put_encoded(byte, out);
    }
    Ok(())
}

/// Appends `byte` as it stands in a segment of a canonical path.
fn put_encoded(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    match is_literal(byte) {
        true => out.push(byte),
        false => {
            out.extend_from_slice(&[b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]])
        }
    }
}

/// Percent-encodes the name of a file so that it can stand in a link: every byte that is not a
/// literal of a path, `/` among them.
pub fn encoded(name: &[u8]) -> String {
    let mut out = Vec::with_capacity(name.len());
    name.iter().for_each(|&byte| put_encoded(byte, &mut out));
    String::from_utf8(out).expect("only ASCII characters are written")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spellings_of_one_path_are_one() {
        for (path, expected) in [
            ("/", "/"),
            ("/a/b", "/a/b"),
            ("/a//b/", "/a/b/"),
            ("/%61dmin/", "/admin/"),
            ("/x/../admin/", "/admin/"),
            ("/x/%2e%2e/admin/", "/admin/"),
            ("/admin/.", "/admin/"),
            ("/.hidden", "/.hidden"),
            ("/a%2fb", "/a%2Fb"),
            ("/a b\u{e4}", "/a%20b%C3%A4"),
            ("/a%3Fb", "/a%3Fb"),
        ] {
            assert_eq!(&*canonical(path.as_bytes()).unwrap(), expected.as_bytes(), "{path}");
        }
        for path in ["", "a", "*", "/..", "/a/../../b", "/%", "/%4", "/%zz", "/%00", "/a\0"] {
            assert_eq!(canonical(path.as_bytes()), Err(PathError), "{path}");
        }
    }

    proptest! {
        #[test]
        fn the_canonical_form_is_its_own(path in "/([a-c./%~ ]|%2[EeFf]|%41){0,20}") {
            if let Ok(once) = canonical(path.as_bytes()) {
                prop_assert_eq!(canonical(&once), Ok(Cow::Borrowed(&once[..])));
                prop_assert!(once.starts_with(b"/") && !once.windows(2).any(|pair| pair == b"//"));
                prop_assert!(!once.split(|&b| b == b'/').any(|part| part == b"." || part == b".."));
            }
        }

        #[test]
        fn the_short_way_and_the_long_way_agree(path in "/[a-c./%0-9A-F]{0,12}") {
            if is_canonical(path.as_bytes()) {
                // The long way is taken for the same path with a part in front that it removes.
                let long = [b"/.", path.as_bytes()].concat();
                prop_assert_eq!(&*canonical(&long).unwrap(), path.as_bytes());
            }
        }
    }
}
