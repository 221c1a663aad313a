//! A process takes the server over from another, which has started it: so the program is replaced
//! while no connection is refused or dropped.
//!
//! The *old* process calls [`hand_over`]. It starts the program's file anew with its own arguments,
//! with one end of a pair of sockets as the standard input, and sends its [`HandedFiles`]: what
//! listens, and the files that it opened while it had more privileges, perhaps. The *new* process
//! takes them by [`Predecessor::from_environment`], reads the configuration, and says either that
//! it serves ([`Predecessor::relieve`]) or why it cannot ([`Predecessor::refuse`]). The old process
//! then retires, or goes on as if nothing had happened.
//!
//! Each message is one packet. The old process sends a name with a descriptor for each file, and
//! [`ALL`] after the last. The new process sends [`READY`], or a line for people. A process that
//! dies closes its end, which the other one reads as an empty packet.
//!
//! Between the new process's word and the old one's end both accept from the same sockets. The
//! kernel keeps the connections that neither has accepted, because the sockets are the same.

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::Pid;
use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// In the environment of the new process.
const MARK: &str = "SELVEDGE_HTTPD_TAKES_OVER";

/// What systemd has told the old process about that process.
const OF_THE_OLD: [&str; 4] = ["WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"];

/// The packet after the last file.
const ALL: &[u8] = b"all";

/// The packet by which the new process says that it serves.
const READY: &[u8] = b"ready";

/// For how long the old process waits for the new one's word.
const PATIENCE: Duration = Duration::from_secs(60);

/// The longest packet in bytes: a kind, and a path or an address.
const PACKET_BYTES: usize = 8 << 10;

/// What a handed file is for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum HandedName {
    /// It listens at an address, which is written as in the configuration.
    Listener(String),
    /// It listens, and systemd has bound it.
    Inherited,
    /// It listens for commands, at this path.
    Control(PathBuf),
    /// It listens for commands of the parent of several processes.
    Commands,
    /// It holds the number of the process.
    Pid(PathBuf),
    /// It is the access log.
    Log(PathBuf),
}

impl HandedName {
    fn to_packet(&self) -> Vec<u8> {
        let (kind, rest): (&str, &OsStr) = match self {
            HandedName::Listener(address) => ("listener", address.as_ref()),
            HandedName::Inherited => ("inherited", "".as_ref()),
            HandedName::Control(path) => ("control", path.as_ref()),
            HandedName::Commands => ("commands", "".as_ref()),
            HandedName::Pid(path) => ("pid", path.as_ref()),
            HandedName::Log(path) => ("log", path.as_ref()),
        };
        [kind.as_bytes(), b" ", rest.as_encoded_bytes()].concat()
    }

    fn from_packet(packet: &[u8]) -> Option<HandedName> {
        let (kind, rest) = packet.split_at(packet.iter().position(|&byte| byte == b' ')?);
        let path = || PathBuf::from(<OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(&rest[1..]));
        Some(match kind {
            b"listener" => HandedName::Listener(String::from_utf8(rest[1..].to_vec()).ok()?),
            b"inherited" => HandedName::Inherited,
            b"control" => HandedName::Control(path()),
            b"commands" => HandedName::Commands,
            b"pid" => HandedName::Pid(path()),
            b"log" => HandedName::Log(path()),
            _ => return None,
        })
    }
}

/// The files that go from one process to the other, in the order in which they are named.
#[derive(Debug, Default)]
pub(crate) struct HandedFiles(Vec<(HandedName, OwnedFd)>);

impl HandedFiles {
    /// Adds a file.
    pub(crate) fn push(&mut self, name: HandedName, file: impl Into<OwnedFd>) {
        self.0.push((name, file.into()));
    }

    /// Adds all files of `others`, which is empty then.
    pub(crate) fn append(&mut self, others: &mut HandedFiles) {
        self.0.append(&mut others.0);
    }

    /// Takes all files of this name out.
    pub(crate) fn take(&mut self, name: &HandedName) -> Vec<OwnedFd> {
        let taken = self.0.extract_if(.., |(one, _)| one == name);
        taken.map(|(_, file)| file).collect()
    }

    /// One of `parts` equal parts of them, by each name: the part with this number.
    ///
    /// # Errors
    /// The process has no descriptors left.
    pub(crate) fn share(&self, part: usize, parts: usize) -> io::Result<HandedFiles> {
        let mut share = HandedFiles::default();
        for (at, (name, file)) in self.0.iter().enumerate() {
            let of_name =
                |files: &[(HandedName, OwnedFd)]| files.iter().filter(|(one, _)| one == name).count();
            let (before, all) = (of_name(&self.0[..at]), of_name(&self.0));
            if before * parts / all == part {
                share.push(name.clone(), file.try_clone()?);
            }
        }
        Ok(share)
    }

    /// Takes the file out that was opened at a path.
    pub(crate) fn take_file(&mut self, name: &HandedName) -> Option<File> {
        self.take(name).pop().map(File::from)
    }
}

fn send(socket: impl AsFd, packet: &[u8], file: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = file.as_slice();
    if !files.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(files));
    }
    // A process that is gone is an error here, and no signal.
    sendmsg(socket, &[IoSlice::new(packet)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// The next packet, and the file that came with it. The packet is empty if the other process is
/// gone.
fn receive(socket: impl AsFd) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut packet = vec![0; PACKET_BYTES];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = loop {
        match recvmsg(&socket, &mut [IoSliceMut::new(&mut packet)], &mut control, flags) {
            Err(rustix::io::Errno::INTR) => {}
            received => break received?,
        }
    };
    packet.truncate(received.bytes);
    let file = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    Ok((packet, file))
}

/// A process that was started with files. Its word comes through the socket.
#[derive(Debug)]
pub(crate) struct Successor {
    pub(crate) process: Child,
    socket: OwnedFd,
}

impl Successor {
    /// Starts `command` with its arguments, and hands it the files.
    ///
    /// # Errors
    /// The program cannot be started, or has ended before it took the files.
    pub(crate) fn start(command: &mut Command, files: &HandedFiles) -> io::Result<Successor> {
        let (socket, other) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        for what in [Timeout::Recv, Timeout::Send] {
            set_socket_timeout(&socket, what, Some(PATIENCE))?;
        }
        command.env(MARK, "1").stdin(Stdio::from(other));
        let process = command.spawn();
        // The command holds the other end of the pair, and the end of the process is to be seen.
        command.stdin(Stdio::null());
        let mut successor = Successor { process: process?, socket };
        let send_all = || -> io::Result<()> {
            for (name, file) in &files.0 {
                send(&successor.socket, &name.to_packet(), Some(file.as_fd()))?;
            }
            send(&successor.socket, ALL, None)
        };
        match send_all() {
            Ok(()) => Ok(successor),
            Err(error) if is_end(&error) => Ok(successor),
            Err(error) => {
                // It may have ended already.
                let _ = successor.process.kill();
                let _ = successor.process.wait();
                Err(error)
            }
        }
    }

    /// Waits for the word of the process. It blocks.
    ///
    /// # Errors
    /// The process does not serve: why. It has ended then.
    pub(crate) fn wait_until_it_serves(&mut self) -> Result<(), String> {
        let why = match receive(&self.socket) {
            Ok((word, _)) if word == READY => return Ok(()),
            Ok((word, _)) if word.is_empty() => None,
            Ok((word, _)) => Some(String::from_utf8_lossy(&word).into_owned()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                Some(format!("no word of it within {} seconds", PATIENCE.as_secs()))
            }
            Err(error) if is_end(&error) => None,
            Err(error) => Some(error.to_string()),
        };
        // It may have ended already.
        let _ = self.process.kill();
        let ended = self.process.wait();
        let ended = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
        Err(why.unwrap_or_else(|| format!("the new process has ended before it served: {ended}")))
    }
}

/// Whether the error says that the other process has ended.
fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)
}

/// Starts the program at the path `program` with this process's arguments, and hands it the files.
/// Returns the number of the new process when that one serves.
///
/// It waits, so a thread calls it by [`blocking`](selvedge_io::blocking).
///
/// # Errors
/// The new process does not serve: why. It has ended then.
pub(crate) fn hand_over(program: &Path, files: &HandedFiles) -> Result<i32, String> {
    let mut command = Command::new(program);
    command.args(env::args_os().skip(1));
    for name in OF_THE_OLD {
        command.env_remove(name);
    }
    let started = Successor::start(&mut command, files);
    let mut successor = started.map_err(|error| format!("{}: {error}", program.display()))?;
    successor.wait_until_it_serves()?;
    Ok(Pid::from_child(&successor.process).as_raw_pid())
}

/// The process that has started this one and waits for its word.
#[derive(Debug)]
pub(crate) struct Predecessor {
    socket: OwnedFd,
    /// What it has handed over.
    pub(crate) files: HandedFiles,
}

impl Predecessor {
    /// The predecessor, if this process is to take over from one.
    ///
    /// # Errors
    /// The predecessor does not keep to the protocol, or is gone.
    pub(crate) fn from_environment() -> io::Result<Option<Predecessor>> {
        if env::var_os(MARK).is_none() {
            return Ok(None);
        }
        let socket = rustix::stdio::stdin().try_clone_to_owned()?;
        // The socket must close with this process, and not with a program that it starts.
        rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
        let mut files = HandedFiles::default();
        loop {
            let (packet, file) = receive(&socket)?;
            match (HandedName::from_packet(&packet), file) {
                (Some(name), Some(file)) => files.push(name, file),
                (None, None) if packet == ALL => return Ok(Some(Predecessor { socket, files })),
                _ => return Err(io::Error::new(ErrorKind::InvalidData, "not what a server hands over")),
            }
        }
    }

    /// Tells the predecessor that this process serves.
    pub(crate) fn relieve(self) {
        // A predecessor that is gone needs no word.
        let _ = send(&self.socket, READY, None);
    }

    /// Tells the predecessor why this process does not serve.
    pub(crate) fn refuse(self, why: &str) {
        let mut end = why.len().min(PACKET_BYTES);
        while !why.is_char_boundary(end) {
            end -= 1;
        }
        // As above.
        let _ = send(&self.socket, &why.as_bytes()[..end], None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_files_arrive_as_they_were_sent() {
        let names = [
            HandedName::Listener("[::1]:80".to_owned()),
            HandedName::Listener("unix:/a b".to_owned()),
            HandedName::Inherited,
            HandedName::Control("/run/with space".into()),
            HandedName::Commands,
            HandedName::Pid("pid".into()),
            HandedName::Log("".into()),
        ];
        let (own, other) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        for (number, name) in names.iter().enumerate() {
            let mut file = tempfile::tempfile().unwrap();
            io::Write::write_all(&mut file, number.to_string().as_bytes()).unwrap();
            send(&own, &name.to_packet(), Some(file.as_fd())).unwrap();
            let (packet, file) = receive(&other).unwrap();
            assert_eq!(HandedName::from_packet(&packet).as_ref(), Some(name));
            let mut text = [0];
            std::os::unix::fs::FileExt::read_exact_at(&File::from(file.unwrap()), &mut text, 0).unwrap();
            assert_eq!(text, number.to_string().as_bytes());
        }
        drop(own);
        assert!(matches!(receive(&other), Ok((packet, None)) if packet.is_empty()));
        for nonsense in [&b""[..], ALL, READY, b"listener", b"other thing", b"listener \xff"] {
            assert_eq!(HandedName::from_packet(nonsense), None);
        }
    }

    #[test]
    fn files_are_taken_by_their_names() {
        let mut files = HandedFiles::default();
        let file = || tempfile::tempfile().unwrap();
        let at = |text: &str| HandedName::Listener(text.to_owned());
        for name in [at("a"), HandedName::Inherited, at("a"), at("b")] {
            files.push(name, file());
        }
        assert_eq!(files.take(&at("a")).len(), 2);
        assert_eq!(files.take(&at("a")).len(), 0);
        assert!(files.take_file(&HandedName::Inherited).is_some());
        assert_eq!(files.take(&at("b")).len(), 1);
    }

    #[test]
    fn each_process_has_its_share() {
        let mut files = HandedFiles::default();
        for (name, count) in [("a", 4), ("b", 8)] {
            for _ in 0..count {
                files.push(HandedName::Listener(name.to_owned()), tempfile::tempfile().unwrap());
            }
        }
        for parts in [1, 2, 4] {
            for part in 0..parts {
                let mut share = files.share(part, parts).unwrap();
                let mut count = |name: &str| share.take(&HandedName::Listener(name.to_owned())).len();
                assert_eq!((count("a"), count("b")), (4 / parts, 8 / parts));
            }
        }
    }

    #[test]
    fn a_program_that_is_none() {
        let why = hand_over(Path::new("/no/program"), &HandedFiles::default()).unwrap_err();
        assert!(why.starts_with("/no/program: "), "{why}");
        let why = hand_over(Path::new("/bin/true"), &HandedFiles::default()).unwrap_err();
        assert!(why.contains("ended before it served: exit status: 0"), "{why}");
    }
}
