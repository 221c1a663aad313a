//! `try_from_fn`: a generator that calls a function of a user, which may fail.

use crate::error::StageError;
use crate::item::place::StreamPlace;
use crate::role::Generator;
use crate::stage::{Generate, Sink};
use std::error::Error;
use std::ops::ControlFlow;

/// The stage of [`try_from_fn`].
#[derive(Debug, Clone)]
pub struct TryFromFn<B, F> {
    f: F,
    block: Vec<B>,
    place: StreamPlace,
    failure: Option<StageError>,
}

/// Yields what `f` fills in, until `f` fails or fills in nothing: [`from_fn`](crate::from_fn) for a
/// source that may fail.
///
/// # Panics
/// If `f` claims to have filled more than the block.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{count, group_by, line, try_from_fn};
/// use std::io::Read;
///
/// let mut file = std::fs::File::open("Cargo.toml")?;
/// let lines = try_from_fn(1 << 16, move |block: &mut [u8]| file.read(block))
///     >> group_by(line())
///     >> count();
/// assert!(lines.try_run()? > 10);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
pub fn try_from_fn<B, F, E>(length: usize, f: F) -> Generator<B, TryFromFn<B, F>>
where
    B: Clone + Default + 'static,
    F: FnMut(&mut [B]) -> Result<usize, E>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    let block = vec![B::default(); length];
    Generator::new(TryFromFn { f, block, place: StreamPlace::default(), failure: None })
}

impl<B, F, E> Generate<B> for TryFromFn<B, F>
where
    B: Clone + 'static,
    F: FnMut(&mut [B]) -> Result<usize, E>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    #[inline]
    fn pump<S: Sink<B>>(&mut self, out: &mut S) -> ControlFlow<(), bool> {
        let filled = match (self.f)(&mut self.block) {
            Ok(filled) => filled,
            Err(error) => {
                self.failure = Some(StageError::new("try_from_fn", self.place, error));
                return ControlFlow::Continue(false);
            }
        };
        if filled == 0 {
            return ControlFlow::Continue(false);
        }
        let made = &self.block[..filled];
        self.place.items += filled as u64;
        self.place.elements += filled as u64;
        out.put_chunk(made)?;
        ControlFlow::Continue(true)
    }

    fn failure(&self) -> Option<&StageError> {
        self.failure.as_ref()
    }
}
