//! [`Spool`]: if the client has not said how long a request's body is, the body is read before the
//! program starts, because the program has to know the length. What is beyond [`MEMORY_BYTES`] goes
//! to a file without a name.

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use selvedge_handler::{Body, BodyError};
use selvedge_io::fs::{File, remove_file};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The part of a body that is kept in memory.
const MEMORY_BYTES: usize = 256 << 10;

/// The number of bytes that one write to the file has, and one read from it.
const PIECE_BYTES: usize = 64 << 10;

/// How often a name that another program has taken is followed by the next one.
const TRIES: usize = 16;

/// The last number in the name of a file.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// How bodies of unknown length are read.
#[derive(Clone, Debug)]
pub(crate) struct Spool {
    /// The most bytes.
    pub(crate) bytes_max: u64,
    /// Where the files are; `None` for the system's directory of such files.
    pub(crate) directory: Option<PathBuf>,
}

impl Default for Spool {
    fn default() -> Spool {
        Spool { bytes_max: 1 << 30, directory: None }
    }
}

/// Why a body could not be read.
#[derive(Debug)]
pub(crate) enum SpoolFailure {
    /// It has more bytes than it may have.
    TooLarge,
    /// The client's part failed.
    Client(BodyError),
    /// The file could not be made or written.
    File(io::Error),
}

impl SpoolFailure {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            SpoolFailure::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            SpoolFailure::Client(error) => error.status(),
            SpoolFailure::File(error) if error.kind() == io::ErrorKind::StorageFull => {
                StatusCode::INSUFFICIENT_STORAGE
            }
            SpoolFailure::File(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl Spool {
    /// The length of a body, and the body. If the client has not said the length, the body is read
    /// first.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(crate) async fn with_length(&self, mut body: Body) -> Result<(u64, Body), SpoolFailure> {
        if let Some(length) = body.len() {
            return Ok((length, body));
        }
        let mut spooled = Spooled { file: None, written: 0, waiting: BytesMut::new() };
        while let Some(piece) = body.next().await.transpose().map_err(SpoolFailure::Client)? {
            if spooled.len() + piece.len() as u64 > self.bytes_max {
                return Err(SpoolFailure::TooLarge);
            }
            spooled.put(&piece, self.directory.as_deref()).await.map_err(SpoolFailure::File)?;
        }
        spooled.into_body().await.map_err(SpoolFailure::File)
    }
}

/// What was read of a body.
struct Spooled {
    file: Option<File>,
    /// The bytes in the file.
    written: u64,
    /// The bytes behind them.
    waiting: BytesMut,
}

impl Spooled {
    fn len(&self) -> u64 {
        self.written + self.waiting.len() as u64
    }

    async fn put(&mut self, piece: &[u8], directory: Option<&Path>) -> io::Result<()> {
        self.waiting.extend_from_slice(piece);
        if self.file.is_none() && self.waiting.len() > MEMORY_BYTES {
            self.file = Some(create(directory).await?);
        }
        if self.file.is_some() && self.waiting.len() >= PIECE_BYTES {
            self.flush().await?;
        }
        Ok(())
    }

    async fn flush(&mut self) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            file.write_all(&self.waiting).await?;
            self.written += self.waiting.len() as u64;
            self.waiting.clear();
        }
        Ok(())
    }

    async fn into_body(mut self) -> io::Result<(u64, Body)> {
        self.flush().await?;
        let length = self.len();
        let Some(mut file) = self.file else { return Ok((length, self.waiting.freeze().into())) };
        file.rewind().await?;
        let body = Body::produce(async move |mut out| -> io::Result<()> {
            let mut left = length;
            let mut piece = vec![0; PIECE_BYTES];
            while left > 0 {
                match file.read(&mut piece).await? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    read => {
                        out.put(Bytes::copy_from_slice(&piece[..read])).await;
                        left -= read as u64;
                    }
                }
            }
            Ok(())
        });
        Ok((length, body))
    }
}

/// A file that loses its name at once, so that it is gone with its last descriptor.
async fn create(directory: Option<&Path>) -> io::Result<File> {
    let directory = directory.map_or_else(std::env::temp_dir, Path::to_owned);
    let mut tries = 0;
    loop {
        // Another user must not know the name before.
        let random = RandomState::new().build_hasher().finish();
        let number = NUMBER.fetch_add(1, Relaxed);
        let path = directory.join(format!(".selvedge-{}-{number}-{random:016x}", process::id()));
        let created = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path).await;
        tries += 1;
        match created {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < TRIES => {}
            created => {
                let file = created?;
                remove_file(path).await?;
                return Ok(file);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_core::round_robin_over;
    use selvedge_io::EventLoop;

    /// A body of unknown length, in which the byte at each place tells the place.
    fn body(len: usize, piece: usize) -> Body {
        Body::produce(async move |mut out| {
            let all: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            for part in all.chunks(piece) {
                out.put(part.to_vec()).await;
            }
            Ok::<(), io::Error>(())
        })
    }

    fn run<T>(main: impl Future<Output = T> + 'static) -> T {
        round_robin_over(&mut EventLoop::new().unwrap(), main).unwrap()
    }

    #[test]
    fn a_body_of_any_length_comes_back_as_it_was() {
        run(async {
            let directory = tempfile::tempdir().unwrap();
            let spool = Spool { bytes_max: 4 << 20, directory: Some(directory.path().to_owned()) };
            for len in [0, 1, MEMORY_BYTES - 1, MEMORY_BYTES, MEMORY_BYTES + 1, 3_000_001, 4 << 20] {
                for piece in [1000, PIECE_BYTES, PIECE_BYTES + 1] {
                    let (length, spooled) = spool.with_length(body(len, piece)).await.unwrap();
                    assert_eq!(length, len as u64);
                    let spooled = spooled.read_all(u64::MAX).await.unwrap();
                    let expected = body(len, 1 << 20).read_all(u64::MAX).await.unwrap();
                    assert!(spooled == expected, "{len} bytes in pieces of {piece}");
                }
            }
            assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
            let told = spool.with_length(Body::from("told")).await.unwrap();
            assert_eq!((told.0, told.1.len()), (4, Some(4)));
        });
    }

    #[test]
    fn what_goes_wrong_has_its_status() {
        run(async {
            let spool = Spool { bytes_max: 300_000, directory: Some("/no/such/directory".into()) };
            let status = |result: Result<(u64, Body), SpoolFailure>| result.err().unwrap().status().as_u16();
            assert_eq!(status(spool.with_length(body(300_001, 300_001)).await), 413);
            assert_eq!(status(spool.with_length(body(300_000, 7000)).await), 500);
            let broken = Body::produce(async |mut out| {
                out.put("begin").await;
                Err(BodyError::new(selvedge_handler::Cause::TimedOut))
            });
            assert_eq!(status(spool.with_length(broken).await), 408);
            // A file system without room.
            let full = SpoolFailure::File(io::ErrorKind::StorageFull.into());
            assert_eq!(full.status().as_u16(), 507);
        });
    }
}
