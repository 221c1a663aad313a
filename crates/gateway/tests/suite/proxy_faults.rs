//! Upstreams that are not there, are slow, die in mid-answer, or speak ambiguously.

use crate::proxy::{UPSTREAM, listen, proxy, read_until, through, upstreams};
use selvedge_client::Client;
use selvedge_core::spawn_local;
use selvedge_gateway::Proxy;
use selvedge_io::time::sleep;
use selvedge_sim::simulate;
use std::time::Duration;

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// An upstream that says `text` to the first request, and closes.
async fn says(text: &'static str, request: &str) -> String {
    let listener = listen(UPSTREAM);
    let upstream = spawn_local(async move {
        let (stream, _) = listener.accept().await.unwrap();
        read_until(&stream, "\r\n\r\n").await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
    });
    let got = through(proxy(&[8001]), request).await;
    upstream.await.unwrap();
    got
}

#[test]
fn no_upstream_is_there() {
    simulate(0..4, || async {
        assert!(through(proxy(&[8001, 8002]), GET).await.starts_with("HTTP/1.1 502 "));
        let got = through(proxy(&[]), GET).await;
        assert!(got.starts_with("HTTP/1.1 503 ") && got.contains("retry-after: 1\n"), "{got}");
    });
}

#[test]
fn the_next_upstream_answers_if_one_is_not_there() {
    simulate(0..8, || async {
        for request in
            [GET, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nConnection: close\r\n\r\nwarp"]
        {
            let listener = listen("127.0.0.1:8002");
            let upstream = spawn_local(async move {
                let (stream, _) = listener.accept().await.unwrap();
                let all = read_until(&stream, "\r\n\r\n").await.unwrap();
                let all = if all.starts_with("POST") && !all.ends_with("warp") {
                    all + &read_until(&stream, "warp").await.unwrap()
                } else {
                    all
                };
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
                all
            });
            // It had seen nothing, so a POST may go to the next.
            assert!(through(proxy(&[8001, 8002]), request).await.ends_with("\n\nok\n"));
            assert!(upstream.await.unwrap().ends_with(if request == GET { "\r\n\r\n" } else { "warp" }));
        }
    });
}

#[test]
fn an_idempotent_request_that_was_not_answered_is_repeated_once() {
    for (request, times, expected) in [
        (GET, 2, "HTTP/1.1 502 "),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", 1, "HTTP/1.1 502 "),
    ] {
        simulate(0..8, move || async move {
            let taken = std::rc::Rc::new(std::cell::Cell::new(0));
            let dying: Vec<_> = [8001, 8002, 8003]
                .into_iter()
                .map(|port| {
                    let (listener, taken) = (listen(&format!("127.0.0.1:{port}")), taken.clone());
                    spawn_local(async move {
                        while let Ok((stream, _)) = listener.accept().await {
                            read_until(&stream, "\r\n\r\n").await.unwrap();
                            taken.set(taken.get() + 1);
                        }
                    })
                })
                .collect();
            let got = through(proxy(&[8001, 8002, 8003]), request).await;
            assert!(got.starts_with(expected), "{got}");
            assert_eq!(taken.get(), times, "{request}");
            dying.iter().for_each(selvedge_core::JoinHandle::cancel);
            sleep(Duration::from_secs(1)).await;
        });
    }
}

#[test]
fn an_answer_that_dies_in_the_middle_is_cut_and_not_ended() {
    simulate(0..8, || async {
        let got = says("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nwarp", GET).await;
        assert!(got.contains("Content-Length: 9\n") && got.ends_with("\n\nwarp\n"), "{got}");
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nwarp\r\n";
        let got = says(chunked, GET).await;
        assert!(got.contains("\n\n4\nwarp\n") && !got.contains("\n0\n"), "the client sees no end: {got}");
    });
}

#[test]
fn an_ambiguous_answer_is_not_passed_on() {
    for text in [
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\nwarp",
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 4\n\nwarp",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nwarp",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: a\r\n\r\n",
        "warp\r\n\r\n",
    ] {
        simulate(0..2, move || async move {
            let got = says(text, GET).await;
            assert!(got.starts_with("HTTP/1.1 502 "), "{text:?}: {got}");
        });
    }
}

#[test]
fn an_ambiguous_request_reaches_no_upstream() {
    for request in [
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\nwarp",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n",
    ] {
        simulate(0..2, move || async move {
            // The upstream is there, and no connection comes.
            let listener = listen(UPSTREAM);
            let upstream = spawn_local(async move { listener.accept().await.map(drop) });
            let got = through(proxy(&[8001]), request).await;
            assert!(
                got.starts_with("HTTP/1.1 400 ") || got.starts_with("HTTP/1.1 501 "),
                "{request:?}: {got}"
            );
            assert!(!upstream.is_finished(), "{request:?}");
            upstream.cancel();
            sleep(Duration::from_secs(1)).await;
        });
    }
}

#[test]
fn an_upstream_that_does_not_answer_in_time_is_504() {
    simulate(0..4, || async {
        let listener = listen(UPSTREAM);
        let upstream = spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            read_until(&stream, "never").await
        });
        let client = Client::builder().answer_limit(Duration::from_secs(3)).idle_connections_max(0).build();
        let got = through(Proxy::new(upstreams(&[8001])).client(client), GET).await;
        assert!(got.starts_with("HTTP/1.1 504 "), "{got}");
        upstream.await.unwrap().unwrap();
    });
}

#[test]
fn a_client_that_goes_away_closes_the_connection_to_the_upstream() {
    simulate(0..8, || async {
        let listener = listen(UPSTREAM);
        let upstream = spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            read_until(&stream, "\r\n\r\n").await.unwrap();
            // It has no answer yet, and sees the end, or that the connection is broken.
            let _ = read_until(&stream, "never").await;
        });
        let front = listen("127.0.0.1:80");
        let site = spawn_local(async move {
            let (stream, _) = front.accept().await.unwrap();
            let site = selvedge_http::Site::with_handler(proxy(&[8001]), Default::default(), None);
            site.serve(stream.into(), None).await;
        });
        let client = selvedge_io::net::TcpStream::connect("127.0.0.1:80".parse().unwrap()).await.unwrap();
        client.write_all(GET.as_bytes()).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        client.set_linger(Some(Duration::ZERO)).unwrap();
        drop(client);
        upstream.await.unwrap();
        site.await.unwrap();
    });
}

/// A server that resolves `..` would answer from outside the part that the proxy exports.
#[test]
fn a_path_that_leads_out_of_the_exported_part_reaches_no_upstream() {
    for path in [
        "/app/../../admin",
        "/app/%2e%2E/%2E./admin",
        "/app/..",
        "/app/./x",
        "/app/..%2f..%2Fadmin",
        "/app/..\\..\\admin",
        "/app/..%5C..%5cadmin",
        "/app/..;x/..;/admin",
        "/app/..%3bx/admin",
        "/app/x/..?query",
        "/..",
    ] {
        for with_prefix in [true, false] {
            simulate(0..1, move || async move {
                let listener = listen(UPSTREAM);
                let upstream = spawn_local(async move { listener.accept().await.map(drop) });
                let plain = proxy(&[8001]);
                let proxy = if with_prefix { plain.prefix("/app", "/v1/public") } else { plain };
                let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
                let got = through(proxy, &request).await;
                assert!(got.starts_with("HTTP/1.1 400 "), "{path}: {got}");
                assert!(!upstream.is_finished(), "{path}");
                upstream.cancel();
                sleep(Duration::from_secs(1)).await;
            });
        }
    }
}

#[test]
fn dots_within_a_name_go_on() {
    for path in
        ["/app/a.b", "/app/...", "/app/..a", "/app/a..", "/app/%2e%2e%2e", "/app/;..", "/app/x?a/../b"]
    {
        simulate(0..1, move || async move {
            let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            let got = says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", &request).await;
            assert!(got.ends_with("\n\nok\n"), "{path}: {got}");
        });
    }
}
