//! [`StaticFiles`]: the files of a directory as a handler, for routers.
//!
//! It answers with the same code and the same cache as a `Site` of a directory. A site itself is
//! faster, because it has no request and no response between the connection and the file.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use selvedge_core::now;
use selvedge_handler::{Body, Handler, Mount, Request, Response};
use selvedge_io::blocking;

use crate::cache::CachedFile;
use crate::config::Config;
use crate::date::Clock;
use crate::document_root::{Backing, DocumentRoot};
use crate::error_page::{self, Extra};
use crate::files::{self, FileName, Files, LookedUp};
use crate::plain;
use crate::range::{Parts, Span};
use crate::request::Method;
use crate::responder::{Handled, Rest, Terms};
use crate::response::Persistence;
use crate::status::Status;

/// The files of a directory, as a handler: beneath a router, or behind layers. It has conditions,
/// ranges and a cache, as a [`Site`](crate::Site) of a directory does.
///
/// # Examples
/// ```
/// use selvedge::http::{Config, DocumentRoot, Handler, Request, StaticFiles, Body};
///
/// selvedge::run_local(async {
///     let files = StaticFiles::new(DocumentRoot::new("src").unwrap(), &Config::default());
///     let mut request = Request::new(Body::empty());
///     *request.uri_mut() = "/lib.rs".parse().unwrap();
///     let response = files.call(request).await;
///     assert_eq!(response.status(), 200);
///     assert!(response.into_body().read_all(1 << 20).await.unwrap().starts_with(b"//!"));
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub struct StaticFiles {
    files: RefCell<Files>,
}

impl StaticFiles {
    /// The files of `directory`. Of `config` the sizes of the cache and the validity count.
    pub fn new(directory: DocumentRoot, config: &Config) -> StaticFiles {
        StaticFiles { files: RefCell::new(Files::new(directory, config)) }
    }

    /// The call that looks up `name`.
    fn search(&self, name: FileName) -> impl FnOnce() -> LookedUp + Send + use<> {
        let files = self.files.borrow();
        let (directory, memory_bytes) = (files.directory().clone(), files.memory_bytes());
        move || {
            let found = files::search(&directory, &name, memory_bytes);
            (name, found)
        }
    }

    async fn answer(&self, head: &[u8], mount: Option<&Mount>) -> Response {
        let (clock, mut out, mut found) = (Clock::now(), Vec::with_capacity(1024), None);
        let request = match plain::parse(head) {
            Ok(request) => request,
            Err(status) => return page(status, &clock),
        };
        loop {
            let terms = Terms { now: now(), clock: &clock, persistence: Persistence::Implied, client: None };
            let looked_up = || found.take();
            let handled: Handled<FileName> =
                self.files.borrow_mut().answer(&request, &terms, looked_up, &mut out);
            match handled {
                Handled::Reply(reply) => {
                    let body = match reply.rest {
                        Rest::Nothing => Ok(None),
                        Rest::Span(file, span) => body_of(&file, span).map(Some),
                        Rest::Parts(file, parts) => parts_of(&file, &parts).map(Some),
                    };
                    return match body {
                        Ok(body) => plain::response(&out, body, mount),
                        Err(_) => page(Status::SERVICE_UNAVAILABLE, &clock),
                    };
                }
                Handled::Search(name) => match blocking(self.search(name)).await {
                    Ok(looked_up) => found = Some(looked_up),
                    Err(_) => return page(Status::SERVICE_UNAVAILABLE, &clock),
                },
            }
        }
    }
}

impl Handler for StaticFiles {
    async fn call(&self, request: Request) -> Response {
        let head = plain::head(&request);
        self.answer(&head, request.extensions().get::<Mount>()).await
    }
}

fn page(status: Status, clock: &Clock) -> Response {
    let mut out = Vec::new();
    error_page::put(status, Extra::None, Method::Get, Persistence::Implied, clock, &mut out);
    plain::response(&out, None, None)
}

/// A span of a file as a body, which keeps the file open.
fn body_of(file: &CachedFile, span: Span) -> rustix::io::Result<Body> {
    match &file.body {
        Backing::Memory(content) => Ok(Body::from(content[span.start as usize..span.end as usize].to_vec())),
        Backing::Open(open) => Ok(Body::file(Arc::new(open.duplicate()?), span.start..span.end)),
    }
}

/// Several spans of a file as a body.
fn parts_of(file: &CachedFile, parts: &Parts) -> rustix::io::Result<Body> {
    let bodies: Result<Vec<_>, _> = parts.spans().iter().map(|&span| body_of(file, span)).collect();
    Ok(multipart(parts.clone(), bodies?))
}

/// The body of a multipart/byteranges reply: each of `bodies` behind its part head.
pub(crate) fn multipart(parts: Parts, bodies: Vec<Body>) -> Body {
    Body::produce(async move |mut out| {
        for (index, mut body) in bodies.into_iter().enumerate() {
            let mut head = Vec::new();
            parts.put_part_head(index, &mut head);
            out.put(head).await;
            while let Some(piece) = body.next().await.transpose()? {
                out.put(piece).await;
            }
        }
        let mut end = Vec::new();
        parts.put_end(&mut end);
        out.put(end).await;
        Ok::<(), selvedge_handler::BodyError>(())
    })
}

impl fmt::Debug for StaticFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticFiles").field("directory", self.files.borrow().directory()).finish()
    }
}
