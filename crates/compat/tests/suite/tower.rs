//! Services of tower's as handlers of ours, and the other way.

use axum::Router;
use axum::body::Body as AxumBody;
use axum::extract::Path;
use axum::routing::{get, post};
use hyper::server::conn::http1;
use selvedge_compat::Compat;
use selvedge_compat::tower::{FromTower, ToTower};
use selvedge_core::{round_robin_over, spawn_local};
use selvedge_handler::{Body, BodyError, Handler, Request, Response};
use selvedge_http::{Config, Site};
use selvedge_io::EventLoop;
use selvedge_io::net::UnixStream;

fn run<T: 'static>(main: impl Future<Output = T> + 'static) -> T {
    round_robin_over(&mut EventLoop::new().unwrap(), main).unwrap()
}

/// All that comes back for `request`, behind its first line.
async fn ask(stream: UnixStream, request: &[u8]) -> (String, String) {
    stream.write_all(request).await.unwrap();
    let answer = String::from_utf8(stream.read_to_end().await.unwrap()).unwrap();
    let (head, content) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_string(), content.to_string())
}

fn router() -> Router {
    let echo = async |body: AxumBody| body;
    Router::new()
        .route("/echo", post(echo))
        .route("/{name}", get(async |Path(name): Path<String>| format!("hello, {name}")))
}

const ECHO: &[u8] =
    b"POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";

#[test]
fn an_axum_router_answers_on_our_connections() {
    run(async {
        let site = Site::with_handler(FromTower(router()), Config::default(), None);
        let get = b"GET /loom HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        let post = [ECHO, b"5\r\nwarp \r\n0\r\n\r\n"].concat();
        for (request, expected) in [(&get[..], "hello, loom"), (&post, "warp ")] {
            let (client, server) = UnixStream::pair().unwrap();
            let server = spawn_local(site.serve(server.into(), None));
            let answer = ask(client, request).await;
            assert_eq!(answer, ("HTTP/1.1 200 OK".to_string(), expected.to_string()));
            server.await.unwrap();
        }
    });
}

#[test]
fn a_body_that_is_not_send_is_read_by_a_thread() {
    run(async {
        let body = Body::produce(async |mut out| {
            let here = std::rc::Rc::new("warp");
            out.put(*here).await;
            selvedge_core::yield_now().await;
            out.put("weft").await;
            Ok::<(), BodyError>(())
        });
        let request = Request::post("/echo").body(body).unwrap();
        let response = FromTower(router()).call(request).await;
        assert_eq!(response.into_body().read_all(100).await.unwrap(), "warpweft");
    });
}

#[test]
fn a_handler_answers_under_hyper() {
    run(async {
        let echo = async |request: Request| Response::new(request.into_body());
        let service = ToTower::new(echo);
        let (client, server) = UnixStream::pair().unwrap();
        let server = spawn_local(http1::Builder::new().serve_connection(Compat::new(server), service));
        let request = [ECHO, b"4\r\nwarp\r\n0\r\n\r\n"].concat();
        let (line, content) = ask(client, &request).await;
        assert_eq!((line.as_str(), content.as_str()), ("HTTP/1.1 200 OK", "4\r\nwarp\r\n0\r\n\r\n"));
        server.await.unwrap().unwrap();
    });
}
