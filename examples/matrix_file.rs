//! A matrix in one file: each rank writes a block of it, and reads columns of it, with collective
//! operations on the file (MPI-IO). Then the ranks write a log in their order.
//!
//! `cargo run --release --example matrix_file -- 4 --ranks 4` takes the number of rows and columns
//! of a block, and makes the ranks processes.

use selvedge::fs;
use selvedge::mpi::{self, Communicator, FileView, Layout, Ranks, SharedFile};
use std::path::PathBuf;

/// Before the matrix, the file has its number of rows.
const HEADER: u64 = size_of::<u64>() as u64;

/// Four ranks write a matrix of two by two blocks. Gives the sum of the columns of this rank.
async fn matrix(world: Communicator, block: usize, path: PathBuf) -> Result<f64, mpi::Error> {
    let (rows, rank) = (2 * block, world.rank());
    let (row, column) = (rank / 2 * block, rank % 2 * block);
    let file = SharedFile::create(&world, &path).await?;
    if rank == 0 {
        file.write_at(0, &(rows as u64).to_le_bytes()).await?;
    }

    // The block of this rank, from the top left.
    let layout = Layout::subarray([rows, rows], [row..row + block, column..column + block]);
    let file = file.view::<f64>(FileView::new(layout, rows * rows).after(HEADER)).await?;
    let element = |place: usize| ((row + place / block) * rows + column + place % block) as f64;
    file.write_at_all(0, &(0..block * block).map(element).collect::<Vec<_>>()).await?;

    // Each rank has every fourth column. All rows of it are one read, because the view goes on.
    let columns = FileView::new(Layout::contiguous(1).shifted(rank), 4).after(HEADER);
    let file = file.view::<f64>(columns).await?;
    let own = file.read_at_all(0, rows * rows / 4).await?;
    let sum = own.iter().sum();
    file.close().await?;

    let log = SharedFile::create(&world, path.with_extension("log")).await?;
    log.write_ordered(format!("rank {rank} has read {} elements\n", own.len()).as_bytes()).await?;
    log.close().await?;
    Ok(sum)
}

#[selvedge::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let block = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(64);
    let block = 2 * (block / 2).max(1); // the number of columns is a multiple of four
    let run = Ranks::from_arguments(4).run(move |world| async move {
        assert_eq!(world.size(), 4, "the matrix has four blocks");
        let name = format!("selvedge-matrix-{}", std::process::id());
        let path = world.bcast(0, || std::env::temp_dir().join(name)).await?;
        let sum = matrix(world.clone(), block, path.clone()).await?;
        let all = world.reduce(0, sum, mpi::op::sum).await?;
        Ok::<_, mpi::Error>(all.map(|all| (all, path)))
    });
    // Without processes, this process has the results of all ranks.
    if let Some((sum, path)) = run.await?.into_iter().flatten().next() {
        let count = (4 * block * block) as f64;
        assert_eq!(sum, count * (count - 1.0) / 2.0);
        println!("{count} elements in {} bytes, their sum is {sum}", fs::metadata(&path).await?.len());
        let log = path.with_extension("log");
        print!("{}", fs::read_to_string(&log).await?);
        fs::remove_file(path).await?;
        fs::remove_file(log).await?;
    }
    Ok(())
}
