//! The simulated kernel: unchanged programs for the ordinary runtime run under it, and the same
//! seed gives the same run.

use selvedge_core::{Time, sleep, spawn_local, yield_now};
use selvedge_io::net::{
    ListenOptions, TcpListener, TcpStream, UnixListener, UnixStream, bind, connect, resolve,
};
use selvedge_io::time::timeout;
use selvedge_io::{blocking, fs, sys};
use selvedge_sim::{Conditions, Disk, World, simulate};
use selvedge_sim::{Simulation, Why, each_seed};
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

fn address() -> SocketAddr {
    "127.0.0.1:7".parse().unwrap()
}

/// Echoes until the peer closes its direction.
async fn echo(stream: TcpStream) -> io::Result<()> {
    let mut buffer = vec![0; 3000];
    loop {
        match stream.read(&mut buffer).await? {
            0 => return stream.shutdown(Shutdown::Write),
            read => stream.write_all(&buffer[..read]).await?,
        }
    }
}

async fn echo_server(listener: TcpListener) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        drop(spawn_local(echo(stream)));
    }
}

fn message(client: usize) -> Vec<u8> {
    (0..client * 3001).map(|i| (i * 7 + client) as u8).collect()
}

/// Sends a message while it reads the echo. The echo must be a prefix of the message, and all of it
/// if there was no error.
async fn client(number: usize) -> io::Result<()> {
    let stream = std::rc::Rc::new(TcpStream::connect(address()).await?);
    let sent = message(number);
    let (writer, bytes) = (stream.clone(), sent.clone());
    let writer = spawn_local(async move {
        writer.write_all(&bytes).await?;
        writer.shutdown(Shutdown::Write)
    });
    let mut echoed = Vec::with_capacity(1 << 16);
    let end = loop {
        match stream.read_to_spare(&mut echoed).await {
            Ok(0) => break writer.await.unwrap(),
            Ok(_) => {}
            Err(error) => break Err(error),
        }
    };
    assert!(sent.starts_with(&echoed), "the echo is something else than was sent");
    assert!(end.is_err() || sent.len() == echoed.len(), "the echo is cut off without an error");
    end
}

/// The number of clients that were served.
async fn echoes() -> usize {
    let server = spawn_local(echo_server(TcpListener::bind(address()).unwrap()));
    let clients: Vec<_> = (0..10).map(|number| spawn_local(client(number))).collect();
    let mut served = 0;
    for client in clients {
        served += usize::from(client.await.unwrap().is_ok());
    }
    drop(server);
    served
}

#[test]
fn in_good_conditions_all_are_served() {
    simulate(0..100, || async { assert_eq!(echoes().await, 10) });
}

#[test]
fn in_bad_conditions_no_client_is_served_something_wrong() {
    let mut served = 0;
    each_seed(0..300, |seed| {
        let ended = World::new(seed).conditions(Conditions::bad()).run(echoes()).unwrap();
        assert_eq!(ended.descriptors, 0);
        served += ended.output;
    });
    assert!((1500..2950).contains(&served), "{served} of 3000 are served");
}

#[test]
fn the_same_seed_is_the_same_run() {
    let run = |seed| {
        let world = World::new(seed).conditions(Conditions::bad());
        let ended = world.run(echoes()).unwrap();
        (ended.digest, ended.steps, ended.time, ended.output)
    };
    let runs: Vec<_> = (0..50).map(run).collect();
    for (seed, first) in runs.iter().enumerate() {
        assert_eq!(&run(seed as u64), first);
    }
    let digests: BTreeSet<_> = runs.iter().map(|run| run.0).collect();
    assert_eq!(digests.len(), 50);
    let by_priority = World::new(0).order(Simulation::pct(0, 3, 1000)).run(echoes()).unwrap();
    assert_eq!(by_priority.output, 10);
}

#[test]
fn a_half_closed_connection_carries_the_other_half() {
    simulate(0..100, || async {
        let listener = TcpListener::bind(address()).unwrap();
        let server = spawn_local(async move {
            let (stream, peer) = listener.accept().await.unwrap();
            assert_eq!(stream.peer_addr().unwrap(), peer);
            let mut all = Vec::with_capacity(100);
            while stream.read_to_spare(&mut all).await.unwrap() > 0 {}
            sleep(Duration::from_secs(3600)).await;
            stream.write_all(&all).await.unwrap();
        });
        let stream = TcpStream::connect(address()).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), address());
        stream.write_all(b"half").await.unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(stream.write(b"more").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!((&answer, stream.read(&mut [0; 1]).await.unwrap()), (b"half", 0));
        server.await.unwrap();
    });
}

#[test]
fn closing_with_something_unread_resets() {
    simulate(0..100, || async {
        let listener = TcpListener::bind(address()).unwrap();
        let server = spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            stream.readable().await.unwrap();
        });
        let stream = TcpStream::connect(address()).await.unwrap();
        stream.write_all(b"unheard").await.unwrap();
        let error = stream.read(&mut [0; 1]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        assert_eq!(stream.write(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
        server.await.unwrap();
    });
}

#[test]
fn a_slow_reader_holds_the_writer_up_and_deadlines_hold() {
    simulate(0..100, || async {
        let listener = TcpListener::bind(address()).unwrap();
        let client = TcpStream::connect(address()).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        let start = Time::now();
        client.set_write_deadline(Some(start + Duration::from_secs(5)));
        let error = client.write_all(&vec![0; 1 << 20]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        let waited = Time::now().since(start);
        assert!((Duration::from_secs(5)..Duration::from_secs(6)).contains(&waited), "{waited:?}");
        let quiet = timeout(Duration::from_secs(1), client.read(&mut [0; 1])).await;
        assert!(quiet.is_err());
        drop(server);
    });
}

#[test]
fn addresses_are_taken_shared_refused_and_given_back() {
    simulate(0..20, || async {
        assert_eq!(TcpStream::connect(address()).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        let first = TcpListener::bind(address()).unwrap();
        assert_eq!(TcpListener::bind(address()).unwrap_err().kind(), ErrorKind::AddrInUse);
        drop(first);
        let shared = ListenOptions::new().reuse_port(true);
        let both = [shared.bind(address()).unwrap(), shared.bind(address()).unwrap()];
        assert_eq!(TcpListener::bind(address()).unwrap_err().kind(), ErrorKind::AddrInUse);
        let chosen = TcpListener::bind("[::]:0".parse().unwrap()).unwrap();
        let port = chosen.local_addr().port();
        assert_ne!(port, 0);
        let found = resolve(&format!("selvedge.example:{port}")).await.unwrap();
        let _stream = TcpStream::connect(found[0]).await.unwrap();
        chosen.accept().await.unwrap();
        drop(both);
        assert!(sys::is_simulated());
    });
    assert!(!sys::is_simulated());
}

#[test]
fn unix_sockets_too() {
    simulate(0..50, || async {
        let listener = UnixListener::bind("/tmp/nowhere").unwrap();
        let server = spawn_local(async move {
            let stream = listener.accept().await.unwrap();
            let mut word = [0; 4];
            stream.read_exact(&mut word).await.unwrap();
            stream.write_all(&word).await.unwrap();
        });
        let stream = UnixStream::connect("/tmp/nowhere").await.unwrap();
        stream.write_all(b"word").await.unwrap();
        let mut word = [0; 4];
        stream.read_exact(&mut word).await.unwrap();
        assert_eq!(&word, b"word");
        server.await.unwrap();
        assert!(UnixStream::connect("/tmp/nowhere").await.is_err(), "the listener is gone");
        let (one, other) = UnixStream::pair().unwrap();
        one.write_all(b"x").await.unwrap();
        drop(one);
        let mut all = Vec::with_capacity(9);
        while other.read_to_spare(&mut all).await.unwrap() > 0 {}
        assert_eq!(all, b"x");
    });
}

#[test]
fn the_disk_is_not_to_be_relied_on() {
    let path = "/a/file";
    let content: Vec<u8> = (0..100_000).map(|i| i as u8).collect();
    let mut disk = Disk::new();
    disk.write(path, &content).unwrap();
    let mut errors = 0;
    each_seed(0..300, |seed| {
        let content = content.clone();
        let main = async move {
            let start = Time::now();
            let file = fs::File::open(path).await?;
            let mut read = Vec::new();
            while read.len() < content.len() {
                let (more, buffer) = file.read_at(vec![0; 50_000], read.len() as u64).await;
                read.extend_from_slice(&buffer[..more?]);
            }
            assert!(read == content);
            assert!(Time::now() > start);
            io::Result::Ok(())
        };
        let world = World::new(seed).conditions(Conditions::bad()).disk(disk.clone());
        let ended = world.run(main).unwrap();
        errors += usize::from(ended.output.is_err());
    });
    assert!((3..100).contains(&errors), "{errors}");
}

#[test]
fn blocking_calls_are_made_in_place_and_take_virtual_time() {
    simulate(0..50, || async {
        let here = std::thread::current().id();
        assert_eq!(blocking(move || std::thread::current().id()).await.unwrap(), here);
        assert!(blocking(|| panic!("in the pool")).await.unwrap_err().is_panic());
    });
}

#[test]
fn real_files_are_sent_over_simulated_sockets() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let content: Vec<u8> = (0..200_000u32).map(|i| (i / 3) as u8).collect();
    std::fs::write(&path, &content).unwrap();
    simulate(0..50, || {
        let (path, content) = (path.clone(), content.clone());
        async move {
            let listener = TcpListener::bind(address()).unwrap();
            let server = spawn_local(async move {
                let file = std::fs::File::open(path).unwrap();
                let (stream, _) = listener.accept().await.unwrap();
                stream.send_file(&file, 1000, 190_000).await.unwrap();
            });
            let stream = TcpStream::connect(address()).await.unwrap();
            let mut all = Vec::with_capacity(200_000);
            while stream.read_to_spare(&mut all).await.unwrap() > 0 {}
            assert!(all == content[1000..191_000]);
            server.await.unwrap();
        }
    });
}

#[test]
fn a_server_without_clients_is_a_deadlock() {
    let failed = World::new(4).run(echo_server_alone()).unwrap_err();
    assert!(matches!(failed.why(), Why::Deadlock(_)), "{failed}");
    assert!(failed.to_string().contains("SELVEDGE_SEED=4"), "{failed}");
}

async fn echo_server_alone() {
    echo_server(TcpListener::bind(address()).unwrap()).await;
}

#[test]
fn descriptors_that_run_out_come_back() {
    let conditions = Conditions { descriptors_max: 12, ..Conditions::good() };
    each_seed(0..50, |seed| {
        let main = async {
            let listener = TcpListener::bind(address()).unwrap();
            let _server = spawn_local(echo_server(listener));
            let mut served = 0;
            for round in 0..30 {
                let clients: Vec<_> = (0..4).map(|_| spawn_local(client(1))).collect();
                for client in clients {
                    served += usize::from(client.await.unwrap().is_ok());
                }
                assert!(round < 5 || served > 0);
            }
            served
        };
        let ended = World::new(seed).conditions(conditions.clone()).run(main).unwrap();
        assert_eq!(ended.descriptors, 0);
    });
}

#[test]
fn what_outlives_its_world_is_harmless_in_the_next() {
    let old = World::new(0).run(async { TcpListener::bind(address()).unwrap() }).unwrap();
    assert_eq!(old.descriptors, 1);
    let next = World::new(0).run(async {
        let new = TcpListener::bind(address()).unwrap();
        drop(old);
        TcpStream::connect(address()).await.unwrap();
        new.accept().await.unwrap();
    });
    next.unwrap();
}

/// A reader that is dropped after its data has come, and before its thread has run, must not take
/// the news of the data away.
#[test]
fn a_read_that_loses_a_race_leaves_the_stream_as_it_was() {
    use futures::future::{Either, select};
    use std::pin::pin;
    simulate(0..300, || async {
        let listener = TcpListener::bind(address()).unwrap();
        let client = TcpStream::connect(address()).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        let writer = spawn_local(async move {
            server.write_all(b"word").await.unwrap();
            server
        });
        let mut all = Vec::with_capacity(100);
        let hurry = Time::now() + Duration::from_secs(1);
        while all.len() < 4 {
            assert!(Time::now() < hurry, "the word came within milliseconds");
            let rival = spawn_local(async {
                for _ in 0..50 {
                    yield_now().await;
                }
            });
            // The rival is polled first.
            match select(rival, pin!(client.read_to_spare(&mut all))).await {
                Either::Left(_) => {}
                Either::Right((read, _)) => assert!(read.unwrap() > 0),
            }
        }
        assert_eq!(all, b"word");
        drop(writer.await);
    });
}

#[test]
fn an_address_stands_for_itself_and_each_name_for_the_local_host() {
    simulate(0..10, || async {
        assert_eq!(resolve("10.1.1.1:80").await.unwrap(), ["10.1.1.1:80".parse().unwrap()]);
        let (here, there) = (bind("a.name:80").await.unwrap(), bind("10.1.1.1:80").await.unwrap());
        assert_eq!(here.local_addr(), "127.0.0.1:80".parse().unwrap());
        assert_eq!(there.local_addr(), "10.1.1.1:80".parse().unwrap());
        for (listener, name) in [(here, ("another.name", 80)), (there, ("10.1.1.1", 80))] {
            let client = spawn_local(async move { connect(name).await?.write_all(b"hello").await });
            let (stream, _) = listener.accept().await.unwrap();
            assert_eq!(stream.read_to_end().await.unwrap(), b"hello");
            client.await.unwrap().unwrap();
        }
    });
}
