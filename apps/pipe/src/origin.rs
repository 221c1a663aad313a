//! [`Origin`]: the source of a pipeline, by the kind of its items. `stream.rs` and `parts.rs` make
//! it.

use selvedge_flow::BoxedInflow;
use selvedge_pipeline::csv::Fields;
use selvedge_pipeline::{HasKind, Number};

/// A source, by the kind of its items.
#[derive(Debug)]
pub enum Origin {
    /// Files, commands, the branches of a `foreach` over bytes.
    Bytes(BoxedInflow<u8>),
    /// Joins, and the branches of a `foreach` over lines.
    Lines(BoxedInflow<[u8]>),
    /// The branches of a `foreach` over records.
    Records(BoxedInflow<Fields>),
    /// `range`, and the branches of a `foreach` over numbers.
    Numbers(BoxedInflow<Number>),
}

/// An item type that an [`Origin`] may have.
pub trait OriginKind: HasKind {
    /// The source as an origin.
    fn origin(source: BoxedInflow<Self>) -> Origin;
}

macro_rules! impl_origin_kind {
    ($($item:ty: $kind:ident),*) => {$(
        impl OriginKind for $item {
            fn origin(source: BoxedInflow<Self>) -> Origin {
                Origin::$kind(source)
            }
        }
    )*};
}

impl_origin_kind!(u8: Bytes, [u8]: Lines, Fields: Records, Number: Numbers);
