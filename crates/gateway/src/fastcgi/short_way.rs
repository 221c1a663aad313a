//! The short way through [`FastCgi`](crate::FastCgi): a `GET` request becomes parameters, and the
//! head of the answer lines, without tables of fields.
//!
//! What is unusual takes the long way: a script that was not looked at in the last second, a name
//! that comes twice among the fields of the request. An unusual answer is read as `fastcgi.rs`
//! reads it. A test sends the same requests both ways.

use super::ApplicationAccess;
use super::record::{self, kind};
use super::talk::{self, ApplicationFailure, FirstOutput, OutgoingRequest, Talk, first_output};
use crate::cgi::head::{self, PlainHead};
use crate::cgi::variables::ToldRequest;
use crate::departure::{UNATTENDED, attended_plain};
use crate::proxy::plain;
use bytes::{Buf, Bytes};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Uri};
use selvedge_core::{Time, now};
use selvedge_handler::{
    Body, Caller, FieldLines, PlainAnswer, PlainCall, PlainOutcome, PlainRequest, Request,
};
use std::borrow::Cow;
use std::ops::Range;
use std::pin::pin;
use std::rc::Rc;

/// A request on the short way.
struct PlainTask {
    /// Its records; the program's name; its target; the lines of its fields. A local redirect needs
    /// all of it.
    bytes: Vec<u8>,
    program: Range<usize>,
    target: Range<usize>,
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
    let behind = [target.name(), request.target(), request.lines()];
    let more = behind.iter().map(|part| part.len()).sum::<usize>() + record::HEAD_BYTES;
    let mut bytes = access.beginning(&told, &target, more);
    record::put_stream_end(kind::STDIN, talk::REQUEST, &mut bytes);
    let program = bytes.len()..bytes.len() + target.name().len();
    behind.iter().for_each(|part| bytes.extend_from_slice(part));
    let target = program.end..program.end + request.target().len();
    let task = PlainTask { bytes, program, target, caller: request.caller().clone() };
    let access = access.clone();
    Some(Box::pin(async move {
        // An answer that comes at once needs no look after the client.
        let begun = match access.first_answer(&task).await {
            Ok(answer) => return PlainOutcome::Plain(answer),
            Err(begun) => begun,
        };
        // In a box, because the whole future is copied when it is made.
        Box::pin(async {
            let answer = pin!(access.finish_plain(begun, &task));
            if access.outlives_client { answer.await } else { attended_plain(&task.caller, answer).await }
        })
        .await
    }))
}

/// How far a request has come that has not got all of its answer at once.
enum BegunTask {
    /// It is to be asked for on a new connection.
    Anew,
    /// It is on a kept connection since then.
    UnderWay(Box<Talk>, Time),
    Failed(ApplicationFailure),
}

impl ApplicationAccess {
    /// Sends the request on a kept connection, and reads its answer if that is usual and comes as a
    /// whole.
    async fn first_answer(&self, task: &PlainTask) -> Result<PlainAnswer, BegunTask> {
        let Some(stream) = self.keeping.pool().take(&self.address) else { return Err(BegunTask::Anew) };
        let begun = now();
        match first_output(&stream, task.request(), UNATTENDED.min(self.limits.read)).await {
            Ok(FirstOutput::Whole(room, output)) => {
                self.keeping.give_back(&self.address, stream);
                let mut bytes = Bytes::from(room);
                bytes.truncate(output.end);
                bytes.advance(output.start);
                let Some(head) = usual_head(&bytes) else {
                    let talk = Talk::over(bytes, self.terms(&task.program()));
                    return Err(BegunTask::UnderWay(Box::new(talk), begun));
                };
                self.keeping.learn_since(begun);
                bytes.advance(head.head_bytes);
                Ok(plain_answer(head, bytes))
            }
            Ok(FirstOutput::Other(written, input)) => {
                let terms = self.terms(&task.program());
                // The time that has passed counts.
                let due = begun + self.limits.read;
                let talk = Talk::begun(stream, task.request(), (written, input), due, terms);
                Err(BegunTask::UnderWay(Box::new(talk), begun))
            }
            Err(ApplicationFailure::Closed(_)) => Err(BegunTask::Anew),
            Err(why) => Err(BegunTask::Failed(why)),
        }
    }

    /// The answer to a request that has come this far.
    async fn finish_plain(self: &Rc<Self>, begun: BegunTask, task: &PlainTask) -> PlainOutcome {
        let program = task.program();
        let anew = async || {
            let outgoing = OutgoingRequest::whole(task.request().to_vec());
            self.ask_anew(&outgoing, &program).await
        };
        let asked = match begun {
            BegunTask::Anew => anew().await,
            BegunTask::UnderWay(mut talk, begun) => match talk.head().await {
                Ok(head) => {
                    self.keeping.learn_since(begun);
                    Ok((*talk, head))
                }
                Err(ApplicationFailure::Closed(_)) => anew().await,
                Err(why) => Err(why),
            },
            BegunTask::Failed(why) => Err(why),
        };
        let (mut talk, head) = match asked {
            Ok(asked) => asked,
            Err(why) => return plain(self.failed(&program, &why)).into(),
        };
        // Long answers may come as a whole too, and answers on new connections.
        if let Some(lines) = head::lines(&head)
            && let Some(content) = talk.whole(lines.length)
        {
            return PlainOutcome::Plain(plain_answer(lines, content));
        }
        let response = match head::parse(&head, false) {
            Ok(head) => self.respond(talk, head, false, || task.parts()).await,
            Err(bad) => Err(self.failed(&program, &ApplicationFailure::BadHead(bad))),
        };
        response.unwrap_or_else(plain).into()
    }
}

/// The head of all of the output, if it is usual, and the program claims the right length.
fn usual_head(output: &[u8]) -> Option<PlainHead> {
    let head = head::lines(output)?;
    let content_bytes = (output.len() - head.head_bytes) as u64;
    head.length.is_none_or(|length| length == content_bytes).then_some(head)
}

fn plain_answer(head: PlainHead, content: Bytes) -> PlainAnswer {
    PlainAnswer {
        status: head.status,
        lines: head.lines.into(),
        names_server: head.names_server,
        names_date: head.names_date,
        content: content.into(),
    }
}

impl PlainTask {
    /// The records of the whole request.
    fn request(&self) -> &[u8] {
        &self.bytes[..self.program.start]
    }

    /// The program's name, for the log.
    fn program(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes[self.program.clone()])
    }

    /// The head of the request. What is no field of the library is left out: a redirect does not
    /// need it.
    fn parts(&self) -> Parts {
        let mut request = Request::new(Body::empty());
        let (target, lines) = (&self.bytes[self.target.clone()], &self.bytes[self.target.end..]);
        *request.uri_mut() = Uri::try_from(target).unwrap_or_default();
        for (name, value) in FieldLines::new(lines) {
            if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
                request.headers_mut().append(name, value);
            }
        }
        request.extensions_mut().insert(self.caller.clone());
        request.into_parts().0
    }
}
