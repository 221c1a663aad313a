//! Operations that would wait for ever: they are refused, and the messages say why.

use selvedge_core::{round_robin, spawn_local, this_thread, yield_now};
use selvedge_sync::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

/// The message of the panic of `f`.
fn panic_of(f: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(f)).expect_err("it should have panicked");
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic.downcast_ref::<&str>().expect("a text").to_string(),
    }
}

#[test]
fn blocking_within_a_step() {
    round_robin(async {
        let var = MVar::<u8>::new(1);
        // It is refused even when it need not wait, because it may have to the next time.
        let words = panic_of(|| {
            var.take_blocking();
        });
        assert!(words.contains("within a step"), "{words}");
        assert!(words.contains("await"), "{words}");
        assert_eq!(var.try_take(), Some(1));
        let mutex = Mutex::new(());
        assert!(panic_of(|| drop(mutex.lock_blocking())).contains("within a step"));
        assert!(mutex.try_lock().is_some());
    })
    .unwrap();
}

#[test]
fn an_os_thread_that_would_wait_for_itself() {
    let mutex = Mutex::new(());
    let guard = mutex.lock_blocking();
    assert!(panic_of(|| drop(mutex.lock_blocking())).contains("wait for itself"));
    drop(guard);
    drop(mutex.lock_blocking());

    let lock = RwLock::new(());
    let guard = lock.write_blocking();
    assert!(panic_of(|| drop(lock.read_blocking())).contains("wait for itself"));
    assert!(panic_of(|| drop(lock.write_blocking())).contains("wait for itself"));
    let guard = BlockingGuard::downgrade(guard);
    drop(lock.read_blocking());
    drop(guard);
}

#[test]
fn a_thread_that_would_wait_for_itself() {
    round_robin(async {
        let mutex = Rc::new(Mutex::new_local(()));
        let me = Owner::new();
        let guard = mutex.checked_lock(&me).await.unwrap();
        let recursion = mutex.checked_lock(&me).await.expect_err("it holds it");
        let holder = recursion.holder().expect("it is one of our threads");
        assert_eq!(recursion.holder(), mutex.holder());
        assert_eq!(format!("{:?}", mutex), format!("Mutex(locked by {holder})"));
        assert!(recursion.to_string().contains("wait for itself"), "{recursion}");
        // A thread that is not the owner waits.
        let theirs = mutex.clone();
        let other = spawn_local(async move { theirs.checked_lock(&Owner::new()).await.is_ok() });
        yield_now().await;
        drop(guard);
        assert_eq!(mutex.holder(), None);
        assert!(mutex.checked_lock(&me).await.is_ok());
        assert!(other.await.unwrap());

        let lock = RwLock::new_local(());
        let guard = lock.checked_write(&me).await.unwrap();
        assert!(lock.checked_read(&me).await.is_err() && lock.checked_write(&me).await.is_err());
        assert_eq!(lock.writer(), recursion.holder());
        drop(guard);
        assert!(lock.checked_read(&me).await.is_ok());
    })
    .unwrap();
}

#[test]
fn a_guard_that_is_made_to_be_passed_on_is_waited_for() {
    /// All users have one type of future, so that one thread after another lies in the same block
    /// and has the same number.
    async fn user(mutex: Arc<Mutex<u8>>, keeps: bool) -> (Option<OwnedGuard<u8>>, Option<u32>, bool) {
        let me = this_thread();
        match keeps {
            true => (Some(mutex.lock_owned().await), me, true),
            false => {
                let locked = mutex.checked_lock(&Owner::new()).await.is_ok();
                (None, me, locked)
            }
        }
    }
    round_robin(async {
        let mutex = Arc::new(Mutex::new(0));
        let (guard, first, _) = spawn_local(user(mutex.clone(), true)).await.unwrap();
        assert_eq!(mutex.holder().map(|holder| holder.to_string()), first.map(|id| format!("thread {id}")));
        let other = spawn_local(user(mutex.clone(), false));
        yield_now().await;
        drop(guard);
        let (_, second, locked) = other.await.unwrap();
        assert_eq!(first, second, "the test is about a number that is used again");
        assert!(locked, "a thread that has never locked it");
    })
    .unwrap();
}

#[test]
fn a_guard_that_has_been_passed_on_is_waited_for() {
    round_robin(async {
        let mutex: &'static Mutex<u8> = Box::leak(Box::new(Mutex::new(0)));
        let me = Owner::new();
        let guard = mutex.lock().await;
        let other = spawn_local(async move {
            yield_now().await;
            drop(guard);
        });
        assert!(mutex.checked_lock(&me).await.is_ok(), "the guard is with another thread");
        other.await.unwrap();
    })
    .unwrap();
}

#[test]
fn two_branches_with_owners_of_their_own_wait_for_each_other() {
    round_robin(async {
        let mutex = Mutex::new_local(0);
        let add = || async {
            let me = Owner::new();
            let mut sum = mutex.checked_lock(&me).await.expect("another branch holds it");
            yield_now().await;
            *sum += 1;
        };
        futures::join!(add(), add(), add());
        assert_eq!(mutex.into_inner(), 3);
    })
    .unwrap();
}

#[test]
fn an_os_thread_waits_for_a_guard_that_it_has_passed_on() {
    let (mutex, lock) = (Mutex::new(0), RwLock::new(0));
    std::thread::scope(|scope| {
        let guard = BlockingGuard::into_movable(mutex.lock_blocking());
        let writer = BlockingGuard::into_movable(lock.write_blocking());
        scope.spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            drop((guard, writer));
        });
        *mutex.lock_blocking() += 1;
        drop(lock.read_blocking());
    });
    assert_eq!(mutex.into_inner(), 1);
}

#[test]
fn the_deadlock_report_names_the_line_of_a_recursion() {
    let report = round_robin(async {
        let mutex = Mutex::new_local(());
        let _guard = mutex.lock().await;
        drop(mutex.lock().await);
    });
    let words = report.unwrap_err().to_string();
    assert!(words.contains("refusals.rs:"), "{words}");
}

#[test]
fn two_branches_of_a_thread_may_share_a_mutex() {
    round_robin(async {
        let mutex = Mutex::new_local(0);
        let add = || async {
            let mut sum = mutex.lock().await;
            yield_now().await;
            *sum += 1;
        };
        futures::join!(add(), add(), add());
        assert_eq!(*mutex.lock().await, 3);
    })
    .unwrap();
}

#[test]
fn a_panic_while_holding_unlocks() {
    let (mutex, lock) = (Mutex::new(1), RwLock::new(1));
    panic_of(|| {
        let (mut one, mut other) = (mutex.lock_blocking(), lock.write_blocking());
        *one = 2;
        *other = 2;
        panic!("in between");
    });
    assert_eq!((*mutex.lock_blocking(), *lock.read_blocking()), (2, 2));
}

#[test]
fn too_many_permits() {
    let semaphore = Semaphore::new(Semaphore::PERMITS_MAX);
    assert!(panic_of(|| semaphore.release(1)).contains("permits"));
    assert_eq!(semaphore.available(), Semaphore::PERMITS_MAX);
    assert!(panic_of(|| drop(Semaphore::new(Semaphore::PERMITS_MAX + 1))).contains("permits"));
}
