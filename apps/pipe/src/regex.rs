//! Regular expressions over lines.
//!
//! `condition.rs` calls [`matches()`] for the condition `regex`, `stage.rs` and `test.rs` call
//! [`lines`], and the parser calls [`lines`] to refuse a wrong expression. [`chomp`] is here
//! because a match sees each line without its end.
//!
//! A match never reaches over a line end. So a search may run over many lines at once: its first
//! match is within a line, or the search looks at the line in which it begins once more by itself.

use regex::bytes::{Regex, RegexBuilder};
use selvedge_coroutine::pipeline::{Flow, Sections, Split, Splitter};
use std::ops::{ControlFlow, Range};

/// The expression for lines: `^` and `$` are the ends of a line.
///
/// # Errors
/// What is wrong with it.
pub fn lines(pattern: &str) -> Result<Regex, String> {
    // The limit on the size of the program is small, because `(a{1000}){1000}` is a short script.
    let built = RegexBuilder::new(pattern).multi_line(true).unicode(true).size_limit(4 << 20).build();
    built.map_err(|error| match error {
        regex::Error::Syntax(message) => message.lines().last().unwrap_or_default().replace("error: ", ""),
        other => other.to_string(),
    })
}

/// A line without its end.
pub fn chomp(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

/// The splitter of [`matches()`].
#[derive(Debug, Clone)]
pub struct Matches {
    regex: Regex,
    /// Whether a search over many lines finds each line that a search in the line finds.
    whole: bool,
    /// The line that has begun and not ended.
    line: Vec<u8>,
    open: Option<bool>,
}

/// Each match that is not empty is a true section. None reaches over a line end.
pub fn matches(pattern: &str) -> Splitter<u8, Matches> {
    let regex = lines(pattern).expect("the parser has built the same expression");
    // `\A` and `\z`, and a `^` without the flag `m`, match at the ends of the whole text only.
    let whole = !pattern.contains("\\A") && !pattern.contains("\\z") && !takes_flags_away(pattern);
    Splitter::new(Matches { regex, whole, line: Vec::new(), open: None })
}

/// Whether a group such as `(?i-m)` may be in the expression: `?`, flags, `-`. Other expressions
/// may look the same, and are then searched line by line.
fn takes_flags_away(pattern: &str) -> bool {
    let mut groups = pattern.split('?').skip(1);
    groups.any(|group| group.trim_start_matches(|char: char| char.is_ascii_alphabetic()).starts_with('-'))
}

impl Matches {
    fn part<P: Sections<u8>>(open: &mut Option<bool>, verdict: bool, part: &[u8], out: &mut P) -> Flow {
        if part.is_empty() {
            return ControlFlow::Continue(());
        }
        if let Some(before) = open.replace(verdict)
            && before != verdict
        {
            out.close(before)?;
        }
        out.part_chunk(verdict, part)
    }

    /// The sections of one line, with its end if it has one.
    fn one_line<P: Sections<u8>>(regex: &Regex, open: &mut Option<bool>, line: &[u8], out: &mut P) -> Flow {
        let mut from = 0;
        for found in regex.find_iter(chomp(line)).filter(|found| !found.is_empty()) {
            Self::part(open, false, &line[from..found.start()], out)?;
            Self::part(open, true, found.as_bytes(), out)?;
            // Two matches in a row are two sections.
            out.close(true)?;
            *open = None;
            from = found.end();
        }
        Self::part(open, false, &line[from..], out)
    }
}

impl Split<u8> for Matches {
    fn put<P: Sections<u8>>(&mut self, item: &u8, out: &mut P) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<P: Sections<u8>>(&mut self, mut chunk: &[u8], out: &mut P) -> Flow {
        let Matches { regex, line, open, .. } = self;
        if !line.is_empty() {
            let end = memchr::memchr(b'\n', chunk).map_or(chunk.len(), |at| at + 1);
            line.extend_from_slice(&chunk[..end]);
            chunk = &chunk[end..];
            if !line.ends_with(b"\n") {
                return ControlFlow::Continue(());
            }
            let flow = Self::one_line(regex, open, line, out);
            line.clear();
            flow?;
        }
        while let Some(at) = memchr::memchr(b'\n', chunk) {
            Self::one_line(regex, open, &chunk[..=at], out)?;
            chunk = &chunk[at + 1..];
        }
        line.extend_from_slice(chunk);
        ControlFlow::Continue(())
    }

    fn end<P: Sections<u8>>(&mut self, out: &mut P) -> Flow {
        let line = std::mem::take(&mut self.line);
        Self::one_line(&self.regex, &mut self.open, &line, out)?;
        match self.open.take() {
            Some(verdict) => out.close(verdict),
            None => ControlFlow::Continue(()),
        }
    }

    /// `stream` begins with a line. The match is within a line, and so the caller goes on with the
    /// next line.
    fn search(&self, stream: &[u8]) -> Result<Option<Range<usize>>, ()> {
        let mut from = 0;
        while from < stream.len() {
            let start = match self.whole {
                true => match self.regex.find_at(stream, from) {
                    Some(found) => found.start(),
                    None => return Ok(None),
                },
                false => from,
            };
            if start >= stream.len() {
                return Ok(None);
            }
            let begin = memchr::memrchr(b'\n', &stream[..start]).map_or(0, |at| at + 1);
            let next = memchr::memchr(b'\n', &stream[start..]).map_or(stream.len(), |at| start + at + 1);
            if let Some(found) = self.regex.find(chomp(&stream[begin..next])) {
                // An empty match stands for the first byte of its line.
                let found = begin + found.start()..begin + found.end();
                return Ok(Some(if found.is_empty() { begin..next.min(begin + 1) } else { found }));
            }
            from = next;
        }
        Ok(None)
    }
}
