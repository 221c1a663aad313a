//! The prompt: on a terminal that python's `pty` plays, and without one.

use crate::data::{files, shell, text};
use selvedge_pipe::interactive::complete::complete;
use selvedge_pipe::interactive::editor::{Action, Editor, Key};
use selvedge_pipe::language::words::{CONDITIONS, ENCODINGS, STAGES};
use std::process::Command;

#[test]
fn lines_are_edited() {
    let mut editor = Editor::default();
    let type_in = |editor: &mut Editor, text: &str| {
        text.chars().for_each(|char| {
            assert_eq!(editor.press(Key::Char(char)), Action::Edit);
        })
    };
    type_in(&mut editor, "lines | cuont");
    for key in [Key::Left, Key::Left, Key::Left, Key::Backspace, Key::Right] {
        editor.press(key);
    }
    type_in(&mut editor, "u");
    assert_eq!((editor.text().as_str(), editor.cursor()), ("lines | count", 11));
    editor.press(Key::Control('k'));
    assert_eq!(editor.text(), "lines | cou");
    editor.press(Key::Control('w'));
    assert_eq!(editor.text(), "lines | ");
    editor.press(Key::Home);
    editor.press(Key::Delete);
    assert_eq!(editor.text(), "ines | ");
    editor.press(Key::End);
    editor.press(Key::Control('u'));
    assert_eq!(editor.text(), "");
    type_in(&mut editor, "count");
    assert_eq!(editor.press(Key::Enter), Action::Run("count".to_string()));
    type_in(&mut editor, "lines");
    assert_eq!(editor.press(Key::Enter), Action::Run("lines".to_string()));
    type_in(&mut editor, "new");
    let recalled = [
        (Key::Up, "lines"),
        (Key::Up, "count"),
        (Key::Up, "count"),
        (Key::Down, "lines"),
        (Key::Down, "new"),
    ];
    for (key, shown) in recalled {
        editor.press(key);
        assert_eq!(editor.text(), shown);
    }
    editor.press(Key::Control('c'));
    assert_eq!((editor.press(Key::Tab), editor.press(Key::Control('d'))), (Action::Complete, Action::Leave));
}

#[test]
fn completion_offers_what_fits() {
    let of = |text: &str| complete(text).1;
    assert_eq!(of("file x | l"), ["lines", "lowercase"]);
    assert_eq!(of("file x | lines | l"), ["last", "lowercase"]);
    assert_eq!(of("file x | csv | col"), ["column", "columns"]);
    assert_eq!(of("file x | csv | su"), ["suppress"]);
    assert_eq!(of("range 1 3 | s"), ["select", "sh", "sort", "sum", "suppress"]);
    assert_eq!(of("lines; c"), ["cat", "count", "csv"]);
    assert_eq!(of("lines | foreach not su"), ["substring", "suffix"]);
    assert_eq!(of("having letters nested in di"), ["digits"]);
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

#[test]
fn a_terminal_shows_what_is_typed_and_completed() {
    const PLAY: &str = r#"
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
    seen = seen[seen.index(text) + len(text):]
until(b"pipe> ")
os.write(terminal, b"ra\t1 3 | su\t")
until(b"pipe> range 1 3 | su")
os.write(terminal, b"m\r")
until(b"sum\r")
until(b"6")
until(b"pipe> ")
os.write(terminal, b"liens\r")
until(b"is it `lines`?")
# Before the prompt the terminal itself takes Ctrl-D, Backspace and Ctrl-U out of the keys.
until(b"pipe> ")
os.write(terminal, b"\x1b[A\x04\x7f\x15\x04")
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;
    let directory = tempfile::tempdir().unwrap();
    let mut python = Command::new("timeout");
    python
        .args(["60", "python3", "-c", PLAY, env!("CARGO_BIN_EXE_selvedge-pipe")])
        .current_dir(directory.path());
    let output = python.output().unwrap();
    assert_eq!(text(&output, 0), "0\n", "{}", String::from_utf8_lossy(&output.stderr));
}
