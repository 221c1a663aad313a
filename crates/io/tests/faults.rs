//! Every system call of the system-call layer is made to fail with every error that it can return,
//! is interrupted, and is cut short where the call may come back short. In every case nothing
//! leaks, nothing hangs, nothing panics, and no caller with a wrong result is told that its call
//! succeeded. (Faults belong to the process, so these tests have a file of their own.)

use libc::*;
use rustix::fs::{CWD, OFlags};
use selvedge_core::{RunError, Time, round_robin_over, spawn_local};
use selvedge_io::faults::{Call, Fault, Faults};
use selvedge_io::net::{TcpListener, TcpStream, UdpSocket, UnixListener, UnixStream, resolve};
use selvedge_io::pipe::pipe;
use selvedge_io::process::Command;
use selvedge_io::signal::{Signal, signals};
use selvedge_io::time::timeout;
use selvedge_io::{EventLoop, NonBlocking, blocking, fs, sys};
use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// The errors that each call can return, as its manual page says, except for errors that are no
/// failure: `EAGAIN` where it makes the caller wait for an event that the kernel then sends, and
/// `ENOTCONN` and `EINPROGRESS` for a connection under way.
fn errors(call: Call) -> &'static [i32] {
    const MAKE: &[i32] =
        &[EACCES, EAFNOSUPPORT, EINVAL, EMFILE, ENFILE, ENOBUFS, ENOMEM, EPROTONOSUPPORT, EOPNOTSUPP];
    const OPTION: &[i32] = &[EBADF, EFAULT, EINVAL, ENOPROTOOPT, ENOTSOCK, ENOBUFS, ENOMEM, EPERM];
    const SEND: &[i32] = &[
        EACCES,
        EALREADY,
        EBADF,
        ECONNRESET,
        EDESTADDRREQ,
        EFAULT,
        EINTR,
        EINVAL,
        EISCONN,
        EMSGSIZE,
        ENOBUFS,
        ENOMEM,
        ENOTCONN,
        ENOTSOCK,
        EOPNOTSUPP,
        EPIPE,
        ETIMEDOUT,
        EHOSTUNREACH,
        ENETDOWN,
        ENETUNREACH,
    ];
    const NAME: &[i32] = &[
        EACCES,
        EDQUOT,
        EEXIST,
        EINTR,
        EINVAL,
        EIO,
        ELOOP,
        EMLINK,
        ENAMETOOLONG,
        ENOENT,
        ENOMEM,
        ENOSPC,
        ENOTDIR,
        EPERM,
        EROFS,
        EXDEV,
    ];
    const RENAME: &[i32] = &[EBUSY, EDQUOT, EINVAL, EISDIR, ENOENT, ENOSPC, ENOTDIR, ENOTEMPTY, EPERM, EXDEV];
    match call {
        Call::Socket | Call::SocketPair => MAKE,
        Call::SetOption | Call::SocketError | Call::Unacknowledged => OPTION,
        Call::Bind => &[
            EACCES,
            EADDRINUSE,
            EBADF,
            EINVAL,
            ENOTSOCK,
            EADDRNOTAVAIL,
            EFAULT,
            ELOOP,
            ENAMETOOLONG,
            ENOENT,
            ENOMEM,
            ENOTDIR,
            EROFS,
            ENOBUFS,
        ],
        Call::Listen => &[EADDRINUSE, EBADF, ENOTSOCK, EOPNOTSUPP, ENOBUFS],
        Call::Accept => &[
            EBADF,
            ECONNABORTED,
            EFAULT,
            EINTR,
            EINVAL,
            EMFILE,
            ENFILE,
            ENOBUFS,
            ENOMEM,
            ENOTSOCK,
            EOPNOTSUPP,
            EPERM,
            EPROTO,
            ENETDOWN,
            ENOPROTOOPT,
            EHOSTDOWN,
            ENONET,
            EHOSTUNREACH,
            ENETUNREACH,
            ETIMEDOUT,
        ],
        Call::Connect => &[
            EACCES,
            EPERM,
            EADDRINUSE,
            EADDRNOTAVAIL,
            EAFNOSUPPORT,
            EAGAIN,
            EALREADY,
            EBADF,
            ECONNREFUSED,
            ECONNRESET,
            EFAULT,
            EINTR,
            EISCONN,
            ENETUNREACH,
            EHOSTUNREACH,
            ENOTSOCK,
            EPROTOTYPE,
            ETIMEDOUT,
            ENOENT,
        ],
        Call::LocalAddress | Call::PeerAddress => &[EBADF, EFAULT, EINVAL, ENOBUFS, ENOTSOCK],
        Call::Recv => &[
            EBADF,
            ECONNREFUSED,
            ECONNRESET,
            EFAULT,
            EINTR,
            EINVAL,
            ENOMEM,
            ENOTCONN,
            ENOTSOCK,
            ETIMEDOUT,
            EHOSTUNREACH,
            ENETUNREACH,
            EIO,
        ],
        Call::Send | Call::SendMsg => SEND,
        Call::SendFile => &[
            EBADF, EFAULT, EINTR, EINVAL, EIO, ENOMEM, EOVERFLOW, ESPIPE, ECONNRESET, ENOTCONN, EPIPE,
            ETIMEDOUT,
        ],
        Call::Shutdown => &[EBADF, EINVAL, ENOTCONN, ENOTSOCK],
        Call::Duplicate => &[EBADF, EINVAL, EMFILE, EBUSY],
        Call::GetFlags | Call::SetFlags => &[EBADF, EACCES, EINVAL, EPERM],
        Call::Resolve => &[ENOENT, ENOMEM, EMFILE, EAGAIN, EIO],
        Call::Open => &[
            EACCES,
            EBUSY,
            EDQUOT,
            EEXIST,
            EFAULT,
            EFBIG,
            EINTR,
            EINVAL,
            EIO,
            EISDIR,
            ELOOP,
            EMFILE,
            ENAMETOOLONG,
            ENFILE,
            ENODEV,
            ENOENT,
            ENOMEM,
            ENOSPC,
            ENOTDIR,
            ENXIO,
            EOPNOTSUPP,
            EOVERFLOW,
            EPERM,
            EROFS,
            ETXTBSY,
            EWOULDBLOCK,
        ],
        Call::Stat => &[EACCES, EBADF, EFAULT, EIO, ELOOP, ENAMETOOLONG, ENOENT, ENOMEM, ENOTDIR, EOVERFLOW],
        Call::Pread => &[EBADF, EFAULT, EINTR, EINVAL, EIO, EISDIR, ENXIO, EOVERFLOW, ESPIPE],
        Call::Pwrite => &[
            EBADF,
            EDESTADDRREQ,
            EDQUOT,
            EFAULT,
            EFBIG,
            EINTR,
            EINVAL,
            EIO,
            ENOSPC,
            ENXIO,
            EOVERFLOW,
            EPERM,
            EPIPE,
            ESPIPE,
        ],
        Call::EpollCreate => &[EINVAL, EMFILE, ENFILE, ENOMEM],
        Call::EpollControl => &[EBADF, EEXIST, EINVAL, ELOOP, ENOENT, ENOMEM, ENOSPC, EPERM],
        Call::EpollWait => &[EBADF, EFAULT, EINTR, EINVAL],
        Call::Eventfd => &[EINVAL, EMFILE, ENFILE, ENODEV, ENOMEM],
        Call::Sync => &[EBADF, EDQUOT, EINTR, EINVAL, EIO, ENOSPC, EROFS],
        Call::Truncate => &[EBADF, EFBIG, EINTR, EINVAL, EIO, EISDIR, EPERM, EROFS, ETXTBSY],
        Call::Seek => &[EBADF, EINVAL, ENXIO, EOVERFLOW, ESPIPE],
        Call::Lock => &[EBADF, EINTR, EINVAL, ENOMEM, EWOULDBLOCK],
        Call::ReadDirectory => &[EACCES, EBADF, EIO, EMFILE, ENFILE, ENOENT, ENOMEM, ENOTDIR],
        Call::MakeDirectory | Call::Symlink | Call::Link => NAME,
        Call::ReadLink => &[EACCES, EINVAL, EIO, ELOOP, ENAMETOOLONG, ENOENT, ENOMEM, ENOTDIR],
        Call::ChangeMode => &[EACCES, EIO, ELOOP, ENAMETOOLONG, ENOENT, ENOMEM, ENOTDIR, EPERM, EROFS],
        Call::Rename => RENAME,
        Call::Unlink => &[
            EACCES,
            EBUSY,
            EFAULT,
            EINVAL,
            EIO,
            EISDIR,
            ELOOP,
            ENAMETOOLONG,
            ENOENT,
            ENOMEM,
            ENOTDIR,
            ENOTEMPTY,
            EPERM,
            EROFS,
        ],
        Call::Pipe => &[EFAULT, EINVAL, EMFILE, ENFILE],
        Call::Read => &[EBADF, EFAULT, EINTR, EINVAL, EIO, EISDIR],
        Call::Write => {
            &[EBADF, EDESTADDRREQ, EDQUOT, EFAULT, EFBIG, EINTR, EINVAL, EIO, ENOSPC, EPERM, EPIPE]
        }
        Call::Spawn => &[E2BIG, EACCES, EAGAIN, EIO, EMFILE, ENFILE, ENOENT, ENOEXEC, ENOMEM, EPERM, ETXTBSY],
        Call::SignalAction => &[EFAULT, EINVAL],
        Call::RingSetup => &[EFAULT, EINVAL, EMFILE, ENFILE, ENOMEM, ENOSYS, EPERM],
        Call::RingRegister => {
            &[EACCES, EBADF, EBUSY, EEXIST, EFAULT, EINVAL, EMFILE, ENOMEM, ENXIO, EOPNOTSUPP]
        }
        Call::RingEnter => {
            &[EAGAIN, EBADF, EBADFD, EBUSY, EEXIST, EFAULT, EINTR, EINVAL, ENXIO, EOPNOTSUPP, EOWNERDEAD]
        }
        other => panic!("{other:?} has no errors here"),
    }
}

/// Calls that may transfer fewer bytes than were asked for although more are there.
const CUT_SHORT: [Call; 3] = [Call::SendFile, Call::Pread, Call::Pwrite];

const LEN: usize = 100_000;

fn content() -> Vec<u8> {
    (0..LEN).map(|i| (i / 3) as u8).collect()
}

/// TCP: connects by name, echoes with a half-close, and writes from several slices at once.
async fn tcp() -> io::Result<()> {
    let first = TcpListener::bind("127.0.0.1:0".parse().unwrap())?;
    let port = first.local_addr().port();
    let listener = first.share()?;
    drop(first);
    let server = spawn_local(async move {
        let (stream, _) = listener.accept().await?;
        let mut buffer = vec![0; 10_000];
        loop {
            match stream.read(&mut buffer).await? {
                0 => return stream.shutdown(Shutdown::Write),
                read => stream.write_all(&buffer[..read]).await?,
            }
        }
    });
    let answer = async {
        // A name, because an address is its own answer. The name may stand for an address of IPv6
        // too, at which the listener is not.
        let addresses = resolve(&format!("localhost:{port}")).await?;
        let address = addresses.into_iter().find(SocketAddr::is_ipv4).ok_or(io::ErrorKind::NotFound)?;
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(false)?;
        stream.local_addr()?;
        stream.peer_addr()?;
        sys::unacknowledged(&stream)?;
        let sent = content();
        let (head, body) = sent.split_at(7);
        let mut echoed = vec![0; 30];
        stream.write_all(&sent[..30]).await?;
        stream.read_exact(&mut echoed).await?;
        assert_eq!(echoed, sent[..30]);
        stream.write_all_vectored(&mut [IoSlice::new(head), IoSlice::new(&body[..2000])]).await?;
        let mut echoed = vec![0; 2007];
        stream.read_exact(&mut echoed).await?;
        assert_eq!(echoed, sent[..2007]);
        stream.shutdown(Shutdown::Write)?;
        assert_eq!(stream.read(&mut [0; 10]).await?, 0);
        Ok(())
    };
    let answer = answer.await;
    server.cancel();
    answer
}

/// Unix sockets, by path and in pairs.
async fn unix(path: PathBuf) -> io::Result<()> {
    let listener = UnixListener::bind(&path)?;
    let server = spawn_local(async move {
        let stream = listener.accept().await?;
        let mut word = [0; 4];
        stream.read_exact(&mut word).await?;
        stream.write_all(&word).await
    });
    let answer = async {
        let stream = UnixStream::connect(&path).await?;
        stream.write_all(b"word").await?;
        let mut word = [0; 4];
        stream.read_exact(&mut word).await?;
        assert_eq!(&word, b"word");
        let (one, other) = UnixStream::pair()?;
        one.write_all(b"pair").await?;
        other.read_exact(&mut word).await?;
        assert_eq!(&word, b"pair");
        Ok(())
    };
    let answer = answer.await;
    server.cancel();
    answer
}

/// A file server with sendfile, over an inherited stream.
async fn send_file(path: PathBuf) -> io::Result<()> {
    let (one, other) = std::os::unix::net::UnixStream::pair()?;
    let (one, other) = (NonBlocking::new(one)?, selvedge_io::net::Stream::from_fd(other.into())?);
    let server = spawn_local(async move {
        let file = std::fs::File::open(path)?;
        other.write_all_more(b"head").await?;
        other.send_file(&file, 10, LEN as u64 - 10).await
    });
    let mut all = Vec::new();
    let mut piece = [0; 5000];
    loop {
        let read = one.read_with(|mut stream| io::Read::read(&mut stream, &mut piece)).await?;
        if read == 0 {
            break;
        }
        all.extend_from_slice(&piece[..read]);
    }
    let end = server.await.unwrap();
    let sent = [b"head", &content()[10..]].concat();
    assert!(sent.starts_with(&all) && (end.is_err() || all.len() == sent.len()));
    end
}

/// Files: writes and reads them, and asks for their status.
async fn files(path: PathBuf) -> io::Result<()> {
    let copy = path.with_extension("copy");
    let file = fs::File::options().write(true).create(true).open(&copy).await?;
    file.write_all_at(content(), 0).await.0?;
    file.sync_all().await?;
    drop(file);
    assert_eq!(fs::metadata(&copy).await?.len(), LEN as u64);
    let file = fs::File::open(&copy).await?;
    assert_eq!(file.metadata().await?.len(), LEN as u64);
    let mut all = Vec::new();
    while all.len() < LEN {
        let (read, buffer) = file.read_at(vec![0; LEN], all.len() as u64).await;
        match read? {
            0 => panic!("the file has ended early"),
            read => all.extend_from_slice(&buffer[..read]),
        }
    }
    assert!(all == content());
    assert!(fs::read(&path).await? == content());
    Ok(())
}

/// Names: the name of a directory, and the names of files in it.
async fn names(directory: PathBuf) -> io::Result<()> {
    let _ = std::fs::remove_dir_all(&directory);
    let at = |name: &str| directory.join(name);
    fs::create_dir(&directory).await?;
    fs::write(at("one"), b"content".to_vec()).await?;
    fs::File::options().write(true).open(at("one")).await?.set_len(4).await?;
    fs::hard_link(at("one"), at("two")).await?;
    fs::symlink("two", at("link")).await?;
    fs::rename(at("one"), at("three")).await?;
    fs::set_permissions(at("three"), fs::Permissions::from_mode(0o600)).await?;
    assert_eq!(fs::metadata(at("two")).await?.mode() & 0o777, 0o600);
    assert_eq!(fs::read_link(at("link")).await?, Path::new("two"));
    assert!(fs::symlink_metadata(at("link")).await?.is_symlink());
    assert_eq!(fs::canonicalize(at("link")).await?, fs::canonicalize(at("two")).await?);
    assert_eq!(fs::copy(at("link"), at("four")).await?, 4);
    let entries = fs::read_dir(&directory).await?;
    assert_eq!(
        entries.iter().map(|entry| entry.file_name()).collect::<Vec<_>>(),
        ["four", "link", "three", "two"]
    );
    let is_file = |entry: &fs::DirEntry| entry.file_type().unwrap().is_file();
    assert_eq!(entries.iter().map(is_file).collect::<Vec<_>>(), [true, false, true, true]);
    assert_eq!(fs::read_to_string(at("link")).await?, "cont");
    for entry in entries {
        fs::remove_file(entry.path()).await?;
    }
    fs::create_dir_all(at("a/b/c")).await?;
    fs::remove_dir_all(at("a")).await?;
    fs::remove_dir(directory).await
}

/// A file that is appended to, cut, locked, renamed and removed by a handle.
async fn appended(path: PathBuf) -> io::Result<()> {
    let append = move || {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC;
        let file = fs::Handle::create(CWD, &path, flags, 0o600)?;
        let written = file.write_on(b"one\ntwo")? as u64;
        assert_eq!((written, file.position()?), (7, file.status()?.len));
        file.cut(4)?;
        assert_eq!(fs::Handle::status_at(CWD, &path)?.len, 4);
        if file.try_lock()? {
            file.unlock()?;
        }
        let renamed = path.with_extension("1");
        fs::Handle::rename(&path, &renamed)?;
        fs::Handle::remove(&renamed)
    };
    Ok(blocking(append).await.unwrap()?)
}

/// A pipe that is written and read at the same time.
async fn pipes() -> io::Result<()> {
    let (sender, receiver) = pipe()?;
    let writer = spawn_local(async move { sender.write_all(&content()).await });
    let got = receiver.read_to_end().await?;
    drop(receiver);
    writer.await.unwrap()?;
    assert!(got == content());
    Ok(())
}

/// A child process, with all its standard streams.
///
/// Starting a child takes longer than all other scenarios, so this one runs only for the calls that
/// it makes.
async fn process(call: Option<Call>) -> io::Result<()> {
    const MADE: [Call; 6] =
        [Call::Spawn, Call::Read, Call::Pipe, Call::GetFlags, Call::SetFlags, Call::EpollControl];
    if call.is_some_and(|call| !MADE.contains(&call)) {
        return Ok(());
    }
    let output = Command::new("echo").arg("cloth").output().await?;
    assert!(output.status.success() && output.stdout == b"cloth\n");
    Ok(())
}

/// Two subscriptions to a signal. Each of them is told of the signal once.
async fn signal() -> io::Result<()> {
    let mut one = signals(&[Signal::USR1])?;
    let mut other = signals(&[Signal::USR1, Signal::USR2])?;
    for _ in 0..2 {
        // SAFETY: the signal has a handler, which `signals` has installed.
        unsafe { raise(SIGUSR1) };
        for subscription in [&mut one, &mut other] {
            let told = timeout(Duration::from_secs(5), subscription.next()).await;
            assert_eq!(told.expect("it was told of the signal")?, Signal::USR1);
            assert_eq!(subscription.try_next(), None);
        }
    }
    Ok(())
}

/// Datagrams, one in each direction.
async fn datagrams() -> io::Result<()> {
    let here = UdpSocket::bind("127.0.0.1:0".parse().unwrap())?;
    let there = UdpSocket::bind("127.0.0.1:0".parse().unwrap())?;
    here.connect(there.local_addr()?)?;
    here.set_write_deadline(Some(Time::now() + Duration::from_secs(5)));
    here.send(b"warp").await?;
    let mut buffer = [0; 10];
    there.set_read_deadline(Some(Time::now() + Duration::from_secs(5)));
    let (read, from) = there.recv_from(&mut buffer).await?;
    assert_eq!(&buffer[..read], b"warp");
    there.send_to(b"weft", from).await?;
    here.set_read_deadline(Some(Time::now() + Duration::from_secs(5)));
    let read = here.recv(&mut buffer).await?;
    assert_eq!(&buffer[..read], b"weft");
    Ok(())
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// The number of scenarios.
const SCENARIOS: usize = 10;

/// Runs the scenarios for a call with an event loop of their own. A scenario may fail. Returns the
/// number of scenarios that succeeded.
fn scenarios(directory: &Path, call: Option<Call>) -> Result<usize, RunError> {
    let directory = directory.to_owned();
    let _ = std::fs::remove_file(directory.join("socket"));
    let mut events = EventLoop::new()?;
    round_robin_over(&mut events, async move {
        let file = directory.join("file");
        let mut good = usize::from(tcp().await.is_ok());
        good += usize::from(unix(directory.join("socket")).await.is_ok());
        good += usize::from(send_file(file.clone()).await.is_ok());
        good += usize::from(files(file).await.is_ok());
        good += usize::from(names(directory.join("names")).await.is_ok());
        let _ = std::fs::remove_file(directory.join("log"));
        good += usize::from(appended(directory.join("log")).await.is_ok());
        good += usize::from(pipes().await.is_ok());
        good += usize::from(process(call).await.is_ok());
        good += usize::from(signal().await.is_ok());
        good + usize::from(datagrams().await.is_ok())
    })
}

/// Runs the scenarios with a fault, on an OS thread that is watched. Returns the number of
/// scenarios that succeeded, and whether the fault occurred.
fn faulty(directory: &Path, call: Call, fault: Fault, when: fn(u64) -> bool) -> (Option<usize>, bool) {
    let (told, ended) = channel();
    let path = directory.to_owned();
    let name = format!("{call:?} {fault:?}");
    let run = std::thread::Builder::new().name(name.clone()).spawn(move || {
        let (met, meets) = channel();
        let faults = Faults::everywhere(move |made, nth| {
            let hit = made == call && when(nth);
            hit.then(|| met.send(()).unwrap());
            hit.then_some(fault)
        });
        let result = scenarios(&path, Some(call));
        drop(faults);
        let _ = told.send(());
        (result.ok(), meets.recv().is_ok())
    });
    let hung = ended.recv_timeout(Duration::from_secs(20)) == Err(std::sync::mpsc::RecvTimeoutError::Timeout);
    assert!(!hung, "{name} hangs");
    run.unwrap().join().unwrap_or_else(|_| panic!("{name} panics"))
}

#[test]
fn every_call_fails_with_every_error() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), content()).unwrap();
    // One run without faults starts the OS thread of the pool, which stays.
    assert_eq!(scenarios(directory.path(), None).unwrap(), SCENARIOS);
    // An OS thread of the pool closes its descriptors a little later.
    std::thread::sleep(Duration::from_millis(200));
    let before = descriptors();
    let whens: [fn(u64) -> bool; 4] = [|n| n == 0, |n| n == 1, |n| n == 2, |n| n % 3 == 1];
    let mut runs = 0;
    for call in Call::ALL {
        let mut met = false;
        let short = CUT_SHORT.contains(&call).then_some([Fault::Short(1000), Fault::Short(LEN - 1)]);
        let faults = errors(call).iter().map(|&errno| Fault::Errno(errno)).chain(short.into_iter().flatten());
        for fault in faults {
            for when in whens {
                let (good, hit) = faulty(directory.path(), call, fault, when);
                met |= hit;
                runs += 1;
                // An OS thread of the pool closes its descriptors a little later.
                let patience = Instant::now() + Duration::from_secs(2);
                while descriptors() != before && Instant::now() < patience {
                    std::thread::sleep(Duration::from_millis(1));
                }
                assert_eq!(descriptors(), before, "{call:?} {fault:?} leaks");
                let harmless = matches!(fault, Fault::Short(_)) || !hit;
                assert!(
                    !harmless || good == Some(SCENARIOS),
                    "{call:?} {fault:?}: {good:?} of {SCENARIOS} come to a good end"
                );
            }
        }
        assert!(met, "{call:?} is never made");
    }
    assert!(runs > 500, "{runs}");
}
