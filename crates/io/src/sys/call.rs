//! `Call`: the kinds of system calls, one variant for each. Every function of `sys` names its kind
//! to `on`, `make` or `through` (`sys.rs`).
//!
//! `calls.rs` counts by kind, and a test's plan of [faults](crate::faults) decides by kind. The
//! façade exports the type as `sim::Call`. `calls.rs` uses `call as usize` as an index into
//! `Call::ALL`, so `ALL` lists the variants in the order of their declaration. A new kind also
//! needs its name in `Call::name`.

/// The kinds of system calls that this layer makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Call {
    /// `socket`, of TCP and Unix.
    Socket,
    /// `socketpair`
    SocketPair,
    /// `setsockopt`
    SetOption,
    /// `getsockopt`: the outcome of a `connect`, and the kind of a socket.
    SocketError,
    /// `ioctl(SIOCOUTQ)`: the bytes that were sent and not acknowledged.
    Unacknowledged,
    /// `bind`
    Bind,
    /// `listen`
    Listen,
    /// `accept4`
    Accept,
    /// `connect`
    Connect,
    /// `getsockname`
    LocalAddress,
    /// `getpeername`
    PeerAddress,
    /// `recv`, and `recvmsg` on a Unix socket.
    Recv,
    /// `send`
    Send,
    /// `sendmsg`
    SendMsg,
    /// `sendfile`
    SendFile,
    /// `shutdown`
    Shutdown,
    /// `fcntl(F_DUPFD_CLOEXEC)`
    Duplicate,
    /// `fcntl(F_GETFL)`
    GetFlags,
    /// `fcntl(F_SETFL)`
    SetFlags,
    /// `getaddrinfo`
    Resolve,
    /// `open` and `openat2`
    Open,
    /// `stat` and `fstat`
    Stat,
    /// `pread` and `preadv2`
    Pread,
    /// `pwrite`
    Pwrite,
    /// `ftruncate`
    Truncate,
    /// `lseek`
    Seek,
    /// `flock`
    Lock,
    /// `fsync` and `fdatasync`
    Sync,
    /// `mkdir`
    MakeDirectory,
    /// `getdents`
    ReadDirectory,
    /// `unlink` and `rmdir`
    Unlink,
    /// `rename`
    Rename,
    /// `link`
    Link,
    /// `symlink`
    Symlink,
    /// `readlink`, and `realpath`, which makes several of them
    ReadLink,
    /// `chmod`
    ChangeMode,
    /// `epoll_create`
    EpollCreate,
    /// `epoll_ctl`
    EpollControl,
    /// `epoll_wait`
    EpollWait,
    /// `eventfd`
    Eventfd,
    /// `pipe2`
    Pipe,
    /// `read`, from a pipe or a standard stream.
    Read,
    /// `write`, to a pipe or a standard stream, or to a file where it goes on.
    Write,
    /// `fork`, `exec` and `pidfd_open`
    Spawn,
    /// `sigaction`
    SignalAction,
    /// `io_uring_setup`
    RingSetup,
    /// `io_uring_register`
    RingRegister,
    /// `io_uring_enter`
    RingEnter,
}

impl Call {
    /// All kinds.
    pub const ALL: [Call; 48] = [
        Call::Socket,
        Call::SocketPair,
        Call::SetOption,
        Call::SocketError,
        Call::Unacknowledged,
        Call::Bind,
        Call::Listen,
        Call::Accept,
        Call::Connect,
        Call::LocalAddress,
        Call::PeerAddress,
        Call::Recv,
        Call::Send,
        Call::SendMsg,
        Call::SendFile,
        Call::Shutdown,
        Call::Duplicate,
        Call::GetFlags,
        Call::SetFlags,
        Call::Resolve,
        Call::Open,
        Call::Stat,
        Call::Pread,
        Call::Pwrite,
        Call::Truncate,
        Call::Seek,
        Call::Lock,
        Call::Sync,
        Call::MakeDirectory,
        Call::ReadDirectory,
        Call::Unlink,
        Call::Rename,
        Call::Link,
        Call::Symlink,
        Call::ReadLink,
        Call::ChangeMode,
        Call::EpollCreate,
        Call::EpollControl,
        Call::EpollWait,
        Call::Eventfd,
        Call::Pipe,
        Call::Read,
        Call::Write,
        Call::Spawn,
        Call::SignalAction,
        Call::RingSetup,
        Call::RingRegister,
        Call::RingEnter,
    ];
    /// The name of the system call.
    pub fn name(self) -> &'static str {
        match self {
            Call::Socket => "socket",
            Call::SocketPair => "socketpair",
            Call::SetOption => "setsockopt",
            Call::SocketError => "getsockopt",
            Call::Unacknowledged => "ioctl",
            Call::Bind => "bind",
            Call::Listen => "listen",
            Call::Accept => "accept4",
            Call::Connect => "connect",
            Call::LocalAddress => "getsockname",
            Call::PeerAddress => "getpeername",
            Call::Recv => "recv",
            Call::Send => "send",
            Call::SendMsg => "sendmsg",
            Call::SendFile => "sendfile",
            Call::Shutdown => "shutdown",
            Call::Duplicate => "fcntl_dupfd",
            Call::GetFlags => "fcntl_getfl",
            Call::SetFlags => "fcntl_setfl",
            Call::Resolve => "getaddrinfo",
            Call::Open => "open",
            Call::Stat => "stat",
            Call::Pread => "pread",
            Call::Pwrite => "pwrite",
            Call::Truncate => "ftruncate",
            Call::Seek => "lseek",
            Call::Lock => "flock",
            Call::Sync => "fsync",
            Call::MakeDirectory => "mkdir",
            Call::ReadDirectory => "getdents",
            Call::Unlink => "unlink",
            Call::Rename => "rename",
            Call::Link => "link",
            Call::Symlink => "symlink",
            Call::ReadLink => "readlink",
            Call::ChangeMode => "chmod",
            Call::EpollCreate => "epoll_create",
            Call::EpollControl => "epoll_ctl",
            Call::EpollWait => "epoll_wait",
            Call::Eventfd => "eventfd",
            Call::Pipe => "pipe2",
            Call::Read => "read",
            Call::Write => "write",
            Call::Spawn => "spawn",
            Call::SignalAction => "rt_sigaction",
            Call::RingSetup => "io_uring_setup",
            Call::RingRegister => "io_uring_register",
            Call::RingEnter => "io_uring_enter",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_name_and_a_place_of_its_own() {
        for (i, call) in Call::ALL.into_iter().enumerate() {
            assert_eq!(call as usize, i);
            assert!(Call::ALL[..i].iter().all(|other| other.name() != call.name()), "{call:?}");
        }
    }
}
