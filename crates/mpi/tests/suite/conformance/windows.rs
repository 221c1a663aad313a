//! One-sided access: memory of a rank that others read and change.

use super::cases;
use selvedge_core::yield_now;
use selvedge_mpi::{ErrorClass, WindowLock, op};
use selvedge_scope::race;

cases! {
    /// Each rank writes its number into a place of each rank, and reads all of them.
    puts_and_gets(4, world) {
        let (rank, size) = (world.rank(), world.size());
        let window = world.window(vec![usize::MAX; size + rank], op::sum).await?;
        for target in 0..size {
            assert_eq!(window.len(target), size + target);
            window.put(target, rank, &[rank * 10 + target])?;
        }
        window.fence().await?;
        let own = window.read(|own| own[..size].to_vec());
        assert_eq!(own, (0..size).map(|from| from * 10 + rank).collect::<Vec<_>>());
        for target in 0..size {
            let all = window.get(target, 0, size).await?;
            assert_eq!(all, (0..size).map(|from| from * 10 + target).collect::<Vec<_>>());
        }
        window.fence().await?;
        window.write(|own| own.fill(rank));
        window.fence().await?;
        assert_eq!(window.get((rank + 1) % size, 1, 2).await?, [(rank + 1) % size; 2]);
        window.free().await?;
    }

    /// The same places of one rank, by all ranks.
    sums_in_a_window(3, world) {
        let window = world.window(vec![0_u64; 5], op::sum).await?;
        for round in 0..20_u64 {
            window.accumulate(1, 2, &[round, world.rank() as u64, 1])?;
        }
        window.flush(1).await?;
        // This rank's own are there now.
        assert!(window.get(1, 4, 1).await?[0] >= 20);
        window.fence().await?;
        assert_eq!(window.get(1, 0, 5).await?, [0, 0, 3 * 190, 20 + 40, 60]);
        window.free().await?;
    }

    /// Each rank draws numbers from a counter, and no number is drawn twice.
    tickets(4, world) {
        let window = world.window(vec![100_u32], op::sum).await?;
        let mut drawn = Vec::new();
        for _ in 0..10 {
            drawn.push(window.fetch_and_op(2, 0, 1).await?);
            yield_now().await;
        }
        assert!(drawn.is_sorted());
        let mut all = world.allgather(drawn).await?.concat();
        all.sort_unstable();
        assert_eq!(all, (100..140).collect::<Vec<_>>());
        window.free().await?;
    }

    /// One rank wins, and the others see its number.
    an_election(4, world) {
        let window = world.window(vec![-1_i64], op::max).await?;
        let mine = world.rank() as i64;
        let before = window.compare_and_swap(3, 0, -1, mine).await?;
        window.fence().await?;
        let leader = window.get(3, 0, 1).await?[0];
        assert_eq!(before == -1, leader == mine);
        assert!(before == -1 || before == leader);
        let winners = world.allreduce(u32::from(before == -1), op::sum).await?;
        assert_eq!(winners, 1);
        window.free().await?;
    }

    /// What a rank does under the lock is done in one piece.
    locks_of_a_window(4, world) {
        let window = world.window(vec![0_u32; 2], op::sum).await?;
        for round in 0..5 {
            let locked = window.lock(0, WindowLock::Exclusive).await?;
            let pair = window.get(0, 0, 2).await?;
            assert_eq!(pair[0], pair[1]);
            window.put(0, 0, &[pair[0] + 1])?;
            yield_now().await;
            window.put(0, 1, &[pair[1] + 1])?;
            match round % 2 {
                0 => locked.unlock().await?,
                _ => drop(locked),
            }
            let shared = window.lock(0, WindowLock::Shared).await?;
            let pair = window.get(0, 0, 2).await?;
            assert_eq!(pair[0], pair[1]);
            shared.unlock().await?;
        }
        // Two ranks have it at once.
        window.fence().await?;
        let shared = window.lock(0, WindowLock::Shared).await?;
        world.barrier().await?;
        shared.unlock().await?;
        window.fence().await?;
        assert_eq!(window.get(0, 0, 2).await?, [20, 20]);
        window.free().await?;
    }

    /// A rank gives up waiting for a lock, and the next one gets it.
    a_lock_is_given_up(3, world) {
        let window = world.window(vec![0_u8], op::bxor).await?;
        if world.rank() == 0 {
            let locked = window.lock(1, WindowLock::Exclusive).await?;
            world.barrier().await?;
            world.barrier().await?;
            locked.unlock().await?;
        } else {
            world.barrier().await?;
            let wait = async {
                for _ in 0..world.rank() {
                    yield_now().await;
                }
                None
            };
            let lock = async { Some(window.lock(1, WindowLock::Exclusive).await) };
            assert!(race((lock, wait)).await.is_none(), "rank 0 has the lock");
            world.barrier().await?;
        }
        let locked = window.lock(1, WindowLock::Exclusive).await?;
        window.accumulate(1, 0, &[1 << world.rank()])?;
        drop(locked);
        window.fence().await?;
        assert_eq!(window.get(1, 0, 1).await?, [7]);
        window.free().await?;
    }

    windows_with_errors(2, world) {
        let window = world.window(vec![0_u16; 3], op::sum).await?;
        let error = window.put(2, 0, &[1]).unwrap_err();
        assert_eq!((error.class(), error.call()), (ErrorClass::Rank, "put"));
        assert!(error.to_string().contains("windows.rs"), "{error}");
        let error = window.accumulate(1, 2, &[1, 2]).unwrap_err();
        assert_eq!((error.class(), error.call()), (ErrorClass::Buffer, "accumulate"));
        assert!(error.to_string().ends_with("2 elements from 2 on: rank 1 has 3"), "{error}");
        let error = window.get(0, usize::MAX, 2).await.unwrap_err();
        assert_eq!((error.class(), error.call()), (ErrorClass::Buffer, "get"));
        let error = window.lock(2, WindowLock::Shared).await.unwrap_err();
        assert_eq!((error.class(), error.call()), (ErrorClass::Rank, "lock"));
        window.free().await?;
        // A window that is dropped serves the other ranks.
        let dropped = world.window(vec![world.rank()], op::sum).await?;
        if world.rank() == 1 {
            drop(dropped);
        } else {
            assert_eq!(dropped.get(1, 0, 1).await?, [1]);
        }
        world.barrier().await?;
    }
}
