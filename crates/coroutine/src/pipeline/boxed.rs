//! Stages behind a pointer: pipelines that are put together while the program runs.
//!
//! A boxed stage is called once for each chunk. Within it the compiler sees the whole chain, as in
//! any stage. What it yields one by one is gathered into chunks before it goes on.

use super::failure::StageFailure;
use super::item::{Chunk, Flow, GO_ON, Item, Store};
use super::list::Lists;
use super::role::{Splitter, Transducer};
use super::stage::{Sections, Sink, Split, Transduce};
use std::fmt;

/// How many items are gathered at most before they go on.
const CHUNK: usize = 1024;

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
    fn end(&mut self, out: &mut dyn DynSink<B>) -> Flow;
    fn failure(&self) -> Option<&StageFailure>;
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

    fn end(&mut self, out: &mut dyn DynSink<B>) -> Flow {
        let mut gather = Gatherer { items: &mut self.items, out };
        let flow = self.stage.end(&mut gather);
        gather.flush()?;
        flow
    }

    fn failure(&self) -> Option<&StageFailure> {
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

/// A splitter of a type that tells its items alone.
pub type BoxedSplitter<A> = Splitter<A, BoxedSplit<A>>;

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
    /// A call of a pointer for each chunk. The items that the stage yields one by one are copied
    /// into chunks.
    ///
    /// # Examples
    /// ```
    /// use selvedge::coroutine::pipeline::{BoxedTransducer, from_chunks, id, lift121};
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

    fn put<S: Sink<B>>(&mut self, item: &A, out: &mut S) -> Flow {
        self.stage.put_chunk(A::Chunk::one(item), out)
    }

    fn put_chunk<S: Sink<B>>(&mut self, chunk: A::Chunk<'_>, out: &mut S) -> Flow {
        self.stage.put_chunk(chunk, out)
    }

    fn end<S: Sink<B>>(&mut self, out: &mut S) -> Flow {
        self.stage.end(out)
    }

    fn failure(&self) -> Option<&StageFailure> {
        self.stage.failure()
    }
}

/// The downstream side of a boxed splitter.
trait DynSections<A: Item + ?Sized> {
    fn part_chunk(&mut self, verdict: bool, chunk: A::Chunk<'_>) -> Flow;
    fn close(&mut self, verdict: bool) -> Flow;
}

impl<A: Item + ?Sized, P: Sections<A>> DynSections<A> for P {
    fn part_chunk(&mut self, verdict: bool, chunk: A::Chunk<'_>) -> Flow {
        Sections::part_chunk(self, verdict, chunk)
    }

    fn close(&mut self, verdict: bool) -> Flow {
        Sections::close(self, verdict)
    }
}

/// Gathers the single items of a section, and passes chunks on.
struct GatherSections<'a, 'b, A: Item + ?Sized> {
    items: &'a mut A::Store,
    /// The verdict of the items that are gathered.
    verdict: bool,
    out: &'a mut (dyn DynSections<A> + 'b),
}

impl<A: Item + ?Sized> GatherSections<'_, '_, A> {
    fn flush(&mut self) -> Flow {
        if self.items.count() == 0 {
            return GO_ON;
        }
        let flow = self.out.part_chunk(self.verdict, self.items.all());
        self.items.clear();
        flow
    }
}

impl<A: Item + ?Sized> Sections<A> for GatherSections<'_, '_, A> {
    fn part(&mut self, verdict: bool, item: &A) -> Flow {
        // A change of the verdict comes after a `close`, which has flushed.
        self.verdict = verdict;
        self.items.keep(item);
        if self.items.count() < CHUNK { GO_ON } else { self.flush() }
    }

    fn part_chunk(&mut self, verdict: bool, chunk: A::Chunk<'_>) -> Flow {
        self.flush()?;
        self.out.part_chunk(verdict, chunk)
    }

    fn close(&mut self, verdict: bool) -> Flow {
        self.flush()?;
        self.out.close(verdict)
    }
}

/// A splitter behind a pointer.
trait DynSplit<A: Item + ?Sized>: Send {
    fn put_chunk(&mut self, chunk: A::Chunk<'_>, out: &mut dyn DynSections<A>) -> Flow;
    fn end(&mut self, out: &mut dyn DynSections<A>) -> Flow;
    fn again(&self) -> Box<dyn DynSplit<A>>;
}

impl<A, S> DynSplit<A> for Gathering<S, A::Store>
where
    A: Item<Store: Send> + ?Sized,
    S: Split<A> + Clone + Send + 'static,
{
    fn put_chunk(&mut self, chunk: A::Chunk<'_>, out: &mut dyn DynSections<A>) -> Flow {
        let mut gather = GatherSections { items: &mut self.items, verdict: false, out };
        let flow = self.stage.put_chunk(chunk, &mut gather);
        gather.flush()?;
        flow
    }

    fn end(&mut self, out: &mut dyn DynSections<A>) -> Flow {
        let mut gather = GatherSections { items: &mut self.items, verdict: false, out };
        let flow = self.stage.end(&mut gather);
        gather.flush()?;
        flow
    }

    fn again(&self) -> Box<dyn DynSplit<A>> {
        Box::new(self.clone())
    }
}

/// The stage of [`Splitter::boxed`].
pub struct BoxedSplit<A: ?Sized> {
    stage: Box<dyn DynSplit<A>>,
}

impl<A, S> Splitter<A, S>
where
    A: Item<Store: Send> + ?Sized,
    S: Split<A> + Clone + Send + 'static,
{
    /// Forgets what the splitter is made of: a splitter of a type that tells its items alone. See
    /// [`Transducer::boxed`].
    ///
    /// The combinators that search a block as a whole, [`group_by`](super::group_by) of lines and
    /// [`any`](super::any()) of a substring, do not see into a boxed splitter: box what they make.
    ///
    /// # Examples
    /// ```
    /// use selvedge::coroutine::pipeline::{BoxedSplitter, from_chunks, satisfies, select};
    ///
    /// let classes: [BoxedSplitter<u8>; 2] = [
    ///     satisfies(|c: &u8| c.is_ascii_alphabetic()).boxed(),
    ///     satisfies(|c: &u8| c.is_ascii_lowercase()).boxed(),
    /// ];
    /// let both = classes.into_iter().reduce(|a, b| (a & !b).boxed()).unwrap();
    /// assert_eq!((from_chunks(["Warp, 2 WEFT"]) >> select(both)).collect(), b"WWEFT");
    /// ```
    pub fn boxed(self) -> BoxedSplitter<A> {
        let stage = Gathering { stage: self.into_stage(), items: A::Store::default() };
        Splitter::new(BoxedSplit { stage: Box::new(stage) })
    }
}

impl<A: Item + ?Sized> Clone for BoxedSplit<A> {
    fn clone(&self) -> Self {
        BoxedSplit { stage: self.stage.again() }
    }
}

impl<A: ?Sized> fmt::Debug for BoxedSplit<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoxedSplit").finish_non_exhaustive()
    }
}

impl<A: Item + ?Sized> Split<A> for BoxedSplit<A> {
    fn put<P: Sections<A>>(&mut self, item: &A, out: &mut P) -> Flow {
        self.stage.put_chunk(A::Chunk::one(item), out)
    }

    fn put_chunk<P: Sections<A>>(&mut self, chunk: A::Chunk<'_>, out: &mut P) -> Flow {
        self.stage.put_chunk(chunk, out)
    }

    fn end<P: Sections<A>>(&mut self, out: &mut P) -> Flow {
        self.stage.end(out)
    }
}

/// The kind of the items of a [`DynStage`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ItemKind {
    /// Bytes: `u8`.
    Bytes,
    /// Lists of bytes: lines, values, tokens, binary records.
    Lists,
    /// Records of fields: [`csv::Fields`](super::csv::Fields).
    Records,
    /// Numbers: `u64`.
    Numbers,
}

impl fmt::Display for ItemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ItemKind::Bytes => "bytes",
            ItemKind::Lists => "lists of bytes",
            ItemKind::Records => "records",
            ItemKind::Numbers => "numbers",
        })
    }
}

/// A chunk of one of the kinds.
#[derive(Clone, Copy)]
enum AnyChunk<'a> {
    Bytes(&'a [u8]),
    Lists(Lists<'a, u8>),
    Records(&'a [super::csv::Fields]),
    Numbers(&'a [u64]),
}

/// An item type that has a [`ItemKind`].
pub trait HasKind: Item<Store: Send> + sealed::Pieces {
    /// The kind.
    const KIND: ItemKind;
}

mod sealed {
    use super::super::item::Item;

    /// How chunks of a kind are made of chunks of a type, and back.
    #[expect(private_interfaces, unnameable_types, reason = "so that no other crate implements it")]
    pub trait Pieces: Item {
        fn piece(chunk: Self::Chunk<'_>) -> super::AnyChunk<'_>;
        fn chunk(piece: super::AnyChunk<'_>) -> Option<Self::Chunk<'_>>;
    }
}

macro_rules! impl_kind {
    ($($item:ty: $kind:ident),*) => {$(
        impl HasKind for $item {
            const KIND: ItemKind = ItemKind::$kind;
        }

        #[expect(private_interfaces, reason = "as for the trait")]
        impl sealed::Pieces for $item {
            fn piece(chunk: <$item as Item>::Chunk<'_>) -> AnyChunk<'_> {
                AnyChunk::$kind(chunk)
            }

            fn chunk(piece: AnyChunk<'_>) -> Option<<$item as Item>::Chunk<'_>> {
                match piece {
                    AnyChunk::$kind(chunk) => Some(chunk),
                    _ => None,
                }
            }
        }
    )*};
}

impl_kind!(u8: Bytes, [u8]: Lists, super::csv::Fields: Records, u64: Numbers);

/// What the stage behind a [`DynStage`] does.
trait AnyStage: Send {
    fn put_chunk(&mut self, piece: AnyChunk<'_>, out: &mut dyn FnMut(AnyChunk<'_>) -> Flow) -> Flow;
    fn end(&mut self, out: &mut dyn FnMut(AnyChunk<'_>) -> Flow) -> Flow;
    fn failure(&self) -> Option<&StageFailure>;
    fn again(&self) -> Box<dyn AnyStage>;
}

/// A stage that tells the kinds of its items while the program runs, and not by its type.
///
/// [`then`](DynStage::then) puts two of them together and checks that they fit. The items of each
/// piece of the pipeline still have a type.
///
/// # Examples
/// ```
/// use selvedge::coroutine::pipeline::{ItemKind, DynStage, append, concatenate, csv, from_chunks};
/// use selvedge::coroutine::pipeline::{group_by, line, rewrite};
///
/// fn stage(name: &str) -> DynStage {
///     match name {
///         "csv" => DynStage::new(csv::records(b',')),
///         "second" => DynStage::new(rewrite(|record: &csv::Fields, field: &mut Vec<u8>| {
///             field.extend_from_slice(record.get(1).unwrap_or_default())
///         })),
///         "lines" => DynStage::new(group_by(line())),
///         "text" => DynStage::new(append(b"\n") >> concatenate()),
///         other => panic!("no stage {other}"),
///     }
/// }
///
/// let words = "csv | second | text".split(" | ").map(stage);
/// let whole = words.reduce(|a, b| a.then(b).unwrap()).unwrap();
/// let whole = whole.transducer::<u8, u8>().unwrap();
/// let text = (from_chunks(["1,warp\n2,\"we", "ft\"\n"]) >> whole).collect();
/// assert_eq!(text, b"warp\nweft\n");
///
/// let misfit = stage("csv").then(stage("lines")).unwrap_err();
/// let why = "a stage that takes bytes cannot stand after one that yields records";
/// assert_eq!(misfit.to_string(), why);
/// assert_eq!(stage("lines").yields(), ItemKind::Lists);
/// ```
pub struct DynStage {
    takes: ItemKind,
    yields: ItemKind,
    stage: Box<dyn AnyStage>,
}

/// Two stages do not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Misfit {
    /// What the upstream stage yields.
    pub yields: ItemKind,
    /// What the downstream stage takes.
    pub takes: ItemKind,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Misfit { takes, yields } = self;
        write!(f, "a stage that takes {takes} cannot stand after one that yields {yields}")
    }
}

impl std::error::Error for Misfit {}

impl DynStage {
    /// A stage of a transducer.
    pub fn new<A, B, T>(transducer: Transducer<A, B, T>) -> DynStage
    where
        A: HasKind + ?Sized,
        B: HasKind + ?Sized,
        T: Transduce<A, B> + Clone + Send + 'static,
    {
        DynStage { takes: A::KIND, yields: B::KIND, stage: Box::new(transducer.boxed()) }
    }

    /// The kind of its input.
    pub fn takes(&self) -> ItemKind {
        self.takes
    }

    /// The kind of its output.
    pub fn yields(&self) -> ItemKind {
        self.yields
    }

    /// The two as one stage.
    ///
    /// # Errors
    /// If `next` takes another kind than `self` yields.
    pub fn then(self, next: DynStage) -> Result<DynStage, Misfit> {
        if self.yields != next.takes {
            return Err(Misfit { yields: self.yields, takes: next.takes });
        }
        let two = Two { up: self.stage, down: next.stage };
        Ok(DynStage { takes: self.takes, yields: next.yields, stage: Box::new(two) })
    }

    /// The stage as a transducer, to put it between stages of known types.
    ///
    /// # Errors
    /// If one of its kinds is another one.
    pub fn transducer<A: HasKind + ?Sized, B: HasKind + ?Sized>(
        self,
    ) -> Result<Transducer<A, B, DynStage>, Misfit> {
        if self.takes != A::KIND {
            return Err(Misfit { yields: A::KIND, takes: self.takes });
        }
        if self.yields != B::KIND {
            return Err(Misfit { yields: self.yields, takes: B::KIND });
        }
        Ok(Transducer::new(self))
    }
}

impl Clone for DynStage {
    fn clone(&self) -> Self {
        DynStage { takes: self.takes, yields: self.yields, stage: self.stage.again() }
    }
}

impl fmt::Debug for DynStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DynStage of {} to {}", self.takes, self.yields)
    }
}

/// A closure that takes pieces, as a sink of one kind.
struct Pass<'a, 'b>(&'a mut (dyn FnMut(AnyChunk<'_>) -> Flow + 'b));

impl<B: HasKind + ?Sized> Sink<B> for Pass<'_, '_> {
    const CHUNKS: bool = true;

    fn put(&mut self, item: &B) -> Flow {
        (self.0)(B::piece(B::Chunk::one(item)))
    }

    fn put_chunk(&mut self, chunk: B::Chunk<'_>) -> Flow {
        (self.0)(B::piece(chunk))
    }
}

/// [`DynStage::then`] and [`DynStage::transducer`] have checked the kinds.
const FITS: &str = "the kinds of two stages are checked when they are put together";

impl<A: HasKind + ?Sized, B: HasKind + ?Sized> AnyStage for BoxedTransducer<A, B> {
    fn put_chunk(&mut self, piece: AnyChunk<'_>, out: &mut dyn FnMut(AnyChunk<'_>) -> Flow) -> Flow {
        self.stage.put_chunk(A::chunk(piece).expect(FITS), &mut Pass(out))
    }

    fn end(&mut self, out: &mut dyn FnMut(AnyChunk<'_>) -> Flow) -> Flow {
        self.stage.end(&mut Pass(out))
    }

    fn failure(&self) -> Option<&StageFailure> {
        self.stage.failure()
    }

    fn again(&self) -> Box<dyn AnyStage> {
        Box::new(self.clone())
    }
}

/// Two stages, as [`Chain`](super::Chain) has them.
struct Two {
    up: Box<dyn AnyStage>,
    down: Box<dyn AnyStage>,
}

impl AnyStage for Two {
    fn put_chunk(&mut self, piece: AnyChunk<'_>, out: &mut dyn FnMut(AnyChunk<'_>) -> Flow) -> Flow {
        let Two { up, down } = self;
        let mut finished = false;
        let flow = up.put_chunk(piece, &mut |piece| {
            let flow = down.put_chunk(piece, out);
            finished |= flow.is_break();
            flow
        });
        if flow.is_break() && !finished && up.failure().is_none() {
            down.end(out)?;
        }
        flow
    }

    fn end(&mut self, out: &mut dyn FnMut(AnyChunk<'_>) -> Flow) -> Flow {
        let Two { up, down } = self;
        let mut finished = false;
        let _over = up.end(&mut |piece| {
            let flow = down.put_chunk(piece, out);
            finished |= flow.is_break();
            flow
        });
        if finished || up.failure().is_some() { super::item::FINISHED } else { down.end(out) }
    }

    fn failure(&self) -> Option<&StageFailure> {
        self.up.failure().or_else(|| self.down.failure())
    }

    fn again(&self) -> Box<dyn AnyStage> {
        Box::new(Two { up: self.up.again(), down: self.down.again() })
    }
}

impl<A: HasKind + ?Sized, B: HasKind + ?Sized> Transduce<A, B> for DynStage {
    const CHUNKS: bool = true;

    fn put<S: Sink<B>>(&mut self, item: &A, out: &mut S) -> Flow {
        Transduce::<A, B>::put_chunk(self, A::Chunk::one(item), out)
    }

    fn put_chunk<S: Sink<B>>(&mut self, chunk: A::Chunk<'_>, out: &mut S) -> Flow {
        self.stage.put_chunk(A::piece(chunk), &mut |piece| out.put_chunk(B::chunk(piece).expect(FITS)))
    }

    fn end<S: Sink<B>>(&mut self, out: &mut S) -> Flow {
        self.stage.end(&mut |piece| out.put_chunk(B::chunk(piece).expect(FITS)))
    }

    fn failure(&self) -> Option<&StageFailure> {
        self.stage.failure()
    }
}
