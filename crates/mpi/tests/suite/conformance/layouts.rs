//! Messages of elements at places of a layout.

use super::cases;
use selvedge_mpi::{ErrorClass, Layout, Parts};

cases! {
    /// Either side has a layout, or both, or none.
    layouts_on_either_side(2, world) {
        let column = |number| Layout::vector(3, 1, 4).shifted(number);
        let field: Vec<i64> = (0..12).collect();
        if world.rank() == 0 {
            world.send_layout(1, 0, &field, &column(1)).await?;
            world.send_layout(1, 1, &field, &column(2)).await?;
            world.send_slice(1, 2, &[7_i64, 8, 9]).await?;
            let mut changed = field.clone();
            let going = world.isend_layout(1, 3, &changed, &Layout::subarray([3, 4], [1..3, 2..4]));
            changed.fill(0);
            going.await?;
            let mut sends = world.send_init(1, 4, Vec::new());
            for shift in 0..2 {
                column(shift).pack_into(&field, sends.own_mut());
                sends.start().await?;
            }
        } else {
            let mut came = vec![-1_i64; 12];
            let status = world.recv_layout(0, 0, &mut came, &column(3)).await?;
            assert_eq!(status.count::<i64>(), Some(3));
            assert_eq!(came, [-1, -1, -1, 1, -1, -1, -1, 5, -1, -1, -1, 9]);
            assert_eq!(world.recv_vec::<i64>(0, 1).await?.0, [2, 6, 10]);
            world.recv_layout(0, 2, &mut came, &column(0)).await?;
            assert_eq!(column(0).pack(&came), [7, 8, 9]);
            let mut block = [0_i64; 4];
            world.recv_into(0, 3, &mut block).await?;
            assert_eq!(block, [6, 7, 10, 11]);
            let corners = Layout::indexed([(11, 1), (0, 1), (3, 1)]);
            world.recv_layout(0, 4, &mut came, &corners).await?;
            assert_eq!((came[11], came[0], came[3]), (0, 4, 8));
            assert_eq!(world.recv_vec::<i64>(0, 4).await?.0, [1, 5, 9]);
        }
    }

    /// Fewer elements than places fill the first places.
    a_short_message_in_a_layout(2, world) {
        if world.rank() == 0 {
            world.send_slice(1, (), &[1_u16, 2, 3]).await?;
            world.send_slice::<u16>(1, (), &[]).await?;
        } else {
            let pairs = Layout::vector(3, 2, 3);
            let mut came = [9_u16; 8];
            let status = world.recv_layout(0, (), &mut came, &pairs).await?;
            assert_eq!((status.count::<u16>(), came), (Some(3), [1, 2, 9, 3, 9, 9, 9, 9]));
            world.recv_layout(0, (), &mut came, &pairs).await?;
            assert_eq!(came, [1, 2, 9, 3, 9, 9, 9, 9]);
        }
    }

    /// Four ranks have a block each of a field in circles, and exchange rows, then columns with the
    /// corners.
    borders_of_a_field(4, world) {
        let grid = world.cartesian([2, 2], [true, true]).await?.expect("each rank has a place");
        let [row, column] = grid.coordinates(world.rank());
        let mut field = vec![0_u32; 6 * 5];
        let whole = |row: usize, column: usize| ((row + 8) % 8 * 6 + (column + 6) % 6) as u32;
        for (y, x) in (1..5).flat_map(|y| (1..4).map(move |x| (y, x))) {
            field[y * 5 + x] = whole(4 * row + y - 1, 3 * column + x - 1);
        }
        let rows = |y: usize| Layout::subarray([6, 5], [y..y + 1, 1..4]);
        let columns = |x: usize| Layout::subarray([6, 5], [0..6, x..x + 1]);
        let ranks = grid.communicator();
        let (above, below) = grid.shift(0, 1);
        let (left, right) = grid.shift(1, 1);
        ranks.sendrecv_layout(&mut field, below, 0, &rows(4), above, 0, &rows(0)).await?;
        ranks.sendrecv_layout(&mut field, above, 1, &rows(1), below, 1, &rows(5)).await?;
        ranks.sendrecv_layout(&mut field, right, 2, &columns(3), left, 2, &columns(0)).await?;
        ranks.sendrecv_layout(&mut field, left, 3, &columns(1), right, 3, &columns(4)).await?;
        for (y, x) in (0..6).flat_map(|y| (0..5).map(move |x| (y, x))) {
            assert_eq!(field[y * 5 + x], whole(4 * row + y + 7, 3 * column + x + 5), "at {y}, {x}");
        }
    }

    /// A matrix of rows becomes one of columns, by a layout for each rank.
    a_matrix_is_transposed(3, world) {
        let rank = world.rank();
        let rows: Vec<u8> = (0..12).map(|place| (rank * 12 + place) as u8).collect();
        // Each rank has two rows of six, and gets two columns.
        let column = |number: usize| Layout::vector(2, 1, 6).shifted(number);
        let sent: Vec<_> = (0..3).map(|to| Layout::together([column(2 * to), column(2 * to + 1)])).collect();
        let came = world.alltoall_parts(Parts::pack(&rows, &sent)).await?;
        let places: Vec<_> = (0..3).map(|from| Layout::vector(2, 2, 6).shifted(2 * from)).collect();
        let mut columns = [0; 12];
        came.unpack(&places, &mut columns);
        let expected = |place: usize| (place % 6 * 6 + 2 * rank + place / 6) as u8;
        assert_eq!(columns.to_vec(), (0..12).map(expected).collect::<Vec<_>>());
    }

    layouts_with_errors(2, world) {
        let pair = Layout::vector(2, 1, 3);
        let mut room = [0_u8; 4];
        if world.rank() == 0 {
            let error = world.send_layout(1, (), &[1_u8, 2, 3], &pair).await.unwrap_err();
            assert_eq!((error.class(), error.call()), (ErrorClass::Buffer, "send_layout"));
            assert!(error.to_string().ends_with("the layout ends at 4, and the slice at 3"), "{error}");
            world.send_slice(1, (), &[1_u8, 2, 3]).await?;
            world.send_slice(1, (), &[4_u8, 5]).await?;
            world.send_slice(1, (), &[4_u32]).await?;
            world.send_slice(1, (), &[6_u8]).await?;
        } else {
            // No message is taken.
            let error = world.recv_layout(0, (), &mut room[..3], &pair).await.unwrap_err();
            assert_eq!((error.class(), error.call()), (ErrorClass::Buffer, "recv_layout"));
            let error = world.recv_layout(0, (), &mut room, &pair).await.unwrap_err();
            assert_eq!((error.class(), room), (ErrorClass::Truncate, [0; 4]));
            let told = "has 3 elements, and there is room for 2";
            assert!(error.to_string().ends_with(told), "{error}");
            world.recv_layout(0, (), &mut room, &pair).await?;
            assert_eq!(room, [4, 0, 0, 5]);
            // Between processes it is four elements of a byte.
            let error = world.recv_layout(0, (), &mut room, &pair).await.unwrap_err();
            assert!([ErrorClass::Type, ErrorClass::Truncate].contains(&error.class()), "{error}");
            world.recv_layout(0, (), &mut room, &pair).await?;
            assert_eq!(room, [6, 0, 0, 5]);
        }
    }
}
