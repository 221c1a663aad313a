//! [`Template`]: a text with variables, for redirects, rewriting and names of files to try.

use std::fmt;
use std::str::FromStr;

/// A text in which `$path`, `$rest`, `$host`, `$query` and `${path}` and so on stand for parts of
/// the request. `$$` is a `$`.
///
/// # Examples
/// ```
/// use selvedge_site::{Template, Variables};
/// let secure: Template = "https://$host$path".parse()?;
/// let request = Variables { path: b"/a/b", rest: b"/b", host: b"example.org", query: None };
/// assert_eq!(secure.fill(&request), b"https://example.org/a/b");
/// # Ok::<(), selvedge_site::TemplateError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: String,
    parts: Vec<TemplatePart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Text(Box<[u8]>),
    Path,
    Rest,
    Host,
    Query,
}

/// The parts of a request that a template names.
#[derive(Clone, Copy, Debug)]
pub struct Variables<'a> {
    /// The canonical path.
    pub path: &'a [u8],
    /// The part of the path that the route's pattern leaves, with a `/` in front.
    pub rest: &'a [u8],
    /// The host that the request names, without its port.
    pub host: &'a [u8],
    /// The query, without its `?`.
    pub query: Option<&'a [u8]>,
}

/// A text that is no template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError(String);

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TemplateError {}

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Template, TemplateError> {
        if let Some(control) = text.chars().find(|c| c.is_control()) {
            return Err(TemplateError(format!("{text:?} has the control character {control:?}")));
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(dollar) = rest.find('$') {
            if dollar > 0 {
                parts.push(TemplatePart::Text(rest.as_bytes()[..dollar].into()));
            }
            rest = &rest[dollar + 1..];
            if let Some(behind) = rest.strip_prefix('$') {
                parts.push(TemplatePart::Text(b"$"[..].into()));
                rest = behind;
                continue;
            }
            let braced = rest.starts_with('{');
            let start = usize::from(braced);
            let letters = rest[start..].bytes().take_while(u8::is_ascii_lowercase).count();
            let name = &rest[start..start + letters];
            parts.push(match name {
                "path" => TemplatePart::Path,
                "rest" => TemplatePart::Rest,
                "host" => TemplatePart::Host,
                "query" => TemplatePart::Query,
                _ => {
                    return Err(TemplateError(format!(
                        "${name} in {text:?} is no variable: there are $path, $rest, $host and $query, \
                         and $$ for a $"
                    )));
                }
            });
            rest = &rest[start + letters..];
            if braced {
                rest = rest
                    .strip_prefix('}')
                    .ok_or_else(|| TemplateError(format!("{text:?} has a {{ without a }}")))?;
            }
        }
        if !rest.is_empty() {
            parts.push(TemplatePart::Text(rest.as_bytes().into()));
        }
        Ok(Template { text: text.to_owned(), parts })
    }
}

impl Template {
    /// The text for one request.
    pub fn fill(&self, request: &Variables<'_>) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.text.len() + request.path.len());
        for part in &self.parts {
            out.extend_from_slice(match part {
                TemplatePart::Text(text) => text,
                TemplatePart::Path => request.path,
                TemplatePart::Rest => request.rest,
                TemplatePart::Host => request.host,
                TemplatePart::Query => request.query.unwrap_or_default(),
            });
        }
        out
    }

    /// The text for one request as the target of a redirect: the query is added, if the template
    /// has none.
    ///
    /// A result that begins with more than one `/` gets one alone, because a client takes a text
    /// behind `//` for the name of a host, which the request would choose.
    pub fn location(&self, request: &Variables<'_>) -> Vec<u8> {
        let mut out = self.fill(request);
        if let Some(query) = request.query
            && !self.text.contains('?')
            && !self.parts.contains(&TemplatePart::Query)
        {
            out.push(b'?');
            out.extend_from_slice(query);
        }
        let slashes = out.iter().take_while(|&&byte| byte == b'/' || byte == b'\\').count();
        if slashes > 1 && !self.text.starts_with("//") {
            out.drain(..slashes - 1);
            out[0] = b'/';
        }
        out
    }

    /// Whether the text is the path of each request and nothing else.
    pub fn is_path(&self) -> bool {
        self.parts == [TemplatePart::Path]
    }

    /// Whether `host`, which a client chooses, can be part of a path as this template names it: it
    /// is one component that is not empty and not hidden. A template without `$host` permits every
    /// host.
    pub fn permits_host(&self, host: &[u8]) -> bool {
        let is_component =
            !host.is_empty() && host[0] != b'.' && !host.iter().any(|byte| b"/\\%?#".contains(byte));
        is_component || !self.parts.contains(&TemplatePart::Host)
    }

    /// The text as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates() {
        let request = Variables { path: b"/a/b", rest: b"/b", host: b"h", query: Some(b"q=1") };
        for (text, filled, location) in [
            ("/new$rest", "/new/b", "/new/b?q=1"),
            ("https://$host$path?$query", "https://h/a/b?q=1", "https://h/a/b?q=1"),
            ("${path}x$$", "/a/bx$", "/a/bx$?q=1"),
            ("/$rest", "//b", "/b?q=1"),
        ] {
            let template: Template = text.parse().unwrap();
            assert_eq!(String::from_utf8(template.fill(&request)).unwrap(), filled);
            assert_eq!(String::from_utf8(template.location(&request)).unwrap(), location);
            assert_eq!(template.as_str(), text);
            assert!(!template.is_path(), "{text}");
        }
        let [path, braced] = ["$path", "${path}"].map(|text| text.parse::<Template>().unwrap());
        assert!(path.is_path() && braced.is_path());
        let [with, without] = ["/h/$host$rest", "/h$rest"].map(|text| text.parse::<Template>().unwrap());
        assert!(with.permits_host(b"example.org") && with.permits_host(b"[::1]"));
        for host in ["", ".", "..", ".git", "a/b", "a%2fb", "a?b"] {
            assert!(!with.permits_host(host.as_bytes()) && without.permits_host(host.as_bytes()), "{host}");
        }
        for wrong in ["$", "$pathx", "${path", "a\r\nb"] {
            assert!(wrong.parse::<Template>().is_err(), "{wrong}");
        }
    }
}
