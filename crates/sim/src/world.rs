//! [`World`]: a simulated kernel, a scheduler and a virtual clock for one run of a program; and
//! [`simulate`], which runs a program in a world for each seed.
//!
//! Tests call it. [`World::run`] installs the kernel (`kernel.rs`) under an ordinary event loop,
//! and runs the program under the scheduler of `scheduler.rs`, which chooses as the seed says.

use crate::kernel::Kernel;
use crate::scheduler::Arrivals;
use crate::{Conditions, Disk, Simulation, SimulationError, each_seed};
use selvedge_core::{ThreadInfo, VirtualClock};
use selvedge_io::EventLoop;
use selvedge_io::signal::Signal;
use selvedge_io::sys::interposed;
use std::cell::RefCell;
use std::future::Future;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

/// Runs a program once with each seed, in [good](Conditions::good) conditions. If the environment
/// variable `SELVEDGE_SEED` is set, the program runs with that seed only. [`World`] offers other
/// conditions, a disk, and more of the result.
///
/// # Panics
/// If a run leaves descriptors open or fails: by a panic in the main thread or in a thread that no
/// thread joins, by a deadlock, or because it does not end. The message has the seed.
///
/// # Examples
/// ```
/// use selvedge::spawn_local;
/// use selvedge::net::{TcpListener, TcpStream};
///
/// selvedge::sim::simulate(0..100, || async {
///     let listener = TcpListener::bind("127.0.0.1:80".parse().unwrap()).unwrap();
///     let server = spawn_local(async move {
///         let (stream, _) = listener.accept().await?;
///         stream.write_all(b"hello").await
///     });
///     let client = TcpStream::connect("127.0.0.1:80".parse().unwrap()).await.unwrap();
///     let mut greeting = [0; 5];
///     client.read_exact(&mut greeting).await.unwrap();
///     assert_eq!(&greeting, b"hello");
///     server.await.unwrap().unwrap();
/// });
/// ```
pub fn simulate<F: Future<Output = ()> + 'static>(seeds: Range<u64>, mut main: impl FnMut() -> F) {
    each_seed(seeds, |seed| {
        let ended = World::new(seed).run(main()).unwrap_or_else(|failed| panic!("{failed}"));
        assert_eq!(ended.descriptors, 0, "descriptors are left open");
    });
}

/// A simulated world for one run of a program.
///
/// # Examples
/// No client gets a wrong answer from this server, whatever the network does:
/// ```
/// use selvedge::spawn_local;
/// use selvedge::net::{TcpListener, TcpStream};
/// use selvedge::sim::{Conditions, World};
/// use std::net::SocketAddr;
///
/// async fn ask(server: SocketAddr) -> std::io::Result<[u8; 5]> {
///     let mut answer = [0; 5];
///     TcpStream::connect(server).await?.read_exact(&mut answer).await?;
///     Ok(answer)
/// }
///
/// for seed in 0..100 {
///     let world = World::new(seed).conditions(Conditions::bad());
///     world.run(async {
///         let listener = TcpListener::bind("10.1.1.1:80".parse().unwrap()).unwrap();
///         let address = listener.local_addr();
///         let server = spawn_local(async move {
///             loop {
///                 let (stream, _) = listener.accept().await.unwrap();
///                 drop(spawn_local(async move { stream.write_all(b"hello").await }));
///             }
///         });
///         for _ in 0..5 {
///             if let Ok(answer) = ask(address).await {
///                 assert_eq!(&answer, b"hello");
///             }
///         }
///         drop(server);
///     })?;
/// }
/// # Ok::<(), selvedge::sched::SimulationError>(())
/// ```
#[derive(Clone, Debug)]
pub struct World {
    seed: u64,
    conditions: Conditions,
    order: Simulation,
    disk: Disk,
}

impl World {
    /// A world in [good](Conditions::good) conditions with an empty disk. Its threads run in random
    /// order.
    pub fn new(seed: u64) -> World {
        World { seed, conditions: Conditions::good(), order: Simulation::new(seed), disk: Disk::new() }
    }

    /// The world in other conditions.
    pub fn conditions(self, conditions: Conditions) -> World {
        World { conditions, ..self }
    }

    /// The world with another scheduler.
    pub fn order(self, order: Simulation) -> World {
        World { order, ..self }
    }

    /// The world with a disk of the test's. Each run begins with a copy of the disk.
    pub fn disk(self, disk: Disk) -> World {
        World { disk, ..self }
    }

    /// Runs a program until its main thread has ended. The run cancels the threads that are left.
    ///
    /// # Errors
    /// [`SimulationError`], which says why the run failed and how to repeat it.
    ///
    /// # Panics
    /// If this OS thread runs an event loop already, or the process has no descriptors left,
    /// because the run takes one.
    pub fn run<F: Future + 'static>(&self, main: F) -> Result<Ended<F::Output>, SimulationError> {
        self.run_noting(main, &mut Vec::new())
    }

    /// As [`run`](World::run). If the choices of the order are given, `made` gets each choice, with
    /// the number of alternatives.
    pub(crate) fn run_noting<F: Future + 'static>(
        &self,
        main: F,
        made: &mut Vec<(u32, u32)>,
    ) -> Result<Ended<F::Output>, SimulationError> {
        let clock = VirtualClock::install();
        let disk = self.disk.clone().into_tree();
        let mut kernel = Kernel::new(!self.seed, self.conditions.clone(), disk);
        if self.order.is_given() {
            kernel.leave_arrivals();
        }
        let kernel = Rc::new(RefCell::new(kernel));
        let installed = interposed::install(kernel.clone());
        let mut events = EventLoop::new().unwrap_or_else(|error| panic!("an event loop: {error}"));
        let arrivals = self.order.is_given().then_some(&*kernel as &dyn Arrivals);
        let run = self.order.run_noting(&mut events, main, arrivals, made);
        drop(events);
        drop(installed);
        let kernel = Rc::into_inner(kernel).expect("the dropped `Installed` had the other handle");
        let kernel = kernel.into_inner();
        drop(clock);
        let run = run?;
        Ok(Ended {
            output: run.output,
            steps: run.steps,
            time: run.time,
            digest: run.digest ^ kernel.digest(),
            left: run.left,
            descriptors: kernel.left_open(),
            disk: Disk::of(kernel.into_disk()),
        })
    }
}

/// A simulated run that has come to its end.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Ended<T> {
    /// The result of the main thread.
    pub output: T,
    /// How many steps all threads made together.
    pub steps: u64,
    /// How much virtual time passed.
    pub time: Duration,
    /// A digest of all that happened, in threads, on the network and on the disk. Two runs with the
    /// same digest are the same run.
    pub digest: u64,
    /// The threads that were left when the main thread ended. The run has cancelled them.
    pub left: Vec<ThreadInfo>,
    /// How many simulated descriptors were open when all threads were gone: the program leaked
    /// them, or they are part of the output.
    pub descriptors: usize,
    /// The disk as programs would see it after the run. [`Disk::after_crash`] tells which part of
    /// it survives a power failure.
    pub disk: Disk,
}

/// Raises a signal in the simulated world of this OS thread: each subscription to the signal
/// ([`signals`](selvedge_io::signal::signals)) gets it. Returns the number of these subscriptions.
/// If there is none, a real process would do what the signal does by default; here nothing happens.
///
/// # Panics
/// If this OS thread has no simulated world, or if the signal cannot be subscribed to.
///
/// # Examples
/// ```
/// use selvedge::spawn_local;
/// use selvedge::signal::{Signal, signals};
/// use selvedge::sim::{raise, simulate};
///
/// simulate(0..10, || async {
///     let mut terminated = signals(&[Signal::TERM]).unwrap();
///     let server = spawn_local(async move { terminated.next().await });
///     assert_eq!(raise(Signal::TERM), 1);
///     assert_eq!(server.await.unwrap().unwrap(), Signal::TERM);
/// });
/// ```
pub fn raise(signal: Signal) -> usize {
    let bit = signal.bit().unwrap_or_else(|| panic!("{signal} cannot be subscribed to"));
    let subscriptions = interposed::with(|kernel| Ok(kernel.signals()?.raise(bit)));
    subscriptions.unwrap_or_else(|_| panic!("{signal} is raised in no simulated world"))
}
