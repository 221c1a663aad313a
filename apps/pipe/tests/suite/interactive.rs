//! The prompt: on a terminal that python's `pty` plays, and without one.

use crate::data::{files, shell, text};
use selvedge_pipe::interactive::complete::complete;
use selvedge_pipe::language::words::{CONDITIONS, ENCODINGS, STAGES};
use std::path::Path;
use std::process::Command;

#[test]
fn completion_offers_what_fits() {
    let of = |text: &str| complete(text).1;
    assert_eq!(of("file x | l"), ["lines", "lowercase"]);
    assert_eq!(of("file x | lines | l"), ["last", "lowercase"]);
    assert_eq!(of("file x | csv | col"), ["column", "columns"]);
    assert_eq!(of("file x | csv | su"), ["suppress"]);
    assert_eq!(of("range 1 3 | s"), ["select", "sh", "skip", "sort", "sum", "suppress"]);
    assert_eq!(of("lines; c"), ["cat", "count", "csv"]);
    assert_eq!(of("lines | foreach not su"), ["substring", "suffix"]);
    assert_eq!(of("having letters nested in di"), ["digits"]);
    assert_eq!(of("having letters followed "), ["by"]);
    assert_eq!(of("having letters followed by di"), ["digits"]);
    assert_eq!(of("having letters fo"), ["followed"]);
    assert_eq!(of("having u"), ["upto"]);
    assert_eq!(of("having upto "), ["first"]);
    assert_eq!(of("having upto first di"), ["digits"]);
    assert_eq!(of("having last and "), ["after"]);
    assert_eq!(of("having last and after di"), ["digits"]);
    assert_eq!(of("having even di"), ["digits"]);
    assert!(["=", "!="].iter().all(|sign| of("lines | having ").contains(&sign.to_string())));
    // Each word of a stage is offered somewhere.
    for word in STAGES.iter().chain(ENCODINGS) {
        let texts = ["", "lines | ", "csv | ", "range 1 2 | "];
        assert!(texts.iter().any(|text| of(text).contains(&word.to_string())), "{word}");
    }
    assert!(CONDITIONS.iter().all(|word| of("having ").contains(&word.to_string())));
}

#[test]
fn without_a_terminal_each_line_is_a_script() {
    let directory = files();
    let output = shell(directory.path(), &["-i"], b"text 'a' | lines | count\n\nlines | lines\nrange 1 2\n");
    assert_eq!(text(&output, 0), "1\n1\n2\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("`lines` takes bytes"));
}

/// What a play on a terminal begins with: a shell in `terminal`, and a function that waits for a
/// text.
const STAGE: &str = r#"
import os, pty, sys
shell = sys.argv[1]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(shell, [shell])
seen = b""
def until(text):
    global seen
    while text not in seen:
        seen += os.read(terminal, 4096)
    before, seen = seen.split(text, 1)
    return before
until(b"pipe> ")
"#;

/// How it ends: the status of the shell.
const CURTAIN: &str = r#"
os.write(terminal, b"\x04")
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

/// Plays on a terminal, in a directory. Returns what the play prints.
fn play(directory: &Path, play: &str) -> String {
    let mut python = Command::new("timeout");
    python
        .args(["60", "python3", "-c", &[STAGE, play, CURTAIN].concat(), env!("CARGO_BIN_EXE_selvedge-pipe")])
        .env("TERM", "xterm")
        .env("SELVEDGE_PIPE_HISTORY", directory.join("history"))
        .current_dir(directory);
    let output = python.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_terminal_shows_what_is_typed_and_completed() {
    const PLAY: &str = r#"
os.write(terminal, b"ra\t1 3 | su\t")
until(b"sum       suppress\r\n")
until(b"pipe> range 1 3 | su")
os.write(terminal, b"m\r")
until(b"m\r")
until(b"6")
until(b"pipe> ")
os.write(terminal, b"liens\r")
until(b"is it `lines`?")
# Before the prompt the terminal itself takes Ctrl-D, Backspace and Ctrl-U out of the keys.
until(b"pipe> ")
os.write(terminal, b"\x1b[A\x04\x7f\x15")
"#;
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(play(directory.path(), PLAY), "0\n");
}

#[test]
fn the_next_prompt_has_the_lines_of_the_last_one() {
    const FIRST: &str = r#"
os.write(terminal, b"range 1 3 | sum\r")
until(b"6")
until(b"pipe> ")
os.write(terminal, b"range 1 4 | count\r")
until(b"4\r\n")
until(b"pipe> ")
"#;
    // The keys come after the prompt that they are for, and Ctrl-R finds what an arrow does not
    // show at once.
    const SECOND: &str = r#"
import time
time.sleep(0.2)
os.write(terminal, b"\x12sum")
until(b"(reverse-i-search)`sum': range 1 3 | sum")
os.write(terminal, b"\r")
until(b"6\r\n")
until(b"pipe> ")
"#;
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(play(directory.path(), FIRST), "0\n");
    assert_eq!(play(directory.path(), SECOND), "0\n");
    let kept = std::fs::read_to_string(directory.path().join("history")).unwrap();
    assert_eq!(kept, "range 1 3 | sum\nrange 1 4 | count\nrange 1 3 | sum\n");
}

/// Presses keys at a prompt, and Enter behind them each time. Returns the lines that were run. No
/// line is a pipeline, so none reads the terminal.
fn run_by(keys: &[&str]) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let press = |keys: &&str| {
        let keys = keys.as_bytes().escape_ascii();
        format!("os.write(terminal, b\"{keys}\\r\")\nuntil(b\"\\npipeline:\")\nuntil(b\"pipe> \")\n")
    };
    assert_eq!(play(directory.path(), &keys.iter().map(press).collect::<String>()), "0\n");
    let kept = std::fs::read_to_string(directory.path().join("history")).unwrap();
    kept.lines().map(str::to_owned).collect()
}

#[test]
fn lines_are_edited() {
    let keys = [
        "warp | wfet\x1b[D\x1b[D\x7f\x1b[Cf",
        // Removed: what is behind the cursor, a word, the character at the cursor, all.
        "warp | weft\x1b[D\x1b[D\x0b",
        "warp | weft\x17",
        "warp\x1b[H\x1b[3~",
        "warp\x1b[F\x15weft",
        // Three lines before, and one after that.
        "\x1b[A\x1b[A\x1b[A\x1b[B",
        // The new line is kept while others are shown.
        "new\x10\x10\x0e\x0e",
    ];
    let lines = ["warp | weft", "warp | we", "warp | ", "arp", "weft", "arp", "new"];
    assert_eq!(run_by(&keys), lines);
}

#[test]
fn the_keys_are_those_of_emacs() {
    let keys = [
        "warp weft",
        // Alt-B, Alt-D, Ctrl-E, Ctrl-Y.
        "knot prefix \"a\"\x1bb\x1bb\x1bd\x05\x19",
        // Alt-Backspace and Ctrl-T; Ctrl-A, Alt-F and Ctrl-U.
        "knot suffix\x1b\x7fab\x14",
        "prefix suffix\x01\x1bf\x15",
        // Ctrl-F, Ctrl-B, Ctrl-D and Ctrl-H.
        "warp\x01\x06\x06\x02\x04\x08",
        // The first of the lines before.
        "\x1b<",
        // Ctrl-R finds older lines, and Ctrl-G gives back the line that was there.
        "\x12knot\x12",
        "mine\x12suffix\x07",
    ];
    let lines = [
        "warp weft",
        "knot  \"a\"prefix",
        "knot ba",
        " suffix",
        "rp",
        "warp weft",
        "knot  \"a\"prefix",
        "mine",
    ];
    assert_eq!(run_by(&keys), lines);
}

#[test]
fn ctrl_c_gives_the_line_up() {
    const PLAY: &str = r#"
os.write(terminal, b"lost\x03")
until(b"lost\r\n")
until(b"pipe> ")
os.write(terminal, b"range 1 3 | sum\r")
until(b"\n6\r")
until(b"pipe> ")
"#;
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(play(directory.path(), PLAY), "0\n");
    assert_eq!(std::fs::read_to_string(directory.path().join("history")).unwrap(), "range 1 3 | sum\n");
}

#[test]
fn keys_before_the_prompt_are_for_it() {
    const PLAY: &str = r#"
os.write(terminal, b"range 1 3 | sum\rrange 4 5 | sum\r")
until(b"\n6\r")
until(b"\n9\r")
until(b"pipe> ")
os.write(terminal, b"\xff\r")
until(b"not UTF-8")
until(b"pipe> ")
"#;
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(play(directory.path(), PLAY), "0\n");
}

#[test]
fn the_prompt_goes_on_after_an_interrupt() {
    // The pipelines wait for a command, for a file, and for nothing.
    const PLAY: &str = r#"
import time
def interrupted(line, begun):
    os.write(terminal, line + b"\r")
    until(line[-5:] + b"\r")
    until(begun) if begun else time.sleep(0.3)
    os.write(terminal, b"\x03")
    until(b"pipe> ")
interrupted(b"sh 'echo begun; exec sleep 1000' | lines", b"begun")
interrupted(b"cat fifo | lines", b"")
interrupted(b"range 1 1000000000000 | `head -n 1; cat > /dev/null`", b"1")
os.write(terminal, b"range 7 9 | sum\r")
until(b"24")
until(b"pipe> ")
"#;
    let directory = tempfile::tempdir().unwrap();
    assert!(Command::new("mkfifo").arg("fifo").current_dir(directory.path()).status().unwrap().success());
    assert_eq!(play(directory.path(), PLAY), "0\n");
}

#[test]
fn the_prompt_stands_on_a_line_of_its_own() {
    // The last line of the output has no end. Blanks bring the cursor to the next line.
    const PLAY: &str = r#"
os.write(terminal, b"text 'warp'\r")
until(b"'warp'")
until(b"warp")
print(until(b"pipe> ").decode())
"#;
    let directory = tempfile::tempdir().unwrap();
    let shown = play(directory.path(), PLAY);
    assert!(shown.starts_with(&format!("{}\r", " ".repeat(79))), "{shown:?}");
}

#[test]
fn wide_characters_take_two_cells() {
    // The cursor goes over the quote, and then over each character.
    const PLAY: &str = r#"
os.write(terminal, "text '織物'\x1b[D".encode())
until("text '織物'\x1b[D".encode())
os.write(terminal, b"\x1b[D\x1b[D")
until(b"\x1b[2D\x1b[2D")
os.write(terminal, b"\x05 | knot\r")
until(b"there is no stage `knot`")
until(b"\n")
print(until(b"~").decode())
until(b"pipe> ")
"#;
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(play(directory.path(), PLAY), "  text '織物' | knot\r\n                ^\n0\n");
}

#[test]
fn paths_are_completed() {
    let directory = tempfile::tempdir().unwrap();
    let inner = directory.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    for name in ["warp.txt", "weft.txt", "two words", ".hidden", "a;b"] {
        std::fs::write(inner.join(name), "").unwrap();
    }
    let of = |text: &str| {
        let text = text.replace('@', &directory.path().display().to_string());
        complete(&text)
            .1
            .into_iter()
            .map(|path| path.rsplit_once("/inner").unwrap_or_default().1.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(of("file @/i"), ["/"]);
    assert_eq!(of("file @/inner/"), ["/warp.txt", "/weft.txt"]);
    assert_eq!(of("text 'a' | to @/inner/wa"), ["/warp.txt"]);
    assert_eq!(of("lines | append to @/inner/we"), ["/weft.txt"]);
    assert_eq!(of("cat x @/inner/."), ["/.hidden"]);
    assert_eq!(of("lines | if empty then zip (file @/inner/wa"), ["/warp.txt"]);
    assert_eq!(complete("file /et").1, ["/etc/"]);
    assert!(complete("file x | having /et").1.is_empty());
}
