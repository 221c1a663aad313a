//! The search of [`Zone::find`] against a slow obvious version, and what a zone refuses.

use super::*;
use domain::rdata::{A, Cname, Dname, Ns};
use proptest::collection::vec;
use proptest::prelude::*;
use std::net::Ipv4Addr;

const APEX: &str = "example";

fn name(text: &str) -> DomainName {
    DomainName::vec_from_str(text).unwrap()
}

fn record(owner: &str, data: Data) -> ZoneRecord {
    Record::new(name(owner), Class::IN, Ttl::from_secs(300), data)
}

fn a(last: u8) -> Data {
    Data::A(A::new(Ipv4Addr::new(192, 0, 2, last)))
}

fn ns(server: &str) -> Data {
    Data::Ns(Ns::new(name(server)))
}

fn cname(target: &str) -> Data {
    Data::Cname(Cname::new(name(target)))
}

fn dname(target: &str) -> Data {
    Data::Dname(Dname::new(name(target)))
}

/// A result in words, so that both versions can be compared.
fn told(found: Found<'_>) -> String {
    match found {
        Found::Records(set) => format!("records {:?}", set.data),
        Found::Alias(_, target) => format!("alias {target}"),
        Found::Redirection(node, target) => format!("redirection {} {target}", node.name()),
        Found::Any => "any".into(),
        Found::Delegation(node) => format!("delegation {}", node.name()),
        Found::NoData => "no data".into(),
        Found::NoName => "no name".into(),
    }
}

/// The same search over a list of records, by the words of RFC 1034 §4.3.2 and RFC 4592 §2.2.
fn slow(records: &[ZoneRecord], asked: &DomainName, rtype: Rtype) -> String {
    let exists =
        |name: &DomainName| *name == self::name(APEX) || records.iter().any(|r| r.owner().ends_with(name));
    let above: Vec<DomainName> = asked
        .iter_suffixes()
        .map(|suffix| DomainName::from_octets(suffix.as_slice().to_vec()).unwrap())
        .filter(|suffix| suffix.ends_with(&name(APEX)))
        .collect();
    for cut in above.iter().rev() {
        let is_cut = *cut != name(APEX) && records.iter().any(|r| r.owner() == cut && r.rtype() == Rtype::NS);
        if is_cut && !(cut == asked && rtype == Rtype::DS) {
            return format!("delegation {}", cut.to_string().to_lowercase());
        }
        let redirects = |r: &&ZoneRecord| r.owner() == cut && r.rtype() == Rtype::DNAME;
        if let Some(Data::Dname(to)) = records.iter().find(redirects).map(|r| r.data())
            && cut != asked
        {
            return format!("redirection {} {}", cut.to_string().to_lowercase(), to.dname());
        }
    }
    let source = if exists(asked) {
        asked.clone()
    } else {
        let encloser = above.iter().find(|name| exists(name)).unwrap();
        let wildcard = name(&format!("*.{encloser}"));
        if !exists(&wildcard) {
            return "no name".into();
        }
        wildcard
    };
    let here: Vec<&ZoneRecord> = records.iter().filter(|r| *r.owner() == source).collect();
    if rtype == Rtype::ANY && !here.is_empty() {
        return "any".into();
    }
    let data: Vec<&Data> = here.iter().filter(|r| r.rtype() == rtype).map(|r| r.data()).collect();
    if !data.is_empty() {
        return format!("records {data:?}");
    }
    match here.first().map(|r| r.data()) {
        Some(Data::Cname(alias)) => format!("alias {}", alias.cname()),
        _ => "no data".into(),
    }
}

fn labels() -> impl Strategy<Value = String> {
    let label = prop_oneof![Just("a"), Just("b"), Just("c"), Just("*")];
    vec(label, 0..4)
        .prop_map(|labels| labels.iter().map(|label| format!("{label}.")).collect::<String>() + APEX)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_search_is_that_of_the_slow_version(
        records in vec((labels(), 0..5_u8), 0..10),
        asked in labels(),
        upper in any::<bool>(),
    ) {
        let mut zone = Zone::new(&name(APEX));
        let mut kept = Vec::new();
        for (index, (owner, kind)) in records.into_iter().enumerate() {
            let data = match kind {
                0 | 1 => a(index as u8),
                2 => ns("ns.elsewhere"),
                3 => dname("below.elsewhere"),
                _ => cname("target.elsewhere"),
            };
            let record = record(&owner, data);
            let is_alias = |r: &ZoneRecord| r.rtype() == Rtype::CNAME;
            let mut beside = kept.iter().filter(|r: &&ZoneRecord| r.owner() == record.owner());
            let fits = beside.all(|r| r.data() == record.data() || !(is_alias(r) || is_alias(&record)));
            prop_assert_eq!(zone.insert(record.clone()).is_ok(), fits);
            if fits && !kept.contains(&record) {
                kept.push(record);
            }
        }
        let asked = if upper { asked.to_uppercase() } else { asked };
        for rtype in [Rtype::A, Rtype::NS, Rtype::CNAME, Rtype::DNAME, Rtype::TXT, Rtype::DS, Rtype::ANY] {
            let found = told(zone.find(&NameKey::new(&name(&asked)), rtype));
            prop_assert_eq!(found, slow(&kept, &name(&asked), rtype), "{} {}", &asked, rtype);
        }
    }
}

#[test]
fn a_zone_refuses_what_does_not_fit() {
    let mut zone = Zone::new(&name("example.org"));
    let soa = |minimum: u32| {
        let (one, ttl) = (name("ns.example.org"), Ttl::from_secs);
        let serial = domain::base::Serial(1);
        Data::Soa(domain::rdata::Soa::new(one.clone(), one, serial, ttl(1), ttl(1), ttl(1), ttl(minimum)))
    };
    assert_eq!(zone.insert(record("example.com", a(1))), Err(RecordError::Outside));
    assert_eq!(zone.insert(record("notexample.org", a(1))), Err(RecordError::Outside));
    assert_eq!(zone.insert(record("a.example.org", soa(1))), Err(RecordError::SoaBelow));
    assert_eq!(zone.insert(record("example.org", soa(1))), Ok(()));
    assert_eq!(zone.insert(record("EXAMPLE.org", soa(1))), Ok(()));
    assert_eq!(zone.insert(record("example.org", soa(2))), Err(RecordError::SecondSoa));
    assert_eq!(zone.insert(record("www.example.org", cname("a.example.org"))), Ok(()));
    assert_eq!(zone.insert(record("www.example.org", cname("b.example.org"))), Err(RecordError::BesideAlias));
    assert_eq!(zone.insert(record("www.example.org", a(1))), Err(RecordError::BesideAlias));
    assert_eq!(zone.insert(record("www.example.org", dname("example.net"))), Err(RecordError::BesideAlias));
    assert_eq!(zone.insert(record("old.example.org", dname("example.net"))), Ok(()));
    assert_eq!(zone.insert(record("old.example.org", a(1))), Ok(()));
    assert_eq!(
        zone.insert(record("old.example.org", dname("example.com"))),
        Err(RecordError::SecondRedirection)
    );
}

#[test]
fn the_deepest_zone_answers() {
    let mut zones = Zones::default();
    assert!(zones.insert(Zone::new(&name("org"))));
    assert!(zones.insert(Zone::new(&name("example.org"))));
    assert!(!zones.insert(Zone::new(&name("Example.Org"))));
    let of = |asked: &str, rtype| {
        let zone = zones.of(&NameKey::new(&name(asked)), rtype);
        zone.map(|zone| zone.top().name().to_string())
    };
    assert_eq!(of("a.EXAMPLE.org", Rtype::A).as_deref(), Some("example.org"));
    assert_eq!(of("example.org", Rtype::A).as_deref(), Some("example.org"));
    assert_eq!(of("example.org", Rtype::DS).as_deref(), Some("org"));
    assert_eq!(of("org", Rtype::DS).as_deref(), Some("org"));
    assert_eq!(of("b.org", Rtype::A).as_deref(), Some("org"));
    assert_eq!(of("example.com", Rtype::A), None);
}
