//! Looks at threads while they run: a dump, the counters, a timeline, and a watchdog, which names
//! a thread that holds up the others.

use selvedge::{MVar, Mutex, see, sleep, spawn, yield_now};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn main() -> Result<(), Box<dyn Error>> {
    see::on();
    see::timeline(10_000);
    see::watchdog(ms(20), |long| println!("watchdog: {long}"));
    selvedge::run(async {
        let (loom, key) = (Arc::new(MVar::<u32>::empty()), Arc::new(Mutex::new(())));
        let (l, k) = (loom.clone(), key.clone());
        let holder = spawn(see::named("holder", async move {
            let _locked = k.lock().await;
            assert_eq!(l.take().await, 7);
        }));
        yield_now().await;
        sleep(ms(5)).await;
        let locker = spawn(see::named("locker", async move { drop(key.lock().await) }));
        let hog = spawn(see::named("hog", async { std::thread::sleep(ms(60)) }));
        hog.await?;
        println!("{}", see::dump());
        loom.put(7).await;
        holder.await?;
        locker.await?;
        Ok::<(), Box<dyn Error + Send + Sync>>(())
    })?
    .map_err(|error| error as Box<dyn Error>)?;
    println!("{}", see::counters());
    let file = std::env::temp_dir().join(format!("selvedge-timeline-{}.json", std::process::id()));
    see::write_timeline(&file)?;
    println!("{} bytes of timeline for https://ui.perfetto.dev", std::fs::metadata(&file)?.len());
    std::fs::remove_file(file)?;
    Ok(())
}
