//! The server on loopback: answers byte by byte, sizes, and TCP.

use crate::common::*;
use domain::base::Rtype;
use domain::base::iana::Rcode;
use selvedge::net::TcpStream;
use selvedge_compat::Compat;
use selvedge_dns::frame;
use selvedge_dns::wire::heard;

const ZONE: &str = "\
ns A 192.0.2.1
www A 192.0.2.2
alias CNAME www
child NS ns.child
ns.child A 192.0.2.9
";

#[selvedge::test]
async fn an_answer_byte_by_byte() {
    let server = serve(settings(zones(&[("example.org", ZONE)]), None), "127.0.0.1:0");
    let query = b"\xab\xcd\x01\0\0\x01\0\0\0\0\0\0\x03wWw\x07Example\x03org\0\0\x01\0\x01";
    let expected = b"\xab\xcd\x85\0\0\x01\0\x01\0\0\0\0\x03wWw\x07Example\x03org\0\0\x01\0\x01\
        \xc0\x0c\0\x01\0\x01\0\0\x01\x2c\0\x04\xc0\0\x02\x02";
    assert_eq!(exchange("127.0.0.1:0", server, query).await.unwrap(), expected);
    // A delegation: no authority, no recursion for a server without a resolver.
    let query = b"\0\x01\0\0\0\x01\0\0\0\0\0\0\x01x\x05child\x07example\x03org\0\0\x01\0\x01";
    let expected = b"\0\x01\x80\0\0\x01\0\0\0\x01\0\x01\x01x\x05child\x07example\x03org\0\0\x01\0\x01\
        \xc0\x0e\0\x02\0\x01\0\0\x01\x2c\0\x05\x02ns\xc0\x0e\
        \xc0\x31\0\x01\0\x01\0\0\x01\x2c\0\x04\xc0\0\x02\x09";
    assert_eq!(exchange("127.0.0.1:0", server, query).await.unwrap(), expected);
}

#[selvedge::test]
async fn negative_answers_and_refusals() {
    let server = serve(settings(zones(&[("example.org", ZONE)]), None), "127.0.0.1:0");
    let heard = ask(server, "nothing.example.org", Rtype::A).await.unwrap();
    assert_eq!((heard.rcode, heard.is_authoritative), (Rcode::NXDOMAIN, true));
    assert_eq!((heard.authority[0].rtype(), heard.authority[0].ttl().as_secs()), (Rtype::SOA, 60));
    let heard = ask(server, "www.example.org", Rtype::MX).await.unwrap();
    assert_eq!((heard.rcode, heard.answer.len(), heard.authority.len()), (Rcode::NOERROR, 0, 1));
    for (asked, rtype) in
        [("example.com", Rtype::A), ("example.org", Rtype::AXFR), ("example.org", Rtype::IXFR)]
    {
        let heard = ask(server, asked, rtype).await.unwrap();
        assert_eq!((heard.rcode, heard.answer.len()), (Rcode::REFUSED, 0), "{asked} {rtype}");
    }
    // Another class; version 1 of EDNS, which is BADVERS: 0 in the header and 1 in the OPT record.
    let mut query = heard::question(7, &key("www.example.org"), Rtype::A, false, true);
    let class = 12 + 17 + 3;
    query[class] = 3;
    let (rcode, ..) = counts(&exchange("127.0.0.1:0", server, &query).await.unwrap());
    assert_eq!(rcode, Rcode::REFUSED.to_int());
    query[class] = 1;
    let version = query.len() - 5;
    query[version] = 1;
    let answer = exchange("127.0.0.1:0", server, &query).await.unwrap();
    assert_eq!(counts(&answer), (0, false, [0, 0, 1]));
    assert_eq!(answer[answer.len() - 6], 1, "{answer:x?}");
}

#[selvedge::test]
async fn what_does_not_fit_comes_over_tcp() {
    let texts: String = (0..40).map(|n| format!("large TXT \"{n:0>40}\"\n")).collect();
    let text = format!(
        "{ZONE}{texts}medium TXT \"{}\" \"{}\" \"{}\"\n",
        "m".repeat(200),
        "m".repeat(200),
        "m".repeat(200)
    );
    let server = serve(settings(zones(&[("example.org", &text)]), None), "127.0.0.1:0");
    let query = |asked, edns| heard::question(9, &key(asked), Rtype::TXT, false, edns);
    // 603 bytes of data: above 512, below 1,232.
    let plain = exchange("127.0.0.1:0", server, &query("medium.example.org", false)).await.unwrap();
    assert_eq!(counts(&plain), (0, true, [0, 0, 0]));
    let whole = exchange("127.0.0.1:0", server, &query("medium.example.org", true)).await.unwrap();
    assert_eq!(counts(&whole), (0, false, [1, 0, 1]));
    let cut = exchange("127.0.0.1:0", server, &query("large.example.org", true)).await.unwrap();
    assert_eq!(counts(&cut), (0, true, [0, 0, 1]));
    let heard = ask_tcp(server, "large.example.org", Rtype::TXT).await;
    assert_eq!((heard.answer.len(), heard.is_truncated), (40, false));
}

#[selvedge::test]
async fn a_client_over_tcp_may_ask_again() {
    let server = serve(settings(zones(&[("example.org", ZONE)]), None), "127.0.0.1:0");
    let stream = TcpStream::connect(server).await.unwrap();
    // Three questions in one piece.
    let mut all = Vec::new();
    for id in [1, 2, 3] {
        let query = heard::question(id, &key("alias.example.org"), Rtype::A, false, false);
        all.extend_from_slice(&(query.len() as u16).to_be_bytes());
        all.extend_from_slice(&query);
    }
    stream.write_all(&all).await.unwrap();
    for id in [1, 2, 3] {
        let answer = frame::read(Compat::new(&stream)).await.unwrap().unwrap();
        let heard = heard::read(&answer, id, &key("alias.example.org"), Rtype::A).unwrap();
        assert_eq!(heard.answer.len(), 2);
    }
    // An answer is no query, and ends the connection.
    frame::write(Compat::new(&stream), &[0, 1, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0]).await.unwrap();
    assert!(frame::read(Compat::new(&stream)).await.unwrap().is_none());
}

#[selvedge::test]
async fn an_alias_that_leads_away_is_resolved_for_hosts_nearby() {
    let other = serve(settings(zones(&[("example.net", "www A 192.0.2.77\n")]), None), "127.0.0.1:0");
    let text = format!("{ZONE}out CNAME www.example.net.\n");
    let resolver = forwarder(&[&other.to_string()]);
    let server = serve(settings(zones(&[("example.org", &text)]), Some(resolver)), "127.0.0.1:0");
    let heard = ask(server, "out.example.org", Rtype::A).await.unwrap();
    assert_eq!(heard.answer, [cname("out.example.org", "www.example.net"), a("www.example.net", 77)]);
    assert!(heard.is_authoritative);
    let heard = ask(server, "www.example.net", Rtype::A).await.unwrap();
    assert_eq!((heard.answer, heard.is_authoritative), (vec![a("www.example.net", 77)], false));
    let heard = ask(server, "www.example.net", Rtype::ANY).await.unwrap();
    assert_eq!(heard.answer[0].rtype(), Rtype::HINFO);
}
