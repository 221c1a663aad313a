//! What the user sees of a build: a line for each command, and its output in one piece.
//!
//! `runner.rs` makes a `Status` and counts `total`, `finish.rs` calls `start` and `end` for each
//! command, and a thread of the runner calls `tick` each second.
//!
//! While a command has the terminal, `held` keeps all other text back. There is room for one such
//! command, because the pool `console` has the depth 1.

use super::escapes::without_escapes;
use crate::graph::EdgeId;
use crate::say::complain_bytes;
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// How much of a build is shown, and how.
#[derive(Clone, Debug)]
pub struct Style {
    /// Whole commands instead of their descriptions.
    pub verbose: bool,
    /// What commands write, and failures; no line for each command.
    pub quiet: bool,
    /// The beginning of each line, as `NINJA_STATUS` has it: `%s` commands that were started, `%t`
    /// all, `%p` per cent finished, `%r` running, `%u` not started, `%f` finished, `%o` finished in
    /// a second, `%c` the same of the last few, as many as run together or 64, `%e` seconds so far,
    /// `%w` the same as minutes and seconds, `%E` seconds to come, `%W` the same as minutes and
    /// seconds, `%P` per cent of the time, if all commands take as long as those so far, `%%` a per
    /// cent sign. [`check_format`] has accepted it.
    pub format: Vec<u8>,
    /// Whether the last line changes: the standard output is a terminal that understands escapes,
    /// and whole commands are not shown.
    pub terminal: bool,
    /// Whether the colours that commands write are kept, and failures are red.
    pub colours: bool,
}

/// The letters that a format may have behind a per cent sign.
const PLACEHOLDERS: &[u8] = b"stprufocewEWP%";

/// `NINJA_STATUS` has an unknown letter behind a per cent sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatError(String);

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<_> = PLACEHOLDERS.iter().map(|letter| format!("%{}", char::from(*letter))).collect();
        write!(f, "unknown placeholder '{}' in NINJA_STATUS: it has {}", self.0, known.join(", "))
    }
}

impl Error for FormatError {}

/// Checks the beginning of the lines.
///
/// # Errors
/// An unknown letter behind a per cent sign.
pub fn check_format(format: &[u8]) -> Result<(), FormatError> {
    let mut rest = format;
    while let Some(at) = memchr::memchr(b'%', rest) {
        let letter = rest.get(at + 1);
        if !letter.is_some_and(|letter| PLACEHOLDERS.contains(letter)) {
            let end = rest.len().min(at + 2);
            return Err(FormatError(String::from_utf8_lossy(&rest[at..end]).into_owned()));
        }
        rest = &rest[at + 2..];
    }
    Ok(())
}

/// How long the longest command runs before the line on a terminal names it.
const LONG: Duration = Duration::from_secs(2);

/// The numbers of a build, and the state of its lines on the terminal.
#[derive(Debug)]
pub(super) struct Status {
    style: Style,
    pub(super) total: u32,
    started: u32,
    finished: u32,
    began: Instant,
    running: BTreeMap<EdgeId, Shown>,
    /// When the last commands ended, as many as run together. With a job server that number is not
    /// known, and these are the last [`ENDS_MAX`].
    ends: VecDeque<Instant>,
    /// 0 if the format does not ask for them.
    ends_max: usize,
    /// Whether the last line may be overwritten.
    line_open: bool,
    /// The text of other commands while a command has the terminal; `None` if none has it.
    held: Option<Vec<u8>>,
    /// The text of a dry run that is not written yet. Its lines come too fast for a system call for
    /// each.
    gathered: Option<Vec<u8>>,
    /// Whether the reader of the standard output has gone.
    unread: bool,
}

/// A command that runs.
#[derive(Debug)]
struct Shown {
    line: Vec<u8>,
    since: Instant,
    /// Why it runs, until that has been shown.
    reasons: Vec<Vec<u8>>,
}

/// How many ends of commands are kept for `%c` at most.
const ENDS_MAX: usize = 64;

/// How many bytes of a dry run are written together.
const GATHERED: usize = 1 << 15;

impl Status {
    /// A build that has not begun, which runs at most `jobs` commands at a time. The text of a dry
    /// run is gathered.
    pub(super) fn new(style: Style, jobs: Option<u32>, dry_run: bool) -> Status {
        let ends_max = jobs.map_or(ENDS_MAX, |jobs| ENDS_MAX.min(jobs as usize)).max(2);
        Status {
            ends_max: if memchr::memmem::find(&style.format, b"%c").is_some() { ends_max } else { 0 },
            style,
            total: 0,
            started: 0,
            finished: 0,
            began: Instant::now(),
            running: BTreeMap::new(),
            ends: VecDeque::new(),
            line_open: false,
            held: None,
            gathered: dry_run.then(Vec::new),
            unread: false,
        }
    }

    /// The time since the build began.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    pub(super) fn finished(&self) -> u32 {
        self.finished
    }

    /// Whether the reader of the standard output has gone: a write has told so.
    pub(super) fn is_unread(&self) -> bool {
        self.unread
    }

    fn write(&mut self, text: &[u8]) {
        match &mut self.held {
            Some(held) => held.extend_from_slice(text),
            None => match &mut self.gathered {
                None => self.show(text),
                Some(gathered) => {
                    gathered.extend_from_slice(text);
                    if gathered.len() >= GATHERED {
                        self.show_gathered();
                    }
                }
            },
        }
    }

    /// Writes to the standard output.
    fn show(&mut self, text: &[u8]) {
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(text).and_then(|()| stdout.flush());
        self.unread |= written.is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
    }

    /// Writes the text of a dry run that is still gathered.
    fn show_gathered(&mut self) {
        if let Some(text) = self.gathered.as_mut().map(std::mem::take) {
            self.show(&text);
        }
    }

    /// Ends the last line, and writes the text of a dry run that is still gathered.
    pub(super) fn close(&mut self) {
        self.close_line();
        self.show_gathered();
    }

    /// A command begins. `reasons` say why; they are shown before its first line.
    pub(super) fn start(&mut self, edge: EdgeId, shown: &[u8], console: bool, mut reasons: Vec<Vec<u8>>) {
        self.started += 1;
        let has_line = console || self.style.terminal;
        if has_line {
            self.explain(std::mem::take(&mut reasons));
        }
        self.running.insert(edge, Shown { line: shown.to_vec(), since: Instant::now(), reasons });
        if console {
            self.line(shown, true);
            self.close_line();
            self.held = Some(Vec::new());
        } else if has_line {
            self.line(shown, false);
        }
    }

    /// Shows why a command runs, on the standard error as ninja does.
    fn explain(&mut self, reasons: Vec<Vec<u8>>) {
        if !reasons.is_empty() {
            self.close();
        }
        for reason in reasons {
            complain_bytes(&[b"selvedge-make explain: ", &reason[..]].concat());
        }
    }

    /// A command has ended. `failure` is the text about its failure, if it has failed.
    pub(super) fn end(
        &mut self,
        edge: EdgeId,
        shown: &[u8],
        console: bool,
        failure: Option<&[u8]>,
        output: &[u8],
    ) {
        let reasons = self.running.remove(&edge).map(|running| running.reasons);
        self.explain(reasons.unwrap_or_default());
        self.finished += 1;
        if self.ends_max > 0 {
            if self.ends.len() == self.ends_max {
                self.ends.pop_front();
            }
            self.ends.push_back(Instant::now());
        }
        if console {
            let held = self.held.take().unwrap_or_default();
            self.write(&held);
        } else if !self.style.quiet {
            self.line(shown, !self.style.terminal);
        }
        if failure.is_some() || !output.is_empty() {
            self.close_line();
        }
        if let Some(failure) = failure {
            self.write(failure);
        }
        let output = if self.style.colours { output.into() } else { without_escapes(output) };
        self.write(&output);
        if output.last().is_some_and(|last| *last != b'\n') {
            self.write(b"\n");
        }
    }

    /// The line on a terminal names the command that runs longest.
    pub(super) fn tick(&mut self) {
        let longest = self.running.values().min_by_key(|running| running.since);
        let Some(longest) = longest.filter(|running| running.since.elapsed() >= LONG) else { return };
        let seconds = longest.since.elapsed().as_secs();
        let text = [&longest.line, format!(" ({seconds} s)").as_bytes()].concat();
        if self.held.is_none() {
            self.line(&text, false);
        }
    }

    /// Writes a line. The next line on a terminal overwrites it, unless it is `whole`.
    fn line(&mut self, shown: &[u8], whole: bool) {
        if self.style.quiet {
            return;
        }
        let mut line = self.prefix();
        line.extend_from_slice(shown);
        if self.style.terminal {
            let width = rustix::termios::tcgetwinsize(io::stdout()).map_or(0, |size| size.ws_col);
            // Some terminals report the width 0.
            let width = if width == 0 { 80 } else { width };
            line.iter_mut().filter(|byte| **byte == b'\n').for_each(|newline| *newline = b' ');
            let line = elide(&line, usize::from(width).max(10));
            self.write(&[b"\r", &line[..], b"\x1b[K"].concat());
            self.line_open = true;
            if whole {
                self.close_line();
            }
        } else {
            line.push(b'\n');
            self.write(&line);
        }
    }

    /// Ends the line that a later one would overwrite, so that the next text begins on a new line.
    pub(super) fn close_line(&mut self) {
        if std::mem::take(&mut self.line_open) {
            self.write(b"\n");
        }
    }

    /// How many commands end in a second, over the last ones.
    fn recent_rate(&self) -> Option<String> {
        let (first, last) = (self.ends.front()?, self.ends.back()?);
        rate(self.ends.len(), last.duration_since(*first).as_secs_f64())
    }

    fn prefix(&self) -> Vec<u8> {
        // There is room for most lines, so that their text is not copied as it grows.
        let mut prefix = Vec::with_capacity(128);
        let running = self.running.len();
        // The clock is read only for a format that has a time, because a dry run has thousands of
        // lines.
        let seconds = || self.elapsed().as_secs_f64();
        let left = || match self.finished {
            0 => None,
            done => Some(seconds() / f64::from(done) * f64::from(self.total.saturating_sub(done))),
        };
        let clock = |seconds: f64| format!("{:02}:{:02}", seconds as u64 / 60, seconds as u64 % 60);
        let unknown = || "?".to_string();
        let mut bytes = self.style.format.iter().copied();
        while let Some(byte) = bytes.next() {
            if byte != b'%' {
                prefix.push(byte);
                continue;
            }
            let written = match bytes.next() {
                Some(b's') => write!(prefix, "{}", self.started),
                Some(b't') => write!(prefix, "{}", self.total),
                Some(b'r') => write!(prefix, "{running}"),
                Some(b'u') => write!(prefix, "{}", self.total.saturating_sub(self.started)),
                Some(b'f') => write!(prefix, "{}", self.finished),
                Some(b'p' | b'P') => write!(prefix, "{:3}%", self.finished * 100 / self.total.max(1)),
                Some(b'o') => {
                    write!(prefix, "{}", rate(self.finished as usize, seconds()).unwrap_or_else(unknown))
                }
                Some(b'c') => write!(prefix, "{}", self.recent_rate().unwrap_or_else(unknown)),
                Some(b'e') => write!(prefix, "{:.3}", seconds()),
                Some(b'w') => write!(prefix, "{}", clock(seconds())),
                Some(b'E') => write!(prefix, "{}", left().map_or_else(unknown, |left| format!("{left:.3}"))),
                Some(b'W') => write!(prefix, "{}", left().map_or_else(unknown, clock)),
                // `check_format` leaves the per cent sign.
                _ => write!(prefix, "%"),
            };
            written.expect("a vector takes all");
        }
        prefix
    }
}

/// How many of these there are in a second. `None` if no time has passed.
fn rate(count: usize, seconds: f64) -> Option<String> {
    (seconds > 0.0).then(|| format!("{:.1}", count as f64 / seconds))
}

/// A line of fewer than `width` columns: the middle of a longer one is left out.
fn elide(line: &[u8], width: usize) -> Cow<'_, [u8]> {
    // The bytes with which a character begins; text that is no UTF-8 stays as it is.
    let starts = || line.iter().enumerate().filter(|(_, byte)| **byte & 0xc0 != 0x80).map(|(at, _)| at);
    let length = starts().count();
    if length < width {
        return line.into();
    }
    let kept = width.saturating_sub(4);
    let (head, tail) = (kept / 2, kept - kept / 2);
    let place = |character| starts().nth(character).unwrap_or(line.len());
    [&line[..place(head)], b"...", &line[place(length - tail)..]].concat().into()
}
