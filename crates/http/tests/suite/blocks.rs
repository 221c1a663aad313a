//! Files that are read past the page cache: what comes back, what is read how often, and what
//! happens when the disk fails.

use selvedge_core::{round_robin_over, sleep, spawn_local};
use selvedge_handler::report_to;
use selvedge_http::{BlockCache, BlockCounts, Config, DocumentRoot, Site};
use selvedge_io::EventLoop;
use selvedge_io::fs::Driver;
use selvedge_io::net::UnixStream;
use selvedge_sim::{Call, Fault, Faults};
use std::fs;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Mutex, Once};
use std::time::Duration;

const BLOCK: usize = 64 << 10;

/// All reports of this program.
static REPORTS: Mutex<Vec<String>> = Mutex::new(Vec::new());
static HEARING: Once = Once::new();

/// The reports with this text in them.
fn reports(text: &str) -> Vec<String> {
    let reports = REPORTS.lock().unwrap();
    reports.iter().filter(|one| one.contains(text)).cloned().collect()
}

/// A directory on the disk, with files that were left alone for long enough to be kept.
fn settled(files: &[(&str, usize)]) -> tempfile::TempDir {
    HEARING.call_once(|| {
        let is_first = report_to(|severity, message| {
            REPORTS.lock().unwrap().push(format!("{}: {message}", severity.name()));
        });
        assert!(is_first);
    });
    let site = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for (name, len) in files {
        fs::write(site.path().join(name), content(*len)).unwrap();
    }
    std::thread::sleep(Duration::from_millis(2100));
    site
}

/// Bytes that tell where they belong.
fn content(len: usize) -> Vec<u8> {
    (0..len as u32).map(|n| (n.wrapping_mul(n) >> 9) as u8 ^ (n >> 14) as u8).collect()
}

fn config(blocks: &BlockCache) -> Config {
    Config { blocks: Some(blocks.clone()), ..Config::default() }
}

/// Runs `client` with a site of `directory` in one worker.
fn with_site<T: 'static>(
    driver: Driver,
    directory: &Path,
    blocks: &BlockCache,
    client: impl AsyncFnOnce(Rc<Site>) -> T + 'static,
) -> T {
    let (root, config) = (DocumentRoot::new(directory).unwrap(), config(blocks));
    let main = async move { client(Site::new(root, config, None)).await };
    round_robin_over(&mut EventLoop::with_driver(driver).unwrap(), main).unwrap()
}

/// All bytes that the site sends for a request that asks for the end of the connection.
async fn ask(site: &Rc<Site>, path: &str, fields: &str) -> Vec<u8> {
    let (client, server) = UnixStream::pair().unwrap();
    let server = spawn_local(site.serve(server.into(), None));
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    let mut reply = Vec::with_capacity(1 << 16);
    while let Ok(1..) = client.read_to_spare(&mut reply).await {
        reply.reserve(1 << 16);
    }
    server.await.unwrap();
    reply
}

/// Status and body of a reply.
fn parts(reply: &[u8]) -> (u16, &[u8]) {
    let end = reply.windows(4).position(|end| end == b"\r\n\r\n").expect("a head") + 4;
    (std::str::from_utf8(&reply[9..12]).unwrap().parse().unwrap(), &reply[end..])
}

/// The lengths at which something may go wrong, whole and in ranges, with both drivers of the disk.
#[test]
fn files_of_all_lengths_come_whole_and_in_ranges() {
    let lens = [0, 1, 4095, 4096, 4097, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK, 5 * BLOCK + 4097];
    let names: Vec<String> = lens.iter().map(usize::to_string).collect();
    let files: Vec<(&str, usize)> = names.iter().map(String::as_str).zip(lens).collect();
    let site = settled(&files);
    for driver in [Driver::Ring, Driver::Pool] {
        let blocks = BlockCache::new(16 << 20);
        with_site(driver, site.path(), &blocks, async move |site| {
            for len in lens {
                let content = content(len);
                for _ in 0..2 {
                    let reply = ask(&site, &format!("/{len}"), "").await;
                    assert!(parts(&reply) == (200, &content[..]), "{len}");
                }
                for (start, end) in [(0, len), (1, len), (len / 2, len), (len / 3, len / 2), (0, len.min(1))]
                {
                    if start >= end {
                        continue;
                    }
                    let range = format!("Range: bytes={start}-{}\r\n", end - 1);
                    let reply = ask(&site, &format!("/{len}"), &range).await;
                    assert!(parts(&reply) == (206, &content[start..end]), "{len}: {start}..{end}");
                }
            }
            let whole = 5 * BLOCK + 4097;
            let range = format!("Range: bytes=0-9,{BLOCK}-{},-3\r\n", 2 * BLOCK + 5);
            let reply = ask(&site, &format!("/{whole}"), &range).await;
            let (status, body) = parts(&reply);
            let content = content(whole);
            let has = |part: &[u8]| body.windows(part.len()).any(|window| window == part);
            assert_eq!(status, 206);
            assert!(has(&content[..10]) && has(&content[BLOCK..2 * BLOCK + 6]) && has(&content[whole - 3..]));
        });
        let counts = blocks.counts();
        assert!(counts.hits > 0 && counts.misses > 0 && counts.evicted == 0, "{counts:?}");
    }
}

/// Clients that ask for the same cold file at once: each block is read once.
#[test]
fn a_block_is_read_once_for_all_that_wait() {
    let site = settled(&[("big", 20 * BLOCK + 1)]);
    let blocks = BlockCache::new(16 << 20);
    with_site(Driver::default(), site.path(), &blocks, async |site| {
        let clients: Vec<_> = (0..30)
            .map(|_| {
                let site = site.clone();
                spawn_local(async move { ask(&site, "/big", "").await })
            })
            .collect();
        for client in clients {
            assert!(parts(&client.await.unwrap()) == (200, &content(20 * BLOCK + 1)[..]));
        }
    });
    let BlockCounts { reads, misses, bytes, .. } = blocks.counts();
    assert_eq!(reads, 21);
    assert!(misses >= 1 && bytes > 20 * BLOCK as u64, "{misses} {bytes}");
}

/// The cache never has more than it may, a long file streams through it, and a block that is asked
/// for again and again stays.
#[test]
fn a_long_file_streams_through_a_small_cache() {
    const ROOM: usize = 32 * (BLOCK + 1024);
    let site = settled(&[("hot", 1000), ("long", 200 * BLOCK)]);
    let blocks = BlockCache::new(ROOM);
    let counts = blocks.clone();
    with_site(Driver::default(), site.path(), &blocks, async move |site| {
        for _ in 0..4 {
            ask(&site, "/hot", "").await;
        }
        let before = counts.counts();
        assert_eq!((before.hits, before.misses), (3, 1));
        for _ in 0..2 {
            let reply = ask(&site, "/long", "").await;
            assert!(parts(&reply) == (200, &content(200 * BLOCK)[..]));
            assert!(counts.counts().bytes <= ROOM as u64);
        }
        let scanned = counts.counts();
        assert!(scanned.evicted >= 300, "{scanned:?}");
        ask(&site, "/hot", "").await;
        assert_eq!(counts.counts().reads, scanned.reads, "the scan has driven it out");
    });
}

/// A client that does not read: the server reads no further than it sends.
#[test]
fn a_client_that_does_not_read_has_nothing_read_for_it() {
    let site = settled(&[("long", 200 * BLOCK)]);
    let blocks = BlockCache::new(64 << 20);
    let counts = blocks.clone();
    with_site(Driver::default(), site.path(), &blocks, async move |site| {
        let (client, server) = UnixStream::pair().unwrap();
        let server = spawn_local(site.serve(server.into(), None));
        client.write_all(b"GET /long HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        sleep(Duration::from_millis(300)).await;
        let read = counts.counts().reads;
        assert!((1..40).contains(&read), "{read} blocks");
        drop(client);
        server.await.unwrap();
    });
}

/// A file that is written to in its place is read anew, and blocks of two states are never mixed
/// for a request that comes after the change.
#[test]
fn a_changed_file_is_read_anew() {
    let site = settled(&[("file", 3 * BLOCK)]);
    let path = site.path().join("file");
    let blocks = BlockCache::new(16 << 20);
    let counts = blocks.clone();
    with_site(Driver::default(), site.path(), &blocks, async move |site| {
        for byte in [1, 2, 3] {
            assert_eq!(parts(&ask(&site, "/file", "").await).1.len(), 3 * BLOCK);
            fs::write(&path, vec![byte; 3 * BLOCK]).unwrap();
            let reply = ask(&site, "/file", "").await;
            assert!(parts(&reply) == (200, &vec![byte; 3 * BLOCK][..]), "{byte}");
        }
        assert_eq!(counts.counts().bytes / BLOCK as u64, 3, "blocks of a file that was just changed stay");
    });
}

/// The disk fails amid a file: the reply is cut, and the report says where. A failure at the first
/// byte is a status.
#[test]
fn a_read_that_fails_cuts_the_reply() {
    let site = settled(&[("fails", 20 * BLOCK), ("fails-at-once", 20 * BLOCK)]);
    let blocks = BlockCache::new(16 << 20);
    with_site(Driver::Ring, site.path(), &blocks, async |site| {
        let faults = Faults::here(|call, nth| (call == Call::Pread && nth >= 9).then_some(Fault::Errno(5)));
        let reply = ask(&site, "/fails", "").await;
        drop(faults);
        let (status, body) = parts(&reply);
        let len = body.len();
        assert!(
            status == 200 && (1..20 * BLOCK).contains(&len) && content(20 * BLOCK).starts_with(body),
            "{len}"
        );
        // The disk is in order again.
        assert!(parts(&ask(&site, "/fails", "").await).1 == content(20 * BLOCK));
        let faults = Faults::here(|call, nth| (call == Call::Pread && nth == 0).then_some(Fault::Errno(5)));
        assert_eq!(parts(&ask(&site, "/fails-at-once", "").await).0, 500);
        drop(faults);
    });
    let at = reports("error: /fails: byte ");
    assert!(at.len() == 1 && at[0].contains("Input/output error"), "{at:?}");
    let cut = reports("warning: a response was cut");
    assert_eq!(cut.iter().filter(|one| one.contains("/fails: byte ")).count(), 1, "{cut:?}");
    assert_eq!(reports("error: /fails-at-once: byte 0 and what follows cannot be read").len(), 1);
}

/// The kernel may stop a read early at any place.
#[test]
fn short_reads_are_gone_on_with() {
    let site = settled(&[("short", 5 * BLOCK + 100)]);
    let blocks = BlockCache::new(16 << 20);
    with_site(Driver::Ring, site.path(), &blocks, async |site| {
        let faults = Faults::here(|call, nth| {
            let limit = [4096, 10_000, 20_480, 1 << 20][nth as usize % 4];
            (call == Call::Pread).then_some(Fault::Short(limit))
        });
        assert!(parts(&ask(&site, "/short", "").await) == (200, &content(5 * BLOCK + 100)[..]));
        drop(faults);
    });
}

/// A file system that takes no direct reads: the file comes from the page cache, and one report
/// says so for all of its files.
#[test]
fn where_direct_reads_are_refused_the_page_cache_serves() {
    let site = settled(&[("refused-a", 3 * BLOCK), ("refused-b", 10)]);
    let blocks = BlockCache::new(16 << 20);
    let counts = blocks.clone();
    with_site(Driver::Ring, site.path(), &blocks, async move |site| {
        let faults = Faults::here(|call, nth| (call == Call::Pread && nth < 4).then_some(Fault::Errno(22)));
        for _ in 0..2 {
            assert!(parts(&ask(&site, "/refused-a", "").await) == (200, &content(3 * BLOCK)[..]));
            assert!(
                parts(&ask(&site, "/refused-b", "Range: bytes=1-3\r\n").await) == (206, &content(10)[1..4])
            );
        }
        drop(faults);
        assert_eq!((counts.counts().hits, counts.counts().bytes), (0, 0));
    });
    let said = reports("/refused-");
    assert!(
        said.len() == 1 && said[0].starts_with("warning: ") && said[0].contains("page cache"),
        "{said:?}"
    );
}

/// A file gets shorter while it is sent: the reply is cut at the new end.
#[test]
fn a_file_that_gets_shorter_cuts_the_reply() {
    let site = settled(&[("shrinks", 200 * BLOCK)]);
    let path = site.path().join("shrinks");
    let blocks = BlockCache::new(64 << 20);
    with_site(Driver::default(), site.path(), &blocks, async move |site| {
        let (client, server) = UnixStream::pair().unwrap();
        let server = spawn_local(site.serve(server.into(), None));
        client.write_all(b"GET /shrinks HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        sleep(Duration::from_millis(100)).await;
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_len(100 * BLOCK as u64 + 10).unwrap();
        let mut reply = Vec::with_capacity(1 << 20);
        while let Ok(1..) = client.read_to_spare(&mut reply).await {
            reply.reserve(1 << 20);
        }
        server.await.unwrap();
        let (status, body) = parts(&reply);
        assert!(status == 200 && body.len() <= 100 * BLOCK + 10, "{}", body.len());
    });
    let said = reports("/shrinks got shorter while it was sent");
    assert!(said.len() == 1 && said[0].contains(&format!("was cut at {}", 100 * BLOCK + 10)), "{said:?}");
}
