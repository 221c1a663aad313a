//! One application in three ways: as a server of its own, as a FastCGI application, and as a CGI
//! program. Started by hand, it starts itself in the other two ways too, asks all three the same,
//! and compares the answers.
//!
//! # Prints
//! ```text
//! on a port: POST /cloth/linen?width=2 with 11 bytes
//! FastCGI: the same
//! CGI: the same
//! ```

use selvedge::client::{Address, Client};
use selvedge::gateway::{Cgi, FastCgi, Start, serve_cgi, serve_fastcgi};
use selvedge::http::{Body, BodyError, Config, Handler, Request, Response, Site};
use selvedge::net::bind;
use selvedge::process::Command;
use selvedge::spawn_local;
use std::env;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;

/// The application.
async fn application(request: Request) -> Result<String, BodyError> {
    let (parts, body) = request.into_parts();
    let bytes = body.read_all(1 << 20).await?.len();
    // A server in front may have the application below a prefix; the name of a CGI program is one.
    let path = parts.uri.to_string();
    let path = path.find("/cloth").map_or(&path[..], |at| &path[at..]);
    Ok(format!("{} {path} with {bytes} bytes", parts.method))
}

fn request(prefix: &str) -> Request {
    let request = Request::post(format!("{prefix}/cloth/linen?width=2")).header("host", "loom");
    request.body(Body::from("warp & weft")).expect("a valid request")
}

async fn text(response: Response) -> Result<String, BodyError> {
    let bytes = response.into_body().read_all(1 << 20).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Asks the application in all three ways.
async fn compare() -> Result<(), Box<dyn std::error::Error>> {
    let listener = bind("127.0.0.1:0").await?;
    let address = listener.local_addr();
    let server = spawn_local(async move {
        let site = Site::with_handler(application, Config::default(), None);
        while let Ok((stream, peer)) = listener.accept().await {
            drop(spawn_local(site.serve(stream.into(), Some(peer.ip()))));
        }
    });
    let answer = Client::new().send_to(&Address::tcp(address.to_string()), request("")).await?;
    let on_a_port = answer.into_body().text(1 << 20).await?;
    println!("on a port: {on_a_port}");
    server.cancel();

    let program = env::current_exe()?;
    let directory = env::temp_dir().join(format!("three-ways-{}", std::process::id()));
    std::fs::create_dir(&directory)?;
    let socket = directory.join("socket");
    let listener = OwnedFd::from(UnixListener::bind(&socket)?);
    let mut child = Command::new(&program).stdin(listener).kill_on_drop(true).spawn().await?;
    let by_fastcgi = text(FastCgi::new(Address::unix(&socket)).call(request("")).await).await?;
    println!("FastCGI: {}", if by_fastcgi == on_a_port { "the same" } else { &by_fastcgi });
    child.kill().await?;
    std::fs::remove_dir_all(&directory)?;

    let (directory, name) = (program.parent().expect("a directory"), program.file_name().expect("a name"));
    let prefix = format!("/{}", name.to_string_lossy());
    let by_cgi = text(Cgi::new(directory).call(request(&prefix)).await).await?;
    println!("CGI: {}", if by_cgi == on_a_port { "the same" } else { &by_cgi });
    Ok(())
}

#[selvedge::main(local)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    match Start::detect() {
        Start::Cgi => Ok(serve_cgi(application).await?),
        Start::FastCgi(listener) => Ok(serve_fastcgi(listener, application).await?),
        Start::Alone => compare().await,
    }
}
