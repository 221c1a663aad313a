//! Sockets, timers and pipes of threads that move from worker to worker.

use crate::common::{localhost, ms};
use selvedge_core::{spawn, yield_now};
use selvedge_io::net::{Stream, TcpListener, TcpStream};
use selvedge_io::pipe::pipe;
use selvedge_io::time::{sleep, timeout};
use selvedge_io::{EventLoop, blocking};
use selvedge_sched::work_stealing;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn run<F: Future<Output: Send> + Send + 'static>(workers: usize, main: F) -> F::Output {
    let main = async move { timeout(ms(60_000), main).await.expect("the test hangs") };
    work_stealing(workers, |_| EventLoop::new(), main).unwrap()
}

async fn echo(stream: TcpStream) -> std::io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..read]).await?;
    }
}

#[test]
fn an_echo_server_and_its_clients() {
    const CLIENTS: usize = 100;
    const ROUNDS: usize = 50;
    for workers in [2, 4] {
        let echoed = run(workers, async {
            let listener = TcpListener::bind(localhost(0)).unwrap();
            let address = listener.local_addr();
            drop(spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    drop(spawn(echo(stream)));
                }
            }));
            let clients: Vec<_> = (0..CLIENTS)
                .map(|i| {
                    spawn(async move {
                        let stream = TcpStream::connect(address).await.unwrap();
                        for round in 0..ROUNDS {
                            let message = vec![(i ^ round) as u8; 1 + (i * round) % 300];
                            stream.write_all(&message).await.unwrap();
                            let mut reply = vec![0; message.len()];
                            stream.read_exact(&mut reply).await.unwrap();
                            assert_eq!(reply, message);
                            match round % 10 {
                                3 => sleep(ms(1)).await,
                                7 => yield_now().await,
                                _ => {}
                            }
                        }
                        ROUNDS
                    })
                })
                .collect();
            let mut echoed = 0;
            for client in clients {
                echoed += client.await.unwrap();
            }
            echoed
        });
        assert_eq!(echoed, CLIENTS * ROUNDS);
    }
}

/// Two threads use one connection, on any worker; both of them wait for it all the time.
#[test]
fn one_thread_reads_what_another_writes_to_the_same_stream() {
    const BYTES: usize = 3_000_000;
    run(3, async {
        let listener = TcpListener::bind(localhost(0)).unwrap();
        let connecting = spawn(TcpStream::connect(listener.local_addr()));
        let (one, _) = listener.accept().await.unwrap();
        let ends: [Arc<Stream>; 2] =
            [Arc::new(one.into()), Arc::new(connecting.await.unwrap().unwrap().into())];
        let mut threads = Vec::new();
        for end in &ends {
            let (writes, reads) = (end.clone(), end.clone());
            threads.push(spawn(async move {
                for _ in 0..BYTES / 30_000 {
                    writes.write_all(&[1; 30_000]).await.unwrap();
                    yield_now().await;
                }
            }));
            threads.push(spawn(async move {
                let (mut read, mut buffer) = (0, vec![0; 7_000]);
                while read < BYTES {
                    read += reads.read(&mut buffer).await.unwrap();
                    yield_now().await;
                }
            }));
        }
        for thread in threads {
            thread.await.unwrap();
        }
    });
}

/// Timers are set on one worker, and given up or awaited on another worker.
#[test]
fn timers_and_time_outs_wherever_the_threads_go() {
    let late = Arc::new(AtomicUsize::new(0));
    let threads = late.clone();
    run(4, async move {
        let all: Vec<_> = (0..500u64)
            .map(|i| {
                let late = threads.clone();
                spawn(async move {
                    for round in 0..10u64 {
                        let up = timeout(ms(1 + (i + round) % 5), std::future::pending::<()>()).await;
                        assert!(up.is_err());
                        timeout(ms(50_000), sleep(ms(round % 3))).await.unwrap();
                        let called = timeout(ms(50_000), blocking(move || round)).await.unwrap().unwrap();
                        assert_eq!(called, round);
                        late.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        for thread in all {
            thread.await.unwrap();
        }
    });
    assert_eq!(late.load(Ordering::Relaxed), 5000);
}

#[test]
fn many_pipes_at_once() {
    run(2, async {
        let pairs: Vec<_> = (0..64)
            .map(|i| {
                let (sender, receiver) = pipe().unwrap();
                let writer = spawn(async move {
                    for _ in 0..50 {
                        sender.write_all(&[i as u8; 5000]).await.unwrap();
                    }
                });
                let reader = spawn(async move { receiver.read_to_end().await.unwrap() });
                (writer, reader, i)
            })
            .collect();
        for (writer, reader, i) in pairs {
            writer.await.unwrap();
            let content = reader.await.unwrap();
            assert!(content.len() == 250_000 && content.iter().all(|&byte| byte == i as u8));
        }
    });
}

/// Threads on several workers wait for the same listener.
#[test]
fn several_accept_from_one_listener() {
    run(4, async {
        let listener = Arc::new(TcpListener::bind(localhost(0)).unwrap());
        let address = listener.local_addr();
        for _ in 0..4 {
            let listener = listener.clone();
            drop(spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    drop(spawn(echo(stream)));
                }
            }));
        }
        for round in 0..20 {
            let clients: Vec<_> = (0..10)
                .map(|i| {
                    spawn(async move {
                        let stream = TcpStream::connect(address).await.unwrap();
                        stream.write_all(&[i]).await.unwrap();
                        let mut byte = [0];
                        stream.read_exact(&mut byte).await.unwrap();
                        assert_eq!(byte, [i]);
                    })
                })
                .collect();
            for client in clients {
                client.await.unwrap();
            }
            sleep(ms(round % 3)).await;
        }
    });
}
