//! Servers of a small web application: ours, and hyper on tokio's current-thread runtime. They
//! listen at a given port of this machine until they are killed. `figures/src/web/application.rs`
//! starts them through `child.rs`; axum and Go have the same application in `figures/peers`.
//!
//! `GET /json` is an object, `POST /sum` the sum of a list of numbers, and `GET /users/{id}` a line
//! with a part of the path.

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use selvedge_core::round_robin_over;
use selvedge_http::{Config, Site, Stop};
use selvedge_io::EventLoop;
use selvedge_io::net::TcpListener;
use selvedge_web::{Json, Path, Response as WebResponse, Router, WebSocketUpgrade};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;

/// Runs the program `name` with its numbers. `false` if it is no program about the web application.
///
/// # Errors
/// The program could not run.
pub(super) fn run(name: &str, numbers: &[u64]) -> Result<bool, String> {
    match (name, numbers) {
        ("web-app", &[port]) => ours(port),
        ("fastcgi-app", &[port, bytes]) => fastcgi(port, bytes),
        ("tokio-web-app", &[port]) => theirs(port),
        _ => return Ok(false),
    }
    Ok(true)
}

fn address(port: u64) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port as u16).into()
}

/// The object.
fn object(number: u64) -> Value {
    json!({ "message": "Hello, World!", "number": number })
}

/// The number in the object.
const NUMBER: u64 = 42;

async fn hello() -> Json<Value> {
    Json(object(NUMBER))
}

async fn sum(Json(numbers): Json<Vec<u64>>) -> String {
    numbers.iter().sum::<u64>().to_string()
}

async fn user(Path(id): Path<u64>) -> String {
    format!("user {id}")
}

/// A WebSocket that sends back what comes, for the figure about reloads.
async fn echo(upgrade: WebSocketUpgrade) -> WebResponse {
    upgrade.on_upgrade(async |mut socket| {
        while let Ok(Some(message)) = socket.next().await {
            if socket.send(message).await.is_err() {
                break;
            }
        }
    })
}

/// Ours.
fn ours(port: u64) {
    let mut events = EventLoop::new().expect("an event loop");
    let serving = async move {
        let router = Router::new().get("/json", hello).post("/sum", sum).get("/users/{id}", user);
        let router = router.get("/echo", echo);
        let site = Site::with_handler(router, Config::default(), None);
        let listener = TcpListener::bind(address(port)).expect("the port is free");
        Rc::clone(&site).serve_tcp(listener, &Stop::new()).await
    };
    round_robin_over(&mut events, serving).expect("it runs").expect("it serves");
}

/// A FastCGI application with one answer, for the figure about programs.
fn fastcgi(port: u64, bytes: u64) {
    let mut events = EventLoop::new().expect("an event loop");
    let serving = async move {
        let listener = TcpListener::bind(address(port)).expect("the port is free");
        let text = "x".repeat(bytes as usize);
        let handler = move |_: selvedge_web::Request| {
            let text = text.clone();
            async move { text }
        };
        selvedge_gateway::serve_fastcgi(listener, handler).await
    };
    round_robin_over(&mut events, serving).expect("it runs").expect("it serves");
}

type Reply = Response<Full<Bytes>>;

fn reply(kind: &'static str, content: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(content.into()));
    reply.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    reply
}

fn refusal(status: StatusCode) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::new()));
    *reply.status_mut() = status;
    reply
}

async fn route(request: Request<Incoming>) -> Result<Reply, Infallible> {
    const TEXT: &str = "text/plain; charset=utf-8";
    let (parts, body) = request.into_parts();
    Ok(match (&parts.method, parts.uri.path()) {
        (&Method::GET, "/json") => match serde_json::to_vec(&object(NUMBER)) {
            Ok(text) => reply("application/json", text),
            Err(_) => refusal(StatusCode::INTERNAL_SERVER_ERROR),
        },
        (&Method::POST, "/sum") => {
            let content = body.collect().await.map(|body| body.to_bytes());
            match content.ok().and_then(|content| serde_json::from_slice::<Vec<u64>>(&content).ok()) {
                Some(numbers) => reply(TEXT, numbers.iter().sum::<u64>().to_string()),
                None => refusal(StatusCode::BAD_REQUEST),
            }
        }
        (&Method::GET, path) => match path.strip_prefix("/users/").and_then(|id| id.parse::<u64>().ok()) {
            Some(id) => reply(TEXT, format!("user {id}")),
            None => refusal(StatusCode::NOT_FOUND),
        },
        _ => refusal(StatusCode::NOT_FOUND),
    })
}

/// hyper on tokio.
fn theirs(port: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async move {
        let listener = tokio::net::TcpListener::bind(address(port)).await.expect("the port is free");
        loop {
            let (stream, _) = listener.accept().await.expect("the port stays open");
            stream.set_nodelay(true).expect("it is a TCP socket");
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(route));
            tokio::task::spawn_local(async move { drop(connection.await) });
        }
    });
}
