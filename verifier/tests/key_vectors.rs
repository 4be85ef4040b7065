//! Key files in the forms that tools write, and signatures by the strict rules.
//!
//! `ed25519.jsonl` holds the vectors of RFC 8032 7.1 and those of "Taming the many EdDSAs"
//! (Chalkias, Garillot, Nikolaenko 2020, numbered as published by ed25519-speccheck).
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;

use support::string;
use waybill_verifier::json;
use waybill_verifier::key::{Fingerprint, KeyError, PrivateKey, PublicKey, Refused};

/// RFC 8410 10.3.
const V1: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC
-----END PRIVATE KEY-----
";
/// RFC 8410 10.3: with attributes, and the public key.
const V2: &str = "-----BEGIN PRIVATE KEY-----
MHICAQEwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC
oB8wHQYKKoZIhvcNAQkJFDEPDA1DdXJkbGUgQ2hhaXJzgSEAGb9ECWmEzf6FQbrB
Z9w7lshQhqowtrbLDFw4rXAxZuE=
-----END PRIVATE KEY-----
";
/// RFC 8410 10.1: the public key of both.
const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=
-----END PUBLIC KEY-----
";
const X25519_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----
MCowBQYDK2VuAyEAwJ4uOSxCNM6rv/LBbSOt8V3yqPLiA2Wzf7ECNqSvUwg=
-----END PUBLIC KEY-----
";
const X25519_PRIVATE: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VuBCIEINho7SajUEyrXn5vFa3sWhFTKibsY8VGv2qsLDJ1df5y
-----END PRIVATE KEY-----
";
const EC_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEPV35TioD2+auVcM0VRakrGixi/oq
tUPVxeVP74gXJCvO4LDxdrgCsD/pJ2HJqKTfRVQz+i9v3sM7N7hdkzZe/A==
-----END PUBLIC KEY-----
";
const RSA_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDhqB/8a9/ZNXnr/LJKispg4IG8
8XZJc7eG1TvQ/+IfC0VQI/zPblccja8dKez2e6mtIvnNi4Hbk/smxoaLtOLWffAU
jvql16WlbWBUxMyAqWy5YQ/bqL7BAJaFQ1VtuzzmWuTKceiw7zfzJYWWfiso6YTX
srG42rwqTEgDGQut3QIDAQAB
-----END PUBLIC KEY-----
";

fn sloppy_forms(pem: &str) -> Vec<Vec<u8>> {
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let label = pem.lines().next().unwrap().trim_matches('-').trim_start_matches("BEGIN ");
    let wrapped = |width: usize| {
        let lines: Vec<_> =
            body.as_bytes().chunks(width).map(|line| std::str::from_utf8(line).unwrap()).collect();
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
    };
    vec![
        pem.into(),
        pem.replace('\n', "\r\n").into(),
        format!("\u{feff}{pem}").into(),
        format!("\u{feff}\r\n\r\n{}", pem.replace('\n', "\r\n")).into(),
        format!("{pem}\n\n \t\n").into(),
        pem.trim_end().into(),
        wrapped(10).into(),
        wrapped(1000).into(),
    ]
}

#[test]
fn key_files_are_read_in_every_form_that_tools_write() {
    let public = PublicKey::from_file(PUBLIC.as_bytes()).unwrap();
    for pem in [V1, V2] {
        for form in sloppy_forms(pem) {
            assert_eq!(
                PrivateKey::from_file(&form).unwrap().public(),
                public,
                "{}",
                String::from_utf8_lossy(&form)
            );
        }
    }
    for form in sloppy_forms(PUBLIC) {
        assert_eq!(PublicKey::from_file(&form), Ok(public));
    }
    assert_eq!(public.to_pem(), PUBLIC);
    assert_eq!(PrivateKey::from_file(V2.as_bytes()).unwrap().to_pem().as_str(), V1);
}

#[test]
fn inside_a_receipt_only_one_form_is_a_key() {
    assert_eq!(PublicKey::from_exact_pem(PUBLIC).unwrap().to_pem(), PUBLIC);
    for form in sloppy_forms(PUBLIC) {
        let form = String::from_utf8(form).unwrap();
        if form != PUBLIC {
            assert_eq!(PublicKey::from_exact_pem(&form), Err(KeyError::NotExact), "{form:?}");
        }
    }
    let around = format!("Verified signer: the boss\n{PUBLIC}");
    assert_eq!(PublicKey::from_exact_pem(&around), Err(KeyError::TextAround));
    assert_eq!(PublicKey::from_exact_pem(X25519_PUBLIC), Err(KeyError::OtherKey("an X25519 key")));
    for at in 0..PUBLIC.len() {
        let mut changed = PUBLIC.as_bytes().to_vec();
        changed[at] ^= 1;
        let read = String::from_utf8(changed).ok().and_then(|pem| PublicKey::from_exact_pem(&pem).ok());
        assert!(read.is_none_or(|key| key.to_pem() != PUBLIC), "byte {at}");
    }
}

#[test]
fn a_key_of_another_kind_is_said_to_be_one() {
    let label = |what: &str| format!("-----BEGIN {what}-----\nAAAA\n-----END {what}-----\n");
    let other = |what: &'static str| KeyError::OtherKey(what);
    for (pem, expect) in [
        (X25519_PUBLIC, other("an X25519 key")),
        (EC_PUBLIC, other("an elliptic curve (EC) key")),
        (RSA_PUBLIC, other("an RSA key")),
        (V1, KeyError::OtherBlock("a private key, where a public one is needed".into())),
        ("", KeyError::NoPem),
        ("ssh-ed25519 AAAA", KeyError::NoPem),
        (&format!("{PUBLIC}{PUBLIC}"), KeyError::TextAround),
        (&format!("x\n{PUBLIC}"), KeyError::TextAround),
        (&PUBLIC.replace("MCow", "MCo="), KeyError::Base64),
        (&label("PUBLIC KEY"), KeyError::Structure),
        (&label("CERTIFICATE"), KeyError::OtherBlock("a certificate, not a key".into())),
    ] {
        assert_eq!(PublicKey::from_file(pem.as_bytes()), Err(expect), "{pem}");
    }
    for (pem, expect) in [
        (X25519_PRIVATE, other("an X25519 key")),
        (&label("RSA PRIVATE KEY"), other("an RSA key")),
        (&label("EC PRIVATE KEY"), other("an elliptic curve (EC) key")),
        (PUBLIC, KeyError::OtherBlock("a public key, where a private one is needed".into())),
        (&label("ENCRYPTED PRIVATE KEY"), KeyError::OtherBlock("a private key under a passphrase".into())),
        (&label("OPENSSH PRIVATE KEY"), KeyError::OtherBlock("a private key in OpenSSH's own format".into())),
        // The last byte of the public key that stands beside the private one.
        (&V2.replace("ZuE=", "ZuI="), KeyError::PublicDiffers),
        (&V1.replace("MC4CAQA", "MC4CAQI"), KeyError::Structure),
    ] {
        assert_eq!(PrivateKey::from_file(pem.as_bytes()).map(|_| ()), Err(expect), "{pem}");
    }
}

#[test]
fn a_private_key_is_not_in_its_debug_form() {
    let key = PrivateKey::from_file(V1.as_bytes()).unwrap();
    assert_eq!(format!("{key:?}"), format!("PrivateKey(of {})", key.public().fingerprint()));
}

#[test]
fn a_fingerprint_is_read_padded_or_not() {
    let fingerprint = PublicKey::from_file(PUBLIC.as_bytes()).unwrap().fingerprint();
    let text = fingerprint.to_string();
    assert_eq!(text.len(), 50);
    assert_eq!(text.parse(), Ok(fingerprint));
    assert_eq!(format!("{text}=").parse(), Ok(fingerprint));
    for bad in
        ["", "SHA256:", &text[7..], &text[..49], &format!("{text}A"), &text.replace("SHA256", "sha256")]
    {
        assert!(bad.parse::<Fingerprint>().is_err(), "{bad}");
    }
    assert_eq!(fingerprint.install_rev().len(), 16);
}

fn hex<const N: usize>(text: &str) -> [u8; N] {
    bytes(text).try_into().unwrap()
}

fn bytes(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn published_signatures_are_judged_by_the_strict_rules() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ed25519.jsonl");
    for line in fs::read_to_string(path).unwrap().lines() {
        let case = json::parse(line.as_bytes()).unwrap().as_object().unwrap().clone();
        let field = |name| string(&case, name).unwrap();
        let key = PublicKey::from_bytes(hex(field("key")));
        let message = bytes(field("message"));
        let found = key.verify(&message, &hex(field("signature")));
        let expect = match field("expect") {
            "ok" => Ok(()),
            "weak_key" => Err(Refused::WeakKey),
            "malleable" => Err(Refused::Malleable),
            _ => Err(Refused::Wrong),
        };
        assert_eq!(found, expect, "{}", field("source"));
        if let Some(seed) = string(&case, "seed") {
            let private = PrivateKey::from_seed(&zeroize::Zeroizing::new(hex(seed)));
            assert_eq!((private.public(), private.sign(&message)), (key, hex(field("signature"))));
        }
    }
}

#[test]
fn keys_of_small_order_and_second_encodings_are_refused_in_every_spelling() {
    let mut refused = Vec::new();
    for (point, expect) in [
        ("0000000000000000000000000000000000000000000000000000000000000000", Refused::WeakKey),
        ("0000000000000000000000000000000000000000000000000000000000000080", Refused::WeakKey),
        ("0100000000000000000000000000000000000000000000000000000000000000", Refused::WeakKey),
        ("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", Refused::WeakKey),
        ("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05", Refused::WeakKey),
        ("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85", Refused::WeakKey),
        ("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a", Refused::WeakKey),
        ("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa", Refused::WeakKey),
        ("edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", Refused::BadKey),
        ("edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", Refused::BadKey),
        ("eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", Refused::BadKey),
        ("f0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", Refused::BadKey),
        ("0200000000000000000000000000000000000000000000000000000000000000", Refused::BadKey),
    ] {
        let key = PublicKey::from_bytes(hex(point));
        // R = A and S = 0: what fits every message where the key is of small order.
        let signature = [key.as_bytes().as_slice(), &[0; 32]].concat().try_into().unwrap();
        assert_eq!(key.verify(b"anything", &signature), Err(expect), "{point}");
        assert!(matches!(PublicKey::from_file(key.to_pem().as_bytes()), Err(KeyError::Point(_))), "{point}");
        refused.push(key);
    }
    for sign_of_zero in ["01", "ec"] {
        let middle = if sign_of_zero == "01" { "00" } else { "ff" }.repeat(30);
        let last = if sign_of_zero == "01" { "80" } else { "ff" };
        let key = PublicKey::from_bytes(hex(&format!("{sign_of_zero}{middle}{last}")));
        assert!(key.verify(b"anything", &[0; 64]).is_err());
    }
}

#[test]
fn every_changed_bit_of_signature_key_or_message_is_refused() {
    let key = PrivateKey::from_file(V1.as_bytes()).unwrap();
    let signature = key.sign(b"message");
    assert_eq!(key.public().verify(b"message", &signature), Ok(()));
    for at in 0..512 {
        let mut changed = signature;
        changed[at / 8] ^= 1 << (at % 8);
        assert!(key.public().verify(b"message", &changed).is_err(), "bit {at}");
    }
    assert_eq!(key.public().verify(b"messagf", &signature), Err(Refused::Wrong));
}
