//! [`Cookies`] that a client sends, and [`SetCookie`], which it is told to keep (RFC 6265).

use crate::extract::{Context, FromParts};
use http::HeaderValue;
use http::header::{COOKIE, SET_COOKIE};
use http::request::Parts;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use selvedge_handler::{PlainRequest, Response, ResponsePart};
use std::convert::Infallible;
use std::fmt::{self, Write};
use std::time::Duration;

/// The bytes of a value that are percent-encoded: the bytes that no cookie may hold, and the `%`.
const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b',').add(b';').add(b'\\').add(b'%');

/// The cookies of a request. Values are percent-decoded, as [`SetCookie`] encodes them.
#[derive(Clone, Debug, Default)]
pub struct Cookies(Vec<(String, String)>);

impl Cookies {
    /// The value of the first cookie with this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// All names and values, in the order in which the client sent them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Reads the value of a field `Cookie`. A part without `=`, or with a value that is no UTF-8,
    /// is left out.
    pub(crate) fn parse(&mut self, field: &str) {
        let parts = field.split(';').filter_map(|part| part.split_once('='));
        self.0.extend(parts.filter_map(|(name, value)| {
            let value = value.trim_matches([' ', '\t']);
            let value = value.strip_prefix('"').and_then(|v| v.strip_suffix('"')).unwrap_or(value);
            let value = percent_decode_str(value).decode_utf8().ok()?;
            Some((name.trim_matches([' ', '\t']).to_string(), value.into_owned()))
        }));
    }
}

impl<S> FromParts<S> for Cookies {
    type Rejection = Infallible;

    fn from_parts(parts: &mut Parts, _: &Context<'_, S>) -> Result<Cookies, Infallible> {
        let mut cookies = Cookies::default();
        for field in parts.headers.get_all(COOKIE) {
            cookies.parse(field.to_str().unwrap_or_default());
        }
        Ok(cookies)
    }

    fn from_plain(request: &PlainRequest<'_>, _: &Context<'_, S>) -> Option<Result<Cookies, Infallible>> {
        let mut cookies = Cookies::default();
        let fields = request.fields().filter(|(name, _)| name.eq_ignore_ascii_case(b"cookie"));
        for (_, value) in fields {
            // As above, a value that is no visible text has no cookies.
            let value = HeaderValue::from_bytes(value).ok()?;
            cookies.parse(value.to_str().unwrap_or_default());
        }
        Some(Ok(cookies))
    }
}

/// To which requests of other sites a cookie is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SameSite {
    /// None.
    Strict,
    /// Requests that navigate to the page.
    Lax,
    /// All requests. Such a cookie is [`secure`](SetCookie::secure).
    None,
}

/// A cookie for the client to keep. `(SetCookie, reply)` is a reply too.
///
/// # Examples
/// ```
/// use selvedge::web::{Cookies, Router, SetCookie, testing::get};
/// use std::time::Duration;
///
/// async fn greet(cookies: Cookies) -> (SetCookie, String) {
///     let visits = cookies.get("visits").and_then(|text| text.parse().ok()).unwrap_or(0) + 1;
///     let day = Duration::from_secs(86_400);
///     let cookie = SetCookie::new("visits", &visits.to_string()).max_age(day);
///     (cookie, format!("visit {visits}"))
/// }
///
/// selvedge::run_local(async {
///     let router = Router::new().get("/", greet);
///     let cookie = "visits=1; Path=/; Max-Age=86400; HttpOnly; SameSite=Lax";
///     assert_eq!(get(&router, "/").await.header("set-cookie"), Some(cookie));
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SetCookie {
    name: String,
    value: String,
    path: String,
    domain: Option<String>,
    max_age: Option<Duration>,
    secure: bool,
    http_only: bool,
    same_site: SameSite,
}

impl SetCookie {
    /// A cookie for the whole site, until the browser ends. Scripts do not see it, and it is not
    /// added to requests of other sites, but for navigation. The value is percent-encoded.
    ///
    /// # Panics
    /// If `name` is no token.
    pub fn new(name: &str, value: &str) -> SetCookie {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        assert!(!name.is_empty() && name.bytes().all(is_token), "{name:?} is no name of a cookie");
        SetCookie {
            name: name.into(),
            value: utf8_percent_encode(value, ENCODED).to_string(),
            path: "/".into(),
            domain: None,
            max_age: None,
            secure: false,
            http_only: true,
            same_site: SameSite::Lax,
        }
    }

    /// A cookie that makes the client forget the cookie with this name.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn remove(name: &str) -> SetCookie {
        SetCookie::new(name, "").max_age(Duration::ZERO)
    }

    /// The client keeps it for `age`, to the second, also when the browser ends.
    pub fn max_age(mut self, age: Duration) -> SetCookie {
        self.max_age = Some(age);
        self
    }

    /// It is for the paths below `path` only.
    ///
    /// # Panics
    /// If the path has a `;` or a control byte.
    pub fn path(mut self, path: &str) -> SetCookie {
        self.path = attribute(path);
        self
    }

    /// It is for `domain` and the domains below it, not for the host alone.
    ///
    /// # Panics
    /// If the domain has a `;` or a control byte.
    pub fn domain(mut self, domain: &str) -> SetCookie {
        self.domain = Some(attribute(domain));
        self
    }

    /// It goes over encrypted connections only.
    pub fn secure(mut self) -> SetCookie {
        self.secure = true;
        self
    }

    /// Scripts of the page may read it.
    pub fn for_scripts(mut self) -> SetCookie {
        self.http_only = false;
        self
    }

    /// To which requests of other sites it is added.
    pub fn same_site(mut self, same_site: SameSite) -> SetCookie {
        self.same_site = same_site;
        self.secure |= same_site == SameSite::None;
        self
    }
}

fn attribute(value: &str) -> String {
    assert!(!value.contains(|c: char| c == ';' || c.is_control()), "{value:?} is no attribute of a cookie");
    value.into()
}

impl fmt::Display for SetCookie {
    /// The value of the field `Set-Cookie`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}; Path={}", self.name, self.value, self.path)?;
        if let Some(domain) = &self.domain {
            write!(f, "; Domain={domain}")?;
        }
        if let Some(age) = self.max_age {
            write!(f, "; Max-Age={}", age.as_secs())?;
        }
        for (is, text) in [(self.secure, "; Secure"), (self.http_only, "; HttpOnly")] {
            f.write_str(if is { text } else { "" })?;
        }
        f.write_char(';')?;
        write!(f, " SameSite={:?}", self.same_site)
    }
}

/// One more cookie.
impl ResponsePart for SetCookie {
    fn add_to(self, response: &mut Response) {
        if let Ok(value) = HeaderValue::try_from(self.to_string()) {
            response.headers_mut().append(SET_COOKIE, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_comes_back_as_it_was_set() {
        for value in ["", "a", "a; b=c", "\"quoted\"", "50 %", "Weberei für Zwirn"] {
            let set = SetCookie::new("cloth", value).to_string();
            let mut cookies = Cookies::default();
            cookies.parse(&format!("first=1; {}; last=2", set.split_once(';').unwrap().0));
            assert_eq!(cookies.get("cloth"), Some(value), "{set}");
            assert_eq!(cookies.get("last"), Some("2"));
        }
    }
}
