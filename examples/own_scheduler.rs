//! Two schedulers of the program's own, in safe code. One is first in, first out. The other has
//! priorities, which threads set by a system call that the library does not know. Both run the web
//! server's own connection threads, beside threads that never wait.

use selvedge::http::{Config, DocumentRoot, Site, Stop};
use selvedge::net::TcpListener;
use selvedge::scope::select;
use selvedge::{
    Cpu, EventLoop, Events, JoinError, JoinHandle, RunError, Syscall, Thread, Trace, blocking, call, fork,
    fork_local, throw, yield_now,
};
use std::collections::{HashMap, VecDeque};
use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// First in, first out.
fn fifo(cpu: &mut Cpu, events: &mut impl Events, main: &JoinHandle<()>) -> Result<(), RunError> {
    let mut ready = VecDeque::new();
    while !main.is_finished() {
        cpu.poll(events, ready.is_empty())?;
        ready.extend(std::iter::from_fn(|| cpu.woken()));
        for thread in std::mem::take(&mut ready) {
            match thread.step(cpu) {
                Trace::Yield(thread) => ready.push_back(thread),
                Trace::Fork { child, parent } => ready.extend([child, parent]),
                Trace::Blocked | Trace::Ret => {}
                // It ends that thread, and no other.
                Trace::Panic(panic) => panic.report(),
                request => events.submit(cpu, request)?,
            }
        }
    }
    Ok(())
}

/// The system call by which a thread sets its priority: 0 runs first; without it, a thread has 1.
struct SetLevel(usize);

impl Syscall for SetLevel {
    type Reply = ();
}

/// Strict priorities.
fn priorities(cpu: &mut Cpu, events: &mut impl Events, main: &JoinHandle<()>) -> Result<(), RunError> {
    let mut levels: HashMap<u32, usize> = HashMap::new();
    let mut ready: [VecDeque<Thread>; 3] = Default::default();
    while !main.is_finished() {
        cpu.poll(events, ready.iter().all(VecDeque::is_empty))?;
        while let Some(thread) = cpu.woken() {
            ready[*levels.get(&thread.id()).unwrap_or(&1)].push_back(thread);
        }
        let Some(thread) = ready.iter_mut().find_map(VecDeque::pop_front) else { continue };
        let id = thread.id();
        let node = thread.step(cpu);
        // This answers a call that the thread makes alone, and one within a `select`.
        match cpu.answer(node, |SetLevel(level)| _ = levels.insert(id, level)) {
            Trace::Yield(thread) => cpu.make_ready(thread),
            Trace::Fork { child, parent } => [child, parent].into_iter().for_each(|t| cpu.make_ready(t)),
            Trace::Blocked => {}
            Trace::Ret => drop(levels.remove(&id)),
            Trace::Panic(panic) => {
                levels.remove(&id);
                panic.report();
            }
            request => events.submit(cpu, request)?,
        }
    }
    Ok(())
}

/// A program of a web server, its clients, and threads that keep the scheduler busy.
async fn program(has_levels: bool) {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
    let address = listener.local_addr();
    let tree = DocumentRoot::new(env!("CARGO_MANIFEST_DIR")).expect("the examples are there");
    let (site, stop) = (Site::new(tree, Config::default(), None), Stop::new());
    for _ in 0..100 {
        fork(async move {
            if has_levels {
                select((call(SetLevel(2)), std::future::pending::<()>())).await;
            }
            loop {
                std::hint::black_box((0..2_000).sum::<u32>());
                yield_now().await;
            }
        })
        .await;
    }
    fork_local(async move { site.serve_tcp(listener, &stop).await.expect("it goes on accepting") }).await;
    let took = blocking(move || download(address)).await.expect("the download does not panic");
    println!("100 requests took {took:?}");
}

/// An ordinary client: blocking calls, on an OS thread of its own.
fn download(address: SocketAddr) -> Duration {
    let start = Instant::now();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(address).expect("the server listens");
        stream
            .write_all(b"GET /own_scheduler.rs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .expect("the server reads");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("the server answers");
        assert!(reply.starts_with("HTTP/1.1 200 OK\r\n"), "{reply}");
        assert!(reply.ends_with(include_str!("own_scheduler.rs")));
    }
    start.elapsed()
}

type Scheduler = fn(&mut Cpu, &mut EventLoop, &JoinHandle<()>) -> Result<(), RunError>;

/// Runs a main thread under a scheduler. A panic of main waits in its handle, and is the error.
fn run(scheduler: Scheduler, main: impl Future<Output = ()> + 'static) -> Result<(), Box<dyn Error>> {
    let (mut cpu, mut events) = (Cpu::new()?, EventLoop::new()?);
    let mut main = cpu.spawn_local(main)?;
    scheduler(&mut cpu, &mut events, &main)?;
    Ok(main.try_join().expect("the scheduler ends with main")?)
}

fn main() -> Result<(), Box<dyn Error>> {
    print!("first in, first out: ");
    run(fifo, program(false))?;
    print!("with priorities:     ");
    run(priorities, program(true))?;

    let schedulers: [Scheduler; 2] = [fifo, priorities];
    for scheduler in schedulers {
        let torn = run(scheduler, async { throw(io::Error::other("a torn thread")) });
        let error = torn.expect_err("main has failed").downcast::<JoinError>()?;
        assert!(matches!(*error, JoinError::Panicked(_)), "{error}");
    }
    Ok(())
}
