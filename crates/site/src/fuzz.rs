//! What the fuzz targets run: each function takes any bytes and panics if an invariant does not
//! hold.

use crate::path::canonical;
use crate::proxy_protocol::{self, HEAD_MAX};
#[cfg(feature = "config")]
use crate::table::RouteTable;

/// The PROXY protocol: a head that is complete stays the same with more bytes behind it, and every
/// prefix of it is incomplete.
pub fn proxy_protocol(data: &[u8]) {
    if let Ok(Some(head)) = proxy_protocol::parse(data) {
        assert!(head.len <= data.len() && head.len <= HEAD_MAX);
        assert_eq!(proxy_protocol::parse(&data[..head.len]), Ok(Some(head)));
        assert!((0..head.len).all(|cut| proxy_protocol::parse(&data[..cut]) == Ok(None)));
    }
}

/// The canonical form: it is its own, and no component of it leads up.
pub fn paths(data: &[u8]) {
    if let Ok(once) = canonical(data) {
        assert_eq!(canonical(&once).as_deref(), Ok(&once[..]));
        assert!(!once.split(|&byte| byte == b'/').any(|part| part == b".." || part == b"."));
    }
}

/// The configuration in TOML: it is read or refused at a place that is in the text.
#[cfg(feature = "config")]
pub fn configuration(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match crate::read("f", text, "/".as_ref(), |_| Ok(String::new())) {
        Ok((_, table)) => ask(&table),
        Err(mistake) => assert!(mistake.line <= text.matches('\n').count() + 1),
    }
}

/// Mighttpd's route file.
#[cfg(feature = "config")]
pub fn mighty_routes(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match crate::mighty::routes("f", text, &crate::mighty::Defaults::default()) {
        Ok(table) => ask(&table),
        Err(mistake) => assert!(mistake.line <= text.matches('\n').count() + 1),
    }
}

/// Asks a table for some requests: none may panic.
#[cfg(feature = "config")]
fn ask(table: &RouteTable) {
    for path in ["/", "/a", "/a/b.php"] {
        if let Some(matched) = table.route(b"example.org:80", path.as_bytes()) {
            let rest = matched.rest(path.as_bytes());
            assert!(matched.lacks_slash || rest.starts_with(b"/"));
        }
    }
}
