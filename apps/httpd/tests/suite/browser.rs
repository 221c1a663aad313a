//! A browser looks at the site in `site/`, served by the real server: every page, and everything
//! the pages ask for. It looks at the pages that the server makes itself, too.

use crate::common::{serve, site};
use crate::configured::configured;
use std::path::Path;
use std::process::Command;

/// The document as the browser has it once it has loaded all parts.
pub(crate) fn browse(url: &str, profile: &Path) -> String {
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(["--timeout=30000", "--dump-dom", url])
        .output()
        .expect("chromium is installed by `cargo xtask setup`");
    String::from_utf8(output.stdout).expect("the document is UTF-8")
}

#[test]
fn a_browser_gets_every_part_of_every_page() {
    let site = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../site");
    let scratch = tempfile::tempdir().unwrap();
    let log = scratch.path().join("access.log");
    let server = serve(&site, &["--workers", "1", "--log", log.to_str().unwrap()]);
    let pages = [
        ("", "Threads that"),
        ("start/", "Start"),
        ("guide/", "The guide"),
        ("guide/from-tokio/", "Coming from tokio"),
        ("figures/", "Figures"),
    ];
    for (page, heading) in pages {
        let url = format!("http://{}/{page}", server.address);
        let document = browse(&url, &scratch.path().join("profile"));
        assert!(document.contains("<h1"), "{url}: {document}");
        assert!(document.contains(heading), "{url}: {document}");
    }
    server.signal(rustix::process::Signal::TERM);
    assert!(server.end().success());
    let log = std::fs::read_to_string(log).unwrap();
    for part in ["/ ", "/start/ ", "/guide/ ", "/figures/ ", "/style.css ", "/logo.svg ", "/cloth.svg "] {
        assert!(log.contains(&format!("\"GET {part}")), "{part} was not asked for:\n{log}");
    }
    let refused: Vec<&str> =
        log.lines().filter(|line| !line.contains("\" 200 ") && !line.contains("\" 304 ")).collect();
    assert!(refused.is_empty(), "{refused:?}");
}

/// The pages that the server makes: its state, a list of files, and an error.
#[test]
fn a_browser_shows_the_pages_of_the_server() {
    let site = site();
    let server = configured(
        site.path(),
        "[log]\naccess = 'access.log'\n[[route]]\npath = '/status'\npage = 'status'\n\
         [[route]]\ndirectory = '.'\nlisting = 'html'\nindex = []\n",
    );
    let browse =
        |path: &str| browse(&format!("http://{}{path}", server.address), &site.path().join("profile"));
    let listed = browse("/docs/");
    assert!(listed.contains("<a href=\"index.html\"") && listed.contains("<td"), "{listed}");
    let state = browse("/status");
    // The browser has asked for the list before, so there is a bar.
    for part in ["<h2>Replies by status</h2>", "class=\"bar\"", "<td>2xx", "<td>/status"] {
        assert!(state.contains(part), "{part}: {state}");
    }
    assert!(browse("/nothing").contains("404 Not Found"));
    server.signal(rustix::process::Signal::TERM);
    assert!(server.end().success());
    let log = std::fs::read_to_string(site.path().join("access.log")).unwrap();
    let failed = |line: &&str| line.contains("\" 5") || line.contains("\" 4") && !line.contains("/nothing");
    // The site has no icon, for which every browser asks.
    let failed: Vec<&str> =
        log.lines().filter(failed).filter(|line| !line.contains("/favicon.ico")).collect();
    assert!(failed.is_empty(), "{failed:?}");
}
