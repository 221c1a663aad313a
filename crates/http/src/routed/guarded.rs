//! [`Guarded`]: the rules of a route around the handler that answers for it.
//!
//! `routed.rs` applies the same rules to the replies that it makes itself.

use super::fields::cache_control;
use super::kept::Verified;
use super::question::PASSWORDS;
use crate::document_root::{Backing, Found};
use crate::files::search;
use crate::metrics::{WorkerMetrics, add};
use crate::mime;
use crate::routing::Routing;
use selvedge_core::now;
use selvedge_handler::{
    Authenticated, Body, Caller, DynHandler, Handler, HeaderMap, HeaderName, HeaderValue, IntoResponse,
    Method, Placeholder, PlainCall, PlainOutcome, PlainRequest, Request, Response, StatusCode, WithoutServer,
    header,
};
use selvedge_io::blocking;
use selvedge_site::password::credentials;
use selvedge_site::path::canonical;
use selvedge_site::{BasicAuth, Route, RouteAction, Variables, without_port};
use std::borrow::Cow;
use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::{Arc, PoisonError};

/// A page for an error up to this length is read into memory, and a longer one is sent from its
/// file.
const OWN_PAGE_BYTES: u64 = 64 << 10;

/// A handler with the rules of its route.
pub(super) struct Guarded {
    pub(super) route: Rc<GuardedRoute>,
    pub(super) inner: Rc<dyn DynHandler>,
    pub(super) verified: Rc<RefCell<Verified>>,
}

/// The route of a handler. Its requests hold it, at the cost of a count that one worker alone
/// changes.
pub(super) struct GuardedRoute {
    pub(super) routing: Arc<Routing>,
    pub(super) place: (usize, usize),
    pub(super) counters: Arc<WorkerMetrics>,
}

impl GuardedRoute {
    fn route(&self) -> &Route {
        let (host, route) = self.place;
        &self.routing.table().hosts[host].routes[route]
    }
}

impl Handler for Guarded {
    async fn call(&self, mut request: Request) -> Response {
        let began = now();
        let route = self.route.route();
        let path = canonical(request.uri().path().as_bytes()).map(|path| path.into_owned());
        let path = path.unwrap_or_else(|_| b"/".to_vec());
        let mut fields = HeaderMap::new();
        let mut response = match self.refuse(&mut request, route, &mut fields).await {
            Some(refused) => refused,
            None if !rewrite(&mut request, route, &path) => page(StatusCode::BAD_REQUEST),
            None => self.inner.call_boxed(request).await,
        };
        put_own_page(&self.route, &mut response).await;
        let has_content = matches!(response.status().as_u16(), 200 | 206 | 304);
        let head = response.headers_mut();
        for (name, value) in &fields {
            head.append(name, value.clone());
        }
        if has_content
            && let Some(value) =
                cache_control(&route.rules, &path).and_then(|value| HeaderValue::from_str(value).ok())
        {
            head.insert(header::CACHE_CONTROL, value);
        }
        let mut is_nameless = false;
        for rule in &route.rules.headers {
            let Ok(name) = HeaderName::from_bytes(rule.name.as_bytes()) else { continue };
            match rule.value.as_deref().map(HeaderValue::from_str) {
                Some(Ok(value)) => drop(head.insert(name, value)),
                Some(Err(_)) => {}
                None => {
                    // The engine adds this field where it is missing.
                    is_nameless |= name == header::SERVER;
                    head.remove(name);
                }
            }
        }
        if is_nameless {
            response.extensions_mut().insert(WithoutServer);
        }
        let bytes = response.body().len().unwrap_or(0);
        self.route.counters.count(response.status().as_u16(), bytes, now().since(began));
        response
    }

    fn call_plain(&self, request: &PlainRequest<'_>) -> Option<PlainCall> {
        let began = now();
        let route = self.route.route();
        let is_short = matches!(route.action, RouteAction::Proxy { .. } | RouteAction::FastCgi { .. });
        if !request.is_bare_get() || !is_short {
            return None;
        }
        let rules = &route.rules;
        // These rules need the request's fields, or change the answer's.
        let is_bare = rules.auth.is_none()
            && rules.rate.is_none()
            && rules.cors.is_none()
            && rules.headers.is_empty()
            && rules.cache_control.is_empty();
        if !is_bare || !rules.access.permits(request.peer()) {
            return None;
        }
        let inner = match &route.action {
            RouteAction::Proxy { path: template, .. } => {
                let mut target = request.target().splitn(2, |&byte| byte == b'?');
                let path = canonical(target.next()?).ok()?;
                if template.is_path() && matches!(path, Cow::Borrowed(_)) {
                    // The target is what `upstream_target` would make of it.
                    self.inner.call_plain_boxed(request)?
                } else {
                    let target = upstream_target(route, &path, target.next(), without_port(request.host()))?;
                    self.inner.call_plain_boxed(&request.with_target(&target))?
                }
            }
            _ => self.inner.call_plain_boxed(request)?,
        };
        let route = self.route.clone();
        Some(Box::pin(async move {
            let mut answer = inner.await;
            let (status, bytes) = match &mut answer {
                PlainOutcome::Plain(answer) => (answer.status, answer.content.len() as u64),
                PlainOutcome::Response(response) => {
                    put_own_page(&route, response).await;
                    (response.status(), response.body().len().unwrap_or(0))
                }
            };
            route.counters.count(status.as_u16(), bytes, now().since(began));
            answer
        }))
    }
}

impl Guarded {
    /// The response to a request that the rules do not let through. `fields` gets what every
    /// response has, and `request` the name that its client has proved.
    async fn refuse(&self, request: &mut Request, route: &Route, fields: &mut HeaderMap) -> Option<Response> {
        let rules = &route.rules;
        let peer = request.extensions().get::<Caller>().and_then(Caller::peer);
        if !rules.access.permits(peer) {
            add(&self.route.counters.refused.access, 1);
            return Some(page(StatusCode::FORBIDDEN));
        }
        if let Some(seconds) = self.wait(peer) {
            add(&self.route.counters.refused.rate, 1);
            fields.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
            return Some(page(StatusCode::TOO_MANY_REQUESTS));
        }
        if let Some(cors) = &rules.cors {
            let asks = request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
            let is_preflight = request.method() == Method::OPTIONS && asks;
            let origin = request.headers().get(header::ORIGIN).map(HeaderValue::as_bytes);
            for (name, value) in cors.fields(origin, is_preflight) {
                if let Ok(value) = HeaderValue::from_str(&value) {
                    fields.append(HeaderName::from_bytes(name.as_bytes()).ok()?, value);
                }
            }
            if is_preflight {
                return Some(StatusCode::NO_CONTENT.into_response());
            }
        }
        if let Some(auth) = &rules.auth {
            if let Some(user) = self.user(auth, request).await {
                request.extensions_mut().insert(Authenticated { scheme: "Basic".to_owned(), user });
                return None;
            }
            add(&self.route.counters.refused.password, 1);
            let challenge = format!("Basic realm=\"{}\", charset=\"UTF-8\"", auth.realm);
            if let Ok(challenge) = HeaderValue::from_str(&challenge) {
                fields.insert(header::WWW_AUTHENTICATE, challenge);
            }
            return Some(page(StatusCode::UNAUTHORIZED));
        }
        None
    }

    /// The seconds after which `peer` may ask again, if it may not now.
    fn wait(&self, peer: Option<IpAddr>) -> Option<u64> {
        let limiter = self.route.routing.place_of(self.route.place).limiter.as_ref()?;
        let mut limiter = limiter.lock().unwrap_or_else(PoisonError::into_inner);
        limiter.take(peer?, now().as_nanos()).err()
    }

    /// The name in the request, if the password in it is right.
    async fn user(&self, auth: &BasicAuth, request: &Request) -> Option<String> {
        let given = request.headers().get(header::AUTHORIZATION)?;
        let (name, password) = credentials(given.as_bytes())?;
        let mark = self.verified.borrow().mark(&auth.users, &name, &password);
        if self.verified.borrow().has(mark, now()) {
            return Some(name);
        }
        let users = auth.users.clone();
        let verify = move || users.verify(&name, &password).then_some(name);
        let name = PASSWORDS.run(verify).await.ok()??;
        self.verified.borrow_mut().insert(mark, now());
        Some(name)
    }
}

/// Puts the route's page for an error into a response that a page may replace, if there is one.
async fn put_own_page(route: &GuardedRoute, response: &mut Response) {
    if response.extensions_mut().remove::<Placeholder>().is_none() {
        return;
    }
    let status = response.status();
    if let Some(at) = route.routing.place_of(route.place).error_pages
        && (status.is_client_error() || status.is_server_error())
    {
        let (name, directory) = (format!("{}.html", status.as_u16()), route.routing.directories[at].clone());
        let key = name.clone().into_bytes();
        let found = blocking(move || search(&directory, &key, OWN_PAGE_BYTES)).await;
        if let Ok(Ok(Found::File(file))) = found {
            *response.body_mut() = match file.body {
                Backing::Memory(content) => Vec::from(content).into(),
                Backing::Open(handle) => Body::file(Arc::new(handle), 0..file.identity.len),
            };
            let kind = HeaderValue::from_static(mime::by_name(name.as_bytes()));
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
            response.headers_mut().remove(header::CONTENT_LENGTH);
        }
    }
}

/// Gives the request the path that its upstream has. Returns whether there is one: what the client
/// has sent may make no path of it.
fn rewrite(request: &mut Request, route: &Route, path: &[u8]) -> bool {
    if !matches!(route.action, RouteAction::Proxy { .. }) {
        return true;
    }
    let host = request.headers().get(header::HOST).map(|host| host.as_bytes().to_vec()).unwrap_or_default();
    let query = request.uri().query().map(|query| query.as_bytes().to_vec());
    let target = upstream_target(route, path, query.as_deref(), without_port(&host));
    match target.map(|target| target.as_slice().try_into()) {
        Some(Ok(uri)) => {
            *request.uri_mut() = uri;
            true
        }
        _ => false,
    }
}

/// The target that the upstream of a proxy's route gets. `None` for another route, and if what the
/// client has sent makes no path.
fn upstream_target(route: &Route, path: &[u8], query: Option<&[u8]>, host: &[u8]) -> Option<Vec<u8>> {
    let RouteAction::Proxy { path: template, .. } = &route.action else { return None };
    if !template.permits_host(host) {
        return None;
    }
    let rest = &path[route.pattern.prefix_len().min(path.len())..];
    let target = template.location(&Variables { path, rest, host, query });
    let end = target.iter().position(|&byte| byte == b'?').unwrap_or(target.len());
    match canonical(&target[..end]).ok()? {
        Cow::Borrowed(_) => Some(target),
        Cow::Owned(path) => Some([&path, &target[end..]].concat()),
    }
}

/// The page for a refusal. The route's own page may come into its place.
fn page(status: StatusCode) -> Response {
    let line = format!("{} {}", status.as_u16(), status.canonical_reason().unwrap_or_default());
    let text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{line}</title>\n<h1>{line}</h1>\n</html>\n"
    );
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response.extensions_mut().insert(Placeholder);
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_site::Rules;

    /// The target that an upstream gets for `/app/x?q`, or `None` for 400.
    fn rewritten(template: &str, host: &str) -> Option<String> {
        let action = RouteAction::Proxy {
            upstreams: vec!["a:1".to_owned()],
            path: template.parse().unwrap(),
            balancing: Default::default(),
            health: Default::default(),
            times: Default::default(),
        };
        let route = Route { pattern: "/app/".parse().unwrap(), action, rules: Rules::default(), line: 1 };
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = "/app/x?q".parse().unwrap();
        request.headers_mut().insert(header::HOST, host.parse().unwrap());
        rewrite(&mut request, &route, b"/app/x").then(|| request.uri().to_string())
    }

    #[test]
    fn the_path_of_an_upstream() {
        assert_eq!(rewritten("$rest", "a").as_deref(), Some("/x?q"));
        assert_eq!(rewritten("/$host$rest", "example.org:8080").as_deref(), Some("/example.org/x?q"));
        assert_eq!(rewritten("/v/./..$rest?a=$query", "").as_deref(), Some("/x?a=q"));
        for host in ["..", "..:80", "", "a/b", "%2e%2e", "a?b", "a#b"] {
            assert_eq!(rewritten("/hosts/$host$rest", host), None, "{host:?}");
        }
        assert_eq!(rewritten("/../..$rest", "a"), None);
        assert_eq!(rewritten("$rest?$host", "a b"), None);
    }
}
