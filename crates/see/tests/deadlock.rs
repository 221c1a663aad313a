//! A deadlock is reported under every scheduler with what the threads say when they are asked, and
//! with the circle in which they wait for one another. It is reported while the program is seen,
//! too: the OS thread that looks on could wake no thread, and says so. (This process has no test
//! harness, because the OS threads of a harness do not say so.)

use selvedge_core::{Deadlock, NoEvents, RunError, round_robin_over, spawn, spawn_local, yield_now};
use selvedge_sched::{per_core, priority, work_stealing};
use selvedge_see::named;
use selvedge_sim::{Why, simulated};
use selvedge_stm::{TBQueue, TSem, TVar, TWord, atomically, wait_for};
use selvedge_sync::{MVar, Mutex, OnceCell, Promise, RwLock};
use std::future::Future;
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

async fn turns() {
    for _ in 0..20 {
        yield_now().await;
    }
}

async fn entangled() {
    entangled_by(true).await;
}

async fn entangled_by_a_writer() {
    entangled_by(false).await;
}

/// Five threads, each of which waits for the next in another way; and main, which waits for one of
/// them. The thread that has the readers-writer lock reads, or writes. The reader of a lock is
/// known only if the program is observed.
async fn entangled_by(reads: bool) {
    let (fulfiller, promise) = Promise::<()>::new();
    let cell = Arc::new(OnceCell::<()>::new());
    let (lock, mutex) = (Arc::new(RwLock::new(())), Arc::new(Mutex::new(())));
    let made = cell.clone();
    let owner = spawn(named("owner", async move {
        let fulfiller = fulfiller.own();
        turns().await;
        made.get_or_init(|| async {}).await;
        fulfiller.fulfil(());
    }));
    let (made, written) = (cell, lock.clone());
    drop(spawn(named("maker", async move {
        let make = || async {
            turns().await;
            drop(written.write().await);
        };
        made.get_or_init(make).await;
    })));
    let wanted = mutex.clone();
    drop(spawn(named("reader", async move {
        let _read = if reads { Some(lock.read().await) } else { None };
        let _written = if reads { None } else { Some(lock.write().await) };
        turns().await;
        drop(wanted.lock().await);
    })));
    let joiner = spawn(named("holder", async move {
        let _guard = mutex.lock().await;
        turns().await;
        spawn(named("claimer", async move { promise.claim().await.is_ok() })).await.unwrap();
    }));
    joiner.await.unwrap();
    owner.await.unwrap();
}

/// The line on which the transaction of the customer is begun.
const CUSTOMER: u32 = line!() + 7;

/// Transactions for which no other thread will write a variable.
async fn stuck() {
    let (stock, limit) = (TWord::named("stock", 1_u32), TVar::named("limit", String::from("5")));
    let (open, also, shown) = (TWord::new(false), TWord::new(false), stock.clone());
    drop(spawn(named("customer", async move {
        let _: bool = atomically(|tx| {
            let _ = (stock.read(tx)?, limit.read(tx)?, stock.read(tx)?);
            tx.check(open.read(tx)? && also.read(tx)?)?;
            tx.retry()
        })
        .await;
    })));
    let (jobs, paper) = (TBQueue::<u8>::named("jobs", 2), TSem::named("paper", 0));
    drop(spawn(named("printer", async move {
        atomically(|tx| tx.or_else(|tx| jobs.pop(tx).map(drop), |tx| paper.wait(tx))).await;
    })));
    let shop = spawn(named("shop", wait_for(move |tx| Ok(shown.read(tx)? > 1))));
    shop.await.unwrap();
}

fn check_transactions(scheduler: &str, deadlock: &Deadlock) {
    let text = deadlock.to_string();
    let lines = [
        format!(
            "waits to read a new value of \"stock\", \"limit\" or a variable of type bool, in the transaction begun at \
             crates/see/tests/deadlock.rs:{CUSTOMER}:"
        ),
        "waits to read a new value of \"stock\", in the transaction begun at crates/see/tests/deadlock.rs:"
            .into(),
        "waits to read a new value of \"jobs\", \"jobs[0]\" or \"paper\", in the transaction".into(),
    ];
    for (thread, line) in ["\"customer\"", "\"shop\"", "\"printer\""].into_iter().zip(lines) {
        let told = text.lines().any(|told| told.contains(thread) && told.contains(&line));
        assert!(told, "{scheduler}: {line} is not told of {thread}: {text}");
    }
    println!("test a_transaction_is_reported_under_{scheduler} ... ok");
}

fn check(scheduler: &str, deadlock: &Deadlock) {
    check_ties(scheduler, deadlock, "which holds the lock to read");
}

fn check_unobserved(scheduler: &str, deadlock: &Deadlock) {
    check_ties(scheduler, deadlock, "which holds the lock to write");
    assert!(deadlock.threads.iter().all(|info| info.seen().unwrap().since.is_none()), "{deadlock}");
}

/// Many threads that wait at one place, and main.
async fn many() {
    let never = Arc::new(MVar::<()>::empty());
    for _ in 0..500 {
        let never = never.clone();
        drop(spawn(async move { never.take().await }));
    }
    std::future::pending().await
}

fn check_groups(scheduler: &str, deadlock: &Deadlock) {
    let text = deadlock.to_string();
    assert!(text.contains("\n  498 more threads wait at crates/see/tests/deadlock.rs:"), "{text}");
    assert!(text.lines().count() <= 5 && text.contains("(deadlock::many): waits at"), "{text}");
    println!("test many_that_wait_at_one_place_are_a_line_under_{scheduler} ... ok");
}

fn check_ties(scheduler: &str, deadlock: &Deadlock, lock: &str) {
    let text = deadlock.to_string();
    let find = |name: &str| {
        let found = deadlock.threads.iter().find(|info| info.seen().unwrap().called.as_deref() == Some(name));
        found.unwrap_or_else(|| panic!("{scheduler}: {name} is not in {text}"))
    };
    let ties = [
        ("claimer", "owner", "which owns the promise"),
        ("owner", "maker", "which makes the value"),
        ("maker", "reader", lock),
        ("reader", "holder", "which holds the mutex"),
        ("holder", "claimer", "which it joins"),
    ];
    for (waiter, other, tie) in ties {
        let (other, waits) = (find(other).id(), find(waiter).seen().unwrap());
        assert_eq!(waits.waits_for, Some((other, tie)), "{scheduler}: {waiter}: {text}");
        assert!(
            find(waiter).to_string().ends_with(&format!("; for thread {other}, {tie}")),
            "{scheduler}: {text}"
        );
    }
    assert!(
        find("owner").seen().unwrap().call.starts_with("waits at crates/see/tests/deadlock.rs:"),
        "{text}"
    );
    let mut cycle = ties.map(|(waiter, ..)| find(waiter).id());
    let smallest = (0..5).min_by_key(|&i| cycle[i]).unwrap();
    cycle.rotate_left(smallest);
    assert_eq!(deadlock.cycles(), [cycle], "{scheduler}: {text}");
    let (reader, holder) = (find("reader").id(), find("holder").id());
    let link =
        format!("thread {reader} \"reader\" waits for thread {holder} \"holder\", which holds the mutex");
    let line = text.lines().nth(1).unwrap();
    assert!(line.starts_with("  cycle: thread ") && line.contains(&link), "{scheduler}: {text}");
    println!("test a_cycle_is_reported_under_{scheduler} ... ok");
}

fn deadlock<T: std::fmt::Debug>(ended: Result<T, RunError>) -> Deadlock {
    match ended {
        Err(RunError::Deadlock(deadlock)) => deadlock,
        other => panic!("expected a deadlock, got {other:?}"),
    }
}

/// The report of a program that ends in a deadlock, under each scheduler.
fn all_schedulers<F>(program: fn() -> F, check: fn(&str, &Deadlock))
where
    F: Future<Output = ()> + Send + 'static,
{
    check("round_robin", &deadlock(round_robin_over(&mut NoEvents::new(), program())));
    check("priority", &deadlock(priority(&mut NoEvents::new(), program())));
    let ended = per_core(1, |_| Ok(NoEvents::new()), |_| program());
    check("per_core", &deadlock(ended.map_err(|failure| failure.error)));
    for workers in [1, 2] {
        let ended = work_stealing(workers, |_| Ok(NoEvents::new()), program());
        check("work_stealing", &deadlock(ended.map_err(|failure| failure.error)));
    }
    let failed = simulated(1, &mut NoEvents::new(), program()).unwrap_err();
    let Why::Deadlock(deadlock) = failed.why() else { panic!("expected a deadlock, got {failed}") };
    check("simulated", deadlock);
}

fn main() {
    // The helper does what the library says. A program's own watchdog might wake a thread, and so
    // keeps every report back.
    if std::env::var_os("SELVEDGE_SEE").is_none() {
        all_schedulers(entangled_by_a_writer, check_unobserved);
        all_schedulers(stuck, check_transactions);
        all_schedulers(many, check_groups);
        let mut again = Command::new(std::env::current_exe().unwrap());
        assert!(again.env("SELVEDGE_SEE", "dump,watchdog=20").status().unwrap().success());
        return;
    }
    let _seeing = selvedge_see::from_environment().unwrap();
    let begun = Instant::now();
    let ended = round_robin_over(&mut NoEvents::new(), async {
        // Other OS threads could reach it.
        let never = Rc::new(MVar::<()>::empty());
        let other = never.clone();
        drop(spawn_local(async move { other.take().await }));
        never.take().await;
    });
    let ended = deadlock(ended);
    assert_eq!((ended.threads.len(), ended.cycles().len()), (2, 0), "{ended}");

    all_schedulers(entangled, check);
    all_schedulers(stuck, check_transactions);
    assert!(begun.elapsed() < Duration::from_secs(60));
}
