//! Producers and consumers: a queue of bounded length keeps the fast from running ahead of the
//! slow.
//!
//! # Prints
//! ```text
//! 3 producers made 300 things, 2 consumers took 300; never more than 4 waited in the queue
//! ```

use selvedge::sync::BoundedFifo;
use selvedge::{spawn, yield_now};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

const ROOM: usize = 4;

fn main() -> ExitCode {
    selvedge::run_main(async {
        let (putter, taker) = BoundedFifo::ends(ROOM);
        // The number of things that were put and not taken, as the consumers count it.
        let (made, ahead) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
        for producer in 0..3 {
            let (putter, made) = (putter.clone(), made.clone());
            drop(spawn(async move {
                for thing in 0..100 {
                    if putter.put((producer, thing)).await.is_err() {
                        break; // no consumer is left
                    }
                    made.fetch_add(1, Ordering::SeqCst);
                }
            }));
        }
        drop(putter);
        let consumers: Vec<_> = (0..2)
            .map(|_| {
                let (taker, made, ahead) = (taker.clone(), made.clone(), ahead.clone());
                spawn(async move {
                    let mut taken = 0;
                    while taker.take().await.is_some() {
                        taken += 1;
                        // The things made are counted first, because a consumer may be interrupted
                        // here: those that are made meanwhile would count as waiting.
                        let made = made.load(Ordering::SeqCst);
                        let counted = ahead.fetch_add(1, Ordering::SeqCst) + 1;
                        // Each of the two consumers may be between a take and its count.
                        assert!(made - counted <= (ROOM + 2) as i64);
                        yield_now().await;
                    }
                    taken
                })
            })
            .collect();
        let mut taken = 0;
        for consumer in consumers {
            taken += consumer.await?;
        }
        let made = made.load(Ordering::SeqCst);
        println!(
            "3 producers made {made} things, 2 consumers took {taken}; never more than {ROOM} waited in the queue"
        );
        Ok(())
    })
}
