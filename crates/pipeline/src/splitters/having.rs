//! `having` and `having_only`: the sections of one splitter, by the verdicts of another splitter on
//! what is in them. The other splitter, the trial, begins anew for each section.
//!
//! `Having` keeps the items of a section until its trial decides, and `Detector` of `any.rs` stops
//! the trial as soon as it has. [Pipes, Parting and joining the stream].

use crate::item::{Flow, GO_ON, Item, Store};
use crate::role::Splitter;
use crate::splitters::any::Detector;
use crate::stage::{Sections, Split};

/// The stage of [`having`] and [`having_only`].
#[derive(Debug, Clone)]
pub struct Having<S, T, C> {
    splitter: S,
    trial: Trial<T, C>,
}

#[derive(Debug, Clone)]
struct Trial<T, C> {
    recipe: T,
    /// An item with this verdict decides that its section has this verdict.
    wanted: bool,
    /// What is known of the true section that is open.
    section: Section<T>,
    /// The items of a section that is not decided.
    items: C,
}

#[derive(Debug, Clone)]
enum Section<T> {
    /// It has no items yet.
    Empty,
    Undecided(T),
    Decided(bool),
}

/// A true section of `splitter` stays true if `trial` deems any item in it true, otherwise it
/// becomes false. The trial begins anew for each section.
///
/// A section is kept until it is decided.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_chunks, having, select, substring, whole_line};
///
/// let found = from_chunks(["a warp\nweft\n"]) >> select(having(whole_line(), substring(b"warp")));
/// assert_eq!(found.collect(), b"a warp\n");
/// ```
pub fn having<A, S, T>(splitter: Splitter<A, S>, trial: Splitter<A, T>) -> Splitter<A, Having<S, T, A::Store>>
where
    A: Item + ?Sized,
    S: Split<A>,
    T: Split<A> + Clone,
{
    tried(splitter, trial, true)
}

/// A true section of `splitter` stays true if `trial` deems all items in it true, otherwise it
/// becomes false. The trial begins anew for each section. An empty section stays true.
///
/// A section is kept until it is decided.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_chunks, having_only, line, satisfies, select};
///
/// let digits = satisfies(|c: &u8| c.is_ascii_digit());
/// let numbers = from_chunks(["12\n3a\n4"]) >> select(having_only(line(), digits));
/// assert_eq!(numbers.collect(), b"124");
/// ```
pub fn having_only<A, S, T>(
    splitter: Splitter<A, S>,
    trial: Splitter<A, T>,
) -> Splitter<A, Having<S, T, A::Store>>
where
    A: Item + ?Sized,
    S: Split<A>,
    T: Split<A> + Clone,
{
    tried(splitter, trial, false)
}

fn tried<A, S, T>(
    splitter: Splitter<A, S>,
    trial: Splitter<A, T>,
    wanted: bool,
) -> Splitter<A, Having<S, T, A::Store>>
where
    A: Item + ?Sized,
    S: Split<A>,
    T: Split<A> + Clone,
{
    let trial = Trial { recipe: trial.stage, wanted, section: Section::Empty, items: A::Store::default() };
    Splitter::new(Having { splitter: splitter.stage, trial })
}

struct Try<'a, T, C, P> {
    trial: &'a mut Trial<T, C>,
    out: &'a mut P,
}

impl<T, C, P> Try<'_, T, C, P> {
    /// Feeds the trial by `put`. Returns the verdict of the section if that is decided now, or was.
    fn decide<A: Item + ?Sized>(&mut self, put: impl FnOnce(&mut T, &mut Detector) -> Flow) -> Option<bool>
    where
        T: Clone,
        C: Store<A>,
        P: Sections<A>,
    {
        let Trial { recipe, wanted, section, .. } = &mut *self.trial;
        if let Section::Empty = section {
            *section = Section::Undecided(recipe.clone());
        }
        match section {
            Section::Decided(verdict) => return Some(*verdict),
            Section::Undecided(trial) => {
                let mut detector = Detector::of(*wanted);
                let _found = put(trial, &mut detector);
                if !detector.found {
                    return None;
                }
            }
            Section::Empty => return None,
        }
        *section = Section::Decided(*wanted);
        Some(*wanted)
    }

    fn release<A: Item + ?Sized>(&mut self, verdict: bool) -> Flow
    where
        C: Store<A>,
        P: Sections<A>,
    {
        if self.trial.items.count() > 0 {
            self.out.part_chunk(verdict, self.trial.items.all())?;
            self.trial.items.clear();
        }
        GO_ON
    }
}

impl<A, T, C, P> Sections<A> for Try<'_, T, C, P>
where
    A: Item + ?Sized,
    T: Split<A> + Clone,
    C: Store<A>,
    P: Sections<A>,
{
    fn part(&mut self, verdict: bool, item: &A) -> Flow {
        if !verdict {
            return self.out.part(false, item);
        }
        match self.decide(|trial, detector| trial.put(item, detector)) {
            Some(verdict) => {
                self.release(verdict)?;
                self.out.part(verdict, item)
            }
            None => {
                self.trial.items.keep(item);
                GO_ON
            }
        }
    }

    fn part_chunk(&mut self, verdict: bool, chunk: A::Chunk<'_>) -> Flow {
        if !verdict {
            return self.out.part_chunk(false, chunk);
        }
        match self.decide(|trial, detector| trial.put_chunk(chunk, detector)) {
            Some(verdict) => {
                self.release(verdict)?;
                self.out.part_chunk(verdict, chunk)
            }
            None => {
                self.trial.items.keep_all(chunk);
                GO_ON
            }
        }
    }

    fn close(&mut self, verdict: bool) -> Flow {
        if !verdict {
            return self.out.close(false);
        }
        let decided = self.decide(|trial, detector| trial.end(detector));
        let verdict = decided.unwrap_or(!self.trial.wanted);
        self.trial.section = Section::Empty;
        self.release(verdict)?;
        self.out.close(verdict)
    }
}

impl<A, S, T, C> Split<A> for Having<S, T, C>
where
    A: Item + ?Sized,
    S: Split<A>,
    T: Split<A> + Clone,
    C: Store<A>,
{
    fn put<P: Sections<A>>(&mut self, item: &A, out: &mut P) -> Flow {
        self.splitter.put(item, &mut Try { trial: &mut self.trial, out })
    }

    fn put_chunk<P: Sections<A>>(&mut self, chunk: A::Chunk<'_>, out: &mut P) -> Flow {
        self.splitter.put_chunk(chunk, &mut Try { trial: &mut self.trial, out })
    }

    fn end<P: Sections<A>>(&mut self, out: &mut P) -> Flow {
        self.splitter.end(&mut Try { trial: &mut self.trial, out })
    }
}
