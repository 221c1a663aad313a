//! One stream of two that wait: `join_sources` takes the joins of `pipeline::join`.
//!
//! A join says which side it wants. The source waits for that side alone, and gives the items that
//! it has before it waits. So a side that is not wanted may be slow, or wait for ever.

use crate::reading::Reading;
use crate::role::{FlowSource, Source};
use selvedge_pipeline::{
    Item, Join, JoinStep, Keep, Merge, StageError, Store, Transduce, Unchanged, Upcoming,
};
use std::fmt;

/// How many items are joined at most before they go on.
const CHUNK: usize = 1024;

/// The source of [`join_sources`].
pub struct JoinedSources<A: Item + ?Sized, L, R, J> {
    left: L,
    right: R,
    join: J,
    over: bool,
    made: A::Store,
}

/// What [`join_sources`] returns: items of type `A`, of sources of `B` and of `C`.
pub type OneOfTwo<A, B, C, S, T, U, V, J> =
    FlowSource<A, A, JoinedSources<A, Reading<B, A, S, T>, Reading<C, A, U, V>, J>, Unchanged>;

/// One stream of two sources. The join may be any of
/// [`join`](mod@selvedge_pipeline::join), or one of your own.
///
/// The sources and their stages run in the thread that asks for the items. With
/// [`ahead`](crate::ahead) behind a side, that side runs in a thread of its own, and goes on while
/// the join waits for the other side. The result is the same.
///
/// When the join is finished, or a consumer behind it, then the left source is closed, and after it
/// the right one.
///
/// # Errors
/// The first failure of a side that the join waits for.
///
/// # Panics
/// If a join of your own wants an item that it has.
///
/// # Complexity
/// Two copies of each item. At most one chunk of each side is kept.
///
/// # Paper
/// [Pipes, Parting and joining the stream] `Join`, for ends that wait.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{collect, from_iter, join, lift121};
/// use selvedge::flow::{ahead, join_sources, made};
///
/// let sorted = selvedge::run(async {
///     let squares = from_iter(1..=4) >> lift121(|n: &u64| n * n) >> ahead(1);
///     let evens = made(from_iter([2, 4, 6]));
///     (join_sources(squares, evens, join::merge(u64::cmp)) >> collect()).run().await
/// });
/// assert_eq!(sorted.unwrap().unwrap(), [1, 2, 4, 4, 6, 9, 16]);
/// ```
pub fn join_sources<A, B, C, S, T, U, V, J>(
    left: FlowSource<B, A, S, T>,
    right: FlowSource<C, A, U, V>,
    join: Join<A, J>,
) -> OneOfTwo<A, B, C, S, T, U, V, J>
where
    A: Item<Store: Send> + ?Sized,
    B: Item + ?Sized,
    C: Item + ?Sized,
    S: Source<B>,
    T: Transduce<B, A> + Send,
    U: Source<C>,
    V: Transduce<C, A> + Send,
    J: Merge<A> + Send,
{
    FlowSource::new(JoinedSources {
        left: left.pull(),
        right: right.pull(),
        join: join.into_stage(),
        over: false,
        made: A::Store::default(),
    })
}

impl<A, B, C, S, T, U, V, J> Source<A> for JoinedSources<A, Reading<B, A, S, T>, Reading<C, A, U, V>, J>
where
    A: Item<Store: Send> + ?Sized,
    B: Item + ?Sized,
    C: Item + ?Sized,
    S: Source<B>,
    T: Transduce<B, A> + Send,
    U: Source<C>,
    V: Transduce<C, A> + Send,
    J: Merge<A> + Send,
{
    async fn next(&mut self) -> Result<Option<A::Chunk<'_>>, StageError> {
        const WANTS: &str = "a join wants an item that it has";
        self.made.clear();
        while !self.over && self.made.count() < CHUNK {
            let JoinedSources { left, right, join, made, .. } = self;
            match join.step(left.upcoming(), right.upcoming(), &mut Keep(made)) {
                JoinStep::Took { left: from_left, right: from_right } => {
                    left.take(usize::from(from_left));
                    right.take(usize::from(from_right));
                }
                // The items that are joined go on before the join waits.
                JoinStep::WantsLeft | JoinStep::WantsRight if made.count() > 0 => break,
                JoinStep::WantsLeft => {
                    assert!(matches!(left.upcoming(), Upcoming::Unknown), "{WANTS}");
                    left.fill().await?;
                }
                JoinStep::WantsRight => {
                    assert!(matches!(right.upcoming(), Upcoming::Unknown), "{WANTS}");
                    right.fill().await?;
                }
                JoinStep::Finished => self.over = true,
            }
        }
        Ok((self.made.count() > 0).then(|| self.made.all()))
    }

    async fn close(self) {
        self.left.close().await;
        self.right.close().await;
    }
}

impl<A: Item + ?Sized, L, R, J> fmt::Debug for JoinedSources<A, L, R, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinedSources").field("over", &self.over).finish_non_exhaustive()
    }
}
