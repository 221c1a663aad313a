//! tokio's sockets, timers, files and tasks in threads of ours, under each scheduler, and what
//! happens when futures panic or are dropped, and when the runtime stops.

use crate::common::{ms, run};
use selvedge_compat::tokio::{within, within_runtime};
use selvedge_core::{JoinError, spawn, spawn_local, yield_now};
use selvedge_io::EventLoop;
use selvedge_sched::{block_on, per_core, priority, round_robin, round_robin_over, work_stealing};
use std::future::{Future, pending};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::thread;
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::time::sleep;

/// A runtime that a test stops.
fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn in_context() -> bool {
    Handle::try_current().is_ok()
}

async fn echo(listener: TcpListener, clients: usize) -> io::Result<()> {
    let mut served = Vec::new();
    for _ in 0..clients {
        let (mut stream, _) = listener.accept().await?;
        served.push(spawn(within(async move {
            let (mut from, mut to) = stream.split();
            tokio::io::copy(&mut from, &mut to).await?;
            to.shutdown().await
        })));
    }
    for one in served {
        one.await.unwrap()?;
    }
    Ok(())
}

async fn talk(address: std::net::SocketAddr, text: String) -> io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    for piece in text.as_bytes().chunks(1_000) {
        stream.write_all(piece).await?;
        sleep(ms(1)).await;
    }
    stream.shutdown().await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    assert!(answer == text);
    Ok(())
}

/// What a program does with tokio: a timer, sockets, a file, a task, a call that blocks.
async fn program() {
    const CLIENTS: usize = 10;
    let start = Instant::now();
    within(async { sleep(ms(20)).await }).await;
    assert!(start.elapsed() >= ms(20));

    let listener = within(async { TcpListener::bind("127.0.0.1:0").await }).await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = spawn(within(echo(listener, CLIENTS)));
    let clients = (0..CLIENTS).map(|n| spawn(within(talk(address, n.to_string().repeat(5_000)))));
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap().unwrap();
    }
    server.await.unwrap().unwrap();

    let sum = within(async {
        let here = thread::current().id();
        assert!(tokio::fs::metadata("/proc/self/status").await.unwrap().is_file());
        let blocking = tokio::task::spawn_blocking(move || (thread::current().id() != here, 30));
        let task = tokio::spawn(async move { (thread::current().id() != here, 12) });
        let ((one_elsewhere, one), (other_elsewhere, other)) = (blocking.await.unwrap(), task.await.unwrap());
        assert!(one_elsewhere && other_elsewhere);
        one + other
    });
    assert_eq!(sum.await, 42);
    assert!(!in_context(), "it is left at the end of each poll");
}

#[test]
fn under_round_robin() {
    round_robin(program()).unwrap();
    round_robin_over(&mut EventLoop::new().unwrap(), program()).unwrap();
}

#[test]
fn under_work_stealing() {
    work_stealing(3, |_| EventLoop::new(), program()).unwrap();
}

#[test]
fn under_priorities() {
    priority(&mut EventLoop::new().unwrap(), program()).unwrap();
}

#[test]
fn under_a_scheduler_for_each_core() {
    per_core(2, |_| EventLoop::new(), |_| program()).unwrap();
}

/// It needs no thread of ours.
#[test]
fn under_foreign_executors() {
    let timer = || async {
        within(async { sleep(ms(5)).await }).await;
        in_context()
    };
    assert!(!block_on(timer()));
    assert!(!futures::executor::block_on(timer()));
}

/// Within a runtime already, no second one is started: the tasks run on the first.
#[test]
fn within_a_runtime_it_stays_there() {
    let own = runtime();
    let id = own.handle().id();
    let seen = own.block_on(async { within(async { Handle::current().id() }).await });
    assert_eq!(seen, id);
    let nested = within_runtime(own.handle(), async { within(async { Handle::current().id() }).await });
    assert_eq!(block_on(nested), id);
    let process = block_on(within(async { Handle::current().id() }));
    assert!(process != id);
    // The inner context ends with the inner future's poll.
    let there_and_back = within(async {
        assert_eq!(within_runtime(own.handle(), async { Handle::current().id() }).await, id);
        Handle::current().id()
    });
    assert_eq!(block_on(there_and_back), process);
}

/// Two threads of one OS thread, each within a runtime of its own, by turns.
#[test]
fn threads_that_take_turns_do_not_mix_their_runtimes() {
    let own = [runtime(), runtime()];
    let handles = own.each_ref().map(|runtime| runtime.handle().clone());
    run(async move {
        let threads = handles.map(|handle| {
            let id = handle.id();
            let thread = async move {
                for _ in 0..100 {
                    assert_eq!(Handle::current().id(), id);
                    yield_now().await;
                }
            };
            spawn_local(within_runtime(&handle, thread))
        });
        for _ in 0..100 {
            assert!(!in_context());
            yield_now().await;
        }
        for thread in threads {
            thread.await.unwrap();
        }
    });
}

/// Counts its drops within a context.
struct Inside(Arc<AtomicUsize>);

impl Drop for Inside {
    fn drop(&mut self) {
        if in_context() {
            // As a pool of connections does: its destructor starts a task.
            drop(tokio::spawn(async {}));
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn what_the_future_owns_is_dropped_in_the_context() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let count = || dropped.load(Ordering::Relaxed);
    let inside = || Inside(dropped.clone());
    // Never polled.
    let guard = inside();
    drop(within(async move { drop(guard) }));
    assert_eq!(count(), 1);
    // Polled, and dropped before its end.
    let guard = inside();
    {
        let mut future = pin!(within(async move {
            let _guard = guard;
            pending::<()>().await
        }));
        assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    assert_eq!(count(), 2);
    // To its end. The end of this future itself drops nothing.
    let guard = inside();
    let mut ends = pin!(within(std::future::poll_fn(move |_| {
        let _guard = &guard;
        std::task::Poll::Ready(())
    })));
    assert!(ends.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    assert_eq!(count(), 3);
    // A thread that is cancelled while it waits for tokio.
    let guard = inside();
    run(async move {
        let thread = spawn(within(async move {
            let _guard = guard;
            sleep(ms(3_600_000)).await;
        }));
        yield_now().await;
        thread.cancel();
        assert!(matches!(thread.await, Err(JoinError::Cancelled)));
    });
    assert_eq!(count(), 4);
    assert!(!in_context());
}

#[test]
fn a_panic_ends_its_thread_alone_and_leaves_the_context() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let guard = Inside(dropped.clone());
    run(async move {
        let thread = spawn(within(async move {
            let _guard = guard;
            sleep(ms(1)).await;
            std::panic::resume_unwind(Box::new("on purpose"))
        }));
        let ended: Result<(), JoinError> = thread.await;
        assert!(matches!(ended, Err(JoinError::Panicked(_))));
        assert!(!in_context());
        within(async { sleep(ms(1)).await }).await;
    });
    assert_eq!(dropped.load(Ordering::Relaxed), 1);
    // The panic of a destructor leaves the context as well.
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new("on purpose"))
        }
    }
    let panics = Panics;
    let future = within(async move { drop(panics) });
    assert!(catch_unwind(AssertUnwindSafe(|| drop(future))).is_err());
    assert!(!in_context());
}

#[test]
#[should_panic(expected = "polled again after its end")]
fn a_poll_after_the_end_panics() {
    let mut future = pin!(within(async {}));
    for _ in 0..2 {
        let _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }
}

/// The call comes before the context: tokio itself says so.
#[test]
#[should_panic(expected = "there is no reactor running")]
fn a_timer_that_is_made_outside_is_refused_by_tokio() {
    block_on(within(sleep(ms(1))));
}

/// What waits for a runtime ends when the runtime stops, and no thread waits for ever.
#[test]
fn when_the_runtime_stops() {
    let own = runtime();
    let handle = own.handle().clone();
    run(async move {
        let started = Arc::new(AtomicUsize::new(0));
        let begin = || {
            let started = started.clone();
            move || started.fetch_add(1, Ordering::Relaxed)
        };
        let begun = begin();
        let timer = spawn(within_runtime(&handle, async move {
            let timer = sleep(ms(3_600_000));
            begun();
            timer.await;
        }));
        let begun = begin();
        let task = spawn(within_runtime(&handle, async move {
            let task = tokio::spawn(pending::<()>());
            begun();
            task.await
        }));
        let begun = begin();
        let socket = spawn(within_runtime(&handle, async move {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            begun();
            listener.accept().await.map(drop)
        }));
        while started.load(Ordering::Relaxed) < 3 {
            yield_now().await;
        }
        own.shutdown_background();
        assert!(matches!(timer.await, Err(JoinError::Panicked(_))), "tokio's timer panics");
        assert!(task.await.unwrap().unwrap_err().is_cancelled());
        assert!(socket.await.unwrap().is_err());
        // The runtime of the process goes on.
        within(async { sleep(ms(1)).await }).await;
    });
}

/// A runtime of one OS thread, which drives it.
#[test]
fn a_current_thread_runtime_that_is_driven() {
    let own = Builder::new_current_thread().enable_all().build().unwrap();
    let handle = own.handle().clone();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let driver = thread::spawn(move || own.block_on(stopped));
    let name = run(async move {
        within_runtime(&handle, async {
            sleep(ms(5)).await;
            tokio::spawn(async { thread::current().id() }).await.unwrap()
        })
        .await
    });
    assert_eq!(name, driver.thread().id());
    stop.send(()).unwrap();
    driver.join().unwrap().unwrap();
}
