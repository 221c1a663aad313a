//! Sends, receives and requests of the fast interface.

use super::cases;
use selvedge_mpi::{ANY, ErrorClass, Tag};

cases! {
    slices(2, world) {
        if world.rank() == 0 {
            world.send_slice(1, 3, &[1.5, -0.0, f64::INFINITY]).await?;
            world.ssend_slice(1, 4, &[7_u8, 8]).await?;
        } else {
            let mut reals = [9.0; 5];
            let status = world.recv_into(0, 3, &mut reals).await?;
            assert_eq!((status.count::<f64>(), status.bytes, status.tag), (Some(3), 24, Tag(3)));
            assert_eq!(reals, [1.5, 0.0, f64::INFINITY, 9.0, 9.0]);
            assert!(reals[1].is_sign_negative());
            let (bytes, status) = world.recv_vec::<u8>(0, ANY).await?;
            assert_eq!((bytes, status.tag), (vec![7, 8], Tag(4)));
        }
    }

    every_scalar(2, world) {
        macro_rules! exchange {
            ($($type:ty),*) => {$(
                let extremes = [<$type>::MIN, <$type>::MAX, 1 as $type];
                let mut came = [0 as $type; 3];
                let other = 1 - world.rank();
                world.sendrecv_into(other, (), &extremes, other, (), &mut came).await?;
                assert_eq!(came, extremes);
            )*};
        }
        exchange!(i8, i16, i32, i64, i128, u8, u16, u32, u64, u128, isize, usize, f32, f64);
        let other = 1 - world.rank();
        world.send_slice(other, (), &[[1_u16, 2], [3, 4]]).await?;
        assert_eq!(world.recv_vec::<[u16; 2]>(other, ()).await?.0, [[1, 2], [3, 4]]);
    }

    a_vector_of_many_megabytes(2, world) {
        let big: Vec<u64> = (0..1 << 20).collect();
        if world.rank() == 0 {
            world.send_vec(1, (), big).await?;
        } else {
            assert_eq!(world.recv_vec::<u64>(0, ()).await?.0, big);
        }
    }

    buffers_come_back(2, world) {
        let other = 1 - world.rank();
        let coming = world.irecv_into(other, (), vec![0_u32; 4]);
        let going = world.isend_vec(other, (), vec![world.rank() as u32; 3]);
        assert_eq!(going.await?, [world.rank() as u32; 3]);
        let (came, status) = coming.await?;
        let theirs = other as u32;
        assert_eq!((came, status.count::<u32>()), (vec![theirs, theirs, theirs, 0], Some(3)));
    }

    nothing_is_a_message(2, world) {
        if world.rank() == 0 {
            world.send_slice::<f64>(1, (), &[]).await?;
        } else {
            let mut room = [1.0];
            let status = world.recv_into(0, (), &mut room).await?;
            assert_eq!((status.count::<f64>(), room), (Some(0), [1.0]));
        }
    }

    /// The error names both numbers, the slice stays, and the message is gone.
    too_little_room(2, world) {
        if world.rank() == 0 {
            world.send_slice(1, 8, &[1, 2, 3]).await?;
            world.send_slice(1, 8, &[4, 5]).await?;
        } else {
            let mut room = [0; 2];
            let error = world.recv_into(0, 8, &mut room).await.unwrap_err();
            assert_eq!((error.class(), error.call(), error.rank()), (ErrorClass::Truncate, "recv_into", 1));
            let text = error.to_string();
            let told = "the message from rank 0 with tag 8 has 3 elements, and there is room for 2";
            assert!(text.ends_with(told), "{text}");
            assert_eq!(room, [0, 0]);
            world.recv_into(0, 8, &mut room).await?;
            assert_eq!(room, [4, 5]);
        }
    }

    /// Values and elements between the same ranks, by turns.
    both_interfaces(2, world) {
        let other = 1 - world.rank();
        for round in 0..10_u32 {
            world.send(other, (), format!("{round}")).await?;
            world.send_slice(other, (), &[round; 3]).await?;
            assert_eq!(world.recv::<String>(other, ()).await?.0, format!("{round}"));
            assert_eq!(world.recv_vec::<u32>(other, ()).await?.0, [round; 3]);
        }
    }
}
