//! A JSON service with a database: SQLite on the blocking pool, behind a router of `selvedge::web`.
//!
//! # Prints
//! ```text
//! 201 {"id":1,"name":"twill","ells":12}
//! 201 {"id":2,"name":"satin","ells":7}
//! 200 [{"id":1,"name":"twill","ells":12},{"id":2,"name":"satin","ells":7}]
//! 200 {"id":2,"name":"satin","ells":7}
//! 404 there is no cloth 3
//! 422 the JSON does not fit: missing field `ells` at line 1 column 15
//! ```

use rusqlite::{Connection, OptionalExtension, Row};
use selvedge::blocking;
use selvedge::http::{Config, Site};
use selvedge::net::{bind, connect};
use selvedge::spawn_local;
use selvedge::web::{Json, Path, Rejection, Router, State, StatusCode};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::sync::{Arc, Mutex};

type Database = Arc<Mutex<Connection>>;

#[derive(Deserialize, Serialize)]
struct Cloth {
    #[serde(default)]
    id: i64,
    name: String,
    ells: u32,
}

fn cloth(row: &Row<'_>) -> rusqlite::Result<Cloth> {
    Ok(Cloth { id: row.get(0)?, name: row.get(1)?, ells: row.get(2)? })
}

/// Runs `work` on an OS thread that may block.
async fn with<T: Send + 'static>(
    database: Database,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
) -> Result<T, Rejection> {
    let failed = |error: String| Rejection::new(StatusCode::INTERNAL_SERVER_ERROR, error);
    let done = blocking(move || work(&database.lock().unwrap())).await;
    done.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))
}

async fn list(State(database): State<Database>) -> Result<Json<Vec<Cloth>>, Rejection> {
    let rows = with(database, |database| {
        database
            .prepare_cached("SELECT id, name, ells FROM cloth ORDER BY id")?
            .query_map((), cloth)?
            .collect()
    });
    rows.await.map(Json)
}

async fn add(
    State(database): State<Database>,
    Json(cloth): Json<Cloth>,
) -> Result<(StatusCode, Json<Cloth>), Rejection> {
    let added = with(database, move |database| {
        database.execute("INSERT INTO cloth (name, ells) VALUES (?1, ?2)", (&cloth.name, cloth.ells))?;
        Ok(Cloth { id: database.last_insert_rowid(), ..cloth })
    });
    Ok((StatusCode::CREATED, Json(added.await?)))
}

async fn show(State(database): State<Database>, Path(id): Path<i64>) -> Result<Json<Cloth>, Rejection> {
    let found = with(database, move |database| {
        database.query_row("SELECT id, name, ells FROM cloth WHERE id = ?1", [id], cloth).optional()
    });
    let missing = || Rejection::new(StatusCode::NOT_FOUND, format!("there is no cloth {id}"));
    found.await?.map(Json).ok_or_else(missing)
}

fn service(database: Connection) -> Router<Database> {
    Router::with_state(Arc::new(Mutex::new(database)))
        .get("/cloths", list)
        .post("/cloths", add)
        .get("/cloths/{id}", show)
}

/// The status and the content of the answer.
async fn ask(address: &str, method: &str, path: &str, json: &str) -> Result<String, Box<dyn Error>> {
    let stream = connect(address).await?;
    let head = format!("{method} {path} HTTP/1.1\r\nHost: loom\r\nConnection: close\r\n");
    let length = json.len();
    let request = format!("{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{json}");
    stream.write_all(request.as_bytes()).await?;
    let answer = String::from_utf8(stream.read_to_end().await?)?;
    let (head, content) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
    Ok(format!("{} {content}", head.split(' ').nth(1).unwrap_or("?")))
}

#[selvedge::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let database = Connection::open_in_memory()?;
    database.execute("CREATE TABLE cloth (id INTEGER PRIMARY KEY, name TEXT, ells INTEGER)", ())?;
    let site = Site::with_handler(service(database), Config::default(), None);
    let listener = bind("127.0.0.1:0").await?;
    let address = listener.local_addr().to_string();
    let stop = selvedge::http::Stop::new();
    let server = spawn_local({
        let (site, stop) = (site.clone(), stop.clone());
        async move { site.serve_tcp(listener, &stop).await }
    });
    for (method, path, json) in [
        ("POST", "/cloths", r#"{"name":"twill","ells":12}"#),
        ("POST", "/cloths", r#"{"name":"satin","ells":7}"#),
        ("GET", "/cloths", ""),
        ("GET", "/cloths/2", ""),
        ("GET", "/cloths/3", ""),
        ("POST", "/cloths", r#"{"name":"knit"}"#),
    ] {
        println!("{}", ask(&address, method, path, json).await?);
    }
    stop.request();
    server.await??;
    site.drain().await;
    Ok(())
}
