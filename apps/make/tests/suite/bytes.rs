//! Names that are no UTF-8: they come out as they went in, as with ninja.

use crate::projects::{NINJA, OURS, command, output};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What a program writes to its standard output, without the lines in which the two differ.
fn said(program: &str, directory: &Path, arguments: &[&[u8]]) -> Vec<u8> {
    let mut run = command(program, directory, &[]);
    run.args(arguments.iter().map(|argument| OsStr::from_bytes(argument)));
    let said = run.output().unwrap().stdout;
    let of_program = |line: &[u8]| line.starts_with(b"ninja: ") || line.starts_with(b"selvedge-make: ");
    let lines = said.split_inclusive(|byte| *byte == b'\n').filter(|line| !of_program(line));
    let text = lines.collect::<Vec<_>>().concat();
    // ninja from 1.13 on and ours tell the code of a failure.
    let code = b"[code=1] ";
    match text.windows(code.len()).position(|window| window == code) {
        Some(at) => [&text[..at], &text[at + code.len()..]].concat(),
        None => text,
    }
}

fn project(directory: &Path) {
    let manifest =
        b"rule cc\n  command = touch $out && echo $out: h\xff > d\n  deps = gcc\n  depfile = d\n  \
                     description = cc $out\nrule bad\n  command = false $in\n\
                     build o\xff: cc s\xfe\nbuild f\xff: bad o\xff\nbuild p\xff: phony o\xff\n";
    fs::write(directory.join("build.ninja"), manifest).unwrap();
    for name in [&b"s\xfe"[..], b"h\xff"] {
        fs::write(directory.join(OsStr::from_bytes(name)), "").unwrap();
    }
}

#[test]
fn names_that_are_no_utf_8_come_out_as_ninja_writes_them() {
    let trees = [OURS, NINJA].map(|program| (program, tempfile::tempdir().unwrap()));
    for (_, tree) in &trees {
        project(tree.path());
    }
    let mut shown = 0;
    for arguments in [
        &[&b"o\xff"[..]][..],
        &[b"f\xff"],
        &[b"-n", b"-v", b"s\xfe^"],
        &[b"-t", b"targets", b"all"],
        &[b"-t", b"targets", b"rule", b"cc"],
        &[b"-t", b"targets", b"rule"],
        &[b"-t", b"targets", b"depth", b"0"],
        &[b"-t", b"query", b"o\xff", b"s\xfe"],
        &[b"-t", b"commands", b"f\xff"],
        &[b"-t", b"inputs", b"f\xff"],
        &[b"-t", b"clean", b"o\xff"],
    ] {
        let [ours, theirs] =
            [0, 1].map(|index: usize| said(trees[index].0, trees[index].1.path(), arguments));
        assert_eq!(ours.escape_ascii().to_string(), theirs.escape_ascii().to_string());
        shown += usize::from(ours.iter().any(|byte| *byte >= 0xfe));
    }
    assert_eq!(shown, 9);
}

#[test]
fn the_compilation_database_and_the_reasons_keep_such_names() {
    let tree = tempfile::tempdir().unwrap();
    project(tree.path());
    let [ours, theirs] = [OURS, NINJA].map(|program| said(program, tree.path(), &[b"-t", b"compdb"]));
    assert_eq!(ours.escape_ascii().to_string(), theirs.escape_ascii().to_string());
    let explained = command(OURS, tree.path(), &["-d", "explain"]).arg(OsStr::from_bytes(b"o\xff")).output();
    let explained = explained.unwrap().stderr;
    assert_eq!(
        explained.escape_ascii().to_string(),
        "selvedge-make explain: deps for \\'o\\xff\\' are missing\\n"
    );
    let graph = output(OURS, tree.path(), &["-t", "graph"]).stdout;
    assert!(graph.windows(13).any(|window| window == b"[label=\"o\xff\"]\n"), "{}", graph.escape_ascii());
    let deps = output(OURS, tree.path(), &["-t", "deps"]).stdout;
    assert!(
        deps.starts_with(b"o\xff: #deps 1") && deps.ends_with(b"    h\xff\n\n"),
        "{}",
        deps.escape_ascii()
    );
    let cleaned = output(OURS, tree.path(), &["-v", "-t", "clean"]).stdout;
    assert!(cleaned.starts_with(b"Remove o\xff\n"), "{}", cleaned.escape_ascii());
}
