//! A small web application with axum on tokio's current-thread runtime, as in
//! `figures/src/child/app.rs`.
//!
//! usage: app-rust PORT

use axum::extract::Path;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

async fn hello() -> Json<Value> {
    Json(json!({ "message": "Hello, World!", "number": 42 }))
}

async fn sum(Json(numbers): Json<Vec<u64>>) -> String {
    numbers.iter().sum::<u64>().to_string()
}

async fn user(Path(id): Path<u64>) -> String {
    format!("user {id}")
}

fn main() {
    let port = std::env::args().nth(1).expect("a port");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async move {
        let router =
            Router::new().route("/json", get(hello)).route("/sum", post(sum)).route("/users/{id}", get(user));
        let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await.expect("the port is free");
        axum::serve(axum::serve::ListenerExt::tap_io(listener, |stream| {
            stream.set_nodelay(true).expect("it is a TCP socket");
        }), router)
        .await
        .expect("it serves");
    });
}
