//! The responder of a site with routes: [`Routed`] asks the table of a [`Routing`] which route a
//! request takes, applies the route's rules, and answers.
//!
//! A reply that needs no waiting is made at once, as in `files.rs`. What may block, a look at the
//! disk, a password, a compression, is a [`Question`]: the connection has it answered on the
//! blocking pool and asks again, with all that was [`Learned`] for the request. So each question is
//! asked once for a request, and the second answer is made as the first.
//!
//! | File | Content |
//! |---|---|
//! | `routed/question.rs` | what is asked on the blocking pool, and what is learned there |
//! | `routed/candidates.rs` | the files that may answer for a path: languages, codings, indexes |
//! | `routed/fields.rs` | fields that a reply gets or loses once its head is written |
//! | `routed/guarded.rs` | the same rules for routes that a handler answers |
//! | `routed/kept.rs` | passwords that were verified lately, and files that were compressed |
//! | `routed/compress.rs` | compression |

mod candidates;
mod compress;
mod fields;
mod guarded;
mod kept;
mod question;

use self::candidates::{FileCandidate, candidates};
use self::fields::HeadChanges;
use self::guarded::{Guarded, GuardedRoute};
use self::kept::{Compressed, Verified};
pub(crate) use self::question::{AskedQuestion, LearnedFacts};
use self::question::{Learned, Question};
use crate::block_cache::BlockCache;
use crate::cache::CachedFile;
use crate::config::Config;
use crate::connection::ClientSide;
use crate::document_root::{DocumentRoot, LookUpError};
use crate::error_page::{self, Extra};
use crate::files::{Files, Resource, answer_with};
use crate::metrics::{Metrics, WorkerMetrics, add};
use crate::mime;
use crate::own_page;
use crate::request::{Method, Request};
use crate::responder::{Handled, Reply, Rest, Terms};
use crate::response::Writer;
use crate::routing::{RoutePlace, Routing};
use crate::status::Status;
use crate::status_page::{PAGE_KIND, PROMETHEUS_KIND};
use crate::target;
use selvedge_core::{Time, now};
use selvedge_handler::DynHandler;
use selvedge_site::accept::{Coding, codings, prefers_json};
use selvedge_site::listing;
use selvedge_site::password::credentials;
use selvedge_site::path::canonical;
use selvedge_site::{
    BasicAuth, Listing, Route, RouteAction, RouteMatch, Rules, ServedDirectory, Template, Variables,
};
use std::borrow::Cow;
use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::{Arc, PoisonError};

/// Makes the handler of a route that is neither files nor an answer of the server's own.
pub type MakeHandler = dyn Fn(&Route) -> Option<Rc<dyn DynHandler>>;

/// A site with routes, as one worker serves it.
pub(crate) struct Routed {
    routing: Arc<Routing>,
    /// The files of each directory of the routing.
    files: Vec<Files>,
    /// By host and route; empty if there is no handler.
    handlers: Vec<Vec<Option<Rc<dyn DynHandler>>>>,
    verified: Rc<RefCell<Verified>>,
    compressed: Compressed,
    metrics: Arc<Metrics>,
    pub(crate) counters: Arc<WorkerMetrics>,
    blocks: Option<BlockCache>,
    /// Room for the key of an index.
    index_key: Vec<u8>,
}

/// One request on its way to its reply.
struct RoutedVisit<'a, 'b> {
    request: &'a Request<'b>,
    peer: Option<IpAddr>,
    terms: &'a Terms<'a>,
    /// Whether no question was asked for the request yet.
    is_first: bool,
    learned: Vec<Learned>,
    /// What the reply's head gets or loses.
    fields: HeadChanges,
}

/// A reply, or the question that has to be answered first.
type RouteAnswer = Result<Reply, Question>;

impl Routed {
    pub(crate) fn new(
        routing: Arc<Routing>,
        config: &Config,
        metrics: Arc<Metrics>,
        counters: Arc<WorkerMetrics>,
        make: &MakeHandler,
    ) -> Routed {
        // The directories share the room of one cache.
        let share = routing.directories.len().max(1);
        let config = Config {
            cache_files: config.cache_files.div_ceil(share),
            cache_bytes: config.cache_bytes.div_ceil(share),
            ..config.clone()
        };
        if let Some(blocks) = &config.blocks {
            metrics.tell_blocks(blocks);
        }
        let counted = |root: &DocumentRoot| {
            let mut files = Files::new(root.clone(), &config);
            files.count(counters.clone());
            files
        };
        let files = routing.directories.iter().map(counted).collect();
        let verified = Rc::<RefCell<Verified>>::default();
        let mut handlers: Vec<Vec<Option<Rc<dyn DynHandler>>>> = Vec::new();
        for (at, host) in routing.table.hosts.iter().enumerate() {
            let of_route = |(place, route): (usize, &Route)| {
                let inner = make(route)?;
                let (routing, counters) = (routing.clone(), counters.clone());
                let route = Rc::new(GuardedRoute { routing, place: (at, place), counters });
                let guarded = Guarded { route, inner, verified: verified.clone() };
                Some(Rc::new(guarded) as Rc<dyn DynHandler>)
            };
            handlers.push(host.routes.iter().enumerate().map(of_route).collect());
        }
        if handlers.iter().flatten().all(Option::is_none) {
            handlers.clear();
        }
        Routed {
            routing,
            files,
            handlers,
            verified,
            compressed: Compressed::default(),
            metrics,
            counters,
            blocks: config.blocks,
            index_key: Vec::new(),
        }
    }

    /// The cache of blocks that its files are to be sent from, if it has one.
    pub(crate) fn blocks(&self) -> Option<BlockCache> {
        self.blocks.clone()
    }

    /// Empties the caches.
    pub(crate) fn forget(&mut self) {
        self.files.iter_mut().for_each(Files::forget);
        self.compressed = Compressed::default();
    }

    /// The handler that answers `request`, if its route has one.
    pub(crate) fn route(&mut self, request: &Request<'_>) -> Option<Rc<dyn DynHandler>> {
        if self.handlers.is_empty() {
            return None;
        }
        let path = canonical(request.path).ok()?;
        let matched = self.routing.table.route(request.host.unwrap_or_default(), &path)?;
        let (host, route) = matched.place;
        self.handlers[host][route].clone().filter(|_| !matched.lacks_slash)
    }

    /// Answers `request`, or asks a question first. See [`Responder`](crate::responder::Responder).
    pub(crate) fn answer(
        &mut self,
        request: &Request<'_>,
        terms: &Terms<'_>,
        known: Option<LearnedFacts>,
        out: &mut Vec<u8>,
    ) -> Handled<AskedQuestion> {
        let peer = terms.client.and_then(ClientSide::peer);
        let began = known.as_ref().map_or_else(now, |known| known.began);
        let handled = self.answer_uncounted(request, (terms, peer), known, out, began);
        if let Handled::Reply(reply) = &handled {
            self.counters.count(reply.status.code(), reply.content_bytes, now().since(began));
        }
        handled
    }

    /// As [`answer`](Self::answer) for the client at an address, but the reply is not counted.
    /// `began` is when the request was answered for the first time.
    #[inline]
    pub(crate) fn answer_uncounted(
        &mut self,
        request: &Request<'_>,
        (terms, peer): (&Terms<'_>, Option<IpAddr>),
        known: Option<LearnedFacts>,
        out: &mut Vec<u8>,
        began: Time,
    ) -> Handled<AskedQuestion> {
        if known.is_none()
            && let Some(reply) = self.answer_from_cache(request, terms, out)
        {
            return Handled::Reply(reply);
        }
        let start = out.len();
        let (learned, is_first) = match known {
            None => (Vec::new(), true),
            // The routes may have changed while the question was answered.
            Some(known) if Arc::ptr_eq(&known.routing, &self.routing) => (known.learned, false),
            Some(_) => (Vec::new(), false),
        };
        let mut visit =
            RoutedVisit { request, peer, terms, is_first, learned, fields: HeadChanges::default() };
        match self.visit(&mut visit, out) {
            Ok(reply) => {
                visit.fields.apply(start, out, &reply);
                Handled::Reply(reply)
            }
            Err(question) => {
                out.truncate(start);
                let routing = self.routing.clone();
                Handled::Search(AskedQuestion { routing, began, learned: visit.learned, question })
            }
        }
    }

    /// The reply that is a cached file, if the route has [no rules](RoutePlace::is_bare). It is
    /// what [`visit`](Self::visit) would answer, and takes half of the instructions.
    #[inline]
    fn answer_from_cache(
        &mut self,
        request: &Request<'_>,
        terms: &Terms<'_>,
        out: &mut Vec<u8>,
    ) -> Option<Reply> {
        // A path that is canonical as it came names a file as it is, and none that is hidden:
        // `canonical` borrows no path with a component that begins with a dot.
        let Ok(Cow::Borrowed(path)) = canonical(request.path) else { return None };
        let routing = &self.routing;
        let matched = routing.table.route(request.host.unwrap_or_default(), path)?;
        let place = routing.place_of(matched.place);
        if !place.is_bare || matched.lacks_slash || error_page::instead_of_file(request).is_some() {
            return None;
        }
        let (b'/', name) = matched.rest(path).split_first()? else { return None };
        let files = &self.files[place.files?];
        let file = if name.is_empty() || name.ends_with(b"/") {
            let RouteAction::Directory(directory) = &matched.route.action else { return None };
            self.index_key.clear();
            self.index_key.extend_from_slice(name);
            self.index_key.extend_from_slice(directory.index.first()?.as_bytes());
            files.cached(&self.index_key, terms.now)?
        } else {
            files.cached(name, terms.now)?
        };
        files.count_hit();
        Some(answer_with(file.clone(), request, terms, out))
    }

    fn visit(&mut self, visit: &mut RoutedVisit<'_, '_>, out: &mut Vec<u8>) -> RouteAnswer {
        let request = visit.request;
        if request.is_asterisk() {
            return Ok(page(Status::NO_CONTENT, Extra::None, visit, out));
        }
        let Ok(path) = canonical(request.path) else {
            return Ok(page(Status::BAD_REQUEST, Extra::None, visit, out));
        };
        let routing = self.routing.clone();
        let host = request.host.unwrap_or_default();
        let Some(matched) = routing.table.route(host, &path) else {
            let status = Status::by_code(routing.table.unmatched).unwrap_or(Status::NOT_FOUND);
            return Ok(page(status, Extra::None, visit, out));
        };
        let place = routing.place_of(matched.place);
        let rules = &matched.route.rules;
        visit.fields.add_rules(rules, &path);
        if let Some(refused) = self.refuse(place, rules, visit, out)? {
            return Ok(refused);
        }
        if matched.lacks_slash {
            return Ok(redirect_to_directory(&path, visit, out));
        }
        match &matched.route.action {
            RouteAction::Redirect { to, status } => Ok(redirect(to, *status, &matched, &path, visit, out)),
            RouteAction::Answer(status) => {
                let status = Status::by_code(*status).unwrap_or(Status::INTERNAL_SERVER_ERROR);
                self.error(status, place, visit, out)
            }
            RouteAction::Status => {
                let text = self.metrics.page(Some(&routing));
                Ok(own_page::put(PAGE_KIND, &text, request, visit.terms, out))
            }
            RouteAction::Metrics => {
                let text = self.metrics.prometheus();
                Ok(own_page::put(PROMETHEUS_KIND, &text, request, visit.terms, out))
            }
            RouteAction::Directory(directory) => {
                self.directory(directory, &matched, place, &path, visit, out)
            }
            // The program gave no handler for it.
            RouteAction::Archive(_)
            | RouteAction::Proxy { .. }
            | RouteAction::Cgi { .. }
            | RouteAction::FastCgi { .. } => self.error(Status::NOT_IMPLEMENTED, place, visit, out),
        }
    }

    /// The reply to a request that the rules do not let through.
    fn refuse(
        &mut self,
        place: &RoutePlace,
        rules: &Rules,
        visit: &mut RoutedVisit<'_, '_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Reply>, Question> {
        let request = visit.request;
        if !rules.access.permits(visit.peer) {
            add(&self.counters.refused.access, 1);
            return self.error(Status::FORBIDDEN, place, visit, out).map(Some);
        }
        // A request is counted once, however many questions it takes.
        if let (Some(limiter), Some(peer), true) = (&place.limiter, visit.peer, visit.is_first) {
            let mut limiter = limiter.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(seconds) = limiter.take(peer, visit.terms.now.as_nanos()) {
                drop(limiter);
                add(&self.counters.refused.rate, 1);
                visit.fields.set("Retry-After", seconds.to_string());
                // No question for a client that asks too often.
                return Ok(Some(page(Status::TOO_MANY_REQUESTS, Extra::None, visit, out)));
            }
        }
        if let Some(cors) = &rules.cors {
            let asks = request.values("Access-Control-Request-Method").next().is_some();
            let is_preflight = request.method == Method::Options && asks;
            visit.fields.append_all(cors.fields(request.values("Origin").next(), is_preflight));
            if is_preflight {
                // A browser sends it without a password.
                return Ok(Some(page(Status::NO_CONTENT, Extra::None, visit, out)));
            }
        }
        if let Some(auth) = &rules.auth
            && !self.is_known(auth, visit)?
        {
            add(&self.counters.refused.password, 1);
            let challenge = format!("Basic realm=\"{}\", charset=\"UTF-8\"", auth.realm);
            visit.fields.set("WWW-Authenticate", challenge);
            return self.error(Status::UNAUTHORIZED, place, visit, out).map(Some);
        }
        Ok(None)
    }

    /// Whether the request has a name and its password.
    fn is_known(&mut self, auth: &BasicAuth, visit: &mut RoutedVisit<'_, '_>) -> Result<bool, Question> {
        let given = visit.request.values("Authorization").next().and_then(credentials);
        let Some((name, password)) = given else { return Ok(false) };
        let mut verified = self.verified.borrow_mut();
        let mark = verified.mark(&auth.users, &name, &password);
        if verified.has(mark, visit.terms.now) {
            return Ok(true);
        }
        let answered = visit.learned.iter().find_map(|learned| match learned {
            Learned::Verified(is_right) => Some(*is_right),
            _ => None,
        });
        match answered {
            Some(is_right) => {
                if is_right {
                    verified.insert(mark, visit.terms.now);
                }
                Ok(is_right)
            }
            None => Err(Question::Verify { users: auth.users.clone(), name, password }),
        }
    }

    fn directory(
        &mut self,
        directory: &ServedDirectory,
        matched: &RouteMatch<'_>,
        place: &RoutePlace,
        path: &[u8],
        visit: &mut RoutedVisit<'_, '_>,
        out: &mut Vec<u8>,
    ) -> RouteAnswer {
        let request = visit.request;
        if let Some(status) = error_page::instead_of_file(request) {
            return Ok(page(status, Extra::None, visit, out));
        }
        let at = place.files.expect("a route of files has a directory");
        let rest = matched.rest(path);
        let tried = match candidates(directory, rest, path, request) {
            Ok(tried) => tried,
            Err(status) => return self.error(status, place, visit, out),
        };
        if directory.language.is_some() {
            visit.fields.append("Vary", "Accept-Language");
        }
        if directory.precompressed || directory.compression.is_some() {
            visit.fields.append("Vary", "Accept-Encoding");
        }
        let mut status = Status::NOT_FOUND;
        for candidate in &tried {
            match find(&mut self.files, at, &candidate.key, visit) {
                Ok(Resource::File(file)) => {
                    return self.send(file, candidate, directory, at, visit, out);
                }
                Ok(Resource::Directory) if candidate.is_plain => {
                    return Ok(redirect_to_directory(path, visit, out));
                }
                Ok(Resource::Directory) => {}
                Err(LookUpError::Refused(Status::NOT_FOUND)) => {}
                Err(LookUpError::Refused(refused)) => status = refused,
                Err(LookUpError::Cold) => {
                    let keys = tried.iter().map(|one| one.key.clone()).collect();
                    return Err(ask(&self.files, at, keys));
                }
            }
        }
        if rest.ends_with(b"/") && status == Status::NOT_FOUND {
            return self.without_index(directory, rest, path, at, place, visit, out);
        }
        self.error(status, place, visit, out)
    }

    /// Sends a file, compressed if that is asked for.
    fn send(
        &mut self,
        file: Rc<CachedFile>,
        candidate: &FileCandidate,
        directory: &ServedDirectory,
        at: usize,
        visit: &mut RoutedVisit<'_, '_>,
        out: &mut Vec<u8>,
    ) -> RouteAnswer {
        let mut coding = candidate.coding;
        let mut file = file;
        if coding.is_none()
            && let Some(packed) = self.packed(&file, candidate, directory, at, visit)?
        {
            (coding, file) = (Some(packed.0), packed.1);
        }
        visit.fields.content(coding.map(Coding::name), candidate.language.as_deref());
        Ok(answer_with(file, visit.request, visit.terms, out))
    }

    /// The file as it is compressed for the client, if it is.
    fn packed(
        &mut self,
        file: &Rc<CachedFile>,
        candidate: &FileCandidate,
        directory: &ServedDirectory,
        at: usize,
        visit: &mut RoutedVisit<'_, '_>,
    ) -> Result<Option<(Coding, Rc<CachedFile>)>, Question> {
        let Some(compression) = &directory.compression else { return Ok(None) };
        let len = file.representation.len();
        if !(compression.bytes_min..=compression.bytes_max).contains(&len) {
            return Ok(None);
        }
        let kind = mime::by_name(candidate.typed());
        if !compression.types.iter().any(|glob| glob.is_match(kind.as_bytes())) {
            return Ok(None);
        }
        let accepted = codings(visit.request.values("Accept-Encoding"));
        let Some(coding) = accepted.into_iter().find(|coding| compress::CODINGS.contains(coding)) else {
            return Ok(None);
        };
        if let Some(packed) = self.compressed.get(at, &candidate.key, coding, file.identity) {
            add(&self.counters.cached.compressed_hits, u64::from(packed.is_some()));
            return Ok(packed.map(|packed| (coding, packed)));
        }
        let learned = visit.learned.iter_mut().find_map(|learned| match learned {
            Learned::Compressed(identity, packed) if *identity == file.identity => Some(packed.take()),
            _ => None,
        });
        match learned {
            Some(packed) => {
                add(&self.counters.cached.compressed, 1);
                let second = visit.terms.clock.second();
                let packed = packed.map(|bytes| Rc::new(file.packed(bytes, kind, coding as u64 + 1, second)));
                self.compressed.insert(at, &candidate.key, coding, file.identity, packed.clone());
                Ok(packed.map(|packed| (coding, packed)))
            }
            None => match Question::compress(file, coding) {
                Some(question) => Err(question),
                None => Ok(None),
            },
        }
    }

    /// Lists a directory without an index, or refuses it.
    #[expect(clippy::too_many_arguments, reason = "they are the parts of one request")]
    fn without_index(
        &mut self,
        directory: &ServedDirectory,
        rest: &[u8],
        path: &[u8],
        at: usize,
        place: &RoutePlace,
        visit: &mut RoutedVisit<'_, '_>,
        out: &mut Vec<u8>,
    ) -> RouteAnswer {
        let mut name = Vec::new();
        if let Err(status) = target::resolve(rest, &mut name) {
            return self.error(status, place, visit, out);
        }
        let listed = visit.learned.iter().find_map(|learned| match learned {
            Learned::Listed(entries) => Some(entries),
            _ => None,
        });
        let shows = directory.listing != Listing::Off;
        let entries = match listed {
            None => {
                let directory = self.files[at].directory().clone();
                return Err(Question::List { directory, name, shows });
            }
            Some(Err(status)) => {
                let status = *status;
                return self.error(status, place, visit, out);
            }
            Some(Ok(_)) if !shows => return self.error(Status::FORBIDDEN, place, visit, out),
            Some(Ok(entries)) => entries,
        };
        let is_json = directory.listing == Listing::Json || prefers_json(visit.request.values("Accept"));
        let (kind, text) = match is_json {
            true => ("application/json", listing::json(entries)),
            false => ("text/html; charset=utf-8", listing::page(path, entries)),
        };
        if directory.listing == Listing::Html {
            visit.fields.append("Vary", "Accept");
        }
        Ok(own_page::put(kind, &text, visit.request, visit.terms, out))
    }

    /// The page for an error: the route's own, if it has one.
    fn error(
        &mut self,
        status: Status,
        place: &RoutePlace,
        visit: &mut RoutedVisit<'_, '_>,
        out: &mut Vec<u8>,
    ) -> RouteAnswer {
        let Some(at) = place.error_pages else { return Ok(page(status, Extra::None, visit, out)) };
        let key = format!("{}.html", status.code()).into_bytes();
        match find(&mut self.files, at, &key, visit) {
            Ok(Resource::File(file)) => Ok(own_error(file, status, visit, out)),
            Err(LookUpError::Cold) => Err(ask(&self.files, at, vec![key])),
            _ => Ok(page(status, Extra::None, visit, out)),
        }
    }
}

/// The file of directory `at` with this key, without waiting for the disk.
fn find(
    files: &mut [Files],
    at: usize,
    key: &[u8],
    visit: &mut RoutedVisit<'_, '_>,
) -> Result<Resource, LookUpError> {
    let learned = &mut visit.learned;
    files[at].find_key(key, visit.terms, || {
        learned.iter_mut().find_map(|learned| match learned {
            Learned::Names(place, found) if *place == at => {
                let at = found.iter().position(|(found, _)| found == key)?;
                Some(found.swap_remove(at).1)
            }
            _ => None,
        })
    })
}

fn ask(files: &[Files], at: usize, keys: Vec<Vec<u8>>) -> Question {
    let (directory, memory_bytes) = (files[at].directory().clone(), files[at].memory_bytes());
    Question::Names { at, directory, memory_bytes, keys }
}

/// The server's page for a status.
fn page(status: Status, extra: Extra<'_>, visit: &mut RoutedVisit<'_, '_>, out: &mut Vec<u8>) -> Reply {
    let Terms { persistence, clock, .. } = visit.terms;
    let content_bytes = error_page::put(status, extra, visit.request.method, *persistence, clock, out);
    Reply { status, content_bytes, rest: Rest::Nothing }
}

/// A file as the page for an error.
fn own_error(
    file: Rc<CachedFile>,
    status: Status,
    visit: &mut RoutedVisit<'_, '_>,
    out: &mut Vec<u8>,
) -> Reply {
    use crate::document_root::Backing;
    use crate::range::Span;
    let Terms { persistence, clock, .. } = visit.terms;
    let len = file.representation.len();
    let mut head = Writer::begin(status, clock, out)
        .field("Content-Type", mime::by_name(&file.name).as_bytes())
        .number("Content-Length", len);
    if status == Status::METHOD_NOT_ALLOWED {
        head = head.field("Allow", error_page::ALLOW.as_bytes());
    }
    head.end(*persistence);
    if visit.request.method == Method::Head || len == 0 {
        return Reply { status, content_bytes: 0, rest: Rest::Nothing };
    }
    let rest = match &file.body {
        Backing::Memory(content) => {
            out.extend_from_slice(content);
            Rest::Nothing
        }
        Backing::Open(_) => Rest::Span(file.clone(), Span { start: 0, end: len }),
    };
    Reply { status, content_bytes: len, rest }
}

/// Sends the client to `path` with a `/` at its end.
fn redirect_to_directory(path: &[u8], visit: &mut RoutedVisit<'_, '_>, out: &mut Vec<u8>) -> Reply {
    let mut location = [path, b"/"].concat();
    if let Some(query) = visit.request.query {
        location.push(b'?');
        location.extend_from_slice(query);
    }
    page(Status::MOVED_PERMANENTLY, Extra::Location(&location), visit, out)
}

fn redirect(
    to: &Template,
    status: u16,
    matched: &RouteMatch<'_>,
    path: &[u8],
    visit: &mut RoutedVisit<'_, '_>,
    out: &mut Vec<u8>,
) -> Reply {
    let request = visit.request;
    let host = selvedge_site::without_port(request.host.unwrap_or_default());
    let location = to.location(&Variables { path, rest: matched.rest(path), host, query: request.query });
    let status = Status::by_code(status).unwrap_or(Status::MOVED_PERMANENTLY);
    page(status, Extra::Location(&location), visit, out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::date::Clock;
    use crate::request::{Limits, parse};
    use crate::response::Persistence;
    use selvedge_io::net::UnixStream;
    use selvedge_site::{Host, RouteTable};

    /// A site of one listed directory, with a file called `name`.
    fn listed(name: &str) -> (tempfile::TempDir, Routed) {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(name), "").unwrap();
        let directory =
            ServedDirectory { listing: Listing::Json, ..ServedDirectory::new(home.path().into()) };
        (home, site_of(directory))
    }

    fn site_of(directory: ServedDirectory) -> Routed {
        let action = RouteAction::Directory(directory);
        let route = Route { pattern: "/".parse().unwrap(), action, rules: Rules::default(), line: 1 };
        site_with(vec![route])
    }

    fn site_with(routes: Vec<Route>) -> Routed {
        let table = RouteTable { hosts: vec![Host { names: Vec::new(), routes }], unmatched: 404 };
        let routing = Routing::new(table).unwrap();
        let metrics = Metrics::new();
        let counters = metrics.worker();
        Routed::new(routing, &Config::default(), metrics, counters, &|_| None)
    }

    /// The reply to `request`, after all questions.
    fn asked(site: &mut Routed, request: &str) -> String {
        let (stream, _peer) = UnixStream::pair().unwrap();
        let (client, clock) = (ClientSide::new(stream.into(), None), Clock::at(0));
        let terms =
            Terms { now: now(), clock: &clock, persistence: Persistence::Implied, client: Some(&client) };
        let request = parse(request.as_bytes(), &Limits::default()).unwrap().unwrap();
        let (mut out, mut known, mut questions) = (Vec::new(), None, 0);
        while let Handled::Search(question) = site.answer(&request, &terms, known, &mut out) {
            questions += 1;
            assert!(questions < 10, "the same question again and again");
            known = Some(question.answer());
        }
        String::from_utf8(out).unwrap()
    }

    /// A name that is tried and is no file ends nothing: the next one is looked up with it.
    #[test]
    fn a_directory_among_the_names_that_are_tried() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("first")).unwrap();
        std::fs::write(home.path().join("second"), "found").unwrap();
        let index = vec!["first".to_owned(), "second".to_owned()];
        let mut site = site_of(ServedDirectory { index, ..ServedDirectory::new(home.path().into()) });
        let reply = asked(&mut site, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(reply.starts_with("HTTP/1.1 200 ") && reply.ends_with("found"), "{reply}");
    }

    /// What the cache answers is what the long way answers, and what is not bare takes that way.
    #[test]
    fn a_reply_from_the_cache_is_that_of_the_long_way() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("d")).unwrap();
        for name in ["a.html", "index.html", "d/index.html"] {
            std::fs::write(home.path().join(name), name.repeat(9)).unwrap();
        }
        let bare = ServedDirectory::new(home.path().into());
        let long = ServedDirectory { try_files: vec!["$rest".parse().unwrap()], ..bare.clone() };
        let (mut bare, mut long) = (site_of(bare), site_of(long));
        let mut from_cache = 0;
        for line in ["GET /a.html", "HEAD /a.html", "GET /a.html?q", "GET /", "GET /d/", "GET /index.html"] {
            for fields in ["", "Range: bytes=2-5\r\n", "If-None-Match: *\r\n", "Range: bytes=0-1,4-5\r\n"] {
                let request = format!("{line} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
                let expected = without_boundary(asked(&mut long, &request));
                // The first reply fills the cache.
                for _ in 0..2 {
                    assert_eq!(without_boundary(asked(&mut bare, &request)), expected, "{request}");
                }
                from_cache += usize::from(is_from_cache(&mut bare, &request));
                assert!(!is_from_cache(&mut long, &request), "{request}");
            }
        }
        assert_eq!(from_cache, 24);
        for line in ["POST /a.html", "OPTIONS *", "GET /none", "GET /d", "GET /%61.html", "GET //a.html"] {
            let request = format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n");
            assert_eq!(asked(&mut bare, &request), asked(&mut long, &request), "{request}");
            assert!(!is_from_cache(&mut bare, &request), "{request}");
        }
    }

    /// The routes of a directory share its cache, and the index of a route may be a hidden file.
    #[test]
    fn a_hidden_index_of_one_route_is_hidden_from_the_other() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(".page"), "hidden").unwrap();
        let plain = ServedDirectory::new(home.path().into());
        let hidden = ServedDirectory { index: vec![".page".to_owned()], ..plain.clone() };
        let route = |pattern: &str, directory| Route {
            pattern: pattern.parse().unwrap(),
            action: RouteAction::Directory(directory),
            rules: Rules::default(),
            line: 1,
        };
        let mut site = site_with(vec![route("/front/", hidden), route("/", plain)]);
        let mut status = |path: &str| {
            let reply = asked(&mut site, &format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
            reply[9..12].to_owned()
        };
        assert_eq!(["/front/", "/front/"].map(&mut status), ["200", "200"]);
        for path in ["/.page", "/front/.page", "/%2epage", "/x/../.page", "//.page"] {
            assert_eq!(status(path), "404", "{path}");
        }
        assert!(is_from_cache(&mut site, "GET /front/ HTTP/1.1\r\nHost: a\r\n\r\n"));
    }

    /// The head of a reply without the mark of its parts, which is another one each time.
    fn without_boundary(reply: String) -> String {
        match reply.split_once("boundary=selvedge") {
            Some((front, rest)) => format!("{front}{}", &rest["0123456789abcdef".len()..]),
            None => reply,
        }
    }

    fn is_from_cache(site: &mut Routed, request: &str) -> bool {
        let clock = Clock::at(0);
        let terms = Terms { now: now(), clock: &clock, persistence: Persistence::Implied, client: None };
        let request = parse(request.as_bytes(), &Limits::default()).unwrap().unwrap();
        site.answer_from_cache(&request, &terms, &mut Vec::new()).is_some()
    }

    /// The client chooses the host, so it must not choose a directory above the one for hosts.
    #[test]
    fn a_host_in_a_name_to_try() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(home.path().join("hosts/a")).unwrap();
        std::fs::write(home.path().join("page"), "above").unwrap();
        std::fs::write(home.path().join("hosts/page"), "beside").unwrap();
        std::fs::write(home.path().join("hosts/a/page"), "within").unwrap();
        let try_files = vec!["/hosts/$host$rest".parse().unwrap()];
        let mut site = site_of(ServedDirectory { try_files, ..ServedDirectory::new(home.path().into()) });
        let mut status = |host: &str| {
            let reply = asked(&mut site, &format!("GET /page HTTP/1.1\r\nHost: {host}\r\n\r\n"));
            (reply[9..12].to_owned(), reply.ends_with("within"))
        };
        for host in ["a", "a:8080", "a."] {
            assert_eq!(status(host), ("200".to_owned(), true), "{host:?}");
        }
        for host in ["..", ".", "", "..:80", "%2e%2e", "b"] {
            assert_eq!(status(host), ("404".to_owned(), false), "{host:?}");
        }
    }

    /// Routes change while a question is answered: its answer belongs to the old ones.
    #[test]
    fn what_old_routes_have_learned_is_forgotten() {
        let ((_old_home, mut old), (_new_home, mut new)) = (listed("old.txt"), listed("new.txt"));
        let (stream, _peer) = UnixStream::pair().unwrap();
        let (client, clock) = (ClientSide::new(stream.into(), None), Clock::at(0));
        let terms =
            Terms { now: now(), clock: &clock, persistence: Persistence::Implied, client: Some(&client) };
        let request = parse(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", &Limits::default()).unwrap().unwrap();
        let mut out = Vec::new();
        let mut known = None;
        let list = loop {
            match old.answer(&request, &terms, known, &mut out) {
                Handled::Search(asked) => match asked.question {
                    Question::List { .. } => break asked.answer(),
                    _ => known = Some(asked.answer()),
                },
                Handled::Reply(_) => panic!("a list is always asked for"),
            }
        };
        let mut known = Some(list);
        while let Handled::Search(asked) = new.answer(&request, &terms, known, &mut out) {
            known = Some(asked.answer());
        }
        let reply = String::from_utf8(out).unwrap();
        assert!(reply.contains("new.txt") && !reply.contains("old.txt"), "{reply}");
    }
}
