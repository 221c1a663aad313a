//! [`Scalar`]: the kinds of numbers that MPI moves and reduces, and [`ReduceOp`], the operations
//! between them.
//!
//! `memory.rs` notes the kind of what it holds, and `family.rs` has the library's handle for each.

/// A type of Rust that is one of the kinds of [`Scalar`].
pub trait ScalarType: Copy + Send + 'static + sealed::SealedKind {
    /// The kind.
    const SCALAR: Scalar;
}

#[expect(unnameable_types, reason = "it keeps other crates from adding kinds")]
mod sealed {
    pub trait SealedKind {}
}

/// Declares the kinds, with the type of Rust for each.
macro_rules! scalars {
    ($($(#[$doc:meta])* $name:ident = $type:ty,)+) => {
        /// A kind of numbers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Scalar {
            $($(#[$doc])* $name,)+
        }

        impl Scalar {
            /// All kinds, in the order of their declaration.
            pub const ALL: &'static [Scalar] = &[$(Scalar::$name,)+];

            /// The size of one number in bytes, which is its alignment too.
            pub const fn bytes(self) -> usize {
                match self {
                    $(Scalar::$name => size_of::<$type>(),)+
                }
            }

            /// The name of the type of Rust.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Scalar::$name => stringify!($type),)+
                }
            }
        }

        $(
            impl sealed::SealedKind for $type {}
            impl ScalarType for $type {
                const SCALAR: Scalar = Scalar::$name;
            }
            const _: () = assert!(align_of::<$type>() == size_of::<$type>());
        )+
    };
}

scalars! {
    /// `i8`
    I8 = i8,
    /// `i16`
    I16 = i16,
    /// `i32`
    I32 = i32,
    /// `i64`
    I64 = i64,
    /// `u8`: also bytes of any meaning.
    U8 = u8,
    /// `u16`
    U16 = u16,
    /// `u32`
    U32 = u32,
    /// `u64`
    U64 = u64,
    /// `f32`
    F32 = f32,
    /// `f64`
    F64 = f64,
}

/// An operation by which a collective call joins the numbers of all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    /// The greatest.
    Max,
    /// The least.
    Min,
    /// The sum. Of integers it wraps around.
    Sum,
    /// The product. Of integers it wraps around.
    Prod,
    /// 1 if all are other than 0, else 0. For integers.
    Land,
    /// The bits that all have. For integers.
    Band,
    /// 1 if one is other than 0, else 0. For integers.
    Lor,
    /// The bits that at least one has. For integers.
    Bor,
    /// 1 if an odd number of them is other than 0, else 0. For integers.
    Lxor,
    /// The bits that an odd number of them has. For integers.
    Bxor,
}

impl ReduceOp {
    /// All operations, in the order of their declaration.
    pub const ALL: &'static [ReduceOp] = &[
        ReduceOp::Max,
        ReduceOp::Min,
        ReduceOp::Sum,
        ReduceOp::Prod,
        ReduceOp::Land,
        ReduceOp::Band,
        ReduceOp::Lor,
        ReduceOp::Bor,
        ReduceOp::Lxor,
        ReduceOp::Bxor,
    ];
}
