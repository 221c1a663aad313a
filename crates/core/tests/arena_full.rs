//! The arena with little address space. The system grants a part of the space that the arena asks
//! for. The arena fills up, and room that becomes free is used again. The limit holds for the whole
//! process, so this is a program of its own.

use rustix::process::{Resource, Rlimit, setrlimit};
use selvedge_core::{
    ArenaFullError, JoinError, JoinHandle, RunError, round_robin, spawn_local, try_spawn, yield_now,
};
use std::future::pending;
use std::panic::{catch_unwind, set_hook, take_hook};

/// Lives until it is cancelled.
async fn large() {
    let room = [0u64; 400];
    pending::<()>().await;
    std::hint::black_box(&room);
}

async fn fill() -> (Vec<JoinHandle<()>>, ArenaFullError) {
    let mut threads = Vec::new();
    loop {
        match try_spawn(large()) {
            Ok(thread) => threads.push(thread),
            Err(full) => return (threads, full),
        }
    }
}

fn main() {
    if cfg!(miri) {
        println!("Miri knows no limit of address space; its arena is small by a constant");
        return;
    }
    const LIMIT: usize = 128 << 20;
    let limit = Rlimit { current: Some(LIMIT as u64), maximum: Some(LIMIT as u64) };
    setrlimit(Resource::As, limit).unwrap();
    round_robin(async {
        let (threads, full) = fill().await;
        assert!((16 << 20..LIMIT).contains(&full.reserved_bytes), "{full}");
        let used = threads.len() * size_of_val(&large());
        assert!(used > full.reserved_bytes * 9 / 10, "{used} of {}", full.reserved_bytes);
        // The threads that have room go on.
        yield_now().await;
        let before = threads.len();
        threads.iter().for_each(JoinHandle::cancel);
        for thread in threads {
            assert!(matches!(thread.await, Err(JoinError::Cancelled)));
        }
        let (threads, again) = fill().await;
        assert_eq!((threads.len(), &again), (before, &full));
        // A backtrace would take memory that the limit does not leave.
        let hook = take_hook();
        set_hook(Box::new(|_| {}));
        let panicked = catch_unwind(|| drop(spawn_local(large())));
        set_hook(hook);
        assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&full.to_string()));
        drop(threads);
    })
    .unwrap();
    // All chunks have blocks of that size for ever, and a program begins with a thread of another
    // size.
    let ended = round_robin(async {});
    assert!(matches!(ended, Err(RunError::Memory(_))), "{ended:?}");
    println!("test a_full_arena_is_an_error_and_room_is_used_again ... ok");
}
