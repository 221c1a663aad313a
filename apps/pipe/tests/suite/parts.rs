//! A large file is read by several threads, and nothing else changes: what comes out, the error,
//! the exit status.

use crate::data::{Numbers, shell, text};
use selvedge_pipe::origin::OriginKind;
use selvedge_pipe::parts::{LEAST, PartStages, WithStages};
use selvedge_pipe::run::Outcome::{Found, Nothing};
use selvedge_pipe::run::{Outcome, Settings, prepare, run};
use selvedge_pipeline::{Part, PartByPart, PartJoiner, Store, Transducer};
use std::fmt::Write as _;
use std::path::Path;

/// A directory with a file `log` and a file `wrong`, each of some blocks of 256 KiB. `wrong` has a
/// line in it that is no number.
fn files_of_some_blocks() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let mut numbers = Numbers::new(31);
    let (mut log, mut wrong) = (String::new(), String::new());
    let words = ["warp", "weft", "knot", "reed", ""];
    for _ in 0..28_000 {
        let (host, word, size) = (numbers.below(7), numbers.pick(&words), numbers.below(100_000));
        writeln!(log, "10.0.0.{host} - - GET /{word} {} {size}", numbers.pick(&["200", "404", "500"]))
            .unwrap();
    }
    log.push_str("the last line has no end");
    for number in 0..200_000 {
        let line = if number == 180_000 { "wrong".to_string() } else { numbers.below(1000).to_string() };
        writeln!(wrong, "{line}").unwrap();
    }
    assert!(log.len() > 3 << 18 && wrong.len() > 2 << 18);
    std::fs::write(directory.path().join("log"), log).unwrap();
    std::fs::write(directory.path().join("wrong"), wrong).unwrap();
    directory
}

/// What a script makes in `directory` with this number of threads: a file `out` that holds its
/// output, its outcome, and its error.
fn by(threads: usize, directory: &Path, script: &str) -> (Vec<u8>, Result<Outcome, String>) {
    let name = |word: &str| format!("{:?}", directory.join(word));
    let script =
        script.replace("LOG", &name("log")).replace("WRONG", &name("wrong")).replace("OUT", &name("out"));
    let settings = Settings { progress: false, threads, least: 0, sort_memory: None };
    let outcome = run(prepare(&script).unwrap(), settings).map_err(|error| error.shown("script", &script));
    let out = directory.join("out");
    let made = std::fs::read(&out).unwrap_or_default();
    let _ = std::fs::remove_file(out);
    (made, outcome)
}

#[test]
fn nothing_depends_on_the_number_of_threads() {
    let directory = files_of_some_blocks();
    let found = [
        "file LOG | lines | having substring ' 500 ' | count | to OUT",
        "file LOG | lines | having regex '/(warp|knot) [45]' numbered | to OUT",
        "file LOG | lines | number | having suffix '7' | to OUT",
        "file LOG | replace 'warp' with 'WARP' | to OUT",
        "file LOG | lines | having substring 'weft' | first 3 | to OUT",
        "file LOG | lines | fields | column 5 | unique | to OUT",
        "file LOG | lines | fields | columns 1 6 | having column 2 equals '404' | rows | `sort | uniq -c` | to OUT",
        "file LOG | lines | having substring 'reed' | zip (file LOG | lines | having prefix 'the') | to OUT",
        "file LOG | count | to OUT",
        "file LOG | lines | having substring 'reed' | to OUT; file LOG | lines | fields | column 1 | tally | append to OUT",
    ];
    let nothing = [
        "file LOG | lines | having substring 'silk' | to OUT",
        "file LOG | lines | having empty | count | to OUT",
    ];
    let failing = [
        "file WRONG | lines | integers | sum",
        "file WRONG | lines | having not prefix '7' | integers | having > 900 | to OUT",
        "file WRONG | lines | sort descending | integers | first 3 | to OUT",
        "file WRONG | lines | having suffix 'ng' | integers | `cat` | to OUT",
        "file WRONG | lines | having suffix 'ng' | `cat` | lines | integers | to OUT",
        "file WRONG | lines | having suffix 'g' | quote | unquote | integers | count",
        "file LOG | lines | having substring 'warp' | to /dev/full",
    ];
    for (scripts, status) in [(&found[..], Some(Found)), (&nothing, Some(Nothing)), (&failing, None)] {
        for script in scripts {
            let alone = by(1, directory.path(), script);
            assert_eq!(alone.1.as_ref().ok(), status.as_ref(), "{script}");
            assert!(status.is_none() || !alone.0.is_empty() || script.contains("silk"), "{script}");
            for threads in [2, 3] {
                assert!(by(threads, directory.path(), script) == alone, "{script} by {threads} threads");
            }
        }
    }
    // The place of the failing line is that in the file.
    let (_, told) = by(2, directory.path(), failing[1]);
    let error = told.unwrap_err();
    assert!(error.contains(", in line ") && error.contains("\"wrong\""), "{error}");
}

#[test]
fn the_plan_tells_which_stages_run_in_threads() {
    let directory = tempfile::tempdir().unwrap();
    let plan = |threads: &str, script: &str| {
        text(&shell(directory.path(), &["--threads", threads, "--explain", script], b""), 0)
    };
    let script = "file log | lines | having substring 'a' | fields | column 2 | sort | to out";
    let told = "3 threads up to `column` if it is large";
    assert!(plan("3", script).contains(told), "{}", plan("3", script));
    let alone = [
        ("1", script),
        ("3", "file log | lines | first 3 | uppercase"),
        ("3", "file log log | lines | having substring 'a'"),
        ("3", "lines | having substring 'a'"),
        // The place of a failure is not known before a command.
        ("3", "file log | lines | integers | sh 'cat'"),
    ];
    for (threads, script) in alone {
        assert!(!plan(threads, script).contains("threads"), "{script}");
    }
    let refused = shell(directory.path(), &["-j", "many", script], b"");
    assert_eq!(refused.status.code(), Some(2));
}

/// Joins blocks without a line end, and says how many items come of each.
struct JoinBlocks;

impl WithStages for JoinBlocks {
    type Result = Vec<u64>;

    fn call<B, T>(self, stages: Transducer<u8, B, T>) -> Vec<u64>
    where
        B: OriginKind + ?Sized,
        T: PartByPart<u8, B> + Send + 'static,
    {
        let stages = stages.into_stage();
        let mut joiner = PartJoiner::new(stages.clone());
        let mut joined = |_| {
            let (mut part, mut items) = (Part::default(), B::Store::default());
            part.cut(&stages, &[b'a'; 100]);
            joiner.join(&part, &mut items).unwrap();
            items.count() as u64
        };
        (0..4).map(&mut joined).collect()
    }
}

#[test]
fn a_line_longer_than_a_block_is_kept_only_if_a_stage_needs_it() {
    let items = |script: &str| {
        let script = prepare(script).unwrap();
        PartStages::of(&script[0]).unwrap().with(JoinBlocks)
    };
    assert_eq!(items("uppercase"), [100; 4]);
    assert_eq!(items("replace 'b' with 'c'"), [100; 4]);
    assert_eq!(items("lines | uppercase | append 'b'"), [100; 4]);
    assert_eq!(items("lines | number"), [102, 100, 100, 100]);
    assert_eq!(items("lines | number | having substring 'b'"), [0; 4]);
}

#[test]
fn a_large_file_is_read_in_parts() {
    let directory = tempfile::tempdir().unwrap();
    let lines = "no thread is idle\n".repeat((LEAST / 18 + 1) as usize);
    std::fs::write(directory.path().join("large"), &lines).unwrap();
    let script = "file large | lines | having substring 'idle' | count";
    for threads in ["0", "1", "2"] {
        let output = shell(directory.path(), &["-j", threads, script], b"");
        assert_eq!(text(&output, 0), format!("{}\n", lines.len() / 18));
    }
}
