//! `Site`: the files that the web servers serve, in a directory that lives as long as the figure is
//! measured. `web.rs` creates it; `server.rs` puts configurations and logs beside it.
//!
//! The lengths of the files are the answers that the load generator checks. With `longer` they are
//! wrong by intent, so that a figure shows that it notices.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// A file of the site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct File {
    /// Its path in a URL.
    pub(crate) path: &'static str,
    /// Its length.
    pub(crate) bytes: usize,
}

/// As long as nginx's own welcome page.
pub(crate) const SMALL: File = File { path: "/small.html", bytes: 612 };
/// Sixteen kibibytes.
pub(super) const SIXTEEN_K: File = File { path: "/16k.html", bytes: 16 * 1024 };

/// A temporary directory with the site in `site/`; configurations and logs go beside it. Removed
/// when dropped.
#[derive(Debug)]
pub(crate) struct Site {
    directory: PathBuf,
}

impl Site {
    /// Writes the site, with files that are this number of bytes too long: 0 unless a figure is to
    /// notice it.
    pub(crate) fn create(longer: u64) -> Result<Site, String> {
        let directory = std::env::temp_dir().join(format!("selvedge-figures-{}", std::process::id()));
        let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
        // Readable by servers that give up root, whatever the umask says.
        let open = fs::Permissions::from_mode(0o755);
        let root = directory.join("site");
        fs::create_dir_all(&root).map_err(failed)?;
        for place in [&directory, &root] {
            fs::set_permissions(place, open.clone()).map_err(failed)?;
        }
        let site = Site { directory };
        for file in [SMALL, SIXTEEN_K] {
            site.add(file, longer)?;
        }
        Ok(site)
    }

    /// Writes another file, this number of bytes too long.
    pub(super) fn add(&self, file: File, longer: u64) -> Result<(), String> {
        let line = "A line of a page that is as long as it has to be.\n";
        let text: String = line.chars().cycle().take(file.bytes + longer as usize).collect();
        let path = self.path(file);
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        fs::write(&path, text).map_err(failed)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).map_err(failed)
    }

    /// A new directory for a server's configuration and logs.
    pub(super) fn directory_for(&self, server: &str) -> Result<PathBuf, String> {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let path = self.directory.join(server.chars().map(plain).collect::<String>());
        let open = fs::Permissions::from_mode(0o755);
        fs::create_dir(&path)
            .and_then(|()| fs::set_permissions(&path, open))
            .map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }

    /// Where a file of the site is.
    pub(super) fn path(&self, file: File) -> PathBuf {
        self.root().join(&file.path[1..])
    }

    /// The directory that is served.
    pub(crate) fn root(&self) -> PathBuf {
        self.directory.join("site")
    }
}

impl Site {
    /// Writes a file that is not served, and returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<String, String> {
        let path = self.directory.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path.display().to_string())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.directory) {
            eprintln!("{}: {error}", self.directory.display());
        }
    }
}
