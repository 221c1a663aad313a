//! Functions that the tests of disk operations share.

use selvedge_core::{Events, round_robin_over};
use selvedge_io::EventLoop;
use selvedge_io::fs::Driver;
use std::future::Future;
use std::io::Write;
use tempfile::NamedTempFile;

/// Runs `main` with each of the two drivers. A test that hangs fails after a minute.
pub(crate) fn both<F: Future<Output = ()> + 'static>(main: impl Fn() -> F) {
    for driver in [Driver::Ring, Driver::Pool] {
        run(driver, main());
    }
}

pub(crate) fn run<F: Future + 'static>(driver: Driver, main: F) -> F::Output {
    let main = async { selvedge_io::time::timeout(super::ms(60_000), main).await.expect("the test hangs") };
    let mut events = EventLoop::with_driver(driver).unwrap();
    let output = round_robin_over(&mut events, main).unwrap();
    assert_eq!(events.armed(), 0, "{driver:?}");
    output
}

/// The byte at an offset of a file of `pattern`.
pub(crate) fn byte(offset: usize) -> u8 {
    (offset / 4096 * 31 + offset % 251) as u8
}

/// A file with a known content.
pub(crate) fn pattern(length: usize) -> NamedTempFile {
    on_disk(&(0..length).map(byte).collect::<Vec<u8>>())
}

/// A file with this content, on a disk. It is not in `/tmp`, because `/tmp` may be memory, which
/// does not support direct access.
pub(crate) fn on_disk(content: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    file.write_all(content).unwrap();
    file.as_file().sync_all().unwrap();
    file
}

pub(crate) fn is_pattern(bytes: &[u8], offset: usize) -> bool {
    bytes.iter().enumerate().all(|(i, &b)| b == byte(offset + i))
}

/// The number of the operating system's error that is the source of `error`.
pub(crate) fn errno(error: &std::io::Error) -> Option<i32> {
    error.get_ref()?.source()?.downcast_ref::<std::io::Error>()?.raw_os_error()
}
