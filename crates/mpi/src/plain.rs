//! [`Plain`]: the types of elements that go as bytes; and its derive.

use bytemuck::Pod;

/// Plain data: a type with any bytes as a value, of which each byte is of a value. Numbers are, and
/// arrays of plain data.
///
/// The fast interface, [windows](crate::Window) and [files](crate::SharedFile) take elements of
/// such types. A struct of a program becomes one by `#[derive(Plain)]`. Every type that is
/// [`bytemuck::Pod`] is plain data, and the derive makes a type `Pod`.
///
/// # Derive
/// The struct is `Copy`, and has `#[repr(C)]` or `#[repr(transparent)]`, so that its layout is the
/// same in each build. Each field is plain data. A `bool`, a `char`, an enum or a reference is
/// not, because not every number is a value of it. All this is checked by the compiler.
///
/// # Examples
/// ```
/// use selvedge::mpi::{self, Plain};
///
/// #[derive(Debug, Clone, Copy, PartialEq, Plain)]
/// #[repr(C)]
/// struct Particle {
///     place: [f64; 3],
///     charge: f32,
///     kind: u32,
/// }
///
/// # selvedge::round_robin(async {
/// mpi::run(2, |world| async move {
///     let own = [Particle { place: [0.5; 3], charge: -1.0, kind: world.rank() as u32 }; 100];
///     let all = world.allgather_slice(&own).await?;
///     assert_eq!((all[1].len(), all[1][99].kind), (100, 1));
///     Ok::<_, mpi::Error>(())
/// })
/// .await
/// # })?.unwrap();
/// # Ok::<(), selvedge::RunError>(())
/// ```
/// Padding has no value, so it is refused: three bytes would lie behind `kind`.
/// ```compile_fail,E0080
/// #[derive(Clone, Copy, selvedge::mpi::Plain)]
/// #[repr(C)]
/// struct Particle {
///     charge: f32,
///     kind: u8,
/// }
/// ```
/// Without `repr(C)` the compiler may put the fields into any order:
/// ```compile_fail,E0080
/// #[derive(Clone, Copy, selvedge::mpi::Plain)]
/// struct Particle {
///     charge: f32,
///     kind: u32,
/// }
/// ```
/// A field with values that some bytes do not have:
/// ```compile_fail,E0277
/// #[derive(Clone, Copy, selvedge::mpi::Plain)]
/// #[repr(C)]
/// struct Particle {
///     is_charged: bool,
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no plain data",
    note = "`#[derive(Clone, Copy, Plain)]` and `#[repr(C)]` make a struct of numbers plain data",
    note = "other values are sent by the simple interface: `send` and not `send_slice`"
)]
#[doc(alias = "Repr")]
#[doc(alias = "SendFrom")]
#[doc(alias = "RecvInto")]
#[doc(alias = "char")]
#[doc(alias = "unsignedChar")]
#[doc(alias = "short")]
#[doc(alias = "unsignedShort")]
#[doc(alias = "unsigned")]
#[doc(alias = "float")]
#[doc(alias = "long")]
#[doc(alias = "unsignedLong")]
#[doc(alias = "longLong")]
#[doc(alias = "unsignedLongLong")]
#[doc(alias = "double")]
#[doc(alias = "typeSize")]
#[doc(alias = "MPI_Type_create_struct")]
pub trait Plain: Pod + Send + Sync {}

impl<T: Pod + Send + Sync> Plain for T {}

/// What the derive names.
#[doc(hidden)]
pub mod derived {
    pub use bytemuck::{Pod, Zeroable};
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate as mpi;
    use bytemuck::Zeroable;
    use selvedge_mpi_derive::Plain;

    /// Attributes, visibilities and commas within a type.
    #[derive(Debug, Clone, Copy, PartialEq, Plain)]
    #[plain(crate = mpi)]
    #[repr(C, align(8))]
    pub(crate) struct Fields {
        /// A field with a comment.
        pub(crate) one: [u16; 2],
        pub two: std::num::Wrapping<u8>,
        three: [i8; 3],
    }

    #[derive(Debug, Clone, Copy, PartialEq, Plain)]
    #[plain(crate = mpi)]
    #[repr(transparent)]
    struct Tuple(pub u64);

    #[derive(Debug, Clone, Copy, PartialEq, Plain)]
    #[plain(crate = mpi)]
    #[repr(C)]
    struct Nothing;

    macro_rules! made {
        ($visible:vis $name:ident of $type:ty) => {
            #[derive(Debug, Clone, Copy, PartialEq, Plain)]
            #[plain(crate = mpi)]
            #[repr(C)]
            $visible struct $name {
                field: $type,
            }
        };
    }
    made!(pub(crate) Made of [f32; 2]);

    #[test]
    fn structs_go_as_bytes() {
        let fields = Fields { one: [1, 2], two: std::num::Wrapping(3), three: [4, 5, 6] };
        assert_eq!(bytemuck::bytes_of(&fields), [1, 0, 2, 0, 3, 4, 5, 6]);
        assert_eq!(bytemuck::cast::<[u8; 8], Tuple>([1, 0, 0, 0, 0, 0, 0, 0]), Tuple(1));
        assert_eq!((size_of::<Nothing>(), Nothing::zeroed()), (0, Nothing));
        assert_eq!(Made::zeroed(), Made { field: [0.0; 2] });
    }
}
