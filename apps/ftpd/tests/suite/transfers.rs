//! What transfers carry: contents, types, REST, and files that appear whole.

use crate::harness::{bytes, files, serve, serve_users};
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

#[test]
fn a_file_of_any_size_is_sent_and_stored() {
    let root = files();
    let server = serve_users(root.path(), "r", &[]);
    let mut client = server.user("ada");
    for len in [0, 1, 4096, 262_143, 262_144, 262_145, 3_000_000] {
        let content = bytes(len);
        assert_eq!(client.store("STOR file", &content).0, 226);
        assert!(fs::read(root.path().join("file")).unwrap() == content, "{len}");
        assert!(client.fetch("RETR file") == content, "{len}");
    }
    client.expect(&[("RETR none", 550), ("RETR sub", 550), ("RETR ../../etc/passwd", 550)]);
}

#[test]
fn lines_of_type_a() {
    let root = files();
    let server = serve_users(root.path(), "r", &[]);
    let mut client = server.user("ada");
    client.expect(&[("TYPE A", 200)]);
    assert_eq!(client.fetch("RETR lines.txt"), b"warp\r\nweft\r\n");
    assert_eq!(client.store("STOR text", b"a\r\nb\rc\r\r\nd\r").0, 226);
    assert_eq!(fs::read(root.path().join("text")).unwrap(), b"a\nb\rc\r\nd\r");
    // Line ends lie at the borders of each read and write.
    let content = b"\r\n\n\r".repeat(200_000);
    fs::write(root.path().join("mixed"), &content).unwrap();
    let network = client.fetch("RETR mixed");
    assert_eq!(network.len(), content.len() / 4 * 6);
    assert_eq!(client.store("STOR back", &network).0, 226);
    assert!(fs::read(root.path().join("back")).unwrap() == content);
}

#[test]
fn restarted_transfers() {
    let root = files();
    let server = serve_users(root.path(), "rw", &[]);
    let mut client = server.user("ada");
    client.expect(&[("REST 4", 350)]);
    let mut data = client.passive();
    assert_eq!(client.say("RETR ten.txt").1, "150 The file follows (6 bytes).\r\n");
    let mut content = Vec::new();
    data.read_to_end(&mut content).unwrap();
    assert_eq!((content, client.reply().0), (b"456789".to_vec(), 226));
    assert_eq!(client.fetch("RETR ten.txt"), b"0123456789", "REST holds for one transfer");
    client.expect(&[("REST 10", 350)]);
    assert_eq!(client.fetch("RETR ten.txt"), b"");
    client.expect(&[("REST 11", 350), ("RETR ten.txt", 554), ("REST 11", 350), ("STOR ten.txt", 554)]);
    client.expect(&[("REST 8", 350)]);
    assert_eq!(client.store("STOR ten.txt", b"end").0, 226);
    assert_eq!(fs::read(root.path().join("ten.txt")).unwrap(), b"01234567end");
    client.expect(&[("REST 3", 350)]);
    assert_eq!(client.store("STOR ten.txt", b"x").0, 226);
    assert_eq!(fs::read(root.path().join("ten.txt")).unwrap(), b"012x", "what lay behind is cut off");

    client.expect(&[("REST 1", 350), ("STOR ten.txt", 425), ("REST 1", 350)]);
    assert_eq!(fs::read(root.path().join("ten.txt")).unwrap(), b"012x", "no transfer, no cut");
    assert_eq!(client.store("STOR ten.txt", b"12x").0, 226);
    assert_eq!(fs::read(root.path().join("ten.txt")).unwrap(), b"012x");

    // In TYPE A a line end counts as two bytes.
    client.expect(&[("TYPE A", 200), ("REST 6", 350)]);
    assert_eq!(client.fetch("RETR lines.txt"), b"weft\r\n");
    client.expect(&[("REST 5", 350), ("RETR lines.txt", 554), ("REST 6", 350)]);
    assert_eq!(client.store("STOR lines.txt", b"web\r\n").0, 226);
    assert_eq!(fs::read(root.path().join("lines.txt")).unwrap(), b"warp\nweb\n");

    let mut writer = server.user("bob");
    writer.expect(&[("REST 2", 350), ("STOR ten.txt", 553), ("REST 4", 350)]);
    assert_eq!(writer.store("STOR ten.txt", b"y").0, 226, "a user that deletes nothing resumes");
    assert_eq!(fs::read(root.path().join("ten.txt")).unwrap(), b"012xy");
}

#[test]
fn files_that_grow_and_files_with_new_names() {
    let root = files();
    let server = serve_users(root.path(), "rw", &[]);
    let mut client = server.user("bob");
    assert_eq!(client.store("APPE log", b"one\n").0, 226);
    assert_eq!(client.store("APPE log", b"two\n").0, 226);
    assert_eq!(fs::read(root.path().join("log")).unwrap(), b"one\ntwo\n");
    client.expect(&[
        ("APPE sub", 553),
        ("APPE none/log", 553),
        ("STOR log", 553),
        ("STOR sub", 553),
        ("CWD sub", 250),
    ]);
    let mut names = Vec::new();
    for content in [b"1", b"2"] {
        let (code, text) = client.store("STOU", content);
        assert_eq!(code, 226);
        let name = text.strip_prefix("150 FILE: /sub/").unwrap().trim_end().to_owned();
        assert_eq!(fs::read(root.path().join("sub").join(&name)).unwrap(), content);
        names.push(name);
    }
    assert_ne!(names[0], names[1]);
}

#[test]
fn a_file_appears_when_it_is_whole() {
    let root = files();
    let server = serve_users(root.path(), "r", &[]);
    let (mut client, mut reader) = (server.user("ada"), server.anonymous());
    let before = reader.fetch_text("MLSD");
    let mut data = client.passive();
    client.expect(&[("STOR ten.txt", 150)]);
    data.write_all(&bytes(500_000)).unwrap();
    // Most of it is on the disk by now, under a name that no client sees.
    crate::harness::eventually("the bytes are written", || {
        let entries = fs::read_dir(root.path()).unwrap();
        entries.flatten().any(|entry| entry.metadata().unwrap().len() > 200_000)
    });
    assert_eq!(reader.fetch_text("MLSD"), before);
    assert_eq!(reader.fetch("RETR ten.txt"), b"0123456789");
    let hidden =
        fs::read_dir(root.path()).unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap());
    let hidden = hidden.into_iter().find(|name| name.starts_with(".selvedge-ftpd.")).unwrap();
    reader.expect(&[(&format!("RETR {hidden}"), 550)]);
    data.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.reply().0, 226);
    assert_eq!(reader.fetch("RETR ten.txt").len(), 500_000);
}

#[test]
fn active_connections_and_those_of_pasv() {
    let root = files();
    let server = serve_users(root.path(), "r", &[]);
    let mut client = server.user("ada");
    let accepted = |listener: TcpListener| {
        let mut content = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut content).unwrap();
        content
    };
    let listener = client.active();
    client.expect(&[("RETR ten.txt", 150)]);
    assert_eq!(accepted(listener), b"0123456789");
    assert_eq!(client.reply().0, 226);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let eprt = format!("EPRT |1|127.0.0.1|{}|", listener.local_addr().unwrap().port());
    client.expect(&[(&eprt, 200), ("NLST sub", 150)]);
    assert_eq!(accepted(listener), b"sub/deep.txt\r\n");
    assert_eq!(client.reply().0, 226);

    let text = client.say("PASV").1;
    let numbers: Vec<u16> =
        text.split(['(', ')']).nth(1).unwrap().split(',').map(|number| number.parse().unwrap()).collect();
    let mut data = TcpStream::connect(("127.0.0.1", numbers[4] * 256 + numbers[5])).unwrap();
    client.expect(&[("RETR ten.txt", 150)]);
    let mut content = Vec::new();
    data.read_to_end(&mut content).unwrap();
    assert_eq!((content, client.reply().0), (b"0123456789".to_vec(), 226));
}

#[test]
fn commands_that_come_during_a_transfer_wait_for_its_end() {
    let root = files();
    fs::write(root.path().join("big"), bytes(20_000_000)).unwrap();
    let server = serve(root.path(), &[]);
    let mut client = server.anonymous();
    let mut data = client.passive();
    client.expect(&[("RETR big", 150)]);
    let (code, text) = client.say("STAT");
    assert_eq!(code, 211);
    assert!(text.contains("A transfer runs"), "{text}");
    // More than are kept.
    client.write(&b"NOOP\r\n".repeat(40));
    client.write(b"QUIT\r\n");
    let mut content = Vec::new();
    data.read_to_end(&mut content).unwrap();
    assert!(content == bytes(20_000_000));
    assert_eq!(client.reply().0, 226);
    for _ in 0..40 {
        assert_eq!(client.reply().0, 200);
    }
    assert_eq!(client.reply().0, 221);
}

#[test]
fn many_clients_at_once() {
    let root = files();
    let content = bytes(700_000);
    fs::write(root.path().join("file"), &content).unwrap();
    let server = serve_users(root.path(), "r", &["--clients-per-address", "40", "--workers", "2"]);
    std::thread::scope(|threads| {
        for number in 0..40 {
            let (server, content) = (&server, &content);
            threads.spawn(move || {
                let mut client = if number % 4 == 0 { server.user("ada") } else { server.anonymous() };
                for _ in 0..3 {
                    assert!(client.fetch("RETR file") == *content);
                    if number % 4 == 0 {
                        assert_eq!(client.store(&format!("STOR own-{number}"), content).0, 226);
                    }
                }
                client.expect(&[("QUIT", 221)]);
            });
        }
    });
    assert!(fs::read(root.path().join("own-36")).unwrap() == content);
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 4 + 1 + 10);
}
