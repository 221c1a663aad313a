//! The site's pages that are made from Markdown: the frame that all pages have, and the body by
//! `pulldown-cmark`. `publish.rs` and `guide.rs` make a `Page` and call `html`.
//!
//! A link leads to the place that the site has for a file (`Places`). A link to a file that the
//! site does not have becomes text. So a Markdown file has links that work in the repository, and
//! the page has links that work on the site.

use super::colour;
use super::svg::escaped;
use crate::tidy::{joined, markdown::anchors};
use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd, html};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The name and the directory of each part of the site, as the navigation shows them.
const PARTS: [(&str, &str); 3] = [("Start", "start"), ("Guide", "guide"), ("Figures", "figures")];

/// One page.
#[derive(Debug)]
pub(super) struct Page<'a> {
    /// Its directory, from the root: `site/guide/threads`.
    pub(super) dir: &'a str,
    /// The Markdown file, from the root.
    pub(super) source: &'a str,
    pub(super) text: &'a str,
    pub(super) description: &'a str,
    /// The parts before the text and after it.
    pub(super) before: String,
    pub(super) after: String,
}

/// The places of the site to which links of Markdown files lead.
pub(super) trait Places {
    /// The page's directory or the file, from the root. `None` if the site has none.
    fn place(&self, file: &str) -> Option<String>;
    /// Width and height of an image.
    fn size(&self, file: &str) -> Option<(String, String)>;
}

impl Page<'_> {
    /// The whole file.
    pub(super) fn html(&self, places: &impl Places) -> String {
        let up = "../".repeat(self.dir.matches('/').count());
        let title = title(self.text);
        let mut navigation = String::new();
        for (name, part) in PARTS {
            let current =
                self.dir == format!("site/{part}") || self.dir.starts_with(&format!("site/{part}/"));
            let current = if current { " aria-current=\"page\"" } else { "" };
            let _ = writeln!(navigation, "<a href=\"{up}{part}/\"{current}>{name}</a>");
        }
        let (title, description) = (escaped(&title), escaped(self.description));
        let (before, body, after) = (&self.before, self.body(places), &self.after);
        format!(
            "<!doctype html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<title>{title} – Selvedge</title>
<meta name=\"description\" content=\"{description}\">
<meta name=\"theme-color\" content=\"#1b2650\">
<link rel=\"icon\" type=\"image/svg+xml\" href=\"{up}favicon.svg\">
<link rel=\"stylesheet\" href=\"{up}style.css\">
</head>
<body>
<a class=\"skip\" href=\"#content\">Skip to the content</a>
<div class=\"cloth narrow\"></div>
<header>
<a class=\"name\" href=\"{up}\"><img src=\"{up}logo.svg\" alt=\"\" width=\"34\" height=\"34\">Selvedge</a>
<nav aria-label=\"Pages\">
{navigation}</nav>
</header>
<!-- `cargo xtask publish` makes this page from {source}. -->
{before}<main id=\"content\">
{body}{after}</main>
<footer>
<p>Selvedge is free software under the MIT or the Apache-2.0 license, at your choice.</p>
<p>The selvedge is the edge of a cloth that keeps its threads from unravelling.</p>
</footer>
</body>
</html>
",
            source = self.source
        )
    }

    fn body(&self, places: &impl Places) -> String {
        let mut anchors = anchors(self.text).into_iter();
        let mut events: Vec<Event<'_>> = Vec::new();
        let mut parser = Parser::new_ext(self.text, Options::ENABLE_TABLES);
        // Whether the link that is open leads somewhere.
        let mut leads = true;
        while let Some(event) = parser.next() {
            match event {
                Event::Start(Tag::Heading { level, classes, attrs, .. }) => {
                    let id = anchors.next().map(CowStr::from);
                    events.push(Event::Start(Tag::Heading { level, id, classes, attrs }));
                }
                Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                    let target = self.target(&dest_url, places);
                    leads = target.is_some();
                    if let Some(dest_url) = target.map(CowStr::from) {
                        events.push(Event::Start(Tag::Link { link_type, dest_url, title, id }));
                    }
                }
                Event::End(TagEnd::Link) if !leads => leads = true,
                Event::Start(Tag::Image { dest_url, .. }) => {
                    let mut alt = String::new();
                    for event in parser.by_ref() {
                        match event {
                            Event::End(TagEnd::Image) => break,
                            Event::Text(text) | Event::Code(text) => alt.push_str(&text),
                            _ => {}
                        }
                    }
                    events.push(Event::Html(self.image(&dest_url, &alt, places).into()));
                }
                Event::Start(Tag::Table(alignments)) => {
                    events.push(Event::Html("<div class=\"scroll\">\n".into()));
                    events.push(Event::Start(Tag::Table(alignments)));
                }
                Event::End(TagEnd::Table) => {
                    events.push(Event::End(TagEnd::Table));
                    events.push(Event::Html("</div>\n".into()));
                }
                Event::Start(Tag::CodeBlock(kind)) => {
                    let mut code = String::new();
                    for event in parser.by_ref() {
                        match event {
                            Event::Text(text) => code.push_str(&text),
                            _ => break,
                        }
                    }
                    let code = match kind {
                        CodeBlockKind::Fenced(words) if words.starts_with("rust") => colour::rust(&code),
                        _ => escaped(&code),
                    };
                    events.push(Event::Html(format!("<pre><code>{}</code></pre>\n", code.trim_end()).into()));
                }
                event => events.push(event),
            }
        }
        let mut body = String::new();
        html::push_html(&mut body, events.into_iter());
        // A paragraph of images alone is a grid of plots.
        body.replace("<p><img", "<p class=\"plots\"><img")
    }

    /// The address of a link, from the page. `None` if the site has no such place.
    fn target(&self, link: &str, places: &impl Places) -> Option<String> {
        if link.starts_with('#') || link.contains("://") {
            return Some(link.to_string());
        }
        let (path, fragment) = match link.split_once('#') {
            Some((path, fragment)) => (path, format!("#{fragment}")),
            None => (link, String::new()),
        };
        let dir = self.source.rsplit_once('/').map_or("", |(dir, _)| dir);
        let place = places.place(&joined(dir, path)?)?;
        Some(format!("{}{fragment}", relative(self.dir, &place)))
    }

    fn image(&self, link: &str, alt: &str, places: &impl Places) -> String {
        let dir = self.source.rsplit_once('/').map_or("", |(dir, _)| dir);
        let file = joined(dir, link).unwrap_or_default();
        let size = places
            .size(&file)
            .map_or(String::new(), |(width, height)| format!(" width=\"{width}\" height=\"{height}\""));
        let (source, alt) = (relative(self.dir, &file), escaped(alt));
        format!("<img src=\"{source}\" alt=\"{alt}\"{size} loading=\"lazy\">")
    }
}

/// The first heading of a text, without its signs.
pub(super) fn title(text: &str) -> String {
    let heading = text.lines().find_map(|line| line.strip_prefix("# "));
    heading.unwrap_or_default().replace('`', "")
}

/// The way from a directory to a file or another directory; a directory's ends in `/`.
pub(super) fn relative(from: &str, to: &str) -> String {
    let (from, to): (Vec<&str>, Vec<&str>) = (from.split('/').collect(), to.split('/').collect());
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let mut way = "../".repeat(from.len() - common);
    way.push_str(&to[common..].join("/"));
    let is_file = to.last().is_some_and(|name| name.contains('.'));
    if !way.is_empty() && !way.ends_with('/') && !is_file {
        way.push('/');
    }
    if way.is_empty() { "./".to_string() } else { way }
}

/// The files of the site that exist, and the pages that are made from Markdown.
#[derive(Debug)]
pub(super) struct Site<'a> {
    /// The directory of the page that is made from a Markdown file.
    pub(super) pages: BTreeMap<String, String>,
    /// The images, by path from the root.
    pub(super) images: &'a BTreeMap<String, String>,
}

impl Places for Site<'_> {
    fn place(&self, file: &str) -> Option<String> {
        self.pages.get(file).cloned().or_else(|| self.images.contains_key(file).then(|| file.to_string()))
    }

    fn size(&self, file: &str) -> Option<(String, String)> {
        let head = self.images.get(file)?.lines().next()?;
        let value = |name: &str| {
            let (_, rest) = head.split_once(&format!(" {name}=\""))?;
            Some(rest.split_once('"')?.0.to_string())
        };
        Some((value("width")?, value("height")?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> String {
        let images = BTreeMap::from([(
            "site/figures/a.svg".to_string(),
            "<svg viewBox=\"0 0 4 3\" width=\"4\" height=\"3\">".to_string(),
        )]);
        let pages = [("docs/guide/io.md", "site/guide/io"), ("docs/FIGURES.md", "site/figures")];
        let pages = pages.map(|(file, dir)| (file.to_string(), dir.to_string())).into();
        let page = Page {
            dir: "site/guide/threads",
            source: "docs/guide/threads.md",
            text,
            description: "a \"page\"",
            before: "<aside>\n".to_string(),
            after: String::new(),
        };
        page.html(&Site { pages, images: &images })
    }

    #[test]
    fn links_lead_to_pages_and_others_are_words() {
        let html = page(
            "# T\n[io](io.md#a-client) [f](../FIGURES.md) [x](https://example.org) [c](../../Cargo.toml) [h](#t)\n",
        );
        for text in [
            "<a href=\"../io/#a-client\">io</a>",
            "<a href=\"../../figures/\">f</a>",
            "<a href=\"https://example.org\">x</a> c <a href=\"#t\">",
            "<h1 id=\"t\">T</h1>",
            "<title>T – Selvedge</title>",
            "content=\"a &quot;page&quot;\"",
            "<a href=\"../../guide/\" aria-current=\"page\">Guide</a>",
        ] {
            assert!(html.contains(text), "{text}: {html}");
        }
    }

    #[test]
    fn images_tables_and_code_have_their_frames() {
        let html = page(
            "# T\n\n![a *plot*](../../site/figures/a.svg)\n\n| a |\n|---|\n| 1 |\n\n```rust\nlet a = 1 < 2;\n```\n",
        );
        let image =
            "<p class=\"plots\"><img src=\"../../figures/a.svg\" alt=\"a plot\" width=\"4\" height=\"3\"";
        assert!(html.contains(image), "{html}");
        assert!(html.contains("<div class=\"scroll\">\n<table>"), "{html}");
        assert!(
            html.contains("<pre><code><span class=\"k\">let</span> a = 1 &lt; 2;</code></pre>"),
            "{html}"
        );
    }

    #[test]
    fn ways_between_directories() {
        for (from, to, way) in [
            ("site/guide/io", "site/guide/threads", "../threads/"),
            ("site/guide", "site/guide/threads", "threads/"),
            ("site/guide/io", "site/guide", "../"),
            ("site/guide", "site/guide", "./"),
            ("site/figures", "site/figures/a.svg", "a.svg"),
        ] {
            assert_eq!(relative(from, to), way, "{from} to {to}");
        }
    }
}
