//! Sources, targets, commands, joins, scripts, statuses.

use crate::data::{files, shell, system, text};
use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn the_status_tells_whether_something_was_found() {
    let directory = files();
    let run = |script: &str| shell(directory.path(), &[script], b"warp\n");
    assert_eq!(text(&run("lines | having substring 'warp'"), 0), "warp\n");
    assert_eq!(text(&run("lines | having substring 'weft'"), 1), "");
    assert_eq!(text(&run("lines | having substring 'weft' | count"), 1), "0\n");
    assert_eq!(text(&run("lines | count"), 0), "1\n");
    // Only a count says by 0 that nothing was found.
    assert_eq!(text(&run("text '0' | bytes"), 0), "0");
    assert_eq!(text(&shell(directory.path(), &[], b""), 2), "");
    assert_eq!(text(&shell(directory.path(), &["lines", "lines"], b""), 2), "");
    assert_eq!(text(&shell(directory.path(), &["--check", "lines"], b""), 0), "");
    assert!(text(&shell(directory.path(), &["--help"], b""), 0).starts_with("Usage: selvedge-pipe"));
}

#[test]
fn a_stage_that_fails_is_shown_with_its_place() {
    let directory = files();
    let error = |script: &str, input: &str| {
        let output = shell(directory.path(), &[script], input.as_bytes());
        assert_eq!(output.status.code(), Some(2), "{script}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let shown = error("file access.log nowhere | count", "");
    assert!(
        shown.contains("pipeline:1:1: ") && shown.contains("nowhere") && shown.contains("\n  ^~~~"),
        "{shown}"
    );
    let shown = error("lines | integers | sum", "1\nx\n");
    assert!(shown.starts_with("selvedge-pipe: pipeline:1:9: \"x\" is no number"), "{shown}");
    assert!(shown.ends_with("  item 2, in line 2 at offset 2\n"), "{shown}");
    let shown = error("csv | column 1", "1\n2,3\n4\"\n");
    assert!(shown.contains("pipeline:1:1: a quote within a field"), "{shown}");
    let shown = error("lines | sh 'cat; exit 3' | count", "1\n");
    assert!(shown.contains("pipeline:1:9: sh: exit status: 3"), "{shown}");
    let shown = error("text 'a' | to /nowhere/a", "");
    assert!(shown.contains("pipeline:1:12: ") && shown.contains("/nowhere/a"), "{shown}");
    let shown = error("lines | integers | sum", "1e1000000\n1\n");
    let why = "selvedge-pipe: pipeline:1:20: the sum has more than a million digits";
    assert!(shown.starts_with(why), "{shown}");
}

#[test]
fn commands_stand_at_any_place() {
    let directory = files();
    let run = |script: &str| text(&shell(directory.path(), &[script], b"weft\nwarp\nreed\n"), 0);
    assert_eq!(run("sh 'sort' | lines | first 2"), "reed\nwarp\n");
    assert_eq!(run("lines | `sort -r` | lines | number"), "1:weft\n2:warp\n3:reed\n");
    assert_eq!(run("lines | sh 'cat' | sh 'tr a-z A-Z' | lines | last 1"), "REED\n");
    // The commands see the end when enough has come out.
    assert_eq!(run("sh 'yes' | sh 'cat' | lines | first 1"), "y\n");
    assert_eq!(run("range 1 1000000000 | `head -n 2`"), "1\n2\n");
}

#[test]
fn foreach_begins_anew_where_if_goes_on() {
    let directory = files();
    let run = |script: &str| text(&shell(directory.path(), &[script], b"a\na\nb\na\n"), 0);
    for condition in ["prefix 'a'", "substring 'a'", "not equals 'b'", "regex 'a' or nothing"] {
        assert_eq!(run(&format!("lines | foreach {condition} then number end")), "1:a\n1:a\nb\n1:a\n");
        assert_eq!(run(&format!("lines | if {condition} then number end")), "1:a\n2:a\nb\n3:a\n");
        let bytes = format!("line having ({condition}) then lines | number end");
        assert_eq!(run(&format!("foreach {bytes}")), "1:a\n1:a\nb\n1:a\n");
        assert_eq!(run(&format!("if {bytes}")), "1:a\n2:a\nb\n3:a\n");
    }
    // A branch that ends early takes nothing away from the other one.
    assert_eq!(run("lines | if prefix 'a' then first 1 end"), "a\nb\n");
    assert_eq!(run("lines | if prefix 'a' then sort descending | last 1 else suppress end"), "a\n");
}

#[test]
fn joins_keep_the_order_of_each_side() {
    let directory = files();
    let run = |script: &str| text(&shell(directory.path(), &[script], b"a\nc\ne"), 0);
    assert_eq!(run("lines | interleave (text 'b\nd\nf\ng' | lines)"), "a\nb\nc\nd\ne\nf\ng\n");
    assert_eq!(run("lines | merge (text 'b\nc\nd' | lines)"), "a\nb\nc\nc\nd\ne\n");
    assert_eq!(run("lines | zip (range 1 100 | bytes | lines)"), "a\t1\nc\t2\ne\t3\n");
    assert_eq!(run("lines | concatenate (sh 'echo x' | lines) | having not prefix 'a'"), "c\ne\nx\n");
    assert_eq!(
        run("lines | interleave (text 'b' | lines) | zip (text '1\n2\n3\n4\n5' | lines) | last 1"),
        "e\t4\n"
    );
}

#[test]
fn targets_are_files() {
    let directory = files();
    let script = "text 'a\n' | to one; text 'b\n' | append to one; file one | lines | having prefix 'x' | to 'two'; file one two";
    assert_eq!(text(&shell(directory.path(), &[script], b""), 0), "a\nb\n");
    assert_eq!(std::fs::read(directory.path().join("two")).unwrap(), b"");
}

#[test]
fn a_script_is_a_file_with_an_interpreter() {
    let directory = files();
    let script = "#!/usr/bin/env -S selvedge-pipe -f\n# Words.\nlines | fields | column 1\n    | sort; # and more\ntext 'end'\n";
    let path = directory.path().join("script");
    std::fs::write(&path, script).unwrap();
    assert_eq!(text(&shell(directory.path(), &["-f", "script"], b"b x\na y\n"), 0), "a\nb\nend");
    std::fs::write(&path, "lines\n  | knot\n").unwrap();
    let output = shell(directory.path(), &["-f", "script"], b"");
    assert!(
        String::from_utf8_lossy(&output.stderr)
            .starts_with("selvedge-pipe: script:2:5: there is no stage `knot`")
    );
}

#[test]
fn a_reader_that_goes_away_ends_the_script_as_it_ends_other_tools() {
    let directory = files();
    let shell = env!("CARGO_BIN_EXE_selvedge-pipe");
    // The second pipeline is not run.
    let ours = format!("{shell} 'range 1 100000000; text \"x\" | to never'");
    let status = |tool: &str| {
        let command = format!("({tool}; echo $? > status) | head -n 1; cat status; test ! -e never");
        let output = system(directory.path(), &command, b"");
        assert_eq!(output.stderr, b"", "{tool}");
        text(&output, 0)
    };
    assert_eq!(status(&ours), "1\n141\n");
    assert_eq!(status(&ours), status("seq 100000000"));
    let help = format!("(sleep 0.2; {shell} --stages; echo $? >&2) | true");
    assert_eq!(system(directory.path(), &help, b"").stderr, b"141\n");
}

#[test]
fn an_output_that_is_a_source_is_refused() {
    let directory = files();
    let path = directory.path();
    let shell = env!("CARGO_BIN_EXE_selvedge-pipe");
    for command in ["'file g' >> g", "'file g | lines | sort' >> g", "'lines' < g >> g"] {
        std::fs::write(path.join("g"), "b\na\n").unwrap();
        let output = system(path, &format!("ulimit -f 2048; timeout 20 {shell} {command}"), b"");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{command}: {error}");
        let told = "write standard output: this file is also a source of this pipeline";
        assert!(error.contains(told), "{command}: {error}");
        assert_eq!(std::fs::read(path.join("g")).unwrap(), b"b\na\n", "{command}");
    }
    assert!(!system(path, "cat g >> g", b"").status.success());
    // Another file, a device, and a file that is not read are outputs.
    let other = format!(
        "{shell} 'file g' >> h && {shell} 'file /dev/null g' > /dev/null && {shell} 'text \"c\"' < g >> g"
    );
    assert_eq!(text(&system(path, &other, b""), 0), "");
    assert_eq!(std::fs::read(path.join("g")).unwrap(), b"b\na\nc");
}

#[test]
fn a_pipe_is_read_as_a_file() {
    let directory = files();
    let shell = env!("CARGO_BIN_EXE_selvedge-pipe");
    let script = format!("mkfifo fifo; (echo a; echo b) > fifo & {shell} 'file fifo | lines | last 1'");
    assert_eq!(text(&system(directory.path(), &script, b""), 0), "b\n");
}

#[test]
fn the_plan_and_the_bar_are_shown_when_asked_for() {
    let directory = files();
    let script = "lines | if prefix 'a' then sort end | zip (file x | lines) | to y";
    let plan = text(&shell(directory.path(), &["--explain", script], b""), 0);
    for line in [
        "read standard input nothing -> bytes",
        "if prefix \"a\"",
        "  then",
        "    sort",
        "  else",
        "zip",
        "to \"y\"",
    ] {
        assert!(plan.contains(line), "{line}: {plan}");
    }
    assert!(plan.contains("each side in a thread of its own"), "{plan}");
    let script = "having even line | having upto first letters | each last and after letters";
    let plan = text(&shell(directory.path(), &["--explain", script], b""), 0);
    for note in
        ["keeps all up to the first section", "keeps what comes from each section", "cuts blocks at sections"]
    {
        assert!(plan.contains(note), "{note}: {plan}");
    }
    assert!(!directory.path().join("y").exists());
    // The bar waits for 0.3 s, so that a short run shows none.
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge-pipe"));
    command.args(["--progress", "always", "file access.log fifo | count"]).current_dir(directory.path());
    assert!(Command::new("mkfifo").arg("fifo").current_dir(directory.path()).status().unwrap().success());
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The pipe can be opened when the shell has opened it, and so has read the first file.
    let mut fifo = std::fs::File::options().write(true).open(directory.path().join("fifo")).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(350));
    fifo.write_all(b"x").unwrap();
    drop(fifo);
    let output = child.wait_with_output().unwrap();
    let bar = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(bar.starts_with("\r[####") && bar.ends_with("\r\x1b[K"), "{bar:?}");
}

#[test]
fn csv_may_have_another_delimiter() {
    let directory = files();
    let run = |script: &str, input: &str| text(&shell(directory.path(), &[script], input.as_bytes()), 0);
    let rows = "a;\"b;c\"\nd;\"e\n\"\"f\"\n";
    assert_eq!(run("csv ';' | columns 2 1 | rows ';'", rows), "\"b;c\";a\n\"e\n\"\"f\";d\n");
    assert_eq!(run("csv ';' | rows \"\\t\"", rows), "a\tb;c\nd\t\"e\n\"\"f\"\n");
    assert_eq!(run("csv ';' | rows", rows), "a,b;c\nd,\"e\n\"\"f\"\n");
    // With a comma for the delimiter, the quote is within a field and keeps no line end.
    assert_eq!(run("each csv row ';' | count", "d;\"e\nf\"\n"), "1\n");
    assert_eq!(run("each csv row | count", "d;\"e\nf\"\n"), "2\n");
    assert_eq!(
        run("foreach csv row ';' having substring 'f' then uppercase end", rows),
        "a;\"b;c\"\nD;\"E\n\"\"F\"\n"
    );
}

#[test]
fn values_of_attributes_are_sections() {
    let directory = files();
    let run = |script: &str, input: &str| text(&shell(directory.path(), &[script], input.as_bytes()), 0);
    let page = "<a href='x>' id=\"1\"/><!-- <a href='y'> -->\n<b HREF='z' href = \"\">href='w'</b>";
    assert_eq!(run("each xml attribute 'href' | number", page), "1:x>\n2:\n");
    assert_eq!(
        run("foreach xml attribute 'href' then substitute '#' end", page),
        "<a href='#' id=\"1\"/><!-- <a href='y'> -->\n<b HREF='z' href = \"#\">href='w'</b>"
    );
}

#[test]
fn an_error_names_what_was_read_or_written() {
    let directory = files();
    let error = |command: &str| {
        let command = command.replace("pipe", env!("CARGO_BIN_EXE_selvedge-pipe"));
        let output = system(directory.path(), &command, b"");
        assert_eq!(output.status.code(), Some(2), "{command}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let begins = |command: &str, expected: &str| {
        let shown = error(command);
        assert!(shown.starts_with(&format!("selvedge-pipe: pipeline:{expected}")), "{shown}");
        assert!(!shown.contains("offset"), "{shown}");
    };
    begins("pipe 'cat access.log . | count'", "1:1: read .: Is a directory");
    begins("pipe 'lines | count' < .", "1:1: read standard input: Is a directory");
    begins("pipe \"text 'a' | uppercase\" > /dev/full", "1:12: write standard output: No space left");
    begins("pipe \"text 'a' | to /dev/full\"", "1:12: write /dev/full: No space left");
    begins("pipe 'range 1 3 | bytes | lines | zip (lines)' < .", "1:34: read standard input: Is a directory");
}
