//! Values that a library keeps with a communicator: [`Attributes`], by their types.

use crate::communicator::Communicator;
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The values that are kept with one communicator on one rank.
#[derive(Default)]
pub(crate) struct Attributes(Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

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
        let kept = &self.attributes().0;
        let key = TypeId::of::<T>();
        let there = kept.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let value = there.unwrap_or_else(|| {
            // The program's code runs without the lock.
            let made: Arc<dyn Any + Send + Sync> = Arc::new(make());
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.entry(key).or_insert(made).clone()
        });
        value.downcast().expect("the key is the type of the value")
    }
}
