//! A collective write makes few calls of the system, also if the elements of the ranks lie between
//! one another. (The calls of the process are counted, so the test has a file of its own.)

use selvedge_io::calls;
use selvedge_mpi::{Communicator, Error, FileView, Layout, SharedFile, run};
use std::path::PathBuf;

/// The number of calls that have read and written files, since counting began.
fn transfers() -> u64 {
    let (total, _) = calls::counted();
    let is_transfer = |name: &str| name.starts_with("pread") || name.starts_with("pwrite");
    total.kinds.iter().filter(|(name, _)| is_transfer(name)).map(|(_, tally)| tally.calls).sum()
}

/// Elements of four bytes of each rank in turn. Gives the number of calls of the collective write,
/// of the collective read, and of the write of one rank alone.
async fn counts(world: Communicator, path: PathBuf) -> Result<[u64; 3], Error> {
    let (rank, size) = (world.rank(), world.size());
    let file = SharedFile::create(&world, path).await?;
    let view = FileView::new(Layout::contiguous(1).shifted(rank), size);
    let file = file.view::<u32>(view).await?;
    let own: Vec<u32> = (0..1_000).map(|number| number * size as u32 + rank as u32).collect();
    let mut marks = Vec::new();
    let mut mark = async || {
        world.barrier().await?;
        marks.push(transfers());
        world.barrier().await
    };
    mark().await?;
    file.write_at_all(0, &own).await?;
    mark().await?;
    assert_eq!(file.read_at_all(0, 1_000).await?, own);
    mark().await?;
    if rank == 0 {
        file.write_at(0, &own).await?;
    }
    mark().await?;
    file.close().await?;
    Ok([marks[1] - marks[0], marks[2] - marks[1], marks[3] - marks[2]])
}

#[test]
fn interleaved_elements_are_written_with_few_calls() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("elements");
    calls::count(true);
    let of_ranks = selvedge_core::round_robin(run(4, move |world| counts(world, path.clone())));
    for [collective, read, alone] in of_ranks.unwrap().unwrap() {
        // 4,000 pieces that lie together, and then 1,000 that do not.
        assert_eq!((collective, read, alone), (1, 1, 1_000));
    }
}
