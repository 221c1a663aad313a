//! Sockets, sleeping and the blocking pool in futures on executors of other crates.

use crate::common::{listen, ms};
use futures::executor::block_on;
use futures::future::join_all;
use selvedge_core::Time;
use selvedge_io::blocking;
use selvedge_io::net::{TcpListener, TcpStream};
use selvedge_io::time::{sleep, timeout};
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Instant;

async fn serve(listener: Arc<TcpListener>, connections: usize) {
    let mut threads = Vec::new();
    for _ in 0..connections {
        let (stream, _) = listener.accept().await.unwrap();
        threads.push(async move {
            let mut buffer = [0; 100];
            loop {
                match stream.read(&mut buffer).await.unwrap() {
                    0 => break,
                    n => stream.write_all(&buffer[..n]).await.unwrap(),
                }
            }
        });
    }
    join_all(threads).await;
}

async fn ask(listener: Arc<TcpListener>) {
    let stream = TcpStream::connect(listener.local_addr()).await.unwrap();
    for i in 0..20 {
        sleep(ms(i % 3)).await;
        stream.write_all(b"hello").await.unwrap();
        let mut answer = [0; 5];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"hello");
    }
}

#[test]
fn on_the_executor_of_the_futures_crate() {
    block_on(async {
        let listener = Arc::new(listen());
        let clients = join_all((0..50).map(|_| ask(listener.clone())));
        futures::join!(serve(listener.clone(), 50), clients);
    });
}

#[test]
fn on_tokio_with_several_workers() {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(3).build().unwrap();
    tokio.block_on(async {
        let listener = Arc::new(listen());
        let server = tokio::spawn(serve(listener.clone(), 100));
        let clients: Vec<_> = (0..100).map(|_| tokio::spawn(ask(listener.clone()))).collect();
        for client in clients {
            client.await.unwrap();
        }
        server.await.unwrap();
        assert_eq!(blocking(|| 6 * 7).await.unwrap(), 42);
    });
}

#[test]
fn time_passes_there_too() {
    block_on(async {
        let start = Instant::now();
        join_all((0..100).map(|i| sleep(ms(i % 10)))).await;
        assert!(start.elapsed() >= ms(9));
        let listener = listen();
        let client = TcpStream::connect(listener.local_addr()).await.unwrap();
        client.set_read_deadline(Some(Time::now() + ms(10)));
        let start = Instant::now();
        assert_eq!(client.read(&mut [0]).await.unwrap_err().kind(), ErrorKind::TimedOut);
        assert!(start.elapsed() >= ms(10) && start.elapsed() < ms(2000));
        assert!(timeout(ms(5), std::future::pending::<()>()).await.is_err());
    });
}
