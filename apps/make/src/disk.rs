//! The times of files: one call of `stat` for each, and many of them in parallel.
//!
//! `Project::look` calls [`mtimes`] for all files of the targets before a build. `Project::mtime`,
//! `build/records.rs`, `build/finish.rs` and the tools call [`mtime`] for single files.
//!
//! All times of the program are nanoseconds since 1970, as in ninja's logs. 0 is [`MISSING`], so no
//! file that is there has the time 0.

use crate::graph::{Graph, NodeId};
use rustix::fs::{AtFlags, CWD, statat};
use rustix::io::Errno;
use std::io;
use std::thread;

/// The mtime of a file that is not there.
pub const MISSING: i64 = 0;

/// Fewer files than this are looked at by one OS thread.
const WORTH_A_THREAD: usize = 1000;

/// When a file was last written, in nanoseconds since 1970; [`MISSING`] if it is not there.
///
/// # Errors
/// Those of `stat` other than a missing file, with the path.
pub fn mtime(path: &[u8]) -> io::Result<i64> {
    match statat(CWD, path, AtFlags::empty()) {
        Ok(stat) => {
            let nanoseconds = stat.st_mtime.saturating_mul(1_000_000_000);
            let mtime = nanoseconds.saturating_add(i64::try_from(stat.st_mtime_nsec).unwrap_or(0));
            // Some tools set the time of all files to 0, in 1970. Such a file is not missing.
            Ok(if mtime == MISSING { 1 } else { mtime })
        }
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(MISSING),
        Err(error) => {
            let path = String::from_utf8_lossy(path);
            Err(io::Error::new(io::Error::from(error).kind(), format!("stat({path}): {error}")))
        }
    }
}

/// [`mtime`] of many nodes, in their order. Several OS threads share a long list, because these
/// calls take most of the time of a build that has nothing to do. `None` where the kernel returns
/// an error: the caller asks again when it needs that node.
pub fn mtimes(graph: &Graph, nodes: &[NodeId]) -> Vec<Option<i64>> {
    let look = |nodes: &[NodeId]| -> Vec<Option<i64>> {
        nodes.iter().map(|node| mtime(graph.path(*node)).ok()).collect()
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(nodes.len() / WORTH_A_THREAD);
    if threads < 2 {
        return look(nodes);
    }
    let chunks: Vec<_> = nodes.chunks(nodes.len().div_ceil(threads)).collect();
    let look = &look;
    thread::scope(|scope| {
        let started: Vec<_> = chunks[1..].iter().map(|chunk| scope.spawn(move || look(chunk))).collect();
        let mut all = look(chunks[0]);
        for thread in started {
            all.extend(thread.join().expect("looking at files does not panic"));
        }
        all
    })
}
