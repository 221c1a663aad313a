//! Signatures and hashes, by ring: [`verify`], [`digest`], [`nsec3_hash`].
//!
//! RFC 8624 asks a validator for these algorithms, and for Ed448, which ring does not have. What is
//! signed with SHA-1 alone counts as not signed, as for other resolvers of today.

use domain::base::iana::{DigestAlgorithm, SecurityAlgorithm};
use domain::rdata::Dnskey;
use ring::digest::{Algorithm, Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA384};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519,
    RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY, RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY,
    RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};

/// Whether signatures of an algorithm can be checked.
pub fn is_supported(algorithm: SecurityAlgorithm) -> bool {
    matches!(
        algorithm,
        SecurityAlgorithm::RSASHA256
            | SecurityAlgorithm::RSASHA512
            | SecurityAlgorithm::ECDSAP256SHA256
            | SecurityAlgorithm::ECDSAP384SHA384
            | SecurityAlgorithm::ED25519
    )
}

/// Whether a signature of some bytes was made with the private half of a key.
pub fn verify(key: &Dnskey<Vec<u8>>, message: &[u8], signature: &[u8]) -> bool {
    let public = key.public_key();
    match key.algorithm() {
        SecurityAlgorithm::RSASHA256 => {
            by_rsa(&RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY, public, message, signature)
        }
        SecurityAlgorithm::RSASHA512 => {
            by_rsa(&RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY, public, message, signature)
        }
        // ring wants the mark of an uncompressed point, which DNSSEC leaves out (RFC 6605 §4).
        SecurityAlgorithm::ECDSAP256SHA256 => {
            by_curve(&ECDSA_P256_SHA256_FIXED, &[b"\x04", &public[..]].concat(), message, signature)
        }
        SecurityAlgorithm::ECDSAP384SHA384 => {
            by_curve(&ECDSA_P384_SHA384_FIXED, &[b"\x04", &public[..]].concat(), message, signature)
        }
        SecurityAlgorithm::ED25519 => by_curve(&ED25519, public, message, signature),
        _ => false,
    }
}

fn by_curve(
    algorithm: &'static dyn VerificationAlgorithm,
    key: &[u8],
    message: &[u8],
    signature: &[u8],
) -> bool {
    UnparsedPublicKey::new(algorithm, key).verify(message, signature).is_ok()
}

/// The key is an exponent behind its length, and then the modulus (RFC 3110 §2).
fn by_rsa(parameters: &'static RsaParameters, key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    let (length, rest) = match key {
        [0, high, low, rest @ ..] => (usize::from(u16::from_be_bytes([*high, *low])), rest),
        [length, rest @ ..] => (usize::from(*length), rest),
        [] => return false,
    };
    let Some((e, n)) = rest.split_at_checked(length) else { return false };
    RsaPublicKeyComponents { n, e }.verify(parameters, message, signature).is_ok()
}

/// The hash of some bytes, as the DS record of a parent has it. `None` if the kind is not
/// supported.
pub fn digest(kind: DigestAlgorithm, parts: &[&[u8]]) -> Option<Vec<u8>> {
    let algorithm = match kind {
        DigestAlgorithm::SHA1 => &SHA1_FOR_LEGACY_USE_ONLY,
        DigestAlgorithm::SHA256 => &SHA256,
        DigestAlgorithm::SHA384 => &SHA384,
        _ => return None,
    };
    Some(hash(algorithm, parts))
}

/// The hash of a name in an NSEC3 record: SHA-1 of the name and the salt, and then of the hash and
/// the salt as many times as `iterations` says (RFC 5155 §5).
pub fn nsec3_hash(name: &[u8], salt: &[u8], iterations: u16) -> Vec<u8> {
    let first = hash(&SHA1_FOR_LEGACY_USE_ONLY, &[name, salt]);
    (0..iterations).fold(first, |before, _| hash(&SHA1_FOR_LEGACY_USE_ONLY, &[&before, salt]))
}

fn hash(algorithm: &'static Algorithm, parts: &[&[u8]]) -> Vec<u8> {
    let mut context = Context::new(algorithm);
    parts.iter().for_each(|part| context.update(part));
    context.finish().as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{DomainName, NameKey};
    use domain::utils::{base32, base64};

    /// Hashes of RFC 5155, Appendix A.
    #[test]
    fn names_are_hashed_as_the_rfc_does() {
        for (name, expected) in [
            ("example", "0P9MHAVEQVM6T7VBL5LOP2U3T2RP3TOM"),
            ("a.example", "35MTHGPGCU1QG68FAB165KLNSNK3DPVL"),
            ("*.w.example", "R53BQ7CC2UVMUBFU5OCMM6PERS9TK9EN"),
        ] {
            let key = NameKey::new(&DomainName::vec_from_str(name).unwrap());
            let hash = nsec3_hash(key.as_bytes(), &[0xaa, 0xbb, 0xcc, 0xdd], 12);
            assert_eq!(base32::encode_string_hex(&hash), expected, "{name}");
        }
    }

    /// Keys and signatures of lengths that no algorithm has.
    #[test]
    fn nonsense_is_no_signature() {
        for algorithm in [5, 8, 10, 13, 14, 15, 16, 200].map(SecurityAlgorithm::from_int) {
            for key in [&b""[..], b"\0", b"\0\0\0", b"\xff\x01", b"\x01\x03\xff", &[7; 32], &[7; 64]] {
                let key = Dnskey::new(256, 3, algorithm, key.to_vec()).unwrap();
                assert!(!verify(&key, b"message", &[1; 64]) && !verify(&key, b"", b""), "{key}");
            }
        }
    }

    /// The key and the digest of RFC 4509 §2.3, where the names' form on the wire is hashed too.
    #[test]
    fn a_digest_is_that_of_the_rfc() {
        let text = "AQOeiiR0GOMYkDshWoSKz9XzfwJr1AYtsmx3TGkJaNXVbfi/2pHm822aJ5iI9BMzNXxeYCmZDRD99WYwYqUSdjMmmAphXdvx\
            egXd/M5+X7OrzKBaMbCVdFLUUh6DhweJBjEVv5f2wwjM9XzcnOf+EPbtG9DMBmADjFDc2w/rljwvFw==";
        let key: Vec<u8> = base64::decode(text).unwrap();
        let owner = NameKey::new(&DomainName::vec_from_str("dskey.example.com").unwrap());
        let data = [&[1, 0, 3, 5], &key[..]].concat();
        let found = digest(DigestAlgorithm::SHA256, &[owner.as_bytes(), &data]).unwrap();
        let hexadecimal: String = found.iter().map(|byte| format!("{byte:02X}")).collect();
        assert_eq!(hexadecimal, "D4B7D520E7BB5F0F67674A0CCEB1E3E0614B93C4F9E99B8383F6A1E4469DA50A");
        assert_eq!(digest(DigestAlgorithm::GOST, &[]), None);
    }
}
