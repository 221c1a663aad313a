//! A fetcher: many pages at once, but no more than four, and the results as they come. It fetches
//! from a server of its own.
//!
//! # Prints
//! ```text
//! 12 pages, 1 of them not found, 13 bytes; never more than 4 at once
//! ```

use selvedge::io::BufReader;
use selvedge::net::{TcpListener, TcpStream, connect};
use selvedge::scope::Threads;
use selvedge::sync::Semaphore;
use selvedge::{sleep, spawn};
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

static SERVED: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

async fn serve(listener: TcpListener) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        drop(spawn(answer(stream)));
    }
}

async fn answer(stream: TcpStream) -> io::Result<()> {
    let request = stream.lines().next().await?.unwrap_or_default();
    MOST.fetch_max(SERVED.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
    sleep(Duration::from_millis(3)).await;
    SERVED.fetch_sub(1, Ordering::SeqCst);
    let page = request.split(' ').nth(1).unwrap_or_default().trim_start_matches("/page/");
    let reply = match page {
        "7" => "HTTP/1.0 404 Not Found\r\n\r\n".to_string(),
        page => format!("HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{page}", page.len()),
    };
    stream.write_all(reply.as_bytes()).await
}

/// The length of a page; `None` if there is none.
async fn fetch(address: Arc<str>, page: u32) -> io::Result<Option<usize>> {
    let stream = connect(&*address).await?;
    stream.write_all(format!("GET /page/{page} HTTP/1.0\r\n\r\n").as_bytes()).await?;
    let mut reply = BufReader::new(&stream);
    let mut head = String::new();
    while reply.read_line(&mut head).await? > 2 {}
    let is_found = head.starts_with("HTTP/1.0 200");
    let mut body = reply.buffer().to_vec();
    body.extend(stream.read_to_end().await?);
    Ok(is_found.then_some(body.len()))
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        let listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
        let address: Arc<str> = listener.local_addr().to_string().into();
        drop(spawn(serve(listener)));

        let (mut fetches, limit) = (Threads::new(), Arc::new(Semaphore::new(4)));
        for page in 0..12 {
            let (address, limit) = (address.clone(), limit.clone());
            fetches.spawn(async move {
                let _permit = limit.acquire().await;
                fetch(address, page).await
            });
        }
        let (mut pages, mut missing, mut bytes) = (0, 0, 0);
        while let Some(fetched) = fetches.next().await {
            pages += 1;
            match fetched?? {
                Some(length) => bytes += length,
                None => missing += 1,
            }
        }
        let most = if MOST.load(Ordering::SeqCst) <= 4 { "never" } else { "at times" };
        println!("{pages} pages, {missing} of them not found, {bytes} bytes; {most} more than 4 at once");
        Ok(())
    })
}
