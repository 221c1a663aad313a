//! A check of `tidy`: links from Markdown files and from the site's pages lead somewhere. `tidy.rs`
//! calls `check`; `publish/html.rs` takes `joined`, which resolves a path.
//!
//! A link must name a tracked file or directory, and a heading or id in it if it names one. Links
//! to other hosts are not followed, because a check must not depend on the network.

use super::{Problem, Tree, markdown};

/// The directory that the server serves as `/`.
const SITE: &str = "site";

/// Every relative link names a tracked file or directory, and a heading or id in it where it names
/// one.
pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (file, text) in tree.ending_in(".md") {
        for (line, target) in markdown::links(text) {
            if !is_external(&target)
                && let Err(message) = resolve(tree, file, &target)
            {
                problems.push(Problem::new(file, line, message));
            }
        }
    }
    for (file, text) in tree.ending_in(".html").filter(|(file, _)| file.starts_with(SITE)) {
        for (line, attribute, target) in references(text) {
            // A page may point to the outside; it may not need it.
            if is_external(&target) {
                if attribute != "href" || target.starts_with("//") {
                    problems.push(Problem::new(file, line, format!("loads {target} from elsewhere")));
                }
            } else if let Err(message) = resolve(tree, file, &target) {
                problems.push(Problem::new(file, line, message));
            }
        }
    }
    problems
}

fn is_external(target: &str) -> bool {
    let scheme = target.split(':').next().unwrap_or("");
    target.starts_with("//") || (target.contains(':') && scheme.chars().all(|c| c.is_ascii_alphanumeric()))
}

fn resolve(tree: &Tree, from: &str, target: &str) -> Result<(), String> {
    let (path, fragment) = target.split_once('#').unwrap_or((target, ""));
    let mut file = from.to_string();
    if !path.is_empty() {
        let dir = match path.strip_prefix('/') {
            Some(_) => SITE,
            None => from.rsplit_once('/').map_or("", |(dir, _)| dir),
        };
        file = joined(dir, path).ok_or_else(|| format!("{target} leaves the repository"))?;
        let index = if file.is_empty() { "index.html".into() } else { format!("{file}/index.html") };
        if tree.text(&file).is_none() {
            if from.starts_with(SITE) && tree.text(&index).is_some() {
                file = index;
            } else if fragment.is_empty() && is_directory(tree, &file) && !from.starts_with(SITE) {
                return Ok(());
            } else {
                return Err(format!("{target} does not exist"));
            }
        }
    }
    let text = tree.text(&file).map_or("", String::as_str);
    let found = fragment.is_empty()
        || text.contains(&format!("id=\"{fragment}\""))
        || (file.ends_with(".md") && markdown::anchors(text).iter().any(|anchor| anchor == fragment));
    if found { Ok(()) } else { Err(format!("{file} has no heading for #{fragment}")) }
}

fn is_directory(tree: &Tree, path: &str) -> bool {
    tree.files.keys().any(|file| file.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')))
}

/// `dir/path` with `.` and `..` resolved; `None` above the root.
pub(crate) fn joined(dir: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in dir.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The references of a page: line, attribute, target.
fn references(html: &str) -> Vec<(usize, &'static str, String)> {
    let mut references = Vec::new();
    for (index, line) in html.lines().enumerate() {
        for attribute in ["href", "src", "srcset"] {
            for (at, opening) in line.match_indices(&format!(" {attribute}=\"")) {
                let value = &line[at + opening.len()..];
                if let Some(end) = value.find('"') {
                    // A <link> fetches its target: only an <a> merely points.
                    let fetched = line[..at].rfind('<').is_some_and(|tag| line[tag..].starts_with("<link "));
                    let attribute = if fetched { "link" } else { attribute };
                    references.push((index + 1, attribute, value[..end].to_string()));
                }
            }
        }
    }
    references
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    fn found(files: &[(&str, &str)]) -> String {
        messages(&check(&Tree::of(files))).join("\n")
    }

    #[test]
    fn files_directories_and_anchors_resolve() {
        let text = "[a](docs/A.md#part-two) [b](crates/) [c](#here) [d](https://example.org/x)\n# Here\n";
        let files = [("README.md", text), ("docs/A.md", "## Part two\n"), ("crates/x/lib.rs", "")];
        assert_eq!(found(&files), "");
    }

    #[test]
    fn a_missing_file_is_found() {
        assert_eq!(found(&[("docs/A.md", "\n[a](B.md)\n")]), "docs/A.md:2: B.md does not exist");
    }

    #[test]
    fn a_missing_heading_is_found() {
        let found = found(&[("A.md", "[a](B.md#two)"), ("B.md", "# One\n")]);
        assert_eq!(found, "A.md:1: B.md has no heading for #two");
    }

    #[test]
    fn a_link_may_not_leave_the_repository() {
        assert!(found(&[("A.md", "[a](../B.md)")]).contains("leaves the repository"));
    }

    #[test]
    fn pages_link_from_the_site_s_root() {
        let page = "<a href=\"/docs/#run\">\n<img src=\"/logo.svg\">\n<a href=\"https://example.org\">\n";
        let files = [
            ("site/index.html", page),
            ("site/docs/index.html", "<h2 id=\"run\">"),
            ("site/logo.svg", "<svg/>"),
        ];
        assert_eq!(found(&files), "");
        assert_eq!(found(&files[..2]), "site/index.html:2: /logo.svg does not exist");
    }

    #[test]
    fn pages_need_nothing_from_elsewhere() {
        let page =
            "<link rel=\"stylesheet\" href=\"https://example.org/a.css\">\n<img src=\"//example.org/b\">";
        let found = found(&[("site/index.html", page)]);
        assert_eq!(found.matches("from elsewhere").count(), 2, "{found}");
    }
}
