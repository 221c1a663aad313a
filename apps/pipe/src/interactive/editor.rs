//! A line that is edited: from keys to text, without a terminal.
//!
//! `read_line` in `terminal.rs` calls [`Editor::press`] for each key, and does what the [`Action`]
//! says. The keys are those of Emacs and readline. One [`Editor`] lives as long as the prompt,
//! because it holds the history.

use std::ops::Range;

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// A letter with the control key.
    Control(char),
    /// A character with the key Alt, or behind Escape.
    Alt(char),
    /// Arrow to the left.
    Left,
    /// Arrow to the right.
    Right,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// To the beginning.
    Home,
    /// To the end.
    End,
    /// Removes the character before the cursor.
    Backspace,
    /// Removes the character at the cursor.
    Delete,
    /// Completes the word.
    Tab,
    /// Ends the line.
    Enter,
}

/// What the terminal does after a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// It shows the line, and reads the next key.
    Edit,
    /// It completes the word at the cursor.
    Complete,
    /// It clears the screen, and shows the line.
    Clear,
    /// It runs the line.
    Run(String),
    /// It leaves.
    Leave,
}

/// A line, a cursor, and the lines before.
///
/// # Examples
/// ```
/// use selvedge_pipe::interactive::editor::{Action, Editor, Key};
///
/// let mut editor = Editor::default();
/// "liens".chars().map(Key::Char).chain([Key::Left, Key::Left, Key::Backspace]).for_each(|key| {
///     assert_eq!(editor.press(key), Action::Edit);
/// });
/// editor.press(Key::Right);
/// editor.press(Key::Char('e'));
/// assert_eq!(editor.press(Key::Enter), Action::Run("lines".to_string()));
/// assert_eq!(editor.press(Key::Up), Action::Edit);
/// assert_eq!(editor.text(), "lines");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Editor {
    line: Vec<char>,
    cursor: usize,
    history: Vec<String>,
    /// The place in the history, which is its length for the new line.
    recalled: usize,
    /// The new line, while an older one is shown.
    newest: String,
    /// The text that was removed last, which `yank` puts back.
    killed: Vec<char>,
    /// A search through the history, while it lasts.
    search: Option<Search>,
}

/// A search for a line before that has a text.
#[derive(Debug, Clone, Default)]
struct Search {
    text: String,
    /// The line that was there when the search began.
    before: String,
}

impl Editor {
    /// An editor with the lines of earlier prompts, the oldest one first.
    pub fn with_history(history: Vec<String>) -> Editor {
        Editor { recalled: history.len(), history, ..Editor::default() }
    }

    /// What is searched for in the lines before, if a search lasts.
    pub fn search(&self) -> Option<&str> {
        self.search.as_ref().map(|search| &*search.text)
    }

    /// The line.
    pub fn text(&self) -> String {
        self.line.iter().collect()
    }

    /// How many characters are before the cursor.
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    /// The text before the cursor.
    pub fn before(&self) -> String {
        self.line[..self.cursor].iter().collect()
    }

    /// Puts text at the cursor.
    pub fn insert(&mut self, text: &str) {
        let chars: Vec<char> = text.chars().collect();
        self.line.splice(self.cursor..self.cursor, chars.iter().copied());
        self.cursor += chars.len();
    }

    fn show(&mut self, text: &str) {
        self.line = text.chars().collect();
        self.cursor = self.line.len();
    }

    fn recall(&mut self, place: usize) {
        if self.recalled == self.history.len() {
            self.newest = self.text();
        }
        self.recalled = place;
        let text = self.history.get(place).unwrap_or(&self.newest).clone();
        self.show(&text);
    }

    /// Removes characters, which `yank` puts back.
    fn kill(&mut self, range: Range<usize>) {
        self.cursor = range.start;
        self.killed = self.line.drain(range).collect();
    }

    /// Where the word before the cursor begins. A character that `is_part` belongs to a word.
    fn word_begin(&self, is_part: impl Fn(char) -> bool) -> usize {
        let before = &self.line[..self.cursor];
        let word = before.iter().rposition(|char| is_part(*char)).map_or(0, |at| at + 1);
        before[..word].iter().rposition(|char| !is_part(*char)).map_or(0, |at| at + 1)
    }

    /// Where the word at the cursor or behind it ends.
    fn word_end(&self) -> usize {
        let end = self.line.len();
        let after = |from: usize, is_part: bool| {
            let found = self.line[from..].iter().position(|char| char.is_alphanumeric() == is_part);
            found.map_or(end, |at| from + at)
        };
        after(after(self.cursor, true), false)
    }

    /// Shows the newest of the lines before `place` that has the text of the search.
    fn find(&mut self, place: usize) {
        let Some(Search { text, .. }) = &self.search else { return };
        let found = self.history[..place].iter().rposition(|line| line.contains(text.as_str()));
        if let Some(found) = found {
            self.recall(found);
        }
    }

    /// Presses a key while a search lasts. `None` if the key ended the search, and means something
    /// to the line that was found.
    fn press_in_search(&mut self, key: Key) -> Option<Action> {
        let search = self.search.as_mut()?;
        match key {
            Key::Char(char) => {
                search.text.push(char);
                // The line that is shown may have the longer text too.
                self.find((self.recalled + 1).min(self.history.len()));
            }
            Key::Backspace | Key::Control('h') => {
                search.text.pop();
            }
            Key::Control('r') => self.find(self.recalled),
            Key::Control('g' | 'c') => {
                let before = std::mem::take(&mut search.before);
                self.search = None;
                self.recalled = self.history.len();
                self.show(&before);
            }
            _ => {
                self.search = None;
                return None;
            }
        }
        Some(Action::Edit)
    }

    /// Presses a key.
    pub fn press(&mut self, key: Key) -> Action {
        if let Some(action) = self.press_in_search(key) {
            return action;
        }
        match key {
            Key::Char(char) => self.insert(char.encode_utf8(&mut [0; 4])),
            Key::Left | Key::Control('b') => self.cursor = self.cursor.saturating_sub(1),
            Key::Right | Key::Control('f') => self.cursor = (self.cursor + 1).min(self.line.len()),
            Key::Home | Key::Control('a') => self.cursor = 0,
            Key::End | Key::Control('e') => self.cursor = self.line.len(),
            Key::Backspace | Key::Control('h') if self.cursor > 0 => {
                self.cursor -= 1;
                self.line.remove(self.cursor);
            }
            Key::Control('d') if self.line.is_empty() => return Action::Leave,
            Key::Delete | Key::Control('d') if self.cursor < self.line.len() => {
                self.line.remove(self.cursor);
            }
            Key::Control('k') => self.kill(self.cursor..self.line.len()),
            Key::Control('u') => self.kill(0..self.cursor),
            Key::Control('w') => self.kill(self.word_begin(|char| !char.is_whitespace())..self.cursor),
            Key::Alt('\x7f' | '\x08') => self.kill(self.word_begin(char::is_alphanumeric)..self.cursor),
            Key::Alt('d') => self.kill(self.cursor..self.word_end()),
            Key::Alt('b') => self.cursor = self.word_begin(char::is_alphanumeric),
            Key::Alt('f') => self.cursor = self.word_end(),
            Key::Alt('<') if self.recalled > 0 => self.recall(0),
            Key::Alt('>') if self.recalled < self.history.len() => self.recall(self.history.len()),
            Key::Control('y') => self.insert(&self.killed.iter().collect::<String>()),
            Key::Control('t') if self.cursor > 0 && self.line.len() > 1 => {
                let at = self.cursor.min(self.line.len() - 1);
                self.line.swap(at - 1, at);
                self.cursor = at + 1;
            }
            Key::Control('l') => return Action::Clear,
            Key::Control('r') => {
                self.search = Some(Search { text: String::new(), before: self.text() });
            }
            Key::Control('c') => self.show(""),
            Key::Up | Key::Control('p') if self.recalled > 0 => self.recall(self.recalled - 1),
            Key::Down | Key::Control('n') if self.recalled < self.history.len() => {
                self.recall(self.recalled + 1)
            }
            Key::Tab => return Action::Complete,
            Key::Enter => {
                let text = self.text();
                if !text.trim().is_empty() && self.history.last() != Some(&text) {
                    self.history.push(text.clone());
                }
                self.recalled = self.history.len();
                self.show("");
                return Action::Run(text);
            }
            _ => {}
        }
        Action::Edit
    }
}
