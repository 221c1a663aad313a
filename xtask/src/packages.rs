//! The proof `packages`: packs every crate that may be published, and builds all
//! of them from their packages.
//!
//! `cargo package` can build the crates that it packs, but it unpacks each version only once. A
//! second run would build the crates of the first. So the packages are unpacked here, into a
//! workspace of their own, which takes them in place of the registry's.

use crate::command::{Invocation, Tally};
use crate::workspace::{Package, Workspace};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// The directory of the unpacked crates, in the target directory.
const UNPACKED: &str = "unpacked";
const LIMIT: Duration = Duration::from_secs(10 * 60);

/// Packs, unpacks and builds. A tree with changes is packed as it is.
///
/// # Errors
/// When a crate cannot be packed, or cannot be built from its package.
pub(crate) fn run(workspace: &Workspace, tally: &mut Tally) -> Result<(), String> {
    let published: Vec<&Package> = workspace.packages.iter().filter(|package| package.published).collect();
    let names = published.iter().flat_map(|package| ["--package", &package.name]);
    let pack = ["cargo", "package", "--no-verify", "--allow-dirty", "--locked"];
    let words: Vec<&str> = pack.into_iter().chain(names).collect();
    Invocation::new(LIMIT, &words).run(&workspace.root, tally)?;

    let unpacked = workspace.target_dir.join(UNPACKED);
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    if unpacked.exists() {
        std::fs::remove_dir_all(&unpacked).map_err(|e| failed(&unpacked, e))?;
    }
    std::fs::create_dir_all(&unpacked).map_err(|e| failed(&unpacked, e))?;
    for package in &published {
        let file = workspace.target_dir.join("package").join(format!("{}.crate", directory(package)));
        let file = file.to_str().ok_or_else(|| format!("{} is not UTF-8", file.display()))?;
        // All files of a package have the same old time. With it cargo would take a crate that was
        // built in a run before, although the crate has changed.
        let words = ["tar", "--extract", "--touch", "--gzip", "--file", file];
        Invocation::new(LIMIT, &words).run(&unpacked, tally)?;
    }
    let (manifest, lock) = (unpacked.join("Cargo.toml"), unpacked.join("Cargo.lock"));
    std::fs::write(&manifest, self::manifest(&published)).map_err(|e| failed(&manifest, e))?;
    std::fs::copy(workspace.root.join("Cargo.lock"), &lock).map_err(|e| failed(&lock, e))?;
    let target_dir = workspace.target_dir.to_str().ok_or("the target directory is not UTF-8")?;
    let build = ["cargo", "check", "--workspace", "--target-dir", target_dir];
    Invocation::new(LIMIT, &build).run(&unpacked, tally)
}

/// The name of a package's file, and of the directory in it.
fn directory(package: &Package) -> String {
    format!("{}-{}", package.name, package.version)
}

/// A workspace of the unpacked crates, in which they depend on each other.
fn manifest(packages: &[&Package]) -> String {
    let mut text = "[workspace]\nresolver = \"3\"\nmembers = [\"*\"]\n\n[patch.crates-io]\n".to_string();
    for package in packages {
        let _ = writeln!(text, "{} = {{ path = \"{}\" }}", package.name, directory(package));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crates_take_the_place_of_the_registry_s() {
        let text = manifest(&[&Package::sample("a")]);
        assert!(text.ends_with("[patch.crates-io]\na = { path = \"a-0.1.0\" }\n"), "{text}");
    }
}
