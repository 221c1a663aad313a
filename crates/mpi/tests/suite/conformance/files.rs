//! Files that the ranks have open together.

use super::cases;
use selvedge_core::yield_now;
use selvedge_io::fs;
use selvedge_mpi::{Communicator, Error, ErrorClass, FileView, Info, Layout, SharedFile, wait_all};
use std::io::ErrorKind;
use std::path::PathBuf;

/// A path for the ranks of one run.
async fn path_of(world: &Communicator, name: &str) -> Result<PathBuf, Error> {
    let directory = std::env::temp_dir();
    if world.rank() == 0 {
        // Nothing is there in a simulated world.
        fs::create_dir_all(directory.clone()).await.unwrap();
    }
    let run = format!("{}-{:?}", std::process::id(), std::thread::current().id());
    world.bcast(0, || directory.join(format!("selvedge-mpi-{name}-{run}"))).await
}

/// A new file of a run, which is removed when it is closed.
async fn created(world: &Communicator, name: &str, info: &Info) -> Result<SharedFile, Error> {
    let path = path_of(world, name).await?;
    let options = SharedFile::options().read(true).write(true).create(true).truncate(true);
    options.delete_on_close(true).info(info).open(world, path).await
}

/// Of each `size` elements the one with the number of the rank.
fn interleaved(world: &Communicator) -> FileView {
    FileView::new(Layout::contiguous(1).shifted(world.rank()), world.size())
}

cases! {
    /// Each rank writes a part, and reads those of others.
    parts_of_a_file(4, world) {
        let (rank, size) = (world.rank(), world.size());
        let file = created(&world, "parts", &Info::new()).await?;
        let part = vec![rank as u8; 10 + rank];
        let begin = |rank: usize| (0..rank).map(|before| 10 + before as u64).sum::<u64>();
        file.write_at_all(begin(rank), &part).await?;
        assert_eq!(file.len().await?, begin(size));
        let next = (rank + 1) % size;
        assert_eq!(file.read_at(begin(next), 10 + next).await?, vec![next as u8; 10 + next]);
        // The last rank's part, and what is behind it.
        assert_eq!(file.read_at_all(begin(3), 100).await?, [3; 13]);
        assert_eq!(file.read_at(begin(size), 1).await?, []);
        file.close().await?;
    }

    /// The elements of all ranks lie between one another, in one round and in many.
    interleaved_elements(4, world) {
        let (rank, size) = (world.rank(), world.size());
        for info in [Info::new(), Info::new().with("cb_nodes", 2).with("cb_buffer_size", 100)] {
            let file = created(&world, "interleaved", &info).await?;
            let file = file.view::<u32>(interleaved(&world).after(6)).await?;
            let own: Vec<u32> = (0..70).map(|number| (number * size + rank) as u32).collect();
            file.write_at_all(0, &own).await?;
            assert_eq!(file.read_at(0, 100).await?, own);
            // Another rank's elements, as far as the file goes: the last ones are missing.
            assert_eq!(file.read_at_all(60, 20).await?, own[60..]);
            let file = file.view::<u32>(FileView::whole().after(6)).await?;
            assert_eq!(file.read_at(0, 1_000).await?, Vec::from_iter(0..280));
            // No rank but one has elements.
            let some = if rank == 2 { vec![7, 7] } else { vec![] };
            file.write_at_all(1, &some).await?;
            assert_eq!(file.read_at_all(0, 4).await?, [0, 7, 7, 3]);
            assert_eq!(file.len().await?, 6 + 280 * 4);
            file.close().await?;
        }
    }

    /// A domain of each rank, of more than a page, with pieces that go over their ends.
    large_domains(3, world) {
        let info = Info::new().with("cb_buffer_size", 20_000);
        let file = created(&world, "large", &info).await?;
        let block = 1_000;
        let layout = Layout::contiguous(block).shifted(block * world.rank());
        let file = file.view::<u64>(FileView::new(layout, 3 * block).after(8)).await?;
        let own: Vec<u64> = (0..20_000).map(|number| number * 3 + world.rank() as u64).collect();
        file.write_at_all(0, &own).await?;
        assert_eq!(file.read_at_all(0, 30_000).await?, own);
        assert_eq!(file.read_at(19_990, 5).await?, own[19_990..19_995]);
        file.close().await?;
    }

    /// Blocks of a matrix, with a header before it, and then its columns.
    views_of_a_matrix(4, world) {
        let (rank, row, column) = (world.rank(), world.rank() / 2, world.rank() % 2);
        let file = created(&world, "matrix", &Info::new()).await?;
        if rank == 0 {
            file.write_at(0, b"header").await?;
        }
        let block = Layout::subarray([4, 6], [2 * row..2 * row + 2, 3 * column..3 * column + 3]);
        let file = file.view::<f64>(FileView::new(block, 24).after(6)).await?;
        let own: Vec<f64> = (0..6)
            .map(|place| ((2 * row + place / 3) * 6 + 3 * column + place % 3) as f64)
            .collect();
        file.write_at_all(0, &own).await?;
        let column = Layout::vector(4, 1, 6).shifted(rank);
        let file = file.view::<f64>(FileView::new(column, 24).after(6)).await?;
        let expected: Vec<f64> = (0..4).map(|row| (row * 6 + rank) as f64).collect();
        assert_eq!(file.read_at_all(0, 4).await?, expected);
        let file = file.view::<u8>(FileView::whole()).await?;
        assert_eq!(file.read_at(0, 6).await?, b"header");
        file.close().await?;
    }

    /// Where the ranks write the same places, the elements of the highest rank stay.
    the_same_places(3, world) {
        let file = created(&world, "same", &Info::new()).await?;
        file.write_at_all(world.rank() as u64, &[world.rank() as u8; 4]).await?;
        assert_eq!(file.read_at_all(0, 10).await?, [0, 1, 2, 2, 2, 2]);
        file.close().await?;
    }

    /// Each rank has a position of its own.
    positions(2, world) {
        let rank = world.rank() as u16;
        let file = created(&world, "positions", &Info::new()).await?;
        let mut file = file.view::<u16>(interleaved(&world)).await?;
        file.write(&[rank, 10 + rank]).await?;
        file.write_all(&[20 + rank]).await?;
        assert_eq!(file.position(), 3);
        file.seek(1);
        assert_eq!(file.read(1).await?, [10 + rank]);
        // Beyond the end the position stays at the end.
        assert_eq!(file.read_all(5).await?, [20 + rank]);
        assert_eq!(file.position(), 3);
        let writing = file.iwrite(&[30 + rank]);
        writing.await?;
        world.barrier().await?;
        file.seek(0);
        let (first, second) = (file.iread(2), file.iread(2));
        assert_eq!(wait_all([first, second]).await?, [[rank, 10 + rank], [20 + rank, 30 + rank]]);
        let mut file = file.view::<u16>(FileView::whole()).await?;
        assert_eq!((file.position(), file.read(3).await?), (0, vec![0, 1, 10]));
        file.close().await?;
    }

    /// One position is that of all ranks.
    a_shared_position(3, world) {
        let rank = world.rank();
        let file = created(&world, "shared", &Info::new()).await?.view::<u32>(FileView::whole()).await?;
        // A part of each rank, in their order, with different lengths.
        for round in 0..3 {
            file.write_ordered(&vec![round * 10 + rank as u32; rank + 1]).await?;
        }
        assert_eq!(file.position_shared().await?, 18);
        let all = [[0, 1, 1, 2, 2, 2], [10, 11, 11, 12, 12, 12], [20, 21, 21, 22, 22, 22]].concat();
        assert_eq!(file.read_at(0, 100).await?, all);
        file.seek_shared(6).await?;
        assert_eq!(file.read_ordered(2).await?, [[10, 11], [11, 12], [12, 12]][rank]);
        // Each task is taken by one rank.
        file.seek_shared(0).await?;
        let mut taken = Vec::new();
        loop {
            let task = file.read_shared(1).await?;
            let Some(task) = task.first() else { break };
            taken.push(*task);
            yield_now().await;
        }
        let mut taken = world.allgather(taken).await?.concat();
        taken.sort_unstable();
        let mut sorted = all.clone();
        sorted.sort_unstable();
        assert_eq!(taken, sorted);
        file.seek_shared(18).await?;
        file.write_shared(&[100 + rank as u32; 2]).await?;
        world.barrier().await?;
        let mut log = file.read_at(18, 100).await?;
        assert!(log.chunks(2).all(|pair| pair[0] == pair[1]), "{log:?}");
        log.sort_unstable();
        assert_eq!(log, [100, 100, 101, 101, 102, 102]);
        file.close().await?;
    }

    /// Several operations are under way at once.
    started_transfers(3, world) {
        let rank = world.rank() as u64;
        let file = created(&world, "started", &Info::new()).await?.view::<u64>(interleaved(&world)).await?;
        let first = file.iwrite_at_all(0, &[rank, 10 + rank]);
        let second = file.iwrite_at_all(2, &[20 + rank]);
        let third = file.iwrite_at(3, &[30 + rank]);
        third.await?;
        second.await?;
        first.await?;
        // What a rank starts, another one calls.
        let reading = match rank {
            0 => file.read_at_all(1, 2).await?,
            _ => file.iread_at_all(1, 2).await?,
        };
        assert_eq!(reading, [10 + rank, 20 + rank]);
        assert_eq!(file.iread_at(3, 1).await?, [30 + rank]);
        file.close().await?;
    }

    /// What concerns the file as a whole.
    a_whole_file(3, world) {
        let path = path_of(&world, "whole").await?;
        let file = SharedFile::create(&world, &path).await?;
        file.set_len(100).await?;
        assert_eq!(file.len().await?, 100);
        file.preallocate(50).await?;
        assert_eq!((file.len().await?, file.is_empty().await?), (100, false));
        file.preallocate(3_000_000).await?;
        assert_eq!(file.read_at_all(2_999_990, 100).await?, [0; 10]);
        file.set_len(3).await?;
        file.write_at(world.rank() as u64, &[world.rank() as u8]).await?;
        file.sync().await?;
        assert_eq!(file.read_at(0, 10).await?, [0, 1, 2]);
        assert_eq!(file.path(), path);
        file.close().await?;

        let options = SharedFile::options().read(true).write(true).append(true);
        let mut file = options.delete_on_close(true).open(&world, &path).await?;
        assert_eq!((file.position(), file.position_shared().await?), (3, 3));
        file.write_ordered(&[10 + world.rank() as u8]).await?;
        assert_eq!(file.read(10).await?, [10, 11, 12]);
        file.close().await?;
        let error = SharedFile::open(&world, &path).await.unwrap_err();
        assert_eq!(error.io_kind(), Some(ErrorKind::NotFound), "{error}");
    }

    /// In atomic mode a reader sees each write whole, also where it lies in pieces.
    atomic_writes(3, world) {
        let file = created(&world, "atomic", &Info::new()).await?;
        let pieces = FileView::new(Layout::contiguous(1), 8_000);
        let file = file.view::<u32>(pieces).await?;
        file.write_at_all(0, &[0; 4]).await?;
        file.set_atomic(true).await?;
        assert!(file.is_atomic());
        for round in 0..5 {
            if world.rank() < 2 {
                file.write_at(0, &[10 * round + world.rank() as u32; 4]).await?;
            } else {
                let seen = file.read_at(0, 4).await?;
                assert!(seen.iter().all(|element| *element == seen[0]), "{seen:?}");
            }
        }
        let all = file.read_at_all(0, 4).await?;
        assert!(all == [40; 4] || all == [41; 4], "{all:?}");
        // A rank that writes before it takes part does not wait for the ranks that have come.
        if world.rank() == 2 {
            for _ in 0..50 {
                yield_now().await;
            }
            file.write_at(1, &[7]).await?;
        }
        assert_eq!(file.read_at_all(1, 1).await?, [7]);
        file.set_atomic(false).await?;
        file.close().await?;
    }

    /// Every rank hears of what is wrong on one.
    errors_of_files(2, world) {
        let rank = world.rank();
        let path = path_of(&world, "errors").await?;
        let error = SharedFile::open(&world, &path).await.unwrap_err();
        let told = (error.class(), error.io_kind(), error.call(), error.rank());
        assert_eq!(told, (ErrorClass::File, Some(ErrorKind::NotFound), "open", rank));
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
        assert_eq!(error.to_string().contains("on rank 0: open"), rank == 1, "{error}");

        let options = SharedFile::options().write(true).create_new(true);
        let file = options.open(&world, &path).await?;
        let error = options.open(&world, &path).await.unwrap_err();
        assert_eq!(error.io_kind(), Some(ErrorKind::AlreadyExists), "{error}");
        // The file may be written, and not read: on every rank, also if one has nothing to read.
        let error = file.read_at_all(0, rank).await.unwrap_err();
        assert_eq!((error.class(), error.raw_os_error()), (ErrorClass::File, Some(9)), "{error}");
        assert_eq!(error.to_string().contains("on rank 1: read"), rank == 0, "{error}");
        let error = file.read_at(0, 1).await.unwrap_err();
        assert_eq!((error.call(), error.raw_os_error()), ("read_at", Some(9)), "{error}");
        let error = file.write_at(u64::MAX, &[1]).await.unwrap_err();
        assert!(error.to_string().contains("beyond the largest file"), "{error}");

        let error = file.write_at_all(rank as u64 * u64::MAX, &[1]).await.unwrap_err();
        assert!(error.to_string().contains("elements of rank 1 lie beyond the largest file"), "{error}");

        let error = file.set_len(rank as u64).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Mismatch, "{error}");
        let error = file.seek_shared(rank as u64).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Mismatch, "{error}");
        let view = FileView::whole();
        let error = match rank {
            0 => file.view::<u32>(view).await.map(drop).unwrap_err(),
            _ => file.view::<u64>(view).await.map(drop).unwrap_err(),
        };
        assert!(error.to_string().contains("names elements of"), "{error}");

        let options = SharedFile::options().read(true).info(&Info::new().with("cb_nodes", "few"));
        let error = options.open(&world, &path).await.unwrap_err();
        assert!(error.to_string().contains("the hint cb_nodes is few"), "{error}");
        let options = SharedFile::options().read(true).delete_on_close(true);
        options.open(&world, &path).await?.close().await?;
    }
}
