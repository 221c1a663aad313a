//! `deps = msvc`: a compiler that names the headers it reads among its messages.
//!
//! `Runner::read_deps` in `records.rs` calls `read` after a command. The format is that of the
//! option `/showIncludes` of Microsoft's compiler. The rules for the lines that are dropped are
//! ninja's.

use crate::canonical::canonicalize;
use std::collections::BTreeSet;

/// The words before a header, unless the edge has others in `msvc_deps_prefix`.
const PREFIX: &[u8] = b"Note: including file: ";
/// Paths of headers that come with the compiler, in small letters. They do not change.
const OF_SYSTEM: [&[u8]; 2] = [b"program files", b"microsoft visual studio"];
/// The ends of names of sources. The compiler writes the name of the source first.
const SOURCES: [&[u8]; 5] = [b".c", b".cc", b".cxx", b".cpp", b".c++"];

/// Takes the headers out of a compiler's messages. Returns them in canonical form, each once, and
/// the messages that are left for the user. O(length).
pub(super) fn read(output: &[u8], prefix: &[u8]) -> (BTreeSet<Vec<u8>>, Vec<u8>) {
    let prefix = if prefix.is_empty() { PREFIX } else { prefix };
    let (mut headers, mut messages, mut has_headers) = (BTreeSet::new(), Vec::new(), false);
    for line in output.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let header = line.strip_prefix(prefix).map(<[u8]>::trim_ascii_start);
        if let Some(header) = header.filter(|header| !header.is_empty()) {
            has_headers = true;
            let mut header = header.to_vec();
            canonicalize(&mut header);
            let small = header.to_ascii_lowercase();
            let is = |part: &&[u8]| small.windows(part.len()).any(|window| window == *part);
            if !OF_SYSTEM.iter().any(is) {
                headers.insert(header);
            }
        } else if has_headers || !is_source(line) {
            messages.extend_from_slice(line);
            messages.push(b'\n');
        }
    }
    (headers, messages)
}

fn is_source(line: &[u8]) -> bool {
    let small = line.to_ascii_lowercase();
    SOURCES.iter().any(|end| small.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_the_source_are_taken_out_of_the_messages() {
        let output =
            b"a.cpp\r\nNote: including file:   x/../b.h\nNote: including file: c:\\Program Files\\v.h\n\
                       warning in b.c\nb.c";
        let (headers, messages) = read(output, b"");
        assert_eq!(headers.into_iter().collect::<Vec<_>>(), [b"b.h"]);
        assert_eq!(messages, b"warning in b.c\nb.c\n");
        assert_eq!(read(b"Liest: q.h\n", b"Liest: ").0.into_iter().collect::<Vec<_>>(), [b"q.h"]);
    }
}
