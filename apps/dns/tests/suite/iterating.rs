//! Resolution from the root, on a simulated Internet: each zone has a server of its own, which is
//! this program too.

use crate::common::*;
use domain::base::Rtype;
use domain::base::iana::Rcode;
use selvedge::sim::{Conditions, World};
use selvedge::{Time, sleep};
use selvedge_dns::record::NameKey;
use selvedge_dns::resolve::delegation::{Delegation, NameServer};
use selvedge_dns::resolve::{Iteration, Resolver, Source};
use selvedge_dns::zone::Zones;
use std::net::SocketAddr;
use std::time::Duration;

const ROOT: &str = "\
ns A 10.0.0.1
org NS ns.org
ns.org A 10.0.0.2
com NS dead.com
com NS ns.com
dead.com A 10.0.0.99
ns.com A 10.0.0.3
";

const ORG: &str = "\
ns A 10.0.0.2
example NS ns.example
ns.example A 10.0.0.4
glueless NS ns.host.com.
orphan NS ns.orphan
circle NS ns.circle.com.
";

const COM: &str = "\
ns A 10.0.0.3
host NS ns.host
ns.host A 10.0.0.5
circle NS ns.circle.org.
";

const EXAMPLE: &str = "\
ns A 10.0.0.4
www A 192.0.2.1
alias CNAME www.glueless.org.
";

const GLUELESS: &str = "www A 192.0.2.2\n";
const HOST: &str = "ns A 10.0.0.5\n";

/// Starts all servers, and a resolver that knows the root.
fn internet() -> SocketAddr {
    let on = |at: &str, all: &[(&str, &str)]| serve(settings(zones(all), None), at);
    on("10.0.0.1:53", &[(".", ROOT)]);
    on("10.0.0.2:53", &[("org", ORG)]);
    on("10.0.0.3:53", &[("com", COM)]);
    on("10.0.0.4:53", &[("example.org", EXAMPLE)]);
    on("10.0.0.5:53", &[("host.com", HOST), ("glueless.org", GLUELESS)]);
    let root = NameServer { name: name("ns"), addresses: vec!["10.0.0.1".parse().unwrap()] };
    let roots = Delegation { zone: NameKey::root(), servers: vec![root], ttl: u32::MAX };
    let iteration = Iteration::from_roots(roots, 1 << 20);
    let resolver = Resolver::new(Source::Iterate(iteration), 1 << 20);
    serve(settings(Zones::default(), Some(resolver)), "10.0.0.10:53")
}

#[selvedge::test(seeds = 0..30)]
async fn names_are_found_from_the_root() {
    let server = internet();
    let heard = ask(server, "www.example.org", Rtype::A).await.unwrap();
    assert_eq!(heard.answer, [a("www.example.org", 1)]);
    // The server of the zone has no address there, and the server of one of its parents is dead.
    let heard = ask(server, "www.glueless.org", Rtype::A).await.unwrap();
    assert_eq!(heard.answer, [a("www.glueless.org", 2)]);
    let heard = ask(server, "alias.example.org", Rtype::A).await.unwrap();
    assert_eq!(heard.answer, [cname("alias.example.org", "www.glueless.org"), a("www.glueless.org", 2)]);
}

#[selvedge::test(seeds = 0..30)]
async fn what_is_missing_is_told_by_its_zone() {
    let server = internet();
    for (asked, zone) in [("no.example.org", "example.org"), ("no.org", "org"), ("no", ".")] {
        let heard = ask(server, asked, Rtype::A).await.unwrap();
        assert_eq!((heard.rcode, heard.answer.len()), (Rcode::NXDOMAIN, 0), "{asked}");
        assert_eq!((heard.authority[0].owner(), heard.authority[0].rtype()), (&name(zone), Rtype::SOA));
    }
    let heard = ask(server, "www.example.org", Rtype::TXT).await.unwrap();
    assert_eq!((heard.rcode, heard.answer.len(), heard.authority.len()), (Rcode::NOERROR, 0, 1));
    // The zone above answers, although the zone's own server is known by now.
    let heard = ask(server, "example.org", Rtype::DS).await.unwrap();
    assert_eq!((heard.rcode, heard.authority[0].owner()), (Rcode::NOERROR, &name("org")));
}

#[selvedge::test(seeds = 0..30)]
async fn a_zone_that_leads_nowhere_fails_in_time() {
    let server = internet();
    for asked in ["www.orphan.org", "www.circle.org"] {
        let begin = Time::now();
        assert_eq!(ask(server, asked, Rtype::A).await.unwrap().rcode, Rcode::SERVFAIL, "{asked}");
        assert!(Time::now().since(begin) < Duration::from_secs(6), "{asked}");
    }
    assert_eq!(ask(server, "www.example.org", Rtype::A).await.unwrap().answer, [a("www.example.org", 1)]);
}

#[test]
fn no_answer_is_wrong_on_a_bad_network() {
    let mut right_ones = 0;
    for seed in 0..40 {
        let world = World::new(seed).conditions(Conditions::bad());
        let ended = world.run(async {
            let server = internet();
            let mut right_ones = 0;
            for _ in 0..4 {
                if let Some(heard) = ask(server, "alias.example.org", Rtype::A).await {
                    match heard.rcode {
                        Rcode::NOERROR => {
                            let expected =
                                [cname("alias.example.org", "www.glueless.org"), a("www.glueless.org", 2)];
                            assert_eq!(heard.answer, expected);
                            right_ones += 1;
                        }
                        rcode => assert_eq!(rcode, Rcode::SERVFAIL),
                    }
                }
                sleep(Duration::from_secs(6)).await;
            }
            right_ones
        });
        right_ones += ended.unwrap_or_else(|failed| panic!("{failed}")).output;
    }
    assert!(right_ones > 40, "{right_ones} of 160");
}
