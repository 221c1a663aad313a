//! Structured concurrency: when a scope has returned, none of its threads is left, also if one of
//! them panics or is cancelled.

use selvedge::scope::{CancelToken, Selected, join_all, race, scope, select, try_scope};
use selvedge::{MVar, SchedulerError, catch, sleep, throw};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

const BRIEFLY: Duration = Duration::from_millis(2);

/// Prints a line when it is dropped.
struct Loom(&'static str);

impl Drop for Loom {
    fn drop(&mut self) {
        println!("  {} is put away", self.0);
    }
}

async fn weave(loom: &'static str) {
    let _loom = Loom(loom);
    pending::<()>().await;
}

fn main() -> Result<(), SchedulerError> {
    selvedge::run(async {
        println!("Three weavers, waited for together:");
        let rows = scope(async |s| {
            let weavers = (1..=3_u64).map(|n| {
                s.spawn(async move {
                    sleep(BRIEFLY * (4 - n as u32)).await;
                    n * 10
                })
            });
            join_all(weavers).await.into_iter().map(|rows| rows.expect("no weaver is cancelled")).sum::<u64>()
        })
        .await;
        println!("  {rows} rows");

        println!("One fails, so that no other goes on:");
        let result: Result<(), &str> = try_scope(async |s| {
            drop(s.spawn(async {
                weave("the first loom").await;
                Ok(())
            }));
            drop(s.spawn(async {
                // A scope in a child of a scope is part of it.
                scope(async |inner| drop(inner.spawn(weave("the second loom")))).await;
                Ok(())
            }));
            drop(s.spawn(async {
                sleep(BRIEFLY).await;
                Err::<(), _>("the thread broke")
            }));
            Ok(())
        })
        .await;
        println!("  {result:?}");

        println!("An exception keeps its type on the way out:");
        let thrown = catch(scope(async |s| {
            drop(s.spawn(async { throw(42_u8) }));
            weave("the third loom").await;
        }));
        println!("  {:?}", thrown.await.map_err(|exception| exception.downcast::<u8>().ok()));

        println!("Out of time, the loser of a race is put away too:");
        let late = race((
            async {
                scope(async |s| drop(s.spawn(weave("the fourth loom")))).await;
                "done"
            },
            async {
                sleep(BRIEFLY).await;
                "late"
            },
        ));
        println!("  {}", late.await);
        sleep(BRIEFLY).await;

        println!("A token asks them to stop by themselves:");
        let stop = CancelToken::new();
        let done = Arc::new(MVar::empty());
        let rows = scope(async |s| {
            let (token, to) = (stop.child(), done.clone());
            drop(s.spawn(async move {
                let mut rows = 0;
                while let Selected::Second(()) = select((token.cancelled(), sleep(BRIEFLY))).await {
                    rows += 1;
                }
                to.put(rows).await;
            }));
            sleep(BRIEFLY * 10).await;
            stop.cancel();
            done.take().await
        })
        .await;
        println!("  {}", if rows > 0 { "it has woven some rows" } else { "it has not begun" });
    })
}
