//! Whether a worker gets a CPU when it wants one: [`Crowding`]. `idle.rs` asks it, and
//! `IdleWorkers` has the list of the workers that stand aside.
//!
//! # Why a worker stands aside
//! Clients of a server may run on the server's machine and use its other CPUs. A worker that sleeps
//! there is woken by each message to a descriptor in its event loop. The kernel lets it run before
//! the client, because it has slept. It answers one message, and sleeps again. So the two switch
//! with each message, and both take longer than one worker that serves all messages and never
//! sleeps.
//!
//! The kernel counts how long each OS thread has run, and how long it has waited for a CPU. A
//! worker that has waited for more than a quarter of the time in which it wanted a CPU is
//! **crowded**. A crowded worker with short steps **stands aside** for some time: it hands the
//! threads that events wake there off to a worker that works. These threads wait in the event loop
//! of that worker from then on, so the worker that stands aside sleeps.
//!
//! A worker may also wait for a CPU while another CPU is idle, because Linux wakes it on the CPU of
//! the worker that has woken it. Then all CPUs are not too few, and to stand aside would leave one
//! unused. So a crowded worker stands aside only if there is no vacancy (`vacancy.rs`).
//!
//! # Why it comes back
//! The worker comes back after a time that doubles as long as it finds itself crowded again. Then
//! the others share their threads with it as with each sleeper (`arrivals.rs`).
//!
//! Where other processes use all CPUs, the worker that works is crowded too, and to stand aside is
//! wrong: two workers get more of the CPUs than one. So a worker that stays crowded while others
//! stand aside **recalls** them, and they stay for a time that doubles with each recall.

use super::vacancy::Vacancy;
use selvedge_core::Time;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// The time from one reading to the next.
const PERIOD: Duration = Duration::from_millis(10);
/// A reading tells something if the worker has wanted a CPU for at least this time since the last.
const WANTED_MIN: Duration = Duration::from_millis(1);
/// A worker is crowded if it waits for one part in this number of the time in which it wants a CPU.
const CROWDED_PART: u32 = 4;
/// How long a worker stands aside for the first time, and at most.
const ASIDE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(2));
/// How long a worker stays after the first recall, and at most.
const STAY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(8));
/// A worker that was crowded at this number of readings in a row recalls the others.
const RECALL_READINGS: u32 = 10;

/// The time of an OS thread on CPUs, and in wait for one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct CpuTimes {
    ran: Duration,
    waited: Duration,
}

impl CpuTimes {
    /// The times in a text of the kernel: nanoseconds on a CPU, nanoseconds in wait, and more.
    fn parse(text: &[u8]) -> Option<CpuTimes> {
        let mut numbers = std::str::from_utf8(text).ok()?.split_ascii_whitespace();
        let mut time = || Some(Duration::from_nanos(numbers.next()?.parse().ok()?));
        Some(CpuTimes { ran: time()?, waited: time()? })
    }

    /// The times in the kernel's account of an OS thread.
    fn read(account: &File) -> Option<CpuTimes> {
        let mut text = [0; 64];
        let length = account.read_at(&mut text, 0).ok()?;
        CpuTimes::parse(&text[..length])
    }
}

/// What a worker knows of its CPU, and what follows for it.
#[derive(Debug)]
pub(super) struct Crowding {
    /// The kernel's account of the worker's OS thread; `None` if the kernel keeps none.
    account: Option<File>,
    read: Time,
    /// What was read last.
    last: CpuTimes,
    /// The number of readings in a row at which the worker was crowded.
    crowded: u32,
    /// When the worker comes back, if it stands aside.
    back: Option<Time>,
    /// How long the worker stands aside next.
    aside: Duration,
    /// The number of recalls when the worker stood aside.
    recalls: usize,
    /// The worker does not stand aside before this time.
    stays: Time,
    /// How long the worker stays after the next recall.
    stay: Duration,
    /// Whether another CPU was free.
    vacancy: Vacancy,
}

impl Crowding {
    /// For the calling OS thread. Its time until now does not count, because an OS thread that
    /// calls `run` may have run other code before.
    pub(super) fn new() -> Crowding {
        let account = if cfg!(miri) { None } else { File::open("/proc/thread-self/schedstat").ok() };
        let last = account.as_ref().and_then(CpuTimes::read).unwrap_or_default();
        Crowding {
            account,
            read: Time::now(),
            last,
            crowded: 0,
            back: None,
            aside: ASIDE.0,
            recalls: 0,
            stays: Time::default(),
            stay: STAY.0,
            vacancy: Vacancy::default(),
        }
    }

    /// Reads the account, if it is time for that; whether the worker was crowded since the last
    /// reading.
    ///
    /// # Complexity
    /// One system call in [`PERIOD`], and a comparison otherwise.
    #[inline]
    pub(super) fn is_crowded(&mut self, now: Time) -> bool {
        now.since(self.read) >= PERIOD && self.read_account(now)
    }

    #[cold]
    fn read_account(&mut self, now: Time) -> bool {
        match self.account.as_ref().and_then(CpuTimes::read) {
            Some(times) => self.learn(now, times),
            None => false,
        }
    }

    /// Learns the times of the worker's OS thread until `now`.
    fn learn(&mut self, now: Time, times: CpuTimes) -> bool {
        let ran = times.ran.saturating_sub(self.last.ran);
        let waited = times.waited.saturating_sub(self.last.waited);
        (self.read, self.last) = (now, times);
        let wanted = ran + waited;
        if wanted < WANTED_MIN {
            return false;
        }
        let is_crowded = waited * CROWDED_PART > wanted;
        if !is_crowded {
            self.aside = (self.aside / 2).max(ASIDE.0);
        }
        self.crowded = if is_crowded { self.crowded + 1 } else { 0 };
        is_crowded
    }

    /// Whether the worker stands aside.
    #[inline]
    pub(super) fn is_aside(&self) -> bool {
        self.back.is_some()
    }

    /// Whether the worker may stand aside, as far as recalls go.
    pub(super) fn may_stand_aside(&self, now: Time) -> bool {
        now >= self.stays
    }

    /// Whether the worker, which is crowded, could have had no other CPU.
    pub(super) fn is_no_cpu_free(&mut self, now: Time) -> bool {
        self.vacancy.is_none(now)
    }

    /// Whether the worker has been crowded long enough to recall the others.
    pub(super) fn recalls_others(&self) -> bool {
        self.crowded >= RECALL_READINGS
    }

    /// The worker stands aside from `now` on. `recalls` is the number of recalls until now.
    pub(super) fn stand_aside(&mut self, now: Time, recalls: usize) {
        self.recalls = recalls;
        self.crowded = 0;
        self.back = Some(now + self.aside);
        self.aside = (2 * self.aside).min(ASIDE.1);
    }

    /// Whether the worker, which stands aside, comes back, because its time is over or because
    /// there were further recalls.
    pub(super) fn comes_back(&mut self, now: Time, recalls: usize) -> bool {
        let is_recalled = self.recalls != recalls;
        let comes_back = is_recalled || self.back.is_none_or(|back| now >= back);
        if is_recalled {
            self.stays = now + self.stay;
            self.stay = (2 * self.stay).min(STAY.1);
        }
        if comes_back {
            self.back = None;
            // What it reads next is about the time since it stood aside, in which it has slept.
            self.read = now;
        }
        comes_back
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn start() -> Time {
        Time::default() + Duration::from_secs(1)
    }

    /// Tells the worker that it has run and waited for these milliseconds since it last learned.
    fn learn(crowding: &mut Crowding, ran: u32, waited: u32) -> bool {
        let CpuTimes { ran: ran_before, waited: waited_before } = crowding.last;
        let times = CpuTimes { ran: ran_before + ran * MS, waited: waited_before + waited * MS };
        crowding.learn(start(), times)
    }

    #[test]
    fn the_kernels_text_has_two_times() {
        let times = CpuTimes { ran: Duration::from_nanos(12_345), waited: Duration::from_nanos(67) };
        assert_eq!(CpuTimes::parse(b"12345 67 8\n"), Some(times));
        assert_eq!(CpuTimes::parse(b"12345\n"), None);
        assert_eq!(CpuTimes::parse(b"one two"), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "reads a file of the system")]
    fn an_os_thread_that_computes_runs() {
        let mut crowding = Crowding::new();
        let until = Time::now() + 3 * PERIOD;
        while Time::now() < until {
            crowding.is_crowded(Time::now());
        }
        assert!(crowding.account.is_none() || crowding.last.ran > Duration::ZERO);
    }

    /// A worker runs on the OS thread that has called `run`.
    #[test]
    #[cfg_attr(miri, ignore = "reads a file of the system")]
    fn what_an_os_thread_did_before_it_was_a_worker_does_not_count() {
        let until = Time::now() + 3 * PERIOD;
        while Time::now() < until {}
        let crowding = Crowding::new();
        // The OS thread alone has added to its times since `new` has read them.
        let now = crowding.account.as_ref().map(|account| CpuTimes::read(account).unwrap());
        let since = now.map_or(Duration::ZERO, |now| now.ran - crowding.last.ran);
        assert!(since < now.unwrap_or_default().ran, "the past counts");
    }

    #[test]
    fn a_worker_that_waits_for_a_quarter_of_its_time_is_crowded() {
        let mut crowding = Crowding::new();
        assert!(!learn(&mut crowding, 6, 2));
        assert!(learn(&mut crowding, 5, 2));
        assert!(!learn(&mut crowding, 0, 0), "it has wanted no CPU");
    }

    #[test]
    fn the_time_aside_doubles_and_is_halved_where_there_is_room() {
        let (mut crowding, mut now) = (Crowding::new(), start());
        for _ in 0..20 {
            crowding.stand_aside(now, 0);
            assert!(crowding.is_aside() && !crowding.comes_back(now, 0));
            now = now + ASIDE.1;
            assert!(crowding.comes_back(now, 0) && !crowding.is_aside());
        }
        assert_eq!(crowding.aside, ASIDE.1);
        (0..20).for_each(|_| assert!(!learn(&mut crowding, 10, 0)));
        assert_eq!(crowding.aside, ASIDE.0);
    }

    #[test]
    fn a_recall_ends_the_time_aside_and_forbids_the_next() {
        let (mut crowding, now) = (Crowding::new(), start());
        crowding.stand_aside(now, 3);
        assert!(!crowding.comes_back(now, 3));
        assert!(crowding.comes_back(now, 4));
        assert!(!crowding.may_stand_aside(now + STAY.0 / 2));
        assert!(crowding.may_stand_aside(now + STAY.0));
    }

    #[test]
    fn a_worker_that_stays_crowded_recalls_the_others() {
        let mut crowding = Crowding::new();
        for _ in 0..RECALL_READINGS {
            assert!(!crowding.recalls_others());
            learn(&mut crowding, 1, 1);
        }
        assert!(crowding.recalls_others());
        learn(&mut crowding, 8, 1);
        assert!(!crowding.recalls_others());
    }
}
