//! [`History`]: the lines of earlier prompts, in a file.
//!
//! `serve` in `terminal.rs` opens it for a prompt on a terminal, gives its lines to the editor, and
//! adds each line that is run. A line holds no line end. Each is added by one write to the end of
//! the file, so several prompts may share it.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// How many lines the prompt has of earlier ones.
pub(super) const LINES: usize = 1000;

/// A file of lines.
#[derive(Debug)]
pub(super) struct History {
    file: File,
}

impl History {
    /// Where the file is: what `SELVEDGE_PIPE_HISTORY` names, or `selvedge-pipe/history` in the
    /// directory for the state of programs. `None` if the variable is empty, or there is no home.
    pub(super) fn place() -> Option<PathBuf> {
        if let Some(named) = std::env::var_os("SELVEDGE_PIPE_HISTORY") {
            return (!named.is_empty()).then(|| named.into());
        }
        let directory =
            |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let state = directory("XDG_STATE_HOME").or_else(|| Some(directory("HOME")?.join(".local/state")))?;
        Some(state.join("selvedge-pipe/history"))
    }

    /// The file, and its last lines. It is made if it is not there, for its owner alone. A file
    /// with twice as many lines as are kept is written anew.
    ///
    /// # Errors
    /// If the file can be neither made nor read.
    pub(super) fn open(path: &Path) -> io::Result<(History, Vec<String>)> {
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        let open = |path: &Path| File::options().append(true).create(true).mode(0o600).open(path);
        let mut file = open(path)?;
        let text = String::from_utf8_lossy(&std::fs::read(path)?).into_owned();
        let all: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let kept: Vec<String> = all.iter().rev().take(LINES).rev().map(ToString::to_string).collect();
        if all.len() > 2 * LINES {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{}", std::process::id()));
            let made = PathBuf::from(name);
            open(&made)?.write_all((kept.join("\n") + "\n").as_bytes())?;
            std::fs::rename(&made, path)?;
            file = open(path)?;
        }
        Ok((History { file }, kept))
    }

    /// Adds a line.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn add(&mut self, line: &str) -> io::Result<()> {
        self.file.write_all(format!("{line}\n").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_keeps_its_last_lines() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state/history");
        assert!(History::open(&path).unwrap().1.is_empty());
        let lines = |count: usize| (0..count).map(|n| format!("range 1 {n}\n")).collect::<String>();
        std::fs::write(&path, lines(2 * LINES)).unwrap();
        assert_eq!(History::open(&path).unwrap().1.len(), LINES);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), lines(2 * LINES));
        std::fs::write(&path, lines(2 * LINES + 1)).unwrap();
        let (mut history, kept) = History::open(&path).unwrap();
        assert_eq!((kept.len(), kept.last().unwrap().as_str()), (LINES, "range 1 2000"));
        history.add("lines").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!((text.lines().count(), text.lines().last()), (LINES + 1, Some("lines")));
        assert_eq!(std::fs::read_dir(directory.path().join("state")).unwrap().count(), 1);
    }
}
