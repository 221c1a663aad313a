//! [`RequestBuilder`]: a request that is sent by awaiting it.

use crate::answer_body::AnswerBody;
use crate::client::Client;
use crate::error::{Error, ErrorCause};
use crate::request_body::RequestBody;
use http::{HeaderName, HeaderValue, Method, Request, Response, request};
use std::fmt;
use std::future::IntoFuture;
use std::pin::Pin;

/// A request in the making. Awaiting it sends it, and gives the answer as soon as its head is
/// there. [`Client::get`] and its like begin one.
///
/// # Examples
/// ```
/// use selvedge::client::{Client, Error};
///
/// async fn sell(client: &Client) -> Result<bool, Error> {
///     let answer = client
///         .post("http://127.0.0.1:8080/sales")
///         .header("content-type", "application/json")
///         .body(r#"{"cloth": "linen"}"#)
///         .await?;
///     Ok(answer.status().is_success())
/// }
/// # let _ = sell;
/// ```
#[must_use = "a request is sent when it is awaited"]
pub struct RequestBuilder {
    client: Client,
    request: request::Builder,
    payload: RequestBody,
}

impl RequestBuilder {
    pub(crate) fn new(client: Client, method: Method, uri: &str) -> RequestBuilder {
        let request = Request::builder().method(method).uri(uri);
        RequestBuilder { client, request, payload: RequestBody::default() }
    }

    /// Adds a field. A name or a value that is none is told when the request is awaited.
    pub fn header<N, V>(mut self, name: N, value: V) -> RequestBuilder
    where
        N: TryInto<HeaderName, Error: Into<http::Error>>,
        V: TryInto<HeaderValue, Error: Into<http::Error>>,
    {
        self.request = self.request.header(name, value);
        self
    }

    /// Adds a value for the program's own use, such as an [`OnInterim`](crate::OnInterim).
    pub fn extension<T: Clone + Send + Sync + 'static>(mut self, value: T) -> RequestBuilder {
        self.request = self.request.extension(value);
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<RequestBody>) -> RequestBuilder {
        self.payload = body.into();
        self
    }
}

impl IntoFuture for RequestBuilder {
    type Output = Result<Response<AnswerBody>, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let invalid = |error| Error::with(ErrorCause::Request("the request is not valid"), error);
            let (parts, ()) = self.request.body(()).map_err(invalid)?.into_parts();
            self.client.send_and_follow(parts, self.payload).await
        })
    }
}

impl fmt::Debug for RequestBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBuilder").field("request", &self.request).finish_non_exhaustive()
    }
}
