//! A page of text that the server makes itself: the status page, the metrics, lists of directories.
//!
//! `routed.rs` puts one behind the replies of a connection, and `status_page.rs` makes a handler's
//! response of it.

use crate::error_page::{self, Extra};
use crate::request::{Method, Request};
use crate::responder::{Reply, Rest, Terms};
use crate::response::Writer;
use crate::status::Status;

/// Appends the whole reply with `text` as its content, of the media type `kind`. A method that no
/// page answers gets the page for its error.
pub(crate) fn put(
    kind: &str,
    text: &str,
    request: &Request<'_>,
    terms: &Terms<'_>,
    out: &mut Vec<u8>,
) -> Reply {
    let Terms { persistence, clock, .. } = *terms;
    if let Some(status) = error_page::instead_of_file(request) {
        let content_bytes = error_page::put(status, Extra::None, request.method, persistence, clock, out);
        return Reply { status, content_bytes, rest: Rest::Nothing };
    }
    let head = Writer::begin(Status::OK, clock, out)
        .field("Content-Type", kind.as_bytes())
        .number("Content-Length", text.len() as u64)
        .field("Cache-Control", b"no-cache");
    head.end(persistence);
    let is_head = request.method == Method::Head;
    if !is_head {
        out.extend_from_slice(text.as_bytes());
    }
    let content_bytes = if is_head { 0 } else { text.len() as u64 };
    Reply { status: Status::OK, content_bytes, rest: Rest::Nothing }
}
