//! [`Explorer`]: runs a program in every order of its threads' steps, one run after the other.
//! Tests call it; it runs each order as a [`Simulation`](crate::Simulation) with given choices
//! (`Replay` in `choice.rs`).
//!
//! `search` is the depth-first search. It relies on a program that does the same whenever it makes
//! the same choices.

use super::spare::Spare;
use super::{Simulation, SimulationError, VirtualTime};
use crate::World;
use selvedge_core::Events;
use std::future::Future;

/// Runs a program in every order in which its threads can make their steps, by depth-first search:
/// each run repeats the choices of the run before it up to the last choice that had an alternative,
/// and takes that alternative.
///
/// # Examples
/// ```
/// use selvedge::{spawn_local, yield_now};
/// use selvedge::sched::Explorer;
///
/// let explored = Explorer::new().check(|| async {
///     let threads = [0, 1].map(|_| spawn_local(async { yield_now().await }));
///     for thread in threads {
///         thread.await.unwrap();
///     }
/// });
/// let explored = explored.unwrap();
/// assert!(explored.complete && explored.schedules > 5, "{explored:?}");
/// ```
///
/// # Complexity
/// The number of orders grows exponentially with the number of steps at which several threads are
/// ready; with [`preemptions_max`](Explorer::preemptions_max) it grows polynomially.
#[derive(Clone, Debug)]
pub struct Explorer {
    preemptions_max: u32,
    schedules_max: u64,
    steps_max: u64,
}

impl Default for Explorer {
    fn default() -> Explorer {
        Explorer { preemptions_max: u32::MAX, schedules_max: 1_000_000, steps_max: 10_000 }
    }
}

/// The extent of an [`Explorer`]'s search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explored {
    /// How many orders the explorer ran.
    pub schedules: u64,
    /// Whether these are all orders that the explorer was to run: all orders, or all orders up to
    /// its limit of preemptions.
    pub complete: bool,
}

impl Explorer {
    /// An explorer of all orders, but of a million at most.
    pub fn new() -> Explorer {
        Explorer::default()
    }

    /// The explorer runs only the orders with at most this number of preemptions. A preemption is a
    /// step of another thread, or an arrival, while the thread of the last step is ready. Most bugs
    /// need one or two.
    pub fn preemptions_max(self, preemptions_max: u32) -> Explorer {
        Explorer { preemptions_max, ..self }
    }

    /// The explorer ends after this number of orders.
    pub fn schedules_max(self, schedules_max: u64) -> Explorer {
        Explorer { schedules_max, ..self }
    }

    /// A run that takes more steps fails with [`Why::TooManySteps`](crate::Why::TooManySteps). The
    /// default is ten thousand.
    pub fn steps_max(self, steps_max: u64) -> Explorer {
        Explorer { steps_max, ..self }
    }

    /// Runs the programs that `program` makes, which must all do the same.
    ///
    /// # Errors
    /// The first run that failed.
    pub fn check<F: Future + 'static>(
        &self,
        mut program: impl FnMut() -> F,
    ) -> Result<Explored, SimulationError> {
        self.check_with(|| (VirtualTime::new(), program()))
    }

    /// As [`check`](Explorer::check), for programs with another event source.
    ///
    /// # Errors
    /// The first run that failed.
    pub fn check_with<E: Events, F: Future + 'static>(
        &self,
        mut program: impl FnMut() -> (E, F),
    ) -> Result<Explored, SimulationError> {
        self.search(|simulation, made| {
            let (mut events, main) = program();
            simulation.run_noting(&mut events, main, None, made).map(drop)
        })
    }

    /// As [`check`](Explorer::check), for programs in a simulated world: with every order of the
    /// threads' steps and of the arrivals on its network. An arrival is an event that is due: a
    /// connection, bytes, a datagram, the end of a stream. The arrivals of one stream keep their
    /// order.
    ///
    /// The world's seed draws everything else, with the same result in each run. In
    /// [prompt](crate::Conditions::prompt) conditions all that was sent is due at once, so the
    /// explorer meets every order in which a network can deliver it. The explorer ignores the
    /// world's [order](World::order).
    ///
    /// # Errors
    /// The first run that failed. To repeat it, give the world its
    /// [schedule](SimulationError::schedule): `world.order(Simulation::replay(schedule))`.
    ///
    /// # Examples
    /// ```
    /// use selvedge::net::UdpSocket;
    /// use selvedge::sim::{Conditions, Explorer, World};
    /// use std::cell::Cell;
    ///
    /// let first = [Cell::new(0), Cell::new(0)];
    /// let count = std::rc::Rc::new(first);
    /// let world = World::new(1).conditions(Conditions::prompt());
    /// let explored = Explorer::new().check_world(&world, || {
    ///     let count = count.clone();
    ///     async move {
    ///         let receiver = UdpSocket::bind("127.0.0.1:53".parse().unwrap()).unwrap();
    ///         let sender = UdpSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    ///         for number in [0, 1] {
    ///             sender.send_to(&[number], receiver.local_addr().unwrap()).await.unwrap();
    ///         }
    ///         let mut number = [0];
    ///         receiver.recv_from(&mut number).await.unwrap();
    ///         let first = &count[usize::from(number[0])];
    ///         first.set(first.get() + 1);
    ///     }
    /// });
    /// assert!(explored.unwrap().complete);
    /// assert!(count[0].get() > 0 && count[1].get() > 0, "datagrams overtake each other");
    /// ```
    pub fn check_world<F: Future + 'static>(
        &self,
        world: &World,
        mut program: impl FnMut() -> F,
    ) -> Result<Explored, SimulationError> {
        self.search(|simulation, made| world.clone().order(simulation).run_noting(program(), made).map(drop))
    }

    /// Calls `run` with one order after the other. `run` notes each choice that was made.
    fn search(
        &self,
        mut run: impl FnMut(Simulation, &mut Vec<(u32, u32)>) -> Result<(), SimulationError>,
    ) -> Result<Explored, SimulationError> {
        let _spare = Spare::keep();
        let mut choices = Vec::new();
        for schedules in 1..=self.schedules_max {
            let simulation = Simulation::given(choices, self.preemptions_max).steps_max(self.steps_max);
            let mut made = Vec::new();
            run(simulation, &mut made)?;
            while made.pop_if(|(choice, of)| *choice + 1 == *of).is_some() {}
            let Some((last, _)) = made.last_mut() else {
                return Ok(Explored { schedules, complete: true });
            };
            *last += 1;
            choices = made.into_iter().map(|made| made.0).collect();
        }
        Ok(Explored { schedules: self.schedules_max, complete: false })
    }
}
