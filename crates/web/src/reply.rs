//! Replies of one kind: [`Html`] and [`Redirect`].

use http::header::LOCATION;
use http::{HeaderValue, StatusCode};
use selvedge_handler::{Body, ContentType, IntoResponse, PlainOutcome, Response, Source};

/// A page of HTML.
#[derive(Clone, Debug)]
pub struct Html<T>(pub T);

impl<T: Into<Body>> IntoResponse for Html<T> {
    fn into_response(self) -> Response {
        ContentType::html().response(self.0.into())
    }

    fn into_outcome(self) -> PlainOutcome {
        match self.0.into().into_source() {
            Source::Bytes(content) => ContentType::html().plain(content),
            source => ContentType::html().response(source.into()).into(),
        }
    }
}

/// A redirect to another address.
#[derive(Clone, Debug)]
pub struct Redirect {
    status: StatusCode,
    to: HeaderValue,
}

impl Redirect {
    /// `303 See Other`: the client gets `to`, also after a form. A byte that no field may hold is
    /// dropped from `to`.
    pub fn to(to: &str) -> Redirect {
        Redirect::with(StatusCode::SEE_OTHER, to)
    }

    /// `307 Temporary Redirect`: the client repeats the request at `to`, with its method and body.
    pub fn temporary(to: &str) -> Redirect {
        Redirect::with(StatusCode::TEMPORARY_REDIRECT, to)
    }

    /// `308 Permanent Redirect`: as [`temporary`](Self::temporary), and the client may remember it.
    pub fn permanent(to: &str) -> Redirect {
        Redirect::with(StatusCode::PERMANENT_REDIRECT, to)
    }

    fn with(status: StatusCode, to: &str) -> Redirect {
        let visible: String = to.chars().filter(|char| !char.is_control()).collect();
        let to = HeaderValue::try_from(visible).expect("no control bytes are left");
        Redirect { status, to }
    }
}

impl IntoResponse for Redirect {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.headers_mut().insert(LOCATION, self.to);
        response
    }
}
