//! Files that change while they are served, and names that lead elsewhere.

use super::{DIRECT, serve};
use crate::common::{bytes, log_lines, logged, ms, site, start};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const BIG: &str = "GET /huge.bin HTTP/1.1\r\nHost: a\r\n\r\n";

/// A file that shrinks while it is sent: what was promised cannot be kept, so the reply must not
/// become complete. It is said, and logged as what it was.
#[test]
fn a_file_truncated_while_it_is_sent() {
    let site = site();
    let path = site.path().join("huge.bin");
    for left in [20_000_000, 10_000_001, 0] {
        let content = bytes(40_000_000);
        fs::write(&path, &content).unwrap();
        let log = site.path().join("log");
        let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge-httpd"));
        command.arg(site.path()).args(["--cache-direct", DIRECT]);
        command.args(["--listen", "127.0.0.1:0", "--log"]).arg(&log).stderr(Stdio::piped());
        let mut server = start(command);
        let mut client = server.connect();
        client.send(BIG);
        std::thread::sleep(ms(100)); // the socket's buffers are full by now
        fs::File::options().write(true).open(&path).unwrap().set_len(left).unwrap();
        assert_eq!(client.try_reply(false), None, "the reply looks complete");
        let said = server.errors().line();
        assert!(said.contains("/huge.bin got shorter while it was sent"), "{said}");
        let (status, sent) = logged(log_lines(&log, 1).last().unwrap());
        assert!(status == 200 && (10_000..40_000_000).contains(&sent), "{sent} of {left}");
        let reply = server.get("/huge.bin");
        assert!(reply.body == fs::read(&path).unwrap(), "the next request sees the new file");
        fs::remove_file(&log).unwrap();
    }
}

/// A file that is written to while it is sent: what was promised is there, and is sent.
#[test]
fn a_file_that_grows_while_it_is_sent() {
    let site = site();
    let path = site.path().join("huge.bin");
    let content = bytes(40_000_000);
    fs::write(&path, &content).unwrap();
    let server = serve(site.path(), &["--validity", "0"]);
    for change in ["touched", "appended to"] {
        let mut client = server.connect();
        client.send(BIG);
        std::thread::sleep(ms(100)); // the socket's buffers are full by now
        let mut file = fs::File::options().append(true).open(&path).unwrap();
        match change {
            "touched" => file.set_modified(std::time::SystemTime::now()).unwrap(),
            _ => file.write_all(b"another line\n").unwrap(),
        }
        assert!(client.reply().body == content, "{change}");
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut log = fs::File::options().append(true).open(&path).unwrap();
            while !done.load(Ordering::Relaxed) {
                log.write_all(b"another line\n").unwrap();
            }
        });
        for _ in 0..5 {
            let reply = server.get("/huge.bin");
            assert!(reply.body.len() > content.len() && reply.body[..content.len()] == content[..]);
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// The file is replaced by renaming. A client that has begun to read gets the old file, whole.
#[test]
fn a_file_replaced_while_it_is_sent() {
    let site = site();
    let path = site.path().join("huge.bin");
    let content = bytes(40_000_000);
    fs::write(&path, &content).unwrap();
    let server = serve(site.path(), &["--validity", "0.1"]);
    let mut client = server.connect();
    client.send(BIG);
    std::thread::sleep(ms(100));
    fs::write(site.path().join("new"), b"new").unwrap();
    fs::rename(site.path().join("new"), &path).unwrap();
    assert!(client.reply().body == content);
    std::thread::sleep(ms(150));
    assert_eq!(client.ask(BIG).body, b"new");
    fs::remove_file(&path).unwrap();
    std::thread::sleep(ms(150));
    assert_eq!(client.ask(BIG).status, 404);
}

/// Small files are replaced and written over and over; every reply is one of the states, with the
/// head that belongs to it.
#[test]
fn changes_are_seen_within_the_validity_time_and_never_half() {
    let site = site();
    let server = serve(site.path(), &["--validity", "0.05"]);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 0u32;
            while !done.load(Ordering::Relaxed) {
                for (name, len) in [("small", 100), ("large", 100_000)] {
                    let content = format!("{round:>9}\n").repeat(len / 10 + round as usize % 7);
                    fs::write(site.path().join("new"), content).unwrap();
                    fs::rename(site.path().join("new"), site.path().join(name)).unwrap();
                }
                round += 1;
                std::thread::sleep(ms(2));
            }
        });
        let mut client = server.connect();
        let start = Instant::now();
        let mut latest = [0, 0];
        let mut changes = 0;
        while start.elapsed() < ms(1500) {
            for (which, name) in ["small", "large"].iter().enumerate() {
                let reply = client.ask(&format!("GET /{name} HTTP/1.1\r\nHost: a\r\n\r\n"));
                if reply.status == 404 && latest[which] == 0 {
                    continue;
                }
                assert_eq!(reply.status, 200);
                let text = String::from_utf8(reply.body).unwrap();
                let round: u32 = text[..9].trim().parse().unwrap();
                assert!(text.lines().all(|line| line.trim() == round.to_string()), "two states in one reply");
                assert!(round >= latest[which], "an older state came back");
                changes += u32::from(round > latest[which]);
                latest[which] = round;
            }
        }
        done.store(true, Ordering::Relaxed);
        assert!(changes > 10, "{changes} changes were seen");
    });
}

/// The served directory itself is put in place of another, by renaming and by turning a symbolic
/// link.
#[test]
fn a_directory_replaced_while_it_is_served() {
    let home = tempfile::tempdir().unwrap();
    let release = |name: &str| {
        fs::create_dir_all(home.path().join(name)).unwrap();
        fs::write(home.path().join(name).join("index.html"), name).unwrap();
        fs::write(home.path().join(name).join("large"), name.repeat(5000)).unwrap();
    };
    release("one");
    release("two");
    let link = |to: &str| {
        symlink(to, home.path().join("next")).unwrap();
        fs::rename(home.path().join("next"), home.path().join("current")).unwrap();
    };
    link("one");
    let served = home.path().join("current");
    let server = serve(&served, &["--validity", "0.1"]);
    let mut client = server.connect();
    let mut see = |expected: &str| {
        let start = Instant::now();
        for path in ["/", "/large"] {
            loop {
                let reply = client.ask(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
                let text = String::from_utf8(reply.body).unwrap();
                if reply.status == 200 && text.starts_with(expected) {
                    break;
                }
                assert!(reply.status == 503 || ["one", "two"].iter().any(|name| text.starts_with(name)));
                assert!(start.elapsed() < Duration::from_secs(5), "{expected} is not seen, but {text}");
                std::thread::sleep(ms(5));
            }
        }
    };
    see("one");
    link("two");
    see("two");
    // A directory in the place of the link, then nothing, then a directory again.
    fs::remove_file(&served).unwrap();
    fs::rename(home.path().join("one"), &served).unwrap();
    see("one");
    fs::rename(&served, home.path().join("away")).unwrap();
    std::thread::sleep(ms(250));
    assert_eq!(server.get("/").status, 503);
    fs::rename(home.path().join("two"), &served).unwrap();
    see("two");
}

#[test]
fn symbolic_links_lead_nowhere_else() {
    let site = site();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    let at = |name: &str| site.path().join(name);
    symlink("ten.txt", at("inside")).unwrap();
    symlink("../ten.txt", at("docs/up")).unwrap();
    symlink("docs", at("directory")).unwrap();
    symlink(outside.path().join("secret"), at("absolute")).unwrap();
    symlink(at("ten.txt"), at("absolute-inside")).unwrap();
    symlink(at("docs"), at("absolute-directory")).unwrap();
    symlink(at("absolute-inside"), at("docs/link")).unwrap();
    symlink(site.path(), at("absolute-root")).unwrap();
    let name = site.path().file_name().unwrap();
    symlink(Path::new("..").join(name).join("ten.txt"), at("out-and-in")).unwrap();
    // A directory with a name that begins as the root's name does.
    let beside = site.path().with_file_name(format!("{}-beside", name.display()));
    fs::create_dir(&beside).unwrap();
    fs::write(beside.join("secret"), "secret").unwrap();
    symlink(beside.join("secret"), at("beside")).unwrap();
    let fifo = at("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o644.into(), 0).unwrap();
    symlink(&fifo, at("absolute-fifo")).unwrap();
    symlink("../../../../../../../../etc/passwd", at("climbing")).unwrap();
    symlink(outside.path(), at("elsewhere")).unwrap();
    symlink("loop", at("loop")).unwrap();
    symlink("/proc/self/root/etc", at("magic")).unwrap();
    let server = serve(site.path(), &[]);
    for (path, status) in [
        ("/inside", 200),
        ("/docs/up", 200),
        ("/directory/", 200),
        ("/directory", 301),
        ("/absolute", 404),
        ("/absolute-inside", 200),
        ("/absolute-directory/", 200),
        ("/absolute-directory", 301),
        ("/absolute-directory/link", 200),
        ("/absolute-root/ten.txt", 200),
        ("/out-and-in", 200),
        ("/absolute-fifo", 404),
        ("/beside", 404),
        ("/climbing", 404),
        ("/elsewhere/secret", 404),
        ("/elsewhere", 404),
        ("/loop", 404),
        ("/magic/passwd", 404),
    ] {
        let reply = server.get(path);
        assert_eq!(reply.status, status, "{path}");
        assert!(!String::from_utf8_lossy(&reply.body).contains("secret"));
    }
    fs::remove_dir_all(beside).unwrap();
}

/// A directory without an index is there, and says that it shows nothing; so does one in which the
/// index is no file.
#[test]
fn directories_without_an_index() {
    let site = site();
    fs::create_dir_all(site.path().join("odd/index.html")).unwrap();
    let server = serve(site.path(), &[]);
    for (path, status) in
        [("/empty/", 403), ("/empty", 301), ("/odd/", 403), ("/none/", 404), ("/ten.txt/", 404), ("/", 200)]
    {
        assert_eq!(server.get(path).status, status, "{path}");
    }
    fs::remove_file(site.path().join("index.html")).unwrap();
    let server = serve(site.path(), &[]);
    assert_eq!(server.get("/").status, 403);
}

/// A FIFO is not opened: its reader sees the end of what another program writes, and nothing else.
#[test]
fn a_fifo_is_left_alone() {
    let site = site();
    let fifo = site.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o644.into(), 0).unwrap();
    let server = serve(site.path(), &["--validity", "0"]);
    std::thread::scope(|scope| {
        // Its opening waits for a reader.
        let writer = scope.spawn(|| fs::File::options().write(true).open(&fifo).unwrap());
        std::thread::sleep(ms(50));
        for _ in 0..20 {
            assert_eq!(server.get("/fifo").status, 404);
        }
        std::thread::sleep(ms(50));
        let left_alone = !writer.is_finished();
        let _reader = fs::File::options().read(true).custom_flags(0o4000).open(&fifo).unwrap();
        writer.join().unwrap();
        assert!(left_alone, "the server opened the FIFO");
    });
}

/// Two files of one length and one time of modification have different entity tags.
#[test]
fn entity_tags_tell_files_apart_whose_times_are_set() {
    let site = site();
    let server = serve(site.path(), &["--validity", "0"]);
    let tag = || server.get("/ten.txt").field("ETag").unwrap().trim_start_matches("W/").to_owned();
    let first = tag();
    let old = std::time::UNIX_EPOCH + Duration::from_secs(784_111_777);
    let write = |name: &str| {
        let path = site.path().join(name);
        fs::write(&path, b"9876543210").unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
        path
    };
    std::thread::sleep(ms(20));
    write("ten.txt");
    let second = tag();
    fs::rename(write("other"), site.path().join("ten.txt")).unwrap();
    let third = tag();
    assert!(first != second && second != third && first != third, "{first} {second} {third}");
}

#[test]
fn what_is_no_file_is_not_read() {
    let site = site();
    let fifo = site.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o644.into(), 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(site.path().join("socket")).unwrap();
    let server = serve(site.path(), &[]);
    assert_eq!(server.get("/fifo").status, 404);
    assert_eq!(server.get("/socket").status, 404);
    let long = "a/".repeat(2000);
    assert_eq!(server.get(&format!("/{long}")).status, 404);
    let long = "a".repeat(300);
    assert_eq!(server.get(&format!("/{long}")).status, 404);
}

/// More files than the cache takes, small and large, asked for in an order that suits no cache.
#[test]
fn more_files_than_the_cache_holds() {
    let site = tempfile::tempdir().unwrap();
    let content = |n: usize| format!("file {n} ").repeat(if n.is_multiple_of(3) { 2000 } else { 20 });
    for n in 0..2000 {
        fs::write(site.path().join(format!("{n}.txt")), content(n)).unwrap();
    }
    let server = serve(site.path(), &["--workers", "1"]);
    let mut client = server.connect();
    for turn in 0..5000usize {
        let n = turn * 7919 % 2000;
        let reply = client.ask(&format!("GET /{n}.txt HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!(String::from_utf8(reply.body).unwrap(), content(n));
    }
    // A file that is read past the page cache has two.
    let most = if DIRECT == "0" { 1100 } else { 2150 };
    assert!(server.descriptors() < most, "{}", server.descriptors());
}

/// Files with pages that are not in memory come from the disk, by way of the blocking pool.
#[test]
fn cold_files_are_sent_whole() {
    let site = site();
    let cold = |name: &str| {
        let file = fs::File::open(site.path().join(name)).unwrap();
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    };
    let server = serve(site.path(), &["--validity", "0", "--workers", "1"]);
    let mut client = server.connect();
    for _ in 0..10 {
        for name in ["ten.txt", "middle.bin", "big.bin"] {
            cold(name);
            let reply = client.ask(&format!("GET /{name} HTTP/1.1\r\nHost: a\r\n\r\n"));
            assert!(reply.body == fs::read(site.path().join(name)).unwrap(), "{name}");
        }
    }
}
