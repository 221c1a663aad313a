//! [`StaticFiles`]: the files of a directory as a handler, for routers.
//!
//! It answers with the same code and the same cache as a `Site` of a directory. A site itself is
//! faster, because it has no request and no response between the connection and the file.

use crate::block_cache::BlockCache;
use crate::config::Config;
use crate::date::Clock;
use crate::document_root::DocumentRoot;
use crate::error_page::{self, Extra};
use crate::file_body::body_of;
use crate::files::{self, FileName, Files, LookedUp};
use crate::plain;
use crate::request::Method;
use crate::responder::{Handled, Terms};
use crate::response::Persistence;
use crate::status::Status;
use selvedge_core::now;
use selvedge_handler::{Handler, Mount, Request, Response};
use selvedge_io::blocking;
use std::cell::RefCell;
use std::fmt;

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
    blocks: Option<BlockCache>,
}

impl StaticFiles {
    /// The files of `directory`. Of `config` the sizes of the cache, the cache of blocks and the
    /// validity count. With a cache of blocks the handler runs in threads of Selvedge only, and not
    /// on a foreign executor, because each block has a thread that reads it.
    pub fn new(directory: DocumentRoot, config: &Config) -> StaticFiles {
        let files = RefCell::new(Files::new(directory, config));
        StaticFiles { files, blocks: config.blocks.clone() }
    }

    /// Closes all files, so that the next request looks at them again.
    pub(crate) fn forget(&self) {
        self.files.borrow_mut().forget();
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
                    return match body_of(self.blocks.as_ref(), reply).await {
                        Ok(body) => plain::response(&out, body, mount),
                        Err(status) => page(status, &clock),
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

/// A page as a response.
pub(crate) fn page(status: Status, clock: &Clock) -> Response {
    let mut out = Vec::new();
    error_page::put(status, Extra::None, Method::Get, Persistence::Implied, clock, &mut out);
    plain::response(&out, None, None)
}

impl fmt::Debug for StaticFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticFiles").field("directory", self.files.borrow().directory()).finish()
    }
}
