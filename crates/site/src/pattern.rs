//! Patterns of paths: [`PathPattern`] says which requests a route takes, [`Glob`] which files a
//! rule is for.
//!
//! A glob is matched as a set of places in it that a byte moves forward, so the time is
//! proportional to the text and no input makes it long.

use crate::path::canonical;
use std::fmt;

/// The most tokens of one alternative of a glob: its places are the bits of a word.
const TOKENS_MAX: usize = 63;

/// The most alternatives that the braces of a glob may give.
const ALTERNATIVES_MAX: usize = 64;

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError(String);

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PatternError {}

/// The paths that a route takes.
///
/// | Pattern | Takes |
/// |---|---|
/// | `/docs/` | everything below `/docs/`; and `/docs`, which is redirected to `/docs/` |
/// | `/robots.txt` | this path alone |
/// | `/*.php`, `/**.php` | a glob, see [`Glob`] |
///
/// # Examples
/// ```
/// use selvedge_site::PathPattern;
/// let docs: PathPattern = "/docs/".parse()?;
/// assert!(docs.is_match(b"/docs/a/b") && docs.is_match(b"/docs/") && !docs.is_match(b"/docsx"));
/// assert!(docs.lacks_slash(b"/docs"));
/// # Ok::<(), selvedge_site::PatternError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathPattern {
    /// One path.
    Exact(Box<[u8]>),
    /// All paths that begin with this, which ends in `/`.
    Below(Box<[u8]>),
    /// The paths that a glob matches.
    Glob(Glob),
}

impl std::str::FromStr for PathPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<PathPattern, PatternError> {
        if !text.starts_with('/') {
            return Err(PatternError(format!("the path {text:?} does not begin with /")));
        }
        if text.contains(['*', '{', '?']) {
            return Ok(PathPattern::Glob(text.parse()?));
        }
        let path = canonical(text.as_bytes())
            .map_err(|_| PatternError(format!("the path {text:?} is not one that a request can have")))?;
        Ok(match path.ends_with(b"/") {
            true => PathPattern::Below((*path).into()),
            false => PathPattern::Exact((*path).into()),
        })
    }
}

impl PathPattern {
    /// Whether it takes the canonical path `path`.
    pub fn is_match(&self, path: &[u8]) -> bool {
        match self {
            PathPattern::Exact(exact) => **exact == *path,
            PathPattern::Below(prefix) => path.starts_with(prefix),
            PathPattern::Glob(glob) => glob.is_match(path),
        }
    }

    /// Whether `path` is the directory of a [`Below`](PathPattern::Below) without its `/`.
    pub fn lacks_slash(&self, path: &[u8]) -> bool {
        matches!(self, PathPattern::Below(prefix) if prefix.strip_suffix(b"/") == Some(path))
    }

    /// Bytes of a matching path in front of the part that the route's action goes by: that part
    /// begins with `/`.
    pub fn prefix_len(&self) -> usize {
        match self {
            PathPattern::Below(prefix) => prefix.len() - 1,
            PathPattern::Exact(_) | PathPattern::Glob(_) => 0,
        }
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathPattern::Exact(path) | PathPattern::Below(path) => {
                f.write_str(&String::from_utf8_lossy(path))
            }
            PathPattern::Glob(glob) => f.write_str(&glob.text),
        }
    }
}

/// A pattern of texts. `*` stands for any bytes but `/`, `**` for any bytes, `?` for one byte but
/// `/`, and `{a,b}` for `a` or `b`.
///
/// # Examples
/// ```
/// use selvedge_site::Glob;
/// let styles: Glob = "**.{css,js}".parse()?;
/// assert!(styles.is_match(b"/a/site.css") && !styles.is_match(b"/a/site.html"));
/// # Ok::<(), selvedge_site::PatternError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    text: String,
    alternatives: Vec<Vec<GlobToken>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GlobToken {
    Byte(u8),
    /// `?`
    One,
    /// `*`
    Name,
    /// `**`
    Any,
}

impl std::str::FromStr for Glob {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Glob, PatternError> {
        let texts = without_braces(text)?;
        let alternatives = texts.iter().map(|text| tokens(text)).collect::<Result<_, _>>()?;
        Ok(Glob { text: text.to_owned(), alternatives })
    }
}

/// The texts that `text` stands for, with one alternative of each pair of braces.
fn without_braces(text: &str) -> Result<Vec<String>, PatternError> {
    let Some(open) = text.find('{') else {
        return match text.contains('}') {
            true => Err(PatternError(format!("{text:?} has a }} without a {{"))),
            false => Ok(vec![text.to_owned()]),
        };
    };
    let close = text[open..].find('}').map(|at| open + at);
    let close = close.ok_or_else(|| PatternError(format!("{text:?} has a {{ without a }}")))?;
    let inner = &text[open + 1..close];
    if inner.contains('{') || text[..open].contains('}') {
        return Err(PatternError(format!("{text:?} has braces within braces")));
    }
    let mut texts = Vec::new();
    for rest in without_braces(&text[close + 1..])? {
        for choice in inner.split(',') {
            texts.push(format!("{}{choice}{rest}", &text[..open]));
            if texts.len() > ALTERNATIVES_MAX {
                return Err(PatternError(format!("{text:?} has more than {ALTERNATIVES_MAX} alternatives")));
            }
        }
    }
    Ok(texts)
}

fn tokens(text: &str) -> Result<Vec<GlobToken>, PatternError> {
    let mut tokens = Vec::new();
    let mut bytes = text.bytes().peekable();
    while let Some(byte) = bytes.next() {
        tokens.push(match byte {
            b'*' if bytes.next_if_eq(&b'*').is_some() => GlobToken::Any,
            b'*' => GlobToken::Name,
            b'?' => GlobToken::One,
            byte => GlobToken::Byte(byte),
        });
    }
    match tokens.len() <= TOKENS_MAX {
        true => Ok(tokens),
        false => Err(PatternError(format!("{text:?} is longer than {TOKENS_MAX} characters"))),
    }
}

impl Glob {
    /// Whether it matches all of `text`.
    ///
    /// # Complexity
    /// The length of the text times the number of tokens and alternatives, and no allocation.
    pub fn is_match(&self, text: &[u8]) -> bool {
        self.alternatives.iter().any(|tokens| match_tokens(tokens, text))
    }
}

/// Whether `tokens` match all of `text`. Bit `i` of a set stands for the place before token `i`.
fn match_tokens(tokens: &[GlobToken], text: &[u8]) -> bool {
    let end = 1u64 << tokens.len();
    let mut places = with_empty_stars(tokens, 1);
    for &byte in text {
        let mut next = 0;
        let mut left = places & !end;
        while left != 0 {
            let at = left.trailing_zeros() as usize;
            left &= left - 1;
            next |= match tokens[at] {
                GlobToken::Byte(expected) if expected == byte => 1 << (at + 1),
                GlobToken::One if byte != b'/' => 1 << (at + 1),
                GlobToken::Name if byte != b'/' => 1 << at,
                GlobToken::Any => 1 << at,
                _ => 0,
            };
        }
        places = with_empty_stars(tokens, next);
        if places == 0 {
            return false;
        }
    }
    places & end != 0
}

/// Adds the places that are reached because a star may stand for nothing.
fn with_empty_stars(tokens: &[GlobToken], mut places: u64) -> u64 {
    for (at, token) in tokens.iter().enumerate() {
        if matches!(token, GlobToken::Name | GlobToken::Any) && places & 1 << at != 0 {
            places |= 1 << (at + 1);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The slow obvious version.
    fn obvious(tokens: &[GlobToken], text: &[u8]) -> bool {
        let Some((token, rest)) = tokens.split_first() else { return text.is_empty() };
        let upto = |stop: fn(&u8) -> bool| {
            let most = text.iter().position(stop).unwrap_or(text.len());
            (0..=most).any(|taken| obvious(rest, &text[taken..]))
        };
        match token {
            GlobToken::Any => upto(|_| false),
            GlobToken::Name => upto(|&byte| byte == b'/'),
            GlobToken::One => text.first().is_some_and(|&byte| byte != b'/') && obvious(rest, &text[1..]),
            GlobToken::Byte(byte) => text.first() == Some(byte) && obvious(rest, &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn globs(pattern in "[ab/*?]{0,8}", text in "[ab/]{0,8}") {
            let tokens = tokens(&pattern).unwrap();
            let glob: Glob = pattern.parse().unwrap();
            prop_assert_eq!(glob.is_match(text.as_bytes()), obvious(&tokens, text.as_bytes()));
        }
    }

    #[test]
    fn braces() {
        let glob: Glob = "/{a,bc}/*.{png,jpg}".parse().unwrap();
        for path in ["/a/x.png", "/bc/.jpg"] {
            assert!(glob.is_match(path.as_bytes()), "{path}");
        }
        for path in ["/b/x.png", "/a/x/y.png", "/a/x.gif"] {
            assert!(!glob.is_match(path.as_bytes()), "{path}");
        }
        for wrong in ["{a", "a}", "{a{b}}", &"{a,b}".repeat(7), &"a".repeat(64)] {
            assert!(wrong.parse::<Glob>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn patterns() {
        let pattern = |text: &str| text.parse::<PathPattern>();
        assert!(pattern("docs/").is_err() && pattern("/../").is_err());
        let home = pattern("/~alice/").unwrap();
        assert!(home.is_match(b"/~alice/x") && home.lacks_slash(b"/~alice") && home.prefix_len() == 7);
        assert_eq!(pattern("/a b").unwrap().to_string(), "/a%20b");
        assert!(pattern("/").unwrap().is_match(b"/anything") && pattern("/").unwrap().prefix_len() == 0);
        assert!(!pattern("/").unwrap().lacks_slash(b"/"));
    }
}
