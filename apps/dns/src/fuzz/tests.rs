//! The fuzz targets over inputs that are made of sensible ones.

use super::*;
use crate::record::NameKey;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

const ZONE: &str = "$TTL 1m\nold DNAME sub\n@ 2h MX 1 @\nwww A 192.0.2.1\nalias CNAME www\n$ORIGIN sub.example.\nwww TXT \"a ; b\" (\n c )\n\
    $INCLUDE other\n*.wild MX 10 mail\nchild NS ns.child\nchild DS 1 8 2 00\n\
    b IN NSEC example. A RRSIG NSEC\nwww RRSIG A 15 3 60 20360101000000 20260101000000 1 example. AAAA\n";

const DENIALS: &str = "@ NSEC b A NS SOA\nb NSEC d NS\nd NSEC *.d A\n*.d NSEC @ A\n";

const HASHED: &str = "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom NSEC3 1 1 12 aabbccdd 2t7b4g4vsa5smi47k61mv5bv1a22bojr MX DNSKEY NS SOA\n\
    2t7b4g4vsa5smi47k61mv5bv1a22bojr NSEC3 1 1 12 aabbccdd 2vptu5timamqttgl4luu9kg21e0aor3s A RRSIG\n\
    q04jkcevqvmu85r014c7dkba38o0ji5r NSEC3 1 1 12 aabbccdd r53bq7cc2uvmubfu5ocmm6pers9tk9en A RRSIG\n";

fn message() -> Vec<u8> {
    let name = NameKey::new(&DomainName::vec_from_str("a.example").unwrap());
    let mut query = heard::signed_question(7, &name, Rtype::A, true);
    query[2] |= 0x80;
    query[7] = 2;
    query.truncate(27);
    query.extend_from_slice(b"\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x04\x01b\xc0\x0e\x01b\xc0\x0e\0\x01\0\x01\0\0\0\x3c\0\x04\x7f\0\0\x01");
    query[9] = 1;
    query.extend_from_slice(b"\xc0\x0e\0\x2f\0\x01\0\0\0\x3c\0\x0c\x07example\0\0\x01\x40");
    query[11] = 0;
    query
}

fn changed(mut bytes: Vec<u8>, changes: &[(Index, u8)], cut: Option<Index>) -> Vec<u8> {
    for (place, byte) in changes {
        let place = place.index(bytes.len());
        bytes[place] = *byte;
    }
    if let Some(cut) = cut {
        bytes.truncate(cut.index(bytes.len()));
    }
    bytes
}

#[test]
fn the_inputs_make_sense() {
    assert!(
        answer_in(&message())
            .is_some_and(|(heard, ..)| heard.answer.len() == 2 && heard.authority.len() == 1)
    );
    for text in [ZONE, DENIALS, HASHED] {
        let zone = zone_of(text.as_bytes(), b"x A 192.0.2.9\n").unwrap_or_else(|error| panic!("{error}"));
        assert!(zone.nodes().count() > 2);
    }
}

const ANCHORS: &str = "\
; keys
valid . IN DS 20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D
pending 1803000000 a\\.b.example. IN DS 7 15 1 E06D44B80B8F1D39A95C0B0D7C65D08458E88040
missing a\\.b.example. IN DS 8 15 1 E06D44B80B8F1D39A95C0B0D7C65D08458E88040
revoked . IN DS 19036 8 2 49AAC11D7B6F6446702E54A1607371607A1A41855200FD2CE1CDDE32F24E8FB5
";

#[test]
fn the_anchors_make_sense() {
    assert_eq!(parse(ANCHORS).unwrap().iter().map(|zone| zone.keys().len()).collect::<Vec<_>>(), [2, 2]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn broken_messages_are_read(changes in vec((any::<Index>(), any::<u8>()), 0..6), cut in any::<Option<Index>>()) {
        messages(&changed(message(), &changes, cut));
    }

    #[test]
    fn broken_zones_are_read(changes in vec((any::<Index>(), any::<u8>()), 0..4), cut in any::<Option<Index>>()) {
        zone_files(&changed(ZONE.as_bytes().to_vec(), &changes, cut));
    }

    #[test]
    fn broken_anchor_files_are_read(changes in vec((any::<Index>(), any::<u8>()), 0..4), cut in any::<Option<Index>>()) {
        zone_files(&changed(ANCHORS.as_bytes().to_vec(), &changes, cut));
    }

    #[test]
    fn broken_proofs_are_read(
        which in any::<u8>(),
        is_hashed in any::<bool>(),
        changes in vec((any::<Index>(), any::<u8>()), 0..4),
    ) {
        let text = if is_hashed { HASHED } else { DENIALS };
        let changed = changed(text.as_bytes().to_vec(), &changes, None);
        denials(&[&[which], &changed[..]].concat());
    }
}
