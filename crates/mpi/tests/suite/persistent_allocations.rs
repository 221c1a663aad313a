//! Starting a persistent operation allocates nothing, between ranks of one process, and nor does a
//! message of few elements.

use selvedge_mpi::{Communicator, Error, Parts, op, run};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts the allocations of each OS thread, and its bytes that live.
struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
    /// The allocations of [`LONG`] bytes.
    static LONG_COUNT: Cell<u64> = const { Cell::new(0) };
    /// The bytes that the OS thread has allocated, without the bytes that it has freed.
    static LIVE: Cell<isize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator unchanged; counting touches a
// constant-initialised cell of the calling OS thread, which allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        LONG_COUNT.set(LONG_COUNT.get() + u64::from(layout.size() >= LONG));
        LIVE.set(LIVE.get() + layout.size() as isize);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get() - layout.size() as isize);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The bytes that this OS thread has allocated and not freed.
pub(crate) fn live_bytes() -> isize {
    LIVE.get()
}

/// The length of a long message in bytes.
const LONG: usize = 60_000;

/// The rounds in which the operations get their memory, and all rounds.
const FIRST: u64 = 30;
const ALL: u64 = 230;

/// Messages in a circle. Gives the number of allocations of all ranks after the first rounds: they
/// run on one OS thread, and a barrier, which is persistent too, keeps them in step.
async fn messages(world: Communicator) -> Result<u64, Error> {
    let (rank, size) = (world.rank(), world.size());
    let mut sends = world.send_init((rank + 1) % size, (), vec![0_u64; 100]);
    let mut receives = world.recv_init::<u64>((rank + size - 1) % size, ());
    let mut barrier = world.barrier_init();
    let mut before = 0;
    for round in 0..ALL {
        if round == FIRST {
            before = COUNT.get();
        }
        sends.own_mut()[0] = round;
        let (going, coming) = (sends.start(), receives.start());
        going.await?;
        assert_eq!(coming.await?.0[0], round);
        barrier.start().await?;
    }
    let count = COUNT.get() - before;
    // No rank ends before all have counted.
    barrier.start().await?;
    Ok(count)
}

/// Each collective on elements once in a round, and all at the same time.
async fn collectives(world: Communicator) -> Result<u64, Error> {
    let (rank, size) = (world.rank(), world.size());
    let own = vec![rank as u64; 100];
    let parts = || Parts::even(vec![rank as u64; 100], size);
    let mut bcast = world.bcast_init(1, own.clone());
    let mut gather = world.gather_init(1, own.clone());
    let mut scatter = world.scatter_init(1, parts());
    let mut allgather = world.allgather_init(own.clone());
    let mut alltoall = world.alltoall_init(parts());
    let mut reduce = world.reduce_init(1, own.clone(), op::sum);
    let mut allreduce = world.allreduce_init(own.clone(), op::sum);
    let mut reduce_scatter = world.reduce_scatter_init(parts(), op::sum);
    let mut scan = world.scan_init(own.clone(), op::sum);
    let mut exscan = world.exscan_init(own, op::sum);
    let mut barrier = world.barrier_init();
    let mut before = 0;
    for round in 0..ALL {
        if round == FIRST {
            before = COUNT.get();
        }
        let of_the_root = (bcast.start(), gather.start(), scatter.start(), reduce.start());
        let of_all = (allgather.start(), alltoall.start(), allreduce.start(), reduce_scatter.start());
        let of_a_row = (scan.start(), exscan.start());
        assert_eq!(of_the_root.0.await?[99], 1);
        assert_eq!(of_the_root.1.await?.as_ref().map_or(1, |all| all[1][0]), 1);
        assert_eq!(of_the_root.2.await?[0], 1);
        assert_eq!(of_the_root.3.await?.as_ref().map_or(3, |sums| sums[99]), 3);
        assert_eq!(of_all.0.await?[2][99], 2);
        assert_eq!(of_all.1.await?[2][0], 2);
        assert_eq!(of_all.2.await?[0], 3);
        assert_eq!(of_all.3.await?[0], 3);
        assert_eq!(of_a_row.0.await?[0], [0, 1, 3][rank]);
        assert_eq!(of_a_row.1.await?.as_ref().map_or(0, |sums| sums[0]), [0, 0, 1][rank]);
        barrier.start().await?;
    }
    let count = COUNT.get() - before;
    // No rank ends before all have counted.
    barrier.start().await?;
    Ok(count)
}

#[test]
fn of_messages() {
    let counts = selvedge_core::round_robin(run(3, messages)).unwrap().unwrap();
    assert_eq!(counts, [0; 3]);
}

#[test]
fn of_collectives() {
    let counts = selvedge_core::round_robin(run(3, collectives)).unwrap().unwrap();
    assert_eq!(counts, [0; 3]);
}

/// Elements that lie in the message, to and fro between ranks that wait for one another.
#[test]
fn of_few_elements() {
    let program = async |world: Communicator| {
        let (rank, other) = (world.rank(), 1 - world.rank());
        let (mut before, mut row) = (0, [0_u64; 3]);
        for round in 0..ALL {
            if round == FIRST {
                before = COUNT.get();
            }
            if rank == 0 {
                world.send_slice(other, (), &[round, 7, 8]).await?;
            }
            world.recv_into(other, (), &mut row).await?;
            assert_eq!(row, [round, 7, 8]);
            if rank == 1 {
                world.send_slice(other, (), &row).await?;
            }
        }
        Ok::<_, Error>(COUNT.get() - before)
    };
    let counts = selvedge_core::round_robin(run(2, program)).unwrap().unwrap();
    // The end of the one rank lies within the count of the other.
    assert_eq!(counts.into_iter().min(), Some(0));
}

/// Long slices from a rank that sends one after the other: each has the memory of one that was
/// received, because the receiver has its turn before there are many.
#[test]
fn of_long_slices() {
    let program = async |world: Communicator| {
        // No other test has messages of such elements, so their memory is of this test alone.
        let mut row = vec![[7_u16; 3]; LONG / 6];
        let before = LONG_COUNT.get();
        for _ in 0..1000 {
            match world.rank() {
                0 => world.send_slice(1, (), &row).await?,
                _ => drop(world.recv_into(0, (), &mut row).await?),
            }
        }
        Ok::<_, Error>(LONG_COUNT.get() - before)
    };
    let counts = selvedge_core::round_robin(run(2, program)).unwrap().unwrap();
    assert!(counts.iter().all(|&count| count <= 8), "{counts:?}");
}

/// What is counted is counted: the same messages by calls that are not persistent.
#[test]
fn of_other_messages() {
    let program = async |world: Communicator| {
        let before = COUNT.get();
        world.send_slice(world.rank(), (), &[1_u8; 100]).await?;
        world.recv_vec::<u8>(world.rank(), ()).await?;
        Ok::<_, Error>(COUNT.get() - before)
    };
    let counts = selvedge_core::round_robin(run(1, program)).unwrap().unwrap();
    assert!(counts[0] >= 2, "{counts:?}");
}
