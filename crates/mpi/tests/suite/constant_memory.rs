//! Memory stays constant, however many messages there are.
//!
//! `cargo xtask soak` gives the number in the variable [`MESSAGES`], and runs this test alone.

use crate::persistent_allocations::live_bytes;
use selvedge_core::round_robin;
use selvedge_mpi::{ANY, Communicator, Error, op, run};

/// The variable with the number of messages.
const MESSAGES: &str = "MPI_MESSAGES";

/// The number without the variable.
const FEW: usize = 30_000;

/// What a round of three ranks sends, without its barriers and reductions.
const OF_A_ROUND: usize = 3 * 6;

/// How much more may live at the end than after the first tenth: the queues grow with the messages
/// that wait, and not with all that there were.
const MORE_LIVE: isize = 32 << 10;

/// How much more memory the process may have at the end.
const MORE_RESIDENT: usize = 4 << 20;

/// The memory of this process that the system has given a page, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("the kernel tells it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the kernel tells it");
    let kibibytes = line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number");
    kibibytes << 10
}

/// Each kind of message in each round, and receives that are given up. Gives what lives after the
/// first tenth and at the end.
async fn rounds(world: Communicator, count: usize) -> Result<[(isize, usize); 2], Error> {
    let (rank, size) = (world.rank(), world.size());
    let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
    let mut seen = [(0, 0); 2];
    for round in 0..count {
        if round == count / 10 {
            world.barrier().await?;
            seen[0] = (live_bytes(), resident());
        }
        drop(world.irecv::<u8>(ANY, 99));
        // Tags that are new in each round, in the tables of the matching.
        let tag = 100 + round as u32;
        let coming = world.irecv::<String>(previous, tag);
        world.send(next, tag, format!("{round}")).await?;
        assert_eq!(coming.await?.0, format!("{round}"));
        world.send(next, 1, vec![round as f64; 40]).await?;
        world.send_slice(next, 2, &[round as u32; 3]).await?;
        world.send_vec(next, 3, vec![round as u64; if round % 50 == 0 { 10_000 } else { 30 }]).await?;
        let going = world.isend(next, 4, (round, Some('x')));
        let meeting = world.issend(next, 5, ());
        assert_eq!(world.recv::<Vec<f64>>(ANY, 1).await?.0.len(), 40);
        let mut room = [0_u32; 3];
        world.recv_into(previous, 2, &mut room).await?;
        world.recv_vec::<u64>(previous, 3).await?;
        assert_eq!(world.mprobe(ANY, 4).await?.recv::<(usize, Option<char>)>()?.0, round);
        world.recv::<()>(previous, 5).await?;
        going.await?;
        meeting.await?;
        if round % 100 == 0 {
            let other = world.dup().await?;
            assert_eq!(other.iallreduce(1, op::sum).await?, size);
        }
    }
    world.barrier().await?;
    seen[1] = (live_bytes(), resident());
    world.barrier().await?;
    Ok(seen)
}

#[test]
fn memory_is_constant_over_many_messages() {
    let named = std::env::var(MESSAGES).ok();
    let messages = named.as_ref().map_or(FEW, |number| number.parse().expect("a number of messages"));
    let count = messages.div_ceil(OF_A_ROUND);
    let seen = round_robin(run(3, move |world| rounds(world, count))).expect("no deadlock");
    for [(live, pages), (live_at_the_end, pages_at_the_end)] in seen.expect("no rank fails") {
        assert!(live_at_the_end - live < MORE_LIVE, "{live} bytes lived, and then {live_at_the_end}");
        // Beside other tests the process has their memory too.
        if named.is_some() {
            let more = pages_at_the_end.saturating_sub(pages);
            assert!(more < MORE_RESIDENT, "the process had {pages} bytes, and then {pages_at_the_end}");
            println!("{messages} messages: {live} and {live_at_the_end} bytes live, {more} bytes more");
        }
    }
}
