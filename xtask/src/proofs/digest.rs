//! [`Inputs`]: everything that the outcome of a proof depends on, and its digest.
//!
//! A proof is run again when its digest differs from the recorded one. The inputs are:
//!
//! - the files of its packages, and of the packages of the workspace below them. A package's tests
//!   count where the proof runs them, so they count for the proof's own packages and not for those
//!   below;
//! - the versions and checksums of the foreign packages below, from `Cargo.lock`;
//! - the profiles of the root's `Cargo.toml`, and the lines there that name the packages;
//! - further files that the proof names;
//! - its commands with their variables, and the compiler's version.
//!
//! Of a Rust file the digest takes the tokens. A comment or a line break changes no proof: the
//! compiler makes the same code of it, except for the numbers of lines. The tests that compare
//! those are in every run of `cargo xtask test`. A package may ask for its whole text
//! ([`WHOLE_TEXT`]), because its comments are read by its tests. A proof may ask for the whole text
//! of its packages ([`Sources::comments`]), because it runs the examples in their comments.

use crate::tokens::code_of;
use crate::workspace::{Package, Workspace};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

/// Packages with tests that read comments: the head of a program says how the program must end.
const WHOLE_TEXT: &[&str] = &["selvedge-programs"];

/// The bytes of a digest that count. Two contents have the same ones by chance once in 2^128.
const DIGEST_BYTES: usize = 16;

/// Directories of a package that only its own tests are made of.
const OWN_TESTS: [&str; 2] = ["tests/", "benches/"];

/// The files of the tree and the lock file, read once for all proofs.
#[derive(Debug)]
pub(crate) struct Inputs<'a> {
    workspace: &'a Workspace,
    /// Path from the root, and the digest of the content.
    files: BTreeMap<String, String>,
    /// The same for the whole text of each Rust file.
    texts: BTreeMap<String, String>,
    /// The lines of `Cargo.lock` about each foreign package, and the names that it depends on.
    foreign: BTreeMap<String, Foreign>,
    /// The root's `Cargo.toml`.
    manifest: String,
}

/// The sources of a proof. The packages of the workspace below the named ones belong to them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sources {
    /// Packages with tests that the proof runs.
    pub(crate) tested: &'static [&'static str],
    /// Packages that the proof builds without their tests.
    pub(crate) built: &'static [&'static str],
    /// Further files. A name that ends in `/` is a directory.
    pub(crate) files: &'static [&'static str],
    /// Whether the comments of the packages' Rust files count.
    pub(crate) comments: bool,
}

/// The versions of a foreign package in the lock file.
#[derive(Debug, Default)]
struct Foreign {
    lines: String,
    dependencies: BTreeSet<String>,
}

impl<'a> Inputs<'a> {
    /// Reads the tree that `workspace` describes.
    ///
    /// # Errors
    /// When git or a file cannot be read.
    pub(crate) fn read(workspace: &'a Workspace) -> Result<Inputs<'a>, String> {
        let root = &workspace.root;
        let read = |path: &str| std::fs::read_to_string(root.join(path)).map_err(|e| format!("{path}: {e}"));
        let paths = paths(root)?;
        let mut texts = BTreeMap::new();
        let contents = paths.iter().map(|path| {
            let bytes = std::fs::read(root.join(path)).map_err(|e| format!("{path}: {e}"))?;
            if path.ends_with(".rs") {
                texts.insert(path.clone(), digest(&bytes));
            }
            let whole = workspace.packages.iter().any(|package| {
                WHOLE_TEXT.contains(&package.name.as_str()) && in_directory(path, &package.dir)
            });
            Ok((path.clone(), digest(&content(path, bytes, whole))))
        });
        let files = contents.collect::<Result<_, String>>()?;
        Ok(Inputs {
            workspace,
            files,
            texts,
            foreign: foreign(&read("Cargo.lock")?),
            manifest: read("Cargo.toml")?,
        })
    }

    /// The digest of a proof that runs `command` over `sources`.
    ///
    /// # Errors
    /// When a package or a file does not exist.
    pub(crate) fn digest(&self, sources: &Sources, command: &str) -> Result<String, String> {
        Ok(digest(self.text(sources, command)?.as_bytes()))
    }

    /// The names of the packages of the workspace that `sources` stand for.
    ///
    /// # Errors
    /// When a package does not exist.
    #[cfg(test)]
    pub(crate) fn packages(&self, sources: &Sources) -> Result<Vec<String>, String> {
        Ok(self.below(sources)?.packages.iter().map(|package| package.name.clone()).collect())
    }

    /// What is digested: one line for each input.
    fn text(&self, sources: &Sources, command: &str) -> Result<String, String> {
        let mut text = format!("command {command}\n");
        let below = self.below(sources)?;
        for package in &below.packages {
            let own = sources.tested.contains(&package.name.as_str());
            let directory = format!("{}/", package.dir);
            for (path, digest) in self.beneath(&directory) {
                let tests = OWN_TESTS.iter().any(|tests| path[directory.len()..].starts_with(tests));
                if own || !tests {
                    let whole = self.texts.get(path).filter(|_| sources.comments);
                    let digest = whole.map_or(digest, String::as_str);
                    let _ = writeln!(text, "{path} {digest}");
                }
            }
        }
        for name in &below.foreign {
            text.push_str(self.foreign.get(name).map_or("", |foreign| &foreign.lines));
        }
        for file in sources.files {
            let mut found = self.beneath(file).peekable();
            found.peek().ok_or(format!("no file {file} for a proof to depend on"))?;
            for (path, digest) in found {
                let _ = writeln!(text, "{path} {digest}");
            }
        }
        text.push_str(&settings(&self.manifest, &below.packages));
        Ok(text)
    }

    /// The files with paths that begin with `start`.
    fn beneath<'b>(&'b self, start: &'b str) -> impl Iterator<Item = (&'b str, &'b str)> {
        let from = self.files.range(start.to_string()..);
        from.take_while(move |(path, _)| path.starts_with(start))
            .map(|(path, digest)| (path.as_str(), digest.as_str()))
    }

    /// The packages of the workspace that are built for `sources`, and the foreign ones.
    fn below(&self, sources: &Sources) -> Result<Below<'_>, String> {
        let mut found: BTreeMap<&str, &Package> = BTreeMap::new();
        let mut foreign: BTreeSet<String> = BTreeSet::new();
        let mut open: Vec<&str> = [sources.tested, sources.built].concat();
        while let Some(name) = open.pop() {
            let Some(package) = self.workspace.package(name) else {
                return Err(format!("no package {name} for a proof to depend on"));
            };
            if found.insert(&package.name, package).is_some() {
                continue;
            }
            let own = sources.tested.contains(&name);
            let dependencies = if own { &package.dependencies } else { &package.built_dependencies };
            for dependency in dependencies {
                match self.workspace.package(dependency) {
                    Some(package) => open.push(&package.name),
                    None => _ = foreign.insert(dependency.clone()),
                }
            }
        }
        let mut open: Vec<String> = foreign.iter().cloned().collect();
        while let Some(name) = open.pop() {
            let Some(package) = self.foreign.get(&name) else { continue };
            let new = package.dependencies.iter().filter(|name| foreign.insert((*name).clone()));
            open.extend(new.cloned());
        }
        Ok(Below { packages: found.into_values().collect(), foreign })
    }
}

struct Below<'a> {
    packages: Vec<&'a Package>,
    foreign: BTreeSet<String>,
}

fn in_directory(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

/// What of a file counts.
fn content(path: &str, bytes: Vec<u8>, whole: bool) -> Vec<u8> {
    match String::from_utf8(bytes) {
        Ok(text) if path.ends_with(".rs") && !whole => code_of(&text).into_bytes(),
        Ok(text) => text.into_bytes(),
        Err(error) => error.into_bytes(),
    }
}

/// Every file that git tracks, or would track if it were added, and that is there.
fn paths(root: &Path) -> Result<Vec<String>, String> {
    let listed = crate::tidy::paths(root)?;
    Ok(listed.into_iter().filter(|path| root.join(path).is_file()).collect())
}

/// The digest of a text, in hexadecimal digits.
fn digest(content: &[u8]) -> String {
    let bytes = Sha256::digest(content);
    bytes.iter().take(DIGEST_BYTES).fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// The packages of a lock file by name.
fn foreign(lock: &str) -> BTreeMap<String, Foreign> {
    let mut all: BTreeMap<String, Foreign> = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let field = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))?;
            Some(line.trim_matches('"'))
        };
        let (Some(name), Some(version)) = (field("name"), field("version")) else { continue };
        let entry = all.entry(name.to_string()).or_default();
        let _ = writeln!(entry.lines, "{name} {version} {}", field("checksum").unwrap_or(""));
        // A dependency is `"name"`, or `"name version"` where the lock file has several.
        let dependencies = package.lines().filter_map(|line| line.strip_prefix(" \"")?.strip_suffix("\","));
        let names = dependencies.map(|name| name.split(' ').next().unwrap_or(name).to_string());
        entry.dependencies.extend(names);
    }
    all
}

/// The profiles of the root's manifest, and its lines about these packages.
fn settings(manifest: &str, packages: &[&Package]) -> String {
    let mut settings = String::new();
    let mut in_profile = false;
    for line in manifest.lines().filter(|line| !line.starts_with('#')) {
        if line.starts_with('[') {
            in_profile = line.starts_with("[profile");
        }
        let of_a_package =
            line.split_once(" = ").is_some_and(|(name, _)| packages.iter().any(|p| p.name == name));
        if (in_profile && !line.is_empty()) || of_a_package {
            let _ = writeln!(settings, "{line}");
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = r#"
[[package]]
name = "leaf"
version = "1.0.0"
checksum = "aa"

[[package]]
name = "stem"
version = "2.0.0"
checksum = "bb"
dependencies = [
 "leaf",
]

[[package]]
name = "leaf"
version = "3.0.0"
checksum = "cc"
"#;

    const MANIFEST: &str = "[workspace.dependencies]\nbase = { path = \"base\" }\nother = \"1\"\n\n\
        [profile.release]\nlto = \"thin\"\n\n[workspace.lints.rust]\nmissing_docs = \"warn\"\n";

    fn package(name: &str, dependencies: &[&str], built: &[&str]) -> Package {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        Package {
            dir: format!("crates/{name}"),
            dependencies: names(dependencies),
            built_dependencies: names(built),
            ..Package::sample(name)
        }
    }

    /// `top` stands on `base`, and its tests on `helper`; the tests of `base` stand on `stem`.
    fn workspace() -> Workspace {
        Workspace {
            root: "/src".into(),
            target_dir: "/src/target".into(),
            packages: vec![
                package("top", &["base", "helper"], &["base"]),
                package("base", &["stem"], &[]),
                package("helper", &["leaf"], &["leaf"]),
            ],
        }
    }

    fn text(sources: Sources, files: &[(&str, &str)]) -> Result<String, String> {
        let workspace = workspace();
        let bytes = |path: &str, text: &str| digest(&content(path, text.as_bytes().to_vec(), false));
        let inputs = Inputs {
            workspace: &workspace,
            files: files.iter().map(|(path, text)| (path.to_string(), bytes(path, text))).collect(),
            texts: files.iter().map(|(path, text)| (path.to_string(), digest(text.as_bytes()))).collect(),
            foreign: foreign(LOCK),
            manifest: MANIFEST.to_string(),
        };
        inputs.text(&sources, "cargo test")
    }

    const FILES: &[(&str, &str)] = &[
        ("crates/base/src/lib.rs", "fn a() {}"),
        ("crates/base/tests/suite.rs", "fn b() {}"),
        ("crates/helper/src/lib.rs", "fn c() {}"),
        ("crates/top/src/lib.rs", "fn d() {}"),
        ("crates/top/tests/suite.rs", "fn e() {}"),
        ("crates/topmost/src/lib.rs", "fn f() {}"),
        ("list.txt", "f"),
    ];

    const fn tested(tested: &'static [&'static str]) -> Sources {
        Sources { tested, built: &[], files: &[], comments: false }
    }
    const TOP: Sources = tested(&["top"]);
    const BASE: Sources = tested(&["base"]);

    /// The digest's text with one file's content replaced.
    fn with(sources: Sources, path: &str, changed: &str) -> String {
        let files: Vec<_> =
            FILES.iter().map(|&(at, text)| (at, if at == path { changed } else { text })).collect();
        text(sources, &files).unwrap()
    }

    #[test]
    fn a_proof_depends_on_the_files_of_its_package_and_of_those_below() {
        let before = text(TOP, FILES).unwrap();
        for path in ["crates/base/src/lib.rs", "crates/helper/src/lib.rs", "crates/top/src/lib.rs"] {
            assert_ne!(with(TOP, path, "fn changed() {}"), before, "{path}");
        }
        assert_ne!(with(TOP, "crates/top/tests/suite.rs", "fn changed() {}"), before);
        for path in ["crates/base/tests/suite.rs", "crates/topmost/src/lib.rs", "list.txt"] {
            assert_eq!(with(TOP, path, "fn changed() {}"), before, "{path}");
        }
    }

    #[test]
    fn a_package_above_does_not_count() {
        let before = text(BASE, FILES).unwrap();
        assert_eq!(with(BASE, "crates/top/src/lib.rs", "fn changed() {}"), before);
        assert_ne!(with(BASE, "crates/base/tests/suite.rs", "fn changed() {}"), before);
    }

    #[test]
    fn a_package_that_is_only_built_counts_without_its_tests() {
        let top = Sources { built: &["top"], ..Sources::default() };
        let before = text(top, FILES).unwrap();
        assert_ne!(with(top, "crates/top/src/lib.rs", "fn changed() {}"), before);
        for path in ["crates/top/tests/suite.rs", "crates/helper/src/lib.rs"] {
            assert_eq!(with(top, path, "fn changed() {}"), before, "{path}");
        }
    }

    #[test]
    fn a_comment_does_not_count_and_a_literal_does() {
        let before = text(BASE, FILES).unwrap();
        let lib = "crates/base/src/lib.rs";
        assert_eq!(with(BASE, lib, "//! Head.\n\n/// Docs.\nfn a() {} // more\n"), before);
        assert_ne!(with(BASE, lib, "fn a() { \"// more\"; }"), before);
    }

    #[test]
    fn a_comment_counts_where_the_proof_asks_for_it() {
        let asks = Sources { comments: true, ..BASE };
        let commented = "/// Docs.\nfn a() {}\n";
        let lib = "crates/base/src/lib.rs";
        assert_ne!(with(asks, lib, commented), with(asks, lib, "fn a() {}\n"));
        assert_eq!(with(BASE, lib, commented), with(BASE, lib, "fn a() {}\n"));
    }

    #[test]
    fn foreign_packages_count_with_their_versions_and_with_those_below() {
        let of_top = text(TOP, FILES).unwrap();
        assert!(of_top.contains("leaf 1.0.0 aa") && of_top.contains("leaf 3.0.0 cc"), "{of_top}");
        assert!(!of_top.contains("stem"), "only the tests of base need it: {of_top}");
        let of_base = text(BASE, FILES).unwrap();
        assert!(of_base.contains("stem 2.0.0 bb") && of_base.contains("leaf 1.0.0 aa"), "{of_base}");
    }

    #[test]
    fn profiles_and_the_packages_own_lines_of_the_manifest_count() {
        let of_top = text(TOP, FILES).unwrap();
        assert!(
            of_top.ends_with("base = { path = \"base\" }\n[profile.release]\nlto = \"thin\"\n"),
            "{of_top}"
        );
    }

    #[test]
    fn what_does_not_exist_is_an_error() {
        assert!(text(tested(&["middle"]), FILES).unwrap_err().contains("middle"));
        assert!(text(Sources { files: &["lists/"], ..TOP }, FILES).unwrap_err().contains("lists/"));
        assert!(text(Sources { files: &["list.txt"], ..TOP }, FILES).unwrap().contains("list.txt"));
    }
}
