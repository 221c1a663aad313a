//! [`Front`]: the responder of a `Site`. It serves a directory, or has a handler answer.

use std::rc::Rc;

use selvedge_handler::DynHandler;

use crate::config::Config;
use crate::document_root::DocumentRoot;
use crate::error_page::{self, Extra};
use crate::files::{FileName, Files, LookedUp};
use crate::request::Request;
use crate::responder::{Handled, Reply, Responder, Rest, Terms};
use crate::status::Status;

/// What a site answers from.
pub(crate) struct Front {
    files: Option<Files>,
    handler: Option<Rc<dyn DynHandler>>,
}

impl Front {
    /// All requests are answered from the files of a directory.
    pub(crate) fn of_files(directory: DocumentRoot, config: &Config) -> Front {
        Front { files: Some(Files::new(directory, config)), handler: None }
    }

    /// All requests are answered by `handler`.
    pub(crate) fn of_handler(handler: Rc<dyn DynHandler>) -> Front {
        Front { files: None, handler: Some(handler) }
    }

    /// Empties the cache of files.
    pub(crate) fn forget(&mut self) {
        self.files.iter_mut().for_each(Files::forget);
    }
}

impl Responder for Front {
    type Search = FileName;
    type Found = LookedUp;

    #[inline]
    fn route(&mut self, _: &Request<'_>) -> Option<Rc<dyn DynHandler>> {
        self.handler.clone()
    }

    #[inline]
    fn answer(
        &mut self,
        request: &Request<'_>,
        terms: &Terms<'_>,
        found: &mut Option<Box<LookedUp>>,
        out: &mut Vec<u8>,
    ) -> Handled<FileName> {
        match &mut self.files {
            Some(files) => files.answer(request, terms, found, out),
            None => Handled::Reply(nothing(request, terms, out)),
        }
    }

    fn search(&self, search: FileName) -> impl FnOnce() -> Box<LookedUp> + Send + use<> + 'static {
        let files = self.files.as_ref().expect("only the files ask for a search");
        files.search(search)
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
        f.debug_struct("Front")
            .field("directory", &self.files.as_ref().map(Files::directory))
            .field("handler", &self.handler.is_some())
            .finish()
    }
}
