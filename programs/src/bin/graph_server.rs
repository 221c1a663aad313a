//! A web server that answers each request by a graph: how many ways lead through a table with
//! walls, from corner to corner. The graph is built, run and looked at for one request, on the pool
//! for blocking calls; the thread of the connection waits for it like for any other answer.
//!
//! # Prints
//! ```text
//! 3 by 3: 6 ways
//! 20 by 20: 35345263800 ways
//! with a wall: 2 ways
//! no table: 400 Bad Request
//! ```

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use selvedge::cnc::{GraphError, Items, graph, schedulers::Stealing};
use selvedge::net::{TcpListener, connect};
use selvedge::sync::one_shot;
use selvedge::{blocking, spawn};
use selvedge_compat::hyper::serve;
use std::io;
use std::process::ExitCode;

/// The number of ways to the right and down, through the places that are a dot.
fn ways(table: &[Vec<u8>]) -> Result<u64, GraphError> {
    let (rows, columns) = (table.len() as u32, table[0].len() as u32);
    graph(|graph| {
        let places = graph.tags::<(u32, u32)>("places");
        let ways = graph.items_in("ways", Items::<_, u64>::dense((rows, columns)));
        graph.prescribe(places, "count", move |(i, j), step| {
            let above = if i > 0 { *step.get(ways, (i - 1, j))? } else { u64::from(j == 0) };
            let left = if j > 0 { *step.get(ways, (i, j - 1))? } else { 0 };
            let is_free = table[i as usize][j as usize] == b'.';
            step.put(ways, (i, j), if is_free { above + left } else { 0 })
        });
        graph.initialize(|env| {
            (0..rows)
                .flat_map(|i| (0..columns).map(move |j| (i, j)))
                .try_for_each(|place| env.put_tag(places, place))
        })?;
        let finished = graph.run(&Stealing::new(2))?;
        Ok(finished.finalize(|view| view.get(ways, (rows - 1, columns - 1)).copied().unwrap_or(0)))
    })
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    let table: Vec<Vec<u8>> = body.split(|&byte| byte == b'/').map(<[u8]>::to_vec).collect();
    let is_table = !table[0].is_empty() && table.iter().all(|row| row.len() == table[0].len());
    let counted = if is_table { Some(blocking(move || ways(&table)).await) } else { None };
    let (status, text) = match counted {
        Some(Ok(Ok(ways))) => (StatusCode::OK, format!("{ways} ways")),
        Some(Ok(Err(error))) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        Some(Err(error)) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        None => (StatusCode::BAD_REQUEST, String::new()),
    };
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    Ok(response)
}

/// The content of the answer, or the status without one.
async fn post(address: &str, body: &str) -> io::Result<String> {
    let stream = connect(address).await?;
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length:";
    stream.write_all(format!("{head} {}\r\n\r\n{body}", body.len()).as_bytes()).await?;
    let answer = String::from_utf8_lossy(&stream.read_to_end().await?).into_owned();
    let (head, content) = answer.split_once("\r\n\r\n").unwrap_or_default();
    let status = head.lines().next().unwrap_or_default().trim_start_matches("HTTP/1.1 ");
    Ok(if content.is_empty() { status } else { content }.to_string())
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        let listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
        let address = listener.local_addr().to_string();
        let (stop, mut stopped) = one_shot();
        let server = spawn(async move {
            let stopped = async move { stopped.take().await.unwrap_or(()) };
            serve(listener, service_fn(answer), stopped).await
        });
        println!("3 by 3: {}", post(&address, ".../.../...").await?);
        println!("20 by 20: {}", post(&address, &vec![".".repeat(20); 20].join("/")).await?);
        println!("with a wall: {}", post(&address, ".../.#./...").await?);
        println!("no table: {}", post(&address, ".../..").await?);
        let _ = stop.reply(());
        server.await??;
        Ok(())
    })
}
