//! Answers from a small zone, as dig would show them.

use super::*;
use crate::zone::file;
use std::io::Write;

const ZONE: &str = "\
$TTL 3600
@ IN SOA ns hostmaster 7 7200 3600 1209600 60
@ NS ns
@ NS ns.elsewhere.net.
ns A 192.0.2.1
WWW A 192.0.2.2
WWW A 192.0.2.3
alias CNAME www
chain CNAME alias
out CNAME www.elsewhere.net.
circle CNAME elcric
elcric CNAME circle
gone CNAME nothing
lost CNAME host.child
*.wild TXT \"any\"
child NS ns.child
child NS ns2.elsewhere.net.
ns.child A 192.0.2.9
ns.child AAAA 2001:db8::9
child DS 1 8 2 0000000000000000000000000000000000000000000000000000000000000000
deep.empty A 192.0.2.4
moved DNAME @
moved TXT \"beside\"
away DNAME elsewhere.net.
turn DNAME turn
far DNAME a.much.longer.name.elsewhere.net.
";

fn zones() -> Zones {
    let mut path = tempfile::NamedTempFile::new().unwrap();
    path.write_all(ZONE.as_bytes()).unwrap();
    let mut zones = Zones::default();
    zones.insert(file::read(&name("example.org"), path.path()).unwrap());
    zones
}

fn name(text: &str) -> DomainName {
    DomainName::vec_from_str(text).unwrap()
}

/// The answer in lines: the code with flags, and each section's records.
fn asked(question: &str, rtype: Rtype) -> (String, Option<String>) {
    let Authority { answer, rest } = answer(&zones(), &name(question), rtype, true).unwrap();
    let mut lines = format!("{}{}\n", answer.rcode, if answer.is_authoritative { " aa" } else { "" });
    for (section, records) in
        [("", &answer.answer), ("auth ", &answer.authority), ("add ", &answer.additional)]
    {
        for record in records {
            let line = format!(
                "{section}{} {} {} {}\n",
                record.owner(),
                record.ttl().as_secs(),
                record.rtype(),
                record.data()
            );
            lines += &line;
        }
    }
    (lines, rest.map(|rest| rest.to_string()))
}

const SOA: &str = "auth example.org 60 SOA ns.example.org. hostmaster.example.org. 7 7200 3600 1209600 60\n";

#[test]
fn records_have_the_name_as_it_was_asked() {
    let (lines, rest) = asked("wWw.example.ORG", Rtype::A);
    assert_eq!(lines, "NOERROR aa\nwWw.example.ORG 3600 A 192.0.2.2\nwWw.example.ORG 3600 A 192.0.2.3\n");
    assert_eq!(rest, None);
}

#[test]
fn aliases_are_followed_in_the_zone() {
    let (lines, _) = asked("chain.example.org", Rtype::A);
    assert_eq!(
        lines,
        "NOERROR aa\n\
         chain.example.org 3600 CNAME alias.example.org.\n\
         alias.example.org 3600 CNAME www.example.org.\n\
         www.example.org 3600 A 192.0.2.2\n\
         www.example.org 3600 A 192.0.2.3\n"
    );
    let (lines, _) = asked("chain.example.org", Rtype::CNAME);
    assert_eq!(lines, "NOERROR aa\nchain.example.org 3600 CNAME alias.example.org.\n");
    let (lines, rest) = asked("out.example.org", Rtype::A);
    assert_eq!(lines, "NOERROR aa\nout.example.org 3600 CNAME www.elsewhere.net.\n");
    assert_eq!(rest.as_deref(), Some("www.elsewhere.net"));
    let (lines, _) = asked("circle.example.org", Rtype::A);
    assert_eq!(lines.lines().count(), 3, "{lines}");
    let (lines, _) = asked("gone.example.org", Rtype::A);
    assert_eq!(lines, format!("NXDOMAIN aa\ngone.example.org 3600 CNAME nothing.example.org.\n{SOA}"));
}

#[test]
fn a_wildcard_takes_the_name_that_was_asked() {
    let (lines, _) = asked("a.b.wild.example.org", Rtype::TXT);
    assert_eq!(lines, "NOERROR aa\na.b.wild.example.org 3600 TXT \"any\"\n");
    assert_eq!(asked("a.b.wild.example.org", Rtype::A).0, format!("NOERROR aa\n{SOA}"));
    assert_eq!(asked("wild.example.org", Rtype::TXT).0, format!("NOERROR aa\n{SOA}"));
}

#[test]
fn what_is_not_there_is_told_with_the_soa() {
    assert_eq!(asked("nothing.example.org", Rtype::A).0, format!("NXDOMAIN aa\n{SOA}"));
    assert_eq!(asked("www.example.org", Rtype::AAAA).0, format!("NOERROR aa\n{SOA}"));
    assert_eq!(asked("empty.example.org", Rtype::A).0, format!("NOERROR aa\n{SOA}"));
    assert_eq!(asked("other.empty.example.org", Rtype::A).0, format!("NXDOMAIN aa\n{SOA}"));
}

#[test]
fn a_delegation_has_glue_and_is_no_authority() {
    let referral = "auth child.example.org 3600 NS ns.child.example.org.\n\
                    auth child.example.org 3600 NS ns2.elsewhere.net.\n\
                    add ns.child.example.org 3600 A 192.0.2.9\n\
                    add ns.child.example.org 3600 AAAA 2001:db8::9\n";
    for (question, rtype) in [
        ("host.child.example.org", Rtype::A),
        ("child.example.org", Rtype::NS),
        ("ns.child.example.org", Rtype::A),
    ] {
        let (lines, rest) = asked(question, rtype);
        assert_eq!((lines, rest.as_deref()), (format!("NOERROR\n{referral}"), Some(question)));
    }
    assert!(asked("child.example.org", Rtype::DS).0.starts_with("NOERROR aa\nchild.example.org 3600 DS"));
    let (lines, rest) = asked("lost.example.org", Rtype::A);
    assert_eq!(lines, format!("NOERROR aa\nlost.example.org 3600 CNAME host.child.example.org.\n{referral}"));
    assert_eq!(rest.as_deref(), Some("host.child.example.org"));
}

#[test]
fn a_redirection_makes_an_alias_of_each_name_below() {
    let (lines, rest) = asked("Www.moved.example.org", Rtype::A);
    assert_eq!(
        lines,
        "NOERROR aa\n\
         moved.example.org 3600 DNAME example.org.\n\
         Www.moved.example.org 3600 CNAME Www.example.org.\n\
         Www.example.org 3600 A 192.0.2.2\n\
         Www.example.org 3600 A 192.0.2.3\n"
    );
    assert_eq!(rest, None);
    let (lines, rest) = asked("a.b.away.example.org", Rtype::A);
    assert!(lines.ends_with("\na.b.away.example.org 3600 CNAME a.b.elsewhere.net.\n"), "{lines}");
    assert_eq!(rest.as_deref(), Some("a.b.elsewhere.net"));
    // The alias itself can be asked for, and the node has records of its own.
    let (lines, rest) = asked("www.moved.example.org", Rtype::CNAME);
    assert_eq!((lines.lines().count(), rest), (3, None), "{lines}");
    assert_eq!(
        asked("moved.example.org", Rtype::TXT).0,
        "NOERROR aa\nmoved.example.org 3600 TXT \"beside\"\n"
    );
    let (lines, _) = asked("moved.example.org", Rtype::DNAME);
    assert_eq!(lines, "NOERROR aa\nmoved.example.org 3600 DNAME example.org.\n");
    assert_eq!(asked("moved.example.org", Rtype::A).0, format!("NOERROR aa\n{SOA}"));
    let (lines, _) = asked("no.moved.example.org", Rtype::A);
    assert!(lines.starts_with("NXDOMAIN aa\nmoved.") && lines.ends_with(SOA), "{lines}");
}

#[test]
fn a_redirection_ends() {
    // `turn` leads to itself: each alias is one that was passed.
    let (lines, rest) = asked("www.turn.example.org", Rtype::A);
    assert_eq!((lines.lines().count(), rest), (3, None), "{lines}");
    let label = "a".repeat(63);
    let long = format!("{label}.{label}.{label}.{}.moved.example.org", "b".repeat(43));
    let (lines, _) = asked(&long, Rtype::A);
    assert!(lines.starts_with("NXDOMAIN aa\nmoved."), "{lines}");
    let long = format!("{label}.{label}.{label}.{}.far.example.org", "b".repeat(43));
    let (lines, _) = asked(&long, Rtype::A);
    let redirection = "far.example.org 3600 DNAME a.much.longer.name.elsewhere.net.";
    assert_eq!(lines, format!("YXDOMAIN aa\n{redirection}\n"));
}

#[test]
fn any_gets_one_record() {
    let (lines, _) = asked("www.example.org", Rtype::ANY);
    assert_eq!(lines, "NOERROR aa\nwww.example.org 3789 HINFO \"RFC8482\" \"\"\n");
    assert_eq!(asked("nothing.example.org", Rtype::ANY).0, format!("NXDOMAIN aa\n{SOA}"));
    assert_eq!(asked("empty.example.org", Rtype::ANY).0, format!("NOERROR aa\n{SOA}"));
}

#[test]
fn other_zones_are_not_ours() {
    assert!(answer(&zones(), &name("example.com"), Rtype::A, true).is_none());
    assert!(answer(&zones(), &name("org"), Rtype::A, true).is_none());
}
