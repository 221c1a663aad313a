//! What is a deadlock and what is none, as fresh processes see it. Each program runs in processes
//! of its own, because the first moments of a process are what is hard, and because libtest's own
//! OS thread would keep every deadlock from being told.
//!
//! `SELVEDGE_RUNS` is how many processes run each program.

use selvedge::sync::{Mutex, wait_blocking, wait_blocking_for};
use selvedge::{EventLoop, Handle, MVar, block_on, blocking, fs, pipe, time};
use std::future::Future;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Runs a program under a scheduler; the error is the message.
type Start = fn(Program) -> Result<(), String>;
type Program = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

fn run(program: Program) -> Result<(), String> {
    selvedge::run(program).map_err(|failure| failure.to_string())
}

fn run_local(program: Program) -> Result<(), String> {
    selvedge::run_local(program).map_err(|error| error.to_string())
}

fn per_core(program: Program) -> Result<(), String> {
    let program = std::sync::Mutex::new(Some(program));
    let first = || program.lock().unwrap().take();
    let main = |_| {
        let program = first();
        async move {
            if let Some(program) = program {
                program.await;
            }
        }
    };
    selvedge::per_core(2, main).map(drop).map_err(|failure| failure.to_string())
}

fn priority(program: Program) -> Result<(), String> {
    selvedge::priority(&mut EventLoop::new().unwrap(), program).map_err(|error| error.to_string())
}

const SCHEDULERS: [(&str, Start); 4] =
    [("run", run), ("run_local", run_local), ("per_core", per_core), ("priority", priority)];

/// Waits for an OS thread of the blocking pool again and again.
async fn pool() {
    for _ in 0..10 {
        blocking(|| ()).await.unwrap();
    }
}

/// The same, for calls that the library makes there.
async fn directories() {
    for _ in 0..10 {
        fs::read_dir("/").await.unwrap();
    }
}

/// Two OS threads of the pool, one of which is mostly idle.
async fn two_in_the_pool() {
    let other = selvedge::spawn(pool());
    pool().await;
    other.await.unwrap();
}

/// OS threads of which nothing is known, that give something and end at once.
async fn ending() {
    for n in 0..50 {
        let given = Arc::new(MVar::empty());
        let gives = given.clone();
        std::thread::spawn(move || gives.put_blocking(n));
        assert_eq!(given.take().await, n);
    }
}

/// An OS thread outside waits for a pipe, and then gives something.
async fn outside() {
    // its event loop has begun, and idles
    block_on_elsewhere(time::sleep(Duration::from_millis(1)));
    let (reader, mut writer) = std::io::pipe().unwrap();
    let reader = pipe::Receiver::from_fd(reader.into()).unwrap();
    let given = Arc::new(MVar::empty());
    let gives = given.clone();
    let waits = async move {
        let mut byte = [0];
        reader.read_exact(&mut byte).await.unwrap();
        gives.put(byte[0]).await;
    };
    std::thread::spawn(move || block_on(waits));
    // The writer is another process, so that here all wait.
    let script = "read go; sleep 0.02; echo k";
    let mut child = Command::new("sh")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(writer.try_clone().unwrap())
        .spawn()
        .unwrap();
    writer.flush().unwrap();
    drop(writer);
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert_eq!(given.take().await, b'k');
    blocking(move || child.wait()).await.unwrap().unwrap();
}

fn block_on_elsewhere(future: impl Future<Output = ()> + Send + 'static) {
    std::thread::spawn(|| block_on(future)).join().unwrap();
}

/// An OS thread outside has threads created here, one after another.
async fn from_elsewhere() {
    let (here, done) = (Handle::current().unwrap(), Arc::new(MVar::empty()));
    let signal = done.clone();
    std::thread::spawn(move || {
        for n in 0..100 {
            assert_eq!(block_on(here.spawn(async move { n })).unwrap(), n);
        }
        block_on(signal.put(()));
    });
    done.take().await;
}

/// An OS thread outside gives and takes with the operations that block it.
async fn blocking_operations() {
    let (there, back) = (Arc::new(MVar::empty()), Arc::new(MVar::empty()));
    let (takes, gives) = (there.clone(), back.clone());
    std::thread::spawn(move || (0..100).for_each(|_| gives.put_blocking(takes.take_blocking() + 1)));
    for n in 0..100 {
        there.put(n).await;
        assert_eq!(back.take().await, n + 1);
    }
}

/// An OS thread outside blocks for a moment only.
async fn blocking_for_a_time() {
    let given = Arc::new(MVar::empty());
    let (gives, nothing) = (given.clone(), MVar::<u8>::empty());
    std::thread::spawn(move || {
        let taken = wait_blocking_for(Duration::from_millis(20), nothing.take());
        gives.put_blocking(taken.is_none());
    });
    assert!(given.take().await);
}

/// Nothing will ever come.
async fn empty() {
    MVar::<()>::empty().take().await;
}

/// Nor here, when the pool's OS threads have all become idle.
async fn empty_after_pool() {
    two_in_the_pool().await;
    empty().await;
}

/// The main thread and an OS thread wait for each other.
async fn empty_with_outside() {
    block_on_elsewhere(time::sleep(Duration::from_millis(1)));
    let nothing = Arc::new(MVar::<()>::empty());
    let there = nothing.clone();
    std::thread::spawn(move || block_on(there.take()));
    nothing.take().await;
}

/// An OS thread waits for a lock that the main thread holds, and the main thread for that OS
/// thread.
async fn empty_with_a_blocking_lock() {
    let (mutex, over) = (Arc::new(Mutex::new(())), Arc::new(MVar::<()>::empty()));
    let _held = mutex.lock().await;
    let (locks, ends) = (mutex.clone(), over.clone());
    std::thread::spawn(move || {
        drop(locks.lock_blocking());
        ends.put_blocking(());
    });
    over.take().await;
}

/// An OS thread waits for itself, and the main thread for that OS thread.
async fn empty_with_a_lock_locked_twice() {
    let over = Arc::new(MVar::<()>::empty());
    let ends = over.clone();
    std::thread::spawn(move || {
        let mutex = Mutex::new(());
        let _held = mutex.lock_blocking();
        drop(wait_blocking(mutex.lock()));
        ends.put_blocking(());
    });
    over.take().await;
}

/// The last to become idle is an OS thread of the pool.
async fn empty_with_a_late_pool() {
    let mut job = std::pin::pin!(blocking(|| std::thread::sleep(Duration::from_millis(20))));
    let begun = std::future::poll_fn(|cx| std::task::Poll::Ready(job.as_mut().poll(cx).is_pending()));
    assert!(begun.await);
    empty().await;
}

struct Case {
    name: &'static str,
    program: fn() -> Program,
    is_deadlock: bool,
}

fn cases() -> Vec<Case> {
    macro_rules! cases {
        ($is_deadlock:expr, $($name:ident)*) => {
            [$(Case { name: stringify!($name), program: || Box::pin($name()), is_deadlock: $is_deadlock }),*]
        };
    }
    let mut cases = Vec::from(cases!(false, pool directories two_in_the_pool ending outside from_elsewhere));
    cases.extend(cases!(false, blocking_operations blocking_for_a_time));
    cases.extend(cases!(true, empty empty_after_pool empty_with_outside empty_with_a_late_pool));
    cases.extend(cases!(true, empty_with_a_blocking_lock empty_with_a_lock_locked_twice));
    cases
}

fn main() {
    if let [_, scheduler, case] = &std::env::args().collect::<Vec<_>>()[..] {
        let (_, start) = SCHEDULERS.into_iter().find(|(name, _)| name == scheduler).unwrap();
        let case = cases().into_iter().find(|one| one.name == case).unwrap();
        let ended = start((case.program)());
        match (ended, case.is_deadlock) {
            (Ok(()), false) => {}
            (Err(message), true) if message.contains("deadlock") => {}
            (ended, _) => panic!("{ended:?}"),
        }
        return;
    }
    let runs = std::env::var("SELVEDGE_RUNS").map_or(10, |runs| runs.parse().expect("a number"));
    let me = std::env::current_exe().unwrap();
    for case in cases() {
        for (scheduler, _) in SCHEDULERS {
            for _ in 0..runs {
                let mut process = Command::new(&me).args([scheduler, case.name]).spawn().unwrap();
                let since = Instant::now();
                let status = loop {
                    if let Some(status) = process.try_wait().unwrap() {
                        break status;
                    }
                    if since.elapsed() > Duration::from_secs(20) {
                        process.kill().unwrap();
                        panic!("{} under {scheduler} does not end", case.name);
                    }
                    std::thread::sleep(Duration::from_micros(200));
                };
                assert!(status.success(), "{} under {scheduler}: {status}", case.name);
            }
        }
        println!("test {} ... ok", case.name);
    }
}
