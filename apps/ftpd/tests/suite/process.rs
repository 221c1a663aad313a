//! The process: signals, the command line, the log, users that are read again.

use crate::harness::{SECRET, bytes, eventually, files, serve, serve_users, server, start};
use rustix::process::Signal;
use std::fs;
use std::io::Read;
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_selvedge-ftpd")).args(arguments).output().unwrap()
}

#[test]
fn the_command_line() {
    let help = run(&["--help"]);
    assert!(help.status.success());
    assert!(String::from_utf8(help.stdout).unwrap().starts_with("selvedge-ftpd serves the files"));
    assert!(run(&["--version"]).stdout.starts_with(b"selvedge-ftpd 0"));
    let wrong = run(&["--nonsense"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8(wrong.stderr).unwrap().contains("--nonsense"));
    let missing = run(&["/nowhere/at/all"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8(missing.stderr).unwrap().contains("/nowhere/at/all: No such file"));
    let root = files();
    let users = root.path().join("users");
    fs::write(&users, "\nada:secret\n").unwrap();
    let users = run(&["--users", users.to_str().unwrap()]);
    let message = String::from_utf8(users.stderr).unwrap();
    assert_eq!(users.status.code(), Some(1));
    assert!(message.contains("users: line 2: ") && !message.contains("secret"), "{message}");
}

#[test]
fn a_server_that_stops_lets_transfers_end() {
    let root = files();
    fs::write(root.path().join("big"), bytes(20_000_000)).unwrap();
    let server = serve(root.path(), &[]);
    let (mut idle, mut busy) = (server.connect(), server.anonymous());
    let mut data = busy.passive();
    busy.expect(&[("RETR big", 150)]);
    data.read_exact(&mut [0; 1000]).unwrap();
    server.signal(Signal::TERM);
    assert_eq!(idle.reply().0, 421);
    eventually("no client is accepted", || std::net::TcpStream::connect(server.address).is_err());
    let mut rest = Vec::new();
    data.read_to_end(&mut rest).unwrap();
    assert_eq!(rest.len(), 20_000_000 - 1000);
    assert_eq!((busy.reply().0, busy.reply().0), (226, 421));
    assert_eq!(server.end().code(), Some(0));
}

#[test]
fn a_transfer_that_does_not_end_is_cut_off() {
    let root = files();
    let server = serve_users(root.path(), "r", &["--drain", "0.1"]);
    let mut client = server.user("ada");
    let _data = client.passive();
    client.expect(&[("STOR half", 150)]);
    server.signal(Signal::INT);
    assert_eq!(server.end().code(), Some(0));
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 4, "nothing is left of it");
}

#[test]
fn each_transfer_has_a_line_in_the_log() {
    let root = files();
    let log = tempfile::NamedTempFile::new().unwrap();
    let server = serve_users(root.path(), "r", &["--log", log.path().to_str().unwrap()]);
    let mut client = server.user("ada");
    client.fetch("RETR ten.txt");
    client.fetch("LIST");
    assert_eq!(client.store("STOR a b", b"12345").0, 226);
    client.expect(&[("TYPE A", 200)]);
    let _data = client.passive();
    client.expect(&[("STOR half", 150), ("ABOR", 426)]);
    assert_eq!(client.reply().0, 226);
    let text = fs::read_to_string(log.path()).unwrap();
    let ends: Vec<&str> = text.lines().map(|line| line.split_once(" 127.0.0.1 ").unwrap().1).collect();
    assert_eq!(
        ends,
        [
            "10 /ten.txt b _ o r ada ftp 0 * c",
            "5 /a_b b _ i r ada ftp 0 * c",
            "0 /half a _ i r ada ftp 0 * i"
        ]
    );
}

#[test]
fn users_are_read_again() {
    let root = files();
    let (users, errors) = (root.path().join("users"), root.path().join("errors"));
    let line = |name| format!("{name}:{}:{}:r\n", SECRET.trim(), root.path().display());
    fs::write(&users, line("ada")).unwrap();
    let mut command = server();
    command.args(["--login-tries", "1000", "--users"]).arg(&users).arg(root.path());
    command.stderr(fs::File::create(&errors).unwrap());
    let server = start(command);
    let mut before = server.user("ada");
    let logs_in = |name: &str| {
        let mut client = server.connect();
        client.say(&format!("USER {name}"));
        client.say("PASS secret").0 == 230
    };
    let is_told = |text: &str| fs::read_to_string(&errors).unwrap().contains(text);
    fs::write(&users, "nonsense").unwrap();
    server.signal(Signal::HUP);
    eventually("the mistake is told", || is_told("users: line 1: not of the form"));
    assert!(logs_in("ada") && !logs_in("eve"));
    fs::write(&users, line("eve")).unwrap();
    server.signal(Signal::HUP);
    eventually("the users are read", || is_told("the users were read again"));
    assert!(logs_in("eve") && !logs_in("ada"));
    before.expect(&[("PWD", 257)]);
}
