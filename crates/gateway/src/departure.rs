//! What a client that leaves brings to its end: [`attended`] runs a handler and its response's body
//! as long as the client stays.
//!
//! Dropping what another program does for the client ends it: a CGI program's process group, a
//! FastCGI request, a request to a server.

use bytes::Bytes;
use http::StatusCode;
use http_body::{Body as HttpBody, Frame, SizeHint};
use selvedge_core::now;
use selvedge_handler::{Body, BodyError, Caller, Cause, PlainOutcome, Request, Response, Source};
use selvedge_io::time::sleep_until;
use selvedge_scope::{Selected, select};
use std::borrow::Borrow;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// A request that takes no longer is not looked after, because the look takes a system call.
pub(crate) const UNATTENDED: Duration = Duration::from_millis(50);

/// The status in the log for a client that has left before the response.
const LEFT: u16 = 499;

/// Waits for the client's departure.
type Departure = Pin<Box<dyn Future<Output = ()>>>;

async fn departure(caller: impl Borrow<Caller>) {
    sleep_until(now() + UNATTENDED).await;
    caller.borrow().left().await;
}

/// Calls `answer` for a request, and drops the answer and its body when the client has left.
pub(crate) async fn attended(request: Request, answer: impl AsyncFnOnce(Request) -> Response) -> Response {
    let Some(caller) = request.extensions().get::<Caller>().cloned() else { return answer(request).await };
    match select((answer(request), departure(caller.clone()))).await {
        Selected::First(response) => with_attended_body(response, caller),
        Selected::Second(()) => has_left(),
    }
}

/// [`attended`] for an answer that may stay bytes. The answer is a pinned one, because it is large
/// and would be copied.
pub(crate) async fn attended_plain(
    caller: &Caller,
    answer: Pin<&mut impl Future<Output = PlainOutcome>>,
) -> PlainOutcome {
    match select((answer, departure(caller))).await {
        Selected::First(PlainOutcome::Response(response)) => {
            with_attended_body(*response, caller.clone()).into()
        }
        Selected::First(plain) => plain,
        Selected::Second(()) => has_left().into(),
    }
}

/// What is logged for a client that has left before the response.
fn has_left() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::from_u16(LEFT).expect("it has three digits");
    response
}

fn with_attended_body(response: Response, caller: Caller) -> Response {
    let (parts, body) = response.into_parts();
    let body = match body.into_source() {
        Source::Stream(stream) => Body::new(AttendedBody { stream, departure: Box::pin(departure(caller)) }),
        source => source.into(),
    };
    Response::from_parts(parts, body)
}

/// A body that breaks off when the client has left, although the client is owed nothing at the
/// moment.
struct AttendedBody<S: ?Sized> {
    departure: Departure,
    stream: Pin<Box<S>>,
}

impl<S> HttpBody for AttendedBody<S>
where
    S: HttpBody<Data = Bytes, Error = BodyError> + ?Sized,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Poll::Ready(frame) = self.stream.as_mut().poll_frame(cx) {
            return Poll::Ready(frame);
        }
        match self.departure.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Some(Err(BodyError::new(Cause::Disconnected)))),
            Poll::Pending => Poll::Pending,
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.stream.size_hint()
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }
}
