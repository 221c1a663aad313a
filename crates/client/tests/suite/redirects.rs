//! Redirects are followed, with a bound.

use crate::server::{URI, answer, listen};
use http::StatusCode;
use selvedge_client::Client;
use selvedge_core::spawn_local;
use selvedge_sim::simulate;

#[test]
fn a_redirect_is_followed_with_the_right_method() {
    simulate(0..4, || async {
        let listener = listen();
        let server = spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut heads = Vec::new();
            for text in [
                "HTTP/1.1 307 Go\r\nLocation: b?c\r\nContent-Length: 0\r\n\r\n",
                "HTTP/1.1 303 Go\r\nLocation: /d\r\nContent-Length: 0\r\n\r\n",
                "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            ] {
                heads.push(answer(&stream, text).await.unwrap());
            }
            heads
        });
        let got = Client::new().post(format!("{URI}a")).body("x").await.unwrap();
        assert_eq!(got.status(), StatusCode::OK);
        drop(got);
        let heads = server.await.unwrap();
        assert!(heads[0].starts_with("POST /a HTTP/1.1\r\n") && heads[0].contains("content-length: 1"));
        assert!(heads[1].contains("POST /b?c HTTP/1.1\r\n"), "{}", heads[1]);
        assert!(heads[2].contains("GET /d HTTP/1.1\r\n") && !heads[2].contains("content-length"));
    });
}

#[test]
fn redirects_end() {
    simulate(0..4, || async {
        let listener = listen();
        let server = spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let again = "HTTP/1.1 302 Go\r\nLocation: /\r\nContent-Length: 0\r\n\r\n";
            while !answer(&stream, again).await.unwrap().is_empty() {}
        });
        let client = Client::builder().redirects(3).build();
        let error = client.get(URI).await.unwrap_err();
        assert_eq!(error.to_string(), "the server redirects too often");
        let not_followed = Client::builder().redirects(0).idle_connections_max(0).build();
        drop((client, server, not_followed));
    });
}
