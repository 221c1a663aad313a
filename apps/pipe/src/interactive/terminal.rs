//! The terminal: reads keys, draws the line, and runs it.
//!
//! `main.rs` calls [`serve`]. The terminal is in raw mode only while a line is read: the drop of
//! `Raw` ends the mode before a pipeline runs, so that the pipeline's output and Ctrl-C are as
//! usual.

use super::complete::complete;
use super::editor::{Action, Editor, Key};
use super::history::History;
use crate::language::ScriptError;
use crate::language::error::cells_of;
use crate::run::{Outcome, Settings, prepare, run, run_interruptible};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{self, IsTerminal, Read, Write};

const PROMPT: &str = "pipe> ";

/// The terminal without line editing of its own, until it is dropped.
struct Raw {
    cooked: Termios,
}

impl Raw {
    fn new() -> io::Result<Raw> {
        let cooked = tcgetattr(io::stdin())?;
        let mut raw = cooked.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        Ok(Raw { cooked })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // A terminal that is gone needs no mode.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.cooked);
    }
}

/// Asks for pipelines and runs them, until the end of the input.
///
/// # Errors
/// Those of the terminal.
pub fn serve(settings: Settings) -> io::Result<()> {
    let (mut editor, mut history) = (Editor::default(), None);
    if io::stdin().is_terminal() {
        match History::place().map(|place| History::open(&place)) {
            Some(Ok((file, lines))) => {
                editor = Editor::with_history(lines);
                history = Some(file);
            }
            Some(Err(error)) => writeln!(io::stderr(), "The lines are not kept: the history: {error}")?,
            None => {}
        }
        let how = "Tab completes; `selvedge-pipe --stages` shows the stages; Ctrl-D leaves.";
        writeln!(io::stdout(), "Pipelines, one a line. {how}")?;
    }
    while let Some(line) = read_line(&mut editor)? {
        if line.trim().is_empty() {
            continue;
        }
        if let Some(Err(error)) = history.as_mut().map(|history| history.add(&line)) {
            history = None;
            writeln!(io::stderr(), "The lines are no longer kept: the history: {error}")?;
        }
        let on_terminal = io::stdin().is_terminal();
        let ran = prepare(&line).and_then(|script| match script.is_empty() {
            true => Ok(Some(Outcome::Nothing)),
            false if on_terminal => run_interruptible(script, settings),
            false => run(script, settings).map(Some),
        });
        if let Err(error) = ran {
            complain(&error, &line)?;
        }
        if on_terminal {
            // The prompt begins a line. Blanks to the last cell of the line stay in it if the
            // output has ended with a line end, and otherwise they go on to the next line.
            write!(io::stdout(), "{}\r", " ".repeat(cells() - 1))?;
        }
    }
    Ok(())
}

fn complain(error: &ScriptError, line: &str) -> io::Result<()> {
    writeln!(io::stderr(), "{}", error.shown("pipeline", line))
}

/// The next line; `None` at the end of the input.
fn read_line(editor: &mut Editor) -> io::Result<Option<String>> {
    if !io::stdin().is_terminal() {
        let mut line = String::new();
        return Ok((io::stdin().read_line(&mut line)? > 0).then_some(line));
    }
    let _raw = Raw::new()?;
    let mut keys = Keys { bytes: io::stdin().lock().bytes() };
    loop {
        draw(editor)?;
        let Some(key) = keys.next()? else { return Ok(None) };
        match editor.press(key) {
            Action::Edit => {}
            Action::Complete => offer(editor)?,
            Action::Clear => write!(io::stdout(), "\x1b[H\x1b[2J")?,
            Action::Run(line) => {
                write!(io::stdout(), "\r\n")?;
                return Ok(Some(line));
            }
            Action::Leave => {
                write!(io::stdout(), "\r\n")?;
                return Ok(None);
            }
        }
    }
}

/// Completes the word as far as all candidates agree, or shows them.
fn offer(editor: &mut Editor) -> io::Result<()> {
    let before = editor.before();
    let (word, words) = complete(&before);
    let Some(first) = words.first() else { return Ok(()) };
    let agrees = |length: usize| {
        words.iter().all(|other| other.as_bytes().get(..length) == first.as_bytes().get(..length))
    };
    let common =
        (word.len()..=first.len()).rev().find(|length| first.is_char_boundary(*length) && agrees(*length));
    let ending = &first[word.len()..common.unwrap_or(word.len())];
    if words.len() == 1 {
        // A directory has names in it.
        let blank = if first.ends_with('/') { "" } else { " " };
        editor.insert(&format!("{ending}{blank}"));
    } else if ending.is_empty() {
        write!(io::stdout(), "\r\n{}\r\n", words.join("  "))?;
    } else {
        editor.insert(ending);
    }
    Ok(())
}

/// How many cells a line of the terminal has.
fn cells() -> usize {
    // A terminal may not know its width.
    let known = rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col));
    known.filter(|cells| *cells > 0).unwrap_or(80)
}

/// Shows the line. Of a line that is wider than the terminal, the part around the cursor.
fn draw(editor: &Editor) -> io::Result<()> {
    let searched = editor.search().map(|text| format!("search `{text}`: "));
    let prompt = searched.as_deref().unwrap_or(PROMPT);
    let prompt_cells: usize = prompt.chars().map(cells_of).sum();
    let room = cells().saturating_sub(prompt_cells + 1).max(10);
    let (shown, cursor) = window(&editor.text(), editor.cursor(), room);
    let mut out = io::stdout();
    write!(out, "\r\x1b[K{prompt}{shown}\r\x1b[{}C", prompt_cells + cursor)?;
    out.flush()
}

/// The part of `text` around the cursor that fits into `room` cells, and how many cells of it are
/// before the cursor. The cursor has a cell of its own.
fn window(text: &str, cursor: usize, room: usize) -> (String, usize) {
    let widths: Vec<usize> = text.chars().map(cells_of).collect();
    let mut before: usize = widths[..cursor].iter().sum();
    let mut begin = 0;
    while before >= room {
        before -= widths[begin];
        begin += 1;
    }
    let mut left = room;
    let fits = |(_, width): &(char, &usize)| {
        let fits = **width <= left;
        left = left.saturating_sub(**width);
        fits
    };
    let shown = text.chars().zip(&widths).skip(begin).take_while(fits).map(|(char, _)| char).collect();
    (shown, before)
}

/// Keys from the bytes of a terminal.
struct Keys<I> {
    bytes: I,
}

impl<I: Iterator<Item = io::Result<u8>>> Keys<I> {
    /// The next key; `None` at the end. Sequences that mean no key are passed over.
    fn next(&mut self) -> io::Result<Option<Key>> {
        loop {
            let Some(byte) = self.bytes.next().transpose()? else { return Ok(None) };
            return Ok(Some(match byte {
                b'\r' | b'\n' => Key::Enter,
                b'\t' => Key::Tab,
                0x7f => Key::Backspace,
                0x1b => match self.escape()? {
                    Some(key) => key,
                    None => continue,
                },
                1..=26 => Key::Control(char::from(byte - 1 + b'a')),
                0..=0x1f => continue,
                _ => match self.char(byte)? {
                    Some(char) => Key::Char(char),
                    None => continue,
                },
            }));
        }
    }

    fn escape(&mut self) -> io::Result<Option<Key>> {
        match self.bytes.next().transpose()? {
            Some(b'[' | b'O') => {}
            Some(byte) => return Ok(self.char(byte)?.map(Key::Alt)),
            None => return Ok(None),
        }
        let mut number = 0_u32;
        while let Some(byte) = self.bytes.next().transpose()? {
            return Ok(match byte {
                b'0'..=b'9' => {
                    number = number.saturating_mul(10).saturating_add(u32::from(byte - b'0'));
                    continue;
                }
                b';' => {
                    number = 0;
                    continue;
                }
                b'A' => Some(Key::Up),
                b'B' => Some(Key::Down),
                // With Alt or the control key.
                b'C' if number == 3 || number == 5 => Some(Key::Alt('f')),
                b'D' if number == 3 || number == 5 => Some(Key::Alt('b')),
                b'C' => Some(Key::Right),
                b'D' => Some(Key::Left),
                b'H' => Some(Key::Home),
                b'F' => Some(Key::End),
                b'~' => match number {
                    1 | 7 => Some(Key::Home),
                    3 => Some(Key::Delete),
                    4 | 8 => Some(Key::End),
                    _ => None,
                },
                _ => None,
            });
        }
        Ok(None)
    }

    fn char(&mut self, first: u8) -> io::Result<Option<char>> {
        let length = match first {
            0..0x80 => 1,
            0xc0..0xe0 => 2,
            0xe0..0xf0 => 3,
            0xf0.. => 4,
            _ => return Ok(None),
        };
        let mut bytes = vec![first];
        while bytes.len() < length {
            let Some(byte) = self.bytes.next().transpose()? else { return Ok(None) };
            bytes.push(byte);
        }
        Ok(std::str::from_utf8(&bytes).ok().and_then(|text| text.chars().next()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_holds_the_cursor() {
        assert_eq!(window("lines | count", 5, 20), ("lines | count".to_string(), 5));
        assert_eq!(window("lines | count", 13, 10), ("s | count".to_string(), 9));
        assert_eq!(window("lines | count", 0, 10), ("lines | co".to_string(), 0));
        // Each of these takes two cells.
        assert_eq!(window("織物織物織物", 2, 10), ("織物織物織".to_string(), 4));
        assert_eq!(window("織物織物織物", 6, 10), ("織物織物".to_string(), 8));
        assert_eq!(window("a織物織物織物", 7, 11), ("物織物織物".to_string(), 10));
        assert_eq!(window("e\u{301}\u{301}bc", 4, 10), ("e\u{301}\u{301}bc".to_string(), 2));
    }

    #[test]
    fn bytes_become_keys() {
        let bytes = b"a\xc3\xa9\x1b[A\x1b[1;5H\x1b[3~\x1b[9~\x01\x7f\x1bb\x1b\x7f\x1b[1;5C\x1b[D\r";
        let mut keys = Keys { bytes: bytes.iter().copied().map(Ok) };
        let mut seen = Vec::new();
        while let Some(key) = keys.next().unwrap() {
            seen.push(key);
        }
        let expected = [
            Key::Char('a'),
            Key::Char('é'),
            Key::Up,
            Key::Home,
            Key::Delete,
            Key::Control('a'),
            Key::Backspace,
            Key::Alt('b'),
            Key::Alt('\x7f'),
            Key::Alt('f'),
            Key::Left,
            Key::Enter,
        ];
        assert_eq!(seen, expected);
    }
}
