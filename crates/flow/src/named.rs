//! The name of a source, which its failures tell. `FlowSource::named` makes a [`NamedSource`].

use crate::role::{FlowSource, Source, WholeFile};
use selvedge_pipeline::{Item, StageError};
use std::borrow::Cow;

/// A source with a name, which its failures tell. See [`FlowSource::named`].
#[derive(Debug)]
pub struct NamedSource<S> {
    source: S,
    name: Cow<'static, str>,
}

impl<A, B, S, T> FlowSource<A, B, S, T>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    S: Source<A>,
{
    /// Gives the source a name, which its [`StageError`] tells. The stages after it keep theirs.
    ///
    /// A source that runs stages of its own, as [`ahead`](crate::ahead) does, tells the name for
    /// these too.
    ///
    /// # Examples
    /// ```
    /// use selvedge::pipeline::count;
    /// use selvedge::flow::file;
    ///
    /// let failed = selvedge::run(async {
    ///     let source = file("/nowhere/a").named("the access log");
    ///     (source >> count()).run().await.unwrap_err()
    /// });
    /// assert_eq!(failed.unwrap().stage(), "the access log");
    /// ```
    pub fn named(self, name: impl Into<Cow<'static, str>>) -> FlowSource<A, B, NamedSource<S>, T> {
        let source = NamedSource { source: self.source, name: name.into() };
        FlowSource { source, stages: self.stages }
    }
}

impl<A: Item + ?Sized, S: Source<A>> Source<A> for NamedSource<S> {
    async fn next(&mut self) -> Result<Option<A::Chunk<'_>>, StageError> {
        let NamedSource { source, name } = self;
        source.next().await.map_err(|failure| failure.renamed(name.clone()))
    }

    fn is_prompt(&self) -> bool {
        self.source.is_prompt()
    }

    fn whole_file(&self) -> Option<WholeFile> {
        self.source.whole_file().map(|file| WholeFile { name: Some(self.name.clone()), ..file })
    }

    async fn close(self) {
        self.source.close().await;
    }
}
