//! [`RedirectTo`]: a redirect as a handler, for routers.
//!
//! A redirect of a site with routes is the same reply, without a handler (`routed.rs`).

use crate::date::Clock;
use crate::error_page::{self, Extra};
use crate::plain;
use crate::request::Method;
use crate::response::Persistence;
use crate::static_files::page;
use crate::status::Status;
use selvedge_handler::{Handler, Mount, Request, Response, StatusCode, header};
use selvedge_site::path::canonical;
use selvedge_site::{Template, TemplateError, Variables, without_port};

/// Sends all clients to another address, which a template makes of their requests.
///
/// `$path` is the whole path, `$rest` the part of it below the place of a router at which the
/// handler is nested, `$host` and `$query` are those of the request. A template without `?` and
/// `$query` gets the query of the request. A function that redirects by its own rules returns the
/// `Redirect` of `selvedge::web` instead.
///
/// # Examples
/// ```
/// use selvedge::http::{RedirectTo, StatusCode};
/// use selvedge::web::{Router, testing::get};
///
/// let moved = RedirectTo::new("https://looms.example$rest")?;
/// let moved = moved.status(StatusCode::PERMANENT_REDIRECT);
/// selvedge::run_local(async {
///     let router = Router::new().nest("/old", moved);
///     let answer = get(&router, "/old/twill?ells=12").await;
///     assert_eq!(answer.status(), 308);
///     assert_eq!(answer.header("location"), Some("https://looms.example/twill?ells=12"));
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct RedirectTo {
    to: Template,
    status: Status,
}

impl RedirectTo {
    /// A redirect to what the template `to` makes, with `301 Moved Permanently`.
    ///
    /// # Errors
    /// If the text is no template.
    pub fn new(to: &str) -> Result<RedirectTo, TemplateError> {
        Ok(RedirectTo { to: to.parse()?, status: Status::MOVED_PERMANENTLY })
    }

    /// With this status in place of 301.
    ///
    /// # Panics
    /// If it is not 301, 302, 303, 307 or 308.
    #[must_use]
    pub fn status(mut self, status: StatusCode) -> RedirectTo {
        assert!(matches!(status.as_u16(), 301..=303 | 307 | 308), "{status} is no redirect");
        self.status = Status::of_code(status.as_u16());
        self
    }
}

impl Handler for RedirectTo {
    async fn call(&self, request: Request) -> Response {
        let clock = Clock::now();
        let Ok(rest) = canonical(request.uri().path().as_bytes()) else {
            return page(Status::BAD_REQUEST, &clock);
        };
        let mount = request.extensions().get::<Mount>().map_or("", |mount| &mount.0);
        let path = [mount.as_bytes(), &rest].concat();
        let named = request.headers().get(header::HOST).map(|host| host.as_bytes());
        let host = without_port(named.unwrap_or_default());
        let query = request.uri().query().map(str::as_bytes);
        let location = self.to.location(&Variables { path: &path, rest: &rest, host, query });
        let mut out = Vec::with_capacity(512);
        let extra = Extra::Location(&location);
        error_page::put(self.status, extra, Method::Get, Persistence::Implied, &clock, &mut out);
        plain::response(&out, None, None)
    }
}
