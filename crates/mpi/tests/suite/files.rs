//! Random operations on a file of three ranks, against the same operations on a vector of bytes;
//! and files on disks that are full, fail, or lose their power.

use proptest::prelude::*;
use selvedge_mpi::{Communicator, Error, ErrorClass, FileView, Info, Layout, SharedFile, run};
use selvedge_sim::{Conditions, World};
use std::io::ErrorKind;
use std::sync::Arc;

const RANKS: usize = 3;

/// The blocks of a view, as gaps and lengths; and what is free behind them, and before all.
#[derive(Debug, Clone)]
struct Described {
    blocks: Vec<(usize, usize)>,
    behind: usize,
    after: u64,
}

/// An operation of all ranks, or of one of them.
#[derive(Debug, Clone)]
enum Operation {
    /// Whether the elements have two bytes, or one.
    View(bool, [Described; RANKS]),
    WriteAll([(u64, usize); RANKS]),
    ReadAll([(u64, usize); RANKS]),
    Write(usize, u64, usize),
    Read(usize, u64, usize),
    WriteOrdered([usize; RANKS]),
    ReadOrdered([usize; RANKS]),
    WriteShared(usize, usize),
    SetLength(u64),
}

fn views() -> impl Strategy<Value = Described> {
    let blocks = prop::collection::vec((0..4_usize, 1..4_usize), 1..4);
    (blocks, 0..4_usize, 0..9_u64).prop_map(|(blocks, behind, after)| Described { blocks, behind, after })
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let each = || prop::array::uniform3((0..20_u64, 0..20_usize));
    let counts = || prop::array::uniform3(0..8_usize);
    let operation = prop_oneof![
        (any::<bool>(), prop::array::uniform3(views())).prop_map(|(wide, all)| Operation::View(wide, all)),
        each().prop_map(Operation::WriteAll),
        each().prop_map(Operation::WriteAll),
        each().prop_map(Operation::ReadAll),
        (0..RANKS, 0..20_u64, 0..20_usize).prop_map(|(rank, at, count)| Operation::Write(rank, at, count)),
        (0..RANKS, 0..20_u64, 0..20_usize).prop_map(|(rank, at, count)| Operation::Read(rank, at, count)),
        counts().prop_map(Operation::WriteOrdered),
        counts().prop_map(Operation::ReadOrdered),
        (0..RANKS, 0..8_usize).prop_map(|(rank, count)| Operation::WriteShared(rank, count)),
        (0..200_u64).prop_map(Operation::SetLength),
    ];
    prop::collection::vec(operation, 1..14)
}

/// The file as a vector of bytes, with what a view means said byte by byte.
struct Model {
    bytes: Vec<u8>,
    views: [Described; RANKS],
    size: usize,
    shared: u64,
}

impl Described {
    fn whole() -> Described {
        Described { blocks: vec![(0, 1)], behind: 0, after: 0 }
    }

    /// The places that a tile selects, and the distance of two tiles.
    fn selected(&self) -> (Vec<usize>, usize) {
        let (mut place, mut selected) = (0, Vec::new());
        for (gap, count) in &self.blocks {
            selected.extend(place + gap..place + gap + count);
            place += gap + count;
        }
        (selected, place + self.behind)
    }

    fn view(&self) -> FileView {
        let (selected, stride) = self.selected();
        FileView::new(Layout::indexed(selected.into_iter().map(|place| (place, 1))), stride).after(self.after)
    }
}

impl Model {
    /// The places of the bytes of elements of a rank.
    fn places(&self, rank: usize, at: u64, count: usize) -> Vec<usize> {
        let view = &self.views[rank];
        let (selected, stride) = view.selected();
        let element = |number: usize| {
            let place = number / selected.len() * stride + selected[number % selected.len()];
            view.after as usize + place * self.size
        };
        let numbers = at as usize..at as usize + count;
        numbers
            .flat_map(|number| (0..self.size).map(move |byte| (number, byte)))
            .map(|(number, byte)| element(number) + byte)
            .collect()
    }

    fn write(&mut self, rank: usize, at: u64, bytes: &[u8]) {
        for (place, byte) in self.places(rank, at, bytes.len() / self.size).into_iter().zip(bytes) {
            if self.bytes.len() <= place {
                self.bytes.resize(place + 1, 0);
            }
            self.bytes[place] = *byte;
        }
    }

    fn read(&self, rank: usize, at: u64, count: usize) -> Vec<u8> {
        let places = self.places(rank, at, count);
        let mut read: Vec<u8> =
            places.into_iter().map_while(|place| self.bytes.get(place).copied()).collect();
        read.truncate(read.len() / self.size * self.size);
        read
    }
}

/// The bytes that a rank writes in a step.
fn written(step: usize, rank: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|byte| (step * 50 + rank * 17 + byte + 1) as u8).collect()
}

/// A file of elements of one byte or of two.
enum AnyFile {
    Narrow(SharedFile<u8>),
    Wide(SharedFile<[u8; 2]>),
}

/// Calls a method of either file, with elements for the bytes `$written` if there are any.
macro_rules! on {
    ($file:expr, $method:ident($at:expr, of $bytes:expr)) => {
        match $file {
            AnyFile::Narrow(file) => file.$method($at, $bytes).await,
            AnyFile::Wide(file) => file.$method($at, $bytes.as_chunks::<2>().0).await,
        }
    };
    ($file:expr, $method:ident(of $bytes:expr)) => {
        match $file {
            AnyFile::Narrow(file) => file.$method($bytes).await,
            AnyFile::Wide(file) => file.$method($bytes.as_chunks::<2>().0).await,
        }
    };
    ($file:expr, $method:ident($($argument:expr),*)) => {
        match $file {
            AnyFile::Narrow(file) => file.$method($($argument),*).await,
            AnyFile::Wide(file) => file.$method($($argument),*).await.map(|read| read.concat()),
        }
    };
}

impl AnyFile {
    async fn viewed(self, wide: bool, view: FileView) -> Result<AnyFile, Error> {
        Ok(match (self, wide) {
            (AnyFile::Narrow(file), false) => AnyFile::Narrow(file.view(view).await?),
            (AnyFile::Narrow(file), true) => AnyFile::Wide(file.view(view).await?),
            (AnyFile::Wide(file), false) => AnyFile::Narrow(file.view(view).await?),
            (AnyFile::Wide(file), true) => AnyFile::Wide(file.view(view).await?),
        })
    }

    async fn set_len(&self, length: u64) -> Result<(), Error> {
        match self {
            AnyFile::Narrow(file) => file.set_len(length).await,
            AnyFile::Wide(file) => file.set_len(length).await,
        }
    }
}

/// Performs the operations. Each rank has a model of its own, and compares what it reads.
async fn performed(world: Communicator, operations: &[Operation]) -> Result<(), Error> {
    let rank = world.rank();
    let hints = Info::new().with("cb_nodes", 2).with("cb_buffer_size", 30);
    let options = SharedFile::options().read(true).write(true).create(true);
    let mut file = AnyFile::Narrow(options.info(&hints).open(&world, "/file").await?);
    let mut model =
        Model { bytes: Vec::new(), views: [(); RANKS].map(|()| Described::whole()), size: 1, shared: 0 };
    for (step, operation) in operations.iter().enumerate() {
        let own = |model: &Model, rank, count: usize| written(step, rank, count * model.size);
        match operation {
            Operation::View(wide, views) => {
                file = file.viewed(*wide, views[rank].view()).await?;
                (model.views, model.size, model.shared) = (views.clone(), 1 + usize::from(*wide), 0);
            }
            Operation::WriteAll(each) => {
                on!(&file, write_at_all(each[rank].0, of & own(&model, rank, each[rank].1)))?;
                for (rank, (at, count)) in each.iter().enumerate() {
                    model.write(rank, *at, &own(&model, rank, *count));
                }
            }
            Operation::ReadAll(each) => {
                let (at, count) = each[rank];
                assert_eq!(on!(&file, read_at_all(at, count))?, model.read(rank, at, count), "step {step}");
            }
            Operation::Write(writer, at, count) => {
                if rank == *writer {
                    on!(&file, write_at(*at, of & own(&model, rank, *count)))?;
                }
                model.write(*writer, *at, &own(&model, *writer, *count));
            }
            Operation::Read(reader, at, count) => {
                if rank == *reader {
                    let read = on!(&file, read_at(*at, *count))?;
                    assert_eq!(read, model.read(rank, *at, *count), "step {step}");
                }
            }
            Operation::WriteOrdered(counts) => {
                on!(&file, write_ordered(of & own(&model, rank, counts[rank])))?;
                for (rank, count) in counts.iter().enumerate() {
                    model.write(rank, model.shared, &own(&model, rank, *count));
                    model.shared += *count as u64;
                }
            }
            Operation::ReadOrdered(counts) => {
                let at = model.shared + counts[..rank].iter().sum::<usize>() as u64;
                let read = on!(&file, read_ordered(counts[rank]))?;
                assert_eq!(read, model.read(rank, at, counts[rank]), "step {step}");
                model.shared += counts.iter().sum::<usize>() as u64;
            }
            Operation::WriteShared(writer, count) => {
                if rank == *writer {
                    on!(&file, write_shared(of & own(&model, rank, *count)))?;
                }
                model.write(*writer, model.shared, &own(&model, *writer, *count));
                model.shared += *count as u64;
            }
            Operation::SetLength(length) => {
                file.set_len(*length).await?;
                model.bytes.resize(*length as usize, 0);
            }
        }
        world.barrier().await?;
    }
    let AnyFile::Narrow(file) = file.viewed(false, FileView::whole()).await? else { unreachable!() };
    assert_eq!(file.read_at(0, 10_000).await?, model.bytes);
    file.close().await
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_file_is_as_its_bytes(operations in operations(), seed: u64) {
        // Reads and writes are cut short at random.
        let conditions = Conditions { disk_short: 200_000, ..Conditions::good() };
        let operations = Arc::new(operations);
        let world = World::new(seed).conditions(conditions);
        let ended = world.run(async move {
            let rank = move |world| {
                let operations = operations.clone();
                async move { performed(world, &operations).await }
            };
            run(RANKS, rank).await.map(drop).map_err(|failure| failure.to_string())
        });
        let ended = ended.map_err(|failed| TestCaseError::fail(failed.to_string()))?;
        prop_assert_eq!(ended.output, Ok(()));
    }
}

/// A piece goes over two windows of an aggregator, and the file ends in the first one.
#[test]
fn a_file_may_end_in_an_earlier_window_of_a_piece() {
    let view = |blocks: &[(usize, usize)], behind| Described { blocks: blocks.to_vec(), behind, after: 0 };
    let views = [view(&[(0, 1)], 1), view(&[(0, 2), (2, 1), (0, 3)], 0), view(&[(0, 3)], 2)];
    let operations = vec![
        Operation::SetLength(92),
        Operation::View(true, views),
        Operation::ReadOrdered([4, 4, 6]),
        Operation::WriteShared(0, 5),
        Operation::WriteShared(0, 3),
        Operation::ReadOrdered([2, 1, 5]),
    ];
    let operations = Arc::new(operations);
    let rank = move |world| {
        let operations = operations.clone();
        async move { performed(world, &operations).await }
    };
    World::new(1).run(run(RANKS, rank)).unwrap().output.unwrap();
}

/// Each rank writes elements between those of the others, until the disk is full.
async fn until_full(world: Communicator) -> Result<u64, Error> {
    let view = FileView::new(Layout::contiguous(1).shifted(world.rank()), world.size());
    let file = SharedFile::create(&world, "/elements").await?.view::<u64>(view).await?;
    for round in 0.. {
        let Err(error) = file.write_at_all(100 * round, &[round; 100]).await else { continue };
        assert_eq!(
            (error.class(), error.io_kind()),
            (ErrorClass::File, Some(ErrorKind::StorageFull)),
            "{error}"
        );
        // The rank that has written for all is named, but on that rank itself.
        assert!(error.to_string().contains("write /elements"), "{error}");
        assert_eq!(error.to_string().contains("on rank 0: write"), world.rank() != 0, "{error}");
        // What was written before is there.
        assert_eq!(file.read_at_all(0, 100).await?, [0; 100]);
        file.close().await?;
        return Ok(round);
    }
    unreachable!("the disk is full at some time")
}

#[test]
fn a_full_disk_is_an_error_on_every_rank() {
    for seed in 0..20 {
        let conditions = Conditions { disk_bytes: 20_000, ..Conditions::good() };
        let ended = World::new(seed).conditions(conditions).run(run(4, until_full)).unwrap();
        let rounds = ended.output.unwrap();
        // The disk counts whole pages.
        assert!(rounds.iter().all(|round| *round == rounds[0]) && (3..=6).contains(&rounds[0]), "{rounds:?}");
        assert_eq!(ended.descriptors, 0);
    }
}

/// Any call of the system may fail. Either all ranks have the error, or none has.
async fn or_fails(world: Communicator) -> Result<Vec<Option<ErrorClass>>, Error> {
    let view = FileView::new(Layout::contiguous(1).shifted(world.rank()), world.size());
    let file = match SharedFile::create(&world, "/elements").await {
        Ok(file) => file.view::<u64>(view).await?,
        Err(error) => return Ok(vec![Some(error.class())]),
    };
    let own: Vec<u64> = (0..50).map(|number| number + 1_000 * world.rank() as u64).collect();
    let mut ends = Vec::new();
    for round in 0..5 {
        let written = file.write_at_all(50 * round, &own).await;
        let read = file.read_at_all(50 * round, 50).await;
        if let (Ok(()), Ok(read)) = (&written, &read) {
            assert_eq!(*read, own);
        }
        ends.push(written.err().map(|error| error.class()));
        ends.push(read.err().map(|error| error.class()));
        ends.push(file.sync().await.err().map(|error| error.class()));
    }
    file.close().await?;
    Ok(ends)
}

#[test]
fn what_fails_on_one_rank_fails_on_all() {
    let mut failures = 0;
    for seed in 0..200 {
        let conditions = Conditions { disk_error: 50_000, disk_short: 100_000, ..Conditions::good() };
        let ended = World::new(seed).conditions(conditions).run(run(3, or_fails)).unwrap();
        let of_ranks = ended.output.unwrap();
        assert!(of_ranks.iter().all(|ends| *ends == of_ranks[0]), "seed {seed}: {of_ranks:?}");
        failures += of_ranks[0].iter().flatten().count();
    }
    assert!(failures > 50, "{failures} calls have failed");
}

/// Each rank writes every third pair of numbers, and all sync.
async fn synced(world: Communicator) -> Result<(), Error> {
    let view = FileView::new(Layout::contiguous(2).shifted(2 * world.rank()), 6);
    let file = SharedFile::create(&world, "/log").await?.view::<u16>(view).await?;
    file.write_at_all(0, &[world.rank() as u16; 1_000]).await?;
    file.sync().await?;
    if world.rank() == 0 {
        // Its name, too.
        let directory = selvedge_io::fs::File::open("/").await.unwrap();
        directory.sync_all().await.unwrap();
    }
    file.close().await
}

#[test]
fn what_was_synced_survives_a_crash() {
    let ended = World::new(1).run(run(3, synced)).unwrap();
    ended.output.unwrap();
    let expected: Vec<u8> = (0..500).flat_map(|_| [0, 0, 0, 0, 1, 0, 1, 0, 2, 0, 2, 0]).collect();
    for seed in 0..20 {
        assert_eq!(ended.disk.after_crash(seed).read("/log").unwrap(), expected);
    }
}
