//! [`SortedSource`]: the stage `sort` of a pipeline, as a source of the stages behind it.
//!
//! `Stream::grown` in `stream.rs` makes one. It sorts in memory what fits there. When the items
//! need more, it writes them as a sorted run, and at the end it merges the runs. The pool sorts,
//! writes and reads, so the threads of the pipeline wait for no disk.

use super::runs::{Merge, Runs};
use super::{Gathered, Sorted};
use crate::language::tree::{Order, Stage};
use crate::source::{failed, on_pool};
use crate::stage::stream_name;
use selvedge_flow::{BoxedSource, Source};
use selvedge_pipeline::{Chunk, StageError, Store};
use std::fmt;
use std::ops::ControlFlow;

/// The bytes of a chunk that it yields, more or less.
const CHUNK: usize = 256 << 10;

/// How much memory the items of a `sort` may need, if nothing is known of the memory.
const DEFAULT: usize = 1 << 30;

/// How much memory the items of a `sort` may need if the script does not say: half of what is free.
fn half_of_memory() -> usize {
    let free = || {
        let text = std::fs::read_to_string("/proc/meminfo").ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        line.trim().strip_suffix(" kB")?.parse::<usize>().ok()?.checked_mul(1024)
    };
    free().map_or(DEFAULT, |free| free / 2)
}

/// The supply of a `sort`.
pub struct SortedSource<A: Sorted + ?Sized> {
    source: BoxedSource<A>,
    order: Order,
    /// The name of a failure of the temporary files.
    name: String,
    /// How many bytes of memory the items may need.
    most: usize,
    sorting: Sorting<A>,
    out: A::Store,
}

/// What has become of the items.
enum Sorting<A: Sorted + ?Sized> {
    /// The source has not ended.
    Gathers,
    /// All are in memory, and this number have been passed on.
    InMemory(Gathered<A::Store>, usize),
    Merges(Merge<A>),
    /// They were lost with a thread of the pool, or by a failure of the files.
    Lost,
}

impl<A: Sorted + ?Sized> fmt::Debug for SortedSource<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SortedSource")
            .field("order", &self.order)
            .field("most", &self.most)
            .finish_non_exhaustive()
    }
}

impl<A: Sorted + ?Sized> SortedSource<A> {
    /// The items of `source` in the order of the stage `stage`.
    pub fn new(stage: &Stage, order: Order, source: BoxedSource<A>) -> SortedSource<A> {
        SortedSource {
            source,
            order,
            name: stream_name(stage, "temporary file"),
            most: order.memory.unwrap_or_else(half_of_memory),
            sorting: Sorting::Gathers,
            out: A::Store::default(),
        }
    }

    /// Takes all items of the source.
    async fn gather(&mut self) -> Result<Sorting<A>, StageError> {
        let (order, mut runs, mut items) = (self.order, Runs::default(), Gathered::<A::Store>::default());
        let mut weight = 0;
        loop {
            {
                let Some(chunk) = self.source.next().await? else { break };
                let _never_breaks = chunk.each(|item| {
                    weight += item.weight();
                    ControlFlow::Continue(())
                });
                items.items().keep_all(chunk);
            }
            if weight < self.most {
                continue;
            }
            weight = 0;
            let spill = move || {
                items.sort::<A>(order);
                runs.add::<A>(&mut items, order).map(|()| (runs, items))
            };
            (runs, items) = on_pool(spill).await.flatten().map_err(|error| failed(&self.name, 0, error))?;
        }
        let sort = move || {
            items.sort::<A>(order);
            if runs.is_empty() {
                return Ok(Sorting::InMemory(items, 0));
            }
            runs.add::<A>(&mut items, order)?;
            drop(items);
            Ok(Sorting::Merges(runs.merge(order)?))
        };
        on_pool(sort).await.flatten().map_err(|error| failed(&self.name, 0, error))
    }
}

impl<A: Sorted + ?Sized> SortedSource<A> {
    /// The next item, as it lies in memory.
    fn lend_large(&mut self) -> Option<A::Chunk<'_>> {
        let Sorting::InMemory(items, from) = &mut self.sorting else { return None };
        let at = std::mem::replace(from, *from + 1);
        items.large::<A>(at, CHUNK).map(A::Chunk::one)
    }
}

impl<A: Sorted + ?Sized> Source<A> for SortedSource<A> {
    async fn next(&mut self) -> Result<Option<A::Chunk<'_>>, StageError> {
        if let Sorting::Gathers = self.sorting {
            self.sorting = self.gather().await?;
        }
        self.out.clear();
        if let Sorting::InMemory(items, from) = &self.sorting
            && items.large::<A>(*from, CHUNK).is_some()
        {
            return Ok(self.lend_large());
        }
        match std::mem::replace(&mut self.sorting, Sorting::Lost) {
            Sorting::InMemory(items, from) => {
                let next = items.copy_some::<A>(from, CHUNK, &mut self.out);
                self.sorting = Sorting::InMemory(items, next);
            }
            Sorting::Merges(mut merge) => {
                let mut out = std::mem::take(&mut self.out);
                let copied = on_pool(move || merge.copy_some(CHUNK, &mut out).map(|()| (merge, out))).await;
                let (merge, out) = copied.flatten().map_err(|error| failed(&self.name, 0, error))?;
                (self.sorting, self.out) = (Sorting::Merges(merge), out);
            }
            other => self.sorting = other,
        }
        Ok((self.out.count() > 0).then(|| self.out.all()))
    }

    fn is_prompt(&self) -> bool {
        !matches!(self.sorting, Sorting::Gathers)
    }

    async fn close(self) {
        self.source.close().await;
    }
}
