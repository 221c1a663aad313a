//! Everything at once, for a while: threads that come, go, are cancelled and moved, and wait for everything there is. Memory and descriptors
//! stay constant, and every answer is checked.
//!
//! `cargo xtask stress SECONDS` runs it; the ordinary tests leave it out.

use selvedge::net::{TcpListener, TcpStream};
use selvedge::{
    EventLoop, JoinError, MVar, Mutex, WorkStealing, block_on, blocking, shield, sleep, spawn, spawn_local,
    time, yield_now,
};
use selvedge_sync::{BoundedFifo, Promise, Semaphore, broadcast};
use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// What every kind of actor shares.
struct World {
    end: Instant,
    /// How often each kind has come to an end and begun again, by its number.
    rounds: [AtomicU64; KINDS.len()],
    shared: Mutex<u64>,
    few: Semaphore,
    echo: SocketAddr,
}

const KINDS: [&str; 10] = [
    "a tree",
    "a ring",
    "cancelled",
    "a queue",
    "locked",
    "timed out",
    "echoed",
    "blocking",
    "promised",
    "local",
];

async fn tree(depth: u32) -> u64 {
    if depth == 0 {
        yield_now().await;
        return 1;
    }
    let children: Vec<_> = (0..3).map(|_| spawn(boxed_tree(depth - 1))).collect();
    let mut leaves = 0;
    for child in children {
        leaves += child.await.unwrap();
    }
    leaves
}

fn boxed_tree(depth: u32) -> std::pin::Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(tree(depth))
}

async fn ring() {
    let vars: Vec<_> = (0..10).map(|_| Arc::new(MVar::empty())).collect();
    let stations: Vec<_> = (0..10)
        .map(|n| {
            let (from, to) = (vars[n].clone(), vars[(n + 1) % 10].clone());
            spawn(async move {
                for _ in 0..20 {
                    let token: u64 = from.take().await;
                    to.put(token + 1).await;
                }
            })
        })
        .collect();
    vars[0].put(0).await;
    for station in stations {
        station.await.unwrap();
    }
    assert_eq!(vars[0].take().await, 200);
}

/// Threads that wait for all kinds of things, cancelled in the midst of it.
async fn cancelled(world: &Arc<World>, n: u64) {
    let never = Arc::new(MVar::<u64>::empty());
    let victim = {
        let (world, never) = (world.clone(), never.clone());
        spawn(async move {
            match n % 6 {
                0 => drop(never.take().await),
                1 => sleep(Duration::from_secs(600)).await,
                2 => {
                    let stream = TcpStream::connect(world.echo).await.unwrap();
                    let _ = stream.read(&mut [0; 8]).await;
                }
                3 => loop {
                    yield_now().await;
                },
                4 => {
                    let _permit = world.few.acquire().await;
                    never.take().await;
                }
                _ => {
                    shield(sleep(Duration::from_millis(1))).await;
                    spawn(async {}).await.unwrap();
                    std::future::pending().await
                }
            }
        })
    };
    for _ in 0..n % 4 {
        yield_now().await;
    }
    victim.cancel();
    assert!(matches!(victim.await, Err(JoinError::Cancelled)));
}

async fn queue() {
    let fifo = Arc::new(BoundedFifo::new(4));
    let takers: Vec<_> = (0..3)
        .map(|_| {
            let fifo = fifo.clone();
            spawn(async move {
                let mut sum = 0;
                while let Some(value) = fifo.take().await {
                    sum += value;
                }
                sum
            })
        })
        .collect();
    for value in 0..100u64 {
        fifo.put(value).await.unwrap();
    }
    fifo.close();
    let mut sum = 0;
    for taker in takers {
        sum += taker.await.unwrap();
    }
    assert_eq!(sum, 4950);
}

async fn locked(world: &World) {
    for _ in 0..20 {
        let _permit = world.few.acquire().await;
        let mut shared = world.shared.lock().await;
        let before = *shared;
        yield_now().await;
        *shared = before + 1;
    }
}

async fn timed_out(n: u64) {
    let never = MVar::<u64>::empty();
    let limit = Duration::from_millis(n % 3);
    assert!(time::timeout(limit, never.take()).await.is_err());
    assert_eq!(time::timeout(Duration::from_secs(60), async { 7 }).await.unwrap(), 7);
}

async fn echoed(world: &World, n: u64) {
    let stream = TcpStream::connect(world.echo).await.unwrap();
    let sent: Vec<u8> = (0..1 + n as usize * 977 % 9_000).map(|i| (i as u64 * n) as u8).collect();
    for _ in 0..3 {
        stream.write_all(&sent).await.unwrap();
        let mut got = vec![0; sent.len()];
        let mut at = 0;
        while at < got.len() {
            let more = stream.read(&mut got[at..]).await.unwrap();
            assert!(more > 0, "the echo ended early");
            at += more;
        }
        assert_eq!(got, sent);
    }
}

async fn serve_echo(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        drop(spawn(async move {
            let mut buffer = vec![0; 4096];
            while let Ok(n @ 1..) = stream.read(&mut buffer).await {
                if stream.write_all(&buffer[..n]).await.is_err() {
                    break;
                }
            }
        }));
    }
}

async fn promised() {
    let (fulfiller, promise) = Promise::new();
    let promise = Arc::new(promise);
    let (news, mut listener) = broadcast(8);
    let claims: Vec<_> = (0..3)
        .map(|_| {
            let promise = promise.clone();
            spawn(async move { *promise.claim().await.unwrap() })
        })
        .collect();
    let tells = spawn(async move { listener.listen().await.unwrap() });
    yield_now().await;
    fulfiller.fulfil(5u64);
    news.send(6u64);
    for claim in claims {
        assert_eq!(claim.await.unwrap(), 5);
    }
    assert_eq!(tells.await.unwrap(), 6);
}

/// Over and over until the end, counted.
async fn actor(world: Arc<World>, kind: usize, first: u64) {
    let mut n = first;
    while Instant::now() < world.end {
        match kind {
            0 => assert_eq!(tree(4).await, 81),
            1 => ring().await,
            2 => cancelled(&world, n).await,
            3 => queue().await,
            4 => locked(&world).await,
            5 => timed_out(n).await,
            6 => echoed(&world, n).await,
            7 => assert_eq!(blocking(move || n * 2).await.unwrap(), n * 2),
            8 => promised().await,
            _ => {
                let local = spawn_local(async {
                    let kept = std::rc::Rc::new(3);
                    yield_now().await;
                    *kept
                });
                // The handle may move, its thread may not.
                assert_eq!(local.await.unwrap(), 3);
            }
        }
        world.rounds[kind].fetch_add(1, Relaxed);
        n += 17;
        yield_now().await;
    }
}

/// Resident bytes and open descriptors of this process.
fn sample() -> (u64, usize) {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    (pages * 4096, fs::read_dir("/proc/self/fd").unwrap().count())
}

#[test]
#[ignore = "takes a minute or more"]
fn memory_and_descriptors_stay_constant_under_everything() {
    let seconds = std::env::var("STRESS_SECONDS").map_or(60, |text| text.parse().unwrap());
    let start = Instant::now();
    let end = start + Duration::from_secs(seconds);
    let scheduler = WorkStealing::new(3);
    let handle = scheduler.handle();

    let outside = std::thread::spawn(move || {
        let mut samples = Vec::new();
        let mut rounds = 0;
        while Instant::now() + Duration::from_millis(500) < end {
            for n in 0..50u64 {
                assert_eq!(block_on(handle.spawn(async move { n + 1 })).unwrap(), n + 1);
                rounds += 1;
            }
            samples.push(sample());
            std::thread::sleep(Duration::from_millis(100));
        }
        (samples, rounds)
    });
    let rounds = scheduler
        .run(|_| EventLoop::new(), async move {
            let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
            let world = Arc::new(World {
                end,
                rounds: Default::default(),
                shared: Mutex::new(0),
                few: Semaphore::new(5),
                echo: listener.local_addr(),
            });
            let server = spawn(serve_echo(listener));
            let mut actors = Vec::new();
            for kind in 0..KINDS.len() {
                for n in 0..4 {
                    actors.push(spawn(actor(world.clone(), kind, n)));
                }
            }
            for actor in actors {
                actor.await.unwrap();
            }
            server.cancel();
            let _ = server.await;
            assert_eq!(*world.shared.lock().await % 20, 0, "an increment was lost");
            let locked = world.rounds[4].load(Relaxed);
            assert_eq!(*world.shared.lock().await, 20 * locked, "an increment was lost");
            world.rounds.each_ref().map(|rounds| rounds.load(Relaxed))
        })
        .unwrap();
    let (samples, from_outside) = outside.join().unwrap();
    for (kind, rounds) in KINDS.iter().zip(rounds) {
        println!("{kind}: {rounds}");
        assert!(rounds > 0, "no round of {kind}");
    }
    println!("from outside: {from_outside}");
    let most = |part: &[(u64, usize)]| {
        let resident = part.iter().map(|sample| sample.0).max().unwrap();
        (resident, part.iter().map(|sample| sample.1).max().unwrap())
    };
    let (first, rest) = samples.split_at(samples.len() / 3);
    let (early, late) = (most(first), most(rest));
    println!("resident and descriptors at most: {early:?} in the first third, {late:?} later");
    assert!(late.0 < early.0 + early.0 / 4 + (2 << 20), "memory grows: {early:?}, {late:?}");
    assert!(late.1 <= early.1 + 16, "descriptors grow: {early:?}, {late:?}");
}
