//! A resolver that follows the keys of a root (RFC 5011), over weeks of a simulated world. BIND has
//! signed the root at each of its four stages (`signed/sign.sh`).

use crate::common::*;
use crate::signed_internet::{anchors_of, of_text, outcome, path, refusal, resolver, resolver_at};
use domain::base::Rtype;
use domain::base::iana::{ExtendedErrorCode, Rcode};
use selvedge::{Time, sleep};
use selvedge_dns::dnssec::anchor_file::AnchorFile;
use selvedge_dns::resolve::Validator;
use selvedge_dns::server::{Server, ZoneCell};
use selvedge_dns::zone::Zones;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The seconds since 1970 in the simulated world, which begins in 2027.
fn clock() -> u32 {
    1_800_000_000 + (Time::now().as_nanos() / 1_000_000_000) as u32
}

fn stage(number: u8) -> Arc<Zones> {
    let text = std::fs::read_to_string(path(&format!("roll{number}.zone"))).unwrap();
    let mut zones = Zones::default();
    zones.insert(of_text(".", &text));
    Arc::new(zones)
}

/// The root's server, with a cell of what it says.
fn root() -> ZoneCell {
    let server = Server::bind(settings(Zones::default(), None), &[address("10.0.0.1:53")]).unwrap();
    let zones = server.zones();
    *zones.lock().unwrap() = stage(1);
    drop(selvedge::spawn(server.serve()));
    zones
}

fn following(file: &Path) -> Validator {
    let anchors = anchors_of("roll.ds");
    let file = AnchorFile::open(file, &anchors).unwrap();
    Validator::by_clock(anchors, 1 << 20, clock).following(file)
}

async fn is_trusted(server: SocketAddr) -> bool {
    outcome(server, "www", Rtype::A).await == (Rcode::NOERROR, true, 1)
}

/// How many keys of the file have each state.
fn states(file: &Path) -> Vec<(String, usize)> {
    let text = std::fs::read_to_string(file).unwrap();
    let words = ["pending", "valid", "missing", "revoked"];
    let counted =
        words.map(|word| (word.to_string(), text.lines().filter(|line| line.starts_with(word)).count()));
    counted.into_iter().filter(|(_, count)| *count > 0).collect()
}

fn state(word: &str, count: usize) -> (String, usize) {
    (word.to_string(), count)
}

#[selvedge::test(seeds = 0..3)]
async fn a_root_replaces_its_key() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("keys");
    let said = root();
    let server = resolver(following(&file));
    sleep(DAY).await;
    assert!(is_trusted(server).await);
    assert_eq!(states(&file), [state("valid", 1)]);
    *said.lock().unwrap() = stage(2);
    sleep(29 * DAY).await;
    assert_eq!(states(&file), [state("pending", 1), state("valid", 1)]);
    sleep(3 * DAY).await;
    assert_eq!(states(&file), [state("valid", 2)]);
    *said.lock().unwrap() = stage(3);
    sleep(DAY).await;
    assert!(is_trusted(server).await);
    assert_eq!(states(&file), [state("valid", 1), state("revoked", 1)]);
    *said.lock().unwrap() = stage(4);
    sleep(DAY).await;
    assert!(is_trusted(server).await);
    // The root of the first stage is one of a thief now.
    *said.lock().unwrap() = stage(1);
    sleep(DAY).await;
    assert_eq!(refusal(server, "www", Rtype::A).await, ExtendedErrorCode::DNSKEY_MISSING);
}

#[selvedge::test(seeds = 0..3)]
async fn a_server_that_begins_again_knows_the_new_key() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("keys");
    let said = root();
    resolver(following(&file));
    sleep(DAY).await;
    *said.lock().unwrap() = stage(2);
    sleep(40 * DAY).await;
    *said.lock().unwrap() = stage(4);
    let copy = directory.path().join("copy");
    std::fs::copy(&file, &copy).unwrap();
    let again = resolver_at(following(&copy), "10.0.0.11:53");
    assert!(is_trusted(again).await);
    // Without the file it would not trust the root.
    let other = resolver_at(following(&directory.path().join("other")), "10.0.0.12:53");
    assert_eq!(refusal(other, "www", Rtype::A).await, ExtendedErrorCode::DNSKEY_MISSING);
}

#[selvedge::test(seeds = 0..3)]
async fn a_server_that_follows_nothing_is_left_behind() {
    let said = root();
    let server = resolver(Validator::by_clock(anchors_of("roll.ds"), 1 << 20, clock));
    assert!(is_trusted(server).await);
    *said.lock().unwrap() = stage(2);
    sleep(40 * DAY).await;
    assert!(is_trusted(server).await);
    *said.lock().unwrap() = stage(4);
    sleep(DAY).await;
    assert_eq!(refusal(server, "www", Rtype::A).await, ExtendedErrorCode::DNSKEY_MISSING);
}

#[selvedge::test(seeds = 0..3)]
async fn a_root_that_is_silent_is_asked_again() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("keys");
    let server = resolver(following(&file));
    sleep(2 * DAY).await;
    // There was no root so far.
    let said = root();
    sleep(DAY / 12).await;
    *said.lock().unwrap() = stage(2);
    sleep(DAY / 12).await;
    assert_eq!(states(&file), [state("pending", 1), state("valid", 1)]);
    assert!(is_trusted(server).await);
}
