//! Objects in statics: they are made at compile time, and all threads share them.

use selvedge_core::{round_robin, spawn};
use selvedge_sync::{
    Barrier, BoundedFifo, Condition, Event, Fifo, Latch, MVar, Mutex, OnceCell, RwLock, Semaphore,
};

static COUNT: Mutex<u32> = Mutex::new(0);
static NAMES: RwLock<Vec<&str>> = RwLock::new(Vec::new());
static PERMITS: Semaphore = Semaphore::new(2);
static STARTED: Event = Event::new();
static CHANGED: Condition = Condition::new();
static WORDS: Fifo<&str> = Fifo::new();
static FEW: BoundedFifo<u8> = BoundedFifo::new(1);
static FULL: MVar<u8> = MVar::new(7);
static EMPTY: MVar<u8> = MVar::empty();
static MET: Barrier = Barrier::new(2);
static LEFT: Latch = Latch::new(10);
static ONCE: OnceCell<String> = OnceCell::new();

#[test]
fn threads_share_what_is_static() {
    let sum = round_robin(async {
        let threads: Vec<_> = (0..10)
            .map(|number| {
                spawn(async move {
                    STARTED.wait().await;
                    let _permit = PERMITS.acquire().await;
                    *COUNT.lock().await += number;
                    NAMES.write().await.push("warp");
                    CHANGED.notify_one();
                    LEFT.count_down();
                })
            })
            .collect();
        STARTED.set();
        let meets = spawn(MET.wait());
        assert_ne!(MET.wait().await.is_leader(), meets.await.unwrap().is_leader(), "one leads");
        LEFT.wait().await;
        for thread in threads {
            thread.await.unwrap();
        }
        WORDS.put("weft");
        EMPTY.put(FULL.take().await).await;
        FEW.put(EMPTY.take().await).await.unwrap();
        assert_eq!((WORDS.take().await, FEW.take().await), ("weft", Some(7)));
        assert_eq!(ONCE.get_or_init(async || "selvedge".to_string()).await, "selvedge");
        assert_eq!(NAMES.read().await.len(), 10);
        *COUNT.lock().await
    });
    assert_eq!(sum.unwrap(), 45);
}
