//! Async steps: [`AsyncStep`], which the body of such a step gets, and the code that polls the
//! body.
//!
//! `Graph::prescribe_async` calls [`entry`], which makes two entries for one step. `BeginCode`
//! calls the body with a tag and stores the future in a [`StepFrame`]. `RestCode` polls that frame
//! again after the step has waited. The frame's memory comes from the worker's `FramePool`; the
//! address of the frame is the word of the `ReadyStep` that waits.
//!
//! An instance owns its frame: `poll` hands the frame on with `StepContext::set_rest`, or empties
//! it once. While `poll` runs the future, a [`PollEntry`] with the worker's `StepContext` is in a
//! list of the OS thread (`step/polls.rs`), where [`AsyncStep`] finds it. An `AsyncStep` keeps its
//! claims until it is dropped, because references to counted items borrow the `AsyncStep`.
//!
//! `handle.rs` has the handle, and `gets.rs` the futures of its gets.
//!
//! Paper: [NCM11 §3.3], the continuation of a step waits for the item.

mod gets;
mod handle;

pub use gets::{Get, Take};
pub use handle::AsyncStep;

use crate::core::Core;
use crate::error::{FaultCause, Halted, StepResult};
use crate::first_panic::take_message;
use crate::frames::{free_memory, size_of_frame};
use crate::hints::StepHints;
use crate::key::{ItemKey, NO_TAG, is_word, text_of};
use crate::primitives::{AtomicU64, Ordering};
use crate::ready_step::{Code, ReadyStep, StepEntry};
use crate::step::{Phase, PollEntry, PollGuard, StepContext};
use crate::tag_word::{about_tags, free_of, tag_of, with_tag};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::{self, AssertUnwindSafe};
use std::pin::Pin;
use std::ptr::{self, NonNull};
use std::task::{Context, Poll, Waker};

/// A suspended or running async step.
struct StepFrame<T, Fut> {
    /// Dropped by [`empty_frame`].
    future: ManuallyDrop<Fut>,
    /// Dropped after the future, because faults in the future's destructor name the tag.
    tag: T,
    /// The number of the step, by `StepContext::new_serial`.
    serial: u64,
    /// The graph's count of handles and frames, for [`free_frame`].
    count: NonNull<AtomicU64>,
}

/// Drops the content of a frame: the future, then the tag, also if the future's destructor panics.
/// That destructor may put an item, and a fault of the put reads the frame's tag. So no reference
/// to the whole frame exists meanwhile.
///
/// # Safety
/// There is a frame, and it is used no more. Its memory stays.
unsafe fn empty_frame<T, Fut>(frame: *mut StepFrame<T, Fut>) {
    struct Tag<T>(*mut T);

    impl<T> Drop for Tag<T> {
        fn drop(&mut self) {
            // SAFETY: as promised by the caller of `empty_frame`.
            unsafe { ptr::drop_in_place(self.0) };
        }
    }

    // SAFETY: as promised by the caller. The pointer is to the tag alone, and the reference below
    // to the future alone.
    let _after_the_future = Tag(unsafe { &raw mut (*frame).tag });
    // SAFETY: as above, and the future is dropped here only.
    unsafe { ManuallyDrop::drop(&mut (*frame).future) };
}

/// Frees a frame where there may be no worker.
///
/// # Safety
/// The word is the address of a `StepFrame<T, Fut>` in memory of a [`FramePool`], and is used no
/// more. The graph exists, and so does all that the tag and the future borrow: see the head of
/// `frames.rs`.
///
/// [`FramePool`]: crate::frames::FramePool
unsafe fn free_frame<T, Fut>(word: u64) {
    struct Memory<F>(*mut F, NonNull<AtomicU64>);

    impl<F> Drop for Memory<F> {
        fn drop(&mut self) {
            // SAFETY: as promised by the caller of `free_frame`, the graph exists.
            unsafe { self.1.as_ref() }.fetch_sub(1, Ordering::Release);
            // SAFETY: as promised by the caller of `free_frame`. What was in the frame was dropped.
            unsafe { free_memory(self.0) };
        }
    }

    let frame: *mut StepFrame<T, Fut> = ptr::with_exposed_provenance_mut(word as usize);
    // SAFETY: as promised by the caller.
    let memory = Memory(frame, unsafe { (*frame).count });
    // SAFETY: as promised by the caller.
    unsafe { empty_frame(memory.0) };
}

/// The code of an async step that begins. Its word is the tag.
struct BeginCode<'g, T, F> {
    core: &'g Core<'g>,
    body: F,
    rest: &'g StepEntry<'g>,
    hints: &'g StepHints<'g, T>,
}

/// The code of an async step that goes on. Its word is the address of its frame.
struct RestCode<'g, T, Fut> {
    hints: &'g StepHints<'g, T>,
    frame: PhantomData<fn() -> Fut>,
}

/// Makes the two entries of an async step, and returns the entry that begins.
pub(crate) fn entry<'g, T, F, Fut>(
    core: &'g Core<'g>,
    name: &str,
    body: F,
    hints: &'g StepHints<'g, T>,
) -> &'g StepEntry<'g>
where
    T: ItemKey + 'g,
    F: Fn(T, AsyncStep<'g>) -> Fut + Send + Sync + 'g,
    Fut: Future<Output = StepResult> + Send + 'g,
{
    let rest = RestCode::<'g, T, Fut> { hints, frame: PhantomData };
    let rest = core.add_entry(name, Box::new(rest), Some(free_frame::<T, Fut>), true);
    let begin = Box::new(BeginCode { core, body, rest, hints });
    core.add_entry_of(Some(rest.number), name, begin, free_of::<T>(), true)
}

impl<'g, T, F, Fut> Code<'g> for BeginCode<'g, T, F>
where
    T: ItemKey + 'g,
    F: Fn(T, AsyncStep<'g>) -> Fut + Send + Sync,
    Fut: Future<Output = StepResult> + Send + 'g,
{
    unsafe fn run(&self, word: u64, step: &StepContext<'g>) -> StepResult {
        // SAFETY: as promised by the caller. The instance owns its word, which is freed here.
        let tag: T = unsafe { tag_of(word) };
        if let Some(free) = free_of::<T>() {
            // SAFETY: as above, and the tag was cloned.
            unsafe { free(word) };
        }
        let maker = if is_word::<T>() { (step.entry_number(), word) } else { (self.rest.number, 0) };
        let frame = step.frames.take::<StepFrame<T, Fut>>();
        let word = frame.expose_provenance() as u64;
        let serial = step.new_serial();
        let handle = AsyncStep::new(self.core, maker, serial);
        // The handle and the frame.
        step.handles.set(step.handles.get().wrapping_add(2));
        let future = match panic::catch_unwind(AssertUnwindSafe(|| (self.body)(tag.clone(), handle))) {
            Ok(future) => future,
            Err(panic) => {
                // SAFETY: the memory came from a pool above, and has no other user.
                unsafe { step.frames.give(frame) };
                step.handles.set(step.handles.get().wrapping_sub(1));
                let text = text_of(&tag);
                let order = if is_word::<T>() { tag.to_word() } else { 0 };
                return Err(step.fault_of(self.rest, order, text, FaultCause::Panicked(take_message(panic))));
            }
        };
        let count = NonNull::from(&self.core.tally.handles);
        // SAFETY: the memory is for such a frame, and has no other user.
        unsafe { frame.write(StepFrame { future: ManuallyDrop::new(future), tag, serial, count }) };
        // SAFETY: the word is that of a new frame of the entry's types, and is handed over.
        unsafe { poll::<T, Fut>(ReadyStep { entry: self.rest, word }, step) }
    }

    fn rest(&self) -> Option<usize> {
        Some(self.rest.number)
    }

    about_tags!(with_tag::<T, _>);
}

impl<'g, T, Fut> Code<'g> for RestCode<'g, T, Fut>
where
    T: ItemKey + 'g,
    Fut: Future<Output = StepResult> + Send + 'g,
{
    unsafe fn run(&self, word: u64, step: &StepContext<'g>) -> StepResult {
        let entry = step.current_entry();
        // SAFETY: as promised by the caller: the word is a frame of this entry, and is handed over.
        unsafe { poll::<T, Fut>(ReadyStep { entry, word }, step) }
    }

    fn frame(&self) -> Option<usize> {
        const { size_of_frame::<StepFrame<T, Fut>>() }
    }

    about_tags!(with_frame_tag::<T, Fut, _>);
}

/// Gives `see` the tag of a frame.
///
/// # Safety
/// The word is the address of a `StepFrame<T, Fut>`, which lives during the call.
unsafe fn with_frame_tag<T, Fut, R>(word: u64, see: impl FnOnce(&T) -> R) -> R {
    // SAFETY: as promised by the caller. The tag is only read, also while the future runs.
    see(unsafe { &(*ptr::with_exposed_provenance::<StepFrame<T, Fut>>(word as usize)).tag })
}

/// Runs an async step to its end, or to an item that it misses.
///
/// # Safety
/// The instance's word is the address of a `StepFrame<T, Fut>` in memory of a `FramePool`.
unsafe fn poll<'g, T, Fut>(ready: ReadyStep<'g>, step: &StepContext<'g>) -> StepResult
where
    T: ItemKey + 'g,
    Fut: Future<Output = StepResult> + Send + 'g,
{
    let frame: *mut StepFrame<T, Fut> = ptr::with_exposed_provenance_mut(ready.word as usize);
    step.enter(Phase::Once);
    step.become_this(&ready);
    // SAFETY: the frame never moves until it is dropped; the instance owns it, so no other worker
    // has it. The tag beside the future is only read meanwhile.
    let future = unsafe { Pin::new_unchecked(&mut *(*frame).future) };
    // SAFETY: as above: `BeginCode::run` has written the number, and it never changes.
    let polled = PollEntry::of(unsafe { (*frame).serial }, step);
    let entered = PollGuard::enter(&polled);
    let end = panic::catch_unwind(AssertUnwindSafe(|| future.poll(&mut Context::from_waker(Waker::noop()))));
    let result = match end {
        Ok(Poll::Pending) => {
            step.set_rest(ready);
            return Err(Halted(None));
        }
        Ok(Poll::Ready(Ok(()))) => Ok(()),
        Ok(Poll::Ready(Err(Halted(Some(error))))) => Err(step.fault(FaultCause::Error(*error))),
        Ok(Poll::Ready(Err(stop))) => Err(stop),
        Err(panic) => Err(step.fault(FaultCause::Panicked(take_message(panic)))),
    };
    // The future's destructors may return claims, which needs the worker. They may panic too.
    let (entry, _) = ready.into_parts();
    // SAFETY: the instance owned the frame, and `into_parts` has left it to this function.
    let dropped = panic::catch_unwind(AssertUnwindSafe(|| unsafe { empty_frame(frame) }));
    drop(entered);
    // SAFETY: the frame came from a pool, and was dropped.
    unsafe { step.frames.give(frame) };
    step.handles.set(step.handles.get().wrapping_sub(1));
    match dropped {
        Ok(()) => result,
        Err(panic) => {
            Err(step.fault_of(entry, 0, NO_TAG.to_owned(), FaultCause::Panicked(take_message(panic))))
        }
    }
}
