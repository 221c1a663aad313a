//! What is believed of another server's answer.

use super::*;
use crate::samples::{a, key, name, record};
use domain::base::{Serial, Ttl};
use domain::rdata::{Cname, Ns, Soa};

fn ns(owner: &str, server: &str) -> ZoneRecord {
    record(owner, Data::Ns(Ns::new(name(server))))
}

fn cname(owner: &str, target: &str) -> ZoneRecord {
    record(owner, Data::Cname(Cname::new(name(target))))
}

fn soa(owner: &str) -> ZoneRecord {
    let ttl = Ttl::from_secs(60);
    record(owner, Data::Soa(Soa::new(name("ns"), name("host"), Serial(1), ttl, ttl, ttl, ttl)))
}

fn heard(answer: Vec<ZoneRecord>, authority: Vec<ZoneRecord>, additional: Vec<ZoneRecord>) -> Heard {
    Heard {
        rcode: Rcode::NOERROR,
        is_authoritative: true,
        is_truncated: false,
        answer,
        authority,
        additional,
    }
}

fn of_org(heard: Heard) -> Verdict {
    judge(heard, &key("www.example.org"), Rtype::A, Some(&key("org")))
}

#[test]
fn records_of_other_names_are_left_out() {
    let answer = vec![
        a("evil.example.com", 66),
        cname("www.example.org", "host.org"),
        a("host.org", 1),
        a("HOST.org", 2),
        a("bank.org", 66),
    ];
    let Verdict::Records(records) = of_org(heard(answer, vec![], vec![])) else { panic!("records") };
    assert_eq!(
        records.iter().map(|r| r.owner().to_string()).collect::<Vec<_>>(),
        ["www.example.org", "host.org", "HOST.org"]
    );
}

#[test]
fn a_target_in_another_zone_is_asked_there() {
    let answer = vec![cname("www.example.org", "bank.com"), a("bank.com", 66)];
    let mut it = heard(answer, vec![soa("org")], vec![]);
    let Verdict::Alias(records, target) = of_org(it.clone()) else { panic!("an alias") };
    assert_eq!((records.len(), target.to_string().as_str()), (1, "bank.com"));
    it.rcode = Rcode::NXDOMAIN;
    assert!(matches!(of_org(it), Verdict::Alias(..)), "this server knows nothing of bank.com");
}

#[test]
fn aliases_in_a_circle_end() {
    let answer = vec![cname("www.example.org", "b.org"), cname("b.org", "www.example.org")];
    assert!(matches!(of_org(heard(answer, vec![], vec![])), Verdict::Useless));
}

#[test]
fn a_negative_answer_has_the_soa_of_a_zone_above() {
    let mut it = heard(vec![], vec![soa("example.org")], vec![]);
    assert!(matches!(of_org(it.clone()), Verdict::Negative(false, _, Some(_))));
    it.rcode = Rcode::NXDOMAIN;
    assert!(matches!(of_org(it.clone()), Verdict::Negative(true, _, Some(_))));
    for other in ["com", "other.org", "."] {
        it.authority = vec![soa(other)];
        assert!(matches!(of_org(it.clone()), Verdict::Negative(true, _, None)), "{other}");
    }
    it.is_authoritative = false;
    assert!(matches!(of_org(it), Verdict::Useless), "a server that is no authority, and names none");
}

#[test]
fn a_referral_goes_down_and_its_glue_is_in_the_zone() {
    let authority = vec![
        ns("example.org", "ns.example.org"),
        ns("example.org", "ns.elsewhere.com"),
        ns("other.org", "ns.other.org"),
    ];
    let additional = vec![a("ns.example.org", 1), a("ns.elsewhere.com", 66), a("ns.other.org", 66)];
    let mut it = heard(vec![], authority, additional);
    it.is_authoritative = false;
    let Verdict::Referral(delegation) = of_org(it.clone()) else { panic!("a referral") };
    assert_eq!((delegation.zone.clone(), delegation.ttl), (key("example.org"), 300));
    let servers: Vec<_> =
        delegation.servers.iter().map(|s| (s.name.to_string(), s.addresses.len())).collect();
    assert_eq!(servers, [("ns.example.org".into(), 1), ("ns.elsewhere.com".into(), 0)]);
    // Up, aside, or on the spot: the server knows nothing.
    for owner in ["org", ".", "com", "other.org"] {
        it.authority = vec![ns(owner, "ns.example.org")];
        assert!(matches!(of_org(it.clone()), Verdict::Useless), "{owner}");
    }
}

#[test]
fn an_error_is_useless_and_a_resolver_is_believed() {
    for rcode in [Rcode::SERVFAIL, Rcode::REFUSED, Rcode::FORMERR, Rcode::NOTIMP] {
        let it = Heard { rcode, ..heard(vec![a("www.example.org", 1)], vec![], vec![]) };
        assert!(matches!(of_org(it), Verdict::Useless), "{rcode}");
    }
    let empty = Heard { is_authoritative: false, ..heard(vec![], vec![], vec![]) };
    assert!(matches!(of_org(empty.clone()), Verdict::Useless));
    let of_resolver = judge(empty, &key("www.example.org"), Rtype::A, None);
    assert!(matches!(of_resolver, Verdict::Negative(false, _, None)));
}
