//! [`Origin`]: the source of a pipeline, by the kind of its items. `stream.rs` and `parts.rs` make
//! it.

use selvedge_flow::BoxedFlowSource;
use selvedge_pipeline::csv::Fields;
use selvedge_pipeline::{HasKind, Number};

/// A source, by the kind of its items.
#[derive(Debug)]
pub enum Origin {
    /// Files, commands, the branches of a `foreach` over bytes.
    Bytes(BoxedFlowSource<u8>),
    /// Joins, and the branches of a `foreach` over lines.
    Lines(BoxedFlowSource<[u8]>),
    /// The branches of a `foreach` over records.
    Records(BoxedFlowSource<Fields>),
    /// `range`, and the branches of a `foreach` over numbers.
    Numbers(BoxedFlowSource<Number>),
}

/// An item type that an [`Origin`] may have.
pub trait OriginKind: HasKind {
    /// The source as an origin.
    fn origin(source: BoxedFlowSource<Self>) -> Origin;
}

macro_rules! impl_origin_kind {
    ($($item:ty: $kind:ident),*) => {$(
        impl OriginKind for $item {
            fn origin(source: BoxedFlowSource<Self>) -> Origin {
                Origin::$kind(source)
            }
        }
    )*};
}

impl_origin_kind!(u8: Bytes, [u8]: Lines, Fields: Records, Number: Numbers);
