//! What a client prefers: content codings (RFC 9110 §12.5.3), languages (§12.5.4), and JSON over a
//! page (§12.5.1).

/// The weight of a member, 0 to 1000; 1000 if it has none that can be read.
fn weight(parameters: &[u8]) -> u16 {
    let q = parameters
        .split(|&byte| byte == b';')
        .map(<[u8]>::trim_ascii)
        .find_map(|parameter| parameter.strip_prefix(b"q=").or_else(|| parameter.strip_prefix(b"Q=")));
    let Some(q) = q else { return 1000 };
    match q {
        [b'0', rest @ ..] => {
            let digits = rest.strip_prefix(b".").unwrap_or_default();
            (0..3).fold(0, |sum, at| {
                let digit = digits.get(at).filter(|byte| byte.is_ascii_digit()).map_or(0, |byte| byte - b'0');
                sum * 10 + u16::from(digit)
            })
        }
        _ => 1000,
    }
}

/// The members of a list: each with its weight.
fn members<'v>(values: impl Iterator<Item = &'v [u8]>) -> impl Iterator<Item = (&'v [u8], u16)> {
    values.flat_map(|value| value.split(|&byte| byte == b',')).filter_map(|member| {
        let end = member.iter().position(|&byte| byte == b';').unwrap_or(member.len());
        let (name, parameters) = member.split_at(end);
        let name = name.trim_ascii();
        (!name.is_empty()).then(|| (name, weight(parameters)))
    })
}

/// A content coding that the server knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Coding {
    /// `br`
    Brotli,
    /// `zstd`
    Zstd,
    /// `gzip`
    Gzip,
}

impl Coding {
    /// All, the server's favourite first: the smallest result.
    pub const ALL: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

    /// The name in `Content-Encoding`.
    pub fn name(self) -> &'static str {
        match self {
            Coding::Brotli => "br",
            Coding::Zstd => "zstd",
            Coding::Gzip => "gzip",
        }
    }

    /// The end of a file's name that is compressed so.
    pub fn suffix(self) -> &'static str {
        match self {
            Coding::Brotli => ".br",
            Coding::Zstd => ".zst",
            Coding::Gzip => ".gz",
        }
    }
}

/// The codings that a client accepts, given the values of `Accept-Encoding`: the best first, by the
/// client's weights and then by the server's order. A coding that the client likes less than the
/// file as it is, is left out.
///
/// # Examples
/// ```
/// use selvedge_site::accept::{Coding, codings};
/// let accepted = codings([&b"gzip, br;q=0.5, *;q=0"[..]].into_iter());
/// assert_eq!(accepted.collect::<Vec<_>>(), [Coding::Gzip, Coding::Brotli]);
/// ```
pub fn codings<'v>(values: impl Iterator<Item = &'v [u8]>) -> impl Iterator<Item = Coding> {
    let (mut weights, mut others, mut identity) = ([None; 3], 0, None);
    for (name, weight) in members(values) {
        let coding = Coding::ALL.iter().position(|coding| {
            name.eq_ignore_ascii_case(coding.name().as_bytes())
                || *coding == Coding::Gzip && name.eq_ignore_ascii_case(b"x-gzip")
        });
        match coding {
            Some(at) => weights[at] = Some(weight),
            None if name == b"*" => others = weight,
            None if name.eq_ignore_ascii_case(b"identity") => identity = Some(weight),
            None => {}
        }
    }
    let mut accepted: Vec<(u16, Coding)> = Coding::ALL
        .into_iter()
        .zip(weights)
        .map(|(coding, weight)| (weight.unwrap_or(others), coding))
        .filter(|(weight, _)| *weight > 0 && *weight >= identity.unwrap_or(0))
        .collect();
    accepted.sort_by_key(|(weight, coding)| (std::cmp::Reverse(*weight), *coding));
    accepted.into_iter().map(|(_, coding)| coding)
}

/// The languages that a client accepts, given the values of `Accept-Language`: the best first, in
/// lower case. A language with a region is followed by the language alone. A tag that could not be
/// a part of a file's name is left out.
///
/// # Examples
/// ```
/// use selvedge_site::accept::languages;
/// let accepted = languages([&b"en;q=0.5, de-AT, ja;q=0"[..]].into_iter());
/// assert_eq!(accepted, ["de-at", "de", "en"]);
/// ```
pub fn languages<'v>(values: impl Iterator<Item = &'v [u8]>) -> Vec<String> {
    /// More tags than a browser sends.
    const TAGS_MAX: usize = 16;
    let is_tag = |tag: &[u8]| tag.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let mut tags: Vec<(u16, &[u8])> = members(values)
        .filter(|(tag, weight)| *weight > 0 && is_tag(tag))
        .map(|(tag, weight)| (weight, tag))
        .take(TAGS_MAX)
        .collect();
    tags.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    let mut languages: Vec<String> = Vec::new();
    for (_, tag) in tags {
        let tag = String::from_utf8_lossy(tag).to_ascii_lowercase();
        let language = tag.split('-').next().unwrap_or_default().to_owned();
        for one in [tag, language] {
            if !languages.contains(&one) {
                languages.push(one);
            }
        }
    }
    languages
}

/// Whether a client prefers JSON over a page, given the values of `Accept`.
pub fn prefers_json<'v>(values: impl Iterator<Item = &'v [u8]>) -> bool {
    let (mut json, mut html) = (0, 0);
    for (name, weight) in members(values) {
        match name {
            b"application/json" => json = weight,
            b"text/html" | b"application/xhtml+xml" => html = html.max(weight),
            _ => {}
        }
    }
    json > html
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(value: &str) -> String {
        let names: Vec<_> = codings([value.as_bytes()].into_iter()).map(Coding::name).collect();
        names.join(" ")
    }

    #[test]
    fn content_codings() {
        for (value, expected) in [
            ("", ""),
            ("gzip", "gzip"),
            ("gzip, deflate, br, zstd", "br zstd gzip"),
            ("*", "br zstd gzip"),
            ("br;q=0, *", "zstd gzip"),
            ("GZIP;Q=0.1,x-unknown", "gzip"),
            ("identity, gzip;q=0.5", ""),
            ("identity;q=0.5, gzip;q=1.0", "gzip"),
            ("gzip;q=0.001", "gzip"),
            ("gzip;q=0.0001", ""),
            ("x-gzip", "gzip"),
            (";q=1, ,", ""),
        ] {
            assert_eq!(accepted(value), expected, "{value:?}");
        }
    }

    #[test]
    fn tags_of_languages() {
        let of = |value: &str| languages([value.as_bytes()].into_iter()).join(" ");
        assert_eq!(of("ja, en-US;q=0.9, en;q=0.8, *;q=0.1"), "ja en-us en");
        assert_eq!(of("../../etc, a/b, de"), "de");
        assert_eq!(of(&"a,".repeat(100)), "a");
    }

    #[test]
    fn json_or_a_page() {
        let json = |value: &str| prefers_json([value.as_bytes()].into_iter());
        assert!(json("application/json") && json("text/html;q=0.5, application/json"));
        assert!(!json("*/*") && !json("text/html,application/json;q=0.9") && !json(""));
    }
}
