//! The first program of the guide's page on web applications (`docs/guide/web.md`), word for word,
//! with the test that stands below it on the page.

use rusqlite::{Connection, OptionalExtension};
use selvedge::blocking;
use selvedge::web::{Json, Path, Rejection, Router, State, StatusCode, serve};
use std::sync::{Arc, Mutex};

type Database = Arc<Mutex<Connection>>;

#[derive(serde::Deserialize, serde::Serialize)]
struct Cloth {
    name: String,
    ells: u32,
}

async fn with<T: Send + 'static>(
    database: Database,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
) -> Result<T, Rejection> {
    let failed = |error: String| Rejection::new(StatusCode::INTERNAL_SERVER_ERROR, error);
    let done = blocking(move || work(&database.lock().unwrap())).await;
    done.map_err(|e| failed(e.to_string()))?.map_err(|e| failed(e.to_string()))
}

async fn add(State(database): State<Database>, Json(cloth): Json<Cloth>) -> Result<StatusCode, Rejection> {
    let insert = "INSERT INTO cloth (name, ells) VALUES (?1, ?2)";
    with(database, move |db| db.execute(insert, (cloth.name, cloth.ells))).await?;
    Ok(StatusCode::CREATED)
}

async fn show(State(database): State<Database>, Path(name): Path<String>) -> Result<Json<Cloth>, Rejection> {
    let select = "SELECT ells FROM cloth WHERE name = ?1";
    let name_of = name.clone();
    let ells = with(database, move |db| db.query_row(select, [name_of], |row| row.get(0)).optional()).await?;
    let missing = || Rejection::new(StatusCode::NOT_FOUND, format!("there is no {name}"));
    ells.map(|ells| Json(Cloth { name: name.clone(), ells })).ok_or_else(missing)
}

fn service(database: Connection) -> rusqlite::Result<Router<Database>> {
    database.execute("CREATE TABLE IF NOT EXISTS cloth (name TEXT PRIMARY KEY, ells INTEGER)", ())?;
    let state = Arc::new(Mutex::new(database));
    Ok(Router::with_state(state).post("/cloths", add).get("/cloths/{name}", show))
}

#[selvedge::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let service = service(Connection::open("cloth.db")?)?;
    Ok(serve("127.0.0.1:8000", service).await?)
}

#[cfg(test)]
mod tests {
    use super::{Cloth, service};
    use rusqlite::Connection;
    use selvedge::spawn_local;
    use selvedge::web::testing::{TestRequest, ask, get};
    use std::rc::Rc;

    #[selvedge::test(seeds = 0..100)]
    async fn one_of_two_weavers_adds_a_cloth() {
        let service = Rc::new(service(Connection::open_in_memory().unwrap()).unwrap());
        let weavers = [12, 7].map(|ells| {
            let service = service.clone();
            let twill = TestRequest::post("/cloths").json(&Cloth { name: "twill".into(), ells });
            spawn_local(async move { (ask(&*service, twill).await.status(), ells) })
        });
        let mut statuses = Vec::new();
        for weaver in weavers {
            statuses.push(weaver.await.unwrap());
        }
        statuses.sort();
        let [(201, ells), (500, _)] = statuses[..] else { panic!("{statuses:?}") };
        assert_eq!(get(&*service, "/cloths/twill").await.json::<Cloth>().ells, ells);
        assert_eq!(get(&*service, "/cloths/satin").await.status(), 404);
    }
}

// The page shows what is above this line.

#[test]
fn the_page_shows_this_program() {
    let own = include_str!("first_page.rs");
    let (_, shown) = own.split_once("\n\nuse ").unwrap();
    let (shown, _) = shown.split_once("\n// The page").unwrap();
    let page = include_str!("../../docs/guide/web.md");
    assert!(page.contains(&format!("```rust,no_run\nuse {shown}```\n")), "{shown}");
}
