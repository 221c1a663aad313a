//! [`KeptValues`]: values that are kept with a communicator, by their types.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The values that are kept with one communicator on one rank.
#[derive(Default)]
pub(crate) struct KeptValues(Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl KeptValues {
    fn lock(&self) -> MutexGuard<'_, HashMap<TypeId, Arc<dyn Any + Send + Sync>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value of this type, if one is kept.
    pub(crate) fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let value = self.lock().get(&TypeId::of::<T>()).cloned()?;
        Some(value.downcast().expect("the key is the type of the value"))
    }

    /// Keeps a value, unless one of its type is kept. Gives the value that is kept.
    pub(crate) fn keep<T: Send + Sync + 'static>(&self, value: T) -> Arc<T> {
        let value: Arc<dyn Any + Send + Sync> = Arc::new(value);
        let kept = self.lock().entry(TypeId::of::<T>()).or_insert_with(|| value.clone()).clone();
        kept.downcast().expect("the key is the type of the value")
    }
}
