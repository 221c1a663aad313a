//! [`Workspace`]: the workspace as cargo knows it: its root, its packages, and the dependencies of
//! each. The commands and the checks of `tidy` ask it where things are; nothing else runs `cargo
//! metadata`.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The workspace as `cargo metadata` describes it.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target_dir: PathBuf,
    pub(crate) packages: Vec<Package>,
}

/// One package of the workspace.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Directory of its `Cargo.toml`, relative to the root, `/` between parts.
    pub(crate) dir: String,
    /// Names of every dependency: normal, build and dev. The facade is not among them where it is
    /// a dev-dependency, because the examples in every crate's documentation import from it.
    pub(crate) dependencies: Vec<String>,
    /// The dependencies that are built with the package itself, without the dependencies of its
    /// tests.
    pub(crate) built_dependencies: Vec<String>,
    pub(crate) targets: Vec<Target>,
    /// Whether it may be published.
    pub(crate) published: bool,
}

/// Something cargo builds from a package.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: String,
    /// `lib`, `bin`, `example`, `test`, ..
    pub(crate) kind: String,
}

/// The directory that holds the workspace's `Cargo.toml`.
pub(crate) fn root() -> PathBuf {
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&xtask).parent().expect("xtask lies one directory below the root").to_path_buf()
}

impl Workspace {
    /// Asks cargo. An error is cargo's own message.
    pub(crate) fn load() -> Result<Workspace, String> {
        let root = root();
        let output = Command::new("cargo")
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .current_dir(&root)
            .output()
            .map_err(|e| format!("cannot run cargo metadata: {e}"))?;
        if !output.status.success() {
            return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        let json = serde_json::from_slice(&output.stdout).map_err(|e| format!("cargo metadata: {e}"))?;
        Workspace::from_metadata(&json).ok_or_else(|| "cargo metadata: a field is missing".to_string())
    }

    fn from_metadata(json: &Value) -> Option<Workspace> {
        let root = PathBuf::from(json.get("workspace_root")?.as_str()?);
        let target_dir = PathBuf::from(json.get("target_directory")?.as_str()?);
        let packages = json
            .get("packages")?
            .as_array()?
            .iter()
            .map(|package| Package::from_metadata(package, &root))
            .collect::<Option<Vec<_>>>()?;
        Some(Workspace { root, target_dir, packages })
    }

    /// The package of that name.
    pub(crate) fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }
}

/// The crate that users depend on.
pub(crate) const FACADE: &str = "selvedge";

impl Package {
    /// A package for tests: nothing is in it, and it may be published.
    #[cfg(test)]
    pub(crate) fn sample(name: &str) -> Package {
        Package {
            name: name.to_string(),
            version: "0.1.0".to_string(),
            dir: name.to_string(),
            dependencies: Vec::new(),
            built_dependencies: Vec::new(),
            targets: Vec::new(),
            published: true,
        }
    }

    fn from_metadata(json: &Value, root: &Path) -> Option<Package> {
        let text = |key: &str| Some(json.get(key)?.as_str()?.to_string());
        let manifest = PathBuf::from(text("manifest_path")?);
        let dir = manifest.parent()?.strip_prefix(root).ok()?.to_str()?.to_string();
        let dependencies = json.get("dependencies")?.as_array()?.iter();
        let targets = json.get("targets")?.as_array()?.iter();
        Some(Package {
            name: text("name")?,
            version: text("version")?,
            dir,
            // `publish = false` is an empty list of registries; without the key it is null.
            published: json.get("publish").is_none_or(Value::is_null),
            built_dependencies: dependencies
                .clone()
                .filter(|d| d.get("kind") != Some(&"dev".into()))
                .map(|d| Some(d.get("name")?.as_str()?.to_string()))
                .collect::<Option<_>>()?,
            dependencies: dependencies
                .filter(|d| d.get("name") != Some(&FACADE.into()) || d.get("kind") != Some(&"dev".into()))
                .map(|d| Some(d.get("name")?.as_str()?.to_string()))
                .collect::<Option<_>>()?,
            targets: targets
                .map(|t| {
                    Some(Target {
                        name: t.get("name")?.as_str()?.to_string(),
                        kind: t.get("kind")?.get(0)?.as_str()?.to_string(),
                    })
                })
                .collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_cargo_prints() {
        let json = serde_json::json!({
            "workspace_root": "/src", "target_directory": "/src/target",
            "packages": [{
                "name": "a", "version": "0.1.0", "manifest_path": "/src/crates/a/Cargo.toml", "publish": [],
                "dependencies": [{"name": "b"}, {"name": "selvedge", "kind": "dev"}], "targets": [{"name": "a", "kind": ["lib"]}],
            }],
        });
        let workspace = Workspace::from_metadata(&json).unwrap();
        let package = workspace.package("a").unwrap();
        assert_eq!(package.dir, "crates/a");
        assert_eq!(package.dependencies, ["b"]);
        assert_eq!(package.built_dependencies, ["b"]);
        assert!(!package.published);
        assert_eq!(package.targets[0].kind, "lib");
    }

    #[test]
    fn a_missing_field_is_noticed() {
        assert!(Workspace::from_metadata(&serde_json::json!({"workspace_root": "/src"})).is_none());
    }
}
