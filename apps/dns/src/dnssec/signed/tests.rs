//! Signatures that the tests make with ring, right and wrong ones.

use super::*;
use crate::samples::signing::{Fields, NOW, RIGHT, pair, sign};
use crate::samples::{a, key, name, record};
use domain::base::iana::SecurityAlgorithm;
use domain::rdata::Mx;

fn verify(records: &[ZoneRecord], keys: &[ZoneKey]) -> Result<Verified, Flaw> {
    let sets = sets(records);
    assert_eq!(sets.len(), 1);
    sets[0].verify(&key("z"), keys, NOW, &mut Work::default())
}

#[test]
fn a_signature_holds_for_its_records_in_any_order_and_spelling() {
    let mx = |owner: &str, host: &str| record(owner, Data::Mx(Mx::new(10, name(host))));
    let signed = [mx("www.z", "b.example"), mx("www.z", "a.example")];
    let signature = sign(&signed, "www.z", 1, &RIGHT);
    let shown = [mx("WWW.z", "A.Example"), mx("www.Z", "B.example"), signature.clone()];
    let keys = [pair(2).1, pair(1).1];
    assert_eq!(verify(&shown, &keys), Ok(Verified { seconds: 100, encloser: None }));
    let other = [mx("www.z", "b.example"), mx("www.z", "c.example"), signature.clone()];
    assert_eq!(verify(&other, &keys), Err(Flaw::Wrong));
    assert_eq!(verify(&[mx("www.z", "b.example"), signature.clone()], &keys), Err(Flaw::Wrong));
    assert_eq!(verify(&shown, &keys[..1]), Err(Flaw::KeyMissing));
    assert_eq!(verify(&shown[..2], &keys), Err(Flaw::SignatureMissing));
    let foreign = sign(&signed, "www.z", 1, &Fields { signer: "www.z", ..RIGHT });
    assert_eq!(verify(&[shown[0].clone(), foreign], &keys), Err(Flaw::SignatureMissing));
}

#[test]
fn a_signature_has_its_time() {
    let records = [a("www.z", 1)];
    let outcome = |from: u32, to: u32| {
        let signature = sign(&records, "www.z", 1, &Fields { from, to, ..RIGHT });
        verify(&[records[0].clone(), signature], &[pair(1).1]).map(|verified| verified.seconds)
    };
    assert_eq!(outcome(NOW, NOW), Ok(0));
    assert_eq!(outcome(NOW - 5, NOW - 1), Err(Flaw::Expired));
    assert_eq!(outcome(NOW + 1, NOW + 5), Err(Flaw::NotYetValid));
    assert_eq!(outcome(NOW + 5, NOW - 5), Err(Flaw::Wrong));
    // The times pass zero in 2106.
    assert_eq!(outcome(NOW - 1, NOW.wrapping_add(0x7fff_0000)), Ok(300), "at most the original TTL");
}

#[test]
fn a_wildcard_signs_the_names_that_are_made_of_it() {
    let records = [a("x.y.wild.z", 1)];
    let signature = sign(&records, "*.wild.z", 1, &RIGHT);
    let keys = [pair(1).1];
    let expanded = Verified { seconds: 100, encloser: Some(key("wild.z")) };
    assert_eq!(verify(&[records[0].clone(), signature], &keys), Ok(expanded));
    let own = [a("*.wild.z", 1)];
    let signature = sign(&own, "*.wild.z", 1, &RIGHT);
    assert_eq!(verify(&[own[0].clone(), signature], &keys).map(|verified| verified.encloser), Ok(None));
    let more = sign(&own, "*.wild.z", 1, &Fields { labels: 3, ..RIGHT });
    assert_eq!(verify(&[own[0].clone(), more], &keys), Err(Flaw::Wrong));
}

/// Many keys with the same tag, and many signatures by it (CVE-2023-50387).
#[test]
fn a_trap_of_keys_and_signatures_costs_little() {
    let records = [a("www.z", 1)];
    let tag = pair(1).1.key_tag();
    // The tag is a sum of pairs of bytes, so a change in two places leaves it.
    let places = || (0..32).step_by(2);
    let keys: Vec<ZoneKey> = places()
        .flat_map(|up| places().filter(move |down| *down != up).map(move |down| (up, down)))
        .map(|(up, down)| {
            let mut public = pair(1).1.public_key().clone();
            public[up] = public[up].wrapping_add(1);
            public[down] = public[down].wrapping_sub(1);
            ZoneKey::new(256, 3, SecurityAlgorithm::ED25519, public).unwrap()
        })
        .filter(|key| key.key_tag() == tag)
        .collect();
    assert!(keys.len() > 20, "{} keys with one tag", keys.len());
    let mut all = records.to_vec();
    for step in 0..50 {
        all.push(sign(&records, "www.z", 1, &Fields { to: NOW + step, ..RIGHT }));
    }
    let sets = sets(&all);
    let mut work = Work::default();
    assert_eq!(sets[0].verify(&key("z"), &keys, NOW, &mut work), Err(Flaw::Wrong));
    // 4 keys for each of 8 signatures: half of what a question may cost.
    assert_eq!(sets[0].verify(&key("z"), &keys, NOW, &mut work), Err(Flaw::Wrong));
    assert_eq!(sets[0].verify(&key("z"), &keys, NOW, &mut work), Err(Flaw::TooMuchWork));
}
