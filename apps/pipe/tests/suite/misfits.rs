//! Pipelines that do not fit are refused before anything runs, with a place and what was expected.

use crate::data::shell;
use std::path::Path;

#[test]
fn a_misfit_is_shown_with_a_caret_and_what_was_expected() {
    let cases = [
        (
            "file x | having prefix 'a' and empty",
            "1:32: `empty` asks about a line, and here are bytes",
            "write `line having ..`, or put `lines |` before the stage",
        ),
        (
            "file access.log | having substring '500' | count",
            "1:19: `having` asks about a line, and here are bytes",
            "put `lines |` before it; `each CONDITION` makes a line of each match",
        ),
        (
            "having not (regex 'a' or prefix 'b')",
            "1:1: `having` asks about a line, and here are bytes",
            "^~~~~~",
        ),
        (
            "file x | lines | lines",
            "1:18: `lines` takes bytes, and `lines` yields lines",
            "put `bytes |` before it",
        ),
        (
            "tally",
            "1:1: `tally` takes lines, and standard input yields bytes",
            "put `lines |` before it, or `each CONDITION |`",
        ),
        (
            "lines | column 2",
            "1:9: `column` takes records, and `lines` yields lines",
            "put `fields |` before it",
        ),
        (
            "csv | sum",
            "1:7: `sum` takes numbers, and `csv` yields records",
            "put `decimals |` before it, which takes lines",
        ),
        (
            "csv | having substring 'a'",
            "1:14: `substring` asks about a text, and here are records",
            "write `column N ..`",
        ),
        (
            "lines | having csv row",
            "1:16: `csv` asks about bytes, and here are lines",
            "or put `bytes |` behind it",
        ),
        ("lines | file x", "1:9: `file` is a source, and takes nothing", "concatenate (file NAME | lines)"),
        (
            "lines | if empty then count end",
            "1:23: a branch over lines yields lines, and `count` yields numbers",
            "~",
        ),
        (
            "if line then sh 'sort' end",
            "1:14: `sh` cannot stand in a branch of `if`",
            "`foreach` runs commands and joins, once for each section",
        ),
        (
            "while line then foreach line then zip (file x | lines) end end",
            "1:35: `zip` cannot stand in a branch of `while`",
            "^~~",
        ),
        (
            "foreach line then to x end",
            "1:19: `to` cannot stand in a branch of `foreach`",
            "the branches are merged",
        ),
        (
            "lines | foreach empty then concatenate (lines | number) end",
            "1:41: standard input cannot be read anew for each section",
            "name a file",
        ),
        ("lines | while prefix 'a' then end", "1:31: there is no stage `end`", "sh"),
        (
            "lines | zip (stdin | csv)",
            "1:22: a join takes lines, and this pipeline ends with records",
            "column N",
        ),
        (
            "to x | lines",
            "1:8: `to` writes the file, and nothing comes behind it",
            "end the pipeline with `;`",
        ),
        ("liens", "1:1: there is no stage `liens`", "is it `lines`?"),
        ("liens | skipp 1", "1:1: there is no stage `liens`", "is it `lines`?"),
        ("lines | grep 'x'", "1:9: there is no stage `grep`", "lines that match: `lines | having regex"),
        ("lines | tail 1", "1:9: there is no stage `tail`", "`last 10`; all but the first: `skip 1`"),
        ("help", "1:1: there is no stage `help`", "`selvedge-pipe --stages` shows the stages"),
        ("lines | having 'x'", "1:16: expected a condition, found a text", "stands `substring`, `regex`"),
        ("lines | fields 'ab'", "1:16: `fields` cuts at one byte, and at no line end", "^~~~"),
        ("csv '\"'", "1:5: a delimiter is one byte, and no quote and no line end", "^~~"),
        ("having substing 'x'", "1:8: there is no condition `substing`", "is it `substring`?"),
        ("having substring", "1:17: expected a text in quotes, found the end", "^"),
        ("having substring ''", "1:18: the text must not be empty", "^"),
        ("having regex '('", "1:14: not a regular expression: unclosed group", "^~~"),
        ("lines |\n  first 0", "2:9: expected a whole number from 1, found `0`", "    first 0\n          ^"),
        ("text 'abc", "1:6: no ' ends this text", "^"),
        (r#"text "a\q""#, r"1:8: there is no escape `\q`", "there are \\n"),
        ("lines ) count", "1:7: expected `|` or `;`, found `)`", "^"),
        ("foreach line then uppercase", "1:28: expected `end`, found the end", "^"),
        ("having > x", "1:10: expected a number, found `x`", "^"),
        (
            "file a > b",
            "1:8: `>` is a sign of other shells, and no name of a file",
            "`| to NAME` writes a file",
        ),
        ("file a >b", "1:8: `>b` is a sign of other shells", "a file of this name stands in quotes"),
        ("file a 2>&1", "1:8: `2>&1` is a sign of other shells", "to NAME"),
        ("file a && file b", "1:8: `&&` is a sign of other shells", "`;` stands between two pipelines"),
        ("text 'a' | to a&&b", "1:15: `a&&b` is a sign of other shells", "`;` stands between two pipelines"),
        ("cat < a", "1:5: `<` is a sign of other shells", "`file NAME |` reads a file"),
        ("lines > out", "1:7: expected `|` or `;`, found `>`", "`| to NAME` writes a file"),
        ("text 'a' | to >> out", "1:15: `>>` is a sign of other shells", "`| append to NAME` adds to one"),
        ("lines && count", "1:7: expected `|` or `;`, found `&&`", "`;` stands between two pipelines"),
        (
            r"replace regex 'a\n' with ''",
            r"1:15: no match has a line end in it, so `\n` finds nothing",
            r#"`$` is the end of a line; over bytes, `replace "\n" with ".."` finds line ends"#,
        ),
        (r"lines | having regex '(b|\r?\n)'", "1:22: no match has a line end in it", "^~"),
        (r"lines | having regex 'a|\n'", "1:22: no match has a line end in it", "^~"),
        (r"lines | having regex 'a[\n]'", "1:22: no match has a line end in it", "^~"),
        (r"lines | having regex 'a\x0a'", "1:22: no match has a line end in it", "^~"),
    ];
    for (script, message, help) in cases {
        let output = shell(Path::new("/"), &[script], b"");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{script}: {error}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{script}");
        assert!(error.starts_with(&format!("selvedge-pipe: pipeline:{message}")), "{script}: {error}");
        assert!(error.contains(help), "{script}: {error}");
    }
}

#[test]
fn a_name_with_a_sign_of_other_shells_stands_in_quotes() {
    let directory = tempfile::tempdir().unwrap();
    let script = "text 'a' | to '>'; text 'b' | to \"a&\"; file '>' 'a&'";
    assert_eq!(shell(directory.path(), &[script], b"").stdout, b"ab");
    let plain = "text 'c' | to R&D; file R&D";
    assert_eq!(shell(directory.path(), &[plain], b"").stdout, b"c");
    // Classes of bytes that have the line end among others are no mistake.
    let script =
        r"lines | replace regex '[^a]\s*[\n\t]' with '' | having regex '(?s)a.' | having regex '[^\n]'";
    assert_eq!(shell(directory.path(), &[script], b"ab\t\nax\n").stdout, b"ax\n");
}

#[cfg(not(feature = "zstd"))]
#[test]
fn a_stage_that_this_build_lacks_is_named() {
    let error = String::from_utf8(shell(Path::new("/"), &["unzstd | lines"], b"").stderr).unwrap();
    assert!(error.contains("this selvedge-pipe was built without the feature `zstd`"), "{error}");
}

#[test]
fn a_name_is_no_pattern() {
    for name in ["'*.txt'", "~/warp", "warp[12]"] {
        let output = shell(Path::new("/"), &[&format!("file {name} | lines")], b"");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2));
        assert!(error.contains("No such file or directory"), "{error}");
        assert!(error.contains("a name is no pattern; sh \"cat *.log\" reads"), "{error}");
    }
}

#[test]
fn the_caret_stands_below_its_place() {
    let output = shell(Path::new("/"), &["lines |\n\té knot"], b"");
    let expected = "selvedge-pipe: pipeline:2:2: there is no stage `é`\n  \té knot\n  \t^\n  a command of the system is written sh \"..\"\n";
    assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
}
