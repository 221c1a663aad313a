//! [`Router`]: which function answers which request.

use crate::endpoint::{DynEndpoint, Endpoint, Erased};
use crate::extract::Context;
use crate::layer;
use crate::parameters::Parameters;
use http::header::ALLOW;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, StatusCode, Uri};
use selvedge_handler::{
    DynHandler, Handler, IntoResponse, Mount, PlainCall, PlainRequest, Request, Response,
};
use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;

/// A table of routes: a method, a path and the function that answers.
///
/// A path has parameters in braces: `/users/{id}` takes one component, `/files/{*rest}` takes all
/// that is left. A fixed component goes before a parameter. A parameter that is part of a component
/// has text before it: `/v{version}`.
///
/// | request | answer |
/// |---|---|
/// | `HEAD`, where a path has a route for `GET` | by that route, without the body |
/// | `OPTIONS`, where a path has no route for it | 204 with `Allow` |
/// | another method than those of its path | 405 with `Allow` |
/// | a path without a route | by [`fallback`](Self::fallback), or 404 |
///
/// # Examples
/// ```
/// use selvedge::stm::{TVar, atomically};
/// use selvedge::web::{Path, Router, State, testing::{get, post}};
///
/// async fn weave(State(woven): State<TVar<u64>>, Path(ells): Path<u64>) -> String {
///     let sum = atomically(|tx| {
///         let sum = woven.read(tx)? + ells;
///         woven.write(tx, sum);
///         Ok(sum)
///     });
///     format!("{} ells", sum.await)
/// }
///
/// selvedge::run_local(async {
///     let router = Router::with_state(TVar::new(0)).post("/weave/{ells}", weave);
///     assert_eq!(post(&router, "/weave/12", "").await.text(), "12 ells");
///     assert_eq!(post(&router, "/weave/30", "").await.text(), "42 ells");
///     assert_eq!(get(&router, "/weave/30").await.status(), 405);
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
///
/// An argument that needs another state than the router's is an error of the compiler:
///
/// ```compile_fail,E0277
/// use selvedge::web::{Router, State};
///
/// async fn count(State(count): State<u64>) -> String {
///     count.to_string()
/// }
///
/// Router::with_state("a text").get("/", count);
/// ```
pub struct Router<S = ()> {
    state: S,
    /// The number of the route for a path.
    paths: matchit::Router<usize>,
    routes: Vec<RouteEntry<S>>,
    fallback: Option<Rc<dyn DynHandler>>,
}

struct RouteEntry<S> {
    path: String,
    answers: Answers<S>,
}

enum Answers<S> {
    /// An endpoint for each of these methods.
    Methods(Vec<(Method, Box<dyn DynEndpoint<S>>)>),
    /// A handler for all that is below the path.
    Below(Rc<dyn DynHandler>),
}

impl Router<()> {
    /// A router without routes and without state.
    pub fn new() -> Router<()> {
        Router::with_state(())
    }
}

impl Default for Router<()> {
    fn default() -> Router<()> {
        Router::new()
    }
}

impl<S: 'static> Router<S> {
    /// A router without routes, of which the functions may ask for the [`State`](crate::State).
    pub fn with_state(state: S) -> Router<S> {
        Router { state, paths: matchit::Router::new(), routes: Vec::new(), fallback: None }
    }

    /// Adds a route: `endpoint` answers the requests with `method` for `path`.
    ///
    /// # Panics
    /// If the path is no valid route or clashes with another one, if it has an endpoint for this
    /// method, and if the arguments of `endpoint` do not fit the parameters of the path.
    pub fn route<A: 'static>(
        mut self,
        method: Method,
        path: &str,
        endpoint: impl Endpoint<S, A>,
    ) -> Router<S> {
        check(&endpoint, path);
        let endpoint = Box::new(Erased(endpoint, PhantomData));
        let place = self.routes.iter().position(|route| route.path == path).unwrap_or_else(|| {
            self.insert(path, path, Answers::Methods(Vec::new()));
            self.routes.len() - 1
        });
        let Answers::Methods(methods) = &mut self.routes[place].answers else {
            panic!("{path} is the place of a nested handler");
        };
        assert!(methods.iter().all(|(known, _)| *known != method), "{path} has two routes for {method}");
        methods.push((method, endpoint));
        self
    }

    /// [`route`](Self::route) for `GET`, and so for `HEAD`.
    ///
    /// # Panics
    /// As `route`.
    pub fn get<A: 'static>(self, path: &str, endpoint: impl Endpoint<S, A>) -> Router<S> {
        self.route(Method::GET, path, endpoint)
    }

    /// [`route`](Self::route) for `POST`.
    ///
    /// # Panics
    /// As `route`.
    pub fn post<A: 'static>(self, path: &str, endpoint: impl Endpoint<S, A>) -> Router<S> {
        self.route(Method::POST, path, endpoint)
    }

    /// [`route`](Self::route) for `PUT`.
    ///
    /// # Panics
    /// As `route`.
    pub fn put<A: 'static>(self, path: &str, endpoint: impl Endpoint<S, A>) -> Router<S> {
        self.route(Method::PUT, path, endpoint)
    }

    /// [`route`](Self::route) for `PATCH`.
    ///
    /// # Panics
    /// As `route`.
    pub fn patch<A: 'static>(self, path: &str, endpoint: impl Endpoint<S, A>) -> Router<S> {
        self.route(Method::PATCH, path, endpoint)
    }

    /// [`route`](Self::route) for `DELETE`.
    ///
    /// # Panics
    /// As `route`.
    pub fn delete<A: 'static>(self, path: &str, endpoint: impl Endpoint<S, A>) -> Router<S> {
        self.route(Method::DELETE, path, endpoint)
    }

    /// Adds a mount: `handler` answers all requests for `prefix` and for the paths below it. The
    /// handler sees the rest of the path, and the prefix as the extension [`Mount`].
    ///
    /// # Panics
    /// If the prefix does not begin with `/`, or ends with one, or has a parameter, or clashes with
    /// another route.
    pub fn nest(mut self, prefix: &str, handler: impl Handler) -> Router<S> {
        assert!(
            prefix.starts_with('/') && !prefix.ends_with('/'),
            "{prefix:?} begins with / and does not end with it"
        );
        assert!(!prefix.contains(['{', '}']), "{prefix:?} has no parameters");
        let handler: Rc<dyn DynHandler> = Rc::new(handler);
        for path in [prefix.to_string(), format!("{prefix}/"), format!("{prefix}/{{*rest}}")] {
            self.insert(prefix, &path, Answers::Below(handler.clone()));
        }
        self
    }

    /// Sets the handler that answers the requests for a path without a route.
    pub fn fallback(mut self, handler: impl Handler) -> Router<S> {
        self.fallback = Some(Rc::new(handler));
        self
    }

    fn insert(&mut self, path: &str, pattern: &str, answers: Answers<S>) {
        if let Err(error) = self.paths.insert(pattern, self.routes.len()) {
            panic!("{pattern} cannot be a route: {error}");
        }
        self.routes.push(RouteEntry { path: path.into(), answers });
    }

    async fn answer(&self, request: Request) -> Response {
        let uri = request.uri().clone();
        let Ok(matched) = self.paths.at(uri.path()) else {
            return match &self.fallback {
                Some(fallback) => layer::call(fallback, request).await,
                None => StatusCode::NOT_FOUND.into_response(),
            };
        };
        let route = &self.routes[*matched.value];
        match &route.answers {
            Answers::Below(handler) => layer::call(handler, below(request, &route.path)).await,
            Answers::Methods(methods) => {
                let of = |method: &Method| methods.iter().find(|(known, _)| known == method);
                let found = of(request.method()).or_else(|| match *request.method() {
                    Method::HEAD => of(&Method::GET),
                    _ => None,
                });
                let Some((_, endpoint)) = found else {
                    let is_question = request.method() == Method::OPTIONS;
                    return not_allowed(methods.iter().map(|(method, _)| method), is_question);
                };
                let context = Context { state: &self.state, parameters: Parameters::new(&matched.params) };
                endpoint.call_boxed(request, &context).await
            }
        }
    }
}

impl<S: 'static> Handler for Router<S> {
    fn call(&self, request: Request) -> impl Future<Output = Response> {
        self.answer(request)
    }

    /// It is for the endpoint that a route has for the very method, and for what is below a prefix.
    /// All else wants an owned request.
    fn call_plain(&self, request: &PlainRequest<'_>) -> Option<PlainCall> {
        let (path, _) = request.path_and_query()?;
        let matched = self.paths.at(path).ok()?;
        let route = &self.routes[*matched.value];
        let methods = match &route.answers {
            Answers::Methods(methods) => methods,
            Answers::Below(handler) => {
                let rest = request.target().get(route.path.len()..)?;
                let request = rest.starts_with(b"/").then(|| request.with_target(rest))?;
                return handler.call_plain_boxed(&request);
            }
        };
        let (_, endpoint) = methods.iter().find(|(known, _)| known == request.method())?;
        let context = Context { state: &self.state, parameters: Parameters::new(&matched.params) };
        endpoint.call_plain(request, &context)
    }
}

/// # Panics
/// If the arguments of the endpoint do not fit the parameters of `path`.
fn check<S, A, E: Endpoint<S, A>>(_: &E, path: &str) {
    if let Err(misfit) = E::check(&names(path)) {
        panic!("the route {path} does not fit its function: {misfit}");
    }
}

/// The names of the parameters of `path`, in order.
fn names(path: &str) -> Vec<String> {
    let unescaped = path.replace("{{", "").replace("}}", "");
    let parts = unescaped.split('{').skip(1).filter_map(|part| part.split_once('}'));
    parts.map(|(name, _)| name.trim_start_matches('*').to_string()).collect()
}

/// The request with the rest of its path below `prefix`.
fn below(mut request: Request, prefix: &str) -> Request {
    let target = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
    let rest = target.get(prefix.len()..).unwrap_or_default();
    let rest = if rest.starts_with('/') { rest.to_string() } else { format!("/{rest}") };
    let mut parts = request.uri().clone().into_parts();
    parts.path_and_query = PathAndQuery::try_from(rest).ok();
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
    let outer = request.extensions().get::<Mount>().map_or("", |mount| &mount.0);
    let mount = Mount(format!("{outer}{prefix}"));
    request.extensions_mut().insert(mount);
    request
}

/// The response to a method that a path does not have; `is_question` if it is `OPTIONS`.
#[cold]
fn not_allowed<'m>(methods: impl Iterator<Item = &'m Method>, is_question: bool) -> Response {
    let mut names: Vec<&str> = methods.map(Method::as_str).collect();
    if names.contains(&"GET") && !names.contains(&"HEAD") {
        names.push("HEAD");
    }
    if !names.contains(&"OPTIONS") {
        names.push("OPTIONS");
    }
    let status = if is_question { StatusCode::NO_CONTENT } else { StatusCode::METHOD_NOT_ALLOWED };
    let mut response = status.into_response();
    if let Ok(value) = HeaderValue::from_str(&names.join(", ")) {
        response.headers_mut().insert(ALLOW, value);
    }
    response
}

impl<S> fmt::Debug for Router<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths = self.routes.iter().map(|route| {
            let methods = match &route.answers {
                Answers::Methods(methods) => methods.iter().map(|(method, _)| method.as_str()).collect(),
                Answers::Below(_) => vec!["*"],
            };
            (&route.path, methods)
        });
        f.debug_map().entries(paths).finish()
    }
}
