//! [`TNode`]: the nodes of linked structures, with their links in them.

use crate::cells::{CellRef, CellValue, Cells, CellsRef};
use crate::engine::{Engine, Versioned};
use crate::garbage::Free;
use crate::stop::Tried;
use crate::transaction::Tx;
use crate::variable::identity;
use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// A node of a list, a tree or another linked structure, for transactions: a value that stays, and
/// `LINKS` variables, each of which leads to another node or to none.
///
/// The value and the links are in one allocation. So a walk along the links touches one piece of
/// memory for each node, where one through variables of type `TVar<Option<Arc<Node>>>` touches
/// three.
///
/// A `TNode` owns its node; clones own the same one. A link owns the node that it leads to. The
/// node is dropped some time after its last owner, when no transaction can have a reference to it.
/// Nodes that own each other in a ring are never dropped. A transaction sees the node of a link as
/// a [`TNodeRef`], and a link as a [`TLinkRef`]. The link that leads into the structure is a
/// [`TLink`].
///
/// # Paper
/// [HMP05 §5] has the variables; this is a few of them in one allocation, with a value.
///
/// # Complexity
/// A node takes one allocation: 32 bytes, the value, and 56 bytes for each link.
///
/// # Examples
/// A stack:
/// ```
/// use selvedge::stm::{TLink, TNode, Tried, Tx, atomically};
///
/// type Stack = TLink<&'static str, 1>;
///
/// fn push(tx: &Tx, stack: &Stack, value: &'static str) -> Tried<()> {
///     let below = stack.read(tx)?.map(|node| node.owned());
///     stack.write(tx, Some(TNode::new(value, [below])));
///     Ok(())
/// }
///
/// fn pop(tx: &Tx, stack: &Stack) -> Tried<&'static str> {
///     let Some(top) = stack.read(tx)? else { return tx.retry() };
///     let below = top.link(0).read(tx)?;
///     stack.write(tx, below.map(|node| node.owned()));
///     Ok(top.value())
/// }
///
/// selvedge::run(async {
///     let stack = Stack::new(None);
///     atomically(|tx| push(tx, &stack, "warp")).await;
///     atomically(|tx| push(tx, &stack, "weft")).await;
///     let both = atomically(|tx| Ok((pop(tx, &stack)?, pop(tx, &stack)?)));
///     assert_eq!(both.await, ("weft", "warp"));
/// })?;
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
pub struct TNode<T, const LINKS: usize, E = Versioned>
where
    T: Send + Sync + 'static,
    E: Engine,
{
    cells: NodeCells<T, LINKS, E>,
}

type NodeCells<T, const LINKS: usize, E> = Cells<LinkValue<T, LINKS, E>, E, T>;

/// The value of a link.
struct LinkValue<T: Send + Sync + 'static, const LINKS: usize, E: Engine>(Option<TNode<T, LINKS, E>>);

/// # Safety
/// `LinkValue::into_raw` gave the pointer for the same types, and it is not used again.
unsafe fn free_link<T: Send + Sync + 'static, const LINKS: usize, E: Engine>(raw: *mut ()) {
    if !raw.is_null() {
        // SAFETY: the caller's contract; a pointer that is not null is one to a node.
        drop(unsafe { NodeCells::<T, LINKS, E>::from_raw(raw) });
    }
}

// SAFETY: `free_link` drops the owner that `into_raw` has leaked; `see` borrows it.
unsafe impl<T: Send + Sync + 'static, const LINKS: usize, E: Engine> CellValue for LinkValue<T, LINKS, E> {
    type Seen<'tx> = Option<TNodeRef<'tx, T, LINKS, E>>;

    const FREE: Option<Free> = Some(free_link::<T, LINKS, E>);

    fn type_name() -> &'static str {
        type_name::<T>()
    }

    #[inline(always)]
    fn into_raw(self) -> *mut () {
        self.0.map_or(std::ptr::null_mut(), |node| node.cells.into_raw())
    }

    #[inline(always)]
    unsafe fn see<'tx>(raw: *mut (), _: PhantomData<&'tx ()>) -> Option<TNodeRef<'tx, T, LINKS, E>> {
        // SAFETY: the caller's contract; a pointer that is not null is one to a node.
        (!raw.is_null()).then(|| TNodeRef { cells: unsafe { CellsRef::new(raw) } })
    }
}

impl<T: Send + Sync + 'static, const LINKS: usize, E: Engine> TNode<T, LINKS, E> {
    /// A node with a value, and with links to these nodes.
    pub fn new(value: T, links: [Option<TNode<T, LINKS, E>>; LINKS]) -> TNode<T, LINKS, E> {
        let mut links = links.into_iter();
        TNode { cells: Cells::new(value, LINKS, None, || LinkValue(links.next().flatten())) }
    }

    /// The value.
    pub fn value(&self) -> &T {
        self.cells.head()
    }

    /// A link.
    ///
    /// # Panics
    /// If there is no such link.
    #[inline]
    pub fn link(&self, at: usize) -> TLinkRef<'_, T, LINKS, E> {
        TLinkRef { cell: self.cells.cell(at) }
    }
}

impl<T: Send + Sync + 'static, const LINKS: usize, E: Engine> Clone for TNode<T, LINKS, E> {
    /// Another owner of the same node.
    fn clone(&self) -> Self {
        TNode { cells: self.cells.clone() }
    }
}

identity!([T: Send + Sync + 'static, const LINKS: usize, E: Engine] TNode<T, LINKS, E>, owner => &owner.cells);

impl<T, const LINKS: usize, E: Engine> fmt::Debug for TNode<T, LINKS, E>
where
    T: Send + Sync + fmt::Debug + 'static,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TNode").field(self.value()).finish_non_exhaustive()
    }
}

/// A [`TNode`] that a link leads to, or has led to, as a transaction sees it.
pub struct TNodeRef<'tx, T, const LINKS: usize, E = Versioned>
where
    T: Send + Sync + 'static,
    E: Engine,
{
    cells: CellsRef<'tx, LinkValue<T, LINKS, E>, E, T>,
}

impl<'tx, T: Send + Sync + 'static, const LINKS: usize, E: Engine> TNodeRef<'tx, T, LINKS, E> {
    /// The value.
    #[inline(always)]
    pub fn value(self) -> &'tx T {
        self.cells.head_of_tx()
    }

    /// A link.
    ///
    /// # Panics
    /// If there is no such link.
    #[inline(always)]
    pub fn link(self, at: usize) -> TLinkRef<'tx, T, LINKS, E> {
        assert!(at < LINKS, "no link {at} among {LINKS}");
        // SAFETY: `TNode::new` has made this number of cells.
        TLinkRef { cell: unsafe { self.cells.cell_of_tx(at) } }
    }

    /// An owner of the node, which another link can be given.
    #[inline]
    pub fn owned(self) -> TNode<T, LINKS, E> {
        TNode { cells: (*self.cells).clone() }
    }
}

impl<T: Send + Sync + 'static, const LINKS: usize, E: Engine> Clone for TNodeRef<'_, T, LINKS, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Send + Sync + 'static, const LINKS: usize, E: Engine> Copy for TNodeRef<'_, T, LINKS, E> {}

/// Whether both are the same node.
impl<T: Send + Sync + 'static, const LINKS: usize, E: Engine> PartialEq for TNodeRef<'_, T, LINKS, E> {
    fn eq(&self, other: &Self) -> bool {
        *self.cells == *other.cells
    }
}

impl<T: Send + Sync + 'static, const LINKS: usize, E: Engine> Eq for TNodeRef<'_, T, LINKS, E> {}

impl<T, const LINKS: usize, E: Engine> fmt::Debug for TNodeRef<'_, T, LINKS, E>
where
    T: Send + Sync + fmt::Debug + 'static,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TNodeRef").field(self.value()).finish_non_exhaustive()
    }
}

/// A link of a node, or a [`TLink`]: a variable that leads to a node or to none.
pub struct TLinkRef<'a, T, const LINKS: usize, E = Versioned>
where
    T: Send + Sync + 'static,
    E: Engine,
{
    cell: CellRef<'a, LinkValue<T, LINKS, E>, E>,
}

impl<T: Send + Sync + 'static, const LINKS: usize, E: Engine> TLinkRef<'_, T, LINKS, E> {
    /// The node that the link leads to, as this transaction sees it.
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    ///
    /// # Complexity
    /// As [`TVar::read`](crate::TVar::read).
    #[inline(always)]
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn read<'tx>(self, tx: &'tx Tx<E>) -> Tried<Option<TNodeRef<'tx, T, LINKS, E>>> {
        self.cell.read(tx)
    }

    /// Makes the link lead to a node or to none, when the transaction commits. The transaction
    /// itself sees it at once.
    ///
    /// # Complexity
    /// Nothing is allocated.
    #[inline]
    pub fn write(self, tx: &Tx<E>, node: Option<TNode<T, LINKS, E>>) {
        self.cell.write(tx, LinkValue(node));
    }
}

impl<T: Send + Sync + 'static, const LINKS: usize, E: Engine> Clone for TLinkRef<'_, T, LINKS, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Send + Sync + 'static, const LINKS: usize, E: Engine> Copy for TLinkRef<'_, T, LINKS, E> {}

impl<T: Send + Sync + 'static, const LINKS: usize, E: Engine> fmt::Debug for TLinkRef<'_, T, LINKS, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TLinkRef").finish_non_exhaustive()
    }
}

/// The link that leads into a structure of [`TNode`]s: the root of a tree, or the first node of a
/// list.
///
/// Clones are handles to the same link.
///
/// # Complexity
/// It takes 88 bytes.
pub struct TLink<T, const LINKS: usize, E = Versioned>
where
    T: Send + Sync + 'static,
    E: Engine,
{
    cells: Cells<LinkValue<T, LINKS, E>, E>,
}

impl<T: Send + Sync + 'static, const LINKS: usize, E: Engine> TLink<T, LINKS, E> {
    /// A link that leads to this node, or to none.
    pub fn new(node: Option<TNode<T, LINKS, E>>) -> TLink<T, LINKS, E> {
        TLink::made(None, node)
    }

    /// A link with a name, which reports of waiting threads show: see
    /// [`TVar::named`](crate::TVar::named).
    pub fn named(name: impl Into<Arc<str>>, node: Option<TNode<T, LINKS, E>>) -> TLink<T, LINKS, E> {
        TLink::made(Some(name.into()), node)
    }

    fn made(name: Option<Arc<str>>, mut node: Option<TNode<T, LINKS, E>>) -> TLink<T, LINKS, E> {
        TLink { cells: Cells::new((), 1, name, || LinkValue(node.take())) }
    }

    /// The link, in the form in which it can stand for the link of a node too.
    #[inline]
    pub fn link(&self) -> TLinkRef<'_, T, LINKS, E> {
        TLinkRef { cell: self.cells.cell(0) }
    }

    /// As [`TLinkRef::read`].
    ///
    /// # Errors
    /// As [`TVar::read`](crate::TVar::read).
    #[inline]
    #[must_use = "the operation may end the attempt: hand its error on with `?`"]
    pub fn read<'tx>(&self, tx: &'tx Tx<E>) -> Tried<Option<TNodeRef<'tx, T, LINKS, E>>> {
        self.link().read(tx)
    }

    /// As [`TLinkRef::write`].
    #[inline]
    pub fn write(&self, tx: &Tx<E>, node: Option<TNode<T, LINKS, E>>) {
        self.link().write(tx, node);
    }
}

impl<T: Send + Sync + 'static, const LINKS: usize, E: Engine> Clone for TLink<T, LINKS, E> {
    /// Another handle to the same link.
    fn clone(&self) -> Self {
        TLink { cells: self.cells.clone() }
    }
}

impl<T: Send + Sync + 'static, const LINKS: usize, E: Engine> fmt::Debug for TLink<T, LINKS, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TLink").finish_non_exhaustive()
    }
}
