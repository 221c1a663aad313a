//! New communicators, and groups.

use super::cases;
use selvedge_mpi::{ANY, ComparisonResult, Group, op};
use std::sync::Arc;

cases! {
    split_into_rows_and_columns(6, world) {
        let (row, column) = (world.rank() / 3, world.rank() % 3);
        let in_row = world.split(row as u32, 0).await?.expect("each rank has a color");
        let in_column = world.split(column as u32, 0).await?.expect("each rank has a color");
        assert_eq!((in_row.rank(), in_row.size()), (column, 3));
        assert_eq!((in_column.rank(), in_column.size()), (row, 2));
        assert_eq!(in_row.allreduce(world.rank(), op::sum).await?, [3, 12][row]);
        assert_eq!(in_column.allreduce(world.rank(), op::sum).await?, 3 + 2 * column);
    }

    split_by_keys(4, world) {
        let backwards = world.split(0, -(world.rank() as i64)).await?.expect("each rank has a color");
        assert_eq!(backwards.rank(), 3 - world.rank());
        assert_eq!(backwards.bcast(0, || world.rank()).await?, 3);
        assert_eq!(backwards.compare(&world), ComparisonResult::Similar);
    }

    a_rank_without_a_color(3, world) {
        let color = (world.rank() != 1).then_some(7);
        let made = world.split(color, 0).await?;
        assert_eq!(made.as_ref().map(|made| made.size()), color.map(|_| 2));
        if let Some(made) = made {
            assert_eq!(made.allgather(world.rank()).await?, [0, 2]);
            assert_eq!(made.compare(&world), ComparisonResult::Unequal);
        }
    }

    a_dup_has_messages_of_its_own(2, world) {
        let library = world.dup().await?;
        assert_eq!(library.compare(&world), ComparisonResult::Congruent);
        assert_eq!(world.compare(&world.clone()), ComparisonResult::Identical);
        if world.rank() == 0 {
            world.send(1, 1, "program".to_string()).await?;
            library.send(1, 1, "library".to_string()).await?;
        } else {
            assert_eq!(library.recv::<String>(ANY, ANY).await?.0, "library");
            assert!(library.iprobe(ANY, ANY)?.is_none());
            assert_eq!(world.recv::<String>(ANY, ANY).await?.0, "program");
        }
    }

    /// The last handle of a communicator drops what is kept with it.
    a_kept_value_lives_as_long_as_its_communicator(1, world) {
        let library = world.dup().await?;
        let kept = Arc::downgrade(&library.attribute(|| "a table".to_string()));
        let clone = library.clone();
        drop(library);
        assert_eq!(kept.upgrade().as_deref(), Some(&*clone.attribute(String::new)));
        drop(clone);
        assert_eq!(kept.upgrade(), None);
    }

    create_of_groups(5, world) {
        let all = world.group();
        let (odd, even) = (all.include(&[3, 1]), all.exclude(&[1, 3]));
        let mine = if world.rank() % 2 == 1 { &odd } else { &even };
        let made = world.create(mine).await?.expect("each rank is in its group");
        assert_eq!(made.allgather(world.rank()).await?, if world.rank() % 2 == 1 { vec![3, 1] } else { vec![0, 2, 4] });
        assert_eq!(made.group(), mine);
        // The ranks outside the group get none.
        assert_eq!(world.create(&odd).await?.is_some(), world.rank() % 2 == 1);
        assert!(world.create(&Group::empty()).await?.is_none());
    }

    communicators_of_communicators(8, world) {
        let half = world.split(world.rank() as u32 / 4, 0).await?.expect("each rank has a color");
        let quarter = half.split(half.rank() as u32 / 2, 0).await?.expect("each rank has a color");
        let copy = quarter.dup().await?;
        assert_eq!((copy.rank(), copy.size()), (world.rank() % 2, 2));
        let other = 1 - copy.rank();
        copy.send(other, (), world.rank()).await?;
        let (theirs, status) = copy.recv::<usize>(ANY, ()).await?;
        assert_eq!((theirs, status.source), (world.rank() ^ 1, other));
        assert_eq!(copy.group().translate(world.group(), world.rank()), Some(copy.rank()));
    }

    groups(4, world) {
        let all = world.group();
        let (front, back) = (all.include(&[0, 1, 2]), all.include(&[3, 2]));
        assert_eq!(front.union(&back), all.clone());
        assert_eq!(front.intersection(&back), all.include(&[2]));
        assert_eq!(front.difference(&back), all.include(&[0, 1]));
        assert_eq!((front.size(), Group::empty().size()), (3, 0));
        assert_eq!(back.translate(all, 3), Some(0));
        assert_eq!(front.translate(all, 3), None);
        let turned = all.include(&[2, 1, 0]);
        assert_eq!(front.compare(&turned), ComparisonResult::Similar);
        assert_eq!(front.compare(&front.clone()), ComparisonResult::Identical);
        assert_eq!(front.compare(&back), ComparisonResult::Unequal);
    }
}
