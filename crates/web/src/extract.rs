//! Arguments of handlers: what each takes out of a request. [`FromParts`] is for arguments that
//! need the head alone, [`FromRequest`] for the last argument, which may take the body.

use crate::body_limit::{BODY_BYTES_MAX, BodyLimit};
use crate::fields::{self, FieldError};
use crate::parameters::{self, Parameters};
use crate::rejection::Rejection;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode, Uri};
use selvedge_handler::{Body, Caller, IntoResponse, PlainRequest, Request};
use serde::de::DeserializeOwned;
use std::convert::Infallible;

/// What a router knows of a request besides its head.
#[derive(Debug)]
pub struct Context<'r, S> {
    /// The state of the router.
    pub state: &'r S,
    pub(crate) parameters: Parameters<'r>,
}

/// An argument that is made of the head of a request. `S` is the state of the router.
pub trait FromParts<S>: Sized {
    /// What is answered if the request does not fit.
    type Rejection: IntoResponse;

    /// Makes the argument.
    ///
    /// # Errors
    /// If the request does not fit.
    fn from_parts(parts: &mut Parts, context: &Context<'_, S>) -> Result<Self, Self::Rejection>;

    /// Makes the argument of a request that stays bytes, which costs a fraction of an owned one.
    /// `None` asks for an owned request; so it is if not written. It must give what
    /// [`from_parts`](Self::from_parts) would. No layer is around the router then, so the request
    /// has no extension but its [`Caller`].
    ///
    /// # Errors
    /// If the request does not fit.
    fn from_plain(
        request: &PlainRequest<'_>,
        context: &Context<'_, S>,
    ) -> Option<Result<Self, Self::Rejection>> {
        let _ = (request, context);
        None
    }

    /// Checks the argument against the names of the parameters of a route, when the route is made.
    ///
    /// # Errors
    /// What does not fit.
    fn check(names: &[String]) -> Result<(), String> {
        let _ = names;
        Ok(())
    }
}

/// An argument that may take the body of a request: the last of a handler. Every [`FromParts`] is
/// one too; `M` tells the two kinds apart.
pub trait FromRequest<S, M = ViaRequest>: Sized {
    /// What is answered if the request does not fit.
    type Rejection: IntoResponse;

    /// Makes the argument.
    ///
    /// # Errors
    /// If the request does not fit.
    fn from_request(
        request: Request,
        context: &Context<'_, S>,
    ) -> impl Future<Output = Result<Self, Self::Rejection>>;

    /// As [`FromParts::from_plain`].
    ///
    /// # Errors
    /// If the request does not fit.
    fn from_plain(
        request: &PlainRequest<'_>,
        context: &Context<'_, S>,
    ) -> Option<Result<Self, Self::Rejection>> {
        let _ = (request, context);
        None
    }

    /// As [`FromParts::check`].
    ///
    /// # Errors
    /// What does not fit.
    fn check(names: &[String]) -> Result<(), String> {
        let _ = names;
        Ok(())
    }
}

/// The kind of arguments that are made of the head alone.
#[derive(Debug)]
pub enum ViaParts {}

/// The kind of arguments that are made of the whole request.
#[derive(Debug)]
pub enum ViaRequest {}

impl<S, T: FromParts<S>> FromRequest<S, ViaParts> for T {
    type Rejection = T::Rejection;

    async fn from_request(request: Request, context: &Context<'_, S>) -> Result<T, T::Rejection> {
        T::from_parts(&mut request.into_parts().0, context)
    }

    fn from_plain(request: &PlainRequest<'_>, context: &Context<'_, S>) -> Option<Result<T, T::Rejection>> {
        T::from_plain(request, context)
    }

    fn check(names: &[String]) -> Result<(), String> {
        T::check(names)
    }
}

/// The parameters of the path: one value for one parameter, a tuple for several in their order, or
/// a struct with their names. A parameter is percent-decoded, and parsed as the type asks.
///
/// A request with a parameter that cannot be parsed is answered with 400. A route panics when it is
/// made, if the type does not have the names of its parameters.
///
/// # Examples
/// ```
/// use selvedge::web::{Path, Router, testing::get};
///
/// async fn sum(Path((a, b)): Path<(u32, u32)>) -> String {
///     (a + b).to_string()
/// }
///
/// selvedge::run_local(async {
///     let router = Router::new().get("/sum/{a}/{b}", sum);
///     assert_eq!(get(&router, "/sum/12/30").await.text(), "42");
///     assert_eq!(get(&router, "/sum/12/x").await.status(), 400);
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Path<T>(pub T);

impl<S, T: DeserializeOwned> FromParts<S> for Path<T> {
    type Rejection = Rejection;

    fn from_parts(_: &mut Parts, context: &Context<'_, S>) -> Result<Path<T>, Rejection> {
        read_path(context)
    }

    fn from_plain(_: &PlainRequest<'_>, context: &Context<'_, S>) -> Option<Result<Path<T>, Rejection>> {
        Some(read_path(context))
    }

    fn check(names: &[String]) -> Result<(), String> {
        parameters::check::<T>(names)
    }
}

fn read_path<S, T: DeserializeOwned>(context: &Context<'_, S>) -> Result<Path<T>, Rejection> {
    context.parameters.read().map(Path).map_err(|misfit| misfits("the path", &misfit))
}

/// The query of the target, as a struct or a map. A request with another query is answered with
/// 400.
#[derive(Clone, Copy, Debug)]
pub struct Query<T>(pub T);

impl<S, T: DeserializeOwned> FromParts<S> for Query<T> {
    type Rejection = Rejection;

    fn from_parts(parts: &mut Parts, _: &Context<'_, S>) -> Result<Query<T>, Rejection> {
        read_query(parts.uri.query())
    }

    fn from_plain(request: &PlainRequest<'_>, _: &Context<'_, S>) -> Option<Result<Query<T>, Rejection>> {
        request.path_and_query().map(|(_, query)| read_query(query))
    }
}

fn read_query<T: DeserializeOwned>(query: Option<&str>) -> Result<Query<T>, Rejection> {
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes()).collect();
    fields::read(pairs).map(Query).map_err(|misfit| misfits("the query", &misfit))
}

fn misfits(what: &str, misfit: &FieldError) -> Rejection {
    Rejection::new(StatusCode::BAD_REQUEST, format!("{what} does not fit: {misfit}"))
}

/// A clone of the state of the [router](crate::Router::with_state).
#[derive(Clone, Copy, Debug)]
pub struct State<S>(pub S);

impl<S: Clone> FromParts<S> for State<S> {
    type Rejection = Infallible;

    fn from_parts(_: &mut Parts, context: &Context<'_, S>) -> Result<State<S>, Infallible> {
        Ok(State(context.state.clone()))
    }

    fn from_plain(_: &PlainRequest<'_>, context: &Context<'_, S>) -> Option<Result<State<S>, Infallible>> {
        Some(Ok(State(context.state.clone())))
    }
}

impl<S> FromParts<S> for Method {
    type Rejection = Infallible;

    fn from_parts(parts: &mut Parts, _: &Context<'_, S>) -> Result<Method, Infallible> {
        Ok(parts.method.clone())
    }

    fn from_plain(request: &PlainRequest<'_>, _: &Context<'_, S>) -> Option<Result<Method, Infallible>> {
        Some(Ok(request.method().clone()))
    }
}

impl<S> FromParts<S> for Uri {
    type Rejection = Infallible;

    fn from_parts(parts: &mut Parts, _: &Context<'_, S>) -> Result<Uri, Infallible> {
        Ok(parts.uri.clone())
    }

    fn from_plain(request: &PlainRequest<'_>, _: &Context<'_, S>) -> Option<Result<Uri, Infallible>> {
        request.target().try_into().ok().map(Ok)
    }
}

impl<S> FromParts<S> for HeaderMap {
    type Rejection = Infallible;

    fn from_parts(parts: &mut Parts, _: &Context<'_, S>) -> Result<HeaderMap, Infallible> {
        Ok(parts.headers.clone())
    }
}

/// The client. A request that comes from no engine has one without an address.
impl<S> FromParts<S> for Caller {
    type Rejection = Infallible;

    fn from_parts(parts: &mut Parts, _: &Context<'_, S>) -> Result<Caller, Infallible> {
        Ok(parts.extensions.get::<Caller>().cloned().unwrap_or_else(|| Caller::new(None)))
    }

    fn from_plain(request: &PlainRequest<'_>, _: &Context<'_, S>) -> Option<Result<Caller, Infallible>> {
        Some(Ok(request.caller().clone()))
    }
}

/// The argument, or why there is none.
impl<S, T: FromParts<S>> FromParts<S> for Result<T, T::Rejection> {
    type Rejection = Infallible;

    fn from_parts(
        parts: &mut Parts,
        context: &Context<'_, S>,
    ) -> Result<Result<T, T::Rejection>, Infallible> {
        Ok(T::from_parts(parts, context))
    }

    fn from_plain(
        request: &PlainRequest<'_>,
        context: &Context<'_, S>,
    ) -> Option<Result<Result<T, T::Rejection>, Infallible>> {
        T::from_plain(request, context).map(Ok)
    }

    fn check(names: &[String]) -> Result<(), String> {
        T::check(names)
    }
}

impl<S> FromRequest<S> for Request {
    type Rejection = Infallible;

    async fn from_request(request: Request, _: &Context<'_, S>) -> Result<Request, Infallible> {
        Ok(request)
    }
}

/// The body, to be read piece by piece, without a limit.
impl<S> FromRequest<S> for Body {
    type Rejection = Infallible;

    async fn from_request(request: Request, _: &Context<'_, S>) -> Result<Body, Infallible> {
        Ok(request.into_body())
    }
}

/// The whole body, up to the [limit](BodyLimit).
impl<S> FromRequest<S> for Bytes {
    type Rejection = Rejection;

    async fn from_request(request: Request, _: &Context<'_, S>) -> Result<Bytes, Rejection> {
        let bytes_max = BodyLimit::of(&request);
        Ok(request.into_body().read_all(bytes_max).await?)
    }

    fn from_plain(request: &PlainRequest<'_>, _: &Context<'_, S>) -> Option<Result<Bytes, Rejection>> {
        content(request).map(|content| Ok(Bytes::copy_from_slice(content)))
    }
}

/// The whole body as text, up to the [limit](BodyLimit). Text that is not UTF-8 is answered with
/// 400.
impl<S> FromRequest<S> for String {
    type Rejection = Rejection;

    async fn from_request(request: Request, context: &Context<'_, S>) -> Result<String, Rejection> {
        let bytes = Bytes::from_request(request, context).await?;
        String::from_utf8(bytes.into()).map_err(|_| not_utf8())
    }

    fn from_plain(request: &PlainRequest<'_>, _: &Context<'_, S>) -> Option<Result<String, Rejection>> {
        let text = std::str::from_utf8(content(request)?);
        Some(text.map(str::to_owned).map_err(|_| not_utf8()))
    }
}

#[cold]
fn not_utf8() -> Rejection {
    Rejection::new(StatusCode::BAD_REQUEST, "the body is not UTF-8")
}

/// The content of a request that stays bytes; `None` if it is too long, which an owned request is
/// told in the same words in all cases.
pub(crate) fn content<'h>(request: &PlainRequest<'h>) -> Option<&'h [u8]> {
    (request.content().len() as u64 <= BODY_BYTES_MAX).then(|| request.content())
}

/// A form (`application/x-www-form-urlencoded`), as a struct or a map: the body, or for `GET` and
/// `HEAD` the query. A body of another type is answered with 415, other fields with 422.
#[derive(Clone, Copy, Debug)]
pub struct Form<T>(pub T);

impl<S, T: DeserializeOwned> FromRequest<S> for Form<T> {
    type Rejection = Rejection;

    async fn from_request(request: Request, context: &Context<'_, S>) -> Result<Form<T>, Rejection> {
        if request.method() == Method::GET || request.method() == Method::HEAD {
            return read_form(request.uri().query().unwrap_or_default().as_bytes());
        }
        if !has_type(request.headers(), is_form) {
            return Err(unsupported(FORM));
        }
        read_form(&Bytes::from_request(request, context).await?)
    }

    fn from_plain(request: &PlainRequest<'_>, _: &Context<'_, S>) -> Option<Result<Form<T>, Rejection>> {
        if *request.method() == Method::GET {
            return request
                .path_and_query()
                .map(|(_, query)| read_form(query.unwrap_or_default().as_bytes()));
        }
        if !request.value("content-type").is_some_and(|value| fits_type(value, is_form)) {
            return Some(Err(unsupported(FORM)));
        }
        content(request).map(read_form)
    }
}

/// The type of a form.
const FORM: &str = "application/x-www-form-urlencoded";

fn is_form(name: &str) -> bool {
    name.eq_ignore_ascii_case(FORM)
}

fn read_form<T: DeserializeOwned>(text: &[u8]) -> Result<Form<T>, Rejection> {
    fields::read(form_urlencoded::parse(text).collect()).map(Form).map_err(|misfit| {
        Rejection::new(StatusCode::UNPROCESSABLE_ENTITY, format!("the form does not fit: {misfit}"))
    })
}

/// Whether `Content-Type` names a type that `fits`, which gets it without parameters, in upper and
/// lower case as it is.
pub(crate) fn has_type(fields: &HeaderMap, fits: impl Fn(&str) -> bool) -> bool {
    fields.get(CONTENT_TYPE).is_some_and(|value| fits_type(value.as_bytes(), fits))
}

/// [`has_type`] for the value of the field.
pub(crate) fn fits_type(value: &[u8], fits: impl Fn(&str) -> bool) -> bool {
    let is_visible = |&byte: &u8| byte == b'\t' || (b' '..=b'~').contains(&byte);
    let text = std::str::from_utf8(value).ok().filter(|_| value.iter().all(is_visible));
    text.is_some_and(|text| fits(text.split(';').next().unwrap_or_default().trim()))
}

/// The rejection of a body that has another type.
pub(crate) fn unsupported(wanted: &str) -> Rejection {
    Rejection::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, format!("the body is to have the type {wanted}"))
}
