//! The one spelling under which a graph knows a path.
//!
//! A graph that meets two spellings of one file has two nodes, and then an edge does not wait for
//! the other that makes its input. So each reader of paths calls [`canonicalize`] before
//! `Graph::node` and `Graph::find`: the parser, `dyndep.rs`, the readers of depfiles, and `app.rs`
//! for the targets. The deps log is the exception, because it holds canonical paths alone.

/// Brings a path into its canonical form, in place: no `.` as a component, no `x/..`, no empty
/// component, no slash at the end. A path that names the current directory becomes `.`.
///
/// Links are not followed, so `a/../b` is `b` even if `a` is a link. O(length).
///
/// # Examples
/// ```
/// let mut path = b"./src//lib/../main.c".to_vec();
/// selvedge_make::canonical::canonicalize(&mut path);
/// assert_eq!(path, b"src/main.c");
/// ```
pub fn canonicalize(path: &mut Vec<u8>) {
    if is_canonical(path) {
        return;
    }
    let absolute = path.first() == Some(&b'/');
    let start = usize::from(absolute);
    // The components up to `end` are canonical; `named` of them can still be taken back by a `..`.
    let (mut read, mut end, mut named) = (start, start, 0_usize);
    while read < path.len() {
        let stop = path[read..].iter().position(|byte| *byte == b'/').map_or(path.len(), |at| read + at);
        let component = &path[read..stop];
        let after = stop + 1;
        if component == b".." && named > 0 {
            named -= 1;
            let kept = &path[start..end];
            end = kept.iter().rposition(|byte| *byte == b'/').map_or(start, |at| start + at);
        } else if !component.is_empty() && component != b"." {
            named += usize::from(component != b"..");
            if end > start {
                path[end] = b'/';
                end += 1;
            }
            path.copy_within(read..stop, end);
            end += stop - read;
        }
        read = after;
    }
    path.truncate(end);
    if path.is_empty() {
        path.push(b'.');
    }
}

/// Whether the path has no component that [`canonicalize`] would change, seen by a quick look: no
/// component begins with a dot or is empty.
pub(crate) fn is_canonical(path: &[u8]) -> bool {
    let relative = path.strip_prefix(b"/").unwrap_or(path);
    // Whether a component begins here.
    let mut begins = true;
    for byte in relative {
        if begins && matches!(byte, b'.' | b'/') {
            return false;
        }
        begins = *byte == b'/';
    }
    !begins
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(path: &str) -> String {
        let mut bytes = path.as_bytes().to_vec();
        canonicalize(&mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn paths_have_one_spelling() {
        let cases = [
            ("foo.h", "foo.h"),
            ("./foo.h", "foo.h"),
            ("./foo/./bar.h", "foo/bar.h"),
            ("./x/foo/../bar.h", "x/bar.h"),
            ("./x/../foo/../bar.h", "bar.h"),
            ("foo//bar", "foo/bar"),
            ("foo//.//..///bar", "bar"),
            ("./x/../../foo/../bar.h", "../bar.h"),
            ("../../foo/bar.h", "../../foo/bar.h"),
            ("foo/./.", "foo"),
            ("foo/bar/..", "foo"),
            ("foo/..", "."),
            ("./.hidden", ".hidden"),
            ("..dots/x", "..dots/x"),
            ("a/...", "a/..."),
            ("/foo/..", "/"),
            ("/foo", "/foo"),
            ("//foo", "/foo"),
            ("foo/", "foo"),
            ("./", "."),
            (".", "."),
            ("", "."),
        ];
        for (path, expected) in cases {
            assert_eq!(canonical(path), expected, "{path}");
        }
    }
}
