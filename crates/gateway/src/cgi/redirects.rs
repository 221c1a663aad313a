//! [`LocalRedirects`]: requests that a program leads to by a local redirect (RFC 3875 §6.2.2).

use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{Method, StatusCode};
use selvedge_handler::{Body, DynHandler, Request, Response};
use std::rc::Rc;

/// The most local redirects that one request may lead to.
const REDIRECTS_MAX: u32 = 10;

/// The handler that answers them; if there is none, the handler that has met the redirect answers
/// them.
#[derive(Clone, Default)]
pub(crate) struct LocalRedirects(Option<Rc<dyn DynHandler>>);

/// How many local redirects led to a request: an extension of it.
#[derive(Clone, Copy)]
struct RedirectCount(u32);

impl LocalRedirects {
    pub(crate) fn to(handler: impl DynHandler) -> LocalRedirects {
        LocalRedirects(Some(Rc::new(handler)))
    }

    /// The answer to a request for the path and query that a program has named.
    ///
    /// # Errors
    /// 500 if the path is none, or redirects lead to redirects without an end.
    pub(crate) async fn follow(
        &self,
        own: &dyn DynHandler,
        mut parts: Parts,
        path: &str,
    ) -> Result<Response, StatusCode> {
        let before = parts.extensions.get::<RedirectCount>().map_or(0, |count| count.0);
        if before >= REDIRECTS_MAX {
            return Err(StatusCode::INTERNAL_SERVER_ERROR);
        }
        parts.extensions.insert(RedirectCount(before + 1));
        parts.uri = path.parse().map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
        // The program has had the body.
        if parts.method != Method::HEAD {
            parts.method = Method::GET;
        }
        for field in [CONTENT_LENGTH, CONTENT_TYPE, CONTENT_ENCODING] {
            parts.headers.remove(field);
        }
        let request = Request::from_parts(parts, Body::empty());
        Ok(self.0.as_deref().unwrap_or(own).call_boxed(request).await)
    }
}
