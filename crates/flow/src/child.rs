//! Child processes as sources, and in the middle of a pipeline.
//!
//! Programs call [`command`] and [`through`]; `apps/pipe` runs its commands with both. `Talking` is
//! a running child with the read end of its output, for either of them.
//!
//! A child never outlives its pipeline. At the end `Talking::end` waits for it, `close` kills it
//! and waits, and `kill_on_drop` kills it if the pipeline is dropped.
//!
//! [`through`] needs a thread that writes: a program that has filled its output pipe reads no
//! input, so one thread that did both would wait forever.

use crate::beside::{Beside, until};
use crate::bytes::{ReadStream, Writing};
use crate::items::{failed, made};
use crate::role::{AfterSource, Drive, Driven, FlowSource, Source, Upstream, pour};
use selvedge_core::spawn;
use selvedge_io::pipe::{Receiver, Sender};
use selvedge_io::process::{self, Child};
use selvedge_pipeline::{AfterGenerator, Generate, Generator, Item, StageError, Transduce, Unchanged};
use selvedge_scope::race;
use selvedge_sync::Event;
use std::fmt;
use std::process::Stdio;
use std::sync::Arc;

/// The source of [`command`].
#[derive(Debug)]
pub struct CommandOutput {
    command: process::Command,
    running: Option<Talking>,
}

/// A child, and the reading of its output.
#[derive(Debug)]
struct Talking {
    /// The name of the program, for its failures.
    program: String,
    child: Child,
    output: ReadStream<Receiver>,
    /// The length of the block that was read last.
    length: usize,
    come: u64,
}

/// What a program writes to its standard output. The program is started when the pipeline runs.
/// Whether it has standard input is as the [`Command`](process::Command) says.
///
/// If the consumer is finished before the program, then the program is killed, and has ended when
/// the pipeline gives its result.
///
/// # Errors
/// Those of starting and of reading. It fails at the end if the program does not end with success.
/// An error of starting or of the end names the program.
///
/// # Examples
/// ```
/// use selvedge::pipeline::collect;
/// use selvedge::flow::command;
/// use selvedge::process::Command;
///
/// let mut echo = Command::new("echo");
/// echo.arg("warp");
/// let said = selvedge::run_local(async { (command(echo) >> collect()).run().await });
/// assert_eq!(said.unwrap().unwrap(), b"warp\n");
/// let fails = command(Command::new("false")) >> collect();
/// let fails = selvedge::run_local(fails.run()).unwrap().unwrap_err();
/// assert_eq!(fails.to_string(), "command: item 1, offset 0: false: exit status: 1");
/// ```
pub fn command(mut command: process::Command) -> FlowSource<u8, u8, CommandOutput, Unchanged> {
    command.stdout(Stdio::piped()).kill_on_drop(true);
    FlowSource::new(CommandOutput { command, running: None })
}

impl Talking {
    async fn start(command: &mut process::Command) -> Result<Talking, StageError> {
        let program = command.as_std_mut().get_program().display().to_string();
        let mut child = command.spawn().await.map_err(|error| failed("command", 0, error))?;
        let output = child.stdout.take().expect("the output is piped");
        Ok(Talking { program, child, output: ReadStream::new(output), length: 0, come: 0 })
    }

    /// Reads the next block. `false` at the end.
    async fn fill(&mut self) -> Result<bool, StageError> {
        self.length = self.output.next().await?.map_or(0, <[u8]>::len);
        self.come += self.length as u64;
        Ok(self.length > 0)
    }

    /// The block that was read last.
    fn block(&self) -> &[u8] {
        self.output.block(self.length)
    }

    /// Waits for the child, which has closed its output. A failure if it has not succeeded.
    ///
    /// If this is dropped, then the child is still here, and [`stop`](Talking::stop) ends it.
    async fn end(&mut self) -> Result<(), StageError> {
        let status = self.child.wait().await.map_err(|error| failed("command", self.come, error))?;
        if status.success() {
            return Ok(());
        }
        Err(failed("command", self.come, format!("{}: {status}", self.program)))
    }

    async fn stop(mut self) {
        let _ended = self.child.kill().await;
    }
}

impl Source<u8> for CommandOutput {
    async fn next(&mut self) -> Result<Option<&[u8]>, StageError> {
        if self.running.is_none() {
            self.running = Some(Talking::start(&mut self.command).await?);
        }
        let running = self.running.as_mut().expect("it has just been started");
        if running.fill().await? {
            return Ok(self.running.as_ref().map(Talking::block));
        }
        // The child stays in its place until it has ended, because a race may drop this `next`, and
        // then `close` must find it.
        let ended = running.end().await;
        self.running = None;
        ended.map(|()| None)
    }

    async fn close(mut self) {
        if let Some(running) = self.running.take() {
            running.stop().await;
        }
    }
}

/// What [`through`] returns: it stands between a source of bytes and the stages after it.
#[derive(Debug)]
pub struct Through {
    command: process::Command,
}

/// A program in the middle of a pipeline: it reads the bytes from upstream on its standard input,
/// and its standard output goes downstream. A thread of its own runs the stages upstream and writes
/// to the program, so that neither waits for the other.
///
/// A program that closes its standard input stops what is upstream, as in a shell.
///
/// # Errors
/// As [`command`], and the failures of what is upstream. These come when the program has ended.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{collect, from_chunks};
/// use selvedge::flow::through;
/// use selvedge::process::Command;
///
/// let sorted = selvedge::run_local(async {
///     let words = from_chunks(["weft\n", "warp\n"]);
///     (words >> through(Command::new("sort")) >> collect()).run().await
/// });
/// assert_eq!(sorted.unwrap().unwrap(), b"warp\nweft\n");
/// ```
pub fn through(mut command: process::Command) -> Through {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    Through { command }
}

/// The source of [`through`].
pub struct ThroughCommand {
    command: process::Command,
    /// The source of the program's input, until the program starts. Then it moves to the thread.
    upstream: Option<Box<dyn Drive<Sender>>>,
    running: Option<(Talking, Beside<Result<(), StageError>>)>,
}

impl fmt::Debug for ThroughCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThroughCommand").field("command", &self.command).finish_non_exhaustive()
    }
}

impl<A, S, T> AfterSource<A, u8, S, T> for Through
where
    A: Item + ?Sized,
    S: Source<A> + 'static,
    T: Transduce<A, u8> + Send + 'static,
{
    type Whole = FlowSource<u8, u8, ThroughCommand, Unchanged>;

    fn after(self, source: FlowSource<A, u8, S, T>) -> Self::Whole {
        let upstream = Box::new(Upstream::new(source.source, source.stages.into_stage()));
        FlowSource::new(ThroughCommand { command: self.command, upstream: Some(upstream), running: None })
    }
}

impl<G> AfterGenerator<u8, G> for Through
where
    G: Generate<u8> + Send + 'static,
{
    type Whole = FlowSource<u8, u8, ThroughCommand, Unchanged>;

    fn after(self, generator: Generator<u8, G>) -> Self::Whole {
        made(generator) >> self
    }
}

/// The thread that writes to a program.
async fn feed<A, S, T>(
    mut upstream: Upstream<A, u8, S, T>,
    input: Sender,
    stop: Arc<Event>,
) -> Result<(), StageError>
where
    A: Item + ?Sized,
    S: Source<A>,
    T: Transduce<A, u8> + Send,
{
    let mut writing = Writing::new(input);
    let over = race((pour(&mut upstream, &mut writing), until(&stop))).await;
    // The program sees the end of its input before what is upstream is closed.
    drop(writing);
    upstream.close().await;
    over
}

impl<A, S, T> Drive<Sender> for Upstream<A, u8, S, T>
where
    A: Item + ?Sized,
    S: Source<A> + 'static,
    T: Transduce<A, u8> + Send + 'static,
{
    fn drive(self: Box<Self>, end: Sender, stop: Arc<Event>) -> Driven<Result<(), StageError>> {
        Box::pin(feed(*self, end, stop))
    }

    fn close(self: Box<Self>) -> Driven<()> {
        Box::pin(Upstream::close(*self))
    }
}

impl Source<u8> for ThroughCommand {
    async fn next(&mut self) -> Result<Option<&[u8]>, StageError> {
        if self.upstream.is_some() {
            // If the program does not start, then `close` finds what is upstream, and closes it.
            let mut running = Talking::start(&mut self.command).await?;
            let input = running.child.stdin.take().expect("the input is piped");
            let Some(upstream) = self.upstream.take() else { return Ok(None) };
            let stop = Arc::new(Event::new());
            let feeding = spawn(upstream.drive(input, stop.clone()));
            self.running = Some((running, Beside::that_stops(feeding, stop)));
        }
        let Some((running, feeding)) = &mut self.running else { return Ok(None) };
        if running.fill().await? {
            return Ok(self.running.as_ref().map(|(running, _)| running.block()));
        }
        // Both stay in their place until they have ended, because a race may drop this `next`, and
        // then `close` must find them.
        let ended = running.end().await;
        // The program may have ended before it has read all of its input. Then the thread may still
        // wait for a source, so it must be stopped.
        let fed = feeding.stop_and_join().await;
        self.running = None;
        fed?;
        ended.map(|()| None)
    }

    async fn close(mut self) {
        if let Some(upstream) = self.upstream.take() {
            upstream.close().await;
        }
        if let Some((running, mut feeding)) = self.running.take() {
            feeding.stop().await;
            running.stop().await;
        }
    }
}
