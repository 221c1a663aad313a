//! What the fuzz targets run: each function takes any bytes and panics if an invariant does not
//! hold.
//!
//! `fuzz/fuzz_targets` has one target for each function; the tests of `request.rs` and `target.rs`
//! call some of them with bytes of their own. The module is public and hidden for that.

use crate::body::{Decoder, Framing};
use crate::request::{self, Limits};
use crate::target;

/// The request parser: takes pipelined requests off `data` until it wants more or refuses, and asks
/// that every prefix of a head be incomplete, that the slices lie within the head, and that its
/// path resolve inside the root.
pub fn requests(data: &[u8]) {
    let limits = Limits { head_bytes: 512, target_bytes: 128, body_bytes: 1 << 10 };
    let mut rest = data;
    while let Ok(Some(request)) = request::parse(rest, &limits) {
        assert!(request.len <= rest.len() && request.head.len() <= request.len);
        assert!(request.head.ends_with(b"\r\n\r\n") && request.head.starts_with(request.line));
        assert!(request.head.windows(2).all(|pair| pair[1] != b'\n' || pair[0] == b'\r'));
        assert!(request.path.starts_with(b"/") || request.is_asterisk());
        for cut in 0..request.len {
            assert_eq!(request::parse(&rest[..cut], &limits), Ok(None), "a prefix of {cut} bytes");
        }
        let alone = request::parse(&rest[..request.len], &limits);
        assert_eq!(
            alone.as_ref().map(Option::as_ref),
            Ok(Some(&request)),
            "what follows a head does not matter"
        );
        paths(request.path);
        let Ok(mut decoder) = Decoder::new(request.framing, limits.body_bytes) else { return };
        rest = &rest[request.len..];
        while !decoder.is_done() {
            match decoder.decode(rest) {
                Ok(piece) if piece.consumed > 0 || piece.done => rest = &rest[piece.consumed..],
                _ => return,
            }
        }
    }
}

/// The chunked decoder: `data` in one piece and byte by byte gives the same content, end and error.
pub fn chunks(data: &[u8]) {
    let run = |piece_bytes: usize| {
        let mut decoder = Decoder::new(Framing::Chunked, 1 << 10)?;
        let (mut content, mut used) = (Vec::new(), 0);
        for input in data.chunks(piece_bytes.max(1)) {
            let mut at = 0;
            while at < input.len() && !decoder.is_done() {
                let piece = decoder.decode(&input[at..])?;
                assert!(piece.consumed > 0 && piece.consumed <= input.len() - at);
                assert_eq!(piece.done, decoder.is_done());
                content.extend_from_slice(piece.content);
                at += piece.consumed;
            }
            used += at;
        }
        Ok::<_, crate::status::Status>((content, used, decoder.is_done()))
    };
    let whole = run(data.len());
    assert_eq!(whole, run(1));
    assert_eq!(whole, run(3));
}

/// The path resolver: whatever it accepts is a name inside the root.
pub fn paths(data: &[u8]) {
    let mut name = Vec::new();
    let resolved = target::resolve(data, &mut name);
    if let Some(plain) = target::plain(data) {
        assert_eq!((resolved, plain), (Ok(()), &name[..]), "the short way leads elsewhere");
    }
    if resolved.is_ok() {
        assert_inside(&name);
        let mut location = Vec::new();
        target::directory_location(&name, None, &mut location);
        assert!(location.starts_with(b"/") && !location.starts_with(b"//") && location.ends_with(b"/"));
        let mut again = Vec::new();
        assert_eq!(target::resolve(&location, &mut again), Ok(()), "a location can be asked for");
        assert_eq!(again.strip_suffix(b"/").unwrap_or(&again), name.strip_suffix(b"/").unwrap_or(&name));
    }
}

/// Panics if `name` is not a clean relative name: absolute, with an empty, `.` or `..` component,
/// hidden, or with NUL.
pub(crate) fn assert_inside(name: &[u8]) {
    assert!(!name.contains(&0));
    if name.is_empty() {
        return;
    }
    let name = name.strip_suffix(b"/").unwrap_or(name);
    for (depth, component) in name.split(|&byte| byte == b'/').enumerate() {
        assert!(!component.is_empty());
        assert!(!component.starts_with(b".") || depth == 0 && component == b".well-known");
    }
}
