//! The short way through [`FastCgi`](crate::FastCgi): a `GET` request becomes parameters, and the
//! head of the answer lines, without tables of fields.
//!
//! What is unusual takes the long way: a script that was not looked at in the last second, a name
//! that comes twice among the fields of the request. An unusual answer is read as `fastcgi.rs`
//! reads it. A test sends the same requests both ways.

use super::ApplicationAccess;
use super::talk::{ApplicationFailure, Talk};
use crate::cgi::head;
use crate::cgi::variables::ToldRequest;
use crate::departure::attended_plain;
use crate::proxy::plain;
use http::request::Parts;
use http::{HeaderName, HeaderValue, StatusCode, Uri};
use selvedge_handler::{
    Body, Caller, FieldLines, PlainAnswer, PlainCall, PlainOutcome, PlainRequest, Request,
};
use std::pin::pin;
use std::rc::Rc;

/// What is left of a request when its parameters are made: a local redirect needs all of it.
struct Kept {
    /// The target, and the lines of the fields behind it.
    bytes: Vec<u8>,
    target_len: usize,
    caller: Caller,
}

/// The answer to a request, if it goes the short way.
pub(super) fn call(access: &Rc<ApplicationAccess>, request: &PlainRequest<'_>) -> Option<PlainCall> {
    if !request.is_bare_get() {
        return None;
    }
    let (path, query) = request.path_and_query()?;
    let told = ToldRequest::of_plain(request, query)?;
    let target = access.named(path).ok()??;
    if access.suffix.is_some() && !access.known.knows(&target) {
        return None;
    }
    let beginning = access.beginning(&told, &target);
    let program = String::from_utf8_lossy(&target.name).into_owned();
    let kept = Kept {
        bytes: [request.target(), request.lines()].concat(),
        target_len: request.target().len(),
        caller: request.caller().clone(),
    };
    let access = access.clone();
    Some(Box::pin(async move {
        let caller = kept.caller.clone();
        let answer = pin!(access.answer_plain(beginning, &program, kept));
        if access.outlives_client { answer.await } else { attended_plain(&caller, answer).await }
    }))
}

impl ApplicationAccess {
    async fn answer_plain(self: &Rc<Self>, beginning: Vec<u8>, program: &str, kept: Kept) -> PlainOutcome {
        let (mut talk, head) = match self.ask(beginning, Body::empty(), true, program).await {
            Ok(asked) => asked,
            Err(why) => return plain(self.failed(program, &why)).into(),
        };
        if let Some(lines) = head::lines(&head)
            && let Some(content) = talk.whole(lines.length)
        {
            return PlainOutcome::Plain(PlainAnswer {
                status: lines.status,
                lines: lines.lines.into(),
                names_server: lines.names_server,
                names_date: lines.names_date,
                content: content.into(),
            });
        }
        // In a box, because most answers are whole, and the whole future is copied when it is made.
        let response = Box::pin(self.respond_to_kept(talk, &head, program, kept)).await;
        response.unwrap_or_else(plain).into()
    }

    async fn respond_to_kept(
        self: &Rc<Self>,
        talk: Talk,
        head: &[u8],
        program: &str,
        kept: Kept,
    ) -> Result<selvedge_handler::Response, StatusCode> {
        let head = head::parse(head, false).map_err(ApplicationFailure::BadHead);
        let head = head.map_err(|why| self.failed(program, &why))?;
        self.respond(talk, head, false, || kept.parts()).await
    }
}

impl Kept {
    /// The head of the request. What is no field of the library is left out: a redirect does not
    /// need it.
    fn parts(self) -> Parts {
        let mut request = Request::new(Body::empty());
        let (target, lines) = self.bytes.split_at(self.target_len);
        *request.uri_mut() = Uri::try_from(target).unwrap_or_default();
        for (name, value) in FieldLines::new(lines) {
            if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
                request.headers_mut().append(name, value);
            }
        }
        request.extensions_mut().insert(self.caller);
        request.into_parts().0
    }
}
