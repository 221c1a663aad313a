//! A request for a file in the cache allocates nothing, neither its connection thread nor the
//! scheduler nor the log line.

use selvedge_core::{round_robin_over, spawn, yield_now};
use selvedge_http::{Config, DocumentRoot, LogFile, Site, Stop};
use selvedge_io::EventLoop;
use selvedge_io::net::TcpListener;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::channel;

/// Counts the allocations of each OS thread.
struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator unchanged; counting touches a
// constant-initialised cell of the calling OS thread, which allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The requests in a row that allocate nothing.
const STRETCH: usize = 100;

/// The most stretches that are tried.
///
/// The log allocates too: by the clock, every 0.8 seconds, when its lines are written. On a slow
/// machine that lies in many of the stretches, on a fast one in few. What a request allocates lies
/// in all of them, so one that is free of allocations is enough.
const STRETCHES: usize = 200;

/// The count of the server's OS thread, as it was lately.
static SERVER: AtomicU64 = AtomicU64::new(0);

/// Asks for `path` often, and gives the fewest allocations of the server's OS thread in a stretch.
fn allocations(address: SocketAddr, path: &str) -> u64 {
    let mut client = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nUser-Agent: test\r\n\r\n");
    let mut ask = || {
        client.write_all(request.as_bytes()).unwrap();
        let mut buffer = [0; 1 << 16];
        let mut got = 0;
        loop {
            got += client.read(&mut buffer[got..]).unwrap();
            let head = buffer[..got].windows(4).position(|end| end == b"\r\n\r\n");
            let text = String::from_utf8_lossy(&buffer[..head.unwrap_or(0)]).into_owned();
            let len = text.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            if let (Some(head), Some(len)) = (head, len)
                && got == head + 4 + len.parse::<usize>().unwrap()
            {
                assert!(text.starts_with("HTTP/1.1 200 "));
                return;
            }
        }
    };
    (0..50).for_each(|_| ask());
    let mut fewest = u64::MAX;
    for _ in 0..STRETCHES {
        let before = SERVER.load(Relaxed);
        (0..STRETCH).for_each(|_| ask());
        fewest = fewest.min(SERVER.load(Relaxed) - before);
        if fewest == 0 {
            break;
        }
    }
    fewest
}

#[test]
fn a_cached_file_is_answered_without_allocation() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("small"), vec![b'x'; 612]).unwrap();
    std::fs::write(directory.path().join("large"), vec![b'x'; 20_000]).unwrap();
    let log = Arc::new(LogFile::open(directory.path().join("log")).unwrap());
    let (address_sender, address) = channel();
    let stop = Stop::new();
    let told = stop.clone();
    let tree = DocumentRoot::new(directory.path()).unwrap();
    let server = std::thread::spawn(move || {
        round_robin_over(&mut EventLoop::new().unwrap(), async move {
            let config = Config { validity: std::time::Duration::from_secs(600), ..Config::default() };
            let site = Site::new(tree, config, Some(log));
            let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
            address_sender.send(listener.local_addr()).unwrap();
            let ending = told.clone();
            let reporter = spawn(async move {
                while !ending.is_requested() {
                    SERVER.store(COUNT.get(), Relaxed);
                    yield_now().await;
                }
            });
            site.serve_tcp(listener, &told).await.unwrap();
            reporter.await.unwrap();
            site.drain().await;
        })
        .unwrap();
    });
    let address = address.recv().unwrap();
    for path in ["/small", "/large"] {
        let allocations = allocations(address, path);
        assert_eq!(allocations, 0, "{path}: allocations in {STRETCH} requests");
    }
    stop.request();
    server.join().unwrap();
}
