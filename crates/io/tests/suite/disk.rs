//! Disk operations: they give the same results over a ring and over the blocking pool.

use crate::common::disk::{both, byte, errno, is_pattern, pattern};
use crate::common::ms;
use futures::future::{Either, join_all, select};
use selvedge_core::{spawn, yield_now};
use selvedge_io::fs::{self, AlignedBuf, File, OpenOptions};
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::pin::pin;

#[test]
fn a_file_is_created_written_read_and_described() {
    both(|| async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new");
        let file =
            File::options().read(true).write(true).create_new(true).mode(0o600).open(&path).await.unwrap();
        assert_eq!(file.path(), path);
        assert_eq!(file.len().await.unwrap(), 0);
        let (written, bytes) = file.write_all_at(b"hello world".to_vec(), 0).await;
        written.unwrap();
        assert_eq!(bytes, b"hello world");
        let (written, mut aligned) = file.write_at(AlignedBuf::new(3), 11).await;
        assert_eq!(written.unwrap(), 3);
        aligned.set_len(100);
        file.sync_data().await.unwrap();
        file.sync_all().await.unwrap();

        let (read, bytes) = file.read_at(vec![0; 5], 6).await;
        assert_eq!((read.unwrap(), &bytes[..]), (5, &b"world"[..]));
        let (read, bytes) = file.read_at(aligned, 6).await;
        assert_eq!((read.unwrap(), &bytes[..8]), (8, &b"world\0\0\0"[..]), "short at the end");
        let (read, _) = file.read_at(vec![1; 5], 14).await;
        assert_eq!(read.unwrap(), 0, "the end");
        let (read, _) = file.read_at(vec![1; 5], 1 << 40).await;
        assert_eq!(read.unwrap(), 0, "far behind the end");
        let (read, bytes) = file.read_exact_at(vec![0; 4], 7).await;
        read.unwrap();
        assert_eq!(bytes, b"orld");
        let (read, bytes) = file.read_exact_at(vec![0; 4], 12).await;
        assert_eq!((read.unwrap_err().kind(), bytes.len()), (ErrorKind::UnexpectedEof, 4));
        assert_eq!(&file.read_aligned_at(0, 5).await.unwrap()[..], b"hello");
        assert_eq!(file.read_aligned_at(12, 100).await.unwrap().len(), 2);
        assert_eq!(file.read_aligned_at(100, 100).await.unwrap().len(), 0);

        let (mine, std) = (file.metadata().await.unwrap(), std::fs::metadata(&path).unwrap());
        let by_path = fs::metadata(&path).await.unwrap();
        for mine in [mine, by_path] {
            use std::os::unix::fs::MetadataExt;
            assert_eq!(
                (mine.len(), mine.ino(), mine.dev(), mine.mode(), mine.nlink()),
                (14, std.ino(), std.dev(), std.mode(), 1)
            );
            assert_eq!(
                (mine.modified().unwrap(), mine.uid(), mine.blocks()),
                (std.modified().unwrap(), std.uid(), std.blocks())
            );
            assert_eq!(mine.mode() & 0o777, 0o600);
            assert!(mine.is_file() && !mine.is_dir());
        }
        assert!(fs::metadata(directory.path()).await.unwrap().is_dir());
    });
}

/// Some system calls take an offset of all ones for the file's own position.
#[test]
fn an_offset_that_no_file_has_is_an_error() {
    both(|| async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, b"content".to_vec()).await.unwrap();
        let file = File::options().read(true).write(true).open(&path).await.unwrap();
        for offset in [u64::MAX, u64::MAX - 1, 1 << 63] {
            let errors = [
                file.read_at(vec![0; 4], offset).await.0.unwrap_err(),
                file.read_at(AlignedBuf::new(4), offset).await.0.unwrap_err(),
                file.read_exact_at(vec![0; 4], offset).await.0.unwrap_err(),
                file.read_aligned_at(offset, 4).await.unwrap_err(),
                file.write_at(vec![0; 4], offset).await.0.unwrap_err(),
                file.write_at(AlignedBuf::new(4), offset).await.0.unwrap_err(),
                file.write_all_at(vec![0; 4], offset).await.0.unwrap_err(),
            ];
            for error in errors {
                assert_eq!(errno(&error), Some(libc::EINVAL), "{offset}: {error}");
            }
        }
        assert_eq!(fs::read(&path).await.unwrap(), b"content");
    });
}

#[test]
fn whole_files() {
    both(|| async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        for content in [vec![], vec![7; 10], (0..3_000_000).map(byte).collect::<Vec<u8>>()] {
            fs::write(&path, content.clone()).await.unwrap();
            assert!(fs::read(&path).await.unwrap() == content);
        }
        // This file does not tell its length.
        assert!(fs::read("/proc/self/status").await.unwrap().starts_with(b"Name:"));
        let kept = File::create(&path).await.unwrap();
        assert_eq!(kept.len().await.unwrap(), 0, "create empties");
        let appending = OpenOptions::new().append(true).open(&path).await.unwrap();
        appending.write_all_at(b"one".to_vec(), 0).await.0.unwrap();
        appending.write_all_at(b"two".to_vec(), 0).await.0.unwrap();
        assert_eq!(fs::read(&path).await.unwrap(), b"onetwo");
    });
}

#[test]
fn errors_name_the_file_and_keep_their_number() {
    both(|| async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("no");
        let error = File::open(&path).await.unwrap_err();
        assert_eq!((error.kind(), errno(&error)), (ErrorKind::NotFound, Some(libc::ENOENT)));
        assert_eq!(error.to_string(), format!("open {}: No such file or directory", path.display()));
        assert_eq!(fs::metadata(&path).await.unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(fs::read(&path).await.unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(errno(&File::open("a\0b").await.unwrap_err()), None);
        assert_eq!(errno(&OpenOptions::new().open(&path).await.unwrap_err()), Some(libc::EINVAL));

        let error = fs::read(directory.path()).await.unwrap_err();
        assert_eq!(errno(&error), Some(libc::EISDIR));
        let error = File::create(directory.path()).await.unwrap_err();
        assert_eq!(errno(&error), Some(libc::EISDIR));
        let taken = OpenOptions::new().write(true).create_new(true).open(directory.path()).await.unwrap_err();
        assert_eq!(errno(&taken), Some(libc::EEXIST));

        let full = OpenOptions::new().write(true).open("/dev/full").await.unwrap();
        let (written, bytes) = full.write_at(vec![1; 10], 0).await;
        assert_eq!((errno(&written.unwrap_err()), bytes.len()), (Some(libc::ENOSPC), 10));
        let (read, bytes) = full.read_at(vec![1; 10], 0).await;
        let error = read.unwrap_err();
        assert_eq!((errno(&error), bytes.len()), (Some(libc::EBADF), 10));
        assert_eq!(error.to_string(), "read /dev/full: Bad file descriptor");
        assert_eq!(errno(&full.sync_all().await.unwrap_err()), Some(libc::EINVAL));
    });
}

#[test]
fn direct_access_wants_alignment() {
    both(|| async {
        let on_disk = pattern(16384);
        let file = File::options().read(true).direct(true).open(on_disk.path()).await.unwrap();
        let block = file.read_aligned_at(4096, 4096).await.unwrap();
        assert!(block.len() == 4096 && is_pattern(&block, 4096));
        let (read, block) = file.read_at(block, 8192).await;
        assert!(read.unwrap() == 4096 && is_pattern(&block, 8192));
        assert_eq!(file.read_aligned_at(12288, 8192).await.unwrap().len(), 4096, "short at the end");
        assert_eq!(errno(&file.read_aligned_at(1, 4096).await.unwrap_err()), Some(libc::EINVAL));
        let (read, _) = file.read_at(vec![0; 100], 0).await;
        assert_eq!(errno(&read.unwrap_err()), Some(libc::EINVAL));
    });
}

#[test]
fn ten_thousand_at_once_get_what_is_theirs() {
    for direct in [true, false] {
        both(|| async move {
            const BLOCKS: usize = 512;
            let on_disk = pattern(BLOCKS * 4096);
            let file = File::options().read(true).direct(direct).open(on_disk.path()).await.unwrap();
            let readers: Vec<_> = (0..10_000)
                .map(|i| {
                    let file = file.clone();
                    spawn(async move {
                        let offset = i * 7919 % BLOCKS * 4096;
                        let block = file.read_aligned_at(offset as u64, 4096).await.unwrap();
                        assert!(block.len() == 4096 && is_pattern(&block, offset), "{offset}");
                    })
                })
                .collect();
            for reader in readers {
                reader.await.unwrap();
            }
        });
    }
}

#[test]
fn reads_and_writes_mix_with_sockets_and_time() {
    both(|| async {
        let on_disk = pattern(1 << 20);
        let file = OpenOptions::new().read(true).write(true).open(on_disk.path()).await.unwrap();
        let (one, other) = selvedge_io::net::UnixStream::pair().unwrap();
        let echo = spawn(async move {
            let mut buffer = [0; 8];
            while other.read(&mut buffer).await.unwrap() > 0 {
                selvedge_io::time::sleep(ms(1)).await;
                other.write_all(&buffer).await.unwrap();
            }
        });
        let writers: Vec<_> = (0..64)
            .map(|i: u64| {
                let file = file.clone();
                spawn(async move {
                    for round in 0..20u8 {
                        let (written, block) = file.write_all_at(vec![round; 4096], i * 4096).await;
                        written.unwrap();
                        let (read, block) = file.read_exact_at(block, i * 4096).await;
                        read.unwrap();
                        assert!(block.iter().all(|&b| b == round));
                    }
                })
            })
            .collect();
        for i in 0..50u64 {
            one.write_all(&i.to_le_bytes()).await.unwrap();
            let mut back = [0; 8];
            one.read_exact(&mut back).await.unwrap();
            assert_eq!(u64::from_le_bytes(back), i);
        }
        drop(one);
        for writer in writers {
            writer.await.unwrap();
        }
        echo.await.unwrap();
    });
}

#[test]
fn within_combinators() {
    both(|| async {
        let on_disk = pattern(1 << 20);
        let file = File::options().read(true).direct(true).open(on_disk.path()).await.unwrap();
        let all = join_all((0..200).map(|i| file.read_aligned_at(i * 4096, 4096))).await;
        for (i, block) in all.into_iter().enumerate() {
            assert!(is_pattern(&block.unwrap(), i * 4096));
        }
        // The loser is dropped in any of its states.
        for i in 0..200u64 {
            let slow = pin!(file.read_aligned_at(i * 4096, 4096));
            let quick = pin!(async {
                for _ in 0..i % 4 {
                    yield_now().await;
                }
            });
            if let Either::Left((block, _)) = select(slow, quick).await {
                assert!(is_pattern(&block.unwrap(), i as usize * 4096));
            }
        }
        let timed = selvedge_io::time::timeout(ms(10_000), file.read_aligned_at(0, 4096)).await;
        assert!(is_pattern(&timed.unwrap().unwrap(), 0));
    });
}

#[test]
fn a_dropped_file_is_closed_once_nothing_uses_it() {
    both(|| async {
        let on_disk = pattern(8192);
        let file = OpenOptions::new().read(true).open(on_disk.path()).await.unwrap();
        let read = {
            let file = file.clone();
            spawn(async move { file.read_aligned_at(0, 8192).await.unwrap().len() })
        };
        drop(file);
        assert_eq!(read.await.unwrap(), 8192);
        drop(OpenOptions::new().read(true).open(on_disk.path()).await.unwrap());
        // A file that leaves all threads is closed where it is dropped.
        let file = File::open(on_disk.path()).await.unwrap();
        let _ = file.as_fd();
        std::thread::spawn(move || drop(file)).join().unwrap();
    });
}

#[test]
fn under_foreign_executors() {
    let on_disk = pattern(65536);
    let path: PathBuf = on_disk.path().into();
    let work = async move {
        let file = File::options().read(true).direct(true).open(&path).await.unwrap();
        let all = join_all((0..100).map(|i| file.read_aligned_at(i % 16 * 4096, 4096))).await;
        for (i, block) in all.into_iter().enumerate() {
            assert!(is_pattern(&block.unwrap(), i % 16 * 4096));
        }
        let mut dropped = Box::pin(file.read_aligned_at(0, 4096));
        assert!(futures::poll!(&mut dropped).is_pending());
        drop(dropped);
        fs::read(&path).await.unwrap().len()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    assert_eq!(runtime.block_on(runtime.spawn(work)).unwrap(), 65536);
}

#[test]
fn a_thread_with_all_reads_in_memory_lets_others_run() {
    both(|| async {
        let on_disk = pattern(4096);
        let file = File::open(on_disk.path()).await.unwrap();
        let others = std::rc::Rc::new(std::cell::Cell::new(0));
        let counter = others.clone();
        drop(selvedge_core::spawn_local(async move {
            loop {
                counter.set(counter.get() + 1);
                yield_now().await;
            }
        }));
        for _ in 0..1000 {
            file.read_aligned_at(0, 4096).await.unwrap();
        }
        assert!(others.get() >= 20, "{}", others.get());
    });
}
