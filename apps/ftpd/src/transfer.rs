//! What goes over a data connection: [`send_file`], [`send_text_file`], [`send_bytes`] and
//! [`receive`].
//!
//! A binary file goes from the page cache to the socket by `sendfile`, or through TLS. The blocking
//! pool reads what is not in memory, converts nothing and writes what comes. A peer that takes or
//! sends no byte for a while ends the transfer; a slow one does not.

use crate::ascii::{FromNetwork, to_network};
use crate::tls::{Identity, SecureStream};
use crate::tree::TreeError;
use crate::upload::Upload;
use futures_util::io::{AsyncReadExt, AsyncWriteExt};
use selvedge::fs::Handle;
use selvedge::net::TcpStream;
use selvedge::{Time, blocking};
use std::future::poll_fn;
use std::io;
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The number of bytes that are sent or written at once.
const CHUNK: usize = 256 << 10;

/// Why a transfer has not come to its end.
#[derive(Debug)]
pub(crate) enum TransferError {
    /// There was no data connection: reply 425.
    Unconnected(io::Error),
    /// The data connection broke, or its peer stood still: reply 426.
    Broken(io::Error),
    /// The file could not be read or written.
    Disk(TreeError),
    /// The client has sent ABOR.
    Aborted,
    /// The control connection is gone.
    ControlLost(io::Error),
}

impl From<TreeError> for TransferError {
    fn from(error: TreeError) -> TransferError {
        TransferError::Disk(error)
    }
}

/// A data connection, how long its peer may stand still, and how many bytes have gone over it.
#[derive(Debug)]
pub(crate) struct DataLink {
    stream: Arc<TcpStream>,
    secure: Option<SecureStream>,
    patience: Duration,
    progress: Arc<Progress>,
}

impl DataLink {
    /// A connection in the clear.
    pub(crate) fn new(stream: TcpStream, patience: Duration, progress: Arc<Progress>) -> DataLink {
        DataLink { stream: Arc::new(stream), secure: None, patience, progress }
    }

    /// The same over TLS, with a handshake that takes at most `limit`.
    ///
    /// # Errors
    /// `Unconnected`.
    pub(crate) async fn secured(
        mut self,
        identity: &Identity,
        limit: Duration,
    ) -> Result<DataLink, TransferError> {
        let secure = identity.accept(&self.stream, limit).await;
        self.secure = Some(secure.map_err(TransferError::Unconnected)?);
        Ok(self)
    }

    /// Writes some of the bytes.
    async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_deadline(Some(Time::now() + self.patience));
        let sent = match &mut self.secure {
            Some(secure) => secure.write(bytes).await?,
            None => self.stream.write(bytes).await?,
        };
        self.progress.add(sent);
        Ok(sent)
    }

    /// Tells the end of the file.
    async fn finish(&mut self) -> Result<(), TransferError> {
        self.stream.set_write_deadline(Some(Time::now() + self.patience));
        let finished = match &mut self.secure {
            Some(secure) => secure.close().await,
            None => self.stream.shutdown(Shutdown::Write),
        };
        finished.map_err(TransferError::Broken)
    }

    /// Reads what is there, but at least one byte. True at the end. The end of the connection is
    /// none over TLS: an attacker can make it.
    async fn fill(&mut self, buffer: &mut Vec<u8>) -> io::Result<bool> {
        self.stream.set_read_deadline(Some(Time::now() + self.patience));
        let Some(secure) = &mut self.secure else { return fill_clear(&self.stream, buffer).await };
        let start = buffer.len();
        buffer.resize(buffer.capacity().max(start + 1), 0);
        let read = secure.read(&mut buffer[start..]).await;
        buffer.truncate(start + read.as_ref().map_or(0, |read| *read));
        Ok(read? == 0)
    }
}

/// The number of bytes of a transfer, which another part of the session looks at.
#[derive(Debug, Default)]
pub(crate) struct Progress(AtomicU64);

impl Progress {
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Relaxed)
    }

    fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Relaxed);
    }
}

/// Sends the bytes of a file from `start` to `end`.
///
/// # Errors
/// `Broken`; `Disk` if the file cannot be read or has become shorter.
pub(crate) async fn send_file(
    link: &mut DataLink,
    file: Arc<Handle>,
    start: u64,
    end: u64,
) -> Result<(), TransferError> {
    let (mut at, mut buffer) = (start, Vec::new());
    while at < end {
        let chunk_end = end.min(at + CHUNK as u64);
        if link.secure.is_some() {
            buffer = read_chunk(&file, at, (chunk_end - at) as usize, buffer).await?;
            if buffer.is_empty() {
                return Err(TreeError::Broken.into());
            }
            send_all(link, &buffer).await?;
            at += buffer.len() as u64;
            continue;
        }
        if !is_in_memory(&file, at, chunk_end) {
            read_chunk(&file, at, (chunk_end - at) as usize, Vec::new()).await?;
        }
        while at < chunk_end {
            let sent = send_some(link, &file, &mut at, chunk_end).await?;
            if sent == 0 {
                return Err(TreeError::Broken.into());
            }
            link.progress.add(sent);
        }
    }
    link.finish().await
}

/// One `sendfile` of bytes from `at` to `end`, after a wait for room. It moves `at`.
async fn send_some(link: &DataLink, file: &Handle, at: &mut u64, end: u64) -> Result<usize, TransferError> {
    link.stream.set_write_deadline(Some(Time::now() + link.patience));
    let (mut state, count) = (Default::default(), (end - *at) as usize);
    let sent = poll_fn(|cx| {
        link.stream.poll_write_with(&mut state, cx, |stream| stream.try_send_file(file, at, count))
    });
    sent.await.map_err(TransferError::Broken)
}

/// Whether the first and the last page of a stretch are in memory. The kernel reads files ahead, so
/// the pages between are there too, or will be.
fn is_in_memory(file: &Handle, start: u64, end: u64) -> bool {
    [start, end - 1].into_iter().all(|at| file.read_cached_at(&mut [0], at).is_ok())
}

/// Reads at most `count` bytes of a file on the blocking pool, with the memory of `buffer`.
async fn read_chunk(
    file: &Arc<Handle>,
    at: u64,
    count: usize,
    mut buffer: Vec<u8>,
) -> Result<Vec<u8>, TransferError> {
    let file = Arc::clone(file);
    let read = move || {
        buffer.resize(count, 0);
        let read = file.read_at(&mut buffer, at)?;
        buffer.truncate(read);
        Ok::<_, TreeError>(buffer)
    };
    Ok(blocking(read).await.map_err(|_| TreeError::Broken)??)
}

/// Sends a file from `start` on, with line ends as TYPE A has them.
///
/// # Errors
/// As for [`send_file`].
pub(crate) async fn send_text_file(
    link: &mut DataLink,
    file: Arc<Handle>,
    start: u64,
) -> Result<(), TransferError> {
    let (mut at, mut buffer, mut text) = (start, Vec::new(), Vec::new());
    loop {
        buffer = read_chunk(&file, at, CHUNK, buffer).await?;
        if buffer.is_empty() {
            return link.finish().await;
        }
        at += buffer.len() as u64;
        text.clear();
        to_network(&buffer, &mut text);
        send_all(link, &text).await?;
    }
}

/// Sends bytes, such as a list.
///
/// # Errors
/// `Broken`.
pub(crate) async fn send_bytes(link: &mut DataLink, bytes: &[u8]) -> Result<(), TransferError> {
    send_all(link, bytes).await?;
    link.finish().await
}

async fn send_all(link: &mut DataLink, mut bytes: &[u8]) -> Result<(), TransferError> {
    while !bytes.is_empty() {
        let sent = link.write(bytes).await.map_err(TransferError::Broken)?;
        bytes = &bytes[sent..];
    }
    Ok(())
}

/// Stores what the client sends until its end. The file is not complete by that.
///
/// # Errors
/// `Broken`; `Disk` if the file cannot be written.
pub(crate) async fn receive(
    link: &mut DataLink,
    upload: &Arc<Upload>,
    is_ascii: bool,
) -> Result<(), TransferError> {
    let mut converter = is_ascii.then(FromNetwork::default);
    let (mut network, mut file) = (Vec::with_capacity(CHUNK), Vec::new());
    loop {
        let is_end = link.fill(&mut network).await.map_err(TransferError::Broken)?;
        link.progress.add(network.len());
        match &mut converter {
            Some(converter) => {
                converter.convert(&network, &mut file);
                if is_end {
                    converter.finish(&mut file);
                }
                network.clear();
                file = written(upload, file).await?;
            }
            None => network = written(upload, network).await?,
        }
        if is_end {
            return Ok(());
        }
    }
}

/// [`DataLink::fill`] of a connection in the clear.
async fn fill_clear(stream: &TcpStream, buffer: &mut Vec<u8>) -> io::Result<bool> {
    if stream.read_to_spare(buffer).await? == 0 {
        return Ok(true);
    }
    // The more bytes come with one write, the fewer ways to the pool and back.
    while buffer.len() < buffer.capacity() {
        match stream.try_read_to_spare(buffer) {
            Ok(0) => return Ok(true),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

/// Writes bytes on the blocking pool, and gives their memory back, empty.
async fn written(upload: &Arc<Upload>, mut bytes: Vec<u8>) -> Result<Vec<u8>, TransferError> {
    if bytes.is_empty() {
        return Ok(bytes);
    }
    let upload = Arc::clone(upload);
    let write = move || {
        upload.write(&bytes)?;
        bytes.clear();
        Ok::<_, TreeError>(bytes)
    };
    Ok(blocking(write).await.map_err(|_| TreeError::Broken)??)
}
