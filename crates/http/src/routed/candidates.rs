//! Which files may answer for a path, in the order in which they are tried: the names of
//! `try_files`, the index of a directory, the client's languages, and the codings it accepts.

use crate::cache::{split_key, typed_key};
use crate::mime;
use crate::request::Request;
use crate::status::Status;
use crate::target;
use selvedge_site::accept::{Coding, codings, languages};
use selvedge_site::path::canonical;
use selvedge_site::{ServedDirectory, Variables, without_port};

/// A file that may answer.
pub(super) struct FileCandidate {
    /// Its key in [`Files`](crate::files::Files): a name, and the name that its type is taken of.
    pub(super) key: Vec<u8>,
    /// Whether it is the path itself, which may turn out to be a directory.
    pub(super) is_plain: bool,
    pub(super) coding: Option<Coding>,
    pub(super) language: Option<String>,
}

impl FileCandidate {
    /// The name that its media type is taken of.
    pub(super) fn typed(&self) -> &[u8] {
        split_key(&self.key).1
    }
}

/// The most files that are tried for one path.
const TRIED_MAX: usize = 64;

/// The files for the path `rest` below `directory`.
///
/// # Errors
/// The status for a path that stands for no name: 400 or 404.
pub(super) fn candidates(
    directory: &ServedDirectory,
    rest: &[u8],
    path: &[u8],
    request: &Request<'_>,
) -> Result<Vec<FileCandidate>, Status> {
    let mut names: Vec<(Vec<u8>, bool)> = Vec::new();
    if directory.try_files.is_empty() {
        put_names(directory, rest, true, &mut names)?;
    } else {
        // What the client asks for is refused if it is hidden, whatever is tried.
        target::resolve(rest, &mut Vec::new())?;
        let host = without_port(request.host.unwrap_or_default());
        for template in directory.try_files.iter().filter(|template| template.permits_host(host)) {
            let filled = template.fill(&Variables { path, rest, host, query: None });
            let Ok(filled) = canonical(&filled) else { continue };
            // A name that no file can have is left out.
            let _ = put_names(directory, &filled, *filled == *rest, &mut names);
        }
    }
    let accepted: Vec<Coding> = match directory.precompressed {
        true => codings(request.values("Accept-Encoding")).collect(),
        false => Vec::new(),
    };
    let mut tried = Vec::new();
    for (name, is_plain) in names {
        let (page, _) = page_and_language(directory, &name);
        for (variant, language) in variants(directory, &name, request) {
            for &coding in &accepted {
                let packed = [&variant[..], coding.suffix().as_bytes()].concat();
                let (key, language) = (typed_key(&packed, page), language.clone());
                tried.push(FileCandidate { key, is_plain: false, coding: Some(coding), language });
            }
            let is_plain = is_plain && variant == name;
            let key = if variant == page { variant } else { typed_key(&variant, page) };
            tried.push(FileCandidate { key, is_plain, coding: None, language });
        }
    }
    tried.truncate(TRIED_MAX);
    Ok(tried)
}

/// The names of files for a canonical path: those of the index for a directory.
fn put_names(
    directory: &ServedDirectory,
    path: &[u8],
    is_asked: bool,
    names: &mut Vec<(Vec<u8>, bool)>,
) -> Result<(), Status> {
    let mut name = Vec::new();
    target::resolve(path, &mut name)?;
    match name.is_empty() || name.ends_with(b"/") {
        false => names.push((name, is_asked)),
        true => {
            for index in &directory.index {
                names.push(([&name[..], index.as_bytes()].concat(), false));
            }
        }
    }
    Ok(())
}

/// The page that the file `name` is in one language, and that language: `page.html` and `de` of
/// `page.html.de`. `name` itself and no language, if the directory selects no files by language or
/// the name is none of that kind.
fn page_and_language<'n>(directory: &ServedDirectory, name: &'n [u8]) -> (&'n [u8], Option<&'n str>) {
    let end = name.iter().rposition(|&byte| byte == b'.').filter(|_| directory.language.is_some());
    let Some((page, suffix)) = end.map(|end| (&name[..end], &name[end + 1..])) else { return (name, None) };
    let is_tag =
        |tag: &&str| !tag.is_empty() && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    match str::from_utf8(suffix).ok().filter(|tag| is_page(page) && is_tag(tag)) {
        Some(language) if mime::by_name(name) == mime::DEFAULT => (page, Some(language)),
        _ => (name, None),
    }
}

/// Whether it is the name of a page.
fn is_page(name: &[u8]) -> bool {
    name.ends_with(b".html") || name.ends_with(b".htm")
}

/// `name` in the languages that the client accepts, as it is, and in the language of the directory,
/// if it is the name of a page.
fn variants(
    directory: &ServedDirectory,
    name: &[u8],
    request: &Request<'_>,
) -> Vec<(Vec<u8>, Option<String>)> {
    let Some(own) = directory.language.as_ref().filter(|_| is_page(name)) else {
        let (_, language) = page_and_language(directory, name);
        return vec![(name.to_vec(), language.map(str::to_owned))];
    };
    let with = |language: &String| [name, b".", language.as_bytes()].concat();
    let mut variants = Vec::new();
    let mut has_own = false;
    for language in languages(request.values("Accept-Language")) {
        if language == *own {
            // The file without a suffix is in this language.
            variants.push((with(&language), Some(language.clone())));
            variants.push((name.to_vec(), Some(language)));
            has_own = true;
        } else {
            variants.push((with(&language), Some(language)));
        }
    }
    if !has_own {
        variants.push((name.to_vec(), None));
        variants.push((with(own), Some(own.clone())));
    }
    variants
}
