//! Zone files in RFC 1035's format, and what is said of wrong ones.

use crate::common::*;
use domain::base::Rtype;
use selvedge_dns::record::{DomainName, NameKey};
use selvedge_dns::zone::file::{self, ZoneErrorKind};
use selvedge_dns::zone::{Found, RecordError, Zone};
use std::path::Path;

fn found(zone: &Zone, asked: &DomainName, rtype: Rtype) -> Vec<String> {
    match zone.find(&NameKey::new(asked), rtype) {
        Found::Records(set) => set.data.iter().map(|data| format!("{} {data}", set.ttl.as_secs())).collect(),
        other => panic!("{asked} {rtype}: {other:?}"),
    }
}

#[test]
fn the_format_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let main = directory.path().join("main.zone");
    let text = "\
; a comment
$TTL 3600
@       IN SOA  ns.example.org. host (
                2026112701      ; the serial number
                7200 3600 1209600
                300 )
        NS      ns
        60 IN MX 10 mail.example.net.
ns      IN 120 A 192.0.2.1
        AAAA    2001:db8::1
\"quoted\" TXT  \"two words\" single \"a ; b\" \\100ecimal
$ORIGIN sub.example.org.
@       A       192.0.2.2
www     A       192.0.2.3
$INCLUDE more/hosts inner
after   A       192.0.2.5
a\\;\\ b   A       192.0.2.7
        A       192.0.2.8
odd     TYPE65280 \\# 3 0a0b0c
time    1h30m IN A 192.0.2.9
same    CNAME   @
last    A       192.0.2.6
$TTL 1d
long    TXT     @";
    std::fs::write(&main, text).unwrap();
    std::fs::create_dir(directory.path().join("more")).unwrap();
    std::fs::write(directory.path().join("more/hosts"), "host A 192.0.2.4\n").unwrap();
    let zone = file::read(&name("example.org"), &main).unwrap_or_else(|error| panic!("{error}"));
    let of = |asked: &str, rtype| found(&zone, &name(asked), rtype);
    assert_eq!(
        of("example.org", Rtype::SOA),
        ["3600 ns.example.org. host.example.org. 2026112701 7200 3600 1209600 300"]
    );
    assert_eq!(of("example.org", Rtype::MX), ["60 10 mail.example.net."]);
    assert_eq!(of("ns.example.org", Rtype::A), ["120 192.0.2.1"]);
    assert_eq!(of("ns.example.org", Rtype::AAAA), ["3600 2001:db8::1"]);
    assert_eq!(of("quoted.example.org", Rtype::TXT), ["3600 \"two words\" \"single\" \"a ; b\" \"decimal\""]);
    assert_eq!(of("sub.example.org", Rtype::A), ["3600 192.0.2.2"]);
    assert_eq!(of("www.sub.example.org", Rtype::A), ["3600 192.0.2.3"]);
    assert_eq!(of("host.inner.sub.example.org", Rtype::A), ["3600 192.0.2.4"]);
    assert_eq!(of("after.sub.example.org", Rtype::A), ["3600 192.0.2.5"]);
    assert_eq!(of("a\\;\\ b.sub.example.org", Rtype::A), ["3600 192.0.2.7", "3600 192.0.2.8"]);
    assert_eq!(of("time.sub.example.org", Rtype::A), ["5400 192.0.2.9"]);
    assert_eq!(of("same.sub.example.org", Rtype::CNAME), ["3600 sub.example.org."]);
    assert_eq!(of("long.sub.example.org", Rtype::TXT), ["86400 \"@\""]);
    assert_eq!(of("odd.sub.example.org", Rtype::from_int(65_280)), ["3600 \\# 3 0a 0b 0c"]);
    assert_eq!(of("last.sub.example.org", Rtype::A), ["3600 192.0.2.6"]);
}

#[test]
fn without_a_directive_the_ttl_is_the_last_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("zone");
    let text = "@ SOA ns host 1 2 3 4 5\n@ 60 NS ns\na A 192.0.2.1\n\tTXT \"a\"\n$TTL 7\nb 9 A 192.0.2.1\nc A 192.0.2.1\n";
    std::fs::write(&path, text).unwrap();
    let zone = file::read(&name("."), &path).unwrap_or_else(|error| panic!("{error}"));
    let of = |asked: &str, rtype| found(&zone, &name(asked), rtype)[0].split(' ').next().unwrap().to_string();
    assert_eq!([of(".", Rtype::SOA), of(".", Rtype::NS)], ["3600", "60"]);
    assert_eq!([of("a", Rtype::A), of("a", Rtype::TXT)], ["60", "60"]);
    assert_eq!([of("b", Rtype::A), of("c", Rtype::A)], ["9", "7"]);
}

const TOP: &str = "@ SOA ns host 1 2 3 4 5\n@ NS ns\n";

/// The message about a wrong file of the zone example.org, behind the file's name.
fn refused(text: &str) -> (String, ZoneErrorKind) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("wrong");
    std::fs::write(&path, text).unwrap();
    std::fs::write(directory.path().join("circle"), "$INCLUDE circle\n").unwrap();
    let error = file::read(&name("example.org"), &path).unwrap_err();
    let message = error.to_string();
    let place = directory.path().to_string_lossy().into_owned() + "/";
    let message = message.strip_prefix(&place).unwrap_or_else(|| panic!("{message}"));
    let kind = match error.kind() {
        ZoneErrorKind::Unreadable(error) => ZoneErrorKind::Unreadable(error.kind().into()),
        ZoneErrorKind::Syntax(text) => ZoneErrorKind::Syntax(text.clone()),
        ZoneErrorKind::RecordError(misfit, name) => ZoneErrorKind::RecordError(*misfit, name.clone()),
        ZoneErrorKind::TooDeep => ZoneErrorKind::TooDeep,
        ZoneErrorKind::Without(rtype) => ZoneErrorKind::Without(*rtype),
        other => panic!("{other:?}"),
    };
    (message.to_string(), kind)
}

#[test]
fn what_is_wrong_has_a_file_and_a_line() {
    for (text, start) in [
        ("www A 192.0.2.256\n", "wrong:3:"),
        ("\nwww B 192.0.2.1\n", "wrong:4:"),
        ("www A 192.0.2.1 192.0.2.2\n", "wrong:3:"),
        ("a TXT \"open\nb A 192.0.2.1\n", "wrong:3:"),
        ("www CH A 192.0.2.1\n", "wrong:3:"),
        ("$GENERATE 1-9 a$ A 192.0.2.$\n", "wrong:3:"),
        ("www A (\n\n192.0.2.256 )\nx A 192.0.2.1\n", "wrong:5:"),
        ("www A (\n192.0.2.1\n", "wrong:"),
        ("$TTL soon\nwww A 192.0.2.1\n", "wrong:3:"),
        ("$ORIGIN a b\n", "wrong:3:"),
        ("a..b A 192.0.2.1\n", "wrong:3: a name has an empty label"),
        ("www A 192.0.2.1\nalias CNAME a..b\n", "wrong:4: a name has an empty label"),
        ("@ MX 10 mail..\n", "wrong:3: a name has an empty label"),
    ] {
        let (message, kind) = refused(&format!("{TOP}{text}"));
        assert!(matches!(kind, ZoneErrorKind::Syntax(_)), "{text}: {kind:?}");
        assert!(message.starts_with(start), "{text}: {message}");
    }
}

#[test]
fn a_record_that_does_not_fit_has_a_line() {
    for (text, misfit, message) in [
        (
            "a A 192.0.2.1\nexample.com. A 192.0.2.1\n",
            RecordError::Outside,
            "wrong:4: example.com. is not in the zone",
        ),
        (
            "a SOA ns host 1 2 3 4 5\n",
            RecordError::SoaBelow,
            "wrong:3: a.example.org. has an SOA record, and is not the zone's own name",
        ),
        ("@ SOA ns host 2 2 3 4 5\n", RecordError::SecondSoa, "wrong:3: example.org. has two SOA records"),
        (
            "a A 192.0.2.1\n\na CNAME b\nc A 192.0.2.1\n",
            RecordError::BesideAlias,
            "wrong:5: a.example.org. has a CNAME record and another record",
        ),
    ] {
        let (said, kind) = refused(&format!("{TOP}{text}"));
        assert!(matches!(kind, ZoneErrorKind::RecordError(kind, _) if kind == misfit), "{text}: {kind:?}");
        assert_eq!(said, message);
    }
}

#[test]
fn a_zone_that_is_not_whole_is_refused() {
    let said = |text: &str| refused(text).0;
    assert_eq!(said("@ NS ns\n"), "wrong: the zone's own name has no SOA record");
    assert_eq!(said("@ SOA ns host 1 2 3 4 5\n"), "wrong: the zone's own name has no NS record");
    assert_eq!(said(&format!("{TOP}$INCLUDE circle\n")), "circle: $INCLUDE goes deeper than 8 files");
    let missing = said(&format!("{TOP}$INCLUDE missing\n"));
    assert!(missing.starts_with("missing: "), "{missing}");
    let error = file::read(&name("example.org"), Path::new("/missing/zone")).unwrap_err();
    assert!(error.to_string().starts_with("/missing/zone: "), "{error}");
    assert_eq!(error.line(), None);
}
