//! Transactions under every scheduler, in direct style, on OS threads, with time limits, and beside
//! sockets.

use selvedge::direct::{direct, wait};
use selvedge::net::{TcpListener, TcpStream};
use selvedge::scope::{Selected, select};
use selvedge::sim::{VirtualTime, simulated};
use selvedge::stm::{
    TMVar, TQueue, TVar, TWord, Tried, Tx, atomically, atomically_blocking, atomically_until, register_delay,
    wait_for,
};
use selvedge::sync::wait_blocking;
use selvedge::{
    EventLoop, Time, per_core, priority, run, run_local, sleep, spawn, spawn_local, work_stealing, yield_now,
};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

type Program = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Five philosophers eat ten times each. Each takes both forks at one moment, or waits.
async fn philosophers() {
    let forks: Arc<[TMVar<()>]> = (0..5).map(|_| TMVar::full(())).collect();
    let meals = TWord::new(0_u32);
    let eaten = meals.clone();
    let all: Vec<_> = (0..5)
        .map(|seat| {
            let (forks, meals) = (forks.clone(), meals.clone());
            spawn(async move {
                let (left, right) = (&forks[seat], &forks[(seat + 1) % 5]);
                for _ in 0..10 {
                    atomically(|tx| left.take(tx).and(right.take(tx))).await;
                    yield_now().await;
                    atomically(|tx| {
                        meals.modify(tx, |n| n + 1)?;
                        left.put(tx, ())?;
                        right.put(tx, ())
                    })
                    .await;
                }
            })
        })
        .collect();
    wait_for(move |tx| Ok(eaten.read(tx)? == 50)).await;
    for one in all {
        one.await.unwrap();
    }
    assert_eq!(meals.read_now(), 50);
}

/// Producers, a consumer that takes from either of two queues, and consumers that are cancelled.
async fn queues() {
    let (urgent, usual) = (TQueue::new(), TQueue::new());
    let taken = {
        let (urgent, usual) = (urgent.clone(), usual.clone());
        spawn(async move {
            let mut taken = Vec::new();
            while taken.len() < 60 {
                taken.push(atomically(|tx| tx.or_else(|tx| urgent.pop(tx), |tx| usual.pop(tx))).await);
            }
            taken
        })
    };
    let producers: Vec<_> = [(urgent, 0), (usual, 100)]
        .into_iter()
        .map(|(queue, from)| {
            spawn(async move {
                for n in from..from + 30 {
                    let never = queue.clone();
                    let waits = spawn(atomically(move |tx| {
                        never.pop(tx)?;
                        tx.retry::<()>()
                    }));
                    atomically(|tx| queue.push(tx, n)).await;
                    waits.cancel();
                    assert!(waits.await.is_err());
                }
            })
        })
        .collect();
    for producer in producers {
        producer.await.unwrap();
    }
    let mut taken = taken.await.unwrap();
    taken.sort_unstable();
    assert!(taken.into_iter().eq((0..30).chain(100..130)));
}

/// Transfers, audits, and a thread in direct style.
async fn bank() {
    let accounts: Arc<[TWord<i64>]> = (0..8).map(|_| TWord::new(100)).collect();
    let audit = |tx: &Tx, accounts: &[TWord<i64>]| -> Tried<i64> {
        accounts.iter().map(|account| account.read(tx)).sum()
    };
    let clerks: Vec<_> = (0..4)
        .map(|clerk| {
            let accounts = accounts.clone();
            spawn(async move {
                for n in 0..50 {
                    let (from, to) = (&accounts[(n * 3 + clerk) % 8], &accounts[(n * 5 + clerk * 3) % 8]);
                    atomically(|tx| {
                        let sum = from.read(tx)?;
                        tx.check(sum > 0)?;
                        from.write(tx, sum - 10);
                        to.modify(tx, |sum| sum + 10)
                    })
                    .await;
                    yield_now().await;
                }
            })
        })
        .collect();
    let audited = accounts.clone();
    let auditor = spawn_local(direct(move || {
        for _ in 0..50 {
            assert_eq!(wait(atomically(|tx| audit(tx, &audited))), 800);
            wait(yield_now());
        }
    }));
    for clerk in clerks {
        clerk.await.unwrap();
    }
    auditor.await.unwrap();
    assert_eq!(atomically(|tx| audit(tx, &accounts)).await, 800);
}

async fn time_limits() {
    let begun = Time::now();
    let (var, late) = (TWord::new(0_u32), register_delay(ms(20)));
    let waits = |enough: u32, limit: u64| {
        let var = var.clone();
        atomically_until(begun + ms(limit), move |tx| {
            let n = var.read(tx)?;
            tx.check(n >= enough)
        })
    };
    assert!(waits(1, 10).await.is_err());
    let in_time = spawn(waits(1, 60_000));
    let at_once = waits(0, 0).await;
    assert!(at_once.is_ok(), "a transaction that need not wait is not too late");
    atomically(|tx| tx.or_else(|tx| tx.check(var.read(tx)? > 0), |tx| tx.check(late.read(tx)?))).await;
    assert!(Time::now().since(begun) >= ms(20) && var.read_now() == 0);
    atomically(|tx| var.modify(tx, |n| n + 1)).await;
    assert!(in_time.await.unwrap().is_ok());
    atomically(|tx| tx.check(late.read(tx)?)).await;
    let at_once = register_delay(Duration::ZERO);
    atomically(|tx| tx.check(at_once.read(tx)?)).await;
}

/// The programs, anew for each run.
fn programs() -> [Program; 4] {
    [Box::pin(philosophers()), Box::pin(queues()), Box::pin(bank()), Box::pin(time_limits())]
}

#[test]
fn under_round_robin() {
    programs().into_iter().for_each(|program| run_local(program).unwrap());
}

#[test]
fn under_priority() {
    programs().into_iter().for_each(|program| priority(&mut EventLoop::new().unwrap(), program).unwrap());
}

#[test]
fn under_work_stealing() {
    for workers in [1, 2, 4] {
        for program in programs() {
            work_stealing(workers, |_| EventLoop::new(), program).unwrap();
        }
    }
    programs().into_iter().for_each(|program| run(program).unwrap());
}

/// Each worker has the programs, and shares a variable with the others.
#[test]
fn under_per_core() {
    let (all, workers) = (TWord::new(0_u32), 3);
    let main = |_| {
        let all = all.clone();
        async move {
            for program in programs() {
                program.await;
            }
            atomically(|tx| all.modify(tx, |n| n + 1)).await;
            wait_for(move |tx| Ok(all.read(tx)? == workers)).await;
        }
    };
    assert_eq!(per_core(workers as usize, main).unwrap().len(), 3);
}

#[test]
fn on_a_bound_os_thread() {
    for program in programs() {
        run(async { selvedge::bound(|| program).unwrap().await.unwrap() }).unwrap();
    }
}

#[test]
fn under_the_simulated_scheduler() {
    for seed in 0..if cfg!(debug_assertions) { 20 } else { 500 } {
        for program in programs() {
            simulated(seed, &mut VirtualTime::new(), program).unwrap();
        }
    }
}

/// An OS thread and a Selvedge thread wait for one another, and a foreign executor looks on.
#[test]
fn os_threads_and_threads_wait_for_one_another() {
    const ROUNDS: u32 = 2_000;
    let (turn, seen) = (TWord::named("turn", 0_u32), TVar::new(Vec::new()));
    let (of_thread, told) = (turn.clone(), seen.clone());
    let runs = thread::spawn(|| {
        run(async move {
            for n in (1..ROUNDS).step_by(2) {
                atomically(|tx| {
                    tx.check(of_thread.read(tx)? == n)?;
                    of_thread.write(tx, n + 1);
                    if n % 100 == 1 { told.modify(tx, |seen| [&seen[..], &[n]].concat()) } else { Ok(()) }
                })
                .await;
            }
        })
        .unwrap();
    });
    let last = turn.clone();
    let looks = thread::spawn(move || wait_blocking(wait_for(move |tx| Ok(last.read(tx)? == ROUNDS))));
    for n in (0..ROUNDS).step_by(2) {
        atomically_blocking(|tx| {
            tx.check(turn.read(tx)? == n)?;
            turn.modify(tx, |n| n + 1)
        });
    }
    runs.join().unwrap();
    looks.join().unwrap();
    assert_eq!(seen.read_now(Vec::len), ROUNDS as usize / 100);
}

#[test]
fn time_limits_on_an_os_thread() {
    wait_blocking(async {
        let (never, late) = (TMVar::<u32>::empty(), register_delay(ms(10)));
        assert!(selvedge::stm::atomically_until(Time::now() + ms(5), |tx| never.take(tx)).await.is_err());
        atomically(|tx| tx.check(late.read(tx)?)).await;
    });
}

/// The handles of the variable are dropped, and the timer fires all the same.
#[test]
fn a_delay_outlives_its_handles() {
    run_local(async {
        let delays: Vec<_> = (0..100).map(|n| register_delay(ms(1 + n % 3))).collect();
        drop(delays);
        sleep(ms(10)).await;
    })
    .unwrap();
}

/// A wait for a variable and a wait for a socket, of which either may be first. The other one is
/// dropped, and leaves nothing: the body of a transaction that was dropped runs no more.
#[test]
fn a_retry_and_a_socket() {
    run(async {
        let listener = TcpListener::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let address = listener.local_addr();
        let near = TcpStream::connect(address).await.unwrap();
        let (far, _) = listener.accept().await.unwrap();
        let (var, runs) = (TWord::new(0_u32), Arc::new(AtomicU32::new(0)));
        for round in 1..=200_u32 {
            let (shared, counts, owned) = (var.clone(), runs.clone(), Arc::new(()));
            let alive = Arc::downgrade(&owned);
            let waits = async {
                let by_body = owned;
                atomically(|tx| {
                    counts.fetch_add(1, Ordering::Relaxed);
                    let n = shared.read(tx)?;
                    tx.check(n == round)
                })
                .await;
                drop(by_body);
            };
            let mut byte = [0];
            let is_socket_first = round % 2 == 0;
            let other = async {
                yield_now().await;
                match is_socket_first {
                    true => near.write_all(&[round as u8]).await.unwrap(),
                    false => atomically(|tx| tx.check(true).map(|()| var.write(tx, round))).await,
                }
            };
            let both = async { select((waits, far.read_exact(&mut byte))).await };
            let (first, ()) = selvedge::scope::join((both, other)).await;
            match first {
                Selected::First(()) => assert!(!is_socket_first),
                Selected::Second(read) => {
                    read.unwrap();
                    assert!(is_socket_first && byte == [round as u8]);
                }
            }
            assert!(alive.upgrade().is_none());
            let before = runs.load(Ordering::Relaxed);
            atomically(|tx| var.swap(tx, 0)).await;
            yield_now().await;
            assert_eq!(runs.load(Ordering::Relaxed), before, "a stale waiter");
        }
    })
    .unwrap();
}

/// A write outside of a transaction wakes the waiting transactions, and is refused within a body.
#[test]
fn a_write_without_a_transaction() {
    let var = TWord::new(0_u32);
    let mut waits = pin!(atomically(|tx| tx.check(var.read(tx)? == 1)));
    assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    var.write_now(1);
    assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    let within = std::panic::catch_unwind(|| {
        let (var, other) = (TWord::new(0_u32), TWord::new(0_u32));
        atomically_blocking(|tx| {
            other.write_now(1);
            var.read(tx)
        })
    });
    assert!(within.is_err());
}
