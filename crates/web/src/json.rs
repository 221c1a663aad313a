//! [`Json`]: a body of JSON, as an argument and as a reply.

use crate::extract::{Context, FromRequest, content, fits_type, has_type, unsupported};
use crate::rejection::Rejection;
use bytes::Bytes;
use http::StatusCode;
use selvedge_handler::{
    ContentType, IntoResponse, PlainOutcome, PlainRequest, Request, Response, Severity, report,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// JSON: as an argument the whole body, up to the [limit](crate::BodyLimit), as a reply the body.
///
/// A body of another type than `application/json` or `.../...+json` is answered with 415, one that
/// is no JSON with 400, and JSON that does not fit `T` with 422. The reason names line and column.
#[derive(Clone, Copy, Debug)]
pub struct Json<T>(pub T);

impl<S, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Rejection;

    async fn from_request(request: Request, context: &Context<'_, S>) -> Result<Json<T>, Rejection> {
        if !has_type(request.headers(), is_json) {
            return Err(unsupported("application/json"));
        }
        read(&Bytes::from_request(request, context).await?)
    }

    fn from_plain(request: &PlainRequest<'_>, _: &Context<'_, S>) -> Option<Result<Json<T>, Rejection>> {
        if !request.value("content-type").is_some_and(|value| fits_type(value, is_json)) {
            return Some(Err(unsupported("application/json")));
        }
        content(request).map(read)
    }
}

fn is_json(name: &str) -> bool {
    let suffix = name.len().checked_sub("+json".len()).and_then(|at| name.get(at..));
    name.eq_ignore_ascii_case("application/json")
        || suffix.is_some_and(|suffix| suffix.eq_ignore_ascii_case("+json"))
}

fn read<T: DeserializeOwned>(text: &[u8]) -> Result<Json<T>, Rejection> {
    serde_json::from_slice(text).map(Json).map_err(|error| {
        let status = if error.is_data() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::BAD_REQUEST };
        Rejection::new(status, format!("the JSON does not fit: {error}"))
    })
}

impl<T: Serialize> IntoResponse for Json<T> {
    /// A value that cannot be written as JSON is answered with 500, and reported on standard error.
    fn into_response(self) -> Response {
        match written(&self.0) {
            Some(text) => ContentType::json().response(text.into()),
            None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }

    fn into_outcome(self) -> PlainOutcome {
        match written(&self.0) {
            Some(text) => ContentType::json().plain(text),
            None => StatusCode::INTERNAL_SERVER_ERROR.into_outcome(),
        }
    }
}

fn written(value: &impl Serialize) -> Option<Vec<u8>> {
    let text = serde_json::to_vec(value);
    text.inspect_err(|error| {
        report(Severity::Error, format_args!("a reply cannot be written as JSON: {error}"));
    })
    .ok()
}
