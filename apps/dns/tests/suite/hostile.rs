//! Messages that are broken: no byte of them ends a thread.

use crate::common::*;
use domain::base::{Message, Rtype};
use proptest::collection::vec;
use proptest::prelude::*;
use selvedge::net::UdpSocket;
use selvedge_dns::wire::answer::compose;
use selvedge_dns::wire::asked::{self, Unanswerable};
use selvedge_dns::wire::heard;

/// A query and an answer with records of several kinds, to be broken.
fn messages() -> [Vec<u8>; 2] {
    let query = heard::question(7, &key("alias.example.org"), Rtype::A, true, true);
    let asked = asked::read(&query).unwrap();
    let mut whole = answer(vec![cname("alias.example.org", "www.example.org"), a("www.example.org", 1)]);
    whole.authority = vec![soa("example.org")];
    let whole = compose(&asked, &whole, 1232);
    [query, whole]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    #[test]
    fn a_broken_message_is_read_or_refused(
        which in 0..2_usize,
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        length in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let mut message = messages()[which].clone();
        for (place, byte) in changes {
            let place = place.index(message.len());
            message[place] = byte;
        }
        if cut {
            message.truncate(length.index(message.len()));
        }
        // An answer is a header at least, with the id of the query, and marked as an answer.
        let reply = match asked::read(&message) {
            Ok(asked) => Some(compose(&asked, &answer(vec![a("www.example.org", 1)]), asked.udp_max())),
            Err(Unanswerable::Refused(reply)) => Some(reply),
            Err(Unanswerable::Silent) => None,
        };
        if let Some(reply) = reply {
            let header = Message::from_slice(&reply).unwrap().header();
            prop_assert!(header.qr() && reply[..2] == message[..2] && reply.len() <= 1232);
        }
        let _ = heard::read(&message, 7, &key("alias.example.org"), Rtype::A);
    }

    #[test]
    fn bytes_without_sense_are_read_or_refused(message in vec(any::<u8>(), 0..100)) {
        let _ = asked::read(&message);
        let _ = heard::read(&message, 7, &key("example.org"), Rtype::A);
    }
}

#[selvedge::test]
async fn the_server_goes_on() {
    let server = serve(settings(zones(&[("example.org", "www A 192.0.2.1\n")]), None), "127.0.0.1:0");
    let socket = UdpSocket::bind(address("127.0.0.1:0")).unwrap();
    let query = heard::question(7, &key("www.example.org"), Rtype::A, true, true);
    for place in 0..query.len() {
        // Few datagrams at once, because the system drops them when the server's socket is full.
        for byte in [0, 0x3f, 0x80, 0xc0, 0xff] {
            let mut broken = query.clone();
            broken[place] = byte;
            socket.send_to(&broken, server).await.unwrap();
            socket.send_to(&broken[..place], server).await.unwrap();
        }
        let heard = ask(server, "www.example.org", Rtype::A).await.unwrap();
        assert_eq!(heard.answer, [a("www.example.org", 1)]);
    }
}
