//! Sources behind a pointer: pipelines that are put together while the program runs.
//!
//! Programs call [`FlowSource::boxed`]; `apps/pipe` has each source of a script in a
//! [`BoxedFlowSource`]. `DynSource` is [`Source`] with boxed futures, because a trait with methods
//! that return `impl Future` cannot be a trait object.

use crate::role::{FlowSource, Source, WholeFile};
use selvedge_pipeline::{Item, StageError, Unchanged};
use std::fmt;
use std::pin::Pin;

type BoxedFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The output of the future of [`Source::next`].
type NextChunk<'a, A> = Result<Option<<A as Item>::Chunk<'a>>, StageError>;

/// A source behind a pointer.
trait DynSource<A: Item + ?Sized>: Send {
    fn upcoming(&mut self) -> BoxedFuture<'_, NextChunk<'_, A>>;
    fn prompt(&self) -> bool;
    fn file(&self) -> Option<WholeFile>;
    fn shut(self: Box<Self>) -> BoxedFuture<'static, ()>;
}

impl<A: Item + ?Sized, S: Source<A> + 'static> DynSource<A> for S {
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

/// The source of [`FlowSource::boxed`]: its type names the items and nothing else.
pub struct BoxedSource<A: Item + ?Sized> {
    source: Box<dyn DynSource<A>>,
}

/// A source without stages, of a type that names the items and nothing else.
pub type BoxedFlowSource<A> = FlowSource<A, A, BoxedSource<A>, Unchanged>;

impl<A: Item + ?Sized, S: Source<A> + 'static> FlowSource<A, A, S, Unchanged> {
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
    /// use selvedge::flow::{BoxedFlowSource, command, made, through};
    /// use selvedge::process::Command;
    ///
    /// fn source(name: &str) -> BoxedFlowSource<u8> {
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
    pub fn boxed(self) -> BoxedFlowSource<A> {
        FlowSource::new(BoxedSource { source: Box::new(self.source) })
    }
}

impl<A: Item + ?Sized> BoxedFlowSource<A> {
    /// The source inside, for a source of your own that takes items from it.
    pub fn into_inner(self) -> BoxedSource<A> {
        self.source
    }
}

impl<A: Item + ?Sized> Source<A> for BoxedSource<A> {
    async fn next(&mut self) -> Result<Option<A::Chunk<'_>>, StageError> {
        self.source.upcoming().await
    }

    fn is_prompt(&self) -> bool {
        self.source.prompt()
    }

    fn whole_file(&self) -> Option<WholeFile> {
        self.source.file()
    }

    async fn close(self) {
        self.source.shut().await;
    }
}

impl<A: Item + ?Sized> fmt::Debug for BoxedSource<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoxedSource").finish_non_exhaustive()
    }
}
