//! Operations for reductions: functions of two values, to be passed to
//! [`reduce`](crate::Communicator::reduce), [`scan`](crate::Communicator::scan) and the like.
//!
//! Any function or closure of two values is an operation: `|a, b| a + b`. It must be associative,
//! and need not be commutative, because the values are combined in the order of the ranks.
//!
//! | the paper's | here | of |
//! |---|---|---|
//! | `sumOp`, `prodOp` | [`sum`], [`prod`] | numbers |
//! | `maxOp`, `minOp` | [`max`], [`min`] | what has an order, and floating-point numbers |
//! | `landOp`, `lorOp`, `lxorOp` | [`land`], [`lor`], [`lxor`] | `bool` |
//! | `bandOp`, `borOp`, `bxorOp` | [`band`], [`bor`], [`bxor`] | integers, `bool`, sets of bits |
//! | | [`max_loc`], [`min_loc`] | a value with its place |
//! | | [`each`] | vectors, element by element |

use std::ops::{Add, BitAnd, BitOr, BitXor, Mul};

/// `a + b`.
#[doc(alias = "sumOp")]
#[doc(alias = "MPI_SUM")]
pub fn sum<T: Add<Output = T>>(a: T, b: T) -> T {
    a + b
}

/// `a * b`.
#[doc(alias = "prodOp")]
#[doc(alias = "MPI_PROD")]
pub fn prod<T: Mul<Output = T>>(a: T, b: T) -> T {
    a * b
}

/// The greater of the two, and `a` if neither is. Of floating-point numbers, a NaN is passed over.
#[doc(alias = "maxOp")]
#[doc(alias = "MPI_MAX")]
pub fn max<T: PartialOrd>(a: T, b: T) -> T {
    if b > a || is_unordered(&a) { b } else { a }
}

/// The smaller of the two, and `a` if neither is. Of floating-point numbers, a NaN is passed over.
#[doc(alias = "minOp")]
#[doc(alias = "MPI_MIN")]
pub fn min<T: PartialOrd>(a: T, b: T) -> T {
    if b < a || is_unordered(&a) { b } else { a }
}

/// Whether a value is not even equal to itself, as a NaN.
#[expect(clippy::eq_op, reason = "only a NaN is not equal to itself")]
fn is_unordered<T: PartialOrd>(value: &T) -> bool {
    value != value
}

/// Whether both are true.
#[doc(alias = "landOp")]
#[doc(alias = "MPI_LAND")]
pub fn land(a: bool, b: bool) -> bool {
    a && b
}

/// Whether one of the two is true, or both.
#[doc(alias = "lorOp")]
#[doc(alias = "MPI_LOR")]
pub fn lor(a: bool, b: bool) -> bool {
    a || b
}

/// Whether one of the two is true, and not both.
#[doc(alias = "lxorOp")]
#[doc(alias = "MPI_LXOR")]
pub fn lxor(a: bool, b: bool) -> bool {
    a != b
}

/// `a & b`.
#[doc(alias = "bandOp")]
#[doc(alias = "MPI_BAND")]
pub fn band<T: BitAnd<Output = T>>(a: T, b: T) -> T {
    a & b
}

/// `a | b`.
#[doc(alias = "borOp")]
#[doc(alias = "MPI_BOR")]
pub fn bor<T: BitOr<Output = T>>(a: T, b: T) -> T {
    a | b
}

/// `a ^ b`.
#[doc(alias = "bxorOp")]
#[doc(alias = "MPI_BXOR")]
pub fn bxor<T: BitXor<Output = T>>(a: T, b: T) -> T {
    a ^ b
}

/// The greater value with its place; of equal ones, that with the smaller place.
///
/// # Examples
/// ```
/// use selvedge::mpi::{self, op};
///
/// # selvedge::round_robin(async {
/// mpi::run(3, |world| async move {
///     let mine = [3.0, 9.0, 4.0][world.rank()];
///     let (greatest, at) = world.allreduce((mine, world.rank()), op::max_loc).await?;
///     assert_eq!((greatest, at), (9.0, 1));
///     Ok::<_, mpi::Error>(())
/// })
/// .await
/// # })?.unwrap();
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[doc(alias = "MPI_MAXLOC")]
pub fn max_loc<T: PartialOrd, L: PartialOrd>(a: (T, L), b: (T, L)) -> (T, L) {
    if b.0 > a.0 || (b.0 == a.0 && b.1 < a.1) { b } else { a }
}

/// The smaller value with its place; of equal ones, that with the smaller place.
#[doc(alias = "MPI_MINLOC")]
pub fn min_loc<T: PartialOrd, L: PartialOrd>(a: (T, L), b: (T, L)) -> (T, L) {
    if b.0 < a.0 || (b.0 == a.0 && b.1 < a.1) { b } else { a }
}

/// The operation on vectors that does `op` with each two elements at the same place.
///
/// # Panics
/// The operation panics if one vector is longer than the other.
///
/// # Examples
/// ```
/// use selvedge::mpi::op;
///
/// assert_eq!(op::each(op::sum)(vec![1, 2], vec![30, 40]), [31, 42]);
/// ```
pub fn each<T>(op: impl Fn(T, T) -> T) -> impl Fn(Vec<T>, Vec<T>) -> Vec<T> {
    move |a, b| {
        assert_eq!(a.len(), b.len(), "the ranks have vectors of different lengths");
        a.into_iter().zip(b).map(|(a, b)| op(a, b)).collect()
    }
}
