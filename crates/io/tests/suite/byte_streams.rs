//! Streams of any kind: copying, reading by lines, connecting by name, and the state after a read
//! that was given up.

use selvedge_core::{round_robin_over, spawn, spawn_local, yield_now};
use selvedge_io::fs::File;
use selvedge_io::io::{BufReader, Read, Write, copy, copy_bidirectional};
use selvedge_io::net::{TcpListener, UnixStream, bind, connect, resolve};
use selvedge_io::{EventLoop, pipe, time::timeout};
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

fn run<T: 'static>(main: impl Future<Output = io::Result<T>> + 'static) -> T {
    round_robin_over(&mut EventLoop::new().unwrap(), main).unwrap().unwrap()
}

/// A reader that gives its bytes one at a time.
struct Slow(&'static [u8]);

impl Read for Slow {
    async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        yield_now().await;
        let length = buffer.len().min(1);
        self.0.read(&mut buffer[..length]).await
    }
}

/// A writer that takes three bytes at a time.
struct Narrow(Vec<u8>);

impl Write for Narrow {
    async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = bytes.len().min(3);
        self.0.extend_from_slice(&bytes[..length]);
        Ok(length)
    }
}

#[test]
fn what_comes_in_pieces_and_goes_in_pieces_is_whole() {
    let copied = run(async {
        let mut to = Narrow(Vec::new());
        assert_eq!(copy(Slow(b"warp and weft"), &mut to).await?, 13);
        Ok(to.0)
    });
    assert_eq!(copied, b"warp and weft");
}

#[test]
fn lines_are_found_wherever_the_reads_end() {
    run(async {
        let mut lines = BufReader::new(Slow(b"one\r\n\ntwo\nlast")).lines();
        for line in ["one", "", "two", "last"] {
            assert_eq!(lines.next().await?.as_deref(), Some(line));
        }
        assert_eq!(lines.next().await?, None);
        Ok(())
    });
}

#[test]
fn a_line_longer_than_the_longest_is_an_error_and_stays_in_the_buffer() {
    run(async {
        let mut reader = BufReader::new(Slow(b"0123456789\n")).line_max(4);
        let error = reader.read_line(&mut String::new()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert_eq!(reader.buffer(), b"01234");
        Ok(())
    });
}

#[test]
fn a_line_that_is_no_text_is_skipped() {
    run(async {
        let mut reader = BufReader::new(&b"\xff\nwarp\n"[..]);
        let mut line = String::new();
        assert_eq!(reader.read_line(&mut line).await.unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(reader.read_line(&mut line).await?, 5);
        assert_eq!(line, "warp\n");
        Ok(())
    });
}

#[test]
fn a_line_that_is_given_up_half_way_is_read_whole_later() {
    run(async {
        let (here, there) = UnixStream::pair()?;
        let mut lines = there.lines();
        here.write_all(b"half").await?;
        assert!(timeout(Duration::from_millis(5), lines.next()).await.is_err());
        here.write_all(b" and half\n").await?;
        assert_eq!(lines.next().await?.as_deref(), Some("half and half"));
        Ok(())
    });
}

#[test]
fn what_was_read_ahead_is_read_first_and_large_reads_pass_the_buffer() {
    run(async {
        let mut reader = BufReader::new(&[7; 20_000][..]);
        let mut small = [0; 10];
        assert_eq!(reader.read(&mut small).await?, 10);
        let ahead = reader.buffer().len();
        let mut large = vec![0; 20_000];
        assert_eq!(reader.read(&mut large).await?, ahead);
        assert_eq!(reader.read(&mut large).await?, 20_000 - 10 - ahead);
        assert_eq!(reader.read(&mut large).await?, 0);
        Ok(())
    });
}

#[test]
fn both_directions_go_on_until_both_have_ended() {
    let (there, back) = run(async {
        let ((client, front), (behind, server)) = (UnixStream::pair()?, UnixStream::pair()?);
        let proxy = spawn(async move { copy_bidirectional(&front, &behind).await });
        client.write_all(b"question").await?;
        client.shutdown(Shutdown::Write)?;
        assert_eq!(server.read_to_end().await?, b"question");
        // The direction back to the client is still open.
        server.write_all(b"answer").await?;
        drop(server);
        assert_eq!(client.read_to_end().await?, b"answer");
        proxy.await.unwrap()
    });
    assert_eq!((there, back), (8, 6));
}

#[test]
fn a_file_is_read_and_written_from_where_it_is() {
    run(async {
        let path = tempfile::NamedTempFile::new()?.into_temp_path();
        let mut to = File::create(path.to_path_buf()).await?;
        to.write_all(b"warp\nweft\n").await?;
        assert_eq!(to.position(), 10);
        let file = File::open(path.to_path_buf()).await?;
        let mut second = file.clone();
        second.set_position(5);
        let mut lines = second.lines();
        assert_eq!(lines.next().await?.as_deref(), Some("weft"));
        let (sender, receiver) = pipe::pipe()?;
        let writer = spawn_local(async move { copy(file, sender).await });
        assert_eq!(receiver.read_to_end().await?, b"warp\nweft\n");
        assert_eq!(writer.await.unwrap()?, 10);
        Ok(())
    });
}

#[test]
fn a_name_is_connected_to_by_the_address_that_answers() {
    run(async {
        // The name has several addresses. Only its IPv4 address has a listener.
        let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap())?;
        let port = listener.local_addr().port();
        let greeter = spawn(async move {
            let (stream, _) = listener.accept().await?;
            stream.write_all(b"hello").await
        });
        let stream = connect(&format!("localhost:{port}")).await?;
        assert_eq!(stream.read_to_end().await?, b"hello");
        greeter.await.unwrap()?;
        drop(stream);

        let refused = connect(&format!("localhost:{port}")).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        assert!(refused.to_string().starts_with(&format!("connect to localhost:{port}: ")), "{refused}");
        Ok(())
    });
}

#[test]
fn every_way_to_name_an_address_is_listened_at_and_connected_to() {
    run(async {
        let v4 = IpAddr::from([127, 0, 0, 1]);
        let free = SocketAddr::from((v4, 0));
        let foreign = SocketAddr::from(([192, 0, 2, 1], 0));
        // Of several addresses the first that the host has is taken.
        let listeners = [
            bind("localhost:0").await?,
            bind(("localhost", 0)).await?,
            bind(("localhost".to_string(), 0)).await?,
            bind((v4, 0)).await?,
            bind(free).await?,
            bind([foreign, free].as_slice()).await?,
        ];
        for listener in &listeners {
            let address = listener.local_addr();
            assert!(address.ip().is_loopback() && address.port() != 0, "{address}");
            let to = [
                connect(address).await?,
                connect((address.ip(), address.port())).await?,
                connect(&address.to_string()).await?,
                connect((address.ip().to_string(), address.port())).await?,
                connect([address].as_slice()).await?,
            ];
            for stream in to {
                let (_, peer) = listener.accept().await?;
                assert_eq!(peer, stream.local_addr()?);
            }
        }
        let none = bind([foreign].as_slice()).await.unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::AddrNotAvailable);
        assert!(none.to_string().starts_with("bind one of [192.0.2.1:0]: bind 192.0.2.1:0: "), "{none}");
        assert_eq!(bind([].as_slice()).await.unwrap_err().kind(), io::ErrorKind::NotFound);
        let again = bind(listeners[0].local_addr()).await.unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AddrInUse);
        assert!(
            again.to_string().starts_with("bind 127.0.0.1:") || again.to_string().starts_with("bind [::1]:")
        );
        let portless = bind("localhost").await.unwrap_err();
        assert!(portless.to_string().starts_with("look up localhost: "), "{portless}");
        Ok(())
    });
}

#[test]
fn what_is_an_address_is_not_looked_up() {
    let addresses = ["127.0.0.1:0", "[::1]:0"];
    for address in addresses {
        // The answer is there at the first poll: no OS thread was asked.
        let mut found = std::pin::pin!(resolve(address));
        let polled = found.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let Poll::Ready(Ok(found)) = polled else { panic!("{polled:?}") };
        assert_eq!(found, [address.parse().unwrap()]);
        let mut bound = std::pin::pin!(bind(address));
        assert!(bound.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    }
}
