//! Validation on a simulated Internet (`signed_internet.rs`).

use crate::common::*;
use crate::signed_internet::*;
use domain::base::Rtype;
use domain::base::iana::{ExtendedErrorCode, Rcode};
use selvedge::sim::{Conditions, World};
use selvedge_dns::dnssec::anchors::Anchors;
use selvedge_dns::record::{DomainName, ZoneRecord};
use selvedge_dns::resolve::Validator;
use selvedge_dns::wire::heard;
use selvedge_dns::zone::Zones;

#[selvedge::test(seeds = 0..10)]
async fn what_is_signed_is_authentic() {
    let server = internet();
    for (asked, rtype, records) in [
        ("www.example.org", Rtype::A, 2),
        ("www.edwards.org", Rtype::A, 1),
        ("alias.example.org", Rtype::A, 2),
        ("deep.empty.example.org", Rtype::MX, 1),
        ("any.wild.example.org", Rtype::A, 1),
        ("a.b.wild.edwards.org", Rtype::A, 1),
        // The redirection, the alias that follows from it, and what that leads to.
        ("www.moved.example.org", Rtype::A, 3),
        ("org", Rtype::NS, 1),
        ("example.org", Rtype::DS, 1),
        ("example.org", Rtype::DNSKEY, 2),
        (".", Rtype::SOA, 1),
    ] {
        assert_eq!(outcome(server, asked, rtype).await, (Rcode::NOERROR, true, records), "{asked}");
        // From the cache it is the same.
        assert_eq!(outcome(server, asked, rtype).await, (Rcode::NOERROR, true, records), "{asked}");
    }
}

#[selvedge::test(seeds = 0..10)]
async fn what_does_not_exist_is_proved() {
    let server = internet();
    for (asked, rtype, rcode, is_authentic) in [
        ("no.example.org", Rtype::A, Rcode::NXDOMAIN, true),
        ("a.b.no.example.org", Rtype::A, Rcode::NXDOMAIN, true),
        ("www.example.org", Rtype::AAAA, Rcode::NOERROR, true),
        ("empty.example.org", Rtype::A, Rcode::NOERROR, true),
        ("any.wild.example.org", Rtype::AAAA, Rcode::NOERROR, true),
        ("no.edwards.org", Rtype::A, Rcode::NXDOMAIN, true),
        ("www.edwards.org", Rtype::AAAA, Rcode::NOERROR, true),
        ("any.wild.edwards.org", Rtype::AAAA, Rcode::NOERROR, true),
        ("no", Rtype::A, Rcode::NXDOMAIN, true),
        ("www.example.org", Rtype::DS, Rcode::NOERROR, true),
        // The gap may have zones that are not signed, so it proves nothing about them.
        ("no.org", Rtype::A, Rcode::NXDOMAIN, false),
        ("unsigned.org", Rtype::DS, Rcode::NOERROR, false),
    ] {
        assert_eq!(outcome(server, asked, rtype).await, (rcode, is_authentic, 0), "{asked} {rtype}");
    }
    let redirected = outcome(server, "no.moved.example.org", Rtype::A).await;
    assert_eq!(redirected, (Rcode::NXDOMAIN, true, 2));
}

#[selvedge::test(seeds = 0..10)]
async fn what_is_not_signed_is_not_authentic() {
    let server = internet();
    for asked in ["www.unsigned.org", "www.island.org", "www.odd.org"] {
        assert_eq!(outcome(server, asked, Rtype::A).await, (Rcode::NOERROR, false, 1), "{asked}");
    }
    assert_eq!(outcome(server, "no.unsigned.org", Rtype::A).await, (Rcode::NXDOMAIN, false, 0));
    // Its names are hashed too often; what it has is signed all the same.
    assert_eq!(outcome(server, "www.slow.org", Rtype::A).await, (Rcode::NOERROR, true, 1));
    assert_eq!(outcome(server, "no.slow.org", Rtype::A).await, (Rcode::NXDOMAIN, false, 0));
}

#[selvedge::test(seeds = 0..10)]
async fn a_broken_chain_is_a_failure_with_a_reason() {
    let server = internet();
    for (asked, code) in [
        ("www.late.org", ExtendedErrorCode::SIGNATURE_EXPIRED),
        ("www.early.org", ExtendedErrorCode::SIGNATURE_NOT_YET_VALID),
        ("www.wrong.org", ExtendedErrorCode::DNSKEY_MISSING),
        ("no.wrong.org", ExtendedErrorCode::DNSKEY_MISSING),
    ] {
        assert_eq!(refusal(server, asked, Rtype::A).await, code, "{asked}");
    }
    // A client that validates itself gets what there is.
    let told = told(server, "www.wrong.org", Rtype::A, true).await.unwrap();
    assert_eq!((told.heard.rcode, told.is_authentic, told.heard.answer.len()), (Rcode::NOERROR, false, 2));
    assert_eq!(told.error, Some(ExtendedErrorCode::DNSKEY_MISSING));
}

#[selvedge::test(seeds = 0..5)]
async fn time_makes_signatures_void() {
    servers(|_, line| Some(line.into()));
    let server = resolver(Validator::by_clock(anchors(), 1 << 20, in_2037));
    assert_eq!(refusal(server, "www.example.org", Rtype::A).await, ExtendedErrorCode::SIGNATURE_EXPIRED);
}

#[selvedge::test(seeds = 0..5)]
async fn another_root_is_not_trusted() {
    servers(|_, line| Some(line.into()));
    let server = resolver(Validator::by_clock(Anchors::root(), 1 << 20, in_2027));
    assert_eq!(refusal(server, "www.example.org", Rtype::A).await, ExtendedErrorCode::DNSKEY_MISSING);
}

#[selvedge::test(seeds = 0..5)]
async fn changed_records_are_bogus() {
    let server = changed(|_, line| Some(line.replace("A 192.0.2.1", "A 192.0.2.66")));
    assert_eq!(refusal(server, "www.example.org", Rtype::A).await, ExtendedErrorCode::DNSSEC_BOGUS);
    assert_eq!(outcome(server, "deep.empty.example.org", Rtype::MX).await, (Rcode::NOERROR, true, 1));
    let server = changed_at_other_address(|_, line| Some(line.replace(" MX 10", " MX 20")));
    assert_eq!(outcome(server, "deep.empty.example.org", Rtype::MX).await.0, Rcode::SERVFAIL);
}

/// Records without signatures are no way around the signatures.
#[selvedge::test(seeds = 0..5)]
async fn a_downgrade_is_found() {
    let is_of_www = |line: &str| line.starts_with("www.example.org. 300 IN RRSIG A");
    let server = changed(|_, line| (!is_of_www(line)).then(|| line.into()));
    assert_eq!(refusal(server, "www.example.org", Rtype::A).await, ExtendedErrorCode::RRSIGS_MISSING);
}

#[selvedge::test(seeds = 0..5)]
async fn a_zone_without_signatures_is_found() {
    let is_proof =
        |line: &str| ["RRSIG", "NSEC", "DNSKEY"].iter().any(|word| line.contains(&format!(" IN {word}")));
    let server = changed(|origin, line| (origin != "example.org" || !is_proof(line)).then(|| line.into()));
    for asked in ["www.example.org", "no.example.org"] {
        let code = refusal(server, asked, Rtype::A).await;
        assert_eq!(code, ExtendedErrorCode::DNSKEY_MISSING, "{asked}");
    }
}

/// Without its DS record the zone would be insecure. The parent's proof says that there is one.
#[selvedge::test(seeds = 0..5)]
async fn a_missing_ds_record_is_found() {
    let is_ds = |line: &str| {
        line.starts_with("example.org. 300 IN DS") || line.starts_with("example.org. 300 IN RRSIG DS")
    };
    let server = changed(|_, line| (!is_ds(line)).then(|| line.into()));
    assert_eq!(refusal(server, "www.example.org", Rtype::A).await, ExtendedErrorCode::NSEC_MISSING);
    assert_eq!(outcome(server, "www.edwards.org", Rtype::A).await, (Rcode::NOERROR, true, 1));
}

/// A server that says of every name that it does not exist, with proofs of other names.
#[selvedge::test(seeds = 0..5)]
async fn a_proof_is_one_of_its_name() {
    let hides = |line: &str| line.starts_with("www.") && !line.contains("NSEC");
    let server = changed(|origin, line| (origin != "example.org" || !hides(line)).then(|| line.into()));
    let told = told(server, "www.example.org", Rtype::A, true).await.unwrap();
    assert_eq!(told.heard.rcode, Rcode::NOERROR, "the record of the name makes it a name");
    assert_eq!(refusal(server, "www.example.org", Rtype::A).await, ExtendedErrorCode::NSEC_MISSING);
    let hides = |line: &str| line.starts_with("www.");
    let server = changed_at_other_address(|_, line| (!hides(line)).then(|| line.into()));
    assert_eq!(refusal(server, "www.example.org", Rtype::A).await, ExtendedErrorCode::NSEC_MISSING);
}

#[selvedge::test(seeds = 0..5)]
async fn signatures_and_proofs_are_sent_to_clients_that_want_them() {
    let server = internet();
    let told = told(server, "any.wild.example.org", Rtype::A, false).await.unwrap();
    let has = |records: &[ZoneRecord], rtype| records.iter().any(|record| record.rtype() == rtype);
    assert!(has(&told.heard.answer, Rtype::RRSIG) && has(&told.heard.authority, Rtype::NSEC), "{told:?}");
    assert!(!has(&told.heard.authority, Rtype::SOA));
    let plain = ask(server, "any.wild.example.org", Rtype::A).await.unwrap();
    assert_eq!((plain.answer.len(), plain.authority.len()), (1, 0));
    let plain = ask(server, "no.example.org", Rtype::A).await.unwrap();
    assert_eq!((plain.authority.len(), plain.authority[0].rtype()), (1, Rtype::SOA));
    let denied = self::told(server, "no.example.org", Rtype::A, false).await.unwrap();
    assert!(has(&denied.heard.authority, Rtype::NSEC) && has(&denied.heard.authority, Rtype::SOA));
    // Without a wish for signatures, a client may still ask whether the answer was validated.
    let mut query = heard::question(9, &key("www.example.org"), Rtype::A, true, false);
    let ad = async |query: &[u8]| exchange("127.0.0.1:0", server, query).await.unwrap()[3] & 0x20 != 0;
    assert!(!ad(&query).await);
    query[3] |= 0x20;
    assert!(ad(&query).await);
}

#[selvedge::test(seeds = 0..5)]
async fn an_exempt_zone_is_not_validated() {
    servers(|_, line| Some(line.into()));
    let anchors =
        anchors().without(&name("late.org")).without(&DomainName::vec_from_str("WRONG.org").unwrap());
    let server = resolver(Validator::by_clock(anchors, 1 << 20, in_2027));
    assert_eq!(outcome(server, "www.late.org", Rtype::A).await, (Rcode::NOERROR, false, 1));
    assert_eq!(outcome(server, "www.wrong.org", Rtype::A).await, (Rcode::NOERROR, false, 1));
    assert_eq!(refusal(server, "www.early.org", Rtype::A).await, ExtendedErrorCode::SIGNATURE_NOT_YET_VALID);
}

/// A resolver that asks a resolver does not take its word.
#[selvedge::test(seeds = 0..5)]
async fn a_forwarder_validates_itself() {
    let upstream = internet();
    let validator = Validator::by_clock(anchors(), 1 << 20, in_2027);
    let resolver = forwarder(&[&upstream.to_string()]).validating(validator);
    let server = serve(settings(Zones::default(), Some(resolver)), "10.0.0.11:53");
    assert_eq!(outcome(server, "alias.example.org", Rtype::A).await, (Rcode::NOERROR, true, 2));
    assert_eq!(outcome(server, "no.edwards.org", Rtype::A).await, (Rcode::NXDOMAIN, true, 0));
    assert_eq!(outcome(server, "www.unsigned.org", Rtype::A).await, (Rcode::NOERROR, false, 1));
    assert_eq!(refusal(server, "www.late.org", Rtype::A).await, ExtendedErrorCode::SIGNATURE_EXPIRED);
}

/// On a network on which everything fails now and then, what is called authentic is right.
#[test]
fn nothing_wrong_is_authentic_on_a_bad_network() {
    let mut right_ones = 0;
    for seed in 0..30 {
        let world = World::new(seed).conditions(Conditions::bad());
        let ended = world.run(async {
            let server = internet();
            let mut right_ones = 0;
            for asked in ["www.example.org", "www.edwards.org", "no.example.org", "www.wrong.org"] {
                let Some(told) = told(server, asked, Rtype::A, false).await else { continue };
                match told.heard.rcode {
                    Rcode::SERVFAIL => assert!(!told.is_authentic),
                    rcode => {
                        let is_missing = asked.starts_with("no.");
                        assert_eq!(rcode == Rcode::NXDOMAIN, is_missing, "{asked}");
                        assert!(told.is_authentic && !asked.contains("wrong"), "{asked}: {told:?}");
                        right_ones += 1;
                    }
                }
            }
            right_ones
        });
        right_ones += ended.unwrap_or_else(|failed| panic!("{failed}")).output;
    }
    assert!(right_ones > 10, "{right_ones} of 90");
}

/// BIND's validator finds that the answers of this server, as an authority of all signed zones, are
/// right.
#[selvedge::test]
async fn delv_validates_what_the_authority_serves() {
    if std::process::Command::new("delv").arg("-v").output().is_err() {
        eprintln!("delv is not installed");
        return;
    }
    let mut all = Zones::default();
    for (origin, file, _) in ZONES {
        let text = std::fs::read_to_string(path(&format!("{file}.zone"))).unwrap();
        all.insert(of_text(origin, &text));
    }
    let server = serve(settings(all, None), "127.0.0.1:0");
    let ds = std::fs::read_to_string(path("root.ds")).unwrap();
    let fields: Vec<&str> = ds.split_whitespace().collect();
    let keys = format!(
        "trust-anchors {{ . static-ds {} {} {} \"{}\"; }};",
        fields[3],
        fields[4],
        fields[5],
        fields[6..].concat()
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, keys).unwrap();
    for (asked, rtype, word) in [
        ("www.example.org", "A", "; fully validated"),
        ("x.wild.example.org", "A", "; fully validated"),
        ("x.wild.edwards.org", "A", "; fully validated"),
        ("no.example.org", "A", "; negative response, fully validated"),
        ("no.edwards.org", "A", "; negative response, fully validated"),
        ("empty.example.org", "A", "; negative response, fully validated"),
        ("x.wild.example.org", "AAAA", "; negative response, fully validated"),
        ("www.edwards.org", "MX", "; negative response, fully validated"),
        ("www.island.org", "A", "; unsigned answer"),
    ] {
        let arguments = [
            "@127.0.0.1".into(),
            format!("-p{}", server.port()),
            format!("-a{}", file.path().display()),
            "+root=.".into(),
            asked.into(),
            rtype.into(),
        ];
        let run = move || std::process::Command::new("delv").args(arguments).output().unwrap();
        let output = selvedge::blocking(run).await.unwrap();
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(text.contains(word), "{asked} {rtype}: {text}");
    }
}
