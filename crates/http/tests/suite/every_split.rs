//! However the bytes of a connection are cut into reads, the replies are the same.

use crate::site::{Connection, conversation};
use proptest::prelude::*;

const PIPELINED: &[&str] = &[
    "GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
    "HEAD /ten.txt HTTP/1.1\r\nHost: a\r\nUser-Agent: some agent\r\n\r\n",
    "POST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\nGET / HTTP/1.1\r\n\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nab\r\nc\r\n1\r\n\n\r\n0\r\nT: u\r\n\r\n",
    "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
    "\r\nGET /docs HTTP/1.1\r\nHost: a\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET http://b/ten.txt HTTP/1.3\r\nHost: a\r\nRange: bytes=1-2\r\n\r\n",
    "GET /../x HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /empty.txt HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "GET /ten.txt HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\n\r\n",
];

/// What ends a connection, and the status it is answered with.
const LAST: &[(&str, u16)] = &[
    ("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 200),
    ("GET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\r\n\r\n", 200),
    ("GET / HTTP/1.1\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: a\r\nA: b\nC: d\r\n\r\n", 400),
    ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n", 413),
    ("GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505),
    ("PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc", 405),
    ("HEAD / HTTP/1.1\r\n\r\n", 400),
    ("HEAD / HTTP/3.0\r\nHost: a\r\n\r\n", 505),
    ("\x16\x03\x01\x02\0\x01\0\x01\x7c\x03\x03 a hello of TLS, which has no request line", 400),
];

fn cut(input: &[u8], cuts: &[usize]) -> Connection {
    let mut connection = Connection::new();
    let mut start = 0;
    for &cut in cuts.iter().chain([&input.len()]) {
        connection.receive(&input[start..cut]);
        start = cut;
    }
    connection
}

fn assert_same(connection: &Connection, whole: &Connection) {
    assert_eq!(connection.statuses, whole.statuses);
    assert_eq!(String::from_utf8_lossy(&connection.output), String::from_utf8_lossy(&whole.output));
    assert_eq!(connection.closed, whole.closed);
}

#[test]
fn one_cut_anywhere() {
    for (last, status) in LAST {
        let input = [PIPELINED.concat().as_bytes(), last.as_bytes()].concat();
        let whole = conversation(&input);
        assert_eq!(whole.statuses[..11], [200, 200, 405, 405, 405, 301, 204, 206, 400, 200, 304]);
        assert_eq!((whole.statuses[11..].to_vec(), whole.closed), (vec![*status], true));
        for at in 0..=input.len() {
            assert_same(&cut(&input, &[at]), &whole);
        }
    }
}

#[test]
fn byte_by_byte() {
    let input = [PIPELINED.concat().as_bytes(), LAST[0].0.as_bytes()].concat();
    let cuts: Vec<usize> = (0..input.len()).collect();
    assert_same(&cut(&input, &cuts), &conversation(&input));
}

proptest! {
    #[test]
    fn any_order_any_cuts(
        requests in prop::collection::vec(prop::sample::select(PIPELINED), 0..12),
        last in prop::option::of(prop::sample::select(LAST)),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
    ) {
        let input = [requests.concat(), last.map_or("", |(text, _)| text).to_owned()].concat();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(input.len() + 1)).collect();
        cuts.sort_unstable();
        let whole = conversation(input.as_bytes());
        prop_assert_eq!(whole.statuses.len(), requests.len() + usize::from(last.is_some()));
        prop_assert_eq!(whole.closed, last.is_some());
        assert_same(&cut(input.as_bytes(), &cuts), &whole);
    }
}
