//! The compiler's hint where a `?` is forgotten.

use std::fs;
use std::path::Path;

/// The public methods of a source file that give a result to hand on with `?`, each with the
/// attributes and comments above it.
fn operations(source: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut above = String::new();
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        if line.trim_start().starts_with("pub fn ") {
            let mut signature = line.to_string();
            while !signature.trim_end().ends_with('{') {
                signature += lines.next().expect("a signature ends");
            }
            let result = signature.rsplit_once(") -> ").map_or("", |(_, result)| result);
            if result.starts_with("Tried<") || result.starts_with("Result<R, X>") {
                found.push((signature, std::mem::take(&mut above)));
            }
        }
        above = if line.trim().is_empty() { String::new() } else { above + line };
    }
    found
}

/// The text is the compiler's own: `Result` alone says nothing of `?`.
#[test]
#[cfg_attr(miri, ignore = "it reads the sources")]
fn each_operation_says_that_its_error_is_handed_on() {
    let mut count = 0;
    for file in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).expect("the sources") {
        let path = file.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        for (signature, above) in operations(&fs::read_to_string(&path).expect("a text")) {
            let attribute = above.rsplit_once("#[must_use = ").map_or("", |(_, text)| text);
            assert!(attribute.contains("`?`"), "no hint in {}: {signature}", path.display());
            count += 1;
        }
    }
    assert!(count > 80, "{count} operations were found");
}
