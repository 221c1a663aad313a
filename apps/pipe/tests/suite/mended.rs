//! Mistakes that a review has found, each with the scripts that show it.

use crate::data::{files, shell, system, text};
use proptest::prelude::{ProptestConfig, Strategy, prop, prop_assert_eq, prop_oneof, proptest};
use regex::bytes::RegexBuilder;
use selvedge_pipe::fuzz::outcome;
use selvedge_pipe::run::prepare;
use std::fs::{read, write};
use std::path::Path;
use std::process::{Command, Output};

/// The shell fed with `input`, in a directory where it makes no file.
fn run(script: &str, input: &str) -> Output {
    shell(Path::new("/"), &[script], input.as_bytes())
}

/// What the shell says about a script that must end with status 2.
fn refused(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    error
}

#[test]
fn a_failure_in_a_branch_that_begins_anew_ends_the_script() {
    let numbers = "then lines | fields | column 2 | integers | sum end";
    for condition in ["line having prefix 'x'", "line having not prefix 'y'"] {
        let error = refused(&run(&format!("foreach {condition} {numbers}"), "x 1\nx oops\nx 3\n"));
        assert!(error.contains("\"oops\" is no number"), "{error}");
    }
    let error = refused(&run(
        "foreach line having prefix 'y' then else lines | fields | column 2 | integers | sum end",
        "x 1\nx oops\nx 3\n",
    ));
    assert!(error.contains("\"oops\" is no number"), "{error}");
    // A branch that only ends early is no failure, and the next line begins it anew.
    let first = "foreach line having prefix 'x' then first 1 end";
    assert_eq!(text(&run(first, "x 1\ny\nx 2\n"), 0), "xy\nx");
}

#[test]
fn what_is_nested_in_sections_is_found_at_each_depth() {
    // The section that is the whole of its parent has no deeper level.
    let one_level = [
        ("having letters nested in everything", "1a", "a"),
        ("having letters nested in line", "1a\n2b\n", "ab"),
        ("lines | having prefix 'a' nested in everything", "b\na\n", "a\n"),
        ("range 1 3 | having > 2 nested in everything", "", "3\n"),
        ("lines | fields | having column 1 equals 'b' nested in everything", "b c\na\n", "b,c\n"),
        ("each letters nested in everything", "1ab2c", "ab\nc\n"),
        ("foreach line then if letters nested in everything then uppercase end end", "1a\nb", "1A\nB"),
        ("sh 'printf a1' | having letters having letters nested in everything | sh 'cat'", "", "a"),
        ("each xml element 'b' nested in xml element 'a'", "<b>0</b><a><b>1</b></a><b/>", "<b>1</b>\n"),
        ("each json member 'k' nested in json member 'm'", "{\"k\":1,\"m\":{\"k\":2}}", "2\n"),
        ("each digits nested in letters", "1a2", ""),
    ];
    for (script, input, expected) in one_level {
        let output = run(script, input);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{script}: {error}");
        assert_eq!(output.status.code(), Some(i32::from(expected.is_empty())), "{script}");
    }
    let brackets = "between end of substring '(' and start of substring ')'";
    let first = format!("each prefix substring 'x' nested in {brackets}");
    // The `x` that is in no bracket is not found.
    assert_eq!(text(&run(&first, "xa(xb(xc))x(x)"), 0), "x\nx\nx\n");
    let upper = format!("foreach letters nested in {brackets} then uppercase end");
    assert_eq!(text(&run(&upper, "a(b(c)d)e(f"), 0), "a(B(C)D)e(F");
}

#[test]
fn sections_that_lie_too_deep_are_a_failure() {
    let found =
        "having prefix substring 'x' nested in between end of substring '(' and start of substring ')'";
    let nested = |depth: usize| format!("{}x{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(text(&run(found, &nested(200)), 0), "x");
    let error = refused(&run(found, &nested(300)));
    let told = "selvedge-pipe: pipeline:1:1: sections of a condition lie more than 256 levels deep";
    assert!(error.starts_with(told), "{error}");
    let lines = "lines | having empty nested in not first everything";
    assert_eq!(text(&run(lines, &"a\n\n".repeat(100)), 0), "\n".repeat(100));
    let cut = "each substring 'x' nested in not prefix whitespace";
    assert_eq!(text(&run(cut, " x x"), 0), "x\nx\n");
}

#[test]
fn a_target_that_is_a_source_is_refused() {
    let directory = files();
    let path = directory.path();
    std::os::unix::fs::symlink(path.join("one"), path.join("link")).unwrap();
    let scripts = [
        "file one | append to one",
        "file one | lines | sort | to one",
        "file one | to link",
        "file link | lines | count | to one",
        "text 'a' | lines | merge (file two one | lines) | to one",
        "append to one",
        "stdin | lines | to one",
    ];
    for script in scripts {
        write(path.join("one"), "b\na\n").unwrap();
        write(path.join("two"), "").unwrap();
        // A script that feeds itself is ended by the limit on its output.
        let command =
            format!("ulimit -f 2048; timeout 10 {} \"{script}\" < one", env!("CARGO_BIN_EXE_selvedge-pipe"));
        let error = refused(&system(path, &command, b""));
        assert!(error.contains("is also a source of this pipeline"), "{script}: {error}");
        assert_eq!(read(path.join("one")).unwrap(), b"b\na\n", "{script}");
    }
    // The next pipeline may write what this one has read.
    let script = "file one | lines | sort | to two; file two | to one";
    assert_eq!(text(&shell(path, &[script], b""), 0), "");
    assert_eq!(read(path.join("one")).unwrap(), b"a\nb\n");
}

#[test]
fn a_name_holds_no_zero_byte() {
    for script in ["file a\0b", "cat x a\0", "text 'a' | to a\0b", "append to \0"] {
        let error = selvedge_pipe::language::parse(script).unwrap_err();
        assert_eq!(error.message, "no file has this name", "{script:?}");
        selvedge_pipe::fuzz::script(script);
    }
}

#[test]
fn a_regular_expression_may_take_its_flags_away() {
    for regex in ["(?i-sm)^b$", "(?i-sm:^b)", "(?i-m)^b", "(?x) ( ?-m) ^b", "\\Ab", "b\\z"] {
        for script in ["lines | having regex", "foreach line having regex"] {
            let end =
                if script.starts_with('f') { "then uppercase else suppress end" } else { "| uppercase" };
            assert_eq!(text(&run(&format!("{script} '{regex}' {end}"), "a\nb\nc\n"), 0), "B\n", "{regex}");
        }
    }
}

#[test]
fn fields_are_cut_at_a_quote() {
    let log = "h - \"GET /warp\" 200 \"-\"\nno quote\n\"\"\n";
    for (column, expected) in [(1, "h - \nno quote\n\n"), (2, "GET /warp\n\n\n"), (3, " 200 \n\n\n")] {
        assert_eq!(text(&run(&format!("lines | fields '\"' | column {column}"), log), 0), expected);
    }
    let theirs = system(Path::new("/"), "awk -F'\"' '{ print $2 }'", log.as_bytes());
    assert_eq!(text(&run("lines | fields '\"' | column 2", log), 0), text(&theirs, 0));
}

#[test]
fn the_first_items_are_skipped() {
    let rows = "id,name\n1,\"a\nb\"\n2,c\n";
    assert_eq!(text(&run("csv | skip 1 | rows", rows), 0), "1,\"a\nb\"\n2,c\n");
    assert_eq!(text(&run("lines | skip 2", rows), 0), "b\"\n2,c\n");
    assert_eq!(text(&run("skip 3", rows), 0), &rows[3..]);
    assert_eq!(text(&run("range 1 5 | skip 3 | sum", ""), 0), "9\n");
    assert_eq!(text(&run("lines | skip 9", rows), 1), "");
    assert_eq!(text(&run("foreach csv row then skip 1 end", "ab\ncd\n"), 0), "b\nd\n");
}

#[test]
fn a_script_may_begin_with_a_byte_order_mark() {
    assert_eq!(text(&run("\u{feff}text 'a' | lines", ""), 0), "a\n");
    let error = refused(&run("\u{feff}liens", ""));
    assert!(error.contains("1:2: there is no stage `liens`"), "{error}");
}

#[test]
fn numbers_are_sorted_by_the_number_at_the_beginning() {
    let input = "1.3\n1.2.3\n-\n1.2\n.5.5\n-0.5.1\n2..1\n-0\n0\n";
    let sorted = text(&run("lines | sort numeric", input), 0);
    assert_eq!(sorted, "-0.5.1\n-\n-0\n0\n.5.5\n1.2.3\n1.2\n1.3\n2..1\n");
    let theirs = system(Path::new("/"), "LC_ALL=C sort -n -s", input.as_bytes());
    assert_eq!(sorted, text(&theirs, 0));
    // A return and a form feed are no blanks.
    let input = "\r2\n1\n\t 3\n\x0c4\n -1\n\x0b5\n";
    let theirs = system(Path::new("/"), "LC_ALL=C sort -n -s", input.as_bytes());
    assert_eq!(text(&run("lines | sort numeric", input), 0), text(&theirs, 0));
}

#[test]
fn a_count_of_0_is_nothing_wherever_it_goes() {
    let directory = files();
    let status = |arguments: &[&str]| shell(directory.path(), arguments, b"a\n").status.code();
    for end in
        ["count", "count | to n", "count | append to n", "count | bytes", "count | bytes | lines | to n"]
    {
        assert_eq!(status(&[&format!("lines | having prefix 'b' | {end}")]), Some(1), "{end}");
        assert_eq!(status(&[&format!("lines | having prefix 'a' | {end}")]), Some(0), "{end}");
    }
    for mode in ["--check", "--explain", "--progress=never"] {
        let error = refused(&shell(directory.path(), &[mode, " # nothing"], b""));
        assert_eq!(error, "selvedge-pipe: the script has no pipeline\n", "{mode}");
    }
}

#[test]
fn a_target_may_be_a_pipe_or_a_device() {
    let directory = files();
    let shell = env!("CARGO_BIN_EXE_selvedge-pipe");
    let numbers: String = (1..=100_000).map(|number| format!("{number}\n")).collect();
    for variable in ["SELVEDGE_IO=epoll", "SELVEDGE_IO="] {
        let shell = format!("timeout 60 env {variable} {shell}");
        let system = |command: &str| text(&system(directory.path(), command, b""), 0);
        assert_eq!(system(&format!("{shell} \"text 'a' | to /dev/stderr\" 2>&1 | cat")), "a");
        assert_eq!(system(&format!("{shell} \"range 1 3 | append to /dev/stdout\" | cat")), "1\n2\n3\n");
        let fifo = format!("mkfifo fifo; cat fifo & {shell} 'range 1 100000 | to fifo'; wait; rm fifo");
        assert!(system(&fifo) == numbers, "{variable}");
        // A reader that goes away is no error.
        assert_eq!(system(&format!("{shell} 'range 1 100000000 | to /dev/stdout' | head -n 1")), "1\n");
        assert_eq!(system(&format!("{shell} 'text \"a\" | to /dev/null'")), "");
    }
}

#[test]
fn a_prompt_without_a_reader_ends() {
    const PLAY: &str = r#"
import os, pty, subprocess, sys
terminal, keys = pty.openpty()
reader, writer = os.pipe()
os.close(reader)
ran = subprocess.run([sys.argv[1]], stdin=keys, stdout=writer, stderr=subprocess.PIPE)
print(ran.returncode, ran.stderr)
"#;
    let shell = env!("CARGO_BIN_EXE_selvedge-pipe");
    let mut python = Command::new("timeout");
    python.args(["60", "python3", "-c", PLAY, shell]).env("SELVEDGE_PIPE_HISTORY", "");
    let output = python.output().unwrap();
    assert_eq!(text(&output, 0), "0 b''\n");
}

#[test]
fn integers_are_compared_exactly() {
    let input = "9007199254740992\n9007199254740993\n18446744073709551615\n";
    for stage in ["lines", "lines | integers", "lines | fields"] {
        let column = if stage.ends_with("fields") { "column 1 " } else { "" };
        let found = |test: &str| text(&run(&format!("{stage} | having {column}{test}"), input), 0);
        assert_eq!(found("= 9007199254740993"), "9007199254740993\n");
        assert_eq!(found("> 9007199254740992"), "9007199254740993\n18446744073709551615\n");
        assert_eq!(found("< 9007199254740992.5"), "9007199254740992\n");
        assert_eq!(found("!= 18446744073709551615"), "9007199254740992\n9007199254740993\n");
        assert_eq!(found(">= 18446744073709551615.0"), "18446744073709551615\n");
    }
    let words = "inf\nnan\n-infinity\n1e999\n1e2\n100.0\n+100\n-0\n";
    let numbers = "4:1e999\n5:1e2\n6:100.0\n7:+100\n8:-0\n";
    assert_eq!(text(&run("lines | having != 5 numbered", words), 0), numbers);
    assert_eq!(text(&run("lines | having = 100", words), 0), "1e2\n100.0\n+100\n");
    assert_eq!(text(&run("lines | having = -0.0", words), 0), "-0\n");
    for number in
        ["-0", "-0.0", "1.0", "1.50", "9007199254740993.0", "-170141183460469231731687303715884105728"]
    {
        selvedge_pipe::fuzz::script(&format!("lines | having > {number}"));
    }
    selvedge_pipe::fuzz::script(&format!("having > 1{}", "0".repeat(60)));
}

#[test]
fn comparisons_and_sort_read_the_same_numbers() {
    // The order of the numbers, each on a line. Lines that are equal keep their order.
    let huge = format!("1{}\n1{}1\n2{}\n", "0".repeat(400), "0".repeat(399), "0".repeat(400));
    let ascending = format!(
        "-1e400\n-1e3\n-5\n-1.5\n-1e-400\n0\n1e-400\n2e-400\n.5\n1\n+2\n2.5\n100\n1e3\n1001\n9007199254740992\n9007199254740993\n{huge}"
    );
    let shuffled: String = ascending.lines().rev().map(|line| format!("{line}\n")).collect();
    assert_eq!(text(&run("lines | sort numeric", &shuffled), 0), ascending);
    assert_eq!(text(&run("lines | sort numeric descending", &ascending), 0), shuffled);
    let column = run("lines | fields | sort by column 1 numeric | column 1", &shuffled);
    assert_eq!(text(&column, 0), ascending);
    // Python counts with exact fractions.
    const ORACLE: &str = r#"
import sys
from fractions import Fraction
lines = sys.stdin.read().split("\n")[:-1]
for line in lines:
    print(sum(Fraction(other) > Fraction(line) for other in lines), end=" ")
"#;
    let command = format!("python3 -c '{ORACLE}'");
    let expected = text(&system(Path::new("/"), &command, ascending.as_bytes()), 0);
    let ours: String = ascending
        .lines()
        .map(|line| {
            let output = run(&format!("lines | having > {line} | count"), &ascending);
            format!("{} ", String::from_utf8_lossy(&output.stdout).trim())
        })
        .collect();
    assert_eq!(ours, expected);
    // Where GNU's general order has numbers, it is ours.
    let finite: String =
        ascending.lines().filter(|line| line.len() < 17).map(|line| format!("{line}\n")).collect();
    let finite = finite.replace("e400", "e40").replace("e-400", "e-40");
    let theirs = system(Path::new("/"), "tac | LC_ALL=C sort -g -s", finite.as_bytes());
    let reversed: String = finite.lines().rev().map(|line| format!("{line}\n")).collect();
    assert_eq!(text(&run("lines | sort numeric", &reversed), 0), text(&theirs, 0));
    for number in ["1e3", "-1.5e-7", "1e400", "0e9", "123e-400", "1e999999999999", "1.50e1"] {
        selvedge_pipe::fuzz::script(&format!("lines | having > {number}"));
    }
    let equal = text(&run("lines | having = 1e3", "1000\n1e3\n1000.0\n10e2x\n1e\n"), 0);
    assert_eq!(equal, "1000\n1e3\n1000.0\n");
}

#[test]
fn a_search_for_an_expression_takes_one_pass() {
    let directory = tempfile::tempdir().unwrap();
    let lines = "a short line of a file\n".repeat(13_000) + "one TODO\n";
    write(directory.path().join("q"), lines).unwrap();
    for regex in [r"^[^#]*TODO", r"[^#]*TODO", r"(?s)o.*TODO", r"o[\s\S]+TODO", r"\W+(.|\s)*TODO"] {
        let script = format!("file q | lines | having regex '{regex}' numbered");
        write(directory.path().join("script"), script).unwrap();
        // A search that begins anew at each line takes minutes.
        let command = format!("timeout 20 {} -f script", env!("CARGO_BIN_EXE_selvedge-pipe"));
        assert_eq!(text(&system(directory.path(), &command, b""), 0), "13001:one TODO\n", "{regex}");
    }
}

#[test]
fn a_match_lies_within_a_line() {
    let input = "b\na\n\nab\nx";
    let found = |regex: &str| text(&run(&format!("lines | having regex '{regex}'"), input), 0);
    assert_eq!(found(r"[^a]b?$"), "b\nab\nx\n");
    assert_eq!(found(r"a[^x]"), "ab\n");
    assert_eq!(found(r"(?s)a."), "ab\n");
    assert_eq!(found(r"^$|[a\n]b"), "\nab\n");
    assert_eq!(found(r"(?-u:[^a-z])|x"), "x\n");
    assert_eq!(text(&run(r"lines | having regex 'b[^a]a|a[^b]a'", input), 1), "");
    let marked = "foreach regex '[^a]+' then prepend '<' | append '>' end";
    assert_eq!(text(&run(marked, input), 0), "<b>\na\n\na<b>\n<x>");
}

#[test]
fn a_repetition_of_a_repetition_keeps_its_brackets() {
    assert_eq!(text(&run("lines | having regex 'x(?:[0-9]+)?y'", "xy\n"), 0), "xy\n");
    assert_eq!(text(&run("replace regex 'x(?:[0-9]+)?' with '<$0>'", "x12y"), 0), "<x12>y");
    assert_eq!(text(&run("replace regex '(?:a{2})?b' with '<$0>'", "b aab"), 0), "<b> <aab>");
}

/// Expressions of few letters, with repetitions in repetitions.
fn expressions() -> impl Strategy<Value = String> {
    let atoms = [r"a", "b", "[^a]", r"\s", ".", "^", "$", r"\b", "ab", "(?:)"];
    prop::sample::select(atoms.map(str::to_string).to_vec()).prop_recursive(4, 12, 2, |inner| {
        let operators = ["?", "*", "+", "??", "*?", "+?", "{2}", "{1,2}", "{2,}?"].map(str::to_string).to_vec();
        prop_oneof![
            3 => (inner.clone(), prop::sample::select(operators)).prop_map(|(of, by)| format!("(?:{of}){by}")),
            1 => (inner.clone(), inner.clone()).prop_map(|(one, two)| format!("{one}{two}")),
            1 => (inner.clone(), inner.clone()).prop_map(|(one, two)| format!("(?:{one}|{two})")),
            1 => inner.prop_map(|of| format!("({of})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn an_expression_finds_in_a_line_what_it_says(expression in expressions(), line in "[ab ]{0,6}") {
        let said = RegexBuilder::new(&expression).multi_line(true).build().unwrap();
        let said = said.captures_iter(line.as_bytes()).map(|one| {
            one.iter().map(|group| group.map(|found| found.range())).collect::<Vec<_>>()
        });
        let ours = selvedge_pipe::regex::lines(&expression).unwrap();
        let ours = ours.captures_iter(&line).map(|one| {
            one.iter().map(|group| group.map(|found| found.range())).collect::<Vec<_>>()
        });
        prop_assert_eq!(ours.collect::<Vec<_>>(), said.collect::<Vec<_>>(), "{} in {:?}", expression, line);
    }
}

#[test]
fn a_line_comes_out_before_the_next_file_has_any() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path().join("f"), "a\n").unwrap();
    // The writer of the pipe waits until the line of the file has come out.
    let command = format!(
        "mkfifo p; timeout 20 {} 'cat f p' > out & \
         for i in $(seq 200); do test -s out && break; sleep 0.05; done; \
         cat out; echo b > p; wait; cat out",
        env!("CARGO_BIN_EXE_selvedge-pipe")
    );
    assert_eq!(text(&system(directory.path(), &command, b""), 0), "a\na\nb\n");
}

#[test]
fn a_replacement_names_groups_that_are_there() {
    let cases = [("(a)", "$1b", "1b"), ("b", "$5.00", "5"), ("(?<n>a)", "$m", "m"), ("a", "${}", "")];
    for (regex, with, group) in cases {
        let error = refused(&run(&format!("replace regex '{regex}' with '{with}'"), "abc"));
        let message = format!("the expression has no group `{group}`\n");
        assert!(error.contains(&message) && error.contains("\n  ") && error.contains("^~~"), "{error}");
        assert!(error.contains("${1}") && error.contains("$$"), "{error}");
    }
    let cases = [("(a)", "${1}b", "abbc"), ("b", "$$5.00", "a$5.00c"), ("(?<n>b)", "$n$n$0", "abbbc")];
    for (regex, with, expected) in cases.into_iter().chain([("b", "1$ ", "a1$ c"), ("b", "$", "a$c")]) {
        let script = format!("replace regex '{regex}' with '{with}'");
        assert_eq!(text(&run(&script, "abc"), 0), expected, "{script}");
    }
}

#[test]
fn a_failure_tells_where_it_is_in_the_input() {
    let place = |script: &str, input: &str| {
        let error = refused(&run(script, input));
        error.lines().last().unwrap().trim().to_string()
    };
    let numbers = "then lines | fields | column 2 | integers end";
    let input = "x 1\nx 2\nx oops\n";
    let third = "item 1, in line 3 at offset 8";
    assert_eq!(place(&format!("foreach line having prefix 'x' {numbers}"), input), third);
    assert_eq!(place(&format!("foreach line having not prefix 'y' {numbers}"), input), third);
    assert_eq!(place(&format!("foreach line {numbers}"), input), third);
    assert_eq!(place(&format!("if line {numbers}"), input), "item 3, in line 3 at offset 8");
    assert_eq!(place("csv | column 2 | integers", "a,1\nb,x\n"), "item 2, in line 2 at offset 4");
    assert_eq!(place("csv | column 2 | integers", "\"a\nb\",1\nb,x\n"), "item 2, in line 3 at offset 8");
    // The sum of the two would have more than a million digits.
    assert_eq!(place("lines | decimals | sum", "1e1000000\n0\n1\n"), "item 3, in line 3 at offset 12");
    assert_eq!(
        place("lines | having not prefix '#' | integers", "#\n#\n1\nx\n"),
        "item 2, in line 4 at offset 6"
    );
    // The first item, and the last line without an end.
    assert_eq!(place("lines | integers", "x"), "item 1, in line 1 at offset 0");
    assert_eq!(place("lines | integers", "1\n2\nx"), "item 3, in line 3 at offset 4");
    assert_eq!(place("sh 'cat' | lines | integers | `cat`", "1\nx\n"), "item 2, in line 2 at offset 2");
    // The parser of the input tells the very byte.
    assert_eq!(place("csv | column 1", "a,b\nc,d\"\n"), "item 2, offset 7");
    // A source that is no text has items alone.
    assert_eq!(
        place("range 1 3 | bytes | lines | integers | sum | bytes | csv | column 9 | integers", ""),
        "item 1, offset 0"
    );
    let script = "text '1e9\n1\n' | lines | interleave (text 'x' | lines) | integers | sum";
    assert_eq!(place(script, ""), "item 2, offset 4");
    // Behind a stage that keeps its items, the line is not known.
    assert_eq!(place("lines | sort | integers", "5\nx\n1\n"), "item 3, offset 4");
    assert_eq!(place("lines | last 3 | integers", "x\n1\n2\n"), "item 1, offset 0");
    assert_eq!(place("lines | tally | column 2 | integers", "x\n"), "item 1, offset 0");
    assert_eq!(place("if line then lines | sort | integers end", "1\nx\n3\n"), "item 3, offset 4");
    // Before it and behind a command it is.
    assert_eq!(place("lines | integers | sort | sum", "1\nx\n3\n"), "item 2, in line 2 at offset 2");
    assert_eq!(
        place("lines | sort | `cat` | lines | integers", "x\n1\n2\n"),
        "item 3, in line 3 at offset 4"
    );
    // A section of `foreach` is no line where the input has none.
    let stages = "then bytes | lines | replace '2' with 'x' | decimals end";
    let script = format!("range 1 2 | foreach between > 0 and = 0 {stages}");
    assert_eq!(place(&script, ""), "item 2, in section 1 at offset 0");
    for before in ["lines | interleave (text 'x' | lines)", "lines | sort"] {
        let script = format!("{before} | foreach prefix 'a' then unquote | integers | bytes | lines end");
        let section =
            if before.ends_with("sort") { "section 2 at offset 2" } else { "section 3 at offset 4" };
        assert_eq!(place(&script, "1\nab\n"), format!("item 1, in {section}"));
    }
}

#[test]
fn a_long_pipeline_runs_or_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let ran = |script: &str| {
        write(directory.path().join("script"), script).unwrap();
        shell(directory.path(), &["-f", "script"], b"a\na\nb\n")
    };
    let row = |one: &str, between: &str, count: usize| vec![one; count].join(between);
    // As long as a pipeline may be.
    assert_eq!(text(&ran(&format!("lines | {} | count", row("first 5", " | ", 998))), 0), "3\n");
    assert_eq!(text(&ran(&row("if line then end", " | ", 500)), 0), "a\na\nb\n");
    assert_eq!(text(&ran(&row("foreach letters then end", " | ", 500)), 0), "a\na\nb\n");
    for join in ["and", "or"] {
        let found = |test: &str, count: usize| {
            let script = format!("lines | having {}", row(test, &format!(" {join} "), count));
            text(&ran(&script), 0)
        };
        assert_eq!(found("prefix 'a'", 998), "a\na\n", "{join}");
        assert_eq!(found("first prefix 'a'", 499), "a\n", "{join}");
    }
    for script in [
        format!("lines | {}", row("first 5", " | ", 20_000)),
        format!("lines | having {}", row("prefix 'a'", " or ", 20_000)),
        format!("if line then {} end", row("uppercase", " | ", 1_000)),
        format!("text 'a'; lines | zip ({})", row("lines | bytes", " | ", 10_000)),
    ] {
        let error = refused(&ran(&script));
        assert!(error.contains("more than 1000 stages and conditions in one pipeline"), "{error}");
    }
    // The limit is that of one pipeline.
    assert_eq!(text(&ran(&row("text 'a'", ";", 1_200)), 0), "a".repeat(1_200));
}

#[test]
fn what_is_behind_a_finished_stage_does_not_depend_on_the_chunks() {
    let made = |script: &str, input: &str| {
        let tree = prepare(script).unwrap();
        let whole = outcome(&tree[0], &[input.as_bytes()]);
        for length in 1..input.len() {
            let chunks: Vec<&[u8]> = input.as_bytes().chunks(length).collect();
            assert_eq!(outcome(&tree[0], &chunks), whole, "{script}, in chunks of {length}");
        }
        (String::from_utf8(whole.0).unwrap(), whole.1)
    };
    // A failure behind the end is none.
    assert_eq!(made("csv | first 2", "a,b\nc\n\"d\ne\"f"), ("a,b\nc\n".to_string(), None));
    assert_eq!(made("lines | integers | first 1 | count", "1\nx\n"), ("1\n".to_string(), None));
    let nested = "while ((digits nested in everything) and substring '1') then first 2 end | substitute 'x'";
    assert_eq!(made(nested, "<a>"), ("x".to_string(), None));
    // A finished stage is not fed with the lines that follow in the chunk.
    let each = "foreach line having substring ',' then else count end | uppercase | substitute ';'";
    assert_eq!(made(each, "a\nb\nc\n"), (";".to_string(), None));
}

#[test]
fn a_standard_stream_that_is_closed_is_an_error_where_it_is_needed() {
    let shell = env!("CARGO_BIN_EXE_selvedge-pipe");
    let ran = |rest: &str| {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path().join("f"), "warp\n").unwrap();
        system(directory.path(), &format!("{shell} {rest}"), b"")
    };
    let closed = [
        ("'file f' >&-", "standard output"),
        ("'file f | lines | count' >&-", "standard output"),
        ("'file f | to \"/dev/stdout\"' >&-", "standard output"),
        ("'file f | append to \"/proc/self/fd/1\"' >&-", "standard output"),
        ("'file \"/dev/stdin\"' <&-", "standard input"),
        ("--help >&-", "standard output"),
        ("--explain 'file f' >&-", "standard output"),
        ("stdin <&-", "standard input"),
        ("'lines | count' <&-", "standard input"),
        ("'lines | to \"g\"' <&-", "standard input"),
    ];
    for (rest, stream) in closed {
        let error = refused(&ran(rest));
        assert!(error.contains(&format!("{stream}: Bad file descriptor")), "{rest}: {error}");
    }
    // Without the standard error only the status tells of the error.
    assert_eq!(ran("'file f' >&- 2>&-").status.code(), Some(2));
    // A stream that is not needed may be closed, and `/dev/null` is open.
    assert_eq!(text(&ran("'file f' <&-"), 0), "warp\n");
    for rest in ["'file f | to \"g\"' >&-", "'file f' 1<>/dev/null", "'file f' >&- >/dev/null"] {
        assert_eq!(text(&ran(rest), 0), "", "{rest}");
    }
    assert_eq!(text(&ran("'lines | count' <>/dev/null"), 1), "0\n");
}
