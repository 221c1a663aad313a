//! [`Endpoint`]: an `async` function with arguments, as a route has it.

use crate::extract::{Context, FromParts, FromRequest};
use selvedge_handler::{IntoResponse, PlainCall, PlainRequest, Request, Response};
use std::pin::Pin;

/// An `async` function that answers the requests of a route. Each argument takes its part of the
/// request: all but the last are [`FromParts`], and the last is [`FromRequest`]. It has eight
/// arguments at most. `S` is the state of the router, and `A` names the arguments.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a route of this router",
    note = "a route is an `async fn`; its arguments implement `FromParts`, the last one `FromParts` or `FromRequest`; what it \
            returns implements `IntoResponse`; `State<S>` has the type that `Router::with_state` was given"
)]
pub trait Endpoint<S, A>: 'static {
    /// Answers `request`.
    fn call(&self, request: Request, context: &Context<'_, S>) -> impl Future<Output = Response>;

    /// Answers a request that stays bytes, if each argument can be made of it
    /// ([`FromParts::from_plain`]).
    fn call_plain(&self, request: &PlainRequest<'_>, context: &Context<'_, S>) -> Option<PlainCall>;

    /// Checks the arguments against the names of a route's parameters.
    ///
    /// # Errors
    /// What does not fit.
    fn check(names: &[String]) -> Result<(), String>;
}

impl<S, F, R> Endpoint<S, ()> for F
where
    F: Fn() -> R + 'static,
    R: Future + 'static,
    R::Output: IntoResponse,
{
    async fn call(&self, _: Request, _: &Context<'_, S>) -> Response {
        self().await.into_response()
    }

    fn call_plain(&self, _: &PlainRequest<'_>, _: &Context<'_, S>) -> Option<PlainCall> {
        Some(outcome(self()))
    }

    fn check(_: &[String]) -> Result<(), String> {
        Ok(())
    }
}

macro_rules! endpoints {
    ($($head:ident)*; $last:ident) => {
        #[allow(non_snake_case, unused_mut, unused_variables)]
        impl<S, M, F, R, $($head,)* $last> Endpoint<S, (M, $($head,)* $last,)> for F
        where
            F: Fn($($head,)* $last) -> R + 'static,
            R: Future + 'static,
            R::Output: IntoResponse,
            $($head: FromParts<S>,)*
            $last: FromRequest<S, M>,
        {
            async fn call(&self, request: Request, context: &Context<'_, S>) -> Response {
                let (mut parts, body) = request.into_parts();
                $(let $head = match $head::from_parts(&mut parts, context) {
                    Ok(argument) => argument,
                    Err(rejection) => return rejection.into_response(),
                };)*
                let $last = match $last::from_request(Request::from_parts(parts, body), context).await {
                    Ok(argument) => argument,
                    Err(rejection) => return rejection.into_response(),
                };
                self($($head,)* $last).await.into_response()
            }

            fn call_plain(&self, request: &PlainRequest<'_>, context: &Context<'_, S>) -> Option<PlainCall> {
                $(let $head = match $head::from_plain(request, context)? {
                    Ok(argument) => argument,
                    Err(rejection) => return Some(refusal(rejection)),
                };)*
                let $last = match $last::from_plain(request, context)? {
                    Ok(argument) => argument,
                    Err(rejection) => return Some(refusal(rejection)),
                };
                Some(outcome(self($($head,)* $last)))
            }

            fn check(names: &[String]) -> Result<(), String> {
                $($head::check(names)?;)*
                $last::check(names)
            }
        }
    };
}

endpoints! { ; A1 }
endpoints! { A1; A2 }
endpoints! { A1 A2; A3 }
endpoints! { A1 A2 A3; A4 }
endpoints! { A1 A2 A3 A4; A5 }
endpoints! { A1 A2 A3 A4 A5; A6 }
endpoints! { A1 A2 A3 A4 A5 A6; A7 }
endpoints! { A1 A2 A3 A4 A5 A6 A7; A8 }

/// The outcome of an endpoint's future.
fn outcome<R>(answer: R) -> PlainCall
where
    R: Future + 'static,
    R::Output: IntoResponse,
{
    Box::pin(async move { answer.await.into_outcome() })
}

/// The outcome for a request that does not fit an argument.
#[cold]
fn refusal(rejection: impl IntoResponse) -> PlainCall {
    Box::pin(std::future::ready(rejection.into_outcome()))
}

/// An [`Endpoint`] behind a pointer.
pub(crate) trait DynEndpoint<S>: 'static {
    fn call_boxed<'a>(
        &'a self,
        request: Request,
        context: &'a Context<'a, S>,
    ) -> Pin<Box<dyn Future<Output = Response> + 'a>>;

    fn call_plain(&self, request: &PlainRequest<'_>, context: &Context<'_, S>) -> Option<PlainCall>;
}

/// An endpoint with its arguments.
pub(crate) struct Erased<E, A>(pub(crate) E, pub(crate) std::marker::PhantomData<fn(A)>);

impl<S: 'static, A: 'static, E: Endpoint<S, A>> DynEndpoint<S> for Erased<E, A> {
    fn call_boxed<'a>(
        &'a self,
        request: Request,
        context: &'a Context<'a, S>,
    ) -> Pin<Box<dyn Future<Output = Response> + 'a>> {
        Box::pin(self.0.call(request, context))
    }
    fn call_plain(&self, request: &PlainRequest<'_>, context: &Context<'_, S>) -> Option<PlainCall> {
        self.0.call_plain(request, context)
    }
}
