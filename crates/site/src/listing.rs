//! A directory as a page and as JSON.
//!
//! The page has no script and loads nothing, so it works under any `Content-Security-Policy`
//! that permits styles of its own. Directories come first, then files by name.

use crate::path::encoded;
use std::fmt::Write;

/// One name of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedEntry {
    /// The name, which need not be UTF-8.
    pub name: Vec<u8>,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// Bytes of a file.
    pub bytes: u64,
    /// When it was changed last, in seconds of Unix time.
    pub modified: i64,
}

/// Puts directories first and sorts by name, and leaves out hidden names.
fn sorted(entries: &[ListedEntry]) -> Vec<&ListedEntry> {
    let mut shown: Vec<&ListedEntry> = entries.iter().filter(|entry| !entry.name.starts_with(b".")).collect();
    shown.sort_by(|a, b| b.is_directory.cmp(&a.is_directory).then_with(|| a.name.cmp(&b.name)));
    shown
}

/// Appends `text` so that it stands for itself in a page.
fn put_escaped(text: &str, out: &mut String) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
}

/// `text` so that it stands for itself in a page.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    put_escaped(text, &mut out);
    out
}

/// A number of bytes as a person reads it: `512`, `1.5 K`, `20 M`.
pub fn size(bytes: u64) -> String {
    let (mut value, mut unit) = (bytes as f64, "");
    for next in ["K", "M", "G", "T", "P"] {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    match unit {
        "" => bytes.to_string(),
        unit if value < 9.95 => format!("{value:.1} {unit}"),
        unit => format!("{value:.0} {unit}"),
    }
}

/// A time as `2026-03-07 14:05`, in UTC.
pub fn time(seconds: i64) -> String {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Howard Hinnant's civil-from-days: years begin in March, so that the leap day is the last.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", second / 3600, second / 60 % 60)
}

/// The style of the pages that the server makes: of listings and of the status page.
pub const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8883;--soft:#8889;--link:light-dark(#0b57d0,#8ab4f8)}\
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.3rem;font-weight:600;overflow-wrap:anywhere}h2{font-size:1.05rem;margin-top:2rem}\
a{color:var(--link);text-decoration:none}a:hover{text-decoration:underline}\
table{border-collapse:collapse;width:100%}\
th{text-align:left;font-weight:500;color:var(--soft);font-size:.85rem}\
th,td{padding:.35rem .5rem;border-bottom:1px solid var(--line)}\
td.n,th.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}\
td:first-child{overflow-wrap:anywhere}td.d a{font-weight:600}\
footer{margin-top:1.5rem;color:var(--soft);font-size:.85rem}\
";

/// The page of the directory at `path`, which is canonical and ends in `/`.
///
/// # Examples
/// ```
/// use selvedge_site::listing::{ListedEntry, page};
/// let name = b"a&b.txt".to_vec();
/// let entry = ListedEntry { name, is_directory: false, bytes: 2048, modified: 0 };
/// let page = page(b"/docs/", &[entry]);
/// assert!(page.contains("<a href=\"a&amp;b.txt\">a&amp;b.txt</a>") && page.contains("2.0 K"));
/// ```
pub fn page(path: &[u8], entries: &[ListedEntry]) -> String {
    let entries = sorted(entries);
    let mut title = String::new();
    put_escaped(&String::from_utf8_lossy(&decoded(path)), &mut title);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n<h1>"
    );
    put_steps(path, &mut page);
    page.push_str(
        "</h1>\n<table>\n<thead><tr><th>Name<th class=\"n\">Size<th class=\"n\">Changed (UTC)\n<tbody>\n",
    );
    if path != b"/" {
        page.push_str("<tr><td class=\"d\"><a href=\"../\">../</a><td class=\"n\"><td class=\"n\">\n");
    }
    for entry in &entries {
        let slash = if entry.is_directory { "/" } else { "" };
        let class = if entry.is_directory { " class=\"d\"" } else { "" };
        let mut link = encoded(&entry.name);
        // A name with a colon in front of the first `/` would be taken for the scheme of a URL.
        if link.contains(':') {
            link.insert_str(0, "./");
        }
        let _ = write!(page, "<tr><td{class}><a href=\"");
        put_escaped(&link, &mut page);
        let _ = write!(page, "{slash}\">");
        put_escaped(&String::from_utf8_lossy(&entry.name), &mut page);
        let size = if entry.is_directory { String::new() } else { size(entry.bytes) };
        let _ = writeln!(page, "{slash}</a><td class=\"n\">{size}<td class=\"n\">{}", time(entry.modified));
    }
    let files = entries.iter().filter(|entry| !entry.is_directory);
    let bytes: u64 = files.clone().map(|entry| entry.bytes).sum();
    let (files, directories) = (files.clone().count(), entries.len() - files.count());
    let _ = write!(
        page,
        "</table>\n<footer>{}, {}, {}</footer>\n</html>\n",
        counted(directories, "directory", "directories"),
        counted(files, "file", "files"),
        if bytes < 1024 { format!("{bytes} bytes") } else { format!("{}B", size(bytes)) },
    );
    page
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The components of `path`, each a link to its directory.
fn put_steps(path: &[u8], page: &mut String) {
    let names: Vec<&[u8]> = path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()).collect();
    let _ = write!(page, "<a href=\"{}\">/</a>", if names.is_empty() { "./" } else { "/" });
    let mut link = "/".to_owned();
    for name in names {
        link.push_str(&String::from_utf8_lossy(name));
        link.push('/');
        page.push_str(" <a href=\"");
        put_escaped(&link, page);
        page.push_str("\">");
        put_escaped(&String::from_utf8_lossy(&decoded(name)), page);
        page.push_str("</a> /");
    }
}

fn decoded(path: &[u8]) -> Vec<u8> {
    let hex = |byte: Option<&u8>| byte.and_then(|&byte| char::from(byte).to_digit(16));
    let mut out = Vec::with_capacity(path.len());
    let mut at = 0;
    while at < path.len() {
        match (path[at], hex(path.get(at + 1)), hex(path.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                out.push((high << 4 | low) as u8);
                at += 3;
            }
            (byte, ..) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}

/// The directory as JSON: an array of objects with `name`, `type`, `size` of files, and `mtime` in
/// seconds of Unix time.
pub fn json(entries: &[ListedEntry]) -> String {
    let mut out = "[".to_owned();
    for (at, entry) in sorted(entries).into_iter().enumerate() {
        out.push_str(if at == 0 { "\n{\"name\":" } else { ",\n{\"name\":" });
        selvedge_json::put_string(&String::from_utf8_lossy(&entry.name), &mut out);
        let _ = match entry.is_directory {
            true => write!(out, ",\"type\":\"directory\""),
            false => write!(out, ",\"type\":\"file\",\"size\":{}", entry.bytes),
        };
        let _ = write!(out, ",\"mtime\":{}}}", entry.modified);
    }
    out.push_str("\n]\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, is_directory: bool, bytes: u64) -> ListedEntry {
        ListedEntry { name: name.as_bytes().to_vec(), is_directory, bytes, modified: 951_782_400 }
    }

    #[test]
    fn pages() {
        let entries = [
            entry("b<script>.txt", false, 3),
            entry("javascript:alert(1)", false, 3),
            entry("zoo", true, 4096),
            entry(".hidden", false, 1),
            entry("a \"b\".txt", false, 1_500_000),
        ];
        let page = page(b"/docs/%C3%A4/", &entries);
        assert!(!page.contains("<script>") && !page.contains(".hidden"), "{page}");
        assert!(page.contains("<a href=\"zoo/\">zoo/</a>"), "{page}");
        assert!(page.contains("<a href=\"./javascript:alert(1)\">"), "{page}");
        assert!(page.contains("<a href=\"a%20%22b%22.txt\">a &quot;b&quot;.txt</a>"), "{page}");
        assert!(page.contains("<a href=\"/docs/%C3%A4/\">\u{e4}</a>"), "{page}");
        assert!(page.contains("1.4 M") && page.contains("2000-02-29 00:00"), "{page}");
        assert!(page.contains("1 directory, 3 files"), "{page}");
        assert!(page.find("zoo/").unwrap() < page.find("javascript").unwrap(), "directories come first");
    }

    #[test]
    fn json_lists() {
        assert_eq!(json(&[]), "[\n]\n");
        let text = json(&[entry("a\"\\\n", false, 3), entry("d", true, 0)]);
        let expected = "[\n{\"name\":\"d\",\"type\":\"directory\",\"mtime\":951782400},\n\
             {\"name\":\"a\\\"\\\\\\n\",\"type\":\"file\",\"size\":3,\"mtime\":951782400}\n]\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn sizes_and_times() {
        assert_eq!(
            [0, 1023, 1024, 10_200, 1 << 30, u64::MAX].map(size),
            ["0", "1023", "1.0 K", "10 K", "1.0 G", "16384 P"]
        );
        assert_eq!(time(0), "1970-01-01 00:00");
        assert_eq!(time(-1), "1969-12-31 23:59");
        assert_eq!(time(1_709_208_000), "2024-02-29 12:00");
    }
}
