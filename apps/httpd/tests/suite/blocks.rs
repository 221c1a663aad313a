//! A server that reads files past the page cache, as its operator sees it.

use crate::common::{Server, bytes, let_settle, site};
use crate::configured::httpd;
use crate::controlled::ctl;
use rustix::process::Signal;
use std::fs;
use std::path::Path;

/// A server for `site` with a cache of this number of bytes.
fn direct(site: &Path, bytes: usize) -> Server {
    let file = site.join("site.toml");
    let text = format!(
        "listen = ['127.0.0.1:0']\nworkers = 2\ncontrol = 'control'\ncache = {{ direct = {bytes} }}\n\
         [[route]]\npath = '/metrics'\npage = 'metrics'\n[[route]]\npath = '/status'\npage = 'status'\n\
         [[route]]\ndirectory = '.'\n"
    );
    fs::write(&file, text).unwrap();
    crate::common::start(httpd(&[file.to_str().unwrap()]))
}

/// A count of the cache, as Prometheus gets it.
fn count(text: &str, name: &str) -> u64 {
    let name = format!("selvedge_block_cache_{name} ");
    text.lines().find_map(|line| line.strip_prefix(&name)).expect(text).parse().unwrap()
}

/// Workers share the cache, so a file is read once, whichever of them answers; and every place that
/// tells counters tells those of the cache.
#[test]
fn the_counts_are_told() {
    let site = site();
    let_settle();
    let server = direct(site.path(), 8 << 20);
    for _ in 0..20 {
        assert!(server.get("/big.bin").body == bytes(3_000_000));
    }
    let counters = ctl(&site.path().join("site.toml"), "counters").unwrap();
    let blocks = 3_000_000u64.div_ceil(64 << 10);
    assert_eq!((count(&counters, "reads_total"), count(&counters, "evicted_total")), (blocks, 0));
    let asked = count(&counters, "hits_total") + count(&counters, "misses_total");
    assert_eq!(asked, 20 * blocks);
    assert!((3_000_000..4 << 20).contains(&count(&counters, "bytes")), "{counters}");
    let metrics = String::from_utf8(server.get("/metrics").body).unwrap();
    assert_eq!(count(&metrics, "reads_total"), blocks);
    for text in [
        ctl(&site.path().join("site.toml"), "status").unwrap(),
        String::from_utf8(server.get("/status").body).unwrap(),
    ] {
        assert!(text.contains(&format!("{blocks} read, 0 evicted")), "{text}");
    }
}

/// A site that is much larger than the cache: all is right, and the memory of the server stays.
#[test]
fn a_site_larger_than_the_cache() {
    let site = site();
    let content = bytes(300_000);
    for n in 0..200 {
        fs::write(site.path().join(format!("{n}.bin")), &content).unwrap();
    }
    let_settle();
    let server = direct(site.path(), 4 << 20);
    let all = || {
        let mut client = server.connect();
        for n in 0..200 {
            let reply = client.ask(&format!("GET /{n}.bin HTTP/1.1\r\nHost: a\r\n\r\n"));
            assert!(reply.body == content, "{n}");
        }
    };
    all();
    let before = server.resident();
    (0..3).for_each(|_| all());
    let grown = server.resident().saturating_sub(before);
    assert!(grown < 8 << 20, "{grown} bytes more for 60 MB twice");
    let counters = ctl(&site.path().join("site.toml"), "counters").unwrap();
    assert!(count(&counters, "bytes") <= 4 << 20 && count(&counters, "evicted_total") > 2000, "{counters}");
}

/// A reload changes the routes while a file is sent by the old ones, and the counts go on.
#[test]
fn a_reload_amid_a_download() {
    let site = site();
    fs::write(site.path().join("huge.bin"), bytes(20_000_000)).unwrap();
    let_settle();
    let server = direct(site.path(), 8 << 20);
    let mut client = server.connect();
    client.send("GET /huge.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    client.wait_for_reply();
    let file = site.path().join("site.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("directory = '.'", "directory = 'docs'")).unwrap();
    ctl(&file, "reload").unwrap();
    assert_eq!(server.get("/ten.txt").status, 404);
    assert_eq!(server.get("/").body, b"<h1>Docs</h1>");
    assert!(client.reply().body == bytes(20_000_000));
    let counters = ctl(&file, "counters").unwrap();
    assert!(count(&counters, "reads_total") > 300, "{counters}");
    server.signal(Signal::TERM);
    assert!(server.end().success());
}
