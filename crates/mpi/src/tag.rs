//! What a message is marked with, and what a receive asks for: [`Tag`], [`Tags`], [`Source`], and
//! [`ANY`] for either, or the null rank, [`PROC_NULL`].
//!
//! Every call that sends or receives takes them by `Into`, so that a program writes `()`, a number
//! or `ANY`. The matching (`matching.rs`) sees numbers only.

use std::fmt;

/// The mark of a message, which tells it from others between the same two ranks.
///
/// A number up to [`Tag::MAX`], or `()` for the dummy that the paper calls `unitTag`. A program
/// with an enum of its own passes `kind as u32`.
///
/// # Paper
/// [HMPI "Point-to-point communications"]: tags are of any enumerable type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[doc(alias = "toTag")]
#[doc(alias = "fromTag")]
pub struct Tag(pub u32);

impl Tag {
    /// The dummy, for programs that need no tags. It is tag 0.
    #[doc(alias = "unitTag")]
    pub const UNIT: Tag = Tag(0);
    /// The largest tag that a message may have. A call with a larger one is refused.
    #[doc(alias = "tagUpperBound")]
    #[doc(alias = "MPI_TAG_UB")]
    pub const MAX: Tag = Tag(i32::MAX as u32);
}

impl From<()> for Tag {
    fn from((): ()) -> Tag {
        Tag::UNIT
    }
}

impl From<u32> for Tag {
    fn from(number: u32) -> Tag {
        Tag(number)
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Any source, or any tag: for a receive or a probe that takes the earliest message there is.
///
/// # Examples
/// ```
/// use selvedge::mpi::{self, ANY};
///
/// selvedge::round_robin(async {
///     mpi::run(2, |world| async move {
///         match world.rank() {
///             0 => world.send(1, 7, "warp".to_string()).await?,
///             _ => {
///                 let (text, status) = world.recv::<String>(ANY, ANY).await?;
///                 assert_eq!((text.as_str(), status.source, status.tag.0), ("warp", 0, 7));
///             }
///         }
///         Ok::<_, mpi::Error>(())
///     })
///     .await
/// })?
/// .unwrap();
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub const ANY: Any = Any;

/// The type of [`ANY`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[doc(alias = "anySource")]
#[doc(alias = "anyTag")]
#[doc(alias = "MPI_ANY_SOURCE")]
#[doc(alias = "MPI_ANY_TAG")]
pub struct Any;

/// From which rank a receive takes its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// This rank of the communicator, or the [null rank](crate::PROC_NULL).
    Rank(usize),
    /// Whichever has sent the earliest message that matches.
    Any,
}

/// The null rank: every call that sends to one rank or receives from one takes it.
///
/// A send to it ends at once, and its message is dropped. A receive from it ends at once with an
/// empty message, of which the status has this source, the tag 0 and no bytes. So a program of a
/// field with borders need not ask whether a neighbour is there.
///
/// In the fast interface an empty message has no elements, and [`recv_into`] leaves its slice as it
/// was. In the simple interface it holds `()`, `None`, or a string or collection with nothing in
/// it, as the receive asks. A receive that asks for another type, such as a number, is an error of
/// class [`ErrorClass::Type`].
///
/// A root, and the rank that executes a [function](crate::Functions), are never the null rank.
///
/// [`recv_into`]: crate::Communicator::recv_into
/// [`ErrorClass::Type`]: crate::ErrorClass::Type
///
/// # Examples
/// ```
/// use selvedge::mpi::{self, PROC_NULL};
///
/// # selvedge::round_robin(async {
/// mpi::run(3, |world| async move {
///     let rank = world.rank();
///     let left = if rank == 0 { PROC_NULL } else { rank - 1 };
///     let right = if rank + 1 == world.size() { PROC_NULL } else { rank + 1 };
///     let mut border = [-1.0];
///     world.sendrecv_into(right, (), &[rank as f64], left, (), &mut border).await?;
///     assert_eq!(border, [[-1.0], [0.0], [1.0]][rank]);
///     Ok::<_, mpi::Error>(())
/// })
/// .await
/// # })?.unwrap();
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[doc(alias = "procNull")]
#[doc(alias = "MPI_PROC_NULL")]
pub const PROC_NULL: usize = u32::MAX as usize;

impl Source {
    pub(crate) fn is_null(self) -> bool {
        self == Source::Rank(PROC_NULL)
    }
}

/// With which tag a message has to be marked for a receive to take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tags {
    /// This tag.
    One(Tag),
    /// Each.
    Any,
}

impl From<usize> for Source {
    fn from(rank: usize) -> Source {
        Source::Rank(rank)
    }
}

impl From<Any> for Source {
    fn from(_: Any) -> Source {
        Source::Any
    }
}

impl From<Any> for Tags {
    fn from(_: Any) -> Tags {
        Tags::Any
    }
}

impl From<()> for Tags {
    fn from((): ()) -> Tags {
        Tags::One(Tag::UNIT)
    }
}

impl From<u32> for Tags {
    fn from(number: u32) -> Tags {
        Tags::One(Tag(number))
    }
}

impl From<Tag> for Tags {
    fn from(tag: Tag) -> Tags {
        Tags::One(tag)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Rank(PROC_NULL) => f.write_str("the null rank"),
            Source::Rank(rank) => write!(f, "rank {rank}"),
            Source::Any => f.write_str("any rank"),
        }
    }
}

impl fmt::Display for Tags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tags::One(tag) => write!(f, "tag {tag}"),
            Tags::Any => f.write_str("any tag"),
        }
    }
}
