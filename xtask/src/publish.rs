//! `cargo xtask publish [FILE..]`: the measurements that `figures --json` wrote go into
//! `figures/published.json`, and from it and the guide's Markdown come the README's table of
//! figures, `docs/FIGURES.md`, and the pages and plots of the site.
//!
//! [`pages`] is a function from texts to texts, so that `cargo xtask tidy` can check that the
//! committed pages are current.

#[path = "../../figures/src/aims.rs"]
mod aims;
mod axis;
mod bars;
mod colour;
mod figures;
mod front;
mod guide;
mod html;
mod lines;
mod measured;
mod overview;
mod plot;
mod readme;
#[cfg(test)]
mod samples;
mod svg;

use crate::tidy::Tree;
use crate::workspace;
use aims::Aims;
use html::{Page, Site};
use measured::Figure;
use plot::Plot;
use std::collections::BTreeMap;
use std::path::Path;

const README: &str = "README.md";
const FIGURES: &str = "docs/FIGURES.md";
const AIMS: &str = "figures/aims.toml";
/// The front page, of which the part between the marks is made here.
const FRONT: &str = "site/index.html";
/// The directories of which every file is made here.
const FIGURES_PAGE: &str = "site/figures";
const GUIDE_PAGES: &str = "site/guide";

/// What is made stands between these two lines, in the README and on the front page.
const BEGIN: &str = "<!-- figures: begin -->";
const END: &str = "<!-- figures: end -->";

/// Takes the files' figures into account, and writes every page that has changed.
///
/// # Errors
/// When a file holds no measurements, and when a page cannot be made or written.
pub(crate) fn run(files: &[&str]) -> Result<(), String> {
    let root = workspace::root();
    let mut sources = Tree::read(&root)?.files;
    let published = sources.get(measured::FILE).map_or("[]", String::as_str);
    // An aim that was published before may not differ from that of today without a reason.
    let aims = sources.get(AIMS).ok_or_else(|| format!("{AIMS} does not exist"))?;
    figures_of(published, &Aims::read(aims)?)?;
    let mut published = measured::read(measured::FILE, published)?;
    for file in files {
        let text = std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
        measured::merge(&mut published, measured::read(file, &text)?);
    }
    let text = measured::text(&published);
    write(&root, &sources, measured::FILE, &text)?;
    sources.insert(measured::FILE.to_string(), text);
    let pages = pages(&sources)?;
    for (file, text) in &pages {
        write(&root, &sources, file, text)?;
    }
    for file in stale(&sources, &pages) {
        std::fs::remove_file(root.join(file)).map_err(|e| format!("{file}: {e}"))?;
        println!("publish: removed {file}");
    }
    Ok(())
}

/// The published figures with their aims.
///
/// # Errors
/// When the file is not as it has to be, and when an aim changed without a `was`.
fn figures_of(text: &str, aims: &Aims) -> Result<Vec<Figure>, String> {
    measured::judged(measured::figures(measured::FILE, text)?, aims)
}

fn write(root: &Path, sources: &BTreeMap<String, String>, file: &str, text: &str) -> Result<(), String> {
    if sources.get(file).is_some_and(|known| known == text) {
        return Ok(());
    }
    let path = root.join(file);
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    made.and_then(|()| std::fs::write(&path, text)).map_err(|e| format!("{file}: {e}"))?;
    println!("publish: wrote {file}");
    Ok(())
}

/// The files that only this module writes, and no longer does.
pub(crate) fn stale<'a>(
    sources: &'a BTreeMap<String, String>,
    pages: &'a BTreeMap<String, String>,
) -> impl Iterator<Item = &'a str> {
    let made =
        |file: &str| [FIGURES_PAGE, GUIDE_PAGES].iter().any(|dir| file.starts_with(&format!("{dir}/")));
    sources.keys().map(String::as_str).filter(move |file| made(file) && !pages.contains_key(*file))
}

/// Every page that is made from the measurements and the guide, by path from the root.
///
/// # Errors
/// When a source is missing or is not as it has to be.
pub(crate) fn pages(sources: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, String> {
    let source = |file: &str| sources.get(file).ok_or_else(|| format!("{file} does not exist"));
    let aims = Aims::read(source(AIMS)?)?;
    let figures = figures_of(source(measured::FILE)?, &aims)?;
    let readme = between(source(README)?, &readme::table(&figures)?)
        .ok_or_else(|| format!("{README}: no {BEGIN} .. {END}"))?;

    let plotted = |figure| {
        let plots = plot::plots(&figure);
        (figure, plots)
    };
    let figures: Vec<_> = figures.into_iter().map(plotted).collect();
    let text = figures::markdown(&figures, &aims);
    let front = between(source(FRONT)?, &front::cards(&figures)?)
        .ok_or_else(|| format!("{FRONT}: no {BEGIN} .. {END}"))?;
    let overview = overview::draw(&figures.iter().map(|(figure, _)| figure).collect::<Vec<_>>());
    let all = figures.into_iter().flat_map(|(_, plots)| plots);
    let mut plots: BTreeMap<String, String> = all.map(|plot| (plot.path(), plot.svg)).collect();
    plots.insert(overview::PATH.to_string(), overview);

    let guide = guide::pages(sources)?;
    let mut places: BTreeMap<String, String> =
        guide.iter().map(|(dir, file)| (file.clone(), dir.clone())).collect();
    places.insert(FIGURES.to_string(), FIGURES_PAGE.to_string());
    let site = Site { pages: places, images: &plots };
    let page = Page {
        dir: FIGURES_PAGE,
        source: FIGURES,
        text: &text,
        description: "The measurements of Selvedge and its peers: plots, tables, and the command of each figure.",
        before: String::new(),
        after: String::new(),
    };
    let mut pages = guide::html(&guide, sources, &site)?;
    pages.insert(format!("{FIGURES_PAGE}/index.html"), page.html(&site));
    pages.insert(README.to_string(), readme);
    pages.insert(FRONT.to_string(), front);
    pages.insert(FIGURES.to_string(), text);
    pages.extend(plots);
    Ok(pages)
}

impl Plot {
    /// The file, from the root.
    fn path(&self) -> String {
        format!("{FIGURES_PAGE}/{}", self.file)
    }
}

/// The page with a new text between its marks.
fn between(page: &str, new: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{new}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_between_the_marks_is_replaced() {
        let page = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        assert_eq!(between(&page, "new\n").unwrap(), format!("a\n{BEGIN}\nnew\n{END}\nb\n"));
        assert!(between("a\n", "new").is_none());
    }

    #[test]
    fn every_case_of_every_figure_is_on_the_page_and_every_plot_is_xml() {
        let sources = Tree::read(&workspace::root()).unwrap().files;
        let pages = pages(&sources).unwrap();
        let figures = measured::figures(measured::FILE, &sources[measured::FILE]).unwrap();
        let (text, page) = (&pages[FIGURES], &pages["site/figures/index.html"]);
        for figure in &figures {
            let plots = plot::plots(figure);
            for plot in &plots {
                assert!(roxmltree::Document::parse(&plot.svg).is_ok(), "{}", plot.file);
                assert!(page.contains(&format!("<img src=\"{}\"", plot.file)), "{}", plot.file);
            }
            for (case, rows) in figure.cases() {
                assert!(text.contains(&format!("| {case} |")), "{}: {case}", figure.name);
                // Two values of one unit are in a plot, with the names of their systems.
                let compared = rows.iter().filter(|row| row.value.is_ok());
                let compared = compared.filter(|row| row.unit == rows[0].unit);
                if rows[0].is_ours() && compared.clone().count() >= 2 {
                    for row in compared {
                        let name = svg::escaped(&row.system);
                        // A long name stands in several lines, each of which begins in the name.
                        let first = name.split(' ').next().unwrap_or_default();
                        let named = |plot: &&Plot| plot.svg.contains(&format!(">{first}"));
                        assert!(plots.iter().any(|plot| named(&plot)), "{}: {case}: {name}", figure.name);
                    }
                }
            }
        }
    }

    /// The boxes of a plot's texts, as wide as they are estimated: left, top, right, bottom.
    fn boxes(svg: &str) -> Vec<([f64; 4], String)> {
        let document = roxmltree::Document::parse(svg).unwrap();
        let texts = document.descendants().filter(|node| node.has_tag_name("text"));
        let one = |node: roxmltree::Node<'_, '_>| {
            let at = |name| node.attribute(name).unwrap().parse::<f64>().unwrap();
            let size = match node.attribute("class").unwrap() {
                "title" => svg::TITLE,
                "axis" => svg::AXIS,
                _ => svg::NAME,
            };
            let text = node.text().unwrap_or_default().to_string();
            let (x, y, width) = (at("x"), at("y"), svg::width_of(&text, size));
            let left = match node.attribute("text-anchor") {
                None => x,
                Some("middle") => x - width / 2.0,
                Some(_) => x - width,
            };
            // Letters reach about 0.75 of the font's size above the line and 0.2 below it.
            ([left, y - 0.75 * size, left + width, y + 0.2 * size], text)
        };
        texts.map(one).collect()
    }

    #[test]
    fn no_text_of_a_plot_overlaps_another_or_leaves_the_plot() {
        let sources = Tree::read(&workspace::root()).unwrap().files;
        let pages = pages(&sources).unwrap();
        for (file, svg) in pages.iter().filter(|(file, _)| file.ends_with(".svg")) {
            let boxes = boxes(svg);
            for (index, (a, text)) in boxes.iter().enumerate() {
                assert!(a[0] >= 0.0 && a[2] <= svg::WIDTH, "{file}: {text}: {a:?}");
                for (b, other) in &boxes[..index] {
                    let apart = a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] || b[3] <= a[1];
                    assert!(apart, "{file}: {text} and {other}");
                }
            }
        }
    }

    #[test]
    fn a_file_that_is_no_longer_made_is_stale() {
        let files = ["site/figures/old.svg", "site/figures/index.html", "site/index.html"];
        let sources: BTreeMap<String, String> = files.map(|file| (file.to_string(), String::new())).into();
        let pages = BTreeMap::from([("site/figures/index.html".to_string(), String::new())]);
        assert_eq!(stale(&sources, &pages).collect::<Vec<_>>(), ["site/figures/old.svg"]);
    }
}
