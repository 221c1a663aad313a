//! Tests of handlers without sockets: a [`TestRequest`] in, an [`TestResponse`] out.
//!
//! A handler that waits needs a scheduler: `#[selvedge::test]`, a simulated world
//! (`#[selvedge::test(seeds = 0..100)]`), or `run_local`.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use selvedge_handler::{Body, Handler, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A request in the making.
#[derive(Debug)]
pub struct TestRequest(Request);

impl TestRequest {
    /// A request with this method for this target, a path with or without a query.
    ///
    /// # Panics
    /// If the target is none.
    pub fn new(method: Method, target: &str) -> TestRequest {
        let mut request = Request::new(Body::empty());
        *request.method_mut() = method;
        *request.uri_mut() = target.parse().unwrap_or_else(|error| panic!("{target}: {error}"));
        TestRequest(request)
    }

    /// `GET`
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn get(target: &str) -> TestRequest {
        TestRequest::new(Method::GET, target)
    }

    /// `POST`
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn post(target: &str) -> TestRequest {
        TestRequest::new(Method::POST, target)
    }

    /// The request with one more field.
    ///
    /// # Panics
    /// If the name or the value is none.
    pub fn header(mut self, name: &str, value: &str) -> TestRequest {
        let name: HeaderName = name.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
        let value: HeaderValue = value.parse().unwrap_or_else(|error| panic!("{value}: {error}"));
        self.0.headers_mut().append(name, value);
        self
    }

    /// The request with this body.
    pub fn body(mut self, body: impl Into<Body>) -> TestRequest {
        *self.0.body_mut() = body.into();
        self
    }

    /// The request with `value` as JSON.
    ///
    /// # Panics
    /// If the value cannot be written as JSON.
    pub fn json(self, value: &impl Serialize) -> TestRequest {
        let bytes = serde_json::to_vec(value).unwrap_or_else(|error| panic!("{error}"));
        self.header("content-type", "application/json").body(bytes)
    }
}

impl From<TestRequest> for Request {
    fn from(call: TestRequest) -> Request {
        call.0
    }
}

/// A whole response.
#[derive(Debug)]
pub struct TestResponse {
    status: StatusCode,
    fields: HeaderMap,
    body: Bytes,
}

impl TestResponse {
    /// The number of its status.
    pub fn status(&self) -> u16 {
        self.status.as_u16()
    }

    /// The value of a field; `None` also if it is no text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.fields.get(name)?.to_str().ok()
    }

    /// All fields.
    pub fn headers(&self) -> &HeaderMap {
        &self.fields
    }

    /// The body.
    pub fn bytes(&self) -> &Bytes {
        &self.body
    }

    /// The body as text.
    ///
    /// # Panics
    /// If it is not UTF-8.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap_or_else(|error| panic!("the body is no text: {error}"))
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// If it is none, or another one.
    pub fn json<T: DeserializeOwned>(&self) -> T {
        let named = self.fields.get(CONTENT_TYPE);
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in {named:?} {:?}", String::from_utf8_lossy(&self.body)))
    }
}

/// Gives a request to `handler`, and reads the response to its end.
///
/// # Panics
/// If the body of the response fails.
pub async fn ask(handler: &impl Handler, request: impl Into<Request>) -> TestResponse {
    let (parts, body) = handler.call(request.into()).await.into_parts();
    let body = body.read_all(u64::MAX).await.unwrap_or_else(|error| panic!("{error}"));
    TestResponse { status: parts.status, fields: parts.headers, body }
}

/// Asks for `target` with `GET`.
///
/// # Panics
/// As [`ask`].
pub async fn get(handler: &impl Handler, target: &str) -> TestResponse {
    ask(handler, TestRequest::get(target)).await
}

/// Sends `body` to `target` with `POST`.
///
/// # Panics
/// As [`ask`].
pub async fn post(handler: &impl Handler, target: &str, body: impl Into<Body>) -> TestResponse {
    ask(handler, TestRequest::post(target).body(body)).await
}
