//! A line that is edited: from keys to text, without a terminal.
//!
//! `read_line` in `terminal.rs` calls [`Editor::press`] for each key, and does what the [`Action`]
//! says. The keys are those of Emacs and readline. One [`Editor`] lives as long as the prompt,
//! because it holds the history.

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// A letter with the control key.
    Control(char),
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
}

impl Editor {
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

    /// Presses a key.
    pub fn press(&mut self, key: Key) -> Action {
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
            Key::Control('k') => self.line.truncate(self.cursor),
            Key::Control('u') => {
                self.line.drain(..self.cursor);
                self.cursor = 0;
            }
            Key::Control('w') => {
                let before = &self.line[..self.cursor];
                let word = before.iter().rposition(|char| !char.is_whitespace()).map_or(0, |at| at + 1);
                let begin =
                    before[..word].iter().rposition(|char| char.is_whitespace()).map_or(0, |at| at + 1);
                self.line.drain(begin..self.cursor);
                self.cursor = begin;
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
