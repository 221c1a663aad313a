//! A file as a stream: its position moves as that of the standard library's file, and stays where
//! it is after every call that fails or is given up.

use crate::common::disk::{both, byte, errno, is_pattern, pattern};
use crate::common::ms;
use futures::future::{Either, select};
use proptest::prelude::*;
use selvedge_core::{spawn, yield_now};
use selvedge_io::fs::{self, File, OpenOptions};
use selvedge_io::io::{BufReader, Read};
use selvedge_io::time::timeout;
use std::io::{ErrorKind, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::pin::pin;

#[derive(Clone, Debug)]
enum Step {
    Read(usize),
    ReadExact(usize),
    ReadToEnd,
    Write(usize),
    WriteAll(usize),
    Seek(SeekFrom),
    Rewind,
    SetLen(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let length = || prop_oneof![4 => 0..300_usize, 1 => 0..150_000_usize];
    prop_oneof![
        3 => length().prop_map(Step::Read),
        2 => length().prop_map(Step::ReadExact),
        1 => Just(Step::ReadToEnd),
        3 => length().prop_map(Step::Write),
        3 => length().prop_map(Step::WriteAll),
        2 => (0..200_000_u64).prop_map(|to| Step::Seek(SeekFrom::Start(to))),
        2 => (-5000..5000_i64).prop_map(|by| Step::Seek(SeekFrom::Current(by))),
        2 => (-5000..5000_i64).prop_map(|by| Step::Seek(SeekFrom::End(by))),
        1 => Just(Step::Rewind),
        1 => (0..100_000_u64).prop_map(Step::SetLen),
    ]
}

/// What a step has returned: a number, or bytes, or the kind of its error.
type Outcome = Result<(u64, Vec<u8>), ErrorKind>;

async fn take(file: &mut File, number: usize, step: &Step) -> Outcome {
    let outcome = async {
        Ok(match *step {
            Step::Read(length) => {
                // One read may be short, for either file.
                let (mut buffer, mut filled) = (vec![0; length], 0);
                while filled < length
                    && let read @ 1.. = file.read(&mut buffer[filled..]).await?
                {
                    filled += read;
                }
                buffer.truncate(filled);
                (filled as u64, buffer)
            }
            Step::ReadExact(length) => {
                let mut buffer = vec![0; length];
                file.read_exact(&mut buffer).await?;
                (0, buffer)
            }
            Step::ReadToEnd => (0, file.read_to_end().await?),
            Step::Write(length) => {
                let (bytes, mut done) = (vec![number as u8; length], 0);
                while done < length {
                    done += file.write(&bytes[done..]).await?;
                }
                (done as u64, Vec::new())
            }
            Step::WriteAll(length) => {
                file.write_all(&vec![number as u8; length]).await?;
                (0, Vec::new())
            }
            Step::Seek(to) => (file.seek(to).await?, Vec::new()),
            Step::Rewind => (file.rewind().await.map(|()| 0)?, Vec::new()),
            Step::SetLen(length) => (file.set_len(length).await.map(|()| 0)?, Vec::new()),
        })
    };
    outcome.await.map_err(|error: std::io::Error| error.kind())
}

fn take_by_std(file: &mut std::fs::File, number: usize, step: &Step) -> Outcome {
    use std::io::{Read, Seek, Write};
    let start = file.stream_position().unwrap();
    let mut outcome = || {
        Ok(match *step {
            Step::Read(length) => {
                let mut buffer = Vec::new();
                let read = Read::by_ref(file).take(length as u64).read_to_end(&mut buffer)?;
                (read as u64, buffer)
            }
            Step::ReadExact(length) => {
                let mut buffer = vec![0; length];
                file.read_exact(&mut buffer)?;
                (0, buffer)
            }
            Step::ReadToEnd => {
                let mut buffer = Vec::new();
                file.read_to_end(&mut buffer)?;
                (0, buffer)
            }
            Step::Write(length) => {
                file.write_all(&vec![number as u8; length])?;
                (length as u64, Vec::new())
            }
            Step::WriteAll(length) => {
                file.write_all(&vec![number as u8; length])?;
                (0, Vec::new())
            }
            Step::Seek(to) => (file.seek(to)?, Vec::new()),
            Step::Rewind => (file.rewind().map(|()| 0)?, Vec::new()),
            Step::SetLen(length) => (file.set_len(length).map(|()| 0)?, Vec::new()),
        })
    };
    let outcome = outcome().map_err(|error: std::io::Error| error.kind());
    if outcome.is_err() {
        // Ours stays where it was after an error.
        file.seek(SeekFrom::Start(start)).unwrap();
    }
    outcome
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_does_what_the_standard_librarys_file_does(steps in prop::collection::vec(step(), 1..40)) {
        use std::io::Seek;
        both(|| {
            let steps = steps.clone();
            async move {
                let directory = tempfile::tempdir().unwrap();
                let (ours, theirs) = (directory.path().join("ours"), directory.path().join("theirs"));
                let mut file =
                    File::options().read(true).write(true).create_new(true).open(&ours).await.unwrap();
                let mut other = std::fs::File::create_new(&theirs).unwrap();
                for (number, step) in steps.iter().enumerate() {
                    let outcome = take(&mut file, number, step).await;
                    let expected = take_by_std(&mut other, number, step);
                    assert!(outcome == expected, "step {number}, {step:?}");
                    assert_eq!(file.position(), other.stream_position().unwrap(), "step {number}, {step:?}");
                }
                assert!(std::fs::read(ours).unwrap() == std::fs::read(theirs).unwrap());
            }
        });
    }
}

#[test]
fn appended_bytes_go_to_the_end_and_the_position_stays() {
    both(|| async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        let mut one = options.open(&path).await.unwrap();
        let mut other = options.open(&path).await.unwrap();
        for round in 0..3 {
            one.write_all(format!("one {round}\n").as_bytes()).await.unwrap();
            assert_eq!(other.write(b"other\n").await.unwrap(), 6);
        }
        assert_eq!((one.position(), other.position()), (0, 0));
        let expected = "one 0\nother\none 1\nother\none 2\nother\n";
        assert_eq!(one.read_to_string().await.unwrap(), expected);
        one.write_all(&vec![b'x'; 200_000]).await.unwrap();
        assert_eq!(one.position(), expected.len() as u64);
        assert_eq!(one.read_to_end().await.unwrap().len(), 200_000);
        assert_eq!(other.seek(SeekFrom::End(0)).await.unwrap(), 200_000 + expected.len() as u64);
    });
}

#[test]
fn after_an_error_the_position_is_where_it_was() {
    both(|| async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, b"warp\xff").await.unwrap();
        let mut file = File::open(&path).await.unwrap();
        file.set_position(1);
        let error = file.read_exact(&mut [0; 10]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        assert_eq!(error.to_string(), format!("read {}: unexpected end of file", path.display()));
        assert_eq!(file.read_to_string().await.unwrap_err().kind(), ErrorKind::InvalidData);
        assert_eq!(errno(&file.write(b"x").await.unwrap_err()), Some(libc::EBADF));
        assert_eq!(errno(&file.write_all(b"x").await.unwrap_err()), Some(libc::EBADF));
        for to in
            [SeekFrom::Current(-2), SeekFrom::End(-6), SeekFrom::Start(1 << 63), SeekFrom::End(i64::MAX)]
        {
            let error = file.seek(to).await.unwrap_err();
            assert_eq!((errno(&error), error.kind()), (Some(libc::EINVAL), ErrorKind::InvalidInput));
        }
        assert_eq!(file.position(), 1);
        file.set_position(u64::MAX);
        assert_eq!(errno(&file.read(&mut [0]).await.unwrap_err()), Some(libc::EINVAL));
        assert_eq!(file.position(), u64::MAX);

        let mut full = OpenOptions::new().write(true).open("/dev/full").await.unwrap();
        assert_eq!(errno(&full.write_all(&[1; 100_000]).await.unwrap_err()), Some(libc::ENOSPC));
        assert_eq!(full.position(), 0);

        let mut here = File::open(directory.path()).await.unwrap();
        assert_eq!(errno(&here.read(&mut [0]).await.unwrap_err()), Some(libc::EISDIR));
    });
}

#[test]
fn lines_and_whole_files() {
    both(|| async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("text");
        fs::write(&path, "warp\r\nweft\n\nselvedge").await.unwrap();
        let mut lines = File::open(&path).await.unwrap().lines();
        for expected in ["warp", "weft", "", "selvedge"] {
            assert_eq!(lines.next().await.unwrap().as_deref(), Some(expected));
        }
        assert_eq!(lines.next().await.unwrap(), None);

        let mut reader = BufReader::new(File::open(&path).await.unwrap());
        let mut line = String::new();
        assert_eq!(reader.read_line(&mut line).await.unwrap(), 6);
        assert_eq!(line, "warp\r\n");
        assert_eq!(Read::read_to_string(&mut reader).await.unwrap(), "weft\n\nselvedge");

        // A clone begins where the file stands, and then moves by itself.
        let mut file = File::open(&path).await.unwrap();
        file.seek(SeekFrom::Start(6)).await.unwrap();
        let mut clone = file.clone();
        assert_eq!(clone.read_to_string().await.unwrap(), "weft\n\nselvedge");
        assert_eq!((file.position(), clone.position()), (6, 20));
        let by_reference = Read::read_to_end(&mut &mut file).await.unwrap();
        assert_eq!(by_reference, b"weft\n\nselvedge");

        // This file does not tell its length.
        let mut status = File::open("/proc/self/status").await.unwrap();
        status.set_position(5);
        assert!(!status.read_to_string().await.unwrap().starts_with("Name:"));
    });
}

#[test]
fn direct_access_goes_by_blocks() {
    both(|| async {
        let on_disk = pattern(100 * 4096);
        let mut file = File::options().read(true).direct(true).open(on_disk.path()).await.unwrap();
        let mut buffer = vec![0; 8192];
        for round in 0..50 {
            file.read_exact(&mut buffer).await.unwrap();
            assert!(is_pattern(&buffer, round * 8192));
            assert!(!file.was_in_memory());
        }
        assert_eq!(file.read(&mut buffer).await.unwrap(), 0);
    });
}

#[test]
fn a_read_that_is_given_up_takes_nothing() {
    for direct in [true, false] {
        both(move || async move {
            const BLOCKS: usize = 64;
            let on_disk = pattern(BLOCKS * 4096);
            let mut file = File::options().read(true).direct(direct).open(on_disk.path()).await.unwrap();
            let (mut block, mut buffer, mut given_up) = (0, vec![0; 4096], 0);
            while block < BLOCKS {
                let yields = given_up % 3;
                let quick = pin!(async move {
                    for _ in 0..yields {
                        yield_now().await;
                    }
                });
                let read = match select(pin!(file.read_exact(&mut buffer)), quick).await {
                    Either::Left((read, _)) => Some(read),
                    Either::Right(_) => None,
                };
                match read {
                    Some(read) => {
                        read.unwrap();
                        assert!(is_pattern(&buffer, block * 4096));
                        block += 1;
                    }
                    None if given_up < 500 => given_up += 1,
                    None => {
                        file.read_exact(&mut buffer).await.unwrap();
                        assert!(is_pattern(&buffer, block * 4096));
                        block += 1;
                    }
                }
                assert_eq!(file.position(), block as u64 * 4096);
            }
        });
    }
}

#[test]
fn a_write_that_is_given_up_never_lands_upon_a_later_one() {
    both(|| async {
        let directory = tempfile::tempdir().unwrap();
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let path = directory.path().join(writer.to_string());
                spawn(async move {
                    let mut file =
                        File::options().read(true).write(true).create(true).open(&path).await.unwrap();
                    for round in 0..200_usize {
                        let old = vec![byte(round); 20_000];
                        let quick = pin!(async {
                            for _ in 0..round % 4 {
                                yield_now().await;
                            }
                        });
                        let written = match select(pin!(file.write_all(&old)), quick).await {
                            Either::Left((written, _)) => Some(written),
                            Either::Right(_) => None,
                        };
                        if let Some(written) = written {
                            written.unwrap();
                            file.rewind().await.unwrap();
                        }
                        assert_eq!(file.position(), 0);
                        file.write_all(&[round as u8; 20_000]).await.unwrap();
                        file.rewind().await.unwrap();
                        let content = file.read_to_end().await.unwrap();
                        assert!(content == [round as u8; 20_000], "{writer}, {round}");
                        file.rewind().await.unwrap();
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap();
        }
    });
}

#[test]
fn a_file_goes_from_run_to_run_with_a_write_that_was_given_up() {
    use crate::common::disk::run;
    use selvedge_io::fs::Driver;

    for driver in [Driver::Ring, Driver::Pool] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let mut file = {
            let mut events = selvedge_io::EventLoop::with_driver(driver).unwrap();
            let main = async move {
                let mut file = File::options().read(true).write(true).create(true).open(path).await.unwrap();
                assert!(futures::poll!(pin!(file.write_all(b"warp and weft"))).is_pending());
                file
            };
            selvedge_core::round_robin_over(&mut events, main).unwrap()
        };
        let content = run(driver, async move {
            file.write_all(b"weft").await.unwrap();
            file.set_len(4).await.unwrap();
            file.rewind().await.unwrap();
            file.read_to_string().await.unwrap()
        });
        assert_eq!(content, "weft");
    }
}

#[test]
fn under_a_foreign_executor() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let work = async move {
        let mut file = File::create_new(&path).await.unwrap();
        drop(timeout(ms(0), file.write_all(&[1; 100_000])).await);
        file.write_all(&[2; 100_000]).await.unwrap();
        assert_eq!(File::create_new(&path).await.unwrap_err().kind(), ErrorKind::AlreadyExists);
        file.rewind().await.unwrap();
        let content = file.read_to_end().await.unwrap();
        content.starts_with(&[2; 100_000])
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    assert!(runtime.block_on(runtime.spawn(work)).unwrap());
}

/// The combinations that the standard library refuses are refused, and no other.
#[test]
fn options_that_contradict_each_other() {
    both(|| async {
        let directory = tempfile::tempdir().unwrap();
        for bits in 0..64_u32 {
            let [read, write, append, truncate, create, new] =
                std::array::from_fn(|bit| bits >> bit & 1 == 1);
            let (ours, theirs) =
                (directory.path().join(format!("o{bits}")), directory.path().join(format!("t{bits}")));
            for round in 0..2 {
                let mut options = OpenOptions::new();
                options.read(read).write(write).append(append).truncate(truncate);
                let ours = options.create(create).create_new(new).open(&ours).await;
                let mut options = std::fs::OpenOptions::new();
                options.read(read).write(write).append(append).truncate(truncate);
                let theirs = options.create(create).create_new(new).open(&theirs);
                assert_eq!(ours.is_ok(), theirs.is_ok(), "{bits:b}, {round}");
                if let (Err(ours), Err(theirs)) = (ours, theirs) {
                    assert_eq!(ours.kind(), theirs.kind(), "{bits:b}, {round}");
                }
            }
        }
    });
}

#[test]
fn names_say_what_the_standard_librarys_say() {
    async fn same(path: &Path) {
        use std::os::unix::fs::FileTypeExt;
        let (ours, theirs) =
            (fs::symlink_metadata(path).await.unwrap(), std::fs::symlink_metadata(path).unwrap());
        assert_eq!(ours.permissions(), theirs.permissions());
        assert_eq!(ours.modified().unwrap(), theirs.modified().unwrap());
        assert_eq!(ours.accessed().unwrap(), theirs.accessed().unwrap());
        assert_eq!(ours.created().ok(), theirs.created().ok());
        let (ours, theirs) = (ours.file_type(), theirs.file_type());
        assert_eq!(
            [ours.is_file(), ours.is_dir(), ours.is_symlink(), ours.is_fifo(), ours.is_socket()],
            [theirs.is_file(), theirs.is_dir(), theirs.is_symlink(), theirs.is_fifo(), theirs.is_socket()]
        );
        assert_eq!(
            [ours.is_block_device(), ours.is_char_device()],
            [theirs.is_block_device(), theirs.is_char_device()]
        );
    }

    both(|| async {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), "content").await.unwrap();
        fs::set_permissions(at("file"), fs::Permissions::from_mode(0o640)).await.unwrap();
        fs::create_dir(at("sub")).await.unwrap();
        fs::symlink("nowhere", at("link")).await.unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();

        let entries = fs::read_dir(directory.path()).await.unwrap();
        let names: Vec<_> = entries.iter().map(|entry| entry.file_name()).collect();
        assert_eq!(names, ["fifo", "file", "link", "socket", "sub"]);
        for entry in entries {
            assert_eq!(entry.path(), directory.path().join(entry.file_name()));
            let metadata = entry.metadata().await.unwrap();
            assert_eq!(metadata.file_type(), entry.file_type().unwrap());
            assert_eq!(
                metadata.ino(),
                std::os::unix::fs::MetadataExt::ino(&std::fs::symlink_metadata(entry.path()).unwrap())
            );
            same(&entry.path()).await;
        }
        same(Path::new("/dev/null")).await;

        assert!(fs::exists(at("file")).await.unwrap());
        assert!(!fs::exists(at("link")).await.unwrap(), "it leads nowhere");
        assert!(!fs::exists(at("none/none")).await.unwrap());
        let ours = fs::exists(at("file/none")).await.map_err(|error| error.kind());
        assert_eq!(ours, std::fs::exists(at("file/none")).map_err(|error| error.kind()));
        assert!(ours.is_err());
    });
}

/// A FIFO in a directory of its own.
fn fifo() -> (tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    (directory, path)
}

#[test]
fn a_fifo_is_read_and_written_from_the_position_on() {
    both(|| async {
        let (_directory, path) = fifo();
        let mut reader = File::open(&path).await.unwrap();
        let mut writer = OpenOptions::new().write(true).open(&path).await.unwrap();
        // The reader waits before there is anything to read.
        let reading = spawn(async move {
            let mut line = [0; 6];
            reader.read_exact(&mut line).await.unwrap();
            assert_eq!((&line, reader.position()), (b"first\n", 6));
            (reader.read_to_end().await.unwrap(), reader.position())
        });
        yield_now().await;
        writer.write_all(b"first\n").await.unwrap();
        assert_eq!(writer.position(), 6);
        // More than a FIFO holds, so the writer waits for the reader.
        let more: Vec<u8> = (0..300_000).map(byte).collect();
        writer.write_all(&more).await.unwrap();
        drop(writer);
        let (rest, position) = reading.await.unwrap();
        assert!(rest == more && position == 300_006);
    });
}

#[test]
fn a_read_of_a_fifo_that_is_given_up_loses_nothing() {
    both(|| async {
        let (_directory, path) = fifo();
        let mut reader = File::open(&path).await.unwrap();
        let mut writer = OpenOptions::new().write(true).open(&path).await.unwrap();
        let mut buffer = [0; 16];
        // The first one finds out that the file has no offsets.
        for _ in 0..2 {
            assert!(timeout(ms(5), reader.read(&mut buffer)).await.is_err());
        }
        writer.write_all(b"all of it").await.unwrap();
        assert_eq!(reader.read(&mut buffer).await.unwrap(), 9);
        assert_eq!(&buffer[..9], b"all of it");
        drop(writer);
        assert_eq!(reader.read(&mut buffer).await.unwrap(), 0);
        assert_eq!(fs::read(&path).await.unwrap(), b"", "a FIFO without a writer is at its end");
    });
}

#[test]
fn a_character_device_is_read_and_written() {
    both(|| async {
        let mut buffer = [1; 16];
        assert_eq!(File::open("/dev/zero").await.unwrap().read(&mut buffer).await.unwrap(), 16);
        assert_eq!(buffer, [0; 16]);
        let mut null = OpenOptions::new().write(true).open("/dev/null").await.unwrap();
        null.write_all(b"nothing").await.unwrap();
        // The kernel makes the two ends of a terminal.
        let master = rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY);
        let master = master.unwrap();
        rustix::pty::grantpt(&master).unwrap();
        rustix::pty::unlockpt(&master).unwrap();
        let name = rustix::pty::ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let mut terminal = OpenOptions::new().read(true).write(true).open(name).await.unwrap();
        terminal.write_all(b"prompt").await.unwrap();
        let mut shown = [0; 6];
        assert_eq!(rustix::io::read(&master, &mut shown).unwrap(), 6);
        assert_eq!(&shown, b"prompt");
        rustix::io::write(&master, b"answer\n").unwrap();
        let read = terminal.read(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..read], b"answer\n");
    });
}
