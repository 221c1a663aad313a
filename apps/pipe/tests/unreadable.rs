//! A large file that cannot be read to its end, by one thread and by several. The faults are those
//! of the whole process, so this test has a process of its own.

use selvedge_io::faults::{Call, Fault, Faults};
use selvedge_pipe::run::{Settings, prepare, run};
use std::fmt::Write as _;

/// The error of a disk that cannot be read.
const EIO: i32 = 5;

#[test]
fn what_could_be_read_comes_out_before_the_error() {
    let directory = tempfile::tempdir().unwrap();
    let (from, to) = (directory.path().join("from"), directory.path().join("to"));
    let mut lines = String::new();
    for number in 0.. {
        writeln!(lines, "{number} warp").unwrap();
        if lines.len() > 8 << 20 {
            break;
        }
    }
    std::fs::write(&from, &lines).unwrap();
    let text = format!("file {:?} | lines | having suffix 'warp' | to {:?}", from, to);
    let mut told = Vec::new();
    for threads in [1, 2, 3] {
        for failing in [0, 1, 9, 20] {
            let faults = Faults::everywhere(move |call, number| {
                (call == Call::Pread && number >= failing).then_some(Fault::Errno(EIO))
            });
            let settings = Settings { progress: false, threads, least: 0, sort_memory: None };
            let error = run(prepare(&text).unwrap(), settings).unwrap_err();
            drop(faults);
            told.push(error.shown("script", &text));
            // Nothing was opened if nothing came.
            let written = std::fs::read_to_string(&to).unwrap_or_default();
            assert!(lines.starts_with(&written) && (written.is_empty() || written.ends_with('\n')));
            assert!(failing != 20 || !written.is_empty(), "by {threads} threads");
            let _ = std::fs::remove_file(&to);
        }
    }
    assert!(told[0].contains("Input/output error"), "{}", told[0]);
    assert!(told.iter().all(|one| *one == told[0]), "{told:?}");
}
