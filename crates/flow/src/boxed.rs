//! Sources behind a pointer: pipelines that are put together while the program runs.
//!
//! Programs call [`Inflow::boxed`]; `apps/pipe` has each source of a script in a [`BoxedInflow`].
//! `DynSupply` is [`Supply`] with boxed futures, because a trait with methods that return `impl
//! Future` cannot be a trait object.

use crate::role::{Inflow, Supply, WholeFile};
use selvedge_pipeline::{Item, StageError, Unchanged};
use std::fmt;
use std::pin::Pin;

type BoxedFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The output of the future of [`Supply::next`].
type NextChunk<'a, A> = Result<Option<<A as Item>::Chunk<'a>>, StageError>;

/// A supply behind a pointer.
trait DynSupply<A: Item + ?Sized>: Send {
    fn upcoming(&mut self) -> BoxedFuture<'_, NextChunk<'_, A>>;
    fn prompt(&self) -> bool;
    fn file(&self) -> Option<WholeFile>;
    fn shut(self: Box<Self>) -> BoxedFuture<'static, ()>;
}

impl<A: Item + ?Sized, S: Supply<A> + 'static> DynSupply<A> for S {
    fn upcoming(&mut self) -> BoxedFuture<'_, NextChunk<'_, A>> {
        Box::pin(self.next())
    }

    fn prompt(&self) -> bool {
        self.is_prompt()
    }

    fn file(&self) -> Option<WholeFile> {
        self.whole_file()
    }

    fn shut(self: Box<Self>) -> BoxedFuture<'static, ()> {
        Box::pin((*self).close())
    }
}

/// The supply of [`Inflow::boxed`]: its type names the items and nothing else.
pub struct BoxedSupply<A: Item + ?Sized> {
    supply: Box<dyn DynSupply<A>>,
}

/// A source without stages, of a type that names the items and nothing else.
pub type BoxedInflow<A> = Inflow<A, A, BoxedSupply<A>, Unchanged>;

impl<A: Item + ?Sized, S: Supply<A> + 'static> Inflow<A, A, S, Unchanged> {
    /// The same source, of a type that names the items and nothing else.
    ///
    /// A program that puts a pipeline together while it runs has its sources in variables of one
    /// type. [`file()`](crate::file), [`command`](crate::command), [`through`](crate::through) and
    /// [`ahead`](crate::ahead) make sources without stages, which can be boxed.
    ///
    /// # Complexity
    /// An allocation for each chunk.
    ///
    /// # Examples
    /// ```
    /// use selvedge::pipeline::{collect, from_chunks};
    /// use selvedge::flow::{BoxedInflow, command, made, through};
    /// use selvedge::process::Command;
    ///
    /// fn source(name: &str) -> BoxedInflow<u8> {
    ///     match name {
    ///         "date" => command(Command::new("date")).boxed(),
    ///         text => made(from_chunks([text.to_string()])).boxed(),
    ///     }
    /// }
    ///
    /// let mut words = source("weft\nwarp\n");
    /// for program in ["sort", "cat"] {
    ///     words = (words >> through(Command::new(program))).boxed();
    /// }
    /// let sorted = selvedge::run_local(async { (words >> collect()).run().await });
    /// assert_eq!(sorted.unwrap().unwrap(), b"warp\nweft\n");
    /// ```
    pub fn boxed(self) -> BoxedInflow<A> {
        Inflow::new(BoxedSupply { supply: Box::new(self.supply) })
    }
}

impl<A: Item + ?Sized> BoxedInflow<A> {
    /// The supply inside, for a supply of your own that takes items from it.
    pub fn into_supply(self) -> BoxedSupply<A> {
        self.supply
    }
}

impl<A: Item + ?Sized> Supply<A> for BoxedSupply<A> {
    async fn next(&mut self) -> Result<Option<A::Chunk<'_>>, StageError> {
        self.supply.upcoming().await
    }

    fn is_prompt(&self) -> bool {
        self.supply.prompt()
    }

    fn whole_file(&self) -> Option<WholeFile> {
        self.supply.file()
    }

    async fn close(self) {
        self.supply.shut().await;
    }
}

impl<A: Item + ?Sized> fmt::Debug for BoxedSupply<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoxedSupply").finish_non_exhaustive()
    }
}
