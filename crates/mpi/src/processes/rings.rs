//! [`RankRings`]: the messages of one rank, through its rings to and from the others.
//!
//! A message is its length, its [`JobHeader`], and its bytes. `ring.rs` has the protocol of one
//! ring, and `job.rs` what the messages mean. Any OS thread of the process may send, and may
//! [look](RankRings::look) for what has come. One that finds nothing to do leaves the looking to
//! `attendant.rs`, by arming the bell.
//!
//! # A long message
//! In place of its bytes the ring may have what the receiver has to know of a loan of them
//! (`lending.rs`), which a bit of the length says ([`LENT`]). If the receiver finds that the loan
//! is over, the bytes come later ([`LATE`]), and the other messages of that rank wait for them.

use super::bell::Bell;
use super::lending::{BorrowedBytes, LOAN_BYTES, LentBytes};
use super::ring::{RingMemory, RingReader, RingWriter};
use super::segment::{JobSegment, SegmentRing};
use crate::byte_pieces::{BytePieces, joined, length_of};
use crate::completion::EndedRank;
use crate::job::{JobLink, JobRank, MessageOffer, OfferedBytes, PostEnd};
use crate::job_header::JobHeader;
use crate::patience::WatchPatience;
use crate::spare_memory::spare;
use rustix::thread::futex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

/// The rings of one rank.
pub(crate) struct RankRings {
    segment: Arc<JobSegment>,
    rank: usize,
    outgoing: Box<[Mutex<RingSends>]>,
    incoming: Box<[Mutex<RingArrivals>]>,
    /// The rings of `incoming` again, to look at without a lock.
    arrivals: Box<[SegmentRing]>,
    /// How many messages wait for room.
    queued: AtomicUsize,
    /// The departures that were dealt with.
    departures: AtomicU32,
    /// How long a thread looks before it parks.
    patience: WatchPatience,
    /// How many threads look by themselves now.
    watchers: AtomicU32,
    /// Whether a thread has looked by itself since the attendant asked last.
    has_watched: AtomicBool,
    /// For each rank, whether it has been found unable to read memory of this process.
    refusals: Box<[AtomicBool]>,
    job: OnceLock<Weak<JobRank<RankRings>>>,
}

/// The way to one other rank.
struct RingSends {
    writer: RingWriter<SegmentRing>,
    /// The messages that were not written to their end, in order.
    queue: VecDeque<QueuedMessage>,
    /// The other process has ended.
    is_lost: bool,
}

struct QueuedMessage {
    prefix: [u8; PREFIX],
    bytes: Vec<u8>,
    written: usize,
    end: PostEnd,
}

/// The way from one other rank.
struct RingArrivals {
    reader: RingReader<SegmentRing>,
    /// The prefix of the next message, as far as it has come.
    prefix: Vec<u8>,
    /// The message that has begun to come: its header, its length, and its bytes so far.
    message: Option<(JobHeader, RingLength, Vec<u8>)>,
    /// The messages that wait for the bytes of the one before them.
    held: Option<Vec<(JobHeader, Vec<u8>)>>,
    /// What was read and not released.
    unreleased: usize,
    /// What came made no sense, so the rest of it is read no more.
    is_lost: bool,
}

/// The bytes before those of a message: its length, and its header.
const PREFIX: usize = 8 + JobHeader::BYTES;

/// The bits of a length: what follows tells of a loan, or is the bytes of one that was over.
const LENT: u64 = 1 << 63;
const LATE: u64 = 1 << 62;

/// The shortest message of which the bytes are lent: for a shorter one two copies take less time.
const LENT_MIN: usize = 16 << 10;

/// What the length before a message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RingLength {
    bytes: usize,
    form: RingForm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RingForm {
    Whole,
    Lent,
    Late,
}

impl RingLength {
    fn of(word: u64) -> RingLength {
        let form = match (word & LENT, word & LATE) {
            (LENT, 0) => RingForm::Lent,
            (0, LATE) => RingForm::Late,
            _ => RingForm::Whole,
        };
        let bytes = if form == RingForm::Whole { word } else { word & !(LENT | LATE) };
        RingLength { bytes: usize::try_from(bytes).unwrap_or(usize::MAX), form }
    }
}

/// How much is copied before the other side is told, so that both copy at the same time.
const PIECE: usize = 32 << 10;

/// The looks after which a thread lets others have its CPU: some microseconds.
const LOOKS: u32 = 64;

fn prefix(length: u64, header: &JobHeader) -> [u8; PREFIX] {
    let mut prefix = [0; PREFIX];
    prefix[..8].copy_from_slice(&length.to_le_bytes());
    prefix[8..].copy_from_slice(&header.to_bytes());
    prefix
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RankRings {
    /// The rings of this rank, which the process has [taken](JobSegment::take_rank).
    ///
    /// # Safety
    /// The call is made once for a rank of a job.
    pub(super) unsafe fn new(segment: Arc<JobSegment>, rank: usize) -> RankRings {
        let size = segment.size();
        let ring = |from, to| SegmentRing::new(segment.clone(), from, to);
        let outgoing = |to| {
            // SAFETY: this is the one call for `rank`, and no other rank writes a ring from it.
            let writer = unsafe { RingWriter::new(ring(rank, to)) };
            Mutex::new(RingSends { writer, queue: VecDeque::new(), is_lost: false })
        };
        let incoming = |from| {
            // SAFETY: this is the one call for `rank`, and no other rank reads a ring to it.
            let reader = unsafe { RingReader::new(ring(from, rank)) };
            Mutex::new(RingArrivals::new(reader))
        };
        RankRings {
            rank,
            outgoing: (0..size).map(outgoing).collect(),
            incoming: (0..size).map(incoming).collect(),
            arrivals: (0..size).map(|from| ring(from, rank)).collect(),
            queued: AtomicUsize::new(0),
            departures: AtomicU32::new(0),
            patience: WatchPatience::new(LOOKS),
            watchers: AtomicU32::new(0),
            has_watched: AtomicBool::new(false),
            refusals: (0..size).map(|_| AtomicBool::new(false)).collect(),
            job: OnceLock::new(),
            segment,
        }
    }

    /// The messages that come go to this job.
    pub(super) fn serve(&self, job: &Arc<JobRank<RankRings>>) {
        self.job.set(Arc::downgrade(job)).expect("a link serves one job");
    }

    pub(crate) fn segment(&self) -> &Arc<JobSegment> {
        &self.segment
    }

    /// This rank's own bell.
    pub(super) fn bell(&self) -> &Bell {
        self.segment.bell(self.rank)
    }

    /// Whether a thread looks by itself, or has done so since the last call. Then the bell need not
    /// be armed, which would cost each message a line of memory that two CPUs write in turn: a
    /// thread that wants a message looks itself, and the attendant after a short sleep.
    pub(super) fn is_watched(&self) -> bool {
        self.has_watched.swap(false, Ordering::SeqCst) | (self.watchers.load(Ordering::SeqCst) != 0)
    }

    /// Whether no message waits for room.
    pub(super) fn is_empty(&self) -> bool {
        self.queued.load(Ordering::Relaxed) == 0
    }

    /// Takes in what has come, and sends what there is room for. Whether there was any of it.
    ///
    /// A thread that calls it after it has armed the bell misses nothing: what comes later rings.
    pub(super) fn look(&self) -> bool {
        self.look_offering(None)
    }

    /// As [`look`](Self::look), and offers the long messages that come.
    fn look_offering(&self, mut offer: Option<&mut MessageOffer<'_>>) -> bool {
        let Some(job) = self.job.get().and_then(Weak::upgrade) else { return false };
        let mut has_happened = false;
        let departures = self.segment.departures();
        for from in (0..self.arrivals.len()).filter(|&from| from != self.rank) {
            if self.arrivals[from].control().has_bytes() {
                has_happened |= self.take_in(from, &job, offer.as_deref_mut());
            }
        }
        if !self.is_empty() {
            for to in 0..self.outgoing.len() {
                has_happened |= self.go_on(to);
            }
        }
        if departures != self.departures.load(Ordering::Relaxed) {
            for other in (0..self.outgoing.len()).filter(|&other| other != self.rank) {
                if self.segment.has_departed(other) {
                    // What it has sent before comes first.
                    self.take_in(other, &job, None);
                    self.lose(other, &job);
                }
            }
            self.departures.store(departures, Ordering::Relaxed);
            has_happened = true;
        }
        has_happened
    }

    /// Takes in what has come from one rank.
    fn take_in(
        &self,
        from: usize,
        job: &JobRank<RankRings>,
        mut offer: Option<&mut MessageOffer<'_>>,
    ) -> bool {
        let mut has_happened = false;
        let mut incoming = lock(&self.incoming[from]);
        // Its bytes stay in the ring, and a caller that looks on while something happens must end.
        if incoming.is_lost {
            return false;
        }
        loop {
            let step = incoming.step();
            has_happened |= incoming.unreleased != 0;
            let is_over = matches!(step, RingStep::NoMore | RingStep::Nonsense);
            if incoming.unreleased >= PIECE || (is_over && incoming.unreleased != 0) {
                incoming.unreleased = 0;
                incoming.reader.release();
                if incoming.reader.control().is_writer_starved() {
                    self.ring(from);
                }
            }
            match step {
                // Under the lock, because the messages of one rank come in order.
                RingStep::Message(header, bytes) => match &mut incoming.held {
                    None => job.arrived(from, header, bytes),
                    Some(held) => held.push((header, bytes)),
                },
                RingStep::Lent(header, told) => {
                    let is_whole = self.borrow(from, job, header, &told, offer.as_deref_mut());
                    incoming.held = (!is_whole).then(Vec::new);
                }
                RingStep::Late(header, bytes) => {
                    job.arrived(from, header, bytes);
                    for (header, bytes) in incoming.held.take().unwrap_or_default() {
                        job.arrived(from, header, bytes);
                    }
                }
                RingStep::Piece => {}
                RingStep::NoMore => return has_happened,
                RingStep::Nonsense => {
                    incoming.is_lost = true;
                    drop(incoming);
                    self.lose(from, job);
                    return true;
                }
            }
        }
    }

    /// Takes in a message of which a rank has lent the bytes. `false` if they were lent no more.
    fn borrow(
        &self,
        from: usize,
        job: &JobRank<RankRings>,
        header: JobHeader,
        told: &[u8; LOAN_BYTES],
        offer: Option<&mut MessageOffer<'_>>,
    ) -> bool {
        let Some(process) = self.segment.process(from) else { return false };
        let Some(lent) = BorrowedBytes::take(self.segment.loan(from), process, told) else { return false };
        if offer.is_some_and(|offer| offer(from, &header, OfferedBytes::Lent(&lent))) {
            return true;
        }
        let bytes = lent.to_vec(0);
        let is_whole = bytes.is_some();
        bytes.into_iter().for_each(|bytes| job.arrived(from, header, bytes));
        is_whole
    }

    /// Writes a message, if there is room for all of it.
    fn write_whole(&self, to: usize, prefix: &[u8; PREFIX], bytes: BytePieces<'_>) -> bool {
        let mut outgoing = lock(&self.outgoing[to]);
        let RingSends { writer, queue, is_lost } = &mut *outgoing;
        if *is_lost || !queue.is_empty() || !writer.has_room(PREFIX + length_of(bytes)) {
            return false;
        }
        writer.write(prefix);
        bytes.iter().for_each(|piece| {
            writer.write(piece);
        });
        writer.publish();
        drop(outgoing);
        self.ring(to);
        true
    }

    /// Writes a message behind all that wait for room.
    fn enqueue(&self, to: usize, prefix: [u8; PREFIX], bytes: Vec<u8>, end: PostEnd) {
        let mut outgoing = lock(&self.outgoing[to]);
        if outgoing.is_lost {
            drop(outgoing);
            return end.failed(to);
        }
        outgoing.queue.push_back(QueuedMessage { prefix, bytes, written: 0, end });
        self.queued.fetch_add(1, Ordering::Relaxed);
        drop(outgoing);
        self.go_on(to);
    }

    /// Writes on with the messages to one rank that wait for room.
    fn go_on(&self, to: usize) -> bool {
        let mut outgoing = lock(&self.outgoing[to]);
        if outgoing.queue.is_empty() {
            return false;
        }
        let (has_happened, sent) = outgoing.write_on(|| self.ring(to));
        drop(outgoing);
        self.queued.fetch_sub(sent.len(), Ordering::Relaxed);
        sent.into_iter().for_each(PostEnd::sent);
        has_happened
    }

    /// Another process has ended, or makes no sense.
    fn lose(&self, other: usize, job: &JobRank<RankRings>) {
        let mut outgoing = lock(&self.outgoing[other]);
        outgoing.is_lost = true;
        let lost = std::mem::take(&mut outgoing.queue);
        drop(outgoing);
        self.queued.fetch_sub(lost.len(), Ordering::Relaxed);
        lost.into_iter().for_each(|message| message.end.failed(other));
        job.ended(EndedRank { rank: other as u32, failed: true });
    }

    /// Wakes another rank's process, if it sleeps.
    fn ring(&self, other: usize) {
        ring(self.segment.bell(other));
    }
}

/// Wakes the process of this bell, if it sleeps.
pub(super) fn ring(bell: &Bell) {
    if bell.ring() {
        wake(bell);
    }
}

/// Ends the sleeps at this bell, which was rung.
pub(super) fn wake(bell: &Bell) {
    // It fails for a word that is not mapped, and this one is.
    let _ = futex::wake(bell.count(), futex::Flags::empty(), 1);
}

impl JobLink for RankRings {
    const NAME: &'static str = "processes";

    fn try_post(&self, to: usize, header: &JobHeader, bytes: BytePieces<'_>) -> bool {
        self.write_whole(to, &prefix(length_of(bytes) as u64, header), bytes)
    }

    fn try_lend(&self, to: usize, header: &JobHeader, bytes: BytePieces<'_>, others_wait: bool) -> bool {
        if length_of(bytes) < LENT_MIN {
            return false;
        }
        let lent = LentBytes::new(bytes, self.segment.loan(self.rank), &self.refusals[to]);
        let Some(mut lent) = lent else { return false };
        let told = lent.told();
        if !self.write_whole(to, &prefix(told.len() as u64 | LENT, header), [&[], &told]) {
            return false;
        }
        // A message for another thread goes to the mailbox.
        let look = || self.look() || lent.are_noticed();
        self.watch(others_wait, Some(lent.patience()), look, &mut || lent.are_noticed());
        if !lent.end() {
            let prefix = prefix(length_of(bytes) as u64 | LATE, header);
            self.enqueue(to, prefix, joined(bytes, 0), PostEnd::default());
        }
        true
    }

    fn post(&self, to: usize, header: JobHeader, bytes: Vec<u8>, end: PostEnd) {
        self.enqueue(to, prefix(bytes.len() as u64, &header), bytes, end);
    }

    fn look_out(&self, others_wait: bool, offer: &mut MessageOffer<'_>, until: &mut dyn FnMut() -> bool) {
        self.watch(others_wait, None, || self.look_offering(Some(&mut *offer)), until);
    }
}

impl RankRings {
    /// Looks for a short time, or for `limit`, until `until` is true. It is asked when `look` has
    /// found something.
    fn watch(
        &self,
        others_wait: bool,
        limit: Option<Duration>,
        look: impl FnMut() -> bool,
        until: &mut dyn FnMut() -> bool,
    ) {
        let bell = self.bell();
        self.watchers.fetch_add(1, Ordering::SeqCst);
        self.has_watched.store(true, Ordering::Relaxed);
        let was_armed = bell.disarm();
        let has_come = self.patience.look(limit, look, until);
        self.watchers.fetch_sub(1, Ordering::SeqCst);
        if !has_come || others_wait {
            self.has_watched.store(false, Ordering::SeqCst);
            bell.arm();
            self.look();
        } else if was_armed {
            // The attendant sleeps at the bell for long: see `is_watched`.
            bell.ring_anyway();
            wake(bell);
        }
    }
}

impl RingSends {
    /// Writes as much as there is room for. Whether it wrote any, and the ends of the messages that
    /// were written whole. `told` tells the reader of a piece.
    fn write_on(&mut self, told: impl Fn()) -> (bool, Vec<PostEnd>) {
        let mut has_happened = false;
        let mut sent = Vec::new();
        while let Some(message) = self.queue.front_mut() {
            let rest = match message.written.checked_sub(PREFIX) {
                None => &message.prefix[message.written..],
                Some(written) => &message.bytes[written..],
            };
            let written = self.writer.write(&rest[..rest.len().min(PIECE)]);
            message.written += written;
            if written > 0 {
                has_happened = true;
                self.writer.publish();
            }
            if message.written == PREFIX + message.bytes.len() {
                told();
                sent.extend(self.queue.pop_front().map(|message| {
                    spare().keep(message.bytes);
                    message.end
                }));
            } else if written >= PIECE {
                told();
            } else if written == 0 && !self.writer.starve() {
                if has_happened {
                    told();
                }
                break;
            }
        }
        (has_happened, sent)
    }
}

/// What a reader has found.
enum RingStep {
    Message(JobHeader, Vec<u8>),
    /// A message of which the bytes are lent, and what its sender has told of them.
    Lent(JobHeader, [u8; LOAN_BYTES]),
    /// A message of which the bytes were lent, in vain.
    Late(JobHeader, Vec<u8>),
    /// A part of a message. There may be more.
    Piece,
    NoMore,
    /// What cannot be a message, or is one for which there is no memory.
    Nonsense,
}

impl RingArrivals {
    fn new(reader: RingReader<SegmentRing>) -> RingArrivals {
        let (prefix, message, held) = (Vec::new(), None, None);
        RingArrivals { reader, prefix, message, held, unreleased: 0, is_lost: false }
    }

    fn step(&mut self) -> RingStep {
        if self.message.is_none() {
            self.unreleased += append(&mut self.reader, &mut self.prefix, PREFIX);
            if self.prefix.len() < PREFIX {
                return RingStep::NoMore;
            }
            let Some((length, header)) = self.prefix.split_first_chunk::<8>() else {
                return RingStep::Nonsense;
            };
            let length = RingLength::of(u64::from_le_bytes(*length));
            let header = header.first_chunk().and_then(JobHeader::from_bytes);
            let mut bytes: Vec<u8> = spare().room(length.bytes);
            // The length comes from another process, so one for which there is no memory is not
            // the end of this one.
            let (Some(header), Ok(())) = (header, bytes.try_reserve_exact(length.bytes)) else {
                return RingStep::Nonsense;
            };
            self.prefix.clear();
            self.message = Some((header, length, bytes));
        }
        let Some((header, length, mut bytes)) = self.message.take() else { return RingStep::NoMore };
        let before = bytes.len();
        self.unreleased += append(&mut self.reader, &mut bytes, length.bytes);
        if bytes.len() == length.bytes {
            return self.read(header, length.form, bytes);
        }
        let is_piece = bytes.len() > before;
        self.message = Some((header, length, bytes));
        if is_piece { RingStep::Piece } else { RingStep::NoMore }
    }

    /// What a message is that has come whole.
    fn read(&self, header: JobHeader, form: RingForm, bytes: Vec<u8>) -> RingStep {
        match (form, &self.held) {
            (RingForm::Whole, _) => RingStep::Message(header, bytes),
            (RingForm::Lent, None) => match bytes.as_slice().try_into() {
                Ok(told) => RingStep::Lent(header, told),
                Err(_) => RingStep::Nonsense,
            },
            (RingForm::Late, Some(_)) => RingStep::Late(header, bytes),
            // A rank lends once at a time, and sends late only what it has lent.
            _ => RingStep::Nonsense,
        }
    }
}

/// Reads a piece into a vector that is to have this length in the end. Gives the number of bytes.
fn append(reader: &mut RingReader<SegmentRing>, bytes: &mut Vec<u8>, length: usize) -> usize {
    let wanted = (length - bytes.len()).min(PIECE);
    bytes.reserve(wanted);
    let count = reader.read(&mut bytes.spare_capacity_mut()[..wanted]);
    // SAFETY: `read` has initialised the first `count` bytes of the spare capacity.
    unsafe { bytes.set_len(bytes.len() + count) };
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rank 0 of two, and what rank 1 writes to it.
    fn pair() -> (Arc<JobRank<RankRings>>, RingWriter<SegmentRing>) {
        let segment = Arc::new(JobSegment::create_inherited(2).unwrap());
        // SAFETY: the segment is new, so no other process writes this ring.
        let writer = unsafe { RingWriter::new(SegmentRing::new(segment.clone(), 1, 0)) };
        // SAFETY: the segment is new, and this is the one call for rank 0.
        let rings = Arc::new(unsafe { RankRings::new(segment, 0) });
        let job = Arc::new(JobRank::new(0, 2, rings.clone()));
        rings.serve(&job);
        (job, writer)
    }

    /// How often a look finds something, before it finds nothing.
    fn looks(rings: &RankRings) -> usize {
        (0..).take_while(|&looks| looks < 10 && rings.look()).count()
    }

    fn header(kind: u8) -> JobHeader {
        let mut bytes = [0; JobHeader::BYTES];
        bytes[0] = kind;
        JobHeader::from_bytes(&bytes).expect("it is a kind")
    }

    fn is_lost(rings: &RankRings) -> bool {
        !rings.try_post(1, &header(0), [&[], &[]]) && rings.is_empty()
    }

    #[test]
    fn bytes_after_a_nonsense_are_left_and_the_looking_ends() {
        let (job, mut writer) = pair();
        let mut nonsense = prefix(0, &header(0));
        nonsense[8] = 200;
        writer.write(&nonsense);
        writer.write(b"more");
        writer.publish();
        assert_eq!(looks(job.link()), 1);
        assert!(is_lost(job.link()));
        // What comes later is no more read than that.
        writer.write(&prefix(0, &header(0)));
        writer.publish();
        assert_eq!(looks(job.link()), 0);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri ends where there is no memory")]
    fn a_length_for_which_there_is_no_memory_loses_the_rank_and_does_not_abort() {
        for length in [isize::MAX as usize, usize::MAX] {
            let (job, mut writer) = pair();
            writer.write(&prefix(length as u64, &header(0)));
            writer.publish();
            assert_eq!(looks(job.link()), 1);
            assert!(is_lost(job.link()));
        }
    }
}
