//! Everything at once, for a while: threads come, go, are cancelled and moved, and wait for
//! everything that threads can wait for. Memory and descriptors stay constant, and every answer is
//! checked.
//!
//! `cargo xtask stress SECONDS` runs it on several workers; the ordinary tests leave that out. They
//! run the same threads in simulated stages, for some rounds.

use selvedge::direct::{direct, wait};
use selvedge::net::{TcpListener, TcpStream};
use selvedge::sim::{Conditions, Simulation, World};
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

/// When the actors end.
#[derive(Clone, Copy)]
enum End {
    At(Instant),
    AfterRounds(u64),
}

/// What every kind of actor shares.
struct Stage {
    end: End,
    /// How often each kind has come to an end and begun again, by its number.
    rounds: [AtomicU64; KINDS.len()],
    shared: Mutex<u64>,
    few: Semaphore,
    echo: SocketAddr,
}

const KINDS: [&str; 11] = [
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
    "in direct style",
];

/// The last kind switches stacks, which the thread sanitizer does not know.
fn kinds() -> usize {
    KINDS.len() - usize::from(std::env::var_os("STRESS_WITHOUT_STACKS").is_some())
}

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
async fn cancelled(stage: &Arc<Stage>, n: u64) {
    let never = Arc::new(MVar::<u64>::empty());
    let victim = {
        let (stage, never) = (stage.clone(), never.clone());
        spawn(async move {
            match n % 6 {
                0 => drop(never.take().await),
                1 => sleep(Duration::from_secs(600)).await,
                2 => {
                    let stream = TcpStream::connect(stage.echo).await.unwrap();
                    let _ = stream.read(&mut [0; 8]).await;
                }
                3 => loop {
                    yield_now().await;
                },
                4 => {
                    let _permit = stage.few.acquire().await;
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

async fn locked(stage: &Stage) {
    for _ in 0..20 {
        let _permit = stage.few.acquire().await;
        let mut shared = stage.shared.lock().await;
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

async fn echoed(stage: &Stage, n: u64) {
    let stream = TcpStream::connect(stage.echo).await.unwrap();
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

/// Threads in direct style that ask each other, and one that is cancelled while it waits.
async fn in_direct_style(n: u64) {
    let (asked, answered) = (Arc::new(MVar::empty()), Arc::new(MVar::empty()));
    let (questions, answers) = (asked.clone(), answered.clone());
    let server = spawn(async move {
        let server = spawn_local(direct(move || {
            for _ in 0..10 {
                let question: u64 = wait(questions.take());
                wait(sleep(Duration::from_micros(50)));
                wait(answers.put(question + 1));
            }
        }));
        server.await.unwrap();
    });
    let client = spawn_local(direct(move || {
        for question in 0..10 {
            wait(asked.put(question));
            assert_eq!(wait(answered.take()), question + 1);
        }
    }));
    let victim = spawn_local(direct(move || match n % 3 {
        0 => wait(std::future::pending()),
        1 => wait(sleep(Duration::from_secs(600))),
        _ => loop {
            wait(yield_now());
        },
    }));
    for _ in 0..n % 4 {
        yield_now().await;
    }
    victim.cancel();
    assert!(matches!(victim.await, Err(JoinError::Cancelled)));
    client.await.unwrap();
    server.await.unwrap();
}

/// Over and over until the end, counted.
async fn actor(stage: Arc<Stage>, kind: usize, first: u64) {
    let mut n = first;
    let mut rounds = 0;
    let goes_on = |rounds| match stage.end {
        End::At(end) => Instant::now() < end,
        End::AfterRounds(end) => rounds < end,
    };
    while goes_on(rounds) {
        match kind {
            0 => assert_eq!(tree(4).await, 81),
            1 => ring().await,
            2 => cancelled(&stage, n).await,
            3 => queue().await,
            4 => locked(&stage).await,
            5 => timed_out(n).await,
            6 => echoed(&stage, n).await,
            7 => assert_eq!(blocking(move || n * 2).await.unwrap(), n * 2),
            8 => promised().await,
            10 => in_direct_style(n).await,
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
        stage.rounds[kind].fetch_add(1, Relaxed);
        rounds += 1;
        n += 17;
        yield_now().await;
    }
}

/// Runs four actors of each kind until the end. How many rounds each kind has made.
async fn everything(end: End) -> [u64; KINDS.len()] {
    let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let stage = Arc::new(Stage {
        end,
        rounds: Default::default(),
        shared: Mutex::new(0),
        few: Semaphore::new(5),
        echo: listener.local_addr(),
    });
    let server = spawn(serve_echo(listener));
    let mut actors = Vec::new();
    for kind in 0..kinds() {
        for n in 0..4 {
            actors.push(spawn(actor(stage.clone(), kind, n)));
        }
    }
    for actor in actors {
        actor.await.unwrap();
    }
    server.cancel();
    let _ = server.await;
    let locked = stage.rounds[4].load(Relaxed);
    assert_eq!(*stage.shared.lock().await, 20 * locked, "an increment was lost");
    stage.rounds.each_ref().map(|rounds| rounds.load(Relaxed))
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
    let rounds = scheduler.run(|_| EventLoop::new(), everything(End::At(end))).unwrap();
    let (samples, from_outside) = outside.join().unwrap();
    for (kind, rounds) in KINDS.iter().zip(rounds).take(kinds()) {
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

#[test]
fn everything_in_simulated_worlds_is_the_same_run_with_the_same_seed() {
    for seed in 0..4 {
        let run = || {
            let order = if seed % 2 == 0 { Simulation::new(seed) } else { Simulation::pct(seed, 3, 20_000) };
            let world = World::new(seed).conditions(Conditions::good()).order(order);
            let ended = world.run(everything(End::AfterRounds(3))).unwrap();
            assert_eq!(ended.output[..kinds()], [12; KINDS.len()][..kinds()]);
            ended
        };
        let (one, other) = (run(), run());
        assert_eq!((one.digest, one.steps), (other.digest, other.steps), "of seed {seed}");
        assert_eq!(one.descriptors, 0, "descriptors leak");
    }
}
