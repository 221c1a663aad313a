//! JSON over HTTP, by hyper on our threads: `serve` accepts, and stops when it is told to.
//!
//! # Prints
//! ```text
//! {"area":12.0,"sides":[3.0,4.0]}
//! {"error":"..
//! ```

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use selvedge::net::{TcpListener, connect};
use selvedge::spawn;
use selvedge::sync::one_shot;
use selvedge_compat::hyper::serve;
use serde_json::{Value, json};
use std::error::Error;
use std::io;
use std::process::ExitCode;

async fn area(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    let (status, answer) = match measure(&body) {
        Ok(answer) => (StatusCode::OK, answer),
        Err(error) => (StatusCode::BAD_REQUEST, json!({ "error": error.to_string() })),
    };
    let mut response = Response::new(Full::from(answer.to_string()));
    *response.status_mut() = status;
    Ok(response)
}

fn measure(body: &[u8]) -> Result<Value, Box<dyn Error>> {
    let sides: Vec<f64> = serde_json::from_slice(body)?;
    Ok(json!({ "sides": sides, "area": sides.iter().product::<f64>() }))
}

/// The content of the answer.
async fn post(address: &str, body: &str) -> io::Result<String> {
    let stream = connect(address).await?;
    let head = "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length:";
    stream.write_all(format!("{head} {}\r\n\r\n{body}", body.len()).as_bytes()).await?;
    let answer = String::from_utf8_lossy(&stream.read_to_end().await?).into_owned();
    Ok(answer.split_once("\r\n\r\n").unwrap_or_default().1.to_string())
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        let listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
        let address = listener.local_addr().to_string();
        let (stop, mut stopped) = one_shot();
        let server = spawn(async move {
            let stopped = async move { stopped.take().await.unwrap_or(()) };
            serve(listener, service_fn(area), stopped).await
        });
        println!("{}", post(&address, "[3, 4]").await?);
        println!("{}", post(&address, "three by four").await?);
        let _ = stop.reply(());
        server.await??;
        Ok(())
    })
}
