//! The logs: what ninja has written is read, and what we write is read again, whole or cut off.

use crate::projects::{OURS, command, tick};
use crate::small::{read, run, tree, write};
use proptest::prelude::*;
use selvedge_make::graph::Graph;
use selvedge_make::log::build_log::{self, BuildLog, Entry};
use selvedge_make::log::deps_log::{self, Deps, DepsLog};
use selvedge_make::log::hash::of_command;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Output;

/// What ninja 1.11.1 (version 5) and 1.13.0 (version 7) have written for commands of these lengths.
const HASHES: [(usize, u64, u64); 16] = [
    (1, 0x2e49d2477c6737f0, 0xa2da22321247804b),
    (3, 0xf2d1360f1675bfb3, 0xbae980166742c4ce),
    (4, 0xec018324a11ce21, 0x97e0d095040aee0d),
    (6, 0xa651a3d4b9d99772, 0xfa97e8547ae5270e),
    (7, 0x50c2e91ed79a6745, 0x6aad14337fb38b85),
    (12, 0x3db764d9c3079ed5, 0x8af44588d3b2cb47),
    (16, 0x6cf406fe306b52f8, 0x8732a2ee5bb4306c),
    (17, 0xc7c6fa710cc5a22e, 0x4fa7e7782158064d),
    (33, 0x14aa4dd4657f1303, 0x9f6452e14122fc7),
    (48, 0x6263aae478ff206f, 0xcd5a1923854211de),
    (49, 0xd7655bea3c15cd15, 0x28953ab3e4d963d5),
    (64, 0xeb67f6929a6b7eae, 0xab713648871ac732),
    (96, 0x5285b12041623fca, 0xe1e1945b989b6d3),
    (97, 0x944faf3da327e04c, 0x9dc534e087950e1a),
    (150, 0x25e338319049cb2d, 0xef64ce8edc7a96b9),
    (300, 0xf523a6837f7cbf40, 0xd4daafef13a93dea),
];

#[test]
fn a_command_has_the_hash_that_ninja_gives_it() {
    for (length, five, seven) in HASHES {
        let mut command = format!(":{}", " abcdefghijklmnopqrstuvwxyz0123456789".repeat(20));
        command.truncate(length);
        if command.ends_with(' ') {
            command = format!("{}z", command.trim_end());
        }
        assert_eq!(command.len(), length);
        assert_eq!(of_command(5, command.as_bytes()), five, "{length}");
        assert_eq!(of_command(6, command.as_bytes()), five, "{length}");
        assert_eq!(of_command(7, command.as_bytes()), seven, "{length}");
    }
}

fn graph() -> Graph {
    let text = b"rule r\n  command = r\n  deps = gcc\n  depfile = d\nbuild a: r\nbuild b: r\n";
    selvedge_make::manifest::parse(b"build.ninja", text, &mut |_| unreachable!()).unwrap()
}

#[test]
fn the_version_that_was_found_is_written() {
    for version in [5, 6, 7] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(".ninja_log");
        fs::write(
            &path,
            format!("# ninja log v{version}\n1\t2\t3\ta\tff\n4\t5\t6\tgone\t1\n1\t2\t9\ta\tfe\ncut off"),
        )
        .unwrap();
        let graph = graph();
        let (a, b) = (graph.find(b"a").unwrap(), graph.find(b"b").unwrap());
        let (mut log, warning) = BuildLog::load(path.clone(), &graph).unwrap();
        assert_eq!((log.version, warning), (version, None));
        assert_eq!(log.entry(a), Some(Entry { start: 1, end: 2, mtime: 9, hash: 0xfe }));
        assert_eq!(log.entry(b), None);
        log.open(&graph).unwrap();
        log.record(&graph, b, Entry { start: 7, end: 8, mtime: 9, hash: 10 }).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with(&format!("# ninja log v{version}\n")), "{text}");
        assert!(text.ends_with("\n1\t2\t9\ta\tfe\n7\t8\t9\tb\ta\n"), "{text}");
        log.recompact(&graph).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, format!("# ninja log v{version}\n1\t2\t9\ta\tfe\n7\t8\t9\tb\ta\n"));
    }
}

#[test]
fn a_log_of_another_version_is_begun_anew() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(".ninja_log");
    fs::write(&path, "# ninja log v4\n1\t2\t3\ta\tff\n").unwrap();
    let (mut log, warning) = BuildLog::load(path.clone(), &graph()).unwrap();
    assert_eq!(warning.unwrap(), "build log version is too old; starting over");
    assert_eq!(log.entry(graph().find(b"a").unwrap()), None);
    log.open(&graph()).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("# ninja log v{}\n", log.version));
    fs::write(&path, "# ninja log v8\n").unwrap();
    let (_, warning) = BuildLog::load(path, &graph()).unwrap();
    assert_eq!(warning.unwrap(), "build log version is too new; starting over");
}

/// A new log has a version that the ninja on the path reads, whatever that one is.
#[test]
fn a_new_log_has_the_version_of_the_ninja_that_is_installed() {
    for (told, version) in [
        ("echo 1.11.1", 6),
        ("echo 1.12.1", 6),
        ("echo 1.13.0.git", 7),
        ("echo 2.0", 7),
        ("echo 1.11.1; exit 1", 7),
        ("", 7),
    ] {
        let tree = tree("rule r\n  command = : > $out\nbuild a: r\n");
        if !told.is_empty() {
            write(&tree, "ninja", &format!("#!/bin/sh\n{told}\n"));
            fs::set_permissions(tree.path().join("ninja"), Permissions::from_mode(0o755)).unwrap();
        }
        let built = command(OURS, tree.path(), &[]).env("PATH", tree.path()).output().unwrap();
        assert!(built.status.success(), "{told:?}: {built:?}");
        let log = read(&tree, ".ninja_log");
        let hash = of_command(version, b": > a");
        assert!(log.starts_with(&format!("# ninja log v{version}\n")), "{told:?}: {log}");
        assert!(log.ends_with(&format!("\ta\t{hash:x}\n")), "{told:?}: {log}");
        assert!(run(&tree, &[]).0.ends_with("no work to do.\n"), "{told:?}");
    }
}

#[test]
fn a_log_that_has_grown_is_written_anew() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(".ninja_log");
    let lines: String = (0..200).map(|mtime| format!("1\t2\t{mtime}\ta\tff\n")).collect();
    fs::write(&path, format!("# ninja log v6\n{lines}")).unwrap();
    let graph = graph();
    let (mut log, _) = BuildLog::load(path.clone(), &graph).unwrap();
    log.open(&graph).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "# ninja log v6\n1\t2\t199\ta\tff\n");
}

/// A build or another tool may be writing at the same time.
#[test]
fn what_only_reads_leaves_the_logs_as_they_are() {
    let manifest = "rule r\n  command = touch $out\nbuild a: r\n";
    for (build_log, deps_log) in [
        ("# ninja log v6\n1\t2\t3\ta\tff\n4\t5", &b"# ninjadeps\n\x04\0\0\0\x08\0\0\0a"[..]),
        ("# ninja log v99\n", b"# ninjadeps\n\x09\0\0\0"),
    ] {
        let tree = tree(manifest);
        let logs = || (".ninja_log", ".ninja_deps");
        fs::write(tree.path().join(logs().0), build_log).unwrap();
        fs::write(tree.path().join(logs().1), deps_log).unwrap();
        for arguments in [&["-n"][..], &["-t", "deps"], &["-t", "critical-path"], &["-t", "missingdeps"]] {
            let (said, status) = run(&tree, arguments);
            assert_eq!(status, 0, "{arguments:?}: {said}");
            assert_eq!(fs::read(tree.path().join(logs().0)).unwrap(), build_log.as_bytes(), "{arguments:?}");
            assert_eq!(fs::read(tree.path().join(logs().1)).unwrap(), deps_log, "{arguments:?}");
        }
        assert_eq!(run(&tree, &[]).1, 0);
        assert!(run(&tree, &[]).0.ends_with("no work to do.\n"));
    }
}

/// The program, run by a user that cannot write into `directory`. The superuser writes everywhere,
/// so its test runs a copy of the program as another user.
fn without_write_access(directory: &Path, arguments: &[&str]) -> Output {
    let mode = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    let copies = tempfile::tempdir().unwrap();
    let program = copies.path().join("program");
    mode(copies.path(), 0o755);
    fs::copy(OURS, &program).unwrap();
    for entry in fs::read_dir(directory).unwrap() {
        mode(&entry.unwrap().path(), 0o444);
    }
    mode(directory, 0o555);
    let mut ours = command(program.to_str().unwrap(), directory, arguments);
    if rustix::process::geteuid().is_root() {
        ours.uid(65_534).gid(65_534);
    }
    let output = ours.output().unwrap();
    mode(directory, 0o755);
    output
}

#[test]
fn a_build_with_nothing_to_do_needs_no_file_that_can_be_written() {
    let manifest =
        "rule r\n  command = touch $out\nbuild a: r x\nbuild all: phony a always\nbuild always: phony\n";
    let tree = tree(manifest);
    write(&tree, "x", "");
    assert_eq!(run(&tree, &[]).1, 0);
    // An unfinished line is cut off by the next build that writes.
    let log = read(&tree, ".ninja_log") + "4\t5";
    write(&tree, ".ninja_log", &log);
    let built = without_write_access(tree.path(), &[]);
    assert_eq!(String::from_utf8_lossy(&built.stdout), "selvedge-make: no work to do.\n", "{built:?}");
    assert!(built.status.success() && built.stderr.is_empty(), "{built:?}");
    assert_eq!(read(&tree, ".ninja_log"), log);
    // A command that must run needs the log, and does not start without it.
    tick();
    write(&tree, "x", "");
    let built = without_write_access(tree.path(), &[]);
    assert!(String::from_utf8_lossy(&built.stdout).contains(".ninja_log: Permission denied"), "{built:?}");
    assert_eq!(built.status.code(), Some(1));
    assert_eq!(read(&tree, ".ninja_log"), log);
}

/// Writes lists of inputs, and returns the file.
fn deps_file(lists: &[(usize, i64, Vec<usize>)]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(".ninja_deps");
    let mut graph = Graph::new();
    let nodes: Vec<_> =
        (0..40).map(|index| graph.node(format!("{}{index}", "x".repeat(index)).as_bytes())).collect();
    let (mut log, _) = DepsLog::load(path.clone(), &mut graph).unwrap();
    log.open(&graph).unwrap();
    for (output, mtime, inputs) in lists {
        let inputs = inputs.iter().map(|input| nodes[*input]).collect();
        log.record(&graph, nodes[*output], Deps { mtime: *mtime, inputs }).unwrap();
    }
    fs::read(path).unwrap()
}

proptest! {
    #[test]
    fn deps_are_read_as_they_were_written_and_a_cut_loses_the_last_ones_only(
        lists in prop::collection::vec((0_usize..40, 1_i64.., prop::collection::vec(0_usize..40, 0..6)), 1..12),
        cut in 0_usize..2000,
    ) {
        let file = deps_file(&lists);
        let (all, whole) = deps_log::read(&file).unwrap();
        prop_assert_eq!(whole, file.len());
        let cut = cut.min(file.len()).max(16);
        let (some, kept) = deps_log::read(&file[..cut]).unwrap();
        prop_assert!(kept <= cut);
        prop_assert_eq!(&some[..], &all[..some.len()]);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(".ninja_deps");
        fs::write(&path, &file).unwrap();
        let mut graph = Graph::new();
        let (log, _) = DepsLog::load(path, &mut graph).unwrap();
        for (output, ..) in &lists {
            let (_, mtime, inputs) = lists.iter().rev().find(|(other, ..)| other == output).unwrap();
            let node = graph.find(format!("{}{output}", "x".repeat(*output)).as_bytes()).unwrap();
            let deps = log.deps(node).unwrap();
            let paths: Vec<_> = deps.inputs.iter().map(|input| graph.path_text(*input)).collect();
            let expected: Vec<_> = inputs.iter().map(|input| format!("{}{input}", "x".repeat(*input))).collect();
            prop_assert_eq!((deps.mtime, paths), (*mtime, expected));
        }
    }

    #[test]
    fn a_build_log_that_is_cut_off_keeps_its_whole_lines(
        entries in prop::collection::vec(("[a-z /]{1,9}", any::<u32>(), 0_i64.., any::<u64>()), 0..9),
        cut in 0_usize..400,
    ) {
        let mut text = b"# ninja log v6\n".to_vec();
        let mut ends = vec![text.len()];
        for (path, start, mtime, hash) in &entries {
            text.extend(format!("{start}\t7\t{mtime}\t{path}\t{hash:x}\n").bytes());
            ends.push(text.len());
        }
        let cut = cut.min(text.len());
        let read = build_log::read(&text[..cut]);
        let whole = ends.iter().filter(|end| **end <= cut).count();
        prop_assert_eq!(read.lines.len(), whole.saturating_sub(1));
        prop_assert_eq!(read.whole, ends[..whole].last().copied().unwrap_or(0));
        for ((path, entry), (expected, start, mtime, hash)) in read.lines.iter().zip(&entries) {
            prop_assert_eq!(*path, expected.as_bytes());
            prop_assert_eq!(*entry, Entry { start: *start, end: 7, mtime: *mtime, hash: *hash });
        }
    }
}
