//! [`Window`]: memory of each rank that the other ranks read and change without a call of its own.
//!
//! A thread of each rank serves its memory (`window/server.rs`). The operations are messages to it,
//! in a communicator of the window's own, so a window works on every engine. Messages between two
//! ranks do not overtake, so an answer says that all earlier operations of its rank are done.
//!
//! # Why a window is no `MPI_Win` over the MPI library
//! - The library need not make progress for a rank that is in none of its calls. While the target
//!   slept for 3 s outside of MPI, a put and `MPI_Win_flush` took 3.0 s with MPICH 4.0 and with the
//!   component `pt2pt` of Open MPI 4.1, and 7 us with its component `sm`. Open MPI 4.1 as Debian
//!   installs it chose the component `rdma`, and the target died of a segmentation fault. Here a
//!   worker of the target serves the memory, and the bell wakes it.
//! - `MPI_Win_flush` waits inside the library, and has no form that does not. An OS thread that
//!   waits there holds the driver (`libmpi/shared_driver.rs`), so no message of this rank would
//!   move, and the target may be a rank that waits for one. `MPI_Compare_and_swap` has no request,
//!   so it needs that call.
//! - `MPI_Accumulate` takes MPI's own operations on MPI's own numbers. A window takes any function
//!   of any plain data.
//! - MPI has no release of a lock of a rank that has died.

mod server;

use crate::Tag;
use crate::communicator::Communicator;
use crate::error::{CallSite, Error, ErrorClass};
use crate::payload::Message;
use bytemuck::Pod;
use selvedge_core::spawn;
use server::{WindowCommand, WindowOrder, WindowServer};
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The elements of a window: plain data that are messages too, and may be compared.
pub trait WindowElement: Pod + Message + Sync + PartialEq {}

impl<T: Pod + Message + Sync + PartialEq> WindowElement for T {}

/// Memory of each rank that all ranks of a communicator read and change: one-sided access.
///
/// [`put`](Window::put), [`accumulate`](Window::accumulate) and [`get`](Window::get) name a rank
/// and a place in its memory. The rank itself calls nothing. A put or an accumulate is done when
/// the next [`flush`](Window::flush), [`fence`](Window::fence) or unlock of its rank has ended.
/// Each operation on one rank's memory is done in one piece: where two puts overlap, the elements
/// of one of them stay, and not some of each.
///
/// # Cancellation
/// An operation that has been called is done, also if its future is dropped: no other rank can tell
/// the difference. The answer to a dropped [`get`](Window::get) or
/// [`fetch_and_op`](Window::fetch_and_op) has no taker, and takes memory until the rank has ended.
/// A dropped [`lock`](Window::lock) gives up its place among the ranks that wait, or releases the
/// lock when it comes.
///
/// # When a rank ends
/// What a rank has put before it panics is there: its messages come before its end. A lock that it
/// has is released, by the destructor of [`LockedWindow`] or, if its process is killed, by the rank
/// that owns the memory, which hears of the end. Elements that it was about to change under a lock
/// are as it left them. So a program that must not see half a change keeps a mark of its own, such
/// as a number that is odd during the change.
///
/// A panic in the closure of [`write`](Window::write) leaves the elements as the closure left them,
/// and the memory is served on until the rank has ended. From then on its memory is gone: each call
/// for it is an error of the class [`Ended`](ErrorClass::Ended), and [`fence`](Window::fence) and
/// [`free`](Window::free) are too, because they ask every rank.
///
/// # Complexity
/// A message for each operation, and another one for each result. Each rank has a thread that
/// serves its memory until [`free`](Window::free), or until the rank has ended.
///
/// # Examples
/// ```
/// use selvedge::mpi;
///
/// # selvedge::round_robin(async {
/// mpi::run(4, |world| async move {
///     // Each rank has one counter, and each adds its number to all of them.
///     let window = world.window(vec![0_u64], mpi::op::sum).await?;
///     for rank in 0..world.size() {
///         window.accumulate(rank, 0, &[world.rank() as u64])?;
///     }
///     window.fence().await?;
///     assert_eq!(window.read(|own| own[0]), 6);
///
///     // A number that each rank draws once.
///     let ticket = window.fetch_and_op(0, 0, 1).await?;
///     assert!((6..10).contains(&ticket));
///     window.free().await
/// })
/// .await
/// # })?.unwrap();
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[doc(alias = "MPI_Win")]
pub struct Window<T> {
    comm: Communicator,
    memory: Arc<Mutex<Vec<T>>>,
    /// The number of elements of each rank.
    lengths: Vec<usize>,
    /// The number of the next operation with an answer.
    next: AtomicU32,
}

/// Whether ranks may have a lock at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowLock {
    /// With other ranks that have it shared.
    #[doc(alias = "MPI_LOCK_SHARED")]
    Shared,
    /// Alone.
    #[doc(alias = "MPI_LOCK_EXCLUSIVE")]
    Exclusive,
}

/// A lock of the memory of one rank, until it is dropped or [unlocked](LockedWindow::unlock).
#[must_use = "the lock is released when it is dropped"]
pub struct LockedWindow<'w, T: WindowElement> {
    window: &'w Window<T>,
    target: usize,
    /// The answer that has told the lock, until it is released.
    lock: Option<u32>,
}

impl Communicator {
    /// Makes a window of these elements of each rank, whatever their number. `op` combines an
    /// element that is there with one that comes, for [`accumulate`](Window::accumulate) and
    /// [`fetch_and_op`](Window::fetch_and_op). Every rank makes the same call, with the same
    /// operation.
    ///
    /// # Errors
    /// As for [`barrier`](Self::barrier).
    ///
    /// # Panics
    /// Outside of a Selvedge thread.
    ///
    /// # Examples
    /// See [`Window`].
    #[doc(alias = "MPI_Win_create")]
    #[doc(alias = "MPI_Win_allocate")]
    #[track_caller]
    pub fn window<T: WindowElement>(
        &self,
        elements: Vec<T>,
        op: impl Fn(T, T) -> T + Send + 'static,
    ) -> impl Future<Output = Result<Window<T>, Error>> + Send {
        self.window_of(self.call("window"), elements, op)
    }

    /// A window that an operation makes which the program has called.
    pub(crate) async fn window_of<T: WindowElement>(
        &self,
        call: CallSite,
        elements: Vec<T>,
        op: impl Fn(T, T) -> T + Send + 'static,
    ) -> Result<Window<T>, Error> {
        let all = self.exchange(call, (elements.len(), self.propose_context())).await?;
        let comm = self.made(all[0].1, self.group().clone()).expect("each rank is in its group");
        let memory = Arc::new(Mutex::new(elements));
        let server = WindowServer::new(comm.clone(), call, memory.clone(), op);
        drop(spawn(server.serve()));
        let lengths = all.into_iter().map(|(length, _)| length).collect();
        Ok(Window { comm, memory, lengths, next: AtomicU32::new(0) })
    }
}

impl<T: WindowElement> Window<T> {
    /// The number of elements in the memory of a rank.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn len(&self, rank: usize) -> usize {
        self.lengths[rank]
    }

    /// Reads the memory of this rank.
    pub fn read<R>(&self, read: impl FnOnce(&[T]) -> R) -> R {
        read(&self.memory.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the memory of this rank. Operations of other ranks wait meanwhile.
    pub fn write<R>(&self, write: impl FnOnce(&mut [T]) -> R) -> R {
        write(&mut self.memory.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Starts to replace elements of a rank, from the place `at` on.
    ///
    /// # Errors
    /// If there is no such rank or place, or if the rank has ended.
    #[doc(alias = "MPI_Put")]
    #[track_caller]
    pub fn put(&self, target: usize, at: usize, elements: &[T]) -> Result<(), Error> {
        let call = self.comm.call("put");
        self.check(call, target, at, elements.len())?;
        WindowOrder::of_elements(WindowCommand::Put, at, elements).send(&self.comm, call, target)
    }

    /// Starts to combine elements of a rank, from the place `at` on, with these.
    ///
    /// # Errors
    /// As for [`put`](Self::put).
    #[doc(alias = "MPI_Accumulate")]
    #[track_caller]
    pub fn accumulate(&self, target: usize, at: usize, elements: &[T]) -> Result<(), Error> {
        let call = self.comm.call("accumulate");
        self.check(call, target, at, elements.len())?;
        WindowOrder::of_elements(WindowCommand::Accumulate, at, elements).send(&self.comm, call, target)
    }

    /// Gives this number of elements of a rank, from the place `at` on.
    ///
    /// # Errors
    /// As for [`put`](Self::put).
    #[doc(alias = "MPI_Get")]
    #[track_caller]
    pub fn get(
        &self,
        target: usize,
        at: usize,
        count: usize,
    ) -> impl Future<Output = Result<Vec<T>, Error>> + Send {
        let call = self.comm.call("get");
        let checked = self.check(call, target, at, count);
        async move {
            checked?;
            let order = WindowOrder { at, count, ..WindowOrder::new(WindowCommand::Get) };
            self.ask(call, target, order).await
        }
    }

    /// Combines an element of a rank with this one, and gives the element that was there before.
    ///
    /// # Errors
    /// As for [`put`](Self::put).
    #[doc(alias = "MPI_Fetch_and_op")]
    #[doc(alias = "MPI_Get_accumulate")]
    #[track_caller]
    pub fn fetch_and_op(
        &self,
        target: usize,
        at: usize,
        value: T,
    ) -> impl Future<Output = Result<T, Error>> + Send {
        let call = self.comm.call("fetch_and_op");
        let checked = self.check(call, target, at, 1);
        async move {
            checked?;
            let order = WindowOrder::of_elements(WindowCommand::FetchAndOp, at, &[value]);
            Ok(self.ask(call, target, order).await?[0])
        }
    }

    /// Replaces an element of a rank by `new` if it is equal to `expected`. Gives the element that
    /// was there before.
    ///
    /// # Errors
    /// As for [`put`](Self::put).
    #[doc(alias = "MPI_Compare_and_swap")]
    #[track_caller]
    pub fn compare_and_swap(
        &self,
        target: usize,
        at: usize,
        expected: T,
        new: T,
    ) -> impl Future<Output = Result<T, Error>> + Send {
        let call = self.comm.call("compare_and_swap");
        let checked = self.check(call, target, at, 1);
        async move {
            checked?;
            let order = WindowOrder::of_elements(WindowCommand::CompareAndSwap, at, &[expected, new]);
            Ok(self.ask(call, target, order).await?[0])
        }
    }

    /// Waits until all operations of this rank on the memory of that one are done.
    ///
    /// # Errors
    /// If there is no such rank, or if it has ended.
    #[doc(alias = "MPI_Win_flush")]
    #[track_caller]
    pub fn flush(&self, target: usize) -> impl Future<Output = Result<(), Error>> + Send {
        let call = self.comm.call("flush");
        async move { self.ask(call, target, WindowOrder::new(WindowCommand::Flush)).await.map(drop) }
    }

    /// Waits until all operations of all ranks are done. Every rank calls it: what was put before
    /// is there for each rank afterwards.
    ///
    /// # Errors
    /// If a rank has ended.
    #[doc(alias = "MPI_Win_fence")]
    #[track_caller]
    pub fn fence(&self) -> impl Future<Output = Result<(), Error>> + Send {
        self.settle(self.comm.call("fence"))
    }

    async fn settle(&self, call: CallSite) -> Result<(), Error> {
        for target in 0..self.comm.size() {
            self.ask(call, target, WindowOrder::new(WindowCommand::Flush)).await?;
        }
        self.comm.exchange(call, ()).await.map(drop)
    }

    /// Locks the memory of a rank against the other ranks that lock it. The rank itself calls
    /// nothing.
    ///
    /// # Errors
    /// As for [`flush`](Self::flush).
    ///
    /// # Deadlock
    /// If a rank that has the lock of one memory waits for another one, and so round in a circle.
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi::{self, WindowLock};
    ///
    /// # selvedge::round_robin(async {
    /// mpi::run(3, |world| async move {
    ///     let window = world.window(vec![0, 0], mpi::op::sum).await?;
    ///     let locked = window.lock(0, WindowLock::Exclusive).await?;
    ///     let pair = window.get(0, 0, 2).await?;
    ///     window.put(0, 0, &[pair[0] + 1, pair[1] + 2])?;
    ///     locked.unlock().await?;
    ///     window.fence().await?;
    ///     let expected = if world.rank() == 0 { [3, 6] } else { [0, 0] };
    ///     assert_eq!(window.read(<[i32]>::to_vec), expected);
    ///     window.free().await
    /// })
    /// .await
    /// # })?.unwrap();
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[doc(alias = "MPI_Win_lock")]
    #[track_caller]
    pub fn lock(
        &self,
        target: usize,
        lock: WindowLock,
    ) -> impl Future<Output = Result<LockedWindow<'_, T>, Error>> + Send {
        let call = self.comm.call("lock");
        async move {
            let command = match lock {
                WindowLock::Shared => WindowCommand::LockShared,
                WindowLock::Exclusive => WindowCommand::LockExclusive,
            };
            let number = self.order(call, target, WindowOrder::new(command))?;
            // From the order on, so that a lock is released that comes when this has been dropped.
            let locked = LockedWindow { window: self, target, lock: Some(number) };
            server::answer::<T>(&self.comm, call, target, Tag(number)).await?;
            Ok(locked)
        }
    }

    /// Ends the window: waits for all operations, as [`fence`](Self::fence), and ends the thread of
    /// this rank. Every rank calls it. A window that is dropped is served until the rank has ended.
    ///
    /// # Errors
    /// If a rank has ended.
    #[doc(alias = "MPI_Win_free")]
    #[track_caller]
    pub fn free(self) -> impl Future<Output = Result<(), Error>> + Send {
        let call = self.comm.call("free");
        async move { self.end(call).await }
    }

    /// As [`free`](Self::free), where other threads of the rank have the window too.
    pub(crate) async fn end(&self, call: CallSite) -> Result<(), Error> {
        self.settle(call).await?;
        WindowOrder::<T>::new(WindowCommand::Stop).send(&self.comm, call, self.comm.rank())
    }

    /// # Errors
    /// If there is no such rank, or its memory has not these places.
    fn check(&self, call: CallSite, target: usize, at: usize, count: usize) -> Result<(), Error> {
        self.comm.check_rank(target, call, ErrorClass::Rank)?;
        let length = self.lengths[target];
        match at.checked_add(count) {
            Some(end) if end <= length => Ok(()),
            _ => {
                let text = format!("{count} elements from {at} on: rank {target} has {length}");
                Err(call.error(ErrorClass::Buffer, text))
            }
        }
    }

    /// Sends an order that has an answer. Gives the tag of the answer.
    fn order(&self, call: CallSite, target: usize, order: WindowOrder<T>) -> Result<u32, Error> {
        self.comm.check_rank(target, call, ErrorClass::Rank)?;
        let answer = self.next.fetch_add(1, Ordering::Relaxed) % Tag::MAX.0 + 1;
        WindowOrder { answer, ..order }.send(&self.comm, call, target)?;
        Ok(answer)
    }

    /// Sends an order, and waits for its answer.
    async fn ask(&self, call: CallSite, target: usize, order: WindowOrder<T>) -> Result<Vec<T>, Error> {
        let answer = self.order(call, target, order)?;
        server::answer(&self.comm, call, target, Tag(answer)).await
    }
}

impl<T: WindowElement> LockedWindow<'_, T> {
    /// Releases the lock, when all operations of this rank on that memory are done.
    ///
    /// # Errors
    /// As for [`Window::flush`].
    #[doc(alias = "MPI_Win_unlock")]
    #[track_caller]
    pub fn unlock(mut self) -> impl Future<Output = Result<(), Error>> + Send {
        let call = self.window.comm.call("unlock");
        async move {
            let order = self.release().expect("it is released once");
            self.window.ask(call, self.target, order).await.map(drop)
        }
    }

    /// The order that releases the lock, if it is not released.
    fn release(&mut self) -> Option<WindowOrder<T>> {
        let count = self.lock.take()? as usize;
        Some(WindowOrder { count, ..WindowOrder::new(WindowCommand::Unlock) })
    }
}

impl<T: WindowElement> Drop for LockedWindow<'_, T> {
    fn drop(&mut self) {
        if let Some(order) = self.release() {
            // A rank that has ended has no lock.
            let _ = order.send(&self.window.comm, self.window.comm.call("unlock"), self.target);
        }
    }
}

impl<T> fmt::Debug for Window<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Window({:?}, of {:?} elements)", self.comm, self.lengths)
    }
}

impl<T: WindowElement> fmt::Debug for LockedWindow<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LockedWindow(of rank {})", self.target)
    }
}
