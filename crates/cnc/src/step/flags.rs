//! What the running instance of a step has done, and what it may still do: [`InstanceFlags`].
//!
//! `StepContext` has the flags of the instance that runs now. Each get, put and end of a step asks
//! them a question, and sets what it has done. A question is one test of a word.

/// The part of its code that an instance begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Phase {
    /// The closure that declares items.
    Declares,
    /// The body, after the declarations.
    Declared,
    /// Code that runs once, with continuations.
    Once,
}

/// The step has missed an item, so it ends and runs again.
const MISSED: u16 = 1;
/// The step has failed.
const FAILED: u16 = 2;
/// The step has put something.
const PUT: u16 = 4;
/// The step declares the items that it will get.
const DECLARES: u16 = 8;
/// The step gets declared items alone.
const DECLARED: u16 = 16;
/// The code is the environment's, which cannot run again.
const ENVIRONMENT: u16 = 32;
/// The code runs once, with continuations.
const ONCE: u16 = 64;
/// The step has claimed a counted item.
const CLAIMED: u16 = 128;
/// What the code does is recorded or monitored.
const OBSERVED: u16 = 256;
/// The step has forked another one, so the number of its next fork is its own.
const FORKED: u16 = 512;

/// What the running instance has done, and in which part of its code it is.
#[derive(Clone, Copy)]
pub(super) struct InstanceFlags(u16);

impl InstanceFlags {
    /// An instance that begins. What it does may be recorded or monitored.
    #[inline]
    pub(super) const fn begun(is_observed: bool) -> InstanceFlags {
        InstanceFlags(if is_observed { OBSERVED } else { 0 })
    }

    /// The code of the environment.
    pub(super) const fn of_environment(is_observed: bool) -> InstanceFlags {
        InstanceFlags(ENVIRONMENT | InstanceFlags::begun(is_observed).0)
    }

    /// An instance that only repeats its gets.
    pub(super) const fn repeated() -> InstanceFlags {
        InstanceFlags(DECLARES)
    }

    /// The same instance at the begin of a part of its code.
    #[inline]
    pub(super) fn entered(self, phase: Phase) -> InstanceFlags {
        let part = match phase {
            Phase::Declares => DECLARES,
            Phase::Declared => DECLARED,
            Phase::Once => ONCE,
        };
        InstanceFlags(self.0 & OBSERVED | part)
    }

    #[inline]
    fn has(self, flags: u16) -> bool {
        self.0 & flags != 0
    }

    /// Whether it has missed an item.
    #[inline]
    pub(super) fn has_missed(self) -> bool {
        self.has(MISSED)
    }

    /// Whether it has failed.
    #[inline]
    pub(super) fn has_failed(self) -> bool {
        self.has(FAILED)
    }

    /// Whether it has missed an item or failed, so that it is to return.
    #[inline]
    pub(super) fn is_halted(self) -> bool {
        self.has(MISSED | FAILED)
    }

    /// Whether it has only got items so far, and no program looks at what it does.
    #[inline(always)]
    pub(super) fn has_only_got(self) -> bool {
        !self.has(!CLAIMED)
    }

    /// Whether a get comes before the puts, or its code does not run again. The instance is not
    /// halted.
    #[inline]
    pub(super) fn may_get(self) -> bool {
        !self.has(PUT) || self.has(ENVIRONMENT | DECLARED)
    }

    /// Whether it gets declared items alone.
    #[inline]
    pub(super) fn has_declared(self) -> bool {
        self.has(DECLARED)
    }

    /// Whether it may have an effect: put, take, or fork.
    #[inline]
    pub(super) fn may_act(self) -> bool {
        !self.has(MISSED | FAILED | DECLARES)
    }

    /// Whether it may have an effect, and no program looks at what it does.
    #[inline]
    pub(super) fn may_act_unseen(self) -> bool {
        !self.has(MISSED | FAILED | DECLARES | OBSERVED)
    }

    /// Whether it is the code of the environment.
    #[inline]
    pub(super) fn is_environment(self) -> bool {
        self.has(ENVIRONMENT)
    }

    /// Whether what it does is recorded or monitored.
    #[inline]
    pub(super) fn is_observed(self) -> bool {
        self.has(OBSERVED)
    }

    /// Whether it may run again or wait as if it had done nothing: it has had no effect, and is not
    /// the environment.
    #[inline]
    pub(super) fn may_wait(self) -> bool {
        !self.has(ENVIRONMENT | PUT)
    }

    /// Whether it has forked a step.
    pub(super) fn has_forked(self) -> bool {
        self.has(FORKED)
    }

    /// Whether its end has nothing to do but to free its tag.
    #[inline(always)]
    pub(super) fn ends_simply(self) -> bool {
        !self.has(MISSED | FAILED | CLAIMED)
    }

    /// Whether it has missed an item, has not failed, and has no claim to give back.
    #[inline]
    pub(super) fn has_only_missed(self) -> bool {
        self.0 & (MISSED | FAILED | CLAIMED) == MISSED
    }

    /// The same instance after a miss.
    #[inline]
    pub(super) fn missed(self) -> InstanceFlags {
        InstanceFlags(self.0 | MISSED)
    }

    /// The same instance after a fault.
    #[inline]
    pub(super) fn failed(self) -> InstanceFlags {
        InstanceFlags(self.0 | FAILED)
    }

    /// The same instance after a get of a counted item.
    #[inline]
    pub(super) fn claimed(self) -> InstanceFlags {
        InstanceFlags(self.0 | CLAIMED)
    }

    /// The same instance after an effect that forbids it to run again.
    #[inline]
    pub(super) fn put(self) -> InstanceFlags {
        InstanceFlags(self.0 | PUT)
    }

    /// The same instance after an effect. Code that runs once may get after it.
    #[inline]
    pub(super) fn acted(self) -> InstanceFlags {
        if self.has(ONCE) { self } else { self.put() }
    }

    /// The same instance after its first fork.
    pub(super) fn forked(self) -> InstanceFlags {
        InstanceFlags(self.0 | FORKED)
    }
}
