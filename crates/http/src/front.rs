//! [`Front`]: the responder of a `Site`. It serves a directory, or has a handler answer, or has
//! routes.

use crate::config::Config;
use crate::direct_routes::DirectRoutes;
use crate::document_root::DocumentRoot;
use crate::error_page::{self, Extra};
use crate::files::{self, FileName, Files, LookedUp};
use crate::request::Request;
use crate::responder::{Handled, Reply, Responder, Rest, Terms};
use crate::routed::{AskedQuestion, LearnedFacts, Routed};
use crate::static_files::StaticFiles;
use crate::status::Status;
use selvedge_handler::DynHandler;
use selvedge_io::pool::Pool;
use std::rc::Rc;

/// What a site answers from.
pub(crate) struct Front {
    files: Option<Files>,
    others: NotOneDirectory,
}

/// What answers in a site that is not one directory.
enum NotOneDirectory {
    None,
    Handler(Rc<dyn DynHandler>),
    Routes(Box<Routed>),
    /// The files of a directory, past the page cache.
    DirectFiles(Rc<StaticFiles>),
    /// Routes with files past the page cache.
    DirectRoutes(Rc<DirectRoutes>),
}

/// A question about the disk, or of a route.
pub(crate) enum FrontSearch {
    File(FileName),
    Route(Box<AskedQuestion>),
}

impl From<FileName> for FrontSearch {
    fn from(name: FileName) -> FrontSearch {
        FrontSearch::File(name)
    }
}

/// The answer to a [`FrontSearch`].
pub(crate) enum FrontFound {
    File(LookedUp),
    Route(LearnedFacts),
}

impl Front {
    /// All requests are answered from the files of a directory.
    pub(crate) fn of_files(directory: DocumentRoot, config: &Config) -> Front {
        if config.blocks.is_some() {
            let files = Rc::new(StaticFiles::new(directory, config));
            return Front { files: None, others: NotOneDirectory::DirectFiles(files) };
        }
        Front { files: Some(Files::new(directory, config)), others: NotOneDirectory::None }
    }

    /// All requests are answered by `handler`.
    pub(crate) fn of_handler(handler: Rc<dyn DynHandler>) -> Front {
        Front { files: None, others: NotOneDirectory::Handler(handler) }
    }

    /// The routes answer.
    pub(crate) fn of_routes(routes: Routed) -> Front {
        let others = match routes.blocks() {
            Some(blocks) => NotOneDirectory::DirectRoutes(Rc::new(DirectRoutes::new(routes, blocks))),
            None => NotOneDirectory::Routes(Box::new(routes)),
        };
        Front { files: None, others }
    }

    /// Empties the caches of files.
    pub(crate) fn forget(&mut self) {
        self.files.iter_mut().for_each(Files::forget);
        match &mut self.others {
            NotOneDirectory::Routes(routes) => routes.forget(),
            NotOneDirectory::DirectFiles(files) => files.forget(),
            NotOneDirectory::DirectRoutes(routes) => routes.forget(),
            NotOneDirectory::None | NotOneDirectory::Handler(_) => {}
        }
    }
}

impl Responder for Front {
    type Search = FrontSearch;
    type Found = FrontFound;

    #[inline]
    fn route(&mut self, request: &Request<'_>) -> Option<Rc<dyn DynHandler>> {
        match &mut self.others {
            NotOneDirectory::None => None,
            NotOneDirectory::Handler(handler) => Some(handler.clone()),
            NotOneDirectory::Routes(routes) => routes.route(request),
            NotOneDirectory::DirectFiles(files) => Some(files.clone()),
            NotOneDirectory::DirectRoutes(routes) => Some(routes.route(request)),
        }
    }

    #[inline]
    fn answer(
        &mut self,
        request: &Request<'_>,
        terms: &Terms<'_>,
        found: &mut Option<Box<FrontFound>>,
        out: &mut Vec<u8>,
    ) -> Handled<FrontSearch> {
        match (&mut self.files, &mut self.others) {
            (Some(files), _) => {
                let looked_up = || match found.take().map(|found| *found) {
                    Some(FrontFound::File(looked_up)) => Some(looked_up),
                    _ => None,
                };
                files.answer(request, terms, looked_up, out)
            }
            (None, NotOneDirectory::Routes(routes)) => answer_by_route(routes, request, terms, found, out),
            (None, _) => Handled::Reply(nothing(request, terms, out)),
        }
    }

    fn pool(&self, search: &FrontSearch) -> Option<&'static Pool> {
        match search {
            FrontSearch::File(_) => None,
            FrontSearch::Route(asked) => asked.pool(),
        }
    }

    fn search(&self, search: FrontSearch) -> impl FnOnce() -> Box<FrontFound> + Send + use<> + 'static {
        let files = self.files.as_ref().map(|files| (files.directory().clone(), files.memory_bytes()));
        move || {
            Box::new(match search {
                FrontSearch::File(name) => {
                    let (directory, memory_bytes) = files.expect("only the files ask for a file");
                    let found = files::search(&directory, &name, memory_bytes);
                    FrontFound::File((name, found))
                }
                FrontSearch::Route(asked) => FrontFound::Route(asked.answer()),
            })
        }
    }
}

/// It is not inlined, so that the code for a directory alone stays as it is.
#[inline(never)]
fn answer_by_route(
    routes: &mut Routed,
    request: &Request<'_>,
    terms: &Terms<'_>,
    found: &mut Option<Box<FrontFound>>,
    out: &mut Vec<u8>,
) -> Handled<FrontSearch> {
    let known = match found.take().map(|found| *found) {
        Some(FrontFound::Route(known)) => Some(known),
        _ => None,
    };
    match routes.answer(request, terms, known, out) {
        Handled::Reply(reply) => Handled::Reply(reply),
        Handled::Search(asked) => Handled::Search(FrontSearch::Route(Box::new(asked))),
    }
}

/// The reply of a site without files to a request that no handler answers.
#[cold]
fn nothing(request: &Request<'_>, terms: &Terms<'_>, out: &mut Vec<u8>) -> Reply {
    let status = Status::NOT_FOUND;
    let content_bytes =
        error_page::put(status, Extra::None, request.method, terms.persistence, terms.clock, out);
    Reply { status, content_bytes, rest: Rest::Nothing }
}

impl std::fmt::Debug for Front {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let others = match &self.others {
            NotOneDirectory::None => "none",
            NotOneDirectory::Handler(_) => "a handler",
            NotOneDirectory::Routes(_) => "routes",
            NotOneDirectory::DirectFiles(_) => "files past the page cache",
            NotOneDirectory::DirectRoutes(_) => "routes with files past the page cache",
        };
        f.debug_struct("Front")
            .field("directory", &self.files.as_ref().map(Files::directory))
            .field("others", &others)
            .finish()
    }
}
