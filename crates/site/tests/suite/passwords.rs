//! Hashes that other programs have made.

use selvedge_site::password::Users;

/// The first is of `openssl passwd -6 -salt saltsalt secret`, the second of `-5`.
#[test]
fn hashes_of_other_programs() {
    let text = "six:SIX\nfive:FIVE\n";
    let users = Users::read(
        &text.replace("SIX", include_str!("six.txt").trim()).replace("FIVE", include_str!("five.txt").trim()),
    );
    let users = users.unwrap();
    for name in ["six", "five"] {
        assert!(users.verify(name, b"secret"), "{name}");
        assert!(!users.verify(name, b"Secret") && !users.verify(name, b""), "{name}");
    }
    assert!(!users.verify("nosuch", b"secret"));
}
