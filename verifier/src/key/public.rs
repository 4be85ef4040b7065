//! Public keys, their fingerprints, and what they verify.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use ed25519_dalek::{Signature, VerifyingKey};

use super::base64::{self, Form};
use super::der::{self, Algorithm, BIT_STRING, Reader, SEQUENCE};
use super::pem::{KeyError, block};
use crate::hash::Digest;

const SPKI_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
const PEM_HEAD: &str = "-----BEGIN PUBLIC KEY-----\n";
const PEM_FOOT: &str = "\n-----END PUBLIC KEY-----\n";

/// The 32 bytes of an Ed25519 public key. They need not be a usable one: what [`verify`] says of
/// a signature, it says of the key too.
///
/// [`verify`]: PublicKey::verify
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; 32]);

/// Why a signature was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The key is no point of the curve, or in a second encoding of one.
    BadKey,
    /// The key is of small order: one signature fits every message.
    WeakKey,
    /// `S` is not below the group order, or `R` is in a second encoding.
    Malleable,
    /// It is not this key's signature of this message.
    Wrong,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refused::BadKey => "the key is no point of the curve in its one encoding",
            Refused::WeakKey => "the key is of small order: one signature of it fits every message",
            Refused::Malleable => "the signature is not in its one encoding",
            Refused::Wrong => "it is not this key's signature of these bytes",
        })
    }
}

impl core::error::Error for Refused {}

impl PublicKey {
    /// Wraps 32 bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> PublicKey {
        PublicKey(bytes)
    }

    /// Reads a key file: a PEM block of an SPKI, in any of the forms that tools write.
    ///
    /// # Errors
    ///
    /// Says what else it is; a key of small order is refused too.
    pub fn from_file(file: &[u8]) -> Result<PublicKey, KeyError> {
        let key = PublicKey::from_spki(&block(file, "PUBLIC KEY")?)?;
        match key.point() {
            Ok(_) => Ok(key),
            Err(Refused::WeakKey) => {
                Err(KeyError::Point("an Ed25519 key of small order: it vouches for nothing"))
            }
            Err(_) => Err(KeyError::Point("32 bytes that are no Ed25519 key")),
        }
    }

    /// Reads the PEM in a receipt: exactly the bytes that [`PublicKey::to_pem`] gives.
    ///
    /// # Errors
    ///
    /// Says what it is instead.
    pub fn from_exact_pem(pem: &str) -> Result<PublicKey, KeyError> {
        let body = pem.strip_prefix(PEM_HEAD).and_then(|rest| rest.strip_suffix(PEM_FOOT));
        match body.and_then(|body| base64::decode(Form::Standard, body.as_bytes())) {
            Some(spki) => PublicKey::from_spki(&spki),
            None => {
                // Another kind of key is worth more to say than where a line breaks.
                block(pem.as_bytes(), "PUBLIC KEY").and_then(|spki| PublicKey::from_spki(&spki))?;
                Err(KeyError::NotExact)
            }
        }
    }

    fn from_spki(spki: &[u8]) -> Result<PublicKey, KeyError> {
        if let Some(key) = spki.strip_prefix(&SPKI_PREFIX) {
            let key = <[u8; 32]>::try_from(key).map_err(|_| KeyError::Structure)?;
            return Ok(PublicKey(key));
        }
        let mut outer = Reader(spki);
        let algorithm = outer.element(SEQUENCE).and_then(|content| {
            let mut inner = Reader(content);
            let algorithm = der::algorithm(inner.element(SEQUENCE)?)?;
            inner.element(BIT_STRING)?;
            Some(algorithm)
        });
        match algorithm {
            Some(Algorithm::Other(kind)) => Err(KeyError::OtherKey(kind)),
            _ => Err(KeyError::Structure),
        }
    }

    /// The SPKI: 44 bytes.
    #[must_use]
    pub fn spki(&self) -> Vec<u8> {
        [&SPKI_PREFIX[..], &self.0].concat()
    }

    /// The PEM, as key files and receipts hold it.
    #[must_use]
    pub fn to_pem(&self) -> String {
        format!("{PEM_HEAD}{}{PEM_FOOT}", base64::encode(Form::Standard, &self.spki()))
    }

    /// The fingerprint.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint(Digest::of(&self.spki()))
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Checks a signature of a message by the strict rules.
    ///
    /// # Errors
    ///
    /// Says what is wrong with it, or with the key.
    pub fn verify(&self, message: &[u8], signature: &[u8; 64]) -> Result<(), Refused> {
        let key = self.point()?;
        let (r, s) = signature.split_at(32);
        if !is_canonical_y(r) || !is_below_order(s) {
            return Err(Refused::Malleable);
        }
        key.verify_strict(message, &Signature::from_bytes(signature)).map_err(|_| Refused::Wrong)
    }

    fn point(&self) -> Result<VerifyingKey, Refused> {
        if !is_canonical_y(&self.0) {
            return Err(Refused::BadKey);
        }
        let key = VerifyingKey::from_bytes(&self.0).map_err(|_| Refused::BadKey)?;
        if key.is_weak() { Err(Refused::WeakKey) } else { Ok(key) }
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.fingerprint())
    }
}

/// Whether a point's `y`, little endian below its sign bit, is below 2²⁵⁵ - 19.
fn is_canonical_y(point: &[u8]) -> bool {
    let [first, middle @ .., last] = point else {
        return false;
    };
    last & 0x7f != 0x7f || middle.iter().any(|&byte| byte != 0xff) || *first < 0xed
}

/// Whether a scalar, little endian, is below 2²⁵² + 27742317777372353535851937790883648493.
fn is_below_order(scalar: &[u8]) -> bool {
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    scalar.iter().rev().lt(ORDER.iter().rev())
}

/// The fingerprint of a public key: what two people compare by voice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(Digest);

/// A text that is no fingerprint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadFingerprint;

impl fmt::Display for BadFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a fingerprint is SHA256: and 43 base64 characters")
    }
}

impl core::error::Error for BadFingerprint {}

impl Fingerprint {
    /// The first 16 hex digits of the hash: what our receipts give as `install_rev`.
    #[must_use]
    pub fn install_rev(&self) -> String {
        self.0.hex()[..16].iter().map(|&byte| char::from(byte)).collect()
    }
}

impl core::str::FromStr for Fingerprint {
    type Err = BadFingerprint;

    /// Reads a fingerprint, with its base64 filled up with `=` or not.
    fn from_str(text: &str) -> Result<Fingerprint, BadFingerprint> {
        let body = text.trim_ascii().strip_prefix("SHA256:").ok_or(BadFingerprint)?;
        let form = if body.ends_with('=') { Form::Standard } else { Form::Unpadded };
        let hash = base64::decode(form, body.as_bytes()).ok_or(BadFingerprint)?;
        let hash = <[u8; 32]>::try_from(hash).map_err(|_| BadFingerprint)?;
        Ok(Fingerprint(Digest::from_bytes(hash)))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SHA256:{}", base64::encode(Form::Unpadded, self.0.as_bytes()))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
