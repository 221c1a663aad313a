//! The guide's pages on the server: the server reads each configuration on them, and the page of
//! all keys is what the types say.

use crate::configured::output;
use std::fs;
use std::path::Path;

fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide").join(name)).unwrap()
}

#[test]
fn configurations_of_the_guide() {
    let site = tempfile::tempdir().unwrap();
    for directory in ["www/app", "www/intern", "errors", "files"] {
        fs::create_dir_all(site.path().join(directory)).unwrap();
    }
    let hash = include_str!("../../../../crates/site/tests/suite/six.txt");
    fs::write(site.path().join("users"), format!("ada:{hash}")).unwrap();
    let file = site.path().join("site.toml");
    let text = page("httpd.md");
    let shown: Vec<&str> =
        text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(shown.len() >= 6);
    for configuration in shown {
        fs::write(&file, configuration).unwrap();
        let checked = output(&["check", file.to_str().unwrap()]);
        let message = String::from_utf8_lossy(&checked.stderr);
        assert!(checked.status.success(), "{message}\n{configuration}");
    }
}

/// After a change of the keys: `selvedge-httpd keys`, put behind the first paragraph of the page.
#[test]
fn the_page_of_all_keys_is_current() {
    let page = page("httpd-config.md");
    let keys = String::from_utf8(output(&["keys"]).stdout).unwrap();
    let (_, rest) = page.split_once("own directory.\n\n").unwrap();
    assert!(rest == keys, "docs/guide/httpd-config.md is stale: put there what `selvedge-httpd keys` prints");
}
