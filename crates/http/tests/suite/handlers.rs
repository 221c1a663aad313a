//! Requests that a handler answers, over a connection: what goes in, and the bytes that come out.

use rustix::fs::{CWD, OFlags};
use selvedge_core::{round_robin_over, sleep, spawn_local, yield_now};
use selvedge_handler::{
    Body, Caller, Handler, HeaderMap, HeaderValue, Request, Response, StatusCode, header,
};
use selvedge_http::{
    Config, HandlerLimits, LogFile, Metrics, PrometheusText, RedirectTo, Routes, Routing, Site, StatusPage,
};
use selvedge_io::EventLoop;
use selvedge_io::fs::Handle;
use selvedge_io::net::UnixStream;
use selvedge_site::{Host, Route, RouteAction, RouteTable, Rules};
use std::cell::{Cell, RefCell};
use std::net::Shutdown;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Sends the pieces of `input` to a site with `handler`, one after the other, and returns all that
/// comes back, and the log.
fn exchange_with(config: Config, handler: impl Handler, input: &[&[u8]]) -> (String, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("access.log");
    let log = Arc::new(LogFile::open(&path).unwrap());
    let input: Vec<Vec<u8>> = input.iter().map(|piece| piece.to_vec()).collect();
    let replies = round_robin_over(&mut EventLoop::new().unwrap(), async move {
        let site = Site::with_handler(handler, config, Some(log));
        let (client, server) = UnixStream::pair().unwrap();
        let server = spawn_local(site.serve(server.into(), None));
        let client = Rc::new(client);
        let writer = spawn_local({
            let client = client.clone();
            async move {
                for piece in input {
                    // The server may have closed, which the replies show.
                    let _ = client.write_all(&piece).await;
                    sleep(Duration::from_millis(2)).await;
                }
                let _ = client.shutdown(Shutdown::Write);
            }
        });
        let mut replies = Vec::with_capacity(1 << 20);
        while let Ok(1..) = client.read_to_spare(&mut replies).await {
            replies.reserve(1 << 20);
        }
        writer.await.unwrap();
        server.await.unwrap();
        site.flush_log().await;
        replies
    });
    let text = String::from_utf8(replies.unwrap()).unwrap();
    let log = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with("Date: ") && !line.starts_with("Server: "));
    let text = lines.map(|line| format!("{line}\n")).collect();
    let log = log.lines().map(|line| format!("{}\n", line.split_once("] ").unwrap().1)).collect();
    (text, log)
}

fn exchange(handler: impl Handler, input: &[&[u8]]) -> String {
    exchange_with(Config::default(), handler, input).0
}

async fn echo(request: Request) -> Response {
    Response::new(request.into_body())
}

/// Answers with the method, the target, and the length and trailers of the body.
async fn tell(request: Request) -> Result<String, selvedge_http::BodyError> {
    let (parts, mut body) = request.into_parts();
    let mut content = Vec::new();
    while let Some(piece) = body.next().await.transpose()? {
        content.extend_from_slice(&piece);
    }
    let trailers = body.trailers().map(|trailers| format!(" {trailers:?}")).unwrap_or_default();
    Ok(format!("{} {} {}{trailers}", parts.method, parts.uri, String::from_utf8_lossy(&content)))
}

#[test]
fn requests_in_a_row_are_answered_in_order() {
    let input = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n\
        POST /b?c=d HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nwarp\
        HEAD /e HTTP/1.1\r\nHost: a\r\n\r\n\
        BREW /f HTTP/1.1\r\nHost: a\r\nUser-Agent: pot\r\nConnection: close\r\n\r\n";
    let (text, log) = exchange_with(Config::default(), tell, &[input]);
    let reply = |len, close: &str, body| {
        format!(
            "HTTP/1.1 200 OK\ncontent-type: text/plain; charset=utf-8\nContent-Length: {len}\n{close}\n{body}"
        )
    };
    let expected = [
        reply(7, "", "GET /a "),
        reply(16, "", "POST /b?c=d warp"),
        reply(8, "", ""),
        reply(8, "Connection: close\n", "BREW /f \n"),
    ];
    assert_eq!(text, expected.concat());
    let expected = "\"GET /a HTTP/1.1\" 200 7 \"-\" \"-\"\n\"POST /b?c=d HTTP/1.1\" 200 16 \"-\" \"-\"\n\
        \"HEAD /e HTTP/1.1\" 200 - \"-\" \"-\"\n\"BREW /f HTTP/1.1\" 200 8 \"-\" \"pot\"\n";
    assert_eq!(log, expected);
}

#[test]
fn a_chunked_body_comes_with_its_trailers_at_every_cut() {
    let request = b"PUT /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
        4\r\nwarp\r\n5\r\n weft\r\n0\r\nSum: 9\r\nHost: b\r\n\r\n";
    let expected = r#"PUT /x warp weft {"sum": "9"}"#;
    for cut in [0, 20, 80, 85, 90, 95, 100, 105, request.len() - 10, request.len() - 3, request.len() - 1] {
        let (one, other) = request.split_at(cut);
        let text = exchange(tell, &[one, other]);
        assert!(text.ends_with(&format!("\n\n{expected}\n")), "{cut}: {text}");
    }
}

#[test]
fn a_client_that_holds_its_body_back_is_told_to_send_it_when_the_handler_reads() {
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";
    let next = b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n";
    let text = exchange(tell, &[head, b"warp", next]);
    assert!(text.starts_with("HTTP/1.1 100 Continue\n\nHTTP/1.1 200 OK\n"), "{text}");
    assert!(text.contains("POST / warpHTTP/1.1 200 OK") && text.ends_with("GET /next \n"), "{text}");
    // The body of the response reads it.
    let text = exchange(echo, &[head, b"warp", next]);
    assert!(
        text.starts_with("HTTP/1.1 100 Continue\n\nHTTP/1.1 200 OK\nContent-Length: 4\n\nwarp"),
        "{text}"
    );
    // The handler does not read: where the next request begins is unknown.
    let text = exchange(async |_: Request| StatusCode::FORBIDDEN, &[head, b"warp", next]);
    assert_eq!(text, "HTTP/1.1 403 Forbidden\nContent-Length: 0\nConnection: close\n\n");
}

#[test]
fn a_body_that_the_handler_does_not_read_is_dropped_up_to_a_bound() {
    let config = |unread_bytes| Config {
        handlers: HandlerLimits { unread_bytes, ..HandlerLimits::default() },
        ..Config::default()
    };
    let ignore = async |_: Request| StatusCode::ACCEPTED;
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 40000\r\n\r\n".as_slice();
    let chunks = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n9c40\r\n".as_slice();
    let body = [b'x'; 40_000].as_slice();
    let next = b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n".as_slice();
    let one = "HTTP/1.1 202 Accepted\nContent-Length: 0\n\n";
    let closed = "HTTP/1.1 202 Accepted\nContent-Length: 0\nConnection: close\n\n";
    assert_eq!(exchange_with(config(40_000), ignore, &[head, body, next]).0, one.repeat(2));
    assert_eq!(exchange_with(config(39_999), ignore, &[head, body, next]).0, closed);
    let end = b"\r\n0\r\n\r\n".as_slice();
    assert_eq!(exchange_with(config(40_000), ignore, &[chunks, body, end, next]).0, one.repeat(2));
    // The length of the chunk is known with the head.
    assert_eq!(exchange_with(config(39_999), ignore, &[chunks, body, end, next]).0, one);
}

#[test]
fn a_body_moves_through_a_handler_piece_by_piece() {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let watch = seen.clone();
    let double = move |request: Request| {
        let seen = watch.clone();
        async move {
            let mut body = request.into_body();
            Response::new(Body::produce(async move |mut out| {
                while let Some(piece) = body.next().await.transpose()? {
                    seen.borrow_mut().push(piece.len());
                    out.put(piece.clone()).await;
                    out.put(piece).await;
                }
                Ok::<(), selvedge_http::BodyError>(())
            }))
        }
    };
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100003\r\n\r\n".as_slice();
    let piece = [b'x'; 50_000].as_slice();
    let text = exchange(double, &[head, piece, b"yyy", piece]);
    assert!(text.starts_with("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n"), "{text}");
    assert_eq!(text.matches('x').count(), 200_000);
    assert!(seen.borrow().len() >= 3 && seen.borrow().iter().all(|&len| len <= 64 << 10), "{seen:?}");
}

async fn stream(request: Request) -> Response {
    let fails = request.uri().path() == "/fails";
    Response::new(Body::produce(async move |mut out| {
        let mut trailers = HeaderMap::new();
        trailers.insert("sum", HeaderValue::from_static("2"));
        out.set_trailers(trailers);
        out.put("warp").await;
        sleep(Duration::from_millis(1)).await;
        out.put("weft").await;
        if fails { Err("the thread has torn") } else { Ok(()) }
    }))
}

#[test]
fn a_body_of_unknown_length_is_framed_as_the_client_can_read_it() {
    let head = "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n";
    let get = |more: &str| format!("GET / HTTP/1.1\r\nHost: a\r\n{more}\r\n");
    let text = exchange(stream, &[get("").as_bytes(), get("TE: trailers\r\n").as_bytes()]);
    assert_eq!(text, format!("{head}4\nwarp\n4\nweft\n0\n\n{head}4\nwarp\n4\nweft\n0\nsum: 2\n\n"));
    let text = exchange(stream, &[b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"]);
    assert_eq!(text, "HTTP/1.1 200 OK\nConnection: close\n\nwarpweft\n");
    let text = exchange(stream, &[b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"]);
    assert_eq!(text, "HTTP/1.1 200 OK\n\n");
    // The client notices that it is cut: there is no last chunk.
    let text = exchange(stream, &[b"GET /fails HTTP/1.1\r\nHost: a\r\n\r\n"]);
    assert_eq!(text, format!("{head}4\nwarp\n4\nweft\n"));
}

#[test]
fn a_panic_is_answered_and_the_connection_goes_on() {
    let panics = async |request: Request| {
        assert!(request.uri().path() != "/panics", "the test wants this panic");
        "whole"
    };
    let input = b"GET /panics HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let (text, log) = exchange_with(Config::default(), panics, &[input]);
    assert!(text.starts_with("HTTP/1.1 500 Internal Server Error\n") && text.ends_with("whole\n"), "{text}");
    assert!(log.starts_with("\"GET /panics HTTP/1.1\" 500 "), "{log}");
}

#[test]
fn a_handler_that_takes_too_long_is_dropped() {
    let handlers = HandlerLimits { time: Some(Duration::from_millis(5)), ..HandlerLimits::default() };
    let config = Config { handlers, ..Config::default() };
    let sleeps = async |_: Request| sleep(Duration::from_secs(3600)).await;
    let text = exchange_with(config, sleeps, &[b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"]).0;
    assert!(text.starts_with("HTTP/1.1 503 Service Unavailable\n"), "{text}");
}

#[test]
fn interim_responses_come_before_the_response() {
    let hints = async |request: Request| {
        let caller = request.extensions().get::<Caller>().unwrap();
        let mut fields = HeaderMap::new();
        fields.insert(header::LINK, HeaderValue::from_static("</style.css>; rel=preload"));
        caller.inform(StatusCode::EARLY_HINTS, fields);
        sleep(Duration::from_millis(1)).await;
        "page"
    };
    let text = exchange(hints, &[b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"]);
    let early = "HTTP/1.1 103 Early Hints\nlink: </style.css>; rel=preload\n\nHTTP/1.1 200 OK\n";
    assert!(text.starts_with(early), "{text}");
    let text = exchange(hints, &[b"GET / HTTP/1.0\r\n\r\n"]);
    assert!(text.starts_with("HTTP/1.1 200 OK\n"), "{text}");
}

#[test]
fn no_response_follows_a_part_of_an_interim_response() {
    let ready = Rc::new(Cell::new(false));
    let hints = {
        let ready = ready.clone();
        move |request: Request| {
            let ready = ready.clone();
            async move {
                let mut fields = HeaderMap::new();
                // More than the stream takes at once.
                fields.insert("long", HeaderValue::try_from("x".repeat(4 << 20)).unwrap());
                request.extensions().get::<Caller>().unwrap().inform(StatusCode::EARLY_HINTS, fields);
                sleep(Duration::from_millis(1)).await;
                ready.set(true);
                "page"
            }
        }
    };
    let text = round_robin_over(&mut EventLoop::new().unwrap(), async move {
        let site = Site::with_handler(hints, Config::default(), None);
        let (client, server) = UnixStream::pair().unwrap();
        let server = spawn_local(site.serve(server.into(), None));
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
        while !ready.get() {
            yield_now().await;
        }
        let mut replies = Vec::with_capacity(8 << 20);
        while let Ok(1..) = client.read_to_spare(&mut replies).await {}
        server.await.unwrap();
        String::from_utf8(replies).unwrap()
    });
    let text = text.unwrap();
    assert!(text.starts_with("HTTP/1.1 103 Early Hints\r\nlong: xxx"));
    assert!(!text.contains("HTTP/1.1 200"), "the response is in the field");
}

#[test]
fn a_handler_gets_the_connection_behind_an_upgrade() {
    let shouts = async |_: Request| {
        let body = Body::upgrade(async |connection| {
            let mut buffer = [0; 100];
            while let Ok(count @ 1..) = connection.read(&mut buffer).await {
                buffer.make_ascii_uppercase();
                connection.write_all(&buffer[..count]).await.unwrap();
            }
        });
        let head = Response::builder().status(StatusCode::SWITCHING_PROTOCOLS);
        head.header(header::UPGRADE, "shout").body(body).unwrap()
    };
    let head = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: shout\r\n\r\nearly ";
    let (text, log) = exchange_with(Config::default(), shouts, &[head, b"late"]);
    let expected = "HTTP/1.1 101 Switching Protocols\nupgrade: shout\nConnection: upgrade\n\nEARLY LATE\n";
    assert_eq!(text, expected);
    assert_eq!(log, "\"GET / HTTP/1.1\" 101 - \"-\" \"-\"\n");
}

#[test]
fn a_switch_of_protocols_needs_its_code_and_a_client_of_http_1_1() {
    let switches = async |request: Request| {
        let body = match request.uri().path() {
            "/upgrade" => Body::upgrade(async |_| {}),
            _ => Body::empty(),
        };
        Response::builder().status(StatusCode::SWITCHING_PROTOCOLS).body(body).unwrap()
    };
    let text = exchange(switches, &[b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"]);
    assert!(text.starts_with("HTTP/1.1 500 Internal Server Error\n"), "{text}");
    let text = exchange(switches, &[b"GET /upgrade HTTP/1.0\r\nUpgrade: shout\r\n\r\n"]);
    assert!(text.starts_with("HTTP/1.1 500 Internal Server Error\n"), "{text}");
    let tells = async |request: Request| {
        format!("{:?} {:?}", request.version(), request.headers().get(header::UPGRADE))
    };
    let text = exchange(tells, &[b"GET / HTTP/1.0\r\nUpgrade: shout\r\n\r\n"]);
    assert!(text.ends_with("\n\nHTTP/1.0 None\n"), "{text}");
    let text = exchange(tells, &[b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: shout\r\n\r\n"]);
    assert!(text.ends_with("\n\nHTTP/1.1 Some(\"shout\")\n"), "{text}");
}

#[test]
fn bodies_beyond_the_limit_are_refused() {
    let handlers = HandlerLimits { body_bytes: 10, ..HandlerLimits::default() };
    let config = || Config { handlers, ..Config::default() };
    let text = exchange_with(config(), tell, &[b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n"]).0;
    assert!(text.starts_with("HTTP/1.1 413 Content Too Large\n"), "{text}");
    let chunked =
        b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nb\r\nwarp and weft\r\n0\r\n\r\n";
    let text = exchange_with(config(), tell, &[chunked]).0;
    assert!(text.starts_with("HTTP/1.1 413 Payload Too Large\n"), "{text}");
    assert!(text.contains("Connection: close"), "{text}");
}

/// A file goes from the kernel to the connection, whatever part of it the handler gives.
#[test]
fn a_span_of_a_file_is_sent() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cloth");
    let content: String = (0..300_000).map(|line| format!("{line:09}\n")).collect();
    std::fs::write(&path, &content).unwrap();
    let open = Handle::open(CWD, &path, OFlags::RDONLY).unwrap();
    let file = Arc::new(open);
    let shortened = path.clone();
    let handler = move |request: Request| {
        let (file, shortened) = (file.clone(), shortened.clone());
        async move {
            if request.uri().path() == "/shortened" {
                std::fs::File::options().write(true).open(shortened).unwrap().set_len(1000).unwrap();
            }
            Response::new(Body::file(file, 10..2_500_000))
        }
    };
    let get = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".as_slice();
    let head = b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n".as_slice();
    let shortened = b"GET /shortened HTTP/1.1\r\nHost: a\r\n\r\n".as_slice();
    let (replies, log) = exchange_with(Config::default(), handler, &[get, head, shortened]);
    let heading = "HTTP/1.1 200 OK\nContent-Length: 2499990\n\n";
    let parts: Vec<&str> = replies.split(heading).collect();
    assert_eq!(parts.len(), 4, "{} bytes", replies.len());
    assert!(parts[1] == &content[10..2_500_000] && parts[2].is_empty() && parts[3] == &content[10..1000]);
    let bytes: Vec<&str> = log.lines().map(|line| line.split(' ').nth(4).unwrap()).collect();
    assert_eq!(bytes, ["2499990", "-", "990"], "{log}");
}

/// All that comes back from `site` for `request`, with the lines of the head in order, and without
/// the numbers and the bars of the content, which change with the time.
fn reply(site: Rc<Site>, request: String) -> (Vec<String>, String) {
    let reply = round_robin_over(&mut EventLoop::new().unwrap(), async move {
        let (client, server) = UnixStream::pair().unwrap();
        let server = spawn_local(site.serve(server.into(), None));
        client.write_all(request.as_bytes()).await.unwrap();
        let reply = client.read_to_end().await.unwrap();
        server.await.unwrap();
        reply
    });
    let text = String::from_utf8(reply.unwrap()).unwrap();
    let (head, content) = text.split_once("\r\n\r\n").unwrap();
    let stays = |line: &String| !line.starts_with("date: ") && !line.starts_with("content-length: ");
    let mut head: Vec<String> = head.lines().map(str::to_lowercase).filter(stays).collect();
    head.sort();
    let content: String = content.chars().filter(|c| !c.is_ascii_digit()).collect();
    (head, content.replace("<span class=\"bar\" style=\"width:%\"></span>", ""))
}

/// A redirect, the status page and the metrics are the same, whether a route of the configuration
/// or a handler answers.
#[test]
fn handlers_answer_as_routes_do() {
    fn by_route(action: RouteAction) -> Rc<Site> {
        let route = Route { pattern: "/".parse().unwrap(), action, rules: Rules::default(), line: 1 };
        let table =
            RouteTable { hosts: vec![Host { names: Vec::new(), routes: vec![route] }], unmatched: 404 };
        let (routing, metrics) = (Routing::new(table).unwrap(), Metrics::new());
        let handlers = Box::new(|_: &Route| None);
        Site::with_routes(Routes { routing, metrics, gate: None, handlers }, Config::default(), None)
    }
    fn by_handler(handler: impl Handler) -> Rc<Site> {
        Site::with_handler(handler, Config::default(), None)
    }
    let to = "https://$host/new$rest";
    let redirect = || RouteAction::Redirect { to: to.parse().unwrap(), status: 308 };
    let handler = || RedirectTo::new(to).unwrap().status(StatusCode::PERMANENT_REDIRECT);
    for line in ["GET /a/./b?q=1", "HEAD /a", "POST /", "GET /%2e%2e/../x", "GET //x"] {
        let request = format!("{line} HTTP/1.1\r\nHost: loom:80\r\nConnection: close\r\n\r\n");
        let expected = reply(by_route(redirect()), request.clone());
        assert_eq!(reply(by_handler(handler()), request), expected, "{line}");
    }
    let (head, _) = reply(by_handler(handler()), "GET /a/../b?q HTTP/1.0\r\nHost: h\r\n\r\n".to_owned());
    assert!(head.contains(&"location: https://h/new/b?q".to_owned()), "{head:?}");
    let metrics = Metrics::new();
    for line in ["GET /", "HEAD /", "POST /", "OPTIONS /"] {
        let request = format!("{line} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let (head, page) = reply(by_route(RouteAction::Status), request.clone());
        // The handler knows no routes.
        let end = page.find("<h>Routes</h>").map_or(page.clone(), |at| format!("{}</html>\n", &page[..at]));
        let counted =
            Site::with_counted_handler(StatusPage::new(&metrics), Config::default(), None, &metrics);
        assert_eq!(reply(counted, request.clone()), (head, end), "{line}");
        let expected = reply(by_route(RouteAction::Metrics), request.clone());
        assert_eq!(reply(by_handler(PrometheusText::new(&metrics)), request), expected, "{line}");
    }
    assert!(metrics.prometheus().contains("selvedge_requests_total{class=\"2xx\"} 3\n"));
    assert!(metrics.prometheus().contains("selvedge_connections_total 4\n"));
}
