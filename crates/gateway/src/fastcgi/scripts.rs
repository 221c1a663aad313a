//! [`KnownScripts`]: which scripts were files a moment ago.
//!
//! `fastcgi.rs` asks before each request. A look at the disk is a call on another OS thread, which
//! costs as much as the rest of the request.

use crate::cgi::variables::ProgramTarget;
use selvedge_core::{Time, now};
use selvedge_io::fs::metadata;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

/// How long a file is taken to stay one. The application tells of a script that has gone meanwhile.
const VALIDITY: Duration = Duration::from_secs(1);

/// The most scripts that are known. One more makes a place for itself by forgetting all.
const MOST: usize = 1024;

/// The scripts that were found to be files, each with the time of the look. Most sites have a few.
#[derive(Debug, Default)]
pub(crate) struct KnownScripts(RefCell<BTreeMap<Vec<u8>, Time>>);

impl KnownScripts {
    /// Whether a script was a file a moment ago.
    pub(crate) fn knows(&self, target: &ProgramTarget) -> bool {
        self.0.borrow().get(target.file()).is_some_and(|&looked| now().since(looked) < VALIDITY)
    }

    /// Whether a script is a file, as far as it is known.
    pub(crate) async fn has(&self, target: &ProgramTarget) -> bool {
        if self.knows(target) {
            return true;
        }
        let now = now();
        let file = PathBuf::from(OsStr::from_bytes(target.file()));
        let is_file = metadata(file).await.is_ok_and(|status| status.is_file());
        let mut known = self.0.borrow_mut();
        if !is_file {
            known.remove(target.file());
            return false;
        }
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(target.file().to_vec(), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_core::round_robin_over;
    use selvedge_io::EventLoop;

    fn target(file: &std::path::Path) -> ProgramTarget {
        ProgramTarget::new([file.as_os_str().as_bytes(), b"", b""], [b""; 3], [b""; 2])
    }

    #[test]
    fn a_script_that_was_there_is_there_for_a_second() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.php");
        std::fs::write(&file, "x").unwrap();
        let main = async move {
            let known = KnownScripts::default();
            assert!(!known.has(&target(&file.with_extension("none"))).await);
            assert!(known.has(&target(&file)).await);
            std::fs::remove_file(&file).unwrap();
            assert!(known.has(&target(&file)).await, "it is not looked at again yet");
            selvedge_io::time::sleep(VALIDITY).await;
            assert!(!known.has(&target(&file)).await);
            std::fs::write(&file, "x").unwrap();
            assert!(known.has(&target(&file)).await, "what was not there is looked at again");
        };
        round_robin_over(&mut EventLoop::new().unwrap(), main).unwrap();
    }
}
