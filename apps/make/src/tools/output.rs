//! How the tools write: their standard output ([`ToolOutput`]), and lines with names that may be no
//! UTF-8.

use std::io::{self, Write};

/// Writes a line that has names of files. These may be no UTF-8.
pub(super) fn line(out: &mut impl Write, parts: &[&[u8]]) -> io::Result<()> {
    parts.iter().try_for_each(|part| out.write_all(part))?;
    out.write_all(b"\n")
}

/// A string of JSON. Bytes that are no UTF-8 stay as they are, as in the files of ninja, so that a
/// reader finds the file by the name.
pub(super) fn json(text: &[u8]) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(text.len() + 2);
    selvedge_json::put_bytes(text, &mut quoted);
    quoted
}

/// The standard output of a tool. A reader that has closed the pipe misses the rest, and that is no
/// error.
pub(super) struct ToolOutput<W>(pub(super) W);

impl<W: Write> Write for ToolOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(bytes.len()),
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.flush() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            flushed => flushed,
        }
    }
}
