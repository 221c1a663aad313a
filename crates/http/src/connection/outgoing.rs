//! Replies on their way to the client: bytes in a buffer, and spans of files behind them.
//!
//! `Exchange` appends replies to an [`Outgoing`] and has it send them. The functions without
//! `async` send as much as the stream takes at once. Those with `async` wait for the client and for
//! the disk.

use super::client::ClientSide;
use crate::cache::CachedFile;
use crate::document_root::{Backing, warm};
use crate::range::{Parts, Span};
use rustix::io::Errno;
use selvedge_core::{now, spawn, yield_now};
use selvedge_handler::{Severity, report};
use selvedge_io::blocking;
use selvedge_io::fs::Handle;
use selvedge_io::pool::Pool;
use std::io;
use std::time::Duration;

/// Room for replies in a new buffer.
const START_BYTES: usize = 16 << 10;

/// A buffer that has grown beyond this is not kept.
const KEPT_BYTES: usize = 160 << 10;

/// How much of a file is sent between two looks at the disk and at the other threads.
const PIECE_BYTES: u64 = 256 << 10;

/// For how long the pages of a file that were found in memory are taken to stay there.
const RESIDENCE: Duration = Duration::from_secs(1);

/// Replies that are to be sent.
pub(super) struct Outgoing {
    /// Replies, of which the kernel has taken the first `sent` bytes.
    pub(super) bytes: Vec<u8>,
    sent: usize,
    /// Bytes that the kernel has taken since `gone` was set to 0 last, those of files too.
    pub(super) gone: u64,
}

impl Outgoing {
    pub(super) fn new() -> Outgoing {
        Outgoing { bytes: Vec::with_capacity(START_BYTES), sent: 0, gone: 0 }
    }

    /// Gives back the memory, if no reply is in it.
    pub(super) fn shed_room(&mut self) {
        if self.bytes.is_empty() {
            self.bytes = Vec::new();
        }
    }

    /// Makes it as good as new; false if its buffer is too large or too small to be kept.
    #[inline]
    pub(super) fn reset(&mut self) -> bool {
        self.bytes.clear();
        (self.sent, self.gone) = (0, 0);
        (START_BYTES..=KEPT_BYTES).contains(&self.bytes.capacity())
    }

    /// Sends the bytes that the stream takes at once; true if that was all. With `more`, a file
    /// follows.
    #[inline]
    pub(super) fn send_now(&mut self, client: &ClientSide, more: bool) -> io::Result<bool> {
        while self.sent < self.bytes.len() {
            match client.stream.try_send(&self.bytes[self.sent..], more) {
                Ok(sent) => {
                    self.sent += sent;
                    self.gone += sent as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        self.bytes.clear();
        self.sent = 0;
        Ok(true)
    }

    /// Sends a span of a file behind the bytes, if it is short, in memory and taken by the stream
    /// at once. Returns the part of the span that is left.
    #[inline]
    pub(super) fn send_file_now(
        &mut self,
        client: &ClientSide,
        file: &CachedFile,
        span: Span,
    ) -> io::Result<Option<Span>> {
        match &file.body {
            Backing::Open(open) if span.len() <= PIECE_BYTES && is_resident(file, open, span) => {
                self.send_piece(client, open, span, |end| got_shorter(file, end))
            }
            _ => Ok(Some(span)),
        }
    }

    /// Sends the part of a piece of a file that the stream takes at once. Returns the part that is
    /// left.
    #[inline]
    fn send_piece(
        &mut self,
        client: &ClientSide,
        open: &Handle,
        piece: Span,
        shorter: impl Fn(u64) -> io::Error,
    ) -> io::Result<Option<Span>> {
        let mut at = piece.start;
        while at < piece.end {
            let left = (piece.end - at) as usize;
            match client.stream.try_send_file(open, &mut at, left) {
                Ok(0) => return Err(shorter(at)),
                Ok(sent) => self.gone += sent as u64,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Some(Span { start: at, end: piece.end }));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Sends all bytes. It waits for the client for at most `patience` at a time.
    pub(super) async fn send(
        &mut self,
        client: &ClientSide,
        patience: Duration,
        more: bool,
    ) -> io::Result<()> {
        while !self.send_now(client, more)? {
            client.room(patience).await?;
        }
        Ok(())
    }

    /// Sends a span of a file. It waits for the client for at most `patience` at a time, and for
    /// the disk on the blocking pool.
    ///
    /// The head describes the file as it was, and as many bytes as the head says are sent, whatever
    /// is written to the file meanwhile. Only a file that gets shorter cuts the reply.
    pub(super) async fn send_file(
        &mut self,
        client: &ClientSide,
        patience: Duration,
        file: &CachedFile,
        span: Span,
    ) -> io::Result<()> {
        let Backing::Open(open) = &file.body else { return Err(io::ErrorKind::InvalidInput.into()) };
        let (is_resident, shorter) = (|piece| is_resident(file, open, piece), |end| got_shorter(file, end));
        self.send_open_file(client, patience, open, span, is_resident, shorter).await
    }

    /// Sends a span of an open file, which a handler has given, behind the bytes.
    pub(super) async fn send_span(
        &mut self,
        client: &ClientSide,
        patience: Duration,
        open: &Handle,
        span: Span,
    ) -> io::Result<()> {
        self.send(client, patience, true).await?;
        let shorter = |end| {
            let what = "a handler's file got shorter while it was sent: its reply was cut at";
            report(Severity::Error, format_args!("{what} {end}"));
            io::ErrorKind::UnexpectedEof.into()
        };
        self.send_open_file(client, patience, open, span, |piece| seems_resident(open, piece), shorter).await
    }

    async fn send_open_file(
        &mut self,
        client: &ClientSide,
        patience: Duration,
        open: &Handle,
        span: Span,
        is_resident: impl Fn(Span) -> bool,
        shorter: impl Fn(u64) -> io::Error,
    ) -> io::Result<()> {
        let mut start = span.start;
        while start < span.end {
            let mut piece = Span { start, end: span.end.min(start + PIECE_BYTES) };
            start = piece.end;
            if !is_resident(piece) {
                let file = open.duplicate()?;
                aside(None, move || warm(&file, piece.start, piece.len() as usize)).await?;
            }
            while let Some(left) = self.send_piece(client, open, piece, &shorter)? {
                piece = left;
                client.room(patience).await?;
            }
            // Without this, a client as fast as the worker would keep the worker to itself.
            yield_now().await;
        }
        Ok(())
    }

    /// Sends several spans of a file, each behind its part head.
    pub(super) async fn send_parts(
        &mut self,
        client: &ClientSide,
        patience: Duration,
        file: &CachedFile,
        parts: &Parts,
    ) -> io::Result<()> {
        for (index, &span) in parts.spans().iter().enumerate() {
            parts.put_part_head(index, &mut self.bytes);
            match &file.body {
                Backing::Memory(content) => {
                    self.bytes.extend_from_slice(&content[span.start as usize..span.end as usize]);
                }
                Backing::Open(_) => {
                    self.send(client, patience, true).await?;
                    self.send_file(client, patience, file, span).await?;
                }
            }
        }
        parts.put_end(&mut self.bytes);
        self.send(client, patience, false).await
    }
}

/// Makes a call that may block on `pool`, or on the blocking pool of the process, in a thread of
/// its own. The connection's thread waits for that thread only. So it leaves no waker behind that
/// would make its later waits dearer.
pub(super) async fn aside<T: Send + 'static>(
    pool: Option<&'static Pool>,
    call: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let thread = match pool {
        Some(pool) => spawn(pool.run(call)),
        None => spawn(blocking(call)),
    };
    match thread.await {
        Ok(result) => result.map_err(io::Error::from),
        Err(ended) => Err(io::Error::other(ended)),
    }
}

/// Whether a span of at most [`PIECE_BYTES`] seems to be in memory: its first byte and its last
/// byte are, or were lately.
fn is_resident(file: &CachedFile, open: &Handle, span: Span) -> bool {
    let now = now();
    if now < file.resident_until.get() {
        return true;
    }
    let resident = seems_resident(open, span);
    if resident && file.identity.len <= PIECE_BYTES {
        file.resident_until.set(now + RESIDENCE);
    }
    resident
}

/// Whether the first byte of a span and its last byte are in memory.
fn seems_resident(open: &Handle, span: Span) -> bool {
    [span.start, span.end - 1].iter().all(|&at| {
        // Sending the file meets every other error again, and reports it.
        open.read_cached_at(&mut [0], at) != Err(Errno::AGAIN)
    })
}

/// The error for a file that ends at byte `end`, before the end of its reply. The reply must not
/// become complete.
#[cold]
fn got_shorter(file: &CachedFile, end: u64) -> io::Error {
    let name = file.name.escape_ascii();
    let len = file.identity.len;
    report(
        Severity::Error,
        format_args!("/{name} got shorter while it was sent: a reply of {len} bytes was cut at {end}"),
    );
    io::ErrorKind::UnexpectedEof.into()
}
