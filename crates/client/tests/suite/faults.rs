//! Servers that are not there, are slow, die in mid-answer, or speak nonsense.

use crate::server::{URI, answer, listen, read_until};
use selvedge_client::{Client, Error};
use selvedge_core::spawn_local;
use selvedge_io::time::sleep;
use selvedge_sim::{Conditions, World, each_seed, simulate};
use std::time::Duration;

/// The error of a request to a server that says `text` and closes.
fn error_after(text: &'static str) -> Vec<Error> {
    let mut errors = Vec::new();
    each_seed(0..4, |seed| {
        let ended = World::new(seed).run(async move {
            let listener = listen();
            let server = spawn_local(async move {
                let (stream, _) = listener.accept().await.unwrap();
                answer(&stream, text).await.unwrap();
            });
            let got = Client::new().get(URI).await;
            let error = match got {
                Err(error) => error,
                Ok(got) => got.into_body().read_all(100).await.unwrap_err(),
            };
            server.await.unwrap();
            error
        });
        errors.push(ended.unwrap().output);
    });
    errors
}

#[test]
fn a_server_that_is_not_there() {
    simulate(0..4, || async {
        let error = Client::new().get(URI).await.unwrap_err();
        assert!(error.is_connect() && !error.is_timeout(), "{error}");
    });
}

#[test]
fn a_server_that_closes_without_an_answer() {
    assert!(error_after("").iter().all(Error::is_unanswered));
}

#[test]
fn an_answer_that_breaks_off() {
    for text in [
        "HTTP/1.1 200 OK\r\nContent-",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
    ] {
        for error in error_after(text) {
            let neither = !error.is_unanswered() && !error.is_malformed() && !error.is_timeout();
            assert!(neither && error.to_string().contains("bro"), "{text:?}: {error}");
        }
    }
}

#[test]
fn an_answer_that_is_ambiguous() {
    for text in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n",
        "hello\r\n\r\n",
        "HTTP/1.1 101 Go\r\nUpgrade: x\r\n\r\n",
    ] {
        assert!(error_after(text).iter().all(Error::is_malformed), "{text:?}");
    }
}

#[test]
fn each_phase_has_its_limit() {
    simulate(0..4, || async {
        let listener = listen();
        let server = spawn_local(async move {
            // The first is never answered, and the second breaks off.
            let (silent, _) = listener.accept().await.unwrap();
            read_until(&silent, "\r\n\r\n").await.unwrap();
            let (slow, _) = listener.accept().await.unwrap();
            answer(&slow, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell").await.unwrap();
            // The third reads no body.
            let (deaf, _) = listener.accept().await.unwrap();
            sleep(Duration::from_secs(100)).await;
            drop((silent, slow, deaf));
        });
        let client = Client::builder()
            .answer_limit(Duration::from_secs(3))
            .read_limit(Duration::from_secs(2))
            .send_limit(Duration::from_secs(4))
            .build();
        let (start, passed) = (selvedge_core::now(), |start| selvedge_core::now().since(start).as_secs());
        let error = client.get(URI).await.unwrap_err();
        assert!(error.is_timeout() && passed(start) == 3, "{error} after {} s", passed(start));

        let start = selvedge_core::now();
        let error = client.get(URI).await.unwrap().into_body().read_all(10).await.unwrap_err();
        assert!(error.is_timeout() && passed(start) == 2, "{error} after {} s", passed(start));

        let start = selvedge_core::now();
        let error = client.post(URI).body(vec![0; 4 << 20]).await.unwrap_err();
        assert!(error.is_timeout() && passed(start) >= 4, "{error} after {} s", passed(start));
        server.await.unwrap();
    });
}

#[test]
fn a_body_beyond_the_limit_is_not_read_to_its_end() {
    simulate(0..4, || async {
        let listener = listen();
        let server = spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            answer(&stream, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").await.unwrap();
        });
        let got = Client::builder().idle_connections_max(0).build().get(URI).await.unwrap();
        assert!(got.into_body().read_all(4).await.unwrap_err().is_too_large());
        server.await.unwrap();
    });
}

#[test]
fn what_cannot_be_sent_is_told() {
    simulate(0..1, || async {
        let client = Client::new();
        for (uri, why) in [
            ("https://a/", "the client speaks `http` and no other scheme"),
            ("/a", "the URI has no scheme"),
            ("http://user@a/", "a user's name in a URI is not sent: use the field `Authorization`"),
        ] {
            assert_eq!(client.get(uri).await.unwrap_err().to_string(), why);
        }
        let error = client.get("http://a/").header("a b", "c").await.unwrap_err();
        assert_eq!(error.to_string(), "the request is not valid: invalid HTTP header name");
    });
}

#[test]
fn a_network_that_breaks_connections_gives_an_answer_or_an_error() {
    each_seed(0..40, |seed| {
        let world = World::new(seed).conditions(Conditions::bad());
        let ended = world.run(async {
            let listener = listen();
            let server = spawn_local(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    drop(spawn_local(async move {
                        while answer(&stream, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
                            .await
                            .is_ok_and(|head| !head.is_empty())
                        {}
                    }));
                }
            });
            let client = Client::new();
            for _ in 0..10 {
                if let Ok(got) = client.get(URI).await
                    && let Ok(text) = got.into_body().text(100).await
                {
                    assert_eq!(text, "hello");
                }
            }
            drop(client);
            drop(server);
        });
        drop(ended);
    });
}

/// The surplus would be read as the beginning of the next request.
#[test]
fn a_body_that_has_more_bytes_than_it_said_is_not_sent() {
    struct Surplus(Option<&'static str>);
    impl http_body::Body for Surplus {
        type Data = bytes::Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<http_body::Frame<bytes::Bytes>, Self::Error>>> {
            let piece = self.0.take();
            std::task::Poll::Ready(piece.map(|piece| Ok(http_body::Frame::data(piece.into()))))
        }

        fn size_hint(&self) -> http_body::SizeHint {
            http_body::SizeHint::with_exact(1)
        }
    }
    simulate(0..4, || async {
        let listener = listen();
        let server = spawn_local(async move {
            let (stream, _) = listener.accept().await?;
            answer(&stream, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await
        });
        let request = http::Request::post(URI).body(Surplus(Some("wGET /admin HTTP/1.1"))).unwrap();
        let error = Client::new().send(request).await.unwrap_err();
        assert!(error.is_request_body(), "{error}");
        assert!(!server.is_finished());
        server.cancel();
        sleep(Duration::from_secs(1)).await;
    });
}
