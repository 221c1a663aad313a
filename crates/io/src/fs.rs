//! Files. Opening one, asking for its status and reading what is not in memory may take long, and Linux offers no
//! readiness for it; so these run on the [blocking pool](crate::pool).

use crate::blocking;
use crate::error::doing;
use crate::sys;
use std::fs::{Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An open file. Clones share it; it has no position of its own: every access says where.
///
/// # Examples
/// ```
/// # futures::executor::block_on(async {
/// use selvedge_io::fs::File;
///
/// let file = File::open("Cargo.toml").await?;
/// let (read, buffer) = file.read_at(vec![0; 9], 0).await;
/// assert_eq!(&buffer[..read?], b"[package]");
/// # std::io::Result::Ok(()) }).unwrap();
/// ```
///
/// # Paper
/// [LZ07 §4.2], `sys_file_open`: on an OS thread of its own.
#[derive(Clone, Debug)]
pub struct File {
    opened: Arc<Opened>,
}

#[derive(Debug)]
struct Opened {
    file: std::fs::File,
    path: PathBuf,
}

impl File {
    /// Opens a file for reading. The opening of a FIFO does not wait for a writer.
    ///
    /// # Errors
    /// With the path in the message: not there, not permitted, no descriptors left.
    #[doc(alias = "sys_file_open")]
    pub async fn open(path: impl Into<PathBuf>) -> io::Result<File> {
        File::open_with(path, OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY))
            .await
    }

    /// Opens a file as `options` say.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub async fn open_with(path: impl Into<PathBuf>, options: &OpenOptions) -> io::Result<File> {
        let (path, options) = (path.into(), options.clone());
        on_pool("open", path, move |path| {
            let file = sys::open(path, &options)?;
            Ok(File { opened: Arc::new(Opened { file, path: path.to_owned() }) })
        })
        .await
    }

    /// The file's status now.
    ///
    /// # Errors
    /// With the path in the message; only a network file system has any.
    pub async fn metadata(&self) -> io::Result<Metadata> {
        self.on_pool("stat", sys::fstat).await
    }

    /// Reads what there is from `offset` on, into the initialised part of `buffer`; returns how much, which is 0 at the
    /// file's end only, and the buffer. The buffer is the pool's for the time of the call, so that the caller may give up
    /// waiting.
    ///
    /// # Errors
    /// With the path in the message. If the call itself is lost by a panic, so is the buffer, and an empty one
    /// comes back.
    pub async fn read_at(&self, mut buffer: Vec<u8>, offset: u64) -> (io::Result<usize>, Vec<u8>) {
        let read = self.on_pool("read", move |file| {
            let read = sys::pread(file, &mut buffer, offset);
            Ok((read, buffer))
        });
        match read.await {
            Ok((read, buffer)) => (read.map_err(self.doing("read")), buffer),
            Err(error) => (Err(error), Vec::new()),
        }
    }

    /// Writes all of `bytes` at `offset`, and returns them.
    ///
    /// # Errors
    /// With the path in the message; how much was written is not known then.
    pub async fn write_all_at(&self, bytes: Vec<u8>, offset: u64) -> io::Result<Vec<u8>> {
        let write = move |file: &std::fs::File| {
            let mut written = 0;
            while written < bytes.len() {
                match sys::pwrite(file, &bytes[written..], offset + written as u64) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(more) => written += more,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(bytes)
        };
        self.on_pool("write", write).await
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.opened.path
    }

    async fn on_pool<T, F>(&self, what: &'static str, call: F) -> io::Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&std::fs::File) -> io::Result<T> + Send + 'static,
    {
        let opened = self.opened.clone();
        let result = blocking(move || call(&opened.file)).await;
        result.map_err(io::Error::from).flatten().map_err(self.doing(what))
    }

    fn doing(&self, what: &'static str) -> impl FnOnce(io::Error) -> io::Error {
        doing(format!("{what} {}", self.path().display()))
    }
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.opened.file.as_fd()
    }
}

/// The status of the file at a path, following symbolic links.
///
/// # Errors
/// With the path in the message: not there, not permitted.
pub async fn metadata(path: impl Into<PathBuf>) -> io::Result<Metadata> {
    on_pool("stat", path.into(), sys::stat).await
}

/// The whole content of the file at a path.
///
/// # Errors
/// With the path in the message: not there, not permitted, a directory.
pub async fn read(path: impl Into<PathBuf>) -> io::Result<Vec<u8>> {
    on_pool("read", path.into(), sys::read_whole).await
}

async fn on_pool<T, F>(what: &'static str, path: PathBuf, call: F) -> io::Result<T>
where
    T: Send + 'static,
    F: FnOnce(&Path) -> io::Result<T> + Send + 'static,
{
    let call = move || call(&path).map_err(doing(format_args!("{what} {}", path.display())));
    blocking(call).await.map_err(io::Error::from).flatten()
}
