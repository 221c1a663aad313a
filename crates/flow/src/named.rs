//! The name of a source, which its failures tell. `Inflow::named` makes a [`NamedSupply`].

use crate::role::{Inflow, Supply, WholeFile};
use selvedge_pipeline::{Item, StageError};
use std::borrow::Cow;

/// A supply with a name, which its failures tell. See [`Inflow::named`].
#[derive(Debug)]
pub struct NamedSupply<S> {
    supply: S,
    name: Cow<'static, str>,
}

impl<A, B, S, T> Inflow<A, B, S, T>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    S: Supply<A>,
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
    pub fn named(self, name: impl Into<Cow<'static, str>>) -> Inflow<A, B, NamedSupply<S>, T> {
        let supply = NamedSupply { supply: self.supply, name: name.into() };
        Inflow { supply, stages: self.stages }
    }
}

impl<A: Item + ?Sized, S: Supply<A>> Supply<A> for NamedSupply<S> {
    async fn next(&mut self) -> Result<Option<A::Chunk<'_>>, StageError> {
        let NamedSupply { supply, name } = self;
        supply.next().await.map_err(|failure| failure.renamed(name.clone()))
    }

    fn is_prompt(&self) -> bool {
        self.supply.is_prompt()
    }

    fn whole_file(&self) -> Option<WholeFile> {
        self.supply.whole_file().map(|file| WholeFile { name: Some(self.name.clone()), ..file })
    }

    async fn close(self) {
        self.supply.close().await;
    }
}
