//! [`Completion`]: an event that comes once, with a value, for one thread that waits for it.
//!
//! A posted receive has one for its message, a synchronous send for the match, and an engine gives
//! one for a send that is under way. It is a wait queue of `core`, so the thread parks, and a
//! report of a deadlock shows its place.

use selvedge_core::internal::is_lent_here;
use selvedge_core::observe::{self, Object, WaitReason};
use selvedge_core::{Queue, Role, WaitQueue};
use std::fmt;
use std::future::poll_fn;
use std::panic::Location;
use std::pin::{Pin, pin};

/// An event that comes once, with a value.
pub struct Completion<T = Result<(), EndedRank>> {
    queue: WaitQueue<Option<T>, ()>,
}

/// The other rank has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedRank {
    /// Its rank in the world.
    pub rank: u32,
    /// Whether it failed: it panicked, or returned an error.
    pub failed: bool,
}

/// What the run of a rank waits for after the end of the rank. The error says in words what has
/// failed. Dropping it gives it up.
pub(crate) type BeforeEnd = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// What hears of the end of a rank: an engine in which the rank has a second number.
pub(crate) trait HearsEnd: Send + Sync {
    /// The rank with this number there has ended.
    fn rank_ended(&self, ended: EndedRank);

    /// To the rank `own` of this process, another rank there is as one that has ended. The other
    /// ranks hear nothing.
    fn other_ended_for(&self, own: u32, other: EndedRank);
}

impl<T> Completion<T> {
    /// An event that has not come.
    pub fn new() -> Completion<T> {
        Completion { queue: WaitQueue::new(None) }
    }

    /// The event has come, with this value. The thread that waits for it is resumed.
    pub fn complete(&self, value: T) {
        self.queue.with(|state, queue| {
            *state = Some(value);
            queue.grant();
        });
    }

    /// As [`complete`](Self::complete), and resumes no thread: under a lock.
    pub(crate) fn set(&self, value: T) {
        self.queue.with(|state, _| *state = Some(value));
    }

    /// Resumes the thread that waits, after [`set`](Self::set).
    pub(crate) fn wake(&self) {
        self.queue.with(|_, queue| queue.grant());
    }

    /// As [`complete`](Self::complete), with the value that lies there, unless the event was
    /// [given up](Self::take_or_give_up): the value then stays there.
    #[inline]
    pub(crate) fn complete_unless_given_up(&self, value: &mut Option<T>) {
        self.queue.with(|state, queue| {
            if *queue.word() != GIVEN_UP {
                *state = value.take();
                queue.grant();
            }
        });
    }

    /// The value, if the event has come. Else nothing will take it.
    pub(crate) fn take_or_give_up(&self) -> Option<T> {
        self.queue.with(|state, queue| {
            let value = state.take();
            if value.is_none() {
                *queue.word() = GIVEN_UP;
            }
            value
        })
    }

    /// Whether the event was [given up](Self::take_or_give_up).
    pub(crate) fn is_given_up(&self) -> bool {
        self.queue.word() == GIVEN_UP
    }

    /// The value, if the event has come and no call has taken it.
    pub fn take(&self) -> Option<T> {
        self.queue.with(|state, _| state.take())
    }

    /// Whether the event has come, and no call has taken its value.
    pub(crate) fn has_come(&self) -> bool {
        self.queue.with(|state, _| state.is_some())
    }

    /// Waits for the event, and leaves its value. A report of what threads wait for says: "waits to
    /// `call`", and what `object` gives.
    #[expect(clippy::manual_async_fn, reason = "an async function has its arguments twice in its memory")]
    pub(crate) fn wait<O: Fn() -> String>(
        &self,
        place: &'static Location<'static>,
        call: &'static str,
        object: O,
    ) -> impl Future<Output = ()> + use<'_, T, O> {
        async move {
            let mut waiting = pin!(self.queue.wait_at::<HasCome>((), place));
            poll_fn(|cx| {
                let polled = waiting.as_mut().poll(cx);
                if polled.is_pending() && observe::is_on() && is_lent_here(cx.waker()) {
                    observe::waits_on(|| WaitReason { call, object: Object::Name(object().into()) });
                }
                polled
            })
            .await;
        }
    }
}

/// The word of an event that was given up.
const GIVEN_UP: u32 = 1;

impl<T> Default for Completion<T> {
    fn default() -> Completion<T> {
        Completion::new()
    }
}

impl<T> fmt::Debug for Completion<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completion").field("has_come", &self.has_come()).finish()
    }
}

/// The role of the one thread that waits.
enum HasCome {}

impl<T> Role<Option<T>, ()> for HasCome {
    type Output = ();

    fn attempt(state: &mut Option<T>, _: &mut Queue<'_, ()>, (): &mut ()) -> Option<()> {
        state.is_some().then_some(())
    }

    fn granted((): &mut ()) {}

    /// The value stays in the state, for the next call.
    fn abandoned(_: &mut Option<T>, _: &mut Queue<'_, ()>, (): &mut ()) {}
}
