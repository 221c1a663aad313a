//! The page that documents each key of the configuration, made from the types of `settings.rs`.

use crate::settings::SECTIONS;
use std::fmt::Write;

/// The keys as Markdown: a part for each table, with type, default and meaning of each key.
pub fn markdown() -> String {
    let mut page = String::new();
    for section in SECTIONS {
        let title = match section.head {
            "" => "The top of the file".to_owned(),
            head => format!("`{head}`").replace(" or ", "` or `"),
        };
        let _ = writeln!(page, "## {title}\n\n{}\n", joined(section.docs));
        page.push_str("| Key | Type | Default | Meaning |\n|---|---|---|---|\n");
        for key in section.keys {
            let default = match key.default {
                "" => String::new(),
                default => format!("`{default}`"),
            };
            let cells = [format!("`{}`", key.name), key.kind.to_owned(), default, joined(key.docs)];
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            let _ = writeln!(page, "| {} |", cells.join(" | "));
        }
        page.push('\n');
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

fn joined(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}
