//! Connections that are used again, and connections that are not.

use crate::server::{URI, answer, listen};
use http::Request;
use selvedge_client::{Client, RequestBody};
use selvedge_core::spawn_local;
use selvedge_io::time::sleep;
use selvedge_sim::simulate;
use std::time::Duration;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";

async fn get(client: &Client) -> String {
    client.get(URI).await.unwrap().into_body().text(100).await.unwrap()
}

#[test]
fn requests_share_a_connection() {
    simulate(0..8, || async {
        let listener = listen();
        let server = spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            for text in [OK, CHUNKED, OK] {
                answer(&stream, text).await.unwrap();
            }
        });
        let client = Client::new();
        for _ in 0..3 {
            assert_eq!(get(&client).await, "ok");
            assert_eq!(client.idle_connections(), 1);
        }
        server.await.unwrap();
    });
}

#[test]
fn a_connection_is_not_kept_after_what_the_server_says_or_adds() {
    for text in [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
        "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ] {
        simulate(0..8, move || async move {
            let listener = listen();
            let server = spawn_local(async move {
                for _ in 0..2 {
                    let (stream, _) = listener.accept().await.unwrap();
                    answer(&stream, text).await.unwrap();
                }
            });
            let client = Client::new();
            for _ in 0..2 {
                assert_eq!(get(&client).await, "ok");
                // Bytes behind the answer may be on their way.
                sleep(Duration::from_secs(1)).await;
            }
            server.await.unwrap();
        });
    }
}

#[test]
fn a_connection_that_waited_too_long_is_not_used() {
    simulate(0..4, || async {
        let listener = listen();
        let server = spawn_local(async move {
            for _ in 0..2 {
                let (stream, _) = listener.accept().await.unwrap();
                answer(&stream, OK).await.unwrap();
            }
        });
        let client = Client::builder().idle_limit(Duration::from_secs(5)).build();
        assert_eq!(get(&client).await, "ok");
        sleep(Duration::from_secs(6)).await;
        assert_eq!(get(&client).await, "ok");
        server.await.unwrap();
    });
}

#[test]
fn a_request_on_a_connection_that_the_server_closes_is_sent_again() {
    // The seeds decide whether the client sees the end before it sends.
    simulate(0..50, || async {
        let listener = listen();
        let server = spawn_local(async move {
            for _ in 0..3 {
                let (stream, _) = listener.accept().await.unwrap();
                answer(&stream, OK).await.unwrap();
            }
        });
        let client = Client::new();
        for _ in 0..3 {
            assert_eq!(get(&client).await, "ok");
        }
        server.await.unwrap();
    });
}

#[test]
fn a_post_is_sent_once() {
    simulate(0..50, || async {
        let listener = listen();
        let server = spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            answer(&stream, OK).await.unwrap();
            // It takes the second request, and dies.
            let taken = crate::server::read_until(&stream, "\r\n\r\n").await.unwrap();
            assert!(taken.starts_with("POST"));
            drop(stream);
            sleep(Duration::from_secs(1)).await;
            drop(listener);
        });
        let client = Client::new();
        assert_eq!(get(&client).await, "ok");
        let request = Request::post(URI).body(RequestBody::from("x")).unwrap();
        let error = client.send(request).await.unwrap_err();
        assert!(error.is_unanswered(), "{error}");
        server.await.unwrap();
    });
}

#[test]
fn the_pool_has_a_bound() {
    simulate(0..4, || async {
        let listener = listen();
        let server = spawn_local(async move {
            let mut streams = Vec::new();
            for _ in 0..5 {
                streams.push(listener.accept().await.unwrap().0);
            }
            for stream in &streams {
                answer(stream, OK).await.unwrap();
            }
            sleep(Duration::from_secs(1)).await;
        });
        let client = Client::builder().idle_connections_max(2).build();
        let getting: Vec<_> = (0..5)
            .map(|_| {
                let client = client.clone();
                spawn_local(async move { get(&client).await })
            })
            .collect();
        for got in getting {
            assert_eq!(got.await.unwrap(), "ok");
        }
        assert_eq!(client.idle_connections(), 2);
        server.await.unwrap();
    });
}
