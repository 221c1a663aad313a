//! [`NodeKind`]: what the nodes of one type that one place of the program makes have in common.
//!
//! A node has one word for its kind. With a word for its functions and one for its place it would
//! be half as large again, and the values that are read one after the other lie further apart.
//!
//! [`NodeKind::of`] makes each kind once, and it stays: a program has as many kinds as it has
//! places that make lazy values, and types there. `NodeHandle::new` looks for the kind in
//! [`RECENT`], which costs a few loads. A kind that is not there is in [`KINDS`], behind a lock.

use std::collections::HashMap;
use std::panic::Location;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::task::{Context, Poll};

/// The functions of one type of node. They get the address of such a node, without its type, so
/// that this file does not depend on what a node is.
#[derive(Clone, Copy)]
pub(super) struct NodeTable {
    /// Polls the body, and updates the node when the body has ended.
    ///
    /// # Safety
    /// The address is that of a node of this type. The caller has claimed it, and has a handle.
    pub(super) evaluate: unsafe fn(NonNull<()>, &mut Context<'_>) -> Poll<()>,
    /// Drops what is in the node, and frees it.
    ///
    /// # Safety
    /// The address is that of a node of this type, and no handle of it is left.
    pub(super) free: unsafe fn(NonNull<()>),
    /// Whether a value or a body of this type may have handles in it.
    pub(super) drops: bool,
}

/// The functions of a type of node, and the place that makes such nodes.
pub(super) struct NodeKind {
    /// A copy, so that a call is one load from here.
    pub(super) functions: NodeTable,
    pub(super) place: &'static Location<'static>,
    key: KindKey,
}

/// The addresses of the table and of the place.
type KindKey = (usize, usize);

/// The slots of [`RECENT`].
const SLOTS: usize = 256;

/// Kinds that were looked for, each in the slot of its hash or in the neighbour of that slot.
static RECENT: [AtomicPtr<NodeKind>; SLOTS] = [const { AtomicPtr::new(ptr::null_mut()) }; SLOTS];

/// All kinds.
static KINDS: LazyLock<Mutex<HashMap<KindKey, &'static NodeKind>>> = LazyLock::new(Mutex::default);

impl NodeKind {
    /// The kind of the nodes with these functions that are made at this place.
    #[inline(always)]
    pub(super) fn of(table: &'static NodeTable, place: &'static Location<'static>) -> &'static NodeKind {
        let key = (ptr::from_ref(table).addr(), ptr::from_ref(place).addr());
        let slot = slot_of(key);
        match recent(slot) {
            Some(kind) if kind.key == key => kind,
            _ => find(key, slot, table, place),
        }
    }
}

#[inline(always)]
fn slot_of((table, place): KindKey) -> usize {
    let mixed = (table ^ place.rotate_left(16)).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as usize);
    mixed >> (usize::BITS - SLOTS.ilog2())
}

#[inline(always)]
fn recent(slot: usize) -> Option<&'static NodeKind> {
    // SAFETY: a slot is null or has a kind of `find`, which is never freed.
    unsafe { RECENT[slot].load(Ordering::Acquire).as_ref() }
}

/// The kind of this key, from the neighbour of its slot, or from the table of all. In the latter
/// case it gets the slot if that is free, and otherwise the neighbour. So two kinds with one slot
/// are both found without the lock.
#[cold]
#[inline(never)]
fn find(
    key: KindKey,
    slot: usize,
    table: &'static NodeTable,
    place: &'static Location<'static>,
) -> &'static NodeKind {
    let neighbour = slot ^ 1;
    if let Some(kind) = recent(neighbour).filter(|kind| kind.key == key) {
        return kind;
    }
    let mut kinds = KINDS.lock().unwrap_or_else(PoisonError::into_inner);
    let new = || &*Box::leak(Box::new(NodeKind { functions: *table, place, key }));
    let kind: &'static NodeKind = kinds.entry(key).or_insert_with(new);
    let to = if recent(slot).is_none() { slot } else { neighbour };
    RECENT[to].store(ptr::from_ref(kind).cast_mut(), Ordering::Release);
    kind
}
