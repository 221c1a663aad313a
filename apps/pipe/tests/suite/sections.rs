//! Commands and joins in the branches of `foreach`, and the loop `while`.

use crate::data::{Numbers, shell, system, text};
use std::path::Path;

fn compare(directory: &Path, ours: &str, theirs: &str, input: &str) {
    let made = text(&shell(directory, &[ours], input.as_bytes()), 0);
    let expected = text(&system(directory, theirs, input.as_bytes()), 0);
    assert_eq!(made, expected, "{ours}\n{theirs}\n{input:?}");
}

#[test]
fn a_loop_does_what_sed_does() {
    let directory = tempfile::tempdir().unwrap();
    let mut numbers = Numbers::new(17);
    for round in 1..5 {
        let pieces = ["> ", "--", "-", "a", "(b)", "((", "))", "\n", "\n> > ", "/x/../"];
        let mut input: String = (0..round * 30).map(|_| numbers.pick(&pieces)).collect();
        input.push('\n');
        for (ours, theirs) in [
            ("lines | while prefix '> ' then replace regex '^> ' with '' end", "sed ':a; s/^> //; ta'"),
            ("lines | while substring '--' then replace '--' with '-' end", "sed ':a; s/--/-/g; ta'"),
            (
                "lines | while regex '\\([^()]*\\)' then replace regex '\\([^()]*\\)' with '' end | count",
                "sed ':a; s/([^()]*)//g; ta' | wc -l",
            ),
            ("while line having substring '--' then replace '--' with '-' end", "sed ':a; s/--/-/g; ta'"),
        ] {
            compare(directory.path(), ours, theirs, &input);
        }
    }
}

#[test]
fn a_loop_is_fed_with_items_of_any_kind() {
    let directory = tempfile::tempdir().unwrap();
    let run = |script: &str| text(&shell(directory.path(), &[script], b"x,1\ny,1\nz,22\n"), 0);
    assert_eq!(
        run(
            "range 5 8 | while > 6 then bytes | lines | replace '7' with '6' | replace '8' with '7' | integers end"
        ),
        "5\n6\n6\n6\n"
    );
    assert_eq!(
        run("csv | while column 2 equals '22' then columns 2 1 | join ',' | bytes | csv end"),
        "x,1\ny,1\n22,z\n"
    );
    assert_eq!(run("while substring '1' then replace '1' with '' end"), "x,\ny,\nz,22\n");
    // What the body keeps comes at the end of its section.
    assert_eq!(run("lines | while prefix 'x' then sort | prepend 'y' end"), "yx,1\ny,1\nz,22\n");
}

#[test]
fn each_section_of_a_loop_loops_by_itself() {
    let run = |script: &str, input: &str| text(&shell(Path::new("/"), &[script], input.as_bytes()), 0);
    let dashes = "while substring '--' then replace '--' with '-' end";
    assert_eq!(run(dashes, "x--y--z"), "x-y-z");
    // What two sections have made is not joined.
    assert_eq!(run(dashes, "a----b"), "a--b");
    assert_eq!(run("while regex 'ab+' then replace 'ab' with 'a' end", "abb-ab-abbb\nxab"), "a-a-a\nxa");
    let swapped = "while digits then lines | unique | replace '12' with 'x' end";
    assert_eq!(run(swapped, "12 12\n"), "x\n x\n\n");
    // Stages that count begin anew with each section.
    assert_eq!(run("lines | while prefix 'a' then number end", "a\nb\na\n"), "1:a\nb\n1:a\n");
    let held = "lines | while (prefix 'a' followed by prefix 'b') then last 1 end";
    assert_eq!(run(held, "a\nb\nc\na\nb\n"), "b\nc\nb\n");
    // A failure tells its line.
    let output = shell(Path::new("/"), &["while digits then replace '1' with '11' end"], b"x\ny1\n");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("1:1: an item is still true after 256 rounds"), "{error}");
    assert!(error.ends_with("in line 2 at offset 2\n"), "{error}");
}

#[test]
fn a_loop_without_end_fails_at_its_place() {
    let output = shell(
        Path::new("/"),
        &["lines | while prefix 'a' then number | replace ':' with '' | replace '1' with '' end"],
        b"b\na\n",
    );
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "b\n");
    assert!(
        error.starts_with("selvedge-pipe: pipeline:1:9: an item is still true after 256 rounds"),
        "{error}"
    );
    assert!(error.ends_with("in line 2 at offset 2\n"), "{error}");
}

#[test]
fn a_command_runs_once_for_each_section_in_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let mut numbers = Numbers::new(23);
    for round in 1..4 {
        let mut input = String::new();
        for _ in 0..round * 8 {
            input.push_str(numbers.pick(&["# a\n", "# b\n", "d\n", "c\n", "e\n", "\n", "a\n"]));
        }
        let blocks = "between end of (line having prefix '#') and start of (line having prefix '#')";
        compare(
            directory.path(),
            &format!("foreach {blocks} then `sort` end"),
            "awk '/^#/ { close(\"sort\"); print; fflush(); head = 1; next } head { print | \"sort\"; next } \
             { print; fflush() }'",
            &input,
        );
        // Native stages before and after the command, and in the other branch.
        compare(
            directory.path(),
            "foreach line having prefix '#' then replace '#' with '##' | `tr a-z A-Z` | append '!' \
             else lines | prepend '-' end",
            "awk '/^#/ { printf \"#%s\\n!\", toupper($0); next } { print \"-\" $0 }'",
            &input,
        );
        compare(
            directory.path(),
            "lines | foreach prefix '#' then `tr a-z A-Z` | lines else uppercase | sh 'tr A-Z a-z' | lines end",
            "awk '/^#/ { print toupper($0); next } { print }'",
            &input,
        );
    }
}

#[test]
fn commands_and_joins_stand_in_branches_of_each_kind() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("names"), "m\nn\n").unwrap();
    let run = |script: &str| text(&shell(directory.path(), &[script], b"b,1\na,2\nb,3\n"), 0);
    assert_eq!(
        run("lines | foreach prefix 'b' then merge (file names | lines) end"),
        "b,1\nm\nn\na,2\nb,3\nm\nn\n"
    );
    assert_eq!(run("csv | foreach column 1 equals 'b' then `tr b c` | csv end"), "c,1\na,2\nc,3\n");
    assert_eq!(run("range 1 3 | foreach = 2 then sh 'sed s/2/20/' | lines | integers end"), "1\n20\n3\n");
    assert_eq!(run("foreach csv column 2 then `tr 123 xyz` | replace '\n' with '' end"), "b,x\na,y\nb,z\n");
    // Within one another.
    assert_eq!(
        run("foreach line having prefix 'b' then foreach csv column 1 then `tr b c` end end"),
        "c,1\na,2\nc,3\n"
    );
    // Each section of a command begins the stages behind it anew, as well as those before it.
    assert_eq!(
        run("foreach line having prefix 'b' then lines | number | sh 'cat' | lines | number end"),
        "1:1:b,1\na,2\n1:1:b,3\n"
    );
    // An empty section is a section.
    assert_eq!(run("foreach start of line then sh 'echo x' end"), "x\nb,1\nx\na,2\nx\nb,3\n");
    assert_eq!(
        run("lines | foreach nothing then sh 'exit 1' | lines else prepend '-' end | last 1"),
        "-b,3\n"
    );
    // More than two pipes hold, in one section.
    assert_eq!(run("range 1 200000 | bytes | foreach everything then `cat` end | lines | count"), "200000\n");
    // What is behind stops a command that would never end, and what is before it.
    assert_eq!(run("sh 'yes' | foreach line then sh 'yes' end | lines | first 2"), "y\ny\n");
    assert_eq!(run("lines | foreach prefix 'a' then zip (sh 'yes' | lines) end | last 2"), "a,2\ty\nb,3\n");
}

#[test]
fn a_failure_in_a_branch_with_a_command_tells_its_section() {
    let error = |script: &str, out: &str| {
        let output = shell(Path::new("/"), &[script], b"a 1\nb 2\na x\n");
        assert_eq!(output.status.code(), Some(2), "{script}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), out, "{script}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let native =
        "lines | foreach prefix 'a' then `cat` | lines | fields | column 2 | integers | bytes | lines end";
    let shown = error(native, "1\nb 2\n");
    assert!(shown.contains("\"x\" is no number"), "{shown}");
    assert!(shown.ends_with("item 1, in section 3 at offset 8\n"), "{shown}");
    let shown = error("lines | foreach prefix 'b' then sh 'cat; exit 3' | lines end", "a 1\nb 2\n");
    assert!(shown.starts_with("selvedge-pipe: pipeline:1:33: sh: exit status: 3"), "{shown}");
    let shown = error(
        "lines | foreach prefix 'b' then `cat` | lines else fields | column 2 | integers | bytes | lines end",
        "1\nb 2\n",
    );
    assert!(shown.ends_with("item 1, in section 3 at offset 8\n"), "{shown}");
}
