//! Each command, in each state: the exact codes, as RFC 959 §5.4 and the RFCs of the other commands
//! list them.

use crate::harness::{files, serve, serve_users};
use std::fs;

#[test]
fn before_the_login() {
    let root = files();
    let server = serve(root.path(), &[]);
    let mut client = server.connect();
    client.expect(&[("NOOP", 200), ("SYST", 215), ("FEAT", 211), ("HELP", 214), ("OPTS UTF8 ON", 200)]);
    client.expect(&[("ACCT x", 202), ("REIN", 220), ("PASS x", 503), ("AUTH TLS", 502), ("PBSZ 0", 503)]);
    for line in [
        "CWD /",
        "CDUP",
        "PWD",
        "TYPE I",
        "MODE S",
        "STRU F",
        "PASV",
        "EPSV",
        "PORT 127,0,0,1,9,9",
        "EPRT |1|127.0.0.1|9999|",
        "REST 0",
        "RETR ten.txt",
        "STOR x",
        "STOU",
        "APPE x",
        "ALLO 1",
        "DELE ten.txt",
        "MKD x",
        "RMD sub",
        "RNFR ten.txt",
        "RNTO x",
        "LIST",
        "NLST",
        "MLSD",
        "MLST",
        "SIZE ten.txt",
        "MDTM ten.txt",
        "STAT",
        "SITE HELP",
        "ABOR",
    ] {
        client.expect(&[(line, 530)]);
    }
    client.expect(&[("QUIT", 221)]);
    assert!(client.is_closed());
}

#[test]
fn what_is_no_command() {
    let root = files();
    let server = serve(root.path(), &[]);
    let mut client = server.connect();
    client.expect(&[
        ("NOPE", 500),
        ("", 500),
        ("SMNT /", 502),
        ("USER", 501),
        ("SYST x", 501),
        ("RETR", 501),
    ]);
    client.write(&[b'x'; 10_000]);
    client.write(b"\r\n");
    assert_eq!(client.reply().0, 500);
    client.write(b"NOOP\0\r\nnoop\nNo");
    client.write(b"Op\r\n");
    assert_eq!([client.reply().0, client.reply().0, client.reply().0], [500, 200, 200]);
    client.write(b"\xff\xfd\x01NOOP\r\n");
    let mut refusal = [0; 3];
    std::io::Read::read_exact(&mut client.stream(), &mut refusal).unwrap();
    assert_eq!(refusal, *b"\xff\xfc\x01");
    assert_eq!(client.reply().0, 200);
}

#[test]
fn users_log_in_and_out() {
    let root = files();
    let server = serve_users(root.path(), "r", &[]);
    let mut client = server.connect();
    client.expect(&[("USER ada", 331), ("PASS wrong", 530), ("PASS secret", 503), ("USER nobody", 331)]);
    client.expect(&[("PASS secret", 530), ("USER ada", 331), ("PASS secret", 230), ("PASS secret", 503)]);
    client.expect(&[("CWD sub", 250), ("PWD", 257), ("USER bob", 331), ("PWD", 530), ("PASS secret", 230)]);
    assert_eq!(client.say("PWD").1, "257 \"/\" is the directory.\r\n", "a new login begins in the root");
    client.expect(&[("REIN", 220), ("PWD", 530), ("USER ftp", 331), ("PASS", 230), ("PWD", 257)]);
}

#[test]
fn parameters() {
    let root = files();
    let server = serve(root.path(), &[]);
    let mut client = server.anonymous();
    client.expect(&[
        ("TYPE A", 200),
        ("TYPE a n", 200),
        ("TYPE I", 200),
        ("TYPE L 8", 200),
        ("TYPE A T", 504),
    ]);
    client.expect(&[("TYPE E", 504), ("TYPE L 7", 504), ("TYPE X", 501), ("TYPE", 501)]);
    client.expect(&[("MODE S", 200), ("MODE B", 504), ("MODE C", 504), ("MODE X", 501)]);
    client.expect(&[("STRU F", 200), ("STRU R", 504), ("STRU P", 504), ("STRU X", 501)]);
    client.expect(&[("REST 5", 350), ("REST x", 501), ("REST -1", 501), ("REST +1", 501)]);
    client.expect(&[("ALLO 10", 202), ("ALLO 10 R 5", 202), ("ALLO x", 501)]);
    client.expect(&[("SITE HELP", 200), ("SITE CHMOD 777 x", 500), ("HELP RETR", 214), ("HELP x", 502)]);
    client.expect(&[("ABOR", 226), ("OPTS UTF8 OFF", 501), ("OPTS x", 501), ("OPTS UTF8", 200)]);
    assert_eq!(
        client.say("FEAT").1,
        "211-Features\r\n EPRT\r\n EPSV\r\n MDTM\r\n MLST Type*;Size*;Modify*;Perm*;Unique*;\r\n REST STREAM\r\n \
         SIZE\r\n TVFS\r\n UTF8\r\n211 End\r\n"
    );
    assert_eq!(client.say("OPTS MLST size;TYPE;nonsense;").1, "200 MLST OPTS Type;Size;\r\n");
    assert!(client.say("FEAT").1.contains(" MLST Type*;Size*;Modify;Perm;Unique;\r\n"));
    assert_eq!(client.say("OPTS MLST").1, "200 MLST OPTS\r\n");
    let (code, status) = client.say("STAT");
    assert_eq!(code, 211);
    assert!(status.contains(" user: anonymous\r\n") && status.contains(" TYPE I, "), "{status}");
}

#[test]
fn directories() {
    let root = files();
    let server = serve_users(root.path(), "r", &[]);
    let mut client = server.user("ada");
    client.expect(&[
        ("CWD sub", 250),
        ("CWD none", 550),
        ("CWD deep.txt", 550),
        ("CDUP", 200),
        ("CDUP", 200),
    ]);
    assert_eq!(client.say("PWD"), (257, "257 \"/\" is the directory.\r\n".into()));
    assert_eq!(client.say("MKD a\"b").1, "257 \"/a\"\"b\" is made.\r\n");
    client.expect(&[
        ("MKD a\"b", 550),
        ("CWD a\"b", 250),
        ("MKD \u{e4}\u{4e2d}", 257),
        ("MKD /x/y", 550),
        ("MKD /", 550),
    ]);
    assert!(root.path().join("a\"b/\u{e4}\u{4e2d}").is_dir());
    client.expect(&[
        ("RMD /a\"b", 550),
        ("RMD \u{e4}\u{4e2d}", 250),
        ("RMD /a\"b", 250),
        ("PWD", 257),
        ("RMD /", 550),
    ]);
    client.expect(&[("CWD ../../../sub", 250), ("XPWD", 257), ("XCUP", 200), ("RMD ten.txt", 550)]);
    client.write(b"MKD \xe4\r\n");
    assert_eq!(client.reply().0, 550, "a new name is UTF-8");
}

#[test]
fn files_are_removed_and_renamed() {
    let root = files();
    let server = serve_users(root.path(), "r", &[]);
    let mut client = server.user("ada");
    client.expect(&[("DELE ten.txt", 250), ("DELE ten.txt", 550), ("DELE sub", 550), ("RNTO x", 503)]);
    client.expect(&[
        ("RNFR none", 550),
        ("RNTO x", 503),
        ("RNFR lines.txt", 350),
        ("NOOP", 200),
        ("RNTO x", 503),
    ]);
    client.expect(&[
        ("RNFR lines.txt", 350),
        ("RNTO sub/moved", 250),
        ("RNFR sub/moved", 350),
        ("RNTO none/x", 553),
    ]);
    client.expect(&[
        ("RNFR sub", 350),
        ("RNTO sub/in", 553),
        ("RNFR sub/moved", 350),
        ("RNTO sub/deep.txt", 250),
    ]);
    assert_eq!(fs::read(root.path().join("sub/deep.txt")).unwrap(), b"warp\nweft\n");
}

#[test]
fn what_files_are() {
    let root = files();
    let server = serve(root.path(), &[]);
    let mut client = server.anonymous();
    assert_eq!(client.say("SIZE ten.txt").1, "213 10\r\n");
    assert_eq!(client.say("MDTM /ten.txt").1, "213 19941106084937\r\n");
    client.expect(&[
        ("SIZE sub", 550),
        ("SIZE none", 550),
        ("MDTM sub", 550),
        ("MDTM none", 550),
        ("MLST none", 550),
    ]);
    let (code, text) = client.say("MLST ten.txt");
    assert_eq!(code, 250);
    let lines: Vec<&str> = text.split("\r\n").collect();
    assert_eq!((lines[0], lines[2]), ("250-Facts", "250 End"));
    assert!(lines[1].starts_with(" Type=file;Size=10;Modify=19941106084937;Perm=r;Unique="), "{text}");
    assert!(lines[1].ends_with("; /ten.txt"), "{text}");
    client.expect(&[("OPTS MLST type;", 200), ("CWD sub", 250)]);
    assert_eq!(client.say("MLST").1, "250-Facts\r\n Type=dir; /sub\r\n250 End\r\n");
    client.expect(&[("TYPE A", 200), ("SIZE deep.txt", 550)]);
    let (code, text) = client.say("STAT /");
    assert_eq!(code, 212);
    assert!(
        text.contains(" -rw-r--r--   1 ftp      ftp                10 Nov 06  1994 ten.txt\r\n"),
        "{text}"
    );
    assert_eq!((client.say("STAT deep.txt").0, client.say("STAT none").0), (213, 450));
}

#[test]
fn lists() {
    let root = files();
    let server = serve(root.path(), &[]);
    let mut client = server.anonymous();
    assert_eq!(client.fetch_text("NLST"), "lines.txt\r\nsub\r\nten.txt\r\n");
    assert_eq!(client.fetch_text("NLST -a"), ".dot\r\nlines.txt\r\nsub\r\nten.txt\r\n");
    assert_eq!(client.fetch_text("NLST sub"), "sub/deep.txt\r\n");
    assert_eq!(client.fetch_text("NLST ten.txt"), "ten.txt\r\n");
    assert_eq!(client.fetch_text("NLST *.txt"), "lines.txt\r\nten.txt\r\n");
    assert_eq!(client.fetch_text("NLST /sub/d??p*"), "/sub/deep.txt\r\n");
    assert_eq!(client.fetch_text("LIST t*").lines().count(), 1);
    assert_eq!(client.fetch_text("NLST .*"), ".dot\r\n");
    let list = client.fetch_text("LIST -l");
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[2], "-rw-r--r--   1 ftp      ftp                10 Nov 06  1994 ten.txt");
    assert!(lines[1].starts_with("drwx") && lines[1].ends_with(" sub"), "{list}");
    client.expect(&[("OPTS MLST type;size;", 200)]);
    let facts = "Type=file;Size=0; .dot\r\nType=file;Size=10; lines.txt\r\nType=dir; sub\r\nType=file;Size=10; ten.txt\r\n";
    assert_eq!(client.fetch_text("MLSD"), facts);
    for (line, code) in [
        ("LIST none", 450),
        ("NLST n*", 450),
        ("NLST */deep.txt", 450),
        ("MLSD *", 550),
        ("MLSD ten.txt", 501),
    ] {
        let _data = client.passive();
        client.expect(&[(line, code)]);
    }
    client.expect(&[("ABOR", 226), ("LIST", 425), ("RETR ten.txt", 425)]);
}

#[test]
fn addresses_of_data_connections() {
    let root = files();
    let server = serve(root.path(), &[]);
    let mut client = server.anonymous();
    let (code, text) = client.say("PASV");
    assert_eq!(code, 227);
    assert!(text.starts_with("227 Entering Passive Mode (127,0,0,1,") && text.ends_with(").\r\n"), "{text}");
    client.expect(&[("EPSV", 229), ("EPSV 1", 229), ("EPSV 2", 522), ("EPSV x", 501)]);
    client.expect(&[("PORT 1,2,3", 501), ("EPRT x", 501), ("EPRT |3|x|1|", 522)]);
    client.expect(&[
        ("EPSV ALL", 200),
        ("PASV", 503),
        ("PORT 127,0,0,1,9,9", 503),
        ("EPRT |1|127.0.0.1|9999|", 503),
    ]);
    assert_eq!(client.fetch("RETR ten.txt"), b"0123456789");
    client.expect(&[("REIN", 220), ("USER ftp", 331), ("PASS", 230), ("PASV", 227)]);
}
