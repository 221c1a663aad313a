//! The terminal: reads lines, and runs them.
//!
//! `main.rs` calls [`serve`]. The line editor has the terminal in raw mode only while a line is
//! read, so a pipeline's output and Ctrl-C are as usual.

use super::complete::complete;
use super::history::{History, LINES};
use crate::language::ScriptError;
use crate::run::{Outcome, Settings, prepare, run, run_interruptible};
use rustyline::completion::{Completer, Pair};
use rustyline::config::{BellStyle, CompletionType, Config};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::{History as _, MemHistory};
use rustyline::validate::Validator;
use rustyline::{Context, Editor, Helper};
use std::io::{self, IsTerminal, Write};

const PROMPT: &str = "pipe> ";

/// Asks for pipelines and runs them, until the end of the input.
///
/// # Errors
/// Those of the terminal.
pub fn serve(settings: Settings) -> io::Result<()> {
    match io::stdin().is_terminal() {
        true => Prompt::new()?.serve(settings),
        false => serve_lines(settings),
    }
}

/// Runs each line of an input that is no terminal.
fn serve_lines(settings: Settings) -> io::Result<()> {
    let mut line = String::new();
    while io::stdin().read_line(&mut line)? > 0 {
        if let Err(error) = prepare(&line).and_then(|script| match script.is_empty() {
            true => Ok(Outcome::Nothing),
            false => run(script, settings),
        }) {
            complain(&error, &line)?;
        }
        line.clear();
    }
    Ok(())
}

fn complain(error: &ScriptError, line: &str) -> io::Result<()> {
    writeln!(io::stderr(), "{}", error.shown("pipeline", line))
}

/// The prompt on a terminal.
struct Prompt {
    editor: Editor<Words, MemHistory>,
    /// The file of the lines, if they are kept.
    history: Option<History>,
}

impl Prompt {
    /// A prompt with the lines of earlier prompts.
    fn new() -> io::Result<Prompt> {
        let config = Config::builder()
            .bell_style(BellStyle::None)
            .completion_type(CompletionType::List)
            .completion_show_all_if_ambiguous(true)
            .max_history_size(LINES)
            .map_err(io_error)?
            // Each pasted line is run by itself.
            .bracketed_paste(false)
            .build();
        let lines = MemHistory::with_config(&config);
        let mut editor = Editor::with_history(config, lines).map_err(io_error)?;
        editor.set_helper(Some(Words));
        let mut history = None;
        match History::place().map(|place| History::open(&place)) {
            Some(Ok((file, lines))) => {
                for line in lines {
                    editor.history_mut().add_owned(line).map_err(io_error)?;
                }
                history = Some(file);
            }
            Some(Err(error)) => writeln!(io::stderr(), "The lines are not kept: the history: {error}")?,
            None => {}
        }
        Ok(Prompt { editor, history })
    }

    fn serve(mut self, settings: Settings) -> io::Result<()> {
        let how = "Tab completes; `selvedge-pipe --stages` shows the stages; Ctrl-D leaves.";
        writeln!(io::stdout(), "Pipelines, one a line. {how}")?;
        while let Some(line) = self.read_line()? {
            if line.trim().is_empty() {
                continue;
            }
            self.keep(&line)?;
            let ran = prepare(&line).and_then(|script| match script.is_empty() {
                true => Ok(Some(Outcome::Nothing)),
                false => run_interruptible(script, settings),
            });
            if let Err(error) = ran {
                complain(&error, &line)?;
            }
            // The prompt begins a line. Blanks to the last cell of the line stay in it if the
            // output has ended with a line end, and otherwise they go on to the next line.
            let blanks = " ".repeat(self.cells() - 1);
            write!(io::stdout(), "{blanks}\r")?;
            io::stdout().flush()?;
        }
        Ok(())
    }

    /// The next line; `None` at the end of the input.
    fn read_line(&mut self) -> io::Result<Option<String>> {
        loop {
            match self.editor.readline(PROMPT) {
                Ok(line) => return Ok(Some(line)),
                Err(ReadlineError::Eof) => return Ok(None),
                // Ctrl-C gives the line up.
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                    writeln!(io::stderr(), "The line is not UTF-8.")?;
                }
                Err(error) => return Err(io_error(error)),
            }
        }
    }

    /// Adds a line to the history, which is no longer kept after an error.
    fn keep(&mut self, line: &str) -> io::Result<()> {
        self.editor.add_history_entry(line).map_err(io_error)?;
        if let Some(Err(error)) = self.history.as_mut().map(|history| history.add(line)) {
            self.history = None;
            writeln!(io::stderr(), "The lines are no longer kept: the history: {error}")?;
        }
        Ok(())
    }

    /// How many cells a line of the terminal has.
    fn cells(&mut self) -> usize {
        self.editor.dimensions().map_or(80, |(width, _)| usize::from(width)).max(1)
    }
}

fn io_error(error: ReadlineError) -> io::Error {
    match error {
        ReadlineError::Io(error) => error,
        ReadlineError::Errno(errno) => errno.into(),
        error => io::Error::other(error),
    }
}

/// What the line editor asks while a line is typed: the words that [`complete`] offers.
struct Words;

impl Completer for Words {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (begun, words) = complete(&line[..at]);
        // A directory has names in it.
        let ends = |word: &String| words.len() == 1 && !word.ends_with('/');
        let pair = |word: &String| Pair {
            display: word.clone(),
            replacement: if ends(word) { format!("{word} ") } else { word.clone() },
        };
        Ok((at - begun.len(), words.iter().map(pair).collect()))
    }
}

impl Hinter for Words {
    type Hint = String;
}

impl Highlighter for Words {}

impl Validator for Words {}

impl Helper for Words {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_alone_is_followed_by_a_blank() {
        let history = MemHistory::new();
        let offered = |line: &str, at: usize| {
            let (begin, pairs) = Words.complete(line, at, &Context::new(&history)).unwrap();
            (begin, pairs.into_iter().map(|pair| pair.replacement).collect::<Vec<_>>())
        };
        assert_eq!(offered("file x | lin | count", 12), (9, vec!["lines ".to_owned()]));
        assert_eq!(offered("fi", 2), (0, vec!["file".to_owned(), "first".to_owned()]));
        assert_eq!(offered("file /et", 8), (5, vec!["/etc/".to_owned()]));
    }
}
