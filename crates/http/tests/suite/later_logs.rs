//! A site that is given another log while it serves.

use selvedge_core::{round_robin_over, spawn_local};
use selvedge_http::{Config, DocumentRoot, LogFile, Metrics, Site, StatusPage};
use selvedge_io::EventLoop;
use selvedge_io::net::UnixStream;
use std::net::Shutdown;
use std::path::Path;
use std::sync::Arc;

fn log(path: &Path) -> Option<Arc<LogFile>> {
    Some(Arc::new(LogFile::open(path).unwrap()))
}

/// The metrics of a site without routes tell the lines that a later log has lost, also beside those
/// of an earlier log.
#[test]
fn a_counted_site_tells_the_losses_of_a_later_log() {
    let told = round_robin_over(&mut EventLoop::new().unwrap(), async {
        let metrics = Metrics::new();
        let site = Site::with_counted_handler(StatusPage::new(&metrics), Config::default(), None, &metrics);
        for _ in 0..2 {
            site.set_log(log(Path::new("/dev/full"))).await;
            let (client, server) = UnixStream::pair().unwrap();
            let server = spawn_local(site.serve(server.into(), None));
            client.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
            client.read_to_end().await.unwrap();
            server.await.unwrap();
        }
        site.flush_log().await;
        metrics.prometheus()
    });
    let told = told.unwrap();
    assert!(told.contains("selvedge_log_lines_lost_total{reason=\"failed\"} 2\n"), "{told}");
}

/// The reply to the first request ends while there is no log. The log that comes later has no line
/// of it, although the connection has been busy all the time.
#[test]
fn a_reply_that_ended_without_a_log_is_in_no_later_one() {
    const LONG: usize = 2_000_000;
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().to_owned();
    for name in ["first", "second"] {
        std::fs::write(root.join(name), vec![b'x'; LONG]).unwrap();
    }
    std::fs::write(root.join("third"), "short").unwrap();
    round_robin_over(&mut EventLoop::new().unwrap(), async move {
        let tree = DocumentRoot::new(&root).unwrap();
        let site = Site::new(tree, Config::default(), log(&root.join("log")));
        let (client, server) = UnixStream::pair().unwrap();
        let server = spawn_local(site.serve(server.into(), None));
        for name in ["first", "second", "third"] {
            client.write_all(format!("GET /{name} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).await.unwrap();
        }
        client.shutdown(Shutdown::Write).unwrap();
        // No reply fits into the buffers of the sockets.
        let mut read = 0;
        let mut until = async |bytes: usize| {
            while read < bytes {
                let mut piece = Vec::with_capacity(64 << 10);
                match client.read_to_spare(&mut piece).await.unwrap() {
                    0 => break,
                    count => read += count,
                }
            }
        };
        until(100).await;
        site.set_log(None).await;
        until(LONG + 10_000).await;
        site.set_log(log(&root.join("later"))).await;
        until(usize::MAX).await;
        server.await.unwrap();
        site.flush_log().await;
    })
    .unwrap();
    let content = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
    let later = content("later");
    assert!(later.lines().count() == 1 && later.contains("/third"), "{later}");
    assert_eq!(content("log"), "");
}
