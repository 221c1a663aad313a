//! [`ZipStore`]: the files of a zip archive, as a [`FileStore`] and a handler.
//!
//! The archive's list of files is read once. A file that lies in the archive as it is, is sent from
//! the archive's own file. A compressed one is unpacked on the blocking pool and kept in memory
//! while there is room.

use crate::file_store::{FileStore, StoredContent, StoredFile, answer_from};
use bytes::Bytes;
use flate2::read::DeflateDecoder;
use rawzip::{CompressionMethod, FileReader, RECOMMENDED_BUFFER_SIZE, ZipArchive, ZipArchiveEntryWayfinder};
use rustix::fs::{CWD, OFlags};
use selvedge_handler::{Handler, Request, Response};
use selvedge_io::blocking;
use selvedge_io::fs::Handle;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// The longest file that is unpacked, in bytes.
pub const UNPACKED_BYTES_MAX: u64 = 64 << 20;

/// The most bytes of unpacked files that are kept.
const KEPT_BYTES_MAX: u64 = 64 << 20;

/// The files of a zip archive. It answers as the server of a directory does: conditions, ranges,
/// `index.html`, redirects to a path with `/` at its end. Names with a hidden component are not
/// found. A clone is the same archive.
///
/// The archive is as it was when it was opened: a program that replaces it puts a new file into its
/// place.
///
/// # Paper
/// \[Mighty\] "Evolution": the HTTP logic makes no assumption about the storage behind it.
///
/// # Examples
/// ```no_run
/// use selvedge::http::ZipStore;
/// use selvedge::web::{Router, Server};
///
/// fn main() -> std::io::Result<()> {
///     let manual = ZipStore::open("manual.zip")?;
///     Server::bind("127.0.0.1:8080")?.run(|| Router::new().nest("/manual", manual.clone()))
/// }
/// ```
#[derive(Clone)]
pub struct ZipStore(Arc<OpenArchive>);

struct OpenArchive {
    path: PathBuf,
    archive: ZipArchive<FileReader>,
    handle: Arc<Handle>,
    entries: BTreeMap<String, ArchiveEntry>,
    /// When the archive was modified. The time in an entry has no zone.
    modified: SystemTime,
    identity: u64,
    kept: Mutex<KeptFiles>,
}

/// A file of the archive.
#[derive(Clone, Copy, Debug)]
struct ArchiveEntry {
    number: usize,
    place: ZipArchiveEntryWayfinder,
    /// Where its content begins, if it lies there as it is.
    start: Option<u64>,
    len: u64,
    checksum: u32,
}

/// Files that were unpacked.
#[derive(Default)]
struct KeptFiles {
    files: HashMap<usize, Bytes>,
    bytes: u64,
}

impl ZipStore {
    /// Opens the archive at `path`, and reads the list of its files. The call blocks.
    ///
    /// # Errors
    /// With the path in the message: the file's, or that it is no zip archive.
    pub fn open(path: impl AsRef<Path>) -> io::Result<ZipStore> {
        let path = path.as_ref();
        let failed = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        OpenArchive::new(path).map(|archive| ZipStore(Arc::new(archive))).map_err(failed)
    }

    /// A number that another file, or another state of the file, at the same path does not have.
    pub fn identity(&self) -> u64 {
        self.0.identity
    }

    /// The number of its files.
    pub fn len(&self) -> usize {
        self.0.entries.len()
    }

    /// Whether it has no files.
    pub fn is_empty(&self) -> bool {
        self.0.entries.is_empty()
    }
}

impl OpenArchive {
    fn new(path: &Path) -> io::Result<OpenArchive> {
        let file = File::open(path)?;
        let status = file.metadata()?;
        let open = format!("/proc/self/fd/{}", file.as_raw_fd());
        let handle = Handle::open(CWD, open, OFlags::RDONLY | OFlags::CLOEXEC)?;
        let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
        let archive = ZipArchive::from_file(file, &mut buffer).map_err(io::Error::other)?;
        let mut entries = BTreeMap::new();
        let mut list = archive.entries(&mut buffer);
        while let Some(entry) = list.next_entry().map_err(io::Error::other)? {
            let Ok(name) = std::str::from_utf8(entry.file_path().as_ref()).map(str::to_owned) else {
                // A name that is no text is no path of a request.
                continue;
            };
            let is_plain = |part: &str| !part.is_empty() && !part.starts_with('.');
            if entry.is_dir() || entry.flags().is_encrypted() || !name.split('/').all(is_plain) {
                continue;
            }
            let is_stored = match entry.compression_method() {
                CompressionMethod::STORE => true,
                CompressionMethod::DEFLATE => false,
                _ => continue,
            };
            let (place, len, checksum) = (entry.wayfinder(), entry.uncompressed_size_hint(), entry.crc32());
            // A file that does not lie within the archive is broken.
            let Ok(content) = archive.get_entry(place).map(|entry| entry.compressed_data_range()) else {
                continue;
            };
            if content.1 > status.len() || is_stored && content.1.checked_sub(content.0) != Some(len) {
                continue;
            }
            let start = is_stored.then_some(content.0);
            let number = entries.len();
            entries.insert(name, ArchiveEntry { number, place, start, len, checksum });
        }
        let nanoseconds = status.mtime().wrapping_mul(1_000_000_000).wrapping_add(status.mtime_nsec());
        let identity = (nanoseconds as u64).rotate_left(17) ^ status.ino() ^ status.len().rotate_left(40);
        Ok(OpenArchive {
            path: path.to_owned(),
            archive,
            handle: Arc::new(handle),
            entries,
            modified: status.modified()?,
            identity,
            kept: Mutex::default(),
        })
    }

    /// The content of a compressed file. It blocks.
    fn unpack(&self, entry: ArchiveEntry) -> io::Result<Bytes> {
        if entry.len > UNPACKED_BYTES_MAX {
            return Err(io::Error::other(format!(
                "{}: a compressed file of {} bytes is too long to be unpacked for a reply",
                self.path.display(),
                entry.len
            )));
        }
        let file = self.archive.get_entry(entry.place).map_err(io::Error::other)?;
        let mut content = Vec::with_capacity(entry.len as usize);
        // What the list says of a file need not be so, so one byte more is asked for. The reader
        // compares the length and the checksum at the end.
        let unpacked = DeflateDecoder::new(file.reader());
        file.verifying_reader(unpacked).take(entry.len + 1).read_to_end(&mut content)?;
        if content.len() as u64 != entry.len {
            return Err(io::Error::other(format!("{}: a file has another length", self.path.display())));
        }
        let content = Bytes::from(content);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.bytes + entry.len > KEPT_BYTES_MAX {
            *kept = KeptFiles::default();
        }
        if kept.files.insert(entry.number, content.clone()).is_none() {
            kept.bytes += entry.len;
        }
        Ok(content)
    }
}

impl FileStore for ZipStore {
    async fn find(&self, name: &str) -> io::Result<Option<StoredFile>> {
        let Some(&entry) = self.0.entries.get(name) else { return Ok(None) };
        let content = match entry.start {
            Some(start) => StoredContent::File(self.0.handle.clone(), start..start + entry.len),
            None => {
                let known = self
                    .0
                    .kept
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .files
                    .get(&entry.number)
                    .cloned();
                let content = match known {
                    Some(content) => content,
                    None => {
                        let archive = self.0.clone();
                        blocking(move || archive.unpack(entry)).await??
                    }
                };
                content.into()
            }
        };
        let version = u64::from(entry.checksum) << 32 ^ entry.len;
        Ok(Some(StoredFile { content, modified: self.0.modified, version }))
    }

    async fn is_directory(&self, name: &str) -> io::Result<bool> {
        let prefix = format!("{name}/");
        Ok(self.0.entries.range(prefix.clone()..).next().is_some_and(|(path, _)| path.starts_with(&prefix)))
    }
}

impl Handler for ZipStore {
    fn call(&self, request: Request) -> impl Future<Output = Response> {
        answer_from(self, request)
    }
}

impl fmt::Debug for ZipStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZipStore")
            .field("path", &self.0.path)
            .field("files", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::DeflateEncoder;
    use rawzip::ZipArchiveWriter;
    use selvedge_core::round_robin_over;
    use selvedge_handler::{Body, StatusCode};
    use selvedge_io::EventLoop;
    use std::io::Write;

    /// An archive of these files; those with `true` are compressed.
    fn archive(path: &Path, files: &[(&str, &[u8], bool)]) {
        let mut output = File::create(path).unwrap();
        let mut archive = ZipArchiveWriter::new(&mut output);
        for (name, content, packed) in files {
            let method = if *packed { CompressionMethod::DEFLATE } else { CompressionMethod::STORE };
            let (mut entry, config) = archive.new_file(name).compression_method(method).start().unwrap();
            let descriptor = if *packed {
                let mut writer = config.wrap(DeflateEncoder::new(&mut entry, Compression::default()));
                writer.write_all(content).unwrap();
                let (encoder, descriptor) = writer.finish().unwrap();
                encoder.finish().unwrap();
                descriptor
            } else {
                let mut writer = config.wrap(&mut entry);
                writer.write_all(content).unwrap();
                writer.finish().unwrap().1
            };
            entry.finish(descriptor).unwrap();
        }
        archive.finish().unwrap();
    }

    async fn get(store: &ZipStore, path: &str, range: Option<&str>) -> (StatusCode, Bytes) {
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = path.parse().unwrap();
        if let Some(range) = range {
            request.headers_mut().insert("range", range.parse().unwrap());
        }
        let response = store.call(request).await;
        (response.status(), response.into_body().read_all(u64::MAX).await.unwrap())
    }

    #[test]
    fn files_are_found_whether_they_are_compressed_or_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("site.zip");
        let long: Vec<u8> = (0..3_000_000_u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
        archive(
            &path,
            &[
                ("index.html", b"<h1>Loom</h1>", true),
                ("a/b.txt", b"stored", false),
                ("long.bin", &long, true),
                ("raw.bin", &long, false),
                (".secret", b"secret", false),
                ("a/.git/up.txt", b"up", false),
            ],
        );
        let store = ZipStore::open(&path).unwrap();
        assert_eq!(store.len(), 4);
        let main = async move {
            for _ in 0..2 {
                for (path, range, expected) in [
                    ("/", None, &b"<h1>Loom</h1>"[..]),
                    ("/a/b.txt", None, b"stored"),
                    ("/long.bin", None, &long),
                    ("/raw.bin", None, &long),
                    ("/long.bin", Some("bytes=1000-1999"), &long[1000..2000]),
                    ("/raw.bin", Some("bytes=-5"), &long[long.len() - 5..]),
                ] {
                    let (status, content) = get(&store, path, range).await;
                    assert_eq!(status.as_u16(), if range.is_some() { 206 } else { 200 }, "{path}");
                    assert!(content == expected, "{path}");
                }
            }
            for (path, status) in [("/a", 301), ("/.secret", 404), ("/a/.git/up.txt", 404), ("/nothing", 404)]
            {
                assert_eq!(get(&store, path, None).await.0.as_u16(), status, "{path}");
            }
        };
        round_robin_over(&mut EventLoop::new().unwrap(), main).unwrap();
    }

    #[test]
    fn what_is_no_archive_is_refused_and_what_is_broken_harms_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("site.zip");
        assert!(ZipStore::open(&path).unwrap_err().to_string().contains("site.zip: "));
        archive(&path, &[("a", &[7; 5000], true), ("b", b"stored", false)]);
        let whole = std::fs::read(&path).unwrap();
        // One byte after the other is wrong, and each archive is opened or refused.
        for at in 0..whole.len() {
            let mut broken = whole.clone();
            broken[at] ^= 0x5a;
            std::fs::write(&path, &broken).unwrap();
            let Ok(store) = ZipStore::open(&path) else { continue };
            let main = async move {
                for name in ["/a", "/b"] {
                    let (status, _) = get(&store, name, None).await;
                    assert!([200, 404, 503].contains(&status.as_u16()), "byte {at}: {status}");
                }
            };
            round_robin_over(&mut EventLoop::new().unwrap(), main).unwrap();
        }
    }
}
