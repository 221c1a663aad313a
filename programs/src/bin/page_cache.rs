//! A web server with a cache of pages that its handlers share: the first request for a page renders
//! it, and the requests that come meanwhile wait for that page, each as a parked thread.
//!
//! # Prints
//! ```text
//! 60 requests for 3 pages: 3 rendered
//! /warp: a page about warp
//! ```

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use selvedge::net::{TcpListener, connect};
use selvedge::spawn;
use selvedge::stm::{TCounter, TMap, atomically};
use selvedge::sync::one_shot;
use selvedge::time::sleep;
use selvedge_compat::hyper::serve;
use std::convert::Infallible;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

enum Page {
    /// A handler renders it.
    Rendering,
    Ready(Bytes),
}

#[derive(Clone)]
struct Cache {
    pages: TMap<String, Page>,
    rendered: TCounter,
}

impl Cache {
    async fn page(&self, path: &str) -> Bytes {
        let found = atomically(|tx| match self.pages.get(tx, path)? {
            Some(Page::Ready(page)) => Ok(Some(page.clone())),
            Some(Page::Rendering) => tx.retry(),
            None => {
                self.pages.insert(tx, path.to_string(), Page::Rendering)?;
                Ok(None)
            }
        });
        match found.await {
            Some(page) => page,
            None => {
                let page = render(path).await;
                atomically(|tx| {
                    self.rendered.add(tx, 1)?;
                    self.pages.insert(tx, path.to_string(), Page::Ready(page.clone())).map(drop)
                })
                .await;
                page
            }
        }
    }
}

/// A slow database, perhaps.
async fn render(path: &str) -> Bytes {
    sleep(Duration::from_millis(20)).await;
    Bytes::from(format!("a page about {}", path.trim_start_matches('/')))
}

/// The content of the answer.
async fn get(address: &str, path: &str) -> io::Result<String> {
    let stream = connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let answer = String::from_utf8_lossy(&stream.read_to_end().await?).into_owned();
    Ok(answer.split_once("\r\n\r\n").unwrap_or_default().1.to_string())
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        let listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
        let address = listener.local_addr().to_string();
        let cache = Cache { pages: TMap::new(), rendered: TCounter::new() };
        let rendered = cache.rendered.clone();
        let (stop, mut stopped) = one_shot();
        let server = spawn(async move {
            let handler = service_fn(move |request: Request<Incoming>| {
                let cache = cache.clone();
                async move {
                    let page = cache.page(request.uri().path()).await;
                    Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(page)))
                }
            });
            serve(listener, handler, async move { stopped.take().await.unwrap_or(()) }).await
        });
        let clients: Vec<_> = (0..60)
            .map(|n| {
                let (address, path) = (address.clone(), ["/warp", "/weft", "/selvedge"][n % 3]);
                spawn(async move { get(&address, path).await })
            })
            .collect();
        for client in clients {
            assert!(client.await??.starts_with("a page about "));
        }
        println!("60 requests for 3 pages: {} rendered", atomically(|tx| rendered.read(tx)).await);
        println!("/warp: {}", get(&address, "/warp").await?);
        let _ = stop.reply(());
        server.await??;
        Ok(())
    })
}
