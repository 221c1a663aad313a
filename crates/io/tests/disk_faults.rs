//! The answers of a disk, over either driver: every error reaches the caller with its number, the
//! caller does not see interruptions, and short transfers are continued. (Faults belong to the
//! process, so this test has a file of its own.)

mod common;

use common::disk::errno;
use selvedge_core::round_robin_over;
use selvedge_io::EventLoop;
use selvedge_io::faults::{Call, Fault, Faults};
use selvedge_io::fs::{self, AlignedBuf, Driver, File};
use std::io::SeekFrom;

/// Makes every kind of operation once, and returns the first error.
async fn everything(path: std::path::PathBuf) -> std::io::Result<()> {
    let mut file = File::options().read(true).write(true).create(true).truncate(true).open(&path).await?;
    let content: Vec<u8> = (0..10_000).map(|i| i as u8).collect();
    file.write_all_at(content.clone(), 0).await.0?;
    file.sync_data().await?;
    file.sync_all().await?;
    let (read, bytes) = file.read_exact_at(vec![0; 10_000], 0).await;
    read?;
    assert!(bytes == content);
    let (read, aligned) = file.read_exact_at(AlignedBuf::new(5000), 5000).await;
    read?;
    assert!(aligned[..] == content[5000..]);
    assert!(content.starts_with(&file.read_aligned_at(0, 100).await?));
    assert_eq!(file.metadata().await?.len(), 10_000);
    assert!(fs::read(&path).await? == content);

    // And as a stream.
    assert_eq!(file.seek(SeekFrom::End(0)).await?, 10_000);
    file.write_all(&content).await?;
    assert_eq!((file.position(), file.rewind().await?), (20_000, ()));
    let mut first = vec![0; 10_000];
    file.read_exact(&mut first).await?;
    assert!(first == content && file.position() == 10_000);
    assert!(file.read_to_end().await? == content);
    assert_eq!(file.position(), 20_000);
    let mut log = File::options().append(true).open(&path).await?;
    log.write_all(b"end").await?;
    assert_eq!(fs::metadata(&path).await?.len(), 20_003);
    Ok(())
}

fn run(driver: Driver) -> std::io::Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let mut events = EventLoop::with_driver(driver).unwrap();
    round_robin_over(&mut events, everything(directory.path().join("file"))).unwrap()
}

/// Writes a file as a stream, while the disk is full from one write on and has room again later.
async fn while_it_is_full(path: std::path::PathBuf) {
    let content: Vec<u8> = (0..300_000).map(|i| (i / 7) as u8).collect();
    let mut file = File::create(&path).await.unwrap();
    file.write_all(&content[..1000]).await.unwrap();
    let full = Faults::everywhere(|call, nth| match (call, nth) {
        (Call::Pwrite, 0) => Some(Fault::Short(5000)),
        (Call::Pwrite, 2..) => Some(Fault::Errno(libc::ENOSPC)),
        _ => None,
    });
    let error = file.write_all(&content[1000..]).await.unwrap_err();
    assert_eq!(errno(&error), Some(libc::ENOSPC));
    assert_eq!(file.position(), 1000, "it is where it was");
    assert_eq!(errno(&file.write(b"x").await.unwrap_err()), Some(libc::ENOSPC));
    drop(full);
    file.write_all(&content[1000..]).await.unwrap();
    assert!(fs::read(&path).await.unwrap() == content);
}

#[test]
fn whatever_the_disk_answers() {
    for driver in [Driver::Ring, Driver::Pool] {
        let directory = tempfile::tempdir().unwrap();
        let mut events = EventLoop::with_driver(driver).unwrap();
        round_robin_over(&mut events, while_it_is_full(directory.path().join("file"))).unwrap();
    }
    const DISK: [Call; 5] = [Call::Open, Call::Pread, Call::Pwrite, Call::Sync, Call::Stat];
    for driver in [Driver::Ring, Driver::Pool] {
        run(driver).unwrap();
        for call in DISK {
            for number in
                [libc::EIO, libc::ENOSPC, libc::EDQUOT, libc::ENOMEM, libc::EMFILE, libc::EACCES, libc::EFBIG]
            {
                for nth in 0..if call == Call::Pwrite { 1 } else { 2 } {
                    let faults = Faults::everywhere(move |c, n| {
                        (c == call && n == nth).then_some(Fault::Errno(number))
                    });
                    // The pool repeats a failed read of data that is in memory.
                    if let Err(error) = run(driver) {
                        assert_eq!(errno(&error), Some(number), "{call:?} {error}");
                    } else {
                        assert!(
                            call == Call::Pread && driver == Driver::Pool,
                            "{driver:?} {call:?} {number}"
                        );
                    }
                    drop(faults);
                }
            }
            let interrupted =
                Faults::everywhere(move |c, n| (c == call && n % 2 == 0).then_some(Fault::INTERRUPTED));
            run(driver).unwrap();
            drop(interrupted);
        }
        let short =
            Faults::everywhere(|c, _| [Call::Pread, Call::Pwrite].contains(&c).then_some(Fault::Short(700)));
        run(driver).unwrap();
        drop(short);
    }
}
