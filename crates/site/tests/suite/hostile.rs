//! The fuzz targets' functions with texts that are nearly right, and with any bytes.

use proptest::prelude::*;
use selvedge_site::fuzz;

/// Lines that are near to a configuration in TOML.
const TOML: &str = "(listen|workers|processes|x) = (\\[?'[a-z0-9:/*.]{0,6}'\\]?|-?[0-9]{1,20}|nan|inf)\n|\
    \\[\\[(host|route|host.route)\\]\\]\n|\\[(limits|log|cache)\\]\n|\
    (path|directory|redirect|proxy|page|index|listing|names|idle|answer|allow|format|rate|auth|cors|headers) = \
    ('[a-z/$*{},. ]{0,8}'|\\['[a-z/$.*]{0,5}'\\]|[0-9.]{1,4}|\\{ ?\\})\n";

/// Lines that are near to a route file.
const ROUTES: &str =
    "\\[[a-z*. ]{0,6}\\]?\n|(/[a-z~%0-9.]{0,4}){0,3}/? (->|=>|>>|<<|=) [a-z:/$.0-9]{0,10}( x)?\n|#[a-z]\n";

proptest! {
    #[test]
    fn texts_that_are_nearly_right(
        toml in prop::collection::vec(TOML, 0..8),
        routes in prop::collection::vec(ROUTES, 0..6),
    ) {
        fuzz::configuration(toml.concat().as_bytes());
        fuzz::mighty_routes(routes.concat().as_bytes());
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        fuzz::configuration(&bytes);
        fuzz::mighty_routes(&bytes);
        fuzz::paths(&[b"/", &bytes[..]].concat());
        fuzz::proxy_protocol(&bytes);
        fuzz::proxy_protocol(&[b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c", &bytes[..]].concat());
    }

    #[test]
    fn lines_of_the_proxy_protocol(line in "PROXY (TCP4|TCP6|UNKNOWN)( [0-9.:]{1,9}){0,5}\r?\n?.{0,3}") {
        fuzz::proxy_protocol(line.as_bytes());
    }
}
