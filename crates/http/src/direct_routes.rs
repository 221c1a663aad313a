//! [`DirectRoutes`]: the handler of a site with routes, where files are read past the page cache.
//!
//! `Routed` answers as it does for a connection: rules, languages, codings, listings, error pages.
//! This handler asks it, has its questions answered on the blocking pool, and makes the body of the
//! reply of blocks. `front.rs` puts it before the routes of a site with a [`BlockCache`].

use crate::block_cache::BlockCache;
use crate::date::Clock;
use crate::file_body::body_of;
use crate::plain;
use crate::request;
use crate::responder::{Handled, Reply, Terms};
use crate::response::Persistence;
use crate::routed::{AskedQuestion, LearnedFacts, Routed};
use crate::static_files::page;
use crate::status::Status;
use selvedge_core::{Time, now};
use selvedge_handler::{Caller, DynHandler, Handler, Request, Response};
use selvedge_io::blocking;
use std::cell::RefCell;
use std::rc::Rc;

/// Routes, and the blocks of their files.
pub(crate) struct DirectRoutes {
    /// No borrow of it lives across a wait.
    routes: RefCell<Routed>,
    blocks: BlockCache,
}

impl DirectRoutes {
    pub(crate) fn new(routes: Routed, blocks: BlockCache) -> DirectRoutes {
        DirectRoutes { routes: RefCell::new(routes), blocks }
    }

    /// Empties the caches of names and heads. A block stays as long as its file is unchanged.
    pub(crate) fn forget(&self) {
        self.routes.borrow_mut().forget();
    }

    /// The handler that answers `request`: that of its route, if the route has one.
    pub(crate) fn route(self: &Rc<Self>, request: &request::Request<'_>) -> Rc<dyn DynHandler> {
        let of_route = self.routes.borrow_mut().route(request);
        of_route.unwrap_or_else(|| self.clone())
    }

    /// The response to a request with this head.
    async fn respond(&self, request: &Request) -> Response {
        let (began, clock, head) = (now(), Clock::now(), plain::routed_head(request));
        let peer = request.extensions().get::<Caller>().and_then(Caller::peer);
        let parsed = match plain::parse(&head) {
            Ok(parsed) => parsed,
            Err(status) => return self.counted(Err(status), began, &clock),
        };
        let (mut out, mut known) = (Vec::with_capacity(1024), None);
        let reply = loop {
            let terms = Terms { now: now(), clock: &clock, persistence: Persistence::Implied, client: None };
            let terms = (&terms, peer);
            let handled =
                self.routes.borrow_mut().answer_uncounted(&parsed, terms, known.take(), &mut out, began);
            match handled {
                Handled::Reply(reply) => break reply,
                Handled::Search(asked) => match answer(asked).await {
                    Some(facts) => known = Some(facts),
                    None => return self.counted(Err(Status::SERVICE_UNAVAILABLE), began, &clock),
                },
            }
        };
        let Reply { status, content_bytes, .. } = reply;
        let body = body_of(Some(&self.blocks), reply).await;
        let response = body.map(|body| (plain::response(&out, body, None), status, content_bytes));
        self.counted(response, began, &clock)
    }

    /// A response, or the page of a status, which is counted.
    fn counted(
        &self,
        response: Result<(Response, Status, u64), Status>,
        began: Time,
        clock: &Clock,
    ) -> Response {
        let (response, status, bytes) = response.unwrap_or_else(|status| {
            let page = page(status, clock);
            let bytes = page.body().len().unwrap_or(0);
            (page, status, bytes)
        });
        self.routes.borrow().counters.count(status.code(), bytes, now().since(began));
        response
    }
}

/// The answer to a question; `None` if the pool has failed.
async fn answer(asked: AskedQuestion) -> Option<LearnedFacts> {
    match asked.pool() {
        Some(pool) => pool.run(move || asked.answer()).await.ok(),
        None => blocking(move || asked.answer()).await.ok(),
    }
}

impl Handler for DirectRoutes {
    async fn call(&self, request: Request) -> Response {
        self.respond(&request).await
    }
}
