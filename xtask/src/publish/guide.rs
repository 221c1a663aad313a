//! The guide on the site: a page for each file of `docs/guide/`, in the order of the links in its
//! `README.md`, with all pages in a navigation beside the text. `publish.rs` calls `pages` and
//! `html`.
//!
//! The first page must name each file of the directory and nothing else. A file that it omits, and
//! a name without a file, are errors.

use super::html::{Page, Site, relative, title};
use super::svg::escaped;
use crate::tidy::markdown;
use std::collections::BTreeMap;
use std::fmt::Write;

const DIR: &str = "docs/guide";
const FIRST: &str = "docs/guide/README.md";
const SITE: &str = "site/guide";

/// The files of the guide, in its order: the directory of each one's page, and the file.
///
/// # Errors
/// When the guide has no first page.
pub(super) fn pages(sources: &BTreeMap<String, String>) -> Result<Vec<(String, String)>, String> {
    let first = sources.get(FIRST).ok_or_else(|| format!("{FIRST} does not exist"))?;
    let mut pages = vec![(SITE.to_string(), FIRST.to_string())];
    for (_, target) in markdown::links(first) {
        if let Some(name) = target.strip_suffix(".md").filter(|name| !name.contains('/')) {
            pages.push((format!("{SITE}/{name}"), format!("{DIR}/{target}")));
        }
    }
    Ok(pages)
}

/// The files of the site, by path.
///
/// # Errors
/// When the first page names a file that does not exist, or omits one that does.
pub(super) fn html(
    pages: &[(String, String)],
    sources: &BTreeMap<String, String>,
    site: &Site<'_>,
) -> Result<BTreeMap<String, String>, String> {
    for file in sources.keys().filter(|file| file.starts_with(DIR) && file.ends_with(".md")) {
        if pages.iter().all(|(_, known)| known != file) {
            return Err(format!("{FIRST} names no {file}"));
        }
    }
    let text = |file: &String| sources.get(file).ok_or_else(|| format!("{file} does not exist"));
    let mut titles = Vec::new();
    for (dir, file) in pages {
        titles.push((dir, title(text(file)?)));
    }
    let mut html = BTreeMap::new();
    for (index, (dir, file)) in pages.iter().enumerate() {
        let mut list = String::new();
        for (place, title) in &titles {
            let current = if place == &dir { " aria-current=\"page\"" } else { "" };
            let _ = writeln!(
                list,
                "<li><a href=\"{}\"{current}>{}</a></li>",
                relative(dir, place),
                escaped(title)
            );
        }
        let step = |index: Option<usize>, class: &str| {
            let (place, title) = titles.get(index?)?;
            Some(format!("<a class=\"{class}\" href=\"{}\">{}</a>\n", relative(dir, place), escaped(title)))
        };
        let (previous, next) = (step(index.checked_sub(1), "previous"), step(Some(index + 1), "next"));
        let steps = [previous, next].into_iter().flatten().collect::<String>();
        let page = Page {
            dir,
            source: file,
            text: text(file)?,
            description: &format!("The guide to Selvedge: {}.", titles[index].1),
            before: format!(
                "<div class=\"guide\">\n<nav class=\"pages\" aria-label=\"The guide\">\n<ol>\n{list}</ol>\n</nav>\n"
            ),
            after: format!("<nav class=\"steps\" aria-label=\"Before and after\">\n{steps}</nav>\n"),
        };
        // The navigation and the text stand in one frame.
        let page = page.html(site).replace("</main>\n", "</main>\n</div>\n");
        html.insert(format!("{dir}/index.html"), page);
    }
    Ok(html)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(files: &[(&str, &str)]) -> BTreeMap<String, String> {
        files.iter().map(|(file, text)| (format!("{DIR}/{file}"), text.to_string())).collect()
    }

    fn made(files: &[(&str, &str)]) -> Result<BTreeMap<String, String>, String> {
        let sources = sources(files);
        let pages = pages(&sources)?;
        let places = pages.iter().map(|(dir, file)| (file.clone(), dir.clone())).collect();
        html(&pages, &sources, &Site { pages: places, images: &BTreeMap::new() })
    }

    const FRONT: (&str, &str) = ("README.md", "# The guide\n1. [One](one.md)\n2. [Two](two.md): more\n");

    #[test]
    fn each_page_shows_all_pages_and_its_neighbours() {
        let made = made(&[FRONT, ("one.md", "# `One`\n"), ("two.md", "# Two\n[one](one.md)\n")]).unwrap();
        assert_eq!(made.len(), 3);
        let two = &made["site/guide/two/index.html"];
        for text in [
            "<li><a href=\"../\">The guide</a></li>",
            "<li><a href=\"../one/\">One</a></li>",
            "<li><a href=\"./\" aria-current=\"page\">Two</a></li>",
            "<a class=\"previous\" href=\"../one/\">One</a>",
            "<p><a href=\"../one/\">one</a></p>",
        ] {
            assert!(two.contains(text), "{text}: {two}");
        }
        assert!(!two.contains("class=\"next\""));
    }

    #[test]
    fn a_page_that_is_not_named_and_a_name_without_a_page_are_found() {
        assert!(made(&[FRONT, ("one.md", "# One\n")]).unwrap_err().contains("two.md does not exist"));
        let more = [FRONT, ("one.md", "# One\n"), ("two.md", "# Two\n"), ("three.md", "# Three\n")];
        assert!(made(&more).unwrap_err().contains("names no docs/guide/three.md"));
    }
}
