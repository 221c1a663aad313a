//! [`MessageLoop`]: MPI in this process, with the OS thread that has started MPI, and that looks
//! for messages when no thread does.
//!
//! It is one more event loop. `io` has the recipe: a thread's call becomes an order with a cell for
//! its answer (`comm.rs`, `orders.rs`), a holder of the driver carries it out (`driver.rs`,
//! `shared_driver.rs`), and wakes the thread when MPI says that it is done.

use super::calls::Mpi;
use super::comm::Comm;
use super::driver::MpiDriver;
use super::error::MpiError;
use super::family::{MpiFamily, MpiHandle};
use super::launcher::Launched;
use super::ongoing::ongoing;
use super::orders::{LoopOrder, NewPlace, WORLD};
use super::pace::{LoopPause, Pace};
use super::shared_driver::SharedDriver;
use super::start::{AnyMpi, StartError, start};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// MPI in this process. There is at most one.
///
/// # Examples
/// The ranks add their numbers up:
/// ```no_run
/// use selvedge_mpi::libmpi::{Collective, MpiMemory, MessageLoop, ReduceOp};
///
/// selvedge::run(async {
///     let mpi = MessageLoop::start()?;
///     let world = mpi.world();
///     let mine = MpiMemory::from(vec![world.rank() as u64]);
///     let sum = world.collective(Collective::Allreduce { op: ReduceOp::Sum }, mine).await?;
///     println!("the sum of all ranks is {:?}", sum.received);
///     mpi.finish()?;
///     Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Debug)]
pub struct MessageLoop {
    world: Comm,
    about: About,
    driver: Arc<SharedDriver>,
    os_thread: Option<JoinHandle<Result<(), MpiError>>>,
}

/// What is known of the library and the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct About {
    /// The library's family.
    pub family: MpiFamily,
    /// The name or the path under which the library was loaded.
    pub library: String,
    /// The library's version in its own words.
    pub version: String,
    /// The machine's name, as the library says it.
    pub processor_name: String,
    /// The program that started this rank. `None` if the process was started as any other: then it
    /// is the only rank.
    pub launched: Option<Launched>,
    /// Whether MPI goes on when a rank has died, and tells the others: as Open MPI 5 does in a job
    /// of `mpirun --with-ft ulfm`. Otherwise the launcher ends the job.
    pub bears_deaths: bool,
}

impl MessageLoop {
    /// Loads the library of the launcher that started this process, or any that the machine has,
    /// and starts MPI. All ranks make the call.
    ///
    /// # Errors
    /// When there is no library, when it is of an unknown family or of another MPI than the
    /// launcher, when MPI fails, and at the second call in a process.
    pub fn start() -> Result<MessageLoop, StartError> {
        let (tell, told) = sync_channel(1);
        let os_thread = thread::Builder::new()
            .name("selvedge-mpi".to_string())
            .spawn(move || {
                let launched = Launched::from_environment();
                match start(launched) {
                    Err(error) => {
                        let _ = tell.send(Err(error));
                        Ok(())
                    }
                    Ok((AnyMpi::Integers(mpi), family, library)) => {
                        run(mpi, family, library, launched, &tell)
                    }
                    Ok((AnyMpi::Pointers(mpi), family, library)) => {
                        run(mpi, family, library, launched, &tell)
                    }
                }
            })
            .map_err(|error| StartError::NoOsThread(error.to_string()))?;
        let Started { about, driver, place, tag_max } = match told.recv() {
            Ok(Ok(started)) => started,
            Ok(Err(error)) => return Err(error),
            Err(_) => return Err(StartError::NoOsThread("it ended at once".to_string())),
        };
        let world = Comm::new(driver.clone(), place, tag_max);
        Ok(MessageLoop { world, about, driver, os_thread: Some(os_thread) })
    }

    /// The communicator of all ranks.
    pub fn world(&self) -> Comm {
        self.world.clone()
    }

    /// The library and the machine.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// MPI's clock, in seconds since a moment in the past.
    ///
    /// # Errors
    /// When the message loop has ended.
    pub async fn wtime(&self) -> Result<f64, MpiError> {
        let (end, time) = ongoing("MPI_Wtime");
        self.driver.put(LoopOrder::Time { end });
        time.await
    }

    /// Ends all ranks of the job, this process too.
    ///
    /// # Errors
    /// When it comes back, because MPI failed.
    pub async fn abort(&self, code: i32) -> Result<(), MpiError> {
        let (end, aborted) = ongoing("MPI_Abort");
        self.driver.put(LoopOrder::Abort { code, end });
        aborted.await
    }

    /// Ends MPI, after all sends and collective calls are done. All ranks make the call, and the OS
    /// thread that makes it waits for the other ranks. Threads that still wait for messages get an
    /// error.
    ///
    /// Dropping the `MessageLoop` does the same, and loses the error. If that happens in a panic,
    /// it ends all ranks of the job, because they would wait for this one for ever.
    ///
    /// # Errors
    /// When MPI fails.
    pub fn finish(mut self) -> Result<(), MpiError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), MpiError> {
        let Some(os_thread) = self.os_thread.take() else { return Ok(()) };
        self.driver.put(LoopOrder::Finish);
        // A panic of it ends the process.
        os_thread.join().unwrap_or(Ok(()))
    }
}

impl Drop for MessageLoop {
    fn drop(&mut self) {
        if thread::panicking() {
            let (end, _) = ongoing("MPI_Abort");
            self.driver.put(LoopOrder::Abort { code: PANICKED, end });
        }
        let _ = self.end();
    }
}

/// The code with which a job ends when a rank panics, as that of a process of Rust.
const PANICKED: i32 = 101;

/// How long the loop sleeps where every message rings. It looks from time to time all the same,
/// because MPI may have something to carry on of which no rank knows.
const RUNG_NAP: Duration = Duration::from_millis(100);

/// The same where MPI tells of the ranks that have died, because a dead rank rings no bell.
const DEATH_NAP: Duration = Duration::from_millis(10);

/// What the OS thread tells when it has started MPI.
struct Started {
    about: About,
    driver: Arc<SharedDriver>,
    place: NewPlace,
    tag_max: i32,
}

/// Tells that MPI is started, and is the loop until MPI has ended.
fn run<H: MpiHandle>(
    mpi: Mpi<H>,
    family: MpiFamily,
    library: String,
    launched: Option<Launched>,
    tell: &SyncSender<Result<Started, StartError>>,
) -> Result<(), MpiError> {
    let (about, place, tag_max) = match describe(&mpi, family, library, launched) {
        Ok(described) => described,
        Err(error) => {
            let _ = tell.send(Err(error));
            return mpi.finalize(false);
        }
    };
    let is_serialized = mpi.is_serialized();
    let rung_nap = if about.bears_deaths { DEATH_NAP } else { RUNG_NAP };
    let driver = Arc::new(SharedDriver::new(Box::new(MpiDriver::new(mpi)), is_serialized));
    let _ = tell.send(Ok(Started { about, driver: driver.clone(), place, tag_max }));
    look_on(&driver, rung_nap)
}

/// The loop. It sleeps for `rung_nap` at most where every message rings.
fn look_on(driver: &SharedDriver, rung_nap: Duration) -> Result<(), MpiError> {
    let sleep = driver.sleep();
    let mut pace = Pace::new(Instant::now());
    let mut is_roused = false;
    // Whether the bell was armed before the last look.
    let mut is_armed = false;
    loop {
        is_roused |= sleep.looks();
        // Before the look, so that a ring after it ends the nap.
        let rung = sleep.doorbells().map_or(0, |doorbells| doorbells.rung());
        let Some((has_happened, standing)) = driver.look() else {
            // Its holder looks.
            thread::yield_now();
            continue;
        };
        if standing.is_finished
            && let Some(ended) = driver.finish()
        {
            return ended;
        }
        let is_watched = driver.is_watched() && !is_roused;
        let pause = match is_watched {
            true => pace.pause_beside_watchers(),
            false => pace.pause(is_roused || has_happened, standing.is_outstanding, Instant::now()),
        };
        is_roused = false;
        match (pause, sleep.doorbells()) {
            (LoopPause::Rest, _) => sleep.sleep(None),
            (LoopPause::Nap(time), None) => sleep.sleep(Some(time)),
            (LoopPause::Nap(time), Some(doorbells)) if is_watched => {
                is_armed = false;
                sleep.nap(doorbells, rung, time);
            }
            // What another rank sends from now on rings the bell.
            (LoopPause::Nap(_), Some(doorbells)) if !is_armed => {
                doorbells.arm();
                is_armed = true;
            }
            (LoopPause::Nap(time), Some(doorbells)) => {
                let limit = if standing.is_rung_for_all { rung_nap } else { time };
                sleep.nap(doorbells, rung, limit);
                doorbells.disarm();
                is_armed = false;
            }
            (LoopPause::Yield, doorbells) => {
                if is_armed && let Some(doorbells) = doorbells {
                    doorbells.disarm();
                }
                is_armed = false;
                thread::yield_now();
            }
        }
    }
}

fn describe<H: MpiHandle>(
    mpi: &Mpi<H>,
    family: MpiFamily,
    library: String,
    launched: Option<Launched>,
) -> Result<(About, NewPlace, i32), StartError> {
    let (rank, size) = mpi.place(&mpi.world()).map_err(StartError::Failed)?;
    if let Some(Launched { launcher, size: Some(announced) }) = launched
        && announced != size
    {
        return Err(StartError::OtherMpi { library, launcher, announced, found: size });
    }
    let about = About {
        family,
        library,
        version: mpi.library_version().map_err(StartError::Failed)?,
        processor_name: mpi.processor_name().map_err(StartError::Failed)?,
        launched,
        bears_deaths: mpi.bears_deaths().map_err(StartError::Failed)?,
    };
    let tag_max = mpi.tag_max().map_err(StartError::Failed)?;
    Ok((about, NewPlace { id: WORLD, rank, size }, tag_max))
}
