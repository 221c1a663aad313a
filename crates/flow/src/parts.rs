//! Stages that work on parts of a stream side by side: `in_parts`.
//!
//! Programs call [`in_parts`]. Its source starts a worker for each thread. Each worker claims the
//! next block, reads it, and runs stages of its own on the items in it (`Part` of the pipeline
//! crate). The source takes the parts in the order of their blocks, and a [`PartJoiner`] runs the
//! stages on the items that reach over the end of a block.
//!
//! A block of a file lies at the place that follows from its number, so workers read different
//! blocks at the same time. From any other source one worker reads at a time, because only the
//! source knows where its next chunk is.
//!
//! A worker acquires a permit before it claims a block, and the source releases the permit when it
//! has taken the part. So at most `WINDOW` parts for each thread are ahead of the source. The part
//! `number` and the part `number + window` are never there at the same time, and both may use one
//! place in a ring.
//!
//! Stages that number their items need the number of items before the block. A worker counts the
//! items of its block, takes the sum of the blocks before from the ring `places`, and puts the sum
//! for the next block there before it runs its stages. So the worker of the next block waits for a
//! count at most, and not for the stages.
//!
//! Each claim delivers one result, also if its worker panics: the drop of `Claim` delivers `Lost`.
//! So the source never waits for a block that will not come. It then joins the worker that has
//! lost the block, and the panic goes on there.

use crate::beside::Beside;
use crate::items::{FromGenerator, failed, made};
use crate::role::{AfterSource, FlowSource, Source, WholeFile};
use selvedge_core::{spawn, yield_now};
use selvedge_io::fs::{AlignedBuf, File};
use selvedge_pipeline::{
    AfterGenerator, Generate, Generator, Item, Part, PartByPart, PartJoiner, StageError, Store, StreamPlace,
    Transducer, Unchanged,
};
use selvedge_scope::race;
use selvedge_sync::{BoundedFifo, Event, MVar, Mutex, Putter, Semaphore, Taker};
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How many bytes of a file make a block. A worker reads and searches a block in turn, so a block
/// fits into the second level of the cache.
const BLOCK: usize = 256 << 10;

/// How many parts for each thread may be ahead of the source.
const WINDOW: usize = 8;

/// What [`in_parts`] returns: it stands between a source of bytes and the stages after it.
pub struct InParts<B: ?Sized, T> {
    threads: u32,
    stages: T,
    yields: PhantomData<fn(&B)>,
}

/// Runs `stages` in `threads` threads side by side, each on a part of the stream. What they yield
/// comes in the order of the stream, and is the same as without `in_parts`.
///
/// The first of the stages makes lines: [`group_by`](selvedge_pipeline::group_by) of
/// [`line`](selvedge_pipeline::line()) or of
/// [`whole_line`](selvedge_pipeline::whole_line). What the others make of an item may
/// depend on that item and on its number
/// ([`ItemByItem`](selvedge_pipeline::ItemByItem)). The compiler refuses other stages:
/// they stand behind `in_parts`.
///
/// If the source is a [`file`](crate::file()), then each thread reads its parts itself. The threads
/// read any other source one at a time, and then the stages alone run side by side. A source with
/// stages becomes one without stages by [`into_source`](FlowSource::into_source).
///
/// The threads begin when the first items are wanted. A panic of a stage goes on in the thread that
/// runs the pipeline, at the place of its part. If the consumer is finished before the end, then
/// the threads are stopped, and their destructors have run when the pipeline gives its result. A
/// function in the stages is cloned for each thread, so it must keep nothing from one call to the
/// next.
///
/// # Errors
/// The first failure in the order of the stream: the failure that the pipeline would tell without
/// `in_parts`. What comes before it is passed on.
///
/// # Panics
/// If `threads` is 0.
///
/// # Complexity
/// For each block of 256 KiB (of each chunk of a source that is no file) some uncontended
/// operations of a semaphore and of a queue. Of each block the pieces of lines at its two ends are
/// copied. At most 8 parts for each thread wait to be taken.
///
/// # Examples
/// ```
/// use selvedge::pipeline::*;
/// use selvedge::flow;
///
/// let found = selvedge::run(async {
///     let home = std::env::temp_dir().join(format!("in-parts-{}", std::process::id()));
///     selvedge::fs::write(&home, "warp\n\nweft\nno warp\n").await?;
///     // grep -n, by four threads.
///     let number = |n: u64, line: &mut Vec<u8>| line.extend(format!("{n}:").bytes());
///     let grep = group_by(whole_line())
///         >> select_numbered(any(substring(b"warp")), number)
///         >> concatenate();
///     let found = (flow::file(&home) >> flow::in_parts(4, grep) >> collect()).run().await?;
///     selvedge::fs::remove_file(&home).await?;
///     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(found)
/// });
/// assert_eq!(found.unwrap().unwrap(), b"1:warp\n4:no warp\n");
/// ```
/// A stage that depends on the items before stands behind it:
/// ```compile_fail,E0277
/// # use selvedge::pipeline::*;
/// # use selvedge::flow;
/// let _ = flow::in_parts(2, group_by(line()) >> take(3));
/// ```
/// ```
/// # use selvedge::pipeline::*;
/// # use selvedge::flow;
/// let _ = flow::file("warp") >> flow::in_parts(2, group_by(line())) >> take(3);
/// ```
/// So does a stage that numbers its items, if the number of items before a part is not known:
/// ```compile_fail,E0080
/// # use selvedge::pipeline::*;
/// # use selvedge::flow;
/// let long = group_by(line()) >> filter(|line: &[u8]| line.len() > 9);
/// let number = |n: u64, line: &mut Vec<u8>| line.extend_from_slice(format!("{n}:").as_bytes());
/// let _ = flow::in_parts(2, long >> select_numbered(any(substring(b"warp")), number));
/// ```
/// ```
/// # use selvedge::pipeline::*;
/// # use selvedge::flow;
/// let long = group_by(line()) >> filter(|line: &[u8]| line.len() > 9);
/// let number = |n: u64, line: &mut Vec<u8>| line.extend_from_slice(format!("{n}:").as_bytes());
/// let numbered = select_numbered(any(substring(b"warp")), number);
/// let _ = flow::file("warp") >> flow::in_parts(2, long) >> numbered;
/// ```
pub fn in_parts<B, T>(threads: u32, stages: Transducer<u8, B, T>) -> InParts<B, T>
where
    B: Item + ?Sized,
    T: PartByPart<u8, B>,
{
    // The compiler refuses stages that need a place which is not known.
    let _needs = const { T::NEEDS };
    assert!(threads > 0, "in_parts with no threads");
    InParts { threads, stages: stages.into_stage(), yields: PhantomData }
}

impl<B: ?Sized, T> fmt::Debug for InParts<B, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InParts").field("threads", &self.threads).finish_non_exhaustive()
    }
}

impl<B, S, T> AfterSource<u8, u8, S, Unchanged> for InParts<B, T>
where
    B: Item<Store: Send> + ?Sized,
    S: Source<u8> + 'static,
    T: PartByPart<u8, B> + Send + 'static,
{
    type Whole = FlowSource<B, B, PartsOf<B, S, T>, Unchanged>;

    fn after(self, source: FlowSource<u8, u8, S, Unchanged>) -> Self::Whole {
        FlowSource::new(PartsOf {
            threads: self.threads as usize,
            begin: Some((source.source, self.stages.clone())),
            running: None,
            joiner: PartJoiner::new(self.stages),
            joined: B::Store::default(),
            part: Part::default(),
            unlent: false,
            over: None,
            ended: false,
        })
    }
}

impl<B, G, T> AfterGenerator<u8, G> for InParts<B, T>
where
    B: Item<Store: Send> + ?Sized,
    G: Generate<u8> + Send + 'static,
    T: PartByPart<u8, B> + Send + 'static,
{
    type Whole = FlowSource<B, B, PartsOf<B, FromGenerator<u8, G>, T>, Unchanged>;

    fn after(self, generator: Generator<u8, G>) -> Self::Whole {
        made(generator) >> self
    }
}

/// The source of [`in_parts`].
pub struct PartsOf<B: Item + ?Sized, S, T> {
    threads: usize,
    /// The source and the stages of the workers, until the first `next` starts them.
    begin: Option<(S, T)>,
    running: Option<PartWorkers<B, S>>,
    joiner: PartJoiner<u8, T>,
    /// What the joiner has made of the items that reach over the end of a block.
    joined: B::Store,
    /// The part that was taken last.
    part: Part<u8, B>,
    /// What `part` has made was not lent yet.
    unlent: bool,
    /// What comes behind `part`: the end, or a failure.
    over: Option<Result<(), StageError>>,
    /// The joiner has seen the end.
    ended: bool,
}

/// The side of the workers that the source has.
struct PartWorkers<B: Item + ?Sized, S> {
    shared: Arc<Shared<B, S>>,
    delivered: Taker<Delivery<B>>,
    /// Parts for their memory.
    empty: Putter<Part<u8, B>>,
    threads: Vec<Beside<()>>,
    /// The number of the next part.
    next: u64,
    /// The parts that came too early: the part `next` is at the front.
    early: VecDeque<Option<Delivered<B>>>,
}

/// What the workers share.
struct Shared<B: Item + ?Sized, S> {
    blocks: Blocks<S>,
    permits: Semaphore,
    /// The place at which a block begins, for the stages that must know it: that of the block
    /// `number` is at `number % places.len()`.
    places: Box<[MVar<StreamPlace>]>,
    delivers: Putter<Delivery<B>>,
    empty: Taker<Part<u8, B>>,
    stop: Arc<Event>,
    /// Whether the last bytes came without a wait.
    prompt: AtomicBool,
}

/// Where the blocks come from.
enum Blocks<S> {
    File {
        source: Mutex<Option<S>>,
        whole: WholeFile,
        file: File,
        /// The number of the next block that no worker has claimed.
        next: AtomicU64,
    },
    Source(Mutex<Chunks<S>>),
}

/// A source that one worker reads at a time.
struct Chunks<S> {
    source: Option<S>,
    next: u64,
    come: u64,
    /// The source has ended or failed, or a worker is reading it. A worker that panics there leaves
    /// it so.
    over: bool,
}

/// What a worker has made of its block.
struct Delivery<B: Item + ?Sized> {
    number: u64,
    what: Delivered<B>,
}

enum Delivered<B: Item + ?Sized> {
    Part(Part<u8, B>, Option<Result<(), StageError>>),
    /// The worker of this index has ended before.
    Lost(usize),
}

/// The duty to deliver the block `number`.
struct Claim<'a, B: Item + ?Sized> {
    number: u64,
    worker: usize,
    delivers: &'a Putter<Delivery<B>>,
    delivered: bool,
}

impl<'a, B: Item + ?Sized> Claim<'a, B> {
    fn new(number: u64, worker: usize, delivers: &'a Putter<Delivery<B>>) -> Self {
        Claim { number, worker, delivers, delivered: false }
    }

    fn deliver(&mut self, what: Delivered<B>) {
        self.delivered = true;
        // The queue has room for each claim that has a permit. It is closed if the pipeline was
        // dropped: then the part is not wanted.
        let _not_wanted = self.delivers.try_put(Delivery { number: self.number, what });
    }
}

impl<B: Item + ?Sized> Drop for Claim<'_, B> {
    fn drop(&mut self) {
        if !self.delivered {
            self.deliver(Delivered::Lost(self.worker));
        }
    }
}

/// The memory of a worker for its block.
enum OwnBlock {
    Aligned(AlignedBuf, Option<File>),
    Copied(Vec<u8>),
}

/// A block that was read.
struct Block<'a> {
    bytes: &'a [u8],
    /// How many bytes lie before it.
    begin: u64,
    /// What comes behind it, if not another block.
    over: Option<Result<(), StageError>>,
}

impl<B, S> Shared<B, S>
where
    B: Item<Store: Send> + ?Sized,
    S: Source<u8>,
{
    /// Claims the next block, and reads it. `None` if there are no more.
    async fn claim<'a, 'b>(
        &'a self,
        worker: usize,
        own: &'b mut OwnBlock,
    ) -> Option<(Claim<'a, B>, Block<'b>)> {
        match (&self.blocks, own) {
            (Blocks::File { whole, file, next, .. }, OwnBlock::Aligned(block, own)) => {
                let claim = Claim::new(next.fetch_add(1, Ordering::Relaxed), worker, &self.delivers);
                let begin = claim.number * BLOCK as u64;
                let own = own.get_or_insert_with(|| file.clone());
                own.set_position(begin);
                let (mut length, mut over) = (0, None);
                while length < BLOCK && over.is_none() {
                    match own.read(&mut block[length..]).await {
                        Ok(0) => over = Some(Ok(())),
                        Ok(read) => length += read,
                        Err(error) => {
                            over = Some(Err(whole.named(failed("read", begin + length as u64, error))));
                        }
                    }
                }
                self.prompt.store(own.was_in_memory(), Ordering::Relaxed);
                Some((claim, Block { bytes: &block[..length], begin, over }))
            }
            (Blocks::Source(chunks), OwnBlock::Copied(copy)) => {
                let mut chunks = chunks.lock().await;
                let Chunks { source, next, come, over } = &mut *chunks;
                let source = source.as_mut().filter(|_| !*over)?;
                let claim = Claim::new(*next, worker, &self.delivers);
                (*next, *over) = (*next + 1, true);
                copy.clear();
                let begin = *come;
                let behind = match source.next().await {
                    Ok(Some(chunk)) => {
                        copy.extend_from_slice(chunk);
                        *come += chunk.len() as u64;
                        *over = false;
                        None
                    }
                    Ok(None) => Some(Ok(())),
                    Err(failure) => Some(Err(failure)),
                };
                self.prompt.store(source.is_prompt(), Ordering::Relaxed);
                Some((claim, Block { bytes: copy, begin, over: behind }))
            }
            _ => unreachable!("a worker has the memory that its source needs"),
        }
    }

    /// What a worker does.
    async fn work<T: PartByPart<u8, B>>(&self, worker: usize, mut stages: T, mut own: OwnBlock) {
        loop {
            self.permits.acquire().await.forget();
            if self.stop.is_set() {
                return;
            }
            let Some((mut claim, block)) = self.claim(worker, &mut own).await else { return };
            let mut part = self.empty.try_take().unwrap_or_default();
            part.cut(&stages, block.bytes);
            let mut place = StreamPlace { items: 0, elements: block.begin };
            if T::NEEDS.is_some() {
                place = self.place(claim.number).take().await;
                let StreamPlace { items, elements } = part.ended();
                let next = StreamPlace { items: place.items + items, elements: place.elements + elements };
                self.place(claim.number + 1).put(next).await;
            }
            part.make(&mut stages, block.bytes, place);
            let failure = part.failure().cloned();
            let over = failure.map_or(block.over, |failure| Some(Err(failure)));
            let ends = over.is_some();
            claim.deliver(Delivered::Part(part, over));
            if ends {
                return;
            }
            // The thread that takes the parts may be behind this one.
            yield_now().await;
        }
    }

    fn place(&self, number: u64) -> &MVar<StreamPlace> {
        &self.places[(number % self.places.len() as u64) as usize]
    }
}

impl<B, S> PartWorkers<B, S>
where
    B: Item<Store: Send> + ?Sized,
    S: Source<u8> + 'static,
{
    /// Starts the workers.
    async fn start<T>(threads: usize, source: S, stages: T) -> Result<Self, (S, StageError)>
    where
        T: PartByPart<u8, B> + Send + 'static,
    {
        let blocks = match source.whole_file() {
            Some(whole) => match File::open(&whole.path).await {
                Ok(file) => {
                    Blocks::File { source: Mutex::new(Some(source)), whole, file, next: AtomicU64::new(0) }
                }
                Err(error) => return Err((source, whole.named(failed("file", 0, error)))),
            },
            None => {
                Blocks::Source(Mutex::new(Chunks { source: Some(source), next: 0, come: 0, over: false }))
            }
        };
        let window = threads * WINDOW;
        let (delivers, delivered) = BoundedFifo::ends(window);
        let (back, empty) = BoundedFifo::ends(window);
        let stop = Arc::new(Event::new());
        let places: Box<[_]> = (0..=window).map(|_| MVar::empty()).collect();
        let _was_empty = places[0].try_put(StreamPlace::default());
        let permits = Semaphore::new(window as u32);
        let prompt = AtomicBool::new(false);
        let shared =
            Arc::new(Shared { blocks, permits, places, delivers, empty, stop: stop.clone(), prompt });
        let threads = (0..threads).map(|worker| {
            let (shared, stages, stop) = (shared.clone(), stages.clone(), stop.clone());
            let own = match &shared.blocks {
                Blocks::File { .. } => OwnBlock::Aligned(AlignedBuf::new(BLOCK), None),
                Blocks::Source(_) => OwnBlock::Copied(Vec::new()),
            };
            let stops = stop.clone();
            let work = async move { race((shared.work(worker, stages, own), stops.wait())).await };
            Beside::that_stops(spawn(work), stop)
        });
        let threads = threads.collect();
        let early = VecDeque::new();
        Ok(PartWorkers { shared, delivered, empty: back, threads, next: 0, early })
    }

    /// The next part, and what comes behind it.
    async fn take(&mut self) -> (Part<u8, B>, Option<Result<(), StageError>>) {
        let what = loop {
            if let Some(Some(_)) = self.early.front() {
                break self.early.pop_front().flatten();
            }
            let Some(Delivery { number, what }) = self.delivered.take().await else { break None };
            let index = (number - self.next) as usize;
            if self.early.len() <= index {
                self.early.resize_with(index + 1, || None);
            }
            self.early[index] = Some(what);
        };
        self.next += 1;
        self.shared.permits.release(1);
        match what {
            Some(Delivered::Part(part, over)) => (part, over),
            Some(Delivered::Lost(worker)) => {
                self.threads[worker].join().await;
                unreachable!("a worker that loses its part has panicked or was cancelled")
            }
            None => unreachable!("`shared` has a putter"),
        }
    }

    async fn close(mut self) {
        for thread in &mut self.threads {
            thread.stop().await;
        }
        // No worker runs any more, so the lock is free.
        let source = match &self.shared.blocks {
            Blocks::File { source, .. } => source.lock().await.take(),
            Blocks::Source(chunks) => chunks.lock().await.source.take(),
        };
        if let Some(source) = source {
            source.close().await;
        }
    }
}

/// Which of its stores a source lends.
enum Lends {
    Joined,
    Part,
    Nothing,
}

impl<B, S, T> PartsOf<B, S, T>
where
    B: Item<Store: Send> + ?Sized,
    S: Source<u8> + 'static,
    T: PartByPart<u8, B> + Send + 'static,
{
    /// Starts the workers, if they have not started yet.
    async fn start(&mut self) -> Result<(), StageError> {
        let Some((source, stages)) = self.begin.take() else { return Ok(()) };
        match PartWorkers::start(self.threads, source, stages).await {
            Ok(running) => self.running = Some(running),
            Err((source, failure)) => {
                source.close().await;
                return Err(failure);
            }
        }
        Ok(())
    }

    /// Waits for the next items, and says where they are.
    async fn advance(&mut self) -> Result<Lends, StageError> {
        loop {
            if std::mem::take(&mut self.unlent) && self.part.made().count() > 0 {
                return Ok(Lends::Part);
            }
            self.joined.clear();
            match &self.over {
                Some(Err(failure)) => return Err(failure.clone()),
                Some(Ok(())) if self.ended => return Ok(Lends::Nothing),
                Some(Ok(())) => {
                    self.ended = true;
                    self.over = Some(self.joiner.end(&mut self.joined));
                }
                None => self.join_next().await,
            }
            if self.joined.count() > 0 {
                return Ok(Lends::Joined);
            }
        }
    }

    /// Takes the next part, and joins it to those before.
    async fn join_next(&mut self) {
        let Some(running) = &mut self.running else { return };
        let used = std::mem::take(&mut self.part);
        let _not_needed = running.empty.try_put(used);
        (self.part, self.over) = running.take().await;
        match self.joiner.join(&self.part, &mut self.joined) {
            Ok(()) => self.unlent = true,
            // The item lies before those of the part.
            Err(failure) => self.over = Some(Err(failure)),
        }
    }
}

impl<B, S, T> Source<B> for PartsOf<B, S, T>
where
    B: Item<Store: Send> + ?Sized,
    S: Source<u8> + 'static,
    T: PartByPart<u8, B> + Send + 'static,
{
    async fn next(&mut self) -> Result<Option<B::Chunk<'_>>, StageError> {
        self.start().await?;
        Ok(match self.advance().await? {
            Lends::Joined => Some(self.joined.all()),
            Lends::Part => Some(self.part.made().all()),
            Lends::Nothing => None,
        })
    }

    fn is_prompt(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.shared.prompt.load(Ordering::Relaxed))
    }

    async fn close(mut self) {
        if let Some((source, _)) = self.begin.take() {
            source.close().await;
        }
        if let Some(running) = self.running.take() {
            running.close().await;
        }
    }
}

impl<B: Item + ?Sized, S, T> fmt::Debug for PartsOf<B, S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartsOf").field("threads", &self.threads).finish_non_exhaustive()
    }
}
