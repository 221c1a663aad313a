//! What [`TQueue`](crate::TQueue) and [`TBQueue`](crate::TBQueue) have in common.

/// The operations of a queue that follow from its `try_pop` and `try_peek`, and its handles.
/// `$shared` is the field with what the handles share, and `$cost` says what a `pop` costs.
macro_rules! queue {
    ($name:ident, $shared:ident, $cost:literal) => {
        impl<T: Send + Sync + 'static, E: Engine> $name<T, E> {
            /// Takes a clone of the first value, which leaves the queue; retries while the queue is
            /// empty.
            ///
            /// # Errors
            /// As [`TVar::read`](crate::TVar::read) and [`Tx::retry`].
            ///
            /// # Complexity
            #[doc = $cost]
            #[must_use = "the operation may end the attempt: hand its error on with `?`"]
            pub fn pop(&self, tx: &Tx<E>) -> Tried<T>
            where
                T: Clone,
            {
                tx.some_or_retry(self.try_pop(tx)?)
            }

            /// A reference to the first value, which stays; retries while the queue is empty.
            ///
            /// # Errors
            /// As [`TVar::read`](crate::TVar::read) and [`Tx::retry`].
            #[must_use = "the operation may end the attempt: hand its error on with `?`"]
            pub fn peek<'tx>(&self, tx: &'tx Tx<E>) -> Tried<&'tx T> {
                tx.some_or_retry(self.try_peek(tx)?)
            }

            /// Whether the queue is empty.
            ///
            /// # Errors
            /// As [`TVar::read`](crate::TVar::read).
            #[must_use = "the operation may end the attempt: hand its error on with `?`"]
            pub fn is_empty(&self, tx: &Tx<E>) -> Tried<bool> {
                Ok(self.try_peek(tx)?.is_none())
            }
        }

        identity!(
            [T: Send + Sync + 'static, E: Engine] $name<T, E>,
            handle => Arc::as_ptr(&handle.$shared)
        );

        impl<T: Send + Sync + 'static, E: Engine> Clone for $name<T, E> {
            /// Another handle to the same queue.
            fn clone(&self) -> Self {
                $name { $shared: self.$shared.clone() }
            }
        }
    };
}

pub(crate) use queue;
