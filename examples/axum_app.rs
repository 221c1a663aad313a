//! An axum application as it is, with its state, its layer and its streamed bodies, on our threads
//! and sockets.

use selvedge::client::Client;
use selvedge::http::Stop;
use selvedge::web::Server;
use selvedge_compat::tower::FromTower;
use std::error::Error;
use std::net::SocketAddr;
use std::thread;

/// The application. It knows axum, and nothing of Selvedge.
mod application {
    use axum::Router;
    use axum::body::Body;
    use axum::extract::{Path, Request, State};
    use axum::http::{HeaderValue, StatusCode};
    use axum::middleware::{Next, from_fn};
    use axum::response::Response;
    use axum::routing::{get, post};
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex, PoisonError};

    type Stock = Arc<Mutex<BTreeMap<String, u32>>>;

    async fn weave(State(stock): State<Stock>, Path((cloth, ells)): Path<(String, u32)>) -> String {
        let mut stock = stock.lock().unwrap_or_else(PoisonError::into_inner);
        let woven = stock.entry(cloth).or_default();
        *woven += ells;
        format!("{woven} ells")
    }

    async fn look(State(stock): State<Stock>, Path(cloth): Path<String>) -> Result<String, StatusCode> {
        let stock = stock.lock().unwrap_or_else(PoisonError::into_inner);
        stock.get(&cloth).map(|ells| format!("{ells} ells")).ok_or(StatusCode::NOT_FOUND)
    }

    async fn marked(request: Request, next: Next) -> Response {
        let mut response = next.run(request).await;
        response.headers_mut().insert("x-loom", HeaderValue::from_static("7"));
        response
    }

    pub(crate) fn router() -> Router {
        Router::new()
            .route("/weave/{cloth}/{ells}", post(weave))
            .route("/stock/{cloth}", get(look))
            // The body goes back piece by piece, as it comes.
            .route("/echo", post(async |body: Body| body))
            .layer(from_fn(marked))
            .with_state(Stock::default())
    }
}

/// Asks the server, and compares each answer with what the application has to say.
async fn ask(address: SocketAddr) -> Result<(), Box<dyn Error>> {
    let client = Client::new();
    let long = "warp and weft ".repeat(20_000);
    for (method, path, body, status, expected) in [
        ("POST", "/weave/twill/12", "", 200, "12 ells"),
        ("POST", "/weave/twill/30", "", 200, "42 ells"),
        ("GET", "/stock/twill", "", 200, "42 ells"),
        ("GET", "/stock/satin", "", 404, ""),
        (
            "POST",
            "/weave/twill/many",
            "",
            400,
            "Invalid URL: Cannot parse value at index 1 with value `many` to a `u32`",
        ),
        ("DELETE", "/stock/twill", "", 405, ""),
        ("POST", "/echo", &long, 200, &long),
    ] {
        let request = client.request(method.parse()?, format!("http://{address}{path}"));
        let answer = request.body(body.to_owned()).await?;
        let (found, marked) = (answer.status().as_u16(), answer.headers().contains_key("x-loom"));
        let text = answer.into_body().text(1 << 20).await?;
        println!("{method} {path}: {found}, {} bytes", text.len());
        if (found, marked, text.as_str()) != (status, true, expected) {
            return Err(
                format!("{method} {path}: {found}, {text:?} instead of {status}, {expected:?}").into()
            );
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let router = application::router();
    // Two workers, each on an OS thread with an event loop of its own.
    let server = Server::bind("127.0.0.1:0")?.workers(2);
    let (address, stop) = (server.address(), Stop::new());
    let told = stop.clone();
    let running = thread::spawn(move || server.run_unless_stopped(&told, || FromTower(router.clone())));
    let asked = selvedge::run_local(ask(address));
    stop.request();
    running.join().map_err(|_| "a worker has panicked")??;
    asked?
}
