//! [`Json`]: a body of JSON, as an argument and as a reply.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use selvedge_handler::{Body, IntoResponse, Request, Response, Severity, report};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::extract::{Context, FromRequest, has_type, unsupported};
use crate::rejection::Rejection;

/// JSON: as an argument the whole body, up to the [limit](crate::BodyLimit), as a reply the body.
///
/// A body of another type than `application/json` or `.../...+json` is answered with 415, one that
/// is no JSON with 400, and JSON that does not fit `T` with 422. The reason names line and column.
#[derive(Clone, Copy, Debug)]
pub struct Json<T>(pub T);

impl<S, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Rejection;

    async fn from_request(request: Request, context: &Context<'_, S>) -> Result<Json<T>, Rejection> {
        if !has_type(request.headers(), |name| name == "application/json" || name.ends_with("+json")) {
            return Err(unsupported("application/json"));
        }
        let bytes = Bytes::from_request(request, context).await?;
        serde_json::from_slice(&bytes).map(Json).map_err(|error| {
            let status =
                if error.is_data() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::BAD_REQUEST };
            Rejection::new(status, format!("the JSON does not fit: {error}"))
        })
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    /// A value that cannot be written as JSON is answered with 500, and reported on standard error.
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(bytes) => {
                let mut response = Response::new(Body::from(bytes));
                let json = HeaderValue::from_static("application/json");
                response.headers_mut().insert(CONTENT_TYPE, json);
                response
            }
            Err(error) => {
                report(Severity::Error, format_args!("a reply cannot be written as JSON: {error}"));
                StatusCode::INTERNAL_SERVER_ERROR.into_response()
            }
        }
    }
}
