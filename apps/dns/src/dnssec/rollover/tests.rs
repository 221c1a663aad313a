//! A zone `z` that replaces its key, by signatures that the tests make.

use super::*;
use crate::dnssec::signed::sets;
use crate::samples::signing::{Fields, NOW, RIGHT, pair_with, sign_by};
use crate::samples::{key, record};

/// A key that signs keys, and the flags of one that was given up.
const SEP: u16 = 257;
const GIVEN_UP: u16 = 257 | 128;

const DAY: u32 = 24 * 3600;

/// The zone's first key, which is trusted.
fn rollover() -> Rollover {
    let anchor = hash_of(DigestAlgorithm::SHA256, &key("z"), &pair_with(1, SEP).1).unwrap();
    Rollover::of_anchors(key("z"), &[anchor])
}

/// Shows these keys, each a number with flags, signed by some of them.
fn show(rollover: &mut Rollover, keys: &[(u8, u16)], signers: &[(u8, u16)], now: u32) -> Result<u32, Flaw> {
    let mut records: Vec<_> =
        keys.iter().map(|&(seed, flags)| record("z", Data::Dnskey(pair_with(seed, flags).1))).collect();
    let fields = Fields { labels: 1, from: NOW - 100, to: NOW + 400 * DAY, ..RIGHT };
    let signatures: Vec<_> = signers
        .iter()
        .map(|&(seed, flags)| sign_by(&pair_with(seed, flags), &records, "z", &fields))
        .collect();
    records.extend(signatures);
    rollover.observe(&sets(&records)[0], now, &mut Work::default())
}

/// The states, in the order in which the keys came.
fn states(rollover: &Rollover) -> Vec<KeyState> {
    rollover.keys().iter().map(|key| key.state).collect()
}

#[test]
fn a_new_key_is_trusted_after_thirty_days() {
    let mut zone = rollover();
    let both = [(1, SEP), (2, SEP), (9, 256)];
    let due = NOW + HOLD_DOWN;
    assert_eq!(show(&mut zone, &both, &[(1, SEP)], NOW), Ok(300));
    assert_eq!(states(&zone), [KeyState::Valid, KeyState::Pending(due)], "a key of data is none");
    assert_eq!(show(&mut zone, &both, &[(1, SEP)], due - 1), Ok(300));
    assert_eq!(states(&zone), [KeyState::Valid, KeyState::Pending(due)]);
    // The new key cannot vouch for itself.
    assert_eq!(show(&mut zone, &both, &[(2, SEP)], due), Err(Flaw::KeyMissing));
    assert_eq!(show(&mut zone, &both, &[(1, SEP)], due), Ok(300));
    assert_eq!(states(&zone), [KeyState::Valid, KeyState::Valid]);
    // From now on it can, also without the old one.
    assert_eq!(show(&mut zone, &[(2, SEP)], &[(2, SEP)], due + 1), Ok(300));
    assert_eq!(states(&zone), [KeyState::Missing, KeyState::Valid]);
    assert_eq!(show(&mut zone, &both, &[(1, SEP)], due + 2), Ok(300));
    assert_eq!(states(&zone), [KeyState::Valid, KeyState::Valid]);
}

#[test]
fn a_key_that_is_withdrawn_begins_anew() {
    let mut zone = rollover();
    show(&mut zone, &[(1, SEP), (2, SEP)], &[(1, SEP)], NOW).unwrap();
    show(&mut zone, &[(1, SEP)], &[(1, SEP)], NOW + 29 * DAY).unwrap();
    assert_eq!(states(&zone), [KeyState::Valid]);
    show(&mut zone, &[(1, SEP), (2, SEP)], &[(1, SEP)], NOW + 31 * DAY).unwrap();
    assert_eq!(states(&zone), [KeyState::Valid, KeyState::Pending(NOW + 61 * DAY)]);
}

#[test]
fn a_key_that_is_given_up_is_never_trusted_again() {
    let mut zone = rollover();
    show(&mut zone, &[(1, SEP), (2, SEP)], &[(1, SEP)], NOW).unwrap();
    let later = NOW + 31 * DAY;
    show(&mut zone, &[(1, SEP), (2, SEP)], &[(1, SEP)], later).unwrap();
    // Another key cannot give it up, because its own signature is missing.
    show(&mut zone, &[(1, GIVEN_UP), (2, SEP)], &[(2, SEP)], later).unwrap();
    assert_eq!(states(&zone), [KeyState::Missing, KeyState::Valid]);
    show(&mut zone, &[(1, GIVEN_UP), (2, SEP)], &[(1, GIVEN_UP), (2, SEP)], later).unwrap();
    assert_eq!(states(&zone), [KeyState::Revoked, KeyState::Valid]);
    assert_eq!(zone.trusted().len(), 1);
    show(&mut zone, &[(1, SEP), (2, SEP)], &[(1, SEP), (2, SEP)], later + DAY).unwrap();
    assert_eq!(show(&mut zone, &[(1, SEP)], &[(1, SEP)], later + 90 * DAY), Err(Flaw::KeyMissing));
    assert_eq!(states(&zone)[0], KeyState::Revoked);
}

#[test]
fn a_zone_may_give_its_last_key_up() {
    let mut zone = rollover();
    let given_up = [(1, GIVEN_UP)];
    assert_eq!(show(&mut zone, &given_up, &given_up, NOW), Err(Flaw::KeyMissing));
    assert_eq!((states(&zone), zone.trusted().len()), (vec![KeyState::Revoked], 0));
}

#[test]
fn what_no_trusted_key_has_signed_changes_nothing() {
    let mut zone = rollover();
    let before = zone.clone();
    for signers in [&[][..], &[(2, SEP)], &[(1, 256)]] {
        assert!(show(&mut zone, &[(1, SEP), (2, SEP)], signers, NOW).is_err());
        assert!(show(&mut zone, &[(2, SEP), (2, GIVEN_UP)], signers, NOW).is_err());
    }
    assert_eq!(zone, before);
}

#[test]
fn announced_keys_are_bounded() {
    let mut zone = rollover();
    let many: Vec<(u8, u16)> = (1..40).map(|seed| (seed, SEP)).collect();
    show(&mut zone, &many, &[(1, SEP)], NOW).unwrap();
    assert_eq!(states(&zone).len(), 1 + KEYS_MAX);
}
