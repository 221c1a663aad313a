//! From the path of a request to a file name below the served directory, and back into a
//! `Location`.
//!
//! | in the path | here |
//! |---|---|
//! | `%41` | decoded once |
//! | `%4`, `%zz` | 400: no percent-encoding |
//! | `%00` | 400: no name contains it |
//! | `%2f` | 404: it is a `/` within a name, and no file has such a name |
//! | `\`, `%5c` | an ordinary character of a name |
//! | `.`, `..`, also encoded | removed as RFC 3986 §5.2.4 says, but `..` above the root is 400 |
//! | `//` | one `/` |
//! | `.name` | 404, because it is hidden; only `.well-known` at the top is not (RFC 8615) |

use crate::status::Status;

/// The only name with a leading dot that is not hidden. It must be at the top of the tree.
const WELL_KNOWN: &[u8] = b".well-known";

/// Resolves `path`, which starts with `/`, and writes the result to `name`. The result is decoded
/// and relative to the root. It has no leading `/`, and no component that is empty, `.`, `..` or
/// hidden. A path that ends in `/`, `.` or `..` names a directory. The name of a directory ends in
/// `/`, but the name of the root is empty.
///
/// The function clears `name` first. After an error the content of `name` is unspecified.
///
/// # Errors
/// 400 or 404, as the table of this module says; 400 too if `path` does not start with `/`.
///
/// # Complexity
/// One pass over the path and one over the name; allocates only if `name` has to grow.
///
/// # Examples
/// ```
/// use selvedge::http::{status::Status, target};
/// let mut name = Vec::new();
/// target::resolve(b"/a/./b/..//%63.html", &mut name)?;
/// assert_eq!(name, b"a/c.html");
/// assert_eq!(target::resolve(b"/%2e%2e/etc/passwd", &mut name), Err(Status::BAD_REQUEST));
/// # Ok::<(), Status>(())
/// ```
pub fn resolve(path: &[u8], name: &mut Vec<u8>) -> Result<(), Status> {
    name.clear();
    let rest = path.strip_prefix(b"/").ok_or(Status::BAD_REQUEST)?;
    let mut segments = rest.split(|&byte| byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        let start = name.len();
        decode(segment, name)?;
        match &name[start..] {
            b"" => {}
            b"." => name.truncate(start),
            b".." => {
                // `name` is empty or ends in `/` before each segment.
                let parent = name[..start].strip_suffix(b"/").ok_or(Status::BAD_REQUEST)?;
                let keep = parent.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
                name.truncate(keep);
            }
            _ if segments.peek().is_some() => name.push(b'/'),
            _ => {}
        }
    }
    let hidden = name
        .split(|&byte| byte == b'/')
        .enumerate()
        .any(|(depth, component)| component.starts_with(b".") && !(depth == 0 && component == WELL_KNOWN));
    if hidden { Err(Status::NOT_FOUND) } else { Ok(()) }
}

/// The part of `path` behind its first `/`, if [`resolve`] would give exactly this name: no byte is
/// encoded, and no component is empty or starts with a dot. After `None` the caller must call
/// `resolve`, because the path may still be valid.
///
/// # Examples
/// ```
/// use selvedge::http::target::plain;
/// assert_eq!(plain(b"/a/b.html"), Some(&b"a/b.html"[..]));
/// assert_eq!([plain(b"/%61"), plain(b"/a//b"), plain(b"/../b"), plain(b"*")], [None; 4]);
/// ```
#[inline]
pub fn plain(path: &[u8]) -> Option<&[u8]> {
    let (b'/', name) = path.split_first()? else { return None };
    let mut before = b'/';
    for &byte in name {
        if byte == b'%' || byte == 0 || (before == b'/' && (byte == b'.' || byte == b'/')) {
            return None;
        }
        before = byte;
    }
    Some(name)
}

/// Appends the percent-decoded `segment` to `name`.
fn decode(segment: &[u8], name: &mut Vec<u8>) -> Result<(), Status> {
    if segment.contains(&0) {
        return Err(Status::BAD_REQUEST);
    }
    let mut rest = segment;
    while let Some(percent) = rest.iter().position(|&byte| byte == b'%') {
        name.extend_from_slice(&rest[..percent]);
        let [high, low, behind @ ..] = &rest[percent + 1..] else { return Err(Status::BAD_REQUEST) };
        match (hex(*high), hex(*low)) {
            (Some(0), Some(0)) => return Err(Status::BAD_REQUEST),
            (Some(2), Some(15)) => return Err(Status::NOT_FOUND),
            (Some(high), Some(low)) => name.push(high << 4 | low),
            _ => return Err(Status::BAD_REQUEST),
        }
        rest = behind;
    }
    name.extend_from_slice(rest);
    Ok(())
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// Appends the value of the `Location` for a request that names a directory without the `/` at the
/// end: the absolute path of the directory `name`, percent-encoded, with the `/`, and the query if
/// there is one. `name` is as [`resolve`] gives it.
///
/// The value starts with exactly one `/`, because a browser takes a text behind `//` for the name
/// of a host.
pub fn directory_location(name: &[u8], query: Option<&[u8]>, out: &mut Vec<u8>) {
    out.push(b'/');
    for &byte in name.strip_suffix(b"/").unwrap_or(name) {
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(&byte) {
            out.push(byte);
        } else {
            const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
            out.extend_from_slice(&[b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
    }
    if !name.is_empty() {
        out.push(b'/');
    }
    if let Some(query) = query {
        out.push(b'?');
        out.extend_from_slice(query);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn resolved(path: &[u8]) -> Result<String, u16> {
        let mut name = Vec::new();
        resolve(path, &mut name).map_err(Status::code)?;
        Ok(String::from_utf8_lossy(&name).into_owned())
    }

    /// The slow obvious version decodes the whole path, and then goes through it with a stack of
    /// names.
    fn oracle(path: &[u8]) -> Result<String, u16> {
        let mut stack: Vec<Vec<u8>> = Vec::new();
        let mut directory = false;
        for segment in path.split(|&b| b == b'/').skip(1) {
            if segment.contains(&0) {
                return Err(400);
            }
            let mut decoded = Vec::new();
            let mut bytes = segment.iter();
            while let Some(&byte) = bytes.next() {
                decoded.push(match byte {
                    b'%' => {
                        let pair = [*bytes.next().ok_or(400u16)?, *bytes.next().ok_or(400u16)?];
                        if !pair.iter().all(u8::is_ascii_hexdigit) {
                            return Err(400);
                        }
                        match u8::from_str_radix(std::str::from_utf8(&pair).unwrap(), 16).unwrap() {
                            0 => return Err(400),
                            b'/' => return Err(404),
                            decoded => decoded,
                        }
                    }
                    byte => byte,
                });
            }
            directory = matches!(&decoded[..], b"" | b"." | b"..");
            match &decoded[..] {
                b"" | b"." => {}
                b".." => drop(stack.pop().ok_or(400u16)?),
                _ => stack.push(decoded),
            }
        }
        for (depth, name) in stack.iter().enumerate() {
            if name[0] == b'.' && (depth > 0 || name != WELL_KNOWN) {
                return Err(404);
            }
        }
        let mut joined = String::from_utf8_lossy(&stack.join(&b'/')).into_owned();
        if directory && !stack.is_empty() {
            joined.push('/');
        }
        Ok(joined)
    }

    #[test]
    fn table() {
        for (path, expected) in [
            ("/", Ok("")),
            ("/index.html", Ok("index.html")),
            ("/a/b/", Ok("a/b/")),
            ("/a//b", Ok("a/b")),
            ("//a", Ok("a")),
            ("/a/.", Ok("a/")),
            ("/a/b/..", Ok("a/")),
            ("/a/..", Ok("")),
            ("/a/../b", Ok("b")),
            ("/a%20b%c3%a9", Ok("a b\u{e9}")),
            ("/%2541", Ok("%41")),
            ("/a\\..\\b", Ok("a\\..\\b")),
            ("/%5c", Ok("\\")),
            ("/a?b", Ok("a?b")),
            ("/..a", Err(404)),
            ("/...", Err(404)),
            ("/..", Err(400)),
            ("/../etc/passwd", Err(400)),
            ("/a/../../b", Err(400)),
            ("/%2e%2E/b", Err(400)),
            ("/.%2e/b", Err(400)),
            ("/a%2fb", Err(404)),
            ("/..%2f..%2fetc", Err(404)),
            ("/%00", Err(400)),
            ("/a%00.html", Err(400)),
            ("/a\0%41", Err(400)),
            ("/%", Err(400)),
            ("/%4", Err(400)),
            ("/%zz", Err(400)),
            ("/.git/config", Err(404)),
            ("/a/.htaccess", Err(404)),
            ("/%2ehtaccess", Err(404)),
            ("/.well-known/acme", Ok(".well-known/acme")),
            ("/.well-known", Ok(".well-known")),
            ("/a/.well-known/acme", Err(404)),
            ("/.well-known/.secret", Err(404)),
            ("/.well-knownx", Err(404)),
            ("/.git/../b", Ok("b")),
            ("*", Err(400)),
            ("", Err(400)),
        ] {
            assert_eq!(resolved(path.as_bytes()), expected.map(str::to_owned), "{path}");
        }
    }

    #[test]
    fn locations() {
        for (name, query, expected) in [
            (&b"docs"[..], None, "/docs/"),
            (b"docs/", Some(&b"a=b"[..]), "/docs/?a=b"),
            (b"", None, "/"),
            (b"a b/%/\xff\r\n", None, "/a%20b/%25/%FF%0D%0A/"),
            (b"\\evil.example", None, "/%5Cevil.example/"),
        ] {
            let mut out = Vec::new();
            directory_location(name, query, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn resolves_as_the_oracle_does(
            path in "/((\\.|\\.\\.|%2e|%2E|/|%2f|%00|%|a|b|\\.well-known|%5c|\\\\|\u{0}|\u{e9}){0,3}/?){0,6}"
        ) {
            prop_assert_eq!(resolved(path.as_bytes()), oracle(path.as_bytes()));
        }

        #[test]
        fn what_is_plain_is_resolved_to_itself(path in "/?([a.%/*]|\\.\\.|%61|\u{0}|\u{e9}){0,6}") {
            let mut name = Vec::new();
            if let Some(plain) = plain(path.as_bytes()) {
                prop_assert_eq!(resolve(path.as_bytes(), &mut name), Ok(()));
                prop_assert_eq!(plain, name);
            }
        }

        #[test]
        fn never_escapes(path in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut name = Vec::new();
            if resolve(&[b"/", &path[..]].concat(), &mut name).is_ok() {
                crate::fuzz::assert_inside(&name);
            }
        }

        #[test]
        fn a_location_leads_back(path in "/([a-z %\u{e9}\\\\]{1,3}/){0,3}") {
            let mut name = Vec::new();
            if resolve(path.as_bytes(), &mut name).is_ok() {
                let mut location = Vec::new();
                directory_location(&name, None, &mut location);
                let mut again = Vec::new();
                prop_assert_eq!(resolve(&location, &mut again), Ok(()));
                prop_assert_eq!(again, name);
            }
        }
    }
}
