//! Which clients may do what: rights, roots, limits, and data connections to strangers.

use crate::harness::{Server, eventually, files, serve, serve_users, server, start, users};
use std::fs;
use std::io::Read;
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

#[test]
fn anonymous_clients_read_and_change_nothing() {
    let root = files();
    let server = serve(root.path(), &[]);
    let mut client = server.anonymous();
    client.expect(&[("STOR x", 532), ("APPE ten.txt", 532), ("STOU", 532), ("DELE ten.txt", 550)]);
    client.expect(&[("MKD x", 550), ("RMD sub", 550), ("RNFR ten.txt", 550), ("RNTO x", 503)]);
    assert_eq!(client.fetch("RETR ten.txt"), b"0123456789");
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 4);
}

#[test]
fn users_do_what_their_rights_allow() {
    let root = files();
    // A box for letters: it takes files and shows nothing.
    let users = users(root.path(), "w");
    let mut command = server();
    command.args(["--anonymous", "off", "--users"]).arg(users.path());
    let server = start(command);
    let mut client = server.user("bob");
    assert_eq!(client.store("STOR letter", b"a").0, 226);
    client.expect(&[
        ("STOR letter", 553),
        ("RETR letter", 550),
        ("LIST", 450),
        ("MLSD", 550),
        ("SIZE letter", 550),
    ]);
    client.expect(&[
        ("MLST", 550),
        ("STAT letter", 550),
        ("DELE letter", 550),
        ("RNFR letter", 550),
        ("MKD new", 257),
    ]);
    let mut client = server.connect();
    client.expect(&[("USER anonymous", 331), ("PASS me@example.org", 530)]);
}

#[test]
fn links_and_dots_do_not_lead_out() {
    let outside = files();
    let root = files();
    symlink(outside.path(), root.path().join("absolute")).unwrap();
    symlink("../../../../../../etc", root.path().join("relative")).unwrap();
    symlink("sub/deep.txt", root.path().join("inside")).unwrap();
    let server = serve_users(root.path(), "r", &[]);
    let mut client = server.user("ada");
    assert_eq!(client.fetch("RETR inside"), b"deep");
    assert_eq!(client.fetch_text("NLST"), "inside\r\nlines.txt\r\nsub\r\nten.txt\r\n");
    client.expect(&[("RETR absolute/ten.txt", 550), ("RETR relative/passwd", 550), ("CWD absolute", 550)]);
    client.expect(&[
        ("STOR absolute/x", 553),
        ("APPE absolute/ten.txt", 553),
        ("DELE absolute/ten.txt", 550),
    ]);
    client.expect(&[("MKD absolute/x", 550), ("RNFR absolute/ten.txt", 550), ("RNFR ten.txt", 350)]);
    client.expect(&[("RNTO absolute/x", 553), ("MLST relative", 550), ("SIZE absolute/ten.txt", 550)]);
    client.expect(&[("LIST absolute", 450), ("CWD ..", 250), ("CWD ../..", 250), ("PWD", 257)]);
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 4);
    assert_eq!(client.store("STOR absolute", b"mine").0, 226, "the link is replaced, and not followed");
    assert_eq!(fs::read(root.path().join("absolute")).unwrap(), b"mine");
}

#[test]
fn the_server_connects_to_no_stranger() {
    let root = files();
    let server = serve(root.path(), &[]);
    let mut client = server.anonymous();
    client.expect(&[("PORT 192,0,2,1,20,20", 504), ("PORT 127,0,0,2,20,20", 504), ("RETR ten.txt", 425)]);
    client.expect(&[
        ("PORT 127,0,0,1,3,255", 504),
        ("EPRT |1|127.0.0.1|25|", 504),
        ("EPRT |2|::1|2000|", 504),
    ]);
    // A port that was refused takes the one before away.
    let _listener = client.active();
    client.expect(&[("PORT 192,0,2,1,20,20", 504), ("RETR ten.txt", 425)]);
    let server = serve(root.path(), &["--no-active"]);
    server.anonymous().expect(&[
        ("PORT 127,0,0,1,20,20", 502),
        ("EPRT |1|127.0.0.1|2000|", 502),
        ("PASV", 227),
    ]);
}

#[test]
fn no_stranger_takes_a_data_connection() {
    let root = files();
    let server = serve(root.path(), &[]);
    let mut client = server.anonymous();
    let text = client.say("EPSV").1;
    let port: u16 = text.split('|').nth(3).unwrap().parse().unwrap();
    let mut stranger = connect_from("127.0.0.2", port);
    client.expect(&[("RETR ten.txt", 150)]);
    assert!(matches!(stranger.read(&mut [0; 10]), Ok(0) | Err(_)));
    let mut own = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut content = Vec::new();
    own.read_to_end(&mut content).unwrap();
    assert_eq!((content, client.reply().0), (b"0123456789".to_vec(), 226));
}

/// A connection from another address of this machine.
fn connect_from(source: &str, port: u16) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    use std::net::SocketAddr;
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddr::new(source.parse().unwrap(), 0)).unwrap();
    connect(&socket, &SocketAddr::from(([127, 0, 0, 1], port))).unwrap();
    socket.into()
}

#[test]
fn passive_ports_and_the_address_that_is_told() {
    let root = files();
    // A port that is free, and that the kernel gives to no other socket by itself.
    let start = 25_000 + u16::try_from(std::process::id() % 5000).unwrap();
    let free =
        (start..32_000).find(|&port| std::net::TcpListener::bind(("127.0.0.1", port)).is_ok()).unwrap();
    let range = format!("{free}-{free}");
    let server = serve(root.path(), &["--passive-ports", &range, "--passive-address", "192.0.2.7"]);
    let (mut one, mut other) = (server.anonymous(), server.anonymous());
    let told = format!("227 Entering Passive Mode (192,0,2,7,{},{}).\r\n", free >> 8, free & 255);
    assert_eq!(one.say("PASV").1, told);
    assert_eq!(one.say("PASV").1, told, "the port of the command before is free again");
    other.expect(&[("PASV", 425), ("EPSV", 425)]);
    one.expect(&[("ABOR", 226)]);
    assert_eq!(other.say("PASV").1, told);
}

#[test]
fn clients_are_counted() {
    let root = files();
    let server = serve(root.path(), &["--clients", "2"]);
    let first = server.connect();
    let _second = server.connect();
    let mut third = server.knock();
    assert_eq!(third.reply().0, 421);
    assert!(third.is_closed());
    drop(first);
    comes_in(&server);

    let server = serve(root.path(), &["--clients-per-address", "1"]);
    let mut first = server.connect();
    assert_eq!(server.knock().reply().0, 421);
    first.expect(&[("QUIT", 221)]);
    comes_in(&server);
}

/// A client is let in, soon after another one has gone.
fn comes_in(server: &Server) {
    eventually("a client has gone", || server.knock().reply().0 == 220);
}

#[test]
fn wrong_passwords_take_time_and_end_the_connection() {
    let root = files();
    let server = serve_users(root.path(), "r", &["--login-tries", "2", "--login-delay", "0.2"]);
    let mut client = server.connect();
    let begun = Instant::now();
    client.expect(&[("USER ada", 331), ("PASS wrong", 530), ("USER none", 331), ("PASS secret", 421)]);
    assert!(begun.elapsed() >= Duration::from_millis(600), "0.2 seconds, and then 0.4");
    assert!(client.is_closed());
}

#[test]
fn idle_clients_are_sent_away() {
    let root = files();
    let server = serve(root.path(), &["--idle", "0.05"]);
    let mut client = server.connect();
    assert_eq!(client.reply().0, 421);
    assert!(client.is_closed());
}

/// Over IPv6, PASV has no address to tell, and EPRT has one of its own kind.
#[test]
fn clients_of_ipv6() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        // This machine has no IPv6.
        return;
    }
    let root = files();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_selvedge-ftpd"));
    command.args(["--listen", "[::1]:0"]).arg(root.path());
    let server = start(command);
    let mut client = server.anonymous();
    client.expect(&[("PASV", 425), ("EPSV 2", 229), ("EPSV 1", 522), ("PORT 127,0,0,1,20,20", 504)]);
    assert_eq!(client.fetch("RETR ten.txt"), b"0123456789");
    let listener = std::net::TcpListener::bind("[::1]:0").unwrap();
    let eprt = format!("EPRT |2|::1|{}|", listener.local_addr().unwrap().port());
    client.expect(&[(&eprt, 200), ("RETR ten.txt", 150)]);
    let mut content = Vec::new();
    listener.accept().unwrap().0.read_to_end(&mut content).unwrap();
    assert_eq!((content, client.reply().0), (b"0123456789".to_vec(), 226));
}

#[test]
fn a_flood_of_clients_is_turned_away_and_leaves_nothing() {
    let root = files();
    let server = serve(root.path(), &["--clients", "10", "--clients-per-address", "10"]);
    let mut first = server.anonymous();
    let before = server.descriptors();
    let flood: Vec<_> = (0..200).map(|_| server.knock()).collect();
    let codes = flood.into_iter().map(|mut client| (client.reply().0, client));
    let (places, rest): (Vec<_>, Vec<_>) = codes.partition(|(code, _)| *code == 220);
    assert_eq!((places.len(), rest.len()), (9, 191));
    assert!(rest.iter().all(|(code, _)| *code == 421));
    // The clients that are there are served meanwhile, and have taken all the room.
    assert_eq!(first.fetch("RETR ten.txt"), b"0123456789");
    assert!(server.descriptors() <= before + 9 * 4, "{} descriptors", server.descriptors());
    drop((places, rest));
    eventually("there is room again", || server.knock().reply().0 == 220);
    eventually("the descriptors are free", || server.descriptors() <= before);
}
