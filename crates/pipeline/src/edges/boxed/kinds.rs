//! `DynStage`: a boxed transducer that knows the kinds of its input and output at run time.
//! Programs that read a pipeline as text call `DynStage::then`, and get a `MisfitError` where the
//! compiler would refuse `>>`.
//!
//! `ItemKind` is a closed list, and `HasKind` is sealed, because each pair of kinds needs a
//! conversion of chunks that the code here names. A new kind is a variant, an implementation of
//! `HasKind`, and an arm of every match.

use super::BoxedTransducer;
use crate::error::{StageError, first_failure};
use crate::item::exact::Number;
use crate::item::lists::Lists;
use crate::item::{Chunk, FINISHED, Flow, Item};
use crate::role::Transducer;
use crate::stage::{Sink, Transduce};
use std::fmt;

/// The kind of the items of a [`DynStage`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ItemKind {
    /// Bytes: `u8`.
    Bytes,
    /// Lists of bytes: lines, values, tokens, binary records.
    Lists,
    /// Records of fields: [`csv::Fields`](crate::csv::Fields).
    Records,
    /// Exact numbers: [`Number`].
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
    Records(&'a [crate::csv::Fields]),
    Numbers(&'a [Number]),
}

/// An item type that has a [`ItemKind`].
pub trait HasKind: Item<Store: Send> + sealed::Pieces {
    /// The kind.
    const KIND: ItemKind;
}

mod sealed {
    use crate::item::Item;

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

impl_kind!(u8: Bytes, [u8]: Lists, crate::csv::Fields: Records, Number: Numbers);

/// What the stage behind a [`DynStage`] does.
trait AnyStage: Send {
    fn put_chunk(&mut self, piece: AnyChunk<'_>, out: &mut dyn FnMut(AnyChunk<'_>) -> Flow) -> Flow;
    fn end(&mut self, out: &mut dyn FnMut(AnyChunk<'_>) -> Flow) -> Flow;
    fn failure(&self) -> Option<&StageError>;
    fn again(&self) -> Box<dyn AnyStage>;
}

/// A stage that tells the kinds of its items while the program runs, and not by its type.
///
/// [`then`](DynStage::then) puts two of them together and checks that they fit. The items of each
/// piece of the pipeline still have a type.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{ItemKind, DynStage, append, concatenate, csv, from_chunks};
/// use selvedge::pipeline::{group_by, line, rewrite};
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
pub struct MisfitError {
    /// What the upstream stage yields.
    pub yields: ItemKind,
    /// What the downstream stage takes.
    pub takes: ItemKind,
}

impl fmt::Display for MisfitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MisfitError { takes, yields } = self;
        write!(f, "a stage that takes {takes} cannot stand after one that yields {yields}")
    }
}

impl std::error::Error for MisfitError {}

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
    pub fn then(self, next: DynStage) -> Result<DynStage, MisfitError> {
        if self.yields != next.takes {
            return Err(MisfitError { yields: self.yields, takes: next.takes });
        }
        let two = Two { up: self.stage, down: next.stage, cut: false };
        Ok(DynStage { takes: self.takes, yields: next.yields, stage: Box::new(two) })
    }

    /// The stage as a transducer, to put it between stages of known types.
    ///
    /// # Errors
    /// If one of its kinds is another one.
    pub fn transducer<A: HasKind + ?Sized, B: HasKind + ?Sized>(
        self,
    ) -> Result<Transducer<A, B, DynStage>, MisfitError> {
        if self.takes != A::KIND {
            return Err(MisfitError { yields: A::KIND, takes: self.takes });
        }
        if self.yields != B::KIND {
            return Err(MisfitError { yields: self.yields, takes: B::KIND });
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

    fn failure(&self) -> Option<&StageError> {
        self.stage.failure()
    }

    fn again(&self) -> Box<dyn AnyStage> {
        Box::new(self.clone())
    }
}

/// Two stages, as [`Chain`](crate::Chain) has them.
struct Two {
    up: Box<dyn AnyStage>,
    down: Box<dyn AnyStage>,
    /// `down` has broken while `up` was called.
    cut: bool,
}

impl AnyStage for Two {
    fn put_chunk(&mut self, piece: AnyChunk<'_>, out: &mut dyn FnMut(AnyChunk<'_>) -> Flow) -> Flow {
        let Two { up, down, cut } = self;
        let flow = up.put_chunk(piece, &mut |piece| {
            let flow = down.put_chunk(piece, out);
            *cut |= flow.is_break();
            flow
        });
        if flow.is_break() && !*cut && up.failure().is_none() {
            down.end(out)?;
        }
        flow
    }

    fn end(&mut self, out: &mut dyn FnMut(AnyChunk<'_>) -> Flow) -> Flow {
        let Two { up, down, cut } = self;
        let _over = up.end(&mut |piece| {
            let flow = down.put_chunk(piece, out);
            *cut |= flow.is_break();
            flow
        });
        if *cut || up.failure().is_some() { FINISHED } else { down.end(out) }
    }

    fn failure(&self) -> Option<&StageError> {
        first_failure(self.up.failure(), self.down.failure(), self.cut)
    }

    fn again(&self) -> Box<dyn AnyStage> {
        Box::new(Two { up: self.up.again(), down: self.down.again(), cut: false })
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

    fn failure(&self) -> Option<&StageError> {
        self.stage.failure()
    }
}
