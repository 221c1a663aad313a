//! Proofs by NSEC and NSEC3 records of small zones, against what the zones have; and the records
//! that prove nothing.

use super::*;
use crate::dnssec::algorithm::nsec3_hash;
use crate::samples::key;
use domain::base::iana::Nsec3HashAlgorithm;
use domain::rdata::nsec3::{Nsec3Salt, OwnerHash};
use domain::rdata::{Nsec, Nsec3};
use domain::utils::base32;
use proptest::collection::btree_set;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn types(all: &[Rtype]) -> RtypeBitmap<Vec<u8>> {
    let mut builder = RtypeBitmap::<Vec<u8>>::builder();
    all.iter().for_each(|&rtype| builder.add(rtype).unwrap());
    builder.finalize()
}

/// The types of a name of the zone `z`: its begin, a delegation if a label is `n`, a redirection if
/// it is `d`, or a host.
fn types_of(name: &NameKey) -> Vec<Rtype> {
    match name.labels().next() {
        _ if *name == key("z") => vec![Rtype::SOA, Rtype::NS],
        Some(b"n") => vec![Rtype::NS],
        Some(b"d") => vec![Rtype::DNAME],
        _ => vec![Rtype::A],
    }
}

fn nsec(next: &NameKey, all: &[Rtype]) -> Data {
    Data::Nsec(Nsec::new(next.to_name(), types(all)))
}

/// All NSEC records of a zone of these names.
fn plain(names: &BTreeSet<String>) -> Denials {
    let mut sorted: Vec<NameKey> = names.iter().map(|name| key(name)).collect();
    sorted.sort_by(NameKey::canonical_cmp);
    let mut denials = Denials::default();
    for (place, owner) in sorted.iter().enumerate() {
        let next = &sorted[(place + 1) % sorted.len()];
        denials.add(&key("z"), owner, &nsec(next, &types_of(owner)));
    }
    denials
}

/// All NSEC3 records of a zone of these names, with the names above them.
fn hashed(names: &BTreeSet<String>, flags: u8, iterations: u16) -> Denials {
    let owners: BTreeSet<NameKey> = names
        .iter()
        .flat_map(|name| {
            let name = key(name);
            (1..name.labels().count()).filter_map(move |labels| name.ancestor(labels)).collect::<Vec<_>>()
        })
        .collect();
    let has = |name: &NameKey| names.iter().any(|other| key(other) == *name);
    let mut all: Vec<(Vec<u8>, Vec<Rtype>)> = owners
        .iter()
        .map(|name| {
            let types = if has(name) { types_of(name) } else { Vec::new() };
            (nsec3_hash(name.as_bytes(), b"salt", iterations), types)
        })
        .collect();
    all.sort();
    let mut denials = Denials::default();
    for (place, (hash, all_types)) in all.iter().enumerate() {
        let next = OwnerHash::from_octets(all[(place + 1) % all.len()].0.clone()).unwrap();
        let salt = Nsec3Salt::from_octets(b"salt".to_vec()).unwrap();
        let data = Nsec3::new(Nsec3HashAlgorithm::SHA1, flags, iterations, salt, next, types(all_types));
        let owner = key("z").child(base32::encode_string_hex(hash).as_bytes()).unwrap();
        denials.add(&key("z"), &owner, &Data::Nsec3(data));
    }
    denials
}

/// Names of `z` with the labels `a`, `b`, `n` and `*`. None of them lies below a delegation,
/// because the zone does not have such a name.
fn names() -> impl Strategy<Value = BTreeSet<String>> {
    btree_set("((a|b|n|\\*)\\.){1,3}", 0..6).prop_map(|names| {
        let names = names.into_iter().map(|name| format!("{name}z")).chain(["z".into()]);
        names.filter(|name| !name.split('.').skip(1).any(|label| label == "n")).collect()
    })
}

/// What a zone has of a name, by the obvious way.
#[derive(Debug, PartialEq)]
enum There {
    Name,
    /// A name without records, above another one.
    Above,
    Wildcard,
    /// At or below a delegation.
    Elsewhere,
    Nothing,
}

fn there(names: &BTreeSet<String>, name: &NameKey) -> There {
    let all: Vec<NameKey> = names.iter().map(|name| key(name)).collect();
    let exists = |name: &NameKey| all.iter().any(|other| other.is_within(name.as_bytes()));
    let cut = all.iter().any(|other| types_of(other) == [Rtype::NS] && name.is_within(other.as_bytes()));
    if cut {
        return There::Elsewhere;
    }
    if all.contains(name) {
        return There::Name;
    }
    if exists(name) {
        return There::Above;
    }
    let above = (0..name.labels().count()).rev().filter_map(|labels| name.ancestor(labels));
    let encloser = { above }.find(exists).unwrap();
    if exists(&encloser.child(b"*").unwrap()) { There::Wildcard } else { There::Nothing }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_zone_proves_what_is_so(names in names(), asked in "((a|b|n|c)\\.){1,4}z") {
        let asked = key(&asked);
        let there = there(&names, &asked);
        for denials in [plain(&names), hashed(&names, 0, 1)] {
            let work = &mut Work::default();
            let no_name = denials.no_name(&asked, work) == Ok(Security::Secure);
            prop_assert_eq!(no_name, there == There::Nothing, "{:?}", there);
            let lacks_text = denials.no_data(&asked, Rtype::TXT, work) == Ok(Security::Secure);
            match there {
                There::Name | There::Above => prop_assert!(lacks_text),
                There::Nothing | There::Elsewhere => prop_assert!(!lacks_text),
                // The wildcard may be a name above others, or a delegation's begin.
                There::Wildcard => {}
            }
            let has_host = denials.no_data(&asked, Rtype::A, work).is_err();
            prop_assert!(has_host || there != There::Name, "{:?}", there);
            let cut = denials.no_cut(&asked, work);
            match there {
                There::Name | There::Above => prop_assert_eq!(cut, Ok(NoCut::Inside)),
                There::Nothing => prop_assert_eq!(cut, Ok(NoCut::NoName)),
                There::Wildcard | There::Elsewhere => {}
            }
        }
    }

    /// With "opt-out" the same is found, but not as secure.
    #[test]
    fn opt_out_proves_less(names in names(), asked in "((a|b|c)\\.){1,3}z") {
        let asked = key(&asked);
        let denials = hashed(&names, 1, 0);
        let found = denials.no_name(&asked, &mut Work::default());
        let is_missing = there(&names, &asked) == There::Nothing;
        prop_assert_eq!(found == Ok(Security::Insecure), is_missing);
        if is_missing {
            let cut = denials.no_cut(&asked, &mut Work::default());
            prop_assert_eq!(cut, Ok(NoCut::InsecureDelegation));
        }
    }
}

#[test]
fn a_delegation_proves_nothing_of_its_zone() {
    let mut denials = Denials::default();
    denials.add(&key("z"), &key("n.z"), &nsec(&key("z"), &[Rtype::NS]));
    let work = &mut Work::default();
    assert_eq!(denials.no_data(&key("n.z"), Rtype::A, work), Err(Flaw::DenialMissing));
    assert_eq!(denials.no_data(&key("n.z"), Rtype::DS, work), Ok(Security::Secure));
    assert_eq!(denials.no_name(&key("www.n.z"), work), Err(Flaw::DenialMissing));
    assert_eq!(denials.no_cut(&key("n.z"), work), Ok(NoCut::InsecureDelegation));
    // The zone's own record says nothing of the DS records, which its parent has.
    let mut denials = Denials::default();
    denials.add(&key("n.z"), &key("n.z"), &nsec(&key("n.z"), &[Rtype::NS, Rtype::SOA]));
    assert_eq!(denials.no_data(&key("n.z"), Rtype::DS, work), Err(Flaw::DenialMissing));
    assert_eq!(denials.no_cut(&key("n.z"), work), Err(Flaw::DenialMissing));
    assert_eq!(denials.no_data(&key("n.z"), Rtype::A, work), Ok(Security::Secure));
}

#[test]
fn a_redirection_proves_nothing_of_the_names_below() {
    for (owner, proves) in [("d.z", false), ("a.z", true)] {
        let names = BTreeSet::from(["z".to_string(), owner.to_string()]);
        for denials in [plain(&names), hashed(&names, 0, 0)] {
            let below = denials.no_name(&key(&format!("x.{owner}")), &mut Work::default());
            assert_eq!(below.is_ok(), proves, "{owner}: {below:?}");
            assert!(denials.no_name(&key("x.z"), &mut Work::default()).is_ok());
        }
    }
}

#[test]
fn an_alias_has_all_types() {
    let mut denials = Denials::default();
    denials.add(&key("z"), &key("a.z"), &nsec(&key("z"), &[Rtype::CNAME]));
    assert_eq!(denials.no_data(&key("a.z"), Rtype::A, &mut Work::default()), Err(Flaw::DenialMissing));
}

#[test]
fn a_gap_alone_does_not_exclude_a_wildcard() {
    // From `b` to the begin: `c` is in the gap, and `*` is not.
    let mut denials = Denials::default();
    denials.add(&key("z"), &key("b.z"), &nsec(&key("z"), &[Rtype::A]));
    let work = &mut Work::default();
    assert_eq!(denials.no_name(&key("c.z"), work), Err(Flaw::DenialMissing));
    assert_eq!(denials.no_closer(&key("x.c.z"), &key("z"), work), Ok(Security::Secure));
    assert_eq!(denials.no_closer(&key("x.a.z"), &key("z"), work), Err(Flaw::DenialMissing));
}

#[test]
fn too_many_iterations_are_not_computed() {
    let names = BTreeSet::from(["z".to_string(), "a.z".into()]);
    let work = &mut Work::default();
    assert_eq!(hashed(&names, 0, 51).no_name(&key("b.z"), work), Ok(Security::Insecure));
    assert_eq!(hashed(&names, 0, 51).no_cut(&key("b.z"), work), Ok(NoCut::InsecureDelegation));
    assert_eq!(hashed(&names, 0, 50).no_name(&key("b.z"), work), Ok(Security::Secure));
}

/// A long name below nothing makes a hash for each of its labels (CVE-2023-50868).
#[test]
fn hashes_have_a_bound() {
    let denials = hashed(&BTreeSet::from(["z".to_string()]), 0, 50);
    let long = key(&format!("{}z", "a.".repeat(120)));
    let work = &mut Work::default();
    assert_eq!(denials.no_name(&long, work), Ok(Security::Secure));
    assert_eq!(denials.no_name(&long, work), Err(Flaw::TooMuchWork));
}
