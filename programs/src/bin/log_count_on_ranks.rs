//! A log counted on ranks: rank 0 reads a log, rank 1 cuts it into lines and keeps the status of
//! each request, rank 2 keeps the errors, and rank 0 counts them. A stage on another rank is a
//! stage as any other: the count is that of a plain loop, a consumer that has seen enough stops the
//! reader, and a line that is no request is told with its place.
//!
//! # Prints
//! ```text
//! 20000 lines, 1667 of them errors, as a plain loop says
//! the first error is a 500
//! no request: status: item 3, offset 32: no status in "weft"
//! ```

use selvedge::distributed::{DistributedError, RankStages, RemoteStage, StagePool, on_rank};
use selvedge::flow;
use selvedge::mpi::{self, Communicator};
use selvedge::pipeline::{StageError, count, filter, from_chunks, group_by, head, line, try_lift121};
use std::process::ExitCode;

/// Lines of the log, and of a block.
const LINES: usize = 20_000;
const BLOCK: usize = 100;

/// A line of the log.
fn request(number: usize) -> String {
    let status = if number % 12 == 7 { 500 } else { 200 + number % 3 };
    format!("GET /cloth/{number} {status}\n")
}

/// A block of the log, as a file would give it.
fn block(number: usize) -> String {
    (number * BLOCK..(number + 1) * BLOCK).map(request).collect()
}

/// The status at the end of a line.
fn status(line: &[u8]) -> Result<u16, String> {
    let text = String::from_utf8_lossy(line);
    let last = text.rsplit(' ').next().and_then(|word| word.trim_end().parse().ok());
    last.ok_or_else(|| format!("no status in {:?}", text.trim_end()))
}

/// The stages that run on other ranks.
struct LogStages {
    statuses: RemoteStage<u8, u16>,
    errors: RemoteStage<u16, u16>,
    pool: StagePool,
}

impl LogStages {
    /// Each rank registers the same stages.
    async fn start(world: &Communicator) -> Result<LogStages, DistributedError> {
        let mut stages = RankStages::new();
        let statuses =
            stages.register("statuses", || group_by(line()) >> try_lift121(status).named("status"));
        let errors = stages.register("errors", || filter(|status: &u16| *status >= 500));
        Ok(LogStages { statuses, errors, pool: stages.start(world).await? })
    }

    /// The statuses of the errors in a log of these chunks.
    fn errors_of(
        &self,
        chunks: impl Iterator<Item = String> + Clone + Send + 'static,
    ) -> flow::BoxedFlowSource<u16> {
        let log = flow::made(from_chunks(chunks));
        (log >> on_rank(&self.pool, 1, self.statuses) >> on_rank(&self.pool, 2, self.errors)).boxed()
    }
}

async fn report(stages: &LogStages) -> Result<(), StageError> {
    let errors = (stages.errors_of((0..LINES / BLOCK).map(block)) >> count()).run().await?;
    let plain = (0..LINES).map(request).filter(|line| line.ends_with(" 500\n")).count();
    let verdict =
        if errors == plain as u64 { "as a plain loop says" } else { "and a plain loop says otherwise" };
    println!("{LINES} lines, {errors} of them errors, {verdict}");

    // The reader has no end. It is stopped when the consumer has seen an error.
    let endless = stages.errors_of((0..).map(block));
    println!("the first error is a {}", (endless >> head()).run().await?.unwrap_or_default());

    let broken = [request(0), request(1), "weft\n".into(), request(3)];
    if let Err(failure) = (stages.errors_of(broken.into_iter()) >> count()).run().await {
        println!("no request: {failure}");
    }
    Ok(())
}

async fn rank(world: Communicator) -> Result<(), DistributedError> {
    let stages = LogStages::start(&world).await?;
    if world.rank() == 0
        && let Err(failure) = report(&stages).await
    {
        println!("{failure}");
    }
    stages.pool.finish().await?;
    Ok(())
}

fn main() -> ExitCode {
    selvedge::run_main(async {
        mpi::run(3, rank).await?;
        Ok(())
    })
}
