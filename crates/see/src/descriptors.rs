//! `Descriptors`: what a descriptor is, in words, such as `tcp 127.0.0.1:80 to 127.0.0.1:41234`.
//!
//! `dump.rs` asks it while it writes a dump, and `recorder.rs` for a report of a deadlock. It reads
//! `/proc` once, at the first socket, so one `Descriptors` serves one dump and no longer.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::RawFd;

/// The sockets of the process, which are read when the first of them is asked for.
#[derive(Debug, Default)]
pub(crate) struct Descriptors {
    /// The words for each socket, by its inode.
    sockets: Option<HashMap<String, String>>,
}

impl Descriptors {
    /// The words for a descriptor: `tcp 127.0.0.1:80 to 127.0.0.1:41234`, `pipe:[1234]`.
    pub(crate) fn describe(&mut self, fd: RawFd) -> String {
        let Ok(target) = std::fs::read_link(format!("/proc/self/fd/{fd}")) else { return "closed".into() };
        let target = target.to_string_lossy();
        if target == "anon_inode:[pidfd]" {
            let about = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap_or_default();
            let id = about.lines().find_map(|line| line.strip_prefix("Pid:")).map(str::trim);
            return id.map_or_else(|| target.into_owned(), |id| format!("process {id}"));
        }
        let inode = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
        let Some(inode) = inode else { return target.into_owned() };
        let sockets = self.sockets.get_or_insert_with(sockets);
        sockets.get(inode).cloned().unwrap_or_else(|| target.into_owned())
    }
}

/// All sockets of the network namespace, by inode.
fn sockets() -> HashMap<String, String> {
    let mut sockets = HashMap::new();
    for kind in ["tcp", "tcp6", "udp", "udp6"] {
        let table = std::fs::read_to_string(format!("/proc/self/net/{kind}")).unwrap_or_default();
        for line in table.lines().skip(1) {
            let columns: Vec<&str> = line.split_whitespace().collect();
            let [_, local, remote, _, _, _, _, _, _, inode, ..] = columns[..] else { continue };
            if let (Some(local), Some(remote)) = (address(local), address(remote)) {
                let kind = kind.trim_end_matches('6');
                let text = match remote.port() {
                    0 => format!("{kind} {local}"),
                    _ => format!("{kind} {local} to {remote}"),
                };
                sockets.insert(inode.to_owned(), text);
            }
        }
    }
    let table = std::fs::read_to_string("/proc/self/net/unix").unwrap_or_default();
    for line in table.lines().skip(1) {
        let columns: Vec<&str> = line.split_whitespace().collect();
        if let Some(inode) = columns.get(6) {
            let path = columns.get(7).map_or(String::new(), |path| format!(" {path}"));
            sockets.insert((*inode).to_owned(), format!("unix{path}"));
        }
    }
    sockets
}

/// An address as the kernel prints it: words of 32 bits in the host's order, in hexadecimal.
fn address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |i: usize| u32::from_str_radix(host.get(i * 8..i * 8 + 8)?, 16).ok().map(u32::to_ne_bytes);
    let host = match host.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            let mut bytes = [0; 16];
            bytes.copy_from_slice(words.as_flattened());
            IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(host, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    #[test]
    fn sockets_are_told_by_their_addresses() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(host) else { continue };
            let here = listener.local_addr().unwrap();
            let stream = TcpStream::connect(here).unwrap();
            let mut descriptors = Descriptors::default();
            assert_eq!(descriptors.describe(listener.as_raw_fd()), format!("tcp {here}"));
            let expected = format!("tcp {} to {here}", stream.local_addr().unwrap());
            assert_eq!(descriptors.describe(stream.as_raw_fd()), expected);
        }
    }

    #[test]
    fn others_by_what_the_kernel_calls_them() {
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let (pipe, _end) = std::io::pipe().unwrap();
        let mut descriptors = Descriptors::default();
        assert_eq!(descriptors.describe(one.as_raw_fd()), "unix");
        assert!(descriptors.describe(pipe.as_raw_fd()).starts_with("pipe:["));
        assert_eq!(descriptors.describe(1 << 30), "closed");
    }
}
