//! Stages behind a pointer: pipelines that are put together while the program runs.
//!
//! A boxed stage is called once for each chunk. Within it the compiler sees the whole chain, as in
//! any stage. What it yields one by one is gathered into chunks before it goes on.
//!
//! Users call `Transducer::boxed`. `kinds.rs` has the stages that know their items at run time, and
//! `split.rs` has the boxed splitters.

mod kinds;
mod split;

pub use kinds::{DynStage, HasKind, ItemKind, MisfitError};
pub use split::{BoxedSplit, BoxedSplitter};

use crate::error::StageError;
use crate::item::{Chunk, Flow, GO_ON, Item, Store};
use crate::role::Transducer;
use crate::stage::{Sink, Transduce};
use std::fmt;

/// How many items are gathered at most before they go on.
const CHUNK: usize = 1024;

/// A list of at least this number of elements goes on alone, because a copy costs more than a call.
const LARGE: u64 = 4096;

/// The next stage, where each call costs as much as a call of a pointer.
trait DynSink<B: Item + ?Sized> {
    fn put_chunk(&mut self, chunk: B::Chunk<'_>) -> Flow;
}

impl<B: Item + ?Sized, S: Sink<B>> DynSink<B> for S {
    fn put_chunk(&mut self, chunk: B::Chunk<'_>) -> Flow {
        Sink::put_chunk(self, chunk)
    }
}

/// Gathers single items, and passes chunks on.
struct Gatherer<'a, 'b, B: Item + ?Sized> {
    items: &'a mut B::Store,
    out: &'a mut (dyn DynSink<B> + 'b),
}

impl<B: Item + ?Sized> Gatherer<'_, '_, B> {
    fn flush(&mut self) -> Flow {
        if self.items.count() == 0 {
            return GO_ON;
        }
        let flow = self.out.put_chunk(self.items.all());
        self.items.clear();
        flow
    }
}

impl<B: Item + ?Sized> Sink<B> for Gatherer<'_, '_, B> {
    const CHUNKS: bool = true;

    #[inline]
    fn put(&mut self, item: &B) -> Flow {
        if B::elements(item) >= LARGE {
            return Sink::<B>::put_chunk(self, B::Chunk::one(item));
        }
        self.items.keep(item);
        if self.items.count() < CHUNK { GO_ON } else { self.flush() }
    }

    fn put_chunk(&mut self, chunk: B::Chunk<'_>) -> Flow {
        self.flush()?;
        self.out.put_chunk(chunk)
    }
}

/// A transducer behind a pointer.
trait DynTransduce<A: Item + ?Sized, B: Item + ?Sized>: Send {
    fn put_chunk(&mut self, chunk: A::Chunk<'_>, out: &mut dyn DynSink<B>) -> Flow;
    fn put(&mut self, item: &A, out: &mut dyn DynSink<B>) -> Flow;
    fn flush(&mut self, out: &mut dyn DynSink<B>) -> Flow;
    fn end(&mut self, out: &mut dyn DynSink<B>) -> Flow;
    fn failure(&self) -> Option<&StageError>;
    fn again(&self) -> Box<dyn DynTransduce<A, B>>;
}

/// A stage with the items that it gathers.
#[derive(Clone)]
struct Gathering<T, C> {
    stage: T,
    items: C,
}

impl<A, B, T> DynTransduce<A, B> for Gathering<T, B::Store>
where
    A: Item + ?Sized,
    B: Item<Store: Send> + ?Sized,
    T: Transduce<A, B> + Clone + Send + 'static,
{
    fn put_chunk(&mut self, chunk: A::Chunk<'_>, out: &mut dyn DynSink<B>) -> Flow {
        let mut gather = Gatherer { items: &mut self.items, out };
        let flow = self.stage.put_chunk(chunk, &mut gather);
        gather.flush()?;
        flow
    }

    fn put(&mut self, item: &A, out: &mut dyn DynSink<B>) -> Flow {
        let mut gather = Gatherer { items: &mut self.items, out };
        let flow = self.stage.put(item, &mut gather);
        if flow.is_break() {
            gather.flush()?;
        }
        flow
    }

    fn flush(&mut self, out: &mut dyn DynSink<B>) -> Flow {
        let mut gather = Gatherer { items: &mut self.items, out };
        let flow = self.stage.flush(&mut gather);
        gather.flush()?;
        flow
    }

    fn end(&mut self, out: &mut dyn DynSink<B>) -> Flow {
        let mut gather = Gatherer { items: &mut self.items, out };
        let flow = self.stage.end(&mut gather);
        gather.flush()?;
        flow
    }

    fn failure(&self) -> Option<&StageError> {
        self.stage.failure()
    }

    fn again(&self) -> Box<dyn DynTransduce<A, B>> {
        Box::new(self.clone())
    }
}

/// The stage of [`Transducer::boxed`].
pub struct BoxedTransduce<A: ?Sized, B: ?Sized> {
    stage: Box<dyn DynTransduce<A, B>>,
}

/// A transducer of a type that tells its items alone.
pub type BoxedTransducer<A, B> = Transducer<A, B, BoxedTransduce<A, B>>;

impl<A, B, T> Transducer<A, B, T>
where
    A: Item + ?Sized,
    B: Item<Store: Send> + ?Sized,
    T: Transduce<A, B> + Clone + Send + 'static,
{
    /// Forgets what the stage is made of: a stage of a type that tells its items alone.
    ///
    /// A program that puts stages together while it runs has them in variables of one type, and
    /// each combinator takes them as it takes others.
    ///
    /// # Complexity
    /// A call of a pointer for each chunk, or for each item that a neighbour puts by itself. The
    /// items that the stage yields one by one are copied into chunks.
    ///
    /// # Examples
    /// ```
    /// use selvedge::pipeline::{BoxedTransducer, from_chunks, id, lift121};
    ///
    /// fn stage(name: &str) -> BoxedTransducer<u8, u8> {
    ///     match name {
    ///         "upper" => lift121(|c: &u8| c.to_ascii_uppercase()).boxed(),
    ///         "spaces" => lift121(|c: &u8| if *c == b'_' { b' ' } else { *c }).boxed(),
    ///         _ => id().boxed(),
    ///     }
    /// }
    ///
    /// let whole = ["upper", "spaces"].map(stage).into_iter().reduce(|a, b| (a >> b).boxed());
    /// assert_eq!((from_chunks(["a_warp"]) >> whole.unwrap()).collect(), b"A WARP");
    /// ```
    pub fn boxed(self) -> BoxedTransducer<A, B> {
        let stage = Gathering { stage: self.into_stage(), items: B::Store::default() };
        Transducer::new(BoxedTransduce { stage: Box::new(stage) })
    }
}

impl<A: ?Sized + 'static, B: ?Sized + 'static> Clone for BoxedTransduce<A, B>
where
    A: Item,
    B: Item,
{
    fn clone(&self) -> Self {
        BoxedTransduce { stage: self.stage.again() }
    }
}

impl<A: ?Sized, B: ?Sized> fmt::Debug for BoxedTransduce<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoxedTransduce").finish_non_exhaustive()
    }
}

impl<A: Item + ?Sized, B: Item + ?Sized> Transduce<A, B> for BoxedTransduce<A, B> {
    const CHUNKS: bool = true;

    fn put_chunk<S: Sink<B>>(&mut self, chunk: A::Chunk<'_>, out: &mut S) -> Flow {
        self.stage.put_chunk(chunk, out)
    }

    fn put<S: Sink<B>>(&mut self, item: &A, out: &mut S) -> Flow {
        self.stage.put(item, out)
    }

    fn flush<S: Sink<B>>(&mut self, out: &mut S) -> Flow {
        self.stage.flush(out)
    }

    fn end<S: Sink<B>>(&mut self, out: &mut S) -> Flow {
        self.stage.end(out)
    }

    fn failure(&self) -> Option<&StageError> {
        self.stage.failure()
    }
}
