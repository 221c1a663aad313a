//! What goes wrong: clients that die, stand still or give up, disks that are full.

use crate::harness::{
    AT_A_FREE_PORT, Client, Server, bytes, eventually, files, serve, serve_users, start, users,
};
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::Command;

fn names(root: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(root).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

const NAMES: [&str; 4] = [".dot", "lines.txt", "sub", "ten.txt"];

/// An upload that is half-way.
fn half(client: &mut Client) -> TcpStream {
    let mut data = client.passive();
    client.expect(&[("STOR half", 150)]);
    data.write_all(&bytes(300_000)).unwrap();
    data
}

#[test]
fn abor_ends_an_upload_and_leaves_nothing() {
    let root = files();
    let server = serve_users(root.path(), "r", &[]);
    let mut client = server.user("ada");
    let _data = half(&mut client);
    client.expect(&[("ABOR", 426)]);
    assert_eq!(client.reply().0, 226);
    assert_eq!(names(root.path()), NAMES);
    client.expect(&[("NOOP", 200), ("SIZE half", 550)]);
    assert_eq!(client.store("STOR half", b"whole").0, 226);
}

#[test]
fn abor_ends_a_download_with_telnets_synch_before_it() {
    let root = files();
    fs::write(root.path().join("big"), bytes(20_000_000)).unwrap();
    let server = serve(root.path(), &[]);
    let mut client = server.anonymous();
    for round in 0..3 {
        let mut data = client.passive();
        client.expect(&[("RETR big", 150)]);
        data.read_exact(&mut [0; 1000]).unwrap();
        // The interrupt, and the Synch of which the last byte is urgent.
        client.write(b"\xff\xf4\xff");
        if round < 2 {
            let urgent = rustix::net::SendFlags::OOB;
            rustix::net::send(client.stream(), b"\xf2", urgent).unwrap();
        }
        client.write(b"ABOR\r\n");
        assert_eq!(client.reply().0, 426);
        assert_eq!(client.reply().0, 226);
        let mut rest = Vec::new();
        let _ = data.read_to_end(&mut rest);
        assert!(rest.len() < 20_000_000 - 1000);
    }
    assert_eq!(client.fetch("RETR ten.txt"), b"0123456789");
}

#[test]
fn a_client_that_dies_leaves_nothing() {
    let root = files();
    let server = serve_users(root.path(), "r", &[]);
    let idle = {
        drop(server.connect());
        settled(&server)
    };
    // The control connection ends, and then the data connection, as when a process dies.
    let mut client = server.user("ada");
    let data = half(&mut client);
    drop(client);
    drop(data);
    eventually("the upload is gone", || names(root.path()) == NAMES);
    // The data connection is reset.
    let mut client = server.user("ada");
    let data = half(&mut client);
    rustix::net::sockopt::set_socket_linger(&data, Some(std::time::Duration::ZERO)).unwrap();
    drop(data);
    assert_eq!(client.reply().0, 426);
    assert_eq!(names(root.path()), NAMES);
    drop(client);
    // A download, in its midst.
    fs::write(root.path().join("big"), bytes(20_000_000)).unwrap();
    let mut client = server.anonymous();
    let mut data = client.passive();
    client.expect(&[("RETR big", 150)]);
    data.read_exact(&mut [0; 1000]).unwrap();
    drop(data);
    assert_eq!(client.reply().0, 426);
    let mut data = client.passive();
    client.expect(&[("RETR big", 150)]);
    data.read_exact(&mut [0; 1000]).unwrap();
    drop(client);
    eventually("no descriptor is left open", || server.descriptors() <= idle);
    drop(data);
}

/// The number of descriptors when no client is left.
fn settled(server: &Server) -> usize {
    let mut last = server.descriptors();
    loop {
        std::thread::sleep(std::time::Duration::from_millis(50));
        let now = server.descriptors();
        if now == last {
            return now;
        }
        last = now;
    }
}

#[test]
fn a_disk_that_takes_no_more() {
    let root = files();
    let users = users(root.path(), "r");
    // No file of this process may have more than 100 blocks of 512 bytes.
    let mut command = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 100; exec \"$@\"";
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_selvedge-ftpd")]).args(AT_A_FREE_PORT);
    command.arg("--users").arg(users.path()).arg(root.path());
    let server = start(command);
    let mut client = server.user("ada");
    assert_eq!(client.store("STOR small", &bytes(40_000)).0, 226);
    let mut data = client.passive();
    client.expect(&[("STOR large", 150)]);
    // The server may close before all of it is sent.
    let _ = data.write_all(&bytes(300_000));
    let _ = data.shutdown(Shutdown::Write);
    assert_eq!(client.reply().0, 552);
    client.expect(&[("SIZE large", 550), ("SIZE small", 213)]);
    assert_eq!(names(root.path()).len(), NAMES.len() + 1);
}

#[test]
fn a_file_that_is_cut_while_it_is_sent() {
    let root = files();
    let path = root.path().join("big");
    fs::write(&path, bytes(40_000_000)).unwrap();
    let server = serve(root.path(), &[]);
    let mut client = server.anonymous();
    let mut data = client.passive();
    client.expect(&[("RETR big", 150)]);
    data.read_exact(&mut [0; 1000]).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(1000).unwrap();
    let mut rest = Vec::new();
    data.read_to_end(&mut rest).unwrap();
    assert!(rest.len() < 39_999_000);
    assert_eq!(client.reply().0, 451);
}

#[test]
fn a_reader_that_is_slow_gets_all_and_one_that_stands_still_does_not() {
    let root = files();
    fs::write(root.path().join("big"), bytes(20_000_000)).unwrap();
    let server = serve(root.path(), &["--stall", "2"]);
    let mut client = server.anonymous();
    let mut data = client.passive();
    client.expect(&[("RETR big", 150)]);
    let mut content = Vec::new();
    let mut piece = vec![0; 1 << 20];
    loop {
        // The whole takes longer than a client may stand still.
        std::thread::sleep(std::time::Duration::from_millis(120));
        let read = data.read(&mut piece).unwrap();
        if read == 0 {
            break;
        }
        content.extend_from_slice(&piece[..read]);
    }
    assert!(content == bytes(20_000_000));
    assert_eq!(client.reply().0, 226);
    let _data = client.passive();
    client.expect(&[("RETR big", 150)]);
    assert_eq!(client.reply().0, 426);
    client.expect(&[("NOOP", 200)]);
}

#[test]
fn a_data_connection_that_is_never_made() {
    let root = files();
    let server = serve(root.path(), &["--connect", "0.05"]);
    let mut client = server.anonymous();
    client.expect(&[("EPSV", 229), ("RETR ten.txt", 150)]);
    assert_eq!(client.reply().0, 425);
    let listener = client.active();
    drop(listener);
    client.expect(&[("RETR ten.txt", 150)]);
    assert_eq!(client.reply().0, 425);
    client.expect(&[("NOOP", 200)]);
}

#[test]
fn a_client_that_reads_no_reply_is_given_up() {
    let root = files();
    let server = serve(root.path(), &["--stall", "0.2", "--clients", "1"]);
    let client = server.connect();
    client.stream().set_write_timeout(Some(std::time::Duration::from_secs(1))).unwrap();
    let lines = b"HELP\r\n".repeat(1000);
    // Until the server takes no more.
    while client.stream().write_all(&lines).is_ok() {}
    eventually("the client was given up", || server.knock().reply().0 == 220);
}

#[test]
fn any_bytes_end_no_server() {
    let root = files();
    let server = serve(root.path(), &[]);
    for start in 0..8 {
        let noise = &bytes(200_000)[start * 20_000..][..20_000];
        // With Telnet's commands, of which one may reach to the end of the bytes; and without them,
        // in short lines.
        assert!(answers(&server, noise) <= 20_000);
        let mut lines: Vec<u8> = noise.iter().map(|byte| byte % 255).collect();
        lines.iter_mut().step_by(16).for_each(|byte| *byte = b'\n');
        let ends = lines.iter().filter(|&&byte| byte == b'\n').count();
        assert_eq!(answers(&server, &lines), ends + 4, "each line has an answer");
    }
    server.anonymous().expect(&[("QUIT", 221)]);
}

/// The number of lines that the server says to a client that logs in, sends these bytes, ends the
/// line, and quits.
fn answers(server: &Server, noise: &[u8]) -> usize {
    let mut client = server.connect();
    client.write(&[b"USER ftp\r\nPASS x\r\n", noise, b"\r\nQUIT\r\n"].concat());
    client.stream().shutdown(Shutdown::Write).unwrap();
    let mut replies = Vec::new();
    client.stream().read_to_end(&mut replies).unwrap();
    replies.iter().filter(|&&byte| byte == b'\n').count()
}
