//! Datagrams over both families.

use crate::{address, two_stacks};
use selvedge_sim::simulate;
use selvedge_stack::{UdpSocket, Weather};
use std::io::ErrorKind;

#[test]
fn datagrams_keep_their_borders() {
    simulate(0..10, || async {
        for (left, right) in [("10.0.0.1:0", "10.0.0.2:53"), ("[fd00::1]:0", "[::]:53")] {
            let (asking, answering) = two_stacks(1, Weather::default());
            let to = address(&right.replace("[::]", "[fd00::2]"));
            let (left, right) = (
                UdpSocket::bind(&asking, address(left)).unwrap(),
                UdpSocket::bind(&answering, address(right)).unwrap(),
            );
            left.send_to(b"one", to).await.unwrap();
            left.send_to(&[2; 1452], to).await.unwrap();
            let mut buffer = [0; 2000];
            let (length, from) = right.recv_from(&mut buffer).await.unwrap();
            assert_eq!((&buffer[..length], from), (&b"one"[..], left.local_addr().unwrap()));
            assert_eq!(right.recv_from(&mut buffer).await.unwrap().0, 1452);
            right.send_to(b"back", from).await.unwrap();
            assert_eq!(left.recv_from(&mut buffer).await.unwrap(), (4, to));
            let error = left.send_to(&[0; 1453], to).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
    });
}
