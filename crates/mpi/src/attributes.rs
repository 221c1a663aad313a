//! Values that a library keeps with a communicator: `Communicator::attribute`.

use crate::communicator::Communicator;
use std::sync::Arc;

/// # Values kept with a communicator
impl Communicator {
    /// The value of this type that is kept with the communicator on this rank; `make` makes it at
    /// the first call. A library keeps there what it has made for the communicator, such as a
    /// [`dup`](Self::dup) of it or a table. All clones have the same values, and a `dup` has none.
    /// They are dropped with the last clone.
    ///
    /// The type is the key, so a library uses one of its own. If two threads make the first call at
    /// once, both values are made, and one is kept.
    ///
    /// # Examples
    /// ```
    /// use selvedge::mpi::{self, Communicator};
    ///
    /// /// How often a library was called with a communicator.
    /// #[derive(Default)]
    /// struct Calls(std::sync::atomic::AtomicU32);
    ///
    /// fn library(comm: &Communicator) -> u32 {
    ///     let calls = comm.attribute(Calls::default);
    ///     calls.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1
    /// }
    ///
    /// # selvedge::round_robin(async {
    /// mpi::run(2, |world| async move {
    ///     assert_eq!((library(&world), library(&world.clone())), (1, 2));
    ///     assert_eq!(library(&world.dup().await?), 1);
    ///     Ok::<_, mpi::Error>(())
    /// })
    /// .await
    /// # })?.unwrap();
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[doc(alias = "MPI_Comm_create_keyval")]
    #[doc(alias = "MPI_Comm_set_attr")]
    #[doc(alias = "MPI_Comm_get_attr")]
    #[doc(alias = "MPI_Comm_delete_attr")]
    pub fn attribute<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let kept = self.kept_values();
        // The program's code runs without a lock.
        kept.get().unwrap_or_else(|| kept.keep(make()))
    }
}
