//! Pipes and FIFOs.

use crate::common::{ms, run};
use rustix::pipe::{PipeFlags, pipe_with};
use selvedge_core::{Time, spawn, spawn_local};
use selvedge_io::NonBlocking;
use selvedge_io::pipe::{Receiver, Sender, pipe};
use selvedge_io::time::{sleep, timeout};
use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::rc::Rc;

#[test]
fn bytes_come_in_order_however_slow_the_reader() {
    run(async {
        let (sender, receiver) = pipe().unwrap();
        let writer = spawn(async move {
            for i in 0..100u32 {
                sender.write_all(&vec![i as u8; 10_000]).await.unwrap();
            }
        });
        for i in 0..100u32 {
            let mut piece = vec![0; 10_000];
            receiver.read_exact(&mut piece).await.unwrap();
            assert!(piece.iter().all(|&byte| byte == i as u8));
            if i % 20 == 0 {
                sleep(ms(2)).await;
            }
        }
        writer.await.unwrap();
        assert_eq!(receiver.read(&mut [0; 5]).await.unwrap(), 0);
        assert_eq!(receiver.read_exact(&mut [0; 5]).await.unwrap_err().kind(), ErrorKind::UnexpectedEof);
    });
}

#[test]
fn without_a_reader_writing_fails_also_while_it_waits() {
    run(async {
        let (sender, receiver) = pipe().unwrap();
        let writer = spawn(async move { sender.write_all(&vec![0; 1 << 20]).await });
        sleep(ms(5)).await;
        drop(receiver);
        assert_eq!(writer.await.unwrap().unwrap_err().kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn deadlines_and_giving_up() {
    run(async {
        let (sender, receiver) = pipe().unwrap();
        receiver.set_deadline(Some(Time::now() + ms(10)));
        assert_eq!(receiver.read(&mut [0]).await.unwrap_err().kind(), ErrorKind::TimedOut);
        receiver.set_deadline(None);
        assert!(timeout(ms(5), receiver.read(&mut [0])).await.is_err());
        sender.set_deadline(Some(Time::now() + ms(10)));
        assert_eq!(sender.write_all(&vec![1; 1 << 20]).await.unwrap_err().kind(), ErrorKind::TimedOut);
        assert_eq!(receiver.try_read(&mut [0; 100]).unwrap(), 100);
        drop(sender);
        let rest = receiver.read_to_end().await.unwrap();
        assert!(rest.len() >= 60_000 && rest.iter().all(|&byte| byte == 1), "{}", rest.len());
    });
}

#[test]
fn ends_from_elsewhere() {
    run(async {
        let (reader, writer) = std::io::pipe().unwrap();
        let (receiver, sender) =
            (Receiver::from_fd(reader.into()).unwrap(), Sender::from_fd(writer.into()).unwrap());
        let read = spawn(async move { receiver.read_to_end().await.unwrap() });
        sender.write_all(b"from elsewhere").await.unwrap();
        drop(sender.into_fd());
        assert_eq!(read.await.unwrap(), b"from elsewhere");
    });
}

fn fifo() -> (tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    (directory, path)
}

#[test]
fn the_ends_of_a_fifo_wait_for_each_other() {
    let (_directory, path) = fifo();
    run(async move {
        // The writer comes first, and waits for a reader.
        let to = path.clone();
        let writer = spawn(async move {
            let sender = Sender::open(to).await.unwrap();
            sender.write_all(b"hello").await.unwrap();
        });
        sleep(ms(10)).await;
        let receiver = Receiver::open(&path).await.unwrap();
        assert_eq!(receiver.read_to_end().await.unwrap(), b"hello");
        writer.await.unwrap();
        // The reader comes first: it finds no end before there was a writer.
        let receiver = Receiver::open(&path).await.unwrap();
        let reader = spawn(async move { receiver.read_to_end().await.unwrap() });
        sleep(ms(10)).await;
        let sender = Sender::open(&path).await.unwrap();
        sleep(ms(5)).await;
        sender.write_all(b"again").await.unwrap();
        drop(sender);
        assert_eq!(reader.await.unwrap(), b"again");
    });
}

#[test]
fn opening_a_fifo_can_be_given_up_and_errors_name_the_path() {
    let (directory, path) = fifo();
    run(async move {
        assert!(timeout(ms(20), Sender::open(&path)).await.is_err());
        let missing = directory.path().join("missing");
        let error = Receiver::open(&missing).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().starts_with(&format!("open {}: ", missing.display())), "{error}");
        let file = directory.path().join("file");
        std::fs::write(&file, "no pipe").unwrap();
        let error = Sender::open(&file).await.unwrap_err();
        assert_eq!(error.to_string(), format!("open {}: not a FIFO", file.display()));
        assert!(Receiver::open(&path).await.unwrap().as_fd().try_clone_to_owned().is_ok());
    });
}

/// A message that is larger than the pipe is written again and again. A writer that waits for room
/// is resumed when there is some, and makes no call in vain.
#[test]
fn no_call_fails_that_an_old_edge_has_called_for() {
    const MESSAGE: usize = 32 << 10;
    run(async {
        let (reader, writer) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC).unwrap();
        rustix::pipe::fcntl_setpipe_size(&writer, 4096).unwrap();
        let (reader, writer) = (NonBlocking::new(reader).unwrap(), NonBlocking::new(writer).unwrap());
        let failed = Rc::new(Cell::new(0));
        let counted = failed.clone();
        let sending = spawn_local(async move {
            for _ in 0..20 {
                let mut left = MESSAGE;
                writer
                    .write_with(|pipe| {
                        let written = rustix::io::write(pipe, &[1; MESSAGE][..left])
                            .inspect_err(|_| counted.set(counted.get() + 1))?;
                        left -= written;
                        if left == 0 { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
                    })
                    .await
                    .unwrap();
                // Reading the last piece causes an edge, and no waiter waits for it.
                sleep(ms(1)).await;
            }
        });
        let mut received = 0;
        while received < 20 * MESSAGE {
            let mut buffer = [0; 8192];
            received += reader.read_with(|pipe| Ok(rustix::io::read(pipe, &mut buffer)?)).await.unwrap();
        }
        sending.await.unwrap();
        assert_eq!(failed.get(), 0);
    });
}
