//! `try_lift121` and `try_fold`: functions of a user that may fail, as stages. `try_from_fn` of
//! `sources/try_from_fn.rs` is the generator of this kind.

use crate::edges::parts::{ItemByItem, PlaceKnown};
use crate::error::StageError;
use crate::item::place::StreamPlace;
use crate::item::{FINISHED, Flow, GO_ON, Item};
use crate::role::{Iteratee, Transducer};
use crate::stage::{Consume, Sink, Transduce};
use std::error::Error;

/// The stage of [`try_lift121`].
#[derive(Debug, Clone)]
pub struct TryLift121<F> {
    f: F,
    place: StreamPlace,
    failure: Option<StageError>,
}

/// Yields what `f(item)` gives for each item, until `f` fails.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_iter, try_lift121};
///
/// let halves = try_lift121(|n: &u32| if n % 2 == 0 { Ok(n / 2) } else { Err("an odd number") });
/// let failed = (from_iter([2, 4, 5, 6]) >> halves).try_collect().unwrap_err();
/// assert_eq!(failed.to_string(), "try_lift121: item 3, offset 2: an odd number");
/// ```
pub fn try_lift121<A, B, F, E>(f: F) -> Transducer<A, B, TryLift121<F>>
where
    A: Item + ?Sized,
    B: Clone + 'static,
    F: FnMut(&A) -> Result<B, E>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    Transducer::new(TryLift121 { f, place: StreamPlace::default(), failure: None })
}

impl<A, B, F, E> Transduce<A, B> for TryLift121<F>
where
    A: Item + ?Sized,
    B: Clone + 'static,
    F: FnMut(&A) -> Result<B, E>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    #[inline(always)]
    fn put<S: Sink<B>>(&mut self, item: &A, out: &mut S) -> Flow {
        match (self.f)(item) {
            Ok(made) => {
                self.place.pass(item);
                out.put(&made)
            }
            Err(error) => {
                self.failure = Some(StageError::new("try_lift121", self.place, error));
                FINISHED
            }
        }
    }

    fn end<S: Sink<B>>(&mut self, _out: &mut S) -> Flow {
        GO_ON
    }

    fn failure(&self) -> Option<&StageError> {
        self.failure.as_ref()
    }
}

impl<A, B, F, E> ItemByItem<A, B> for TryLift121<F>
where
    A: Item + ?Sized,
    B: Clone + 'static,
    F: FnMut(&A) -> Result<B, E>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    // Its failure tells the place.
    const NEEDS: PlaceKnown = PlaceKnown::Elements;

    const TELLS: PlaceKnown = PlaceKnown::Elements;

    fn begin_part(&mut self, place: StreamPlace) -> StreamPlace {
        self.place = place;
        StreamPlace { items: place.items, elements: place.items }
    }
}

/// The stage of [`try_fold`].
#[derive(Debug, Clone)]
pub struct TryFold<R, F> {
    state: R,
    f: F,
    place: StreamPlace,
    failure: Option<StageError>,
}

/// Passes each item to `f` with the state, until `f` fails. The state is the result at the end.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_iter, try_fold};
///
/// let add = |sum: &mut u8, n: &u8| {
///     *sum = sum.checked_add(*n).ok_or("the sum is too large")?;
///     Ok::<(), &str>(())
/// };
/// assert_eq!((from_iter([200, 55]) >> try_fold(0, add)).try_run().unwrap(), 255);
/// let failed = (from_iter([200, 55, 1]) >> try_fold(0, add)).try_run().unwrap_err();
/// assert_eq!(failed.item(), 3);
/// ```
pub fn try_fold<A, R, F, E>(state: R, f: F) -> Iteratee<A, TryFold<R, F>>
where
    A: Item + ?Sized,
    F: FnMut(&mut R, &A) -> Result<(), E>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    Iteratee::new(TryFold { state, f, place: StreamPlace::default(), failure: None })
}

impl<A, R, F, E> Consume<A> for TryFold<R, F>
where
    A: Item + ?Sized,
    F: FnMut(&mut R, &A) -> Result<(), E>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    type Result = R;

    #[inline(always)]
    fn put(&mut self, item: &A) -> Flow {
        match (self.f)(&mut self.state, item) {
            Ok(()) => {
                self.place.pass(item);
                GO_ON
            }
            Err(error) => {
                self.failure = Some(StageError::new("try_fold", self.place, error));
                FINISHED
            }
        }
    }

    fn end(self) -> R {
        self.state
    }

    fn failure(&self) -> Option<&StageError> {
        self.failure.as_ref()
    }
}
