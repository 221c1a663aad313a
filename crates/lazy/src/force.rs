//! How a value is forced: [`Settle`], the future that evaluates a node or waits for it.
//!
//! # Evaluations in one another
//! A body that forces another value polls that value's body within its own poll, as any future
//! polls the futures that it awaits. That nests on the native stack, so it ends at a depth of
//! [`DEPTH_MAX`]. There the force claims the value and **delegates** it: it gives the claimed node
//! to the **driver**, which is the outermost force of the poll, and waits for the value as other
//! threads do. The driver polls the body of a delegated node itself, from its own place on the
//! stack. When that body has ended, the driver polls the one again in which the delegation was
//! made. So a chain of any length takes a bounded native stack.
//!
//! A body may await several things at once, and other threads may wake it. So each delegated body
//! has a waker of its own (`force/woken.rs`). A poll of the driver polls its own body, the bodies
//! that were woken, and the bodies that demand a body which has ended.
//!
//! A body that blocks for another value, or awaits it behind a waker of its own, cannot be left in
//! the middle. `force/more_stack.rs` gives a chain of bodies that block more stack. A chain of the
//! other kind is refused at a depth of [`REFUSED`].
//!
//! # The frame
//! While a body is polled, a [`BodyFrame`] on the native stack says which node the body belongs to;
//! core keeps the pointer to it ([`exchange_frame`]). A force that finds a frame knows the
//! evaluation that demands it, and the driver. It may delegate only if its waker is the waker with
//! which the driver polls. Behind another waker, of `block_on` or of a combinator, the driver might
//! not be polled before the value is there. Then the force is a driver itself.
//!
//! # Callers
//! `Lazy::try_force` and `Lazy::force_blocking` in `value.rs`, and the converters of
//! `spark/converter.rs`, which force a sparked value. The rule: only the code that holds a
//! [`NodeClaim`] polls a body, and each claim ends by an update or is given up, also when its
//! future is dropped.

mod more_stack;
mod woken;

use self::more_stack::{has_room, on_more_stack};
use self::woken::WokenBodies;
use crate::circle::{CircleTable, table};
use crate::failed::NoValueError;
use crate::node::{CLAIMED, FAILED, IDLE, NodeClaim, NodeHandle, NodeHead, READY, RecordId};
use selvedge_core::in_thread;
use selvedge_core::internal::{exchange_frame, is_indivisible, this_stack};
use selvedge_sync::wait_blocking;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// The most bodies that one driver polls within one another on the native stack.
const DEPTH_MAX: u32 = if cfg!(any(loom, miri)) { 2 } else { 32 };

/// The bodies within one another from which on a blocking force goes on upon another OS thread.
const NESTED: u32 = if cfg!(miri) { 4 } else { 64 };

/// The bodies within one another at which a force is refused that nests a further driver.
const REFUSED: u32 = if cfg!(miri) { 16 } else { 512 };
/// As [`REFUSED`], on the smaller stack of a thread in direct style.
const REFUSED_IN_DIRECT: u32 = 64;

/// The evaluation that the code on this native stack belongs to.
struct BodyFrame {
    node: NonNull<NodeHead>,
    /// The frame around this one, or null.
    up: *const BodyFrame,
    /// The number of the frames from this one on, those of all drivers.
    depth: u32,
    driver: *const ForceDriver,
    /// The index of the body below this frame, among the bodies that the driver polls.
    index: usize,
}

/// A driver, while it polls its bodies.
struct ForceDriver {
    bodies: RefCell<DriverBodies>,
    /// That of the driver's poll.
    waker: *const Waker,
    /// The waker with which it polls at the moment: its own, or that of a delegated body.
    polls_with: Cell<*const Waker>,
    /// The depth of the frames below its own.
    depth: u32,
}

impl ForceDriver {
    fn polls_with(&self, waker: &Waker) -> bool {
        // SAFETY: the pointer is to the waker of a poll of a body, which is under way, because the
        // caller is part of it.
        waker.will_wake(unsafe { &*self.polls_with.get() })
    }
}

/// The bodies that a driver was given.
#[derive(Default)]
struct DriverBodies {
    delegated: Vec<Option<Delegated>>,
    /// The indexes of the bodies that this poll of the driver has to poll. 0 is its own.
    to_poll: Vec<usize>,
    /// None until a body is delegated.
    woken: Option<Arc<WokenBodies>>,
}

/// A node that a driver has been given, claimed.
struct Delegated {
    node: NodeHandle,
    claim: NodeClaim,
    /// The index of the body that demands it. 0 is the driver's own node.
    from: usize,
    waker: Waker,
}

impl Drop for Delegated {
    fn drop(&mut self) {
        give_up(&self.node, self.claim);
    }
}

/// Gives the claim up, if it has not ended.
fn give_up(node: &NodeHandle, claim: NodeClaim) {
    if node.head().has(claim) {
        node.head().give_up(claim);
    }
}

impl BodyFrame {
    /// Whether a further driver is refused.
    #[inline(always)]
    fn is_too_deep(&self) -> bool {
        let most = if this_stack().is_null() { REFUSED } else { REFUSED_IN_DIRECT };
        self.depth >= most && !has_room()
    }

    /// Whether the driver polls as many bodies within one another as may be.
    #[inline(always)]
    fn is_full(&self) -> bool {
        // SAFETY: the driver lives as long as the frames that refer to it.
        let below = unsafe { self.driver.as_ref() }.map_or(0, |driver| driver.depth);
        self.depth - below >= DEPTH_MAX
    }
}

/// Removes a frame, also when the poll unwinds.
struct RestoreFrame(*const ());

impl Drop for RestoreFrame {
    fn drop(&mut self) {
        exchange_frame(self.0);
    }
}

/// The frame around the caller.
fn frame<'a>() -> Option<&'a BodyFrame> {
    let frame = exchange_frame(ptr::null());
    exchange_frame(frame);
    // SAFETY: `poll_in` has set the pointer for the code that it calls, which the caller is part
    // of. The reference is not used after the caller returns.
    unsafe { frame.cast::<BodyFrame>().as_ref() }
}

/// Whether the caller is in the body of a lazy value.
#[inline(always)]
pub(crate) fn is_within() -> bool {
    frame().is_some()
}

/// Polls the body of the frame's node. Ready if the body has ended, and if the claim was given up.
/// A body that is pending and is below another one has a record then.
///
/// # Safety
/// The claim was the caller's, and no other caller polls for it. The caller has a handle.
#[inline(always)]
unsafe fn poll_in(frame: &BodyFrame, claim: NodeClaim, cx: &mut Context<'_>) -> Poll<()> {
    // SAFETY: the caller has a handle.
    let head = unsafe { frame.node.as_ref() };
    if !head.begin_poll(claim) {
        return Poll::Ready(());
    }
    // SAFETY: the caller's contract, and the mark of `begin_poll` keeps the claim.
    unsafe { poll_marked(frame, claim, cx) }
}

/// As [`poll_in`], of a node that is marked as polled.
///
/// # Safety
/// As for [`poll_in`]; the mark is that of the caller's claim, or of its `begin_poll`.
#[inline(always)]
unsafe fn poll_marked(frame: &BodyFrame, claim: NodeClaim, cx: &mut Context<'_>) -> Poll<()> {
    // SAFETY: the caller has a handle.
    let head = unsafe { frame.node.as_ref() };
    let polled = {
        let _restore = RestoreFrame(exchange_frame(ptr::from_ref(frame).cast()));
        // SAFETY: the claim is the present one, and its mark keeps it.
        unsafe { NodeHandle::evaluate(frame.node, cx) }
    };
    if polled.is_ready() {
        return Poll::Ready(());
    }
    pause_in(frame, head, claim)
}

/// The end of a poll after which the body is pending.
#[inline(never)]
fn pause_in(frame: &BodyFrame, head: &NodeHead, claim: NodeClaim) -> Poll<()> {
    if !frame.up.is_null() && head.record() == 0 {
        record_all(&mut table(), frame);
    }
    if head.pause(claim) { Poll::Pending } else { Poll::Ready(()) }
}

/// Records the evaluations of the frame and of all frames around it, with their parents. Gives the
/// record of the first.
fn record_all(table: &mut CircleTable, frame: &BodyFrame) -> RecordId {
    let mut next = Some(frame);
    let (mut first, mut child) = (0, 0);
    while let Some(frame) = next {
        // SAFETY: the frame is of a body that is being polled, and a claimant of it has a handle.
        let head = unsafe { frame.node.as_ref() };
        if head.record() == 0 {
            // SAFETY: as above.
            head.set_record(table.record(unsafe { NodeHandle::of(frame.node) }));
        }
        if child == 0 {
            first = head.record();
        } else {
            table.set_parent(child, head.record());
        }
        child = head.record();
        // SAFETY: a frame lives as long as those within it.
        next = unsafe { frame.up.as_ref() };
    }
    first
}

/// The future that ends when the node has its value, or the reason why it has none.
///
/// # Cancellation
/// Dropped in the middle of an evaluation, it gives the evaluation up: the node is idle again, with
/// its body as it is.
pub(crate) struct Settle<'a> {
    node: &'a NodeHandle,
    place: &'static Location<'static>,
    stage: SettleStage<'a>,
    /// Whether it is a driver itself, because no other one can poll the body for it.
    is_driver: bool,
}

/// The delegated nodes of a driver between its polls.
type KeptNodes = Option<Box<DriverBodies>>;

enum SettleStage<'a> {
    /// To look at the state next.
    Looking,
    /// This future has claimed the node. With the delegated nodes that it has to poll.
    Evaluating(NodeClaim, KeptNodes),
    /// The driver has the node, as its delegated body of this index. Whether this future has been
    /// polled since.
    Delegating(WaitFuture<'a>, usize, bool),
    /// Another evaluation has the node.
    Waiting(WaitFuture<'a>),
}

impl<'a> Settle<'a> {
    #[inline]
    fn at(node: &'a NodeHandle, place: &'static Location<'static>, stage: SettleStage<'a>) -> Settle<'a> {
        Settle { node, place, stage, is_driver: false }
    }

    #[inline]
    pub(crate) fn new(node: &'a NodeHandle, place: &'static Location<'static>) -> Settle<'a> {
        Settle::at(node, place, SettleStage::Looking)
    }
}

impl Future for Settle<'_> {
    type Output = Result<(), NoValueError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), NoValueError>> {
        let this = &mut *self;
        let node = this.node;
        loop {
            match &mut this.stage {
                SettleStage::Looking => match node.head().state() {
                    IDLE | CLAIMED if is_indivisible() => refuse_within_transaction(),
                    IDLE => {
                        if let Some(claim) = node.head().claim() {
                            this.stage = SettleStage::Evaluating(claim, None);
                            if node.head().record() != 0
                                && let Err(failed) = resume(node, claim)
                            {
                                this.stage = SettleStage::Looking;
                                node.head().pause(claim);
                                give_up(node, claim);
                                return Poll::Ready(Err(failed));
                            }
                        }
                    }
                    CLAIMED => this.stage = SettleStage::Waiting(wait_for_other(node, this.place)?),
                    FAILED => return Poll::Ready(Err(node.head().failed())),
                    _ => return Poll::Ready(Ok(())),
                },
                // The claim was given up together with the body that this future is part of.
                SettleStage::Evaluating(claim, _) if !node.head().has(*claim) => {
                    this.stage = SettleStage::Looking
                }
                SettleStage::Evaluating(claim, delegated) => {
                    let claim = *claim;
                    if has_moved(node.head()) {
                        resume(node, claim)?;
                    }
                    let is_driver = this.is_driver || delegated.is_some();
                    let around = frame().filter(|around| {
                        // SAFETY: the driver lives as long as the frames that refer to it.
                        let driver = unsafe { around.driver.as_ref() };
                        driver.is_some_and(|driver| driver.polls_with(cx.waker()))
                    });
                    let polled = match around {
                        Some(around) if around.is_full() && !is_driver => {
                            this.stage = match node.head().pause(claim) {
                                true => delegate(node, claim, around, this.place),
                                false => SettleStage::Looking,
                            };
                            continue;
                        }
                        Some(around) if !is_driver => {
                            let node = node.pointer();
                            let inner = BodyFrame { node, up: around, depth: around.depth + 1, ..*around };
                            // SAFETY: this future has the claim, and `this.node` is a handle.
                            unsafe { poll_in(&inner, claim, cx) }
                        }
                        _ => match frame().filter(|around| around.is_too_deep()) {
                            None => drive(node, claim, delegated, cx),
                            Some(around) => return Poll::Ready(Err(NoValueError::from_depth(around.depth))),
                        },
                    };
                    if polled.is_pending() {
                        return Poll::Pending;
                    }
                    this.stage = SettleStage::Looking;
                }
                SettleStage::Delegating(wait, index, was_polled) => match wait.as_mut().poll(cx) {
                    // The driver would have polled the body before it polled this again. So it is
                    // below a `wait` in direct style on this stack, which polls this until it ends.
                    Poll::Pending if *was_polled && take_back(node, *index) => {
                        this.is_driver = true;
                        this.stage = SettleStage::Looking;
                    }
                    Poll::Pending => {
                        // The poll that decides.
                        if !std::mem::replace(was_polled, true) && !this_stack().is_null() {
                            cx.waker().wake_by_ref();
                        }
                        return Poll::Pending;
                    }
                    Poll::Ready(Err(failed)) => return Poll::Ready(Err(failed)),
                    Poll::Ready(Ok(())) => this.stage = SettleStage::Looking,
                },
                SettleStage::Waiting(wait) => match wait.as_mut().poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Err(failed)) => return Poll::Ready(Err(failed)),
                    Poll::Ready(Ok(())) => this.stage = SettleStage::Looking,
                },
            }
        }
    }
}

impl Drop for Settle<'_> {
    fn drop(&mut self) {
        if let SettleStage::Evaluating(claim, delegated) = &mut self.stage {
            // The nodes on which the body waits are given up first.
            drop(delegated.take());
            give_up(self.node, *claim);
        }
    }
}

/// Refuses to evaluate or await a value within the body of a transaction, before the body of the
/// value is begun: a panic that is about the caller's place would be kept with the value.
#[cold]
#[inline(never)]
#[track_caller]
fn refuse_within_transaction() -> ! {
    panic!(
        "a lazy value that is not there was forced within the body of a transaction, where its own body may not wait and \
         may not begin a transaction: force it before the transaction"
    );
}

/// Whether the table has another parent for the evaluation than the body around the caller. So it
/// is when the force was sent to another thread, or into another body.
#[inline(always)]
fn has_moved(head: &NodeHead) -> bool {
    if head.record() == 0 {
        return false;
    }
    match frame() {
        None => head.parent() != 0,
        Some(frame) => {
            // SAFETY: the frame is of a body that is being polled, and a claimant of it has a
            // handle.
            let demands = unsafe { frame.node.as_ref() }.record();
            demands == 0 || demands != head.parent()
        }
    }
}

/// Notes that a body that has a record, from an earlier poll, is polled by the caller from now on.
///
/// # Errors
/// When the body waits for the evaluation around the caller.
#[cold]
fn resume(node: &NodeHandle, claim: NodeClaim) -> Result<(), NoValueError> {
    let mut table = table();
    // Under the lock no other thread gives the claim up, so the record stays.
    if !node.head().has(claim) {
        return Ok(());
    }
    let parent = frame().map_or(0, |frame| record_all(&mut table, frame));
    table.resume(node.head().record(), node.clone(), parent)
}

type WaitFuture<'a> = Pin<Box<dyn Future<Output = Result<(), NoValueError>> + Send + 'a>>;

/// Waits for the end of an evaluation of another thread, or of another part of this thread.
///
/// # Errors
/// When that evaluation waits for the caller's.
fn wait_for_other<'a>(
    node: &'a NodeHandle,
    place: &'static Location<'static>,
) -> Result<WaitFuture<'a>, NoValueError> {
    let edge = match frame() {
        Some(frame) => {
            let value = node.pointer().addr().get();
            let mut table = table();
            let waits = record_all(&mut table, frame);
            Some(table.add_edge(waits, value)?)
        }
        None => None,
    };
    Ok(Box::pin(async move {
        node.head().wait(false, place).await;
        drop(edge);
        Ok(())
    }))
}

/// Gives the claimed node to the driver, and waits for the end of its evaluation.
#[cold]
fn delegate<'a>(
    node: &'a NodeHandle,
    claim: NodeClaim,
    around: &BodyFrame,
    place: &'static Location<'static>,
) -> SettleStage<'a> {
    // SAFETY: the driver lives as long as the frames that refer to it.
    let driver = unsafe { &*around.driver };
    // No code of the program runs while the bodies are borrowed, but the clone of a waker.
    let mut bodies = driver.bodies.borrow_mut();
    // SAFETY: the waker of the driver's poll, which is under way.
    let woken = bodies.woken.get_or_insert_with(|| WokenBodies::new(unsafe { &*driver.waker }.clone()));
    let woken = woken.clone();
    let index = bodies.delegated.len() + 1;
    drop(bodies);
    let waker = woken.waker_of(index);
    let before = {
        let mut table = table();
        let parent = record_all(&mut table, around);
        let head = node.head();
        if head.record() == 0 {
            head.set_record(table.record(node.clone()));
        }
        table.set_parent(head.record(), parent);
        // It is woken when the claim is given up, so that the driver lets go of the node.
        table.set_waker(head.record(), waker.clone())
    };
    drop(before);
    let wait = node.head().wait(true, place);
    let delegated = Delegated { node: node.clone(), claim, from: around.index, waker };
    let mut bodies = driver.bodies.borrow_mut();
    bodies.delegated.push(Some(delegated));
    bodies.to_poll.push(index);
    drop(bodies);
    let demand = Held { node, claim };
    let wait = Box::pin(async move {
        wait.await;
        drop(demand);
        Ok(())
    });
    SettleStage::Delegating(wait, index, false)
}

/// Takes a delegated node back from the driver around the caller, and gives its claim up. False if
/// the driver has polled its body, or is another one.
#[cold]
fn take_back(node: &NodeHandle, index: usize) -> bool {
    let Some(around) = frame() else { return false };
    // SAFETY: the driver lives as long as the frames that refer to it.
    let Some(driver) = (unsafe { around.driver.as_ref() }).filter(|_| !this_stack().is_null()) else {
        return false;
    };
    let mut bodies = driver.bodies.borrow_mut();
    let DriverBodies { delegated, to_poll, .. } = &mut *bodies;
    let is_new = to_poll.contains(&index);
    let is_same = |body: &mut Delegated| is_new && body.node.pointer() == node.pointer();
    let taken = delegated.get_mut(index - 1).and_then(|body| body.take_if(is_same));
    drop(bodies);
    taken.is_some()
}

/// The demand of a body for a delegated node: a claim that is given up when this is dropped before
/// the evaluation has ended. The driver of the node finds that when it is to poll the body next, or
/// after its poll.
struct Held<'a> {
    node: &'a NodeHandle,
    claim: NodeClaim,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        give_up(self.node, self.claim);
    }
}

/// Notes the waker of a force within a body, which is woken when the force is given up with the
/// body. False if it was given up already.
fn keep_waker(node: &NodeHandle, claim: NodeClaim, cx: &Context<'_>) -> bool {
    let waker = cx.waker().clone();
    let mut table = table();
    // Under the lock no other thread gives the claim up, so the record stays.
    let is_held = node.head().has(claim);
    let before = is_held.then(|| table.set_waker(node.head().record(), waker));
    drop(table);
    drop(before);
    is_held
}

/// Polls the body of a node that the caller has claimed, and the delegated bodies that were woken.
/// Ready if the body has ended, and if the claim was given up.
fn drive(node: &NodeHandle, claim: NodeClaim, kept: &mut KeptNodes, cx: &mut Context<'_>) -> Poll<()> {
    let mut bodies = kept.take().map(|kept| *kept).unwrap_or_default();
    if let Some(woken) = &bodies.woken {
        woken.begin(cx.waker(), &mut bodies.to_poll);
    }
    bodies.to_poll.push(0);
    let around = frame();
    let up = around.map_or(ptr::null(), ptr::from_ref);
    let driver = ForceDriver {
        bodies: RefCell::new(bodies),
        waker: cx.waker(),
        polls_with: Cell::new(cx.waker()),
        depth: around.map_or(0, |around| around.depth),
    };
    while let Some(index) = driver.next() {
        let next = match index {
            0 => Some((node.pointer(), claim, None)),
            _ => driver.body(index).map(|(next, claim, waker)| (next, claim, Some(waker))),
        };
        // The body of an index that was noted may have ended.
        let Some((next, claim, own_waker)) = next else { continue };
        let waker = own_waker.as_ref().unwrap_or(cx.waker());
        driver.polls_with.set(waker);
        let up = if index == 0 { up } else { ptr::null() };
        let frame = BodyFrame { node: next, up, depth: driver.depth + 1, driver: &driver, index };
        // SAFETY: the driver has claimed its own node, and was given the others claimed. It has a
        // handle of each.
        let polled = unsafe { poll_in(&frame, claim, &mut Context::from_waker(waker)) };
        if polled.is_pending() {
            continue;
        }
        if index == 0 {
            // Delegated nodes that are left are needed no more, and are given up.
            let left = driver.bodies.take();
            drop(left);
            return Poll::Ready(());
        }
        drop(driver.remove(index));
    }
    let bodies = driver.bodies.into_inner();
    *kept = (!bodies.delegated.is_empty()).then(|| Box::new(bodies));
    if up.is_null() || keep_waker(node, claim, cx) { Poll::Pending } else { Poll::Ready(()) }
}

impl ForceDriver {
    /// The index of the body to poll next.
    fn next(&self) -> Option<usize> {
        self.bodies.borrow_mut().to_poll.pop()
    }

    /// A delegated body, if it is there.
    fn body(&self, index: usize) -> Option<(NonNull<NodeHead>, NodeClaim, Waker)> {
        let bodies = self.bodies.borrow();
        let body = bodies.delegated.get(index - 1)?.as_ref()?;
        Some((body.node.pointer(), body.claim, body.waker.clone()))
    }

    /// Removes a delegated body that has ended. The body that demands it is polled next.
    fn remove(&self, index: usize) -> Option<Delegated> {
        let mut bodies = self.bodies.borrow_mut();
        let done = bodies.delegated[index - 1].take();
        bodies.to_poll.extend(done.as_ref().map(|done| done.from));
        while bodies.delegated.last().is_some_and(Option::is_none) {
            bodies.delegated.pop();
        }
        done
    }
}

/// Settles the node on an OS thread outside of our threads. If the node is idle, this polls its
/// body once: mostly the body ends at once, and then neither waker nor driver is needed. Otherwise
/// the OS thread blocks.
///
/// # Panics
/// If the value has none, and within a step of a thread of ours.
#[inline(never)]
#[track_caller]
pub(crate) fn settle_blocking(node: &NodeHandle) {
    settle_blocking_at(node, Location::caller());
}

#[inline(always)]
#[track_caller]
fn settle_blocking_at(node: &NodeHandle, place: &'static Location<'static>) {
    let head = node.head();
    if is_indivisible() && !matches!(head.state(), READY | FAILED) {
        refuse_within_transaction();
    }
    if !in_thread() {
        let (up, below) = frame().map_or((ptr::null(), 0), |up| (ptr::from_ref(up), up.depth));
        if below >= NESTED && !has_room() {
            return on_more_stack(below, up.cast(), || settle_blocking_at(node, place));
        }
        if head.record() == 0
            && let Some(claim) = head.claim()
        {
            // Another thread may have recorded the node and given it up before the claim.
            if head.record() != 0 {
                head.pause(claim);
                give_up(node, claim);
            } else {
                let depth = below + 1;
                let alone = BodyFrame { node: node.pointer(), up, depth, driver: ptr::null(), index: 0 };
                // SAFETY: the claim is this call's, with its mark, and `node` is a handle.
                let polled = unsafe { poll_marked(&alone, claim, &mut Context::from_waker(Waker::noop())) };
                if polled.is_pending() {
                    return block(node, place, SettleStage::Evaluating(claim, None));
                }
                if head.is_ready() {
                    return;
                }
            }
        }
    }
    block(node, place, SettleStage::Looking);
}

/// Blocks the OS thread until the node is settled.
#[cold]
#[inline(never)]
#[track_caller]
fn block(node: &NodeHandle, place: &'static Location<'static>, stage: SettleStage<'_>) {
    if let Err(failed) = wait_blocking(Settle::at(node, place, stage)) {
        failed.throw();
    }
}
