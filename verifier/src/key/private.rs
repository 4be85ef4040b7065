//! Private keys: for whoever writes receipts. All copies of the seed are wiped.

use alloc::string::String;
use core::fmt;

use ed25519_dalek::{Signer as _, SigningKey};
use zeroize::Zeroizing;

use super::base64::{self, Form};
use super::der::{self, Algorithm, BIT_STRING, INTEGER, OCTET_STRING, Reader, SEQUENCE};
use super::pem::{KeyError, block};
use super::public::PublicKey;

const PKCS8_PREFIX: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
/// `attributes [0]` of RFC 5958.
const ATTRIBUTES: u8 = 0xa0;
/// `publicKey [1]` as it should be, and as some tools wrap it once more.
const PUBLIC_KEY: u8 = 0x81;
const WRAPPED_PUBLIC_KEY: u8 = 0xa1;

/// An Ed25519 private key.
#[derive(Clone)]
pub struct PrivateKey(SigningKey);

impl PrivateKey {
    /// The key of a seed: 32 random bytes, which the caller gets from the operating system.
    #[must_use]
    pub fn from_seed(seed: &Zeroizing<[u8; 32]>) -> PrivateKey {
        PrivateKey(SigningKey::from_bytes(seed))
    }

    /// Reads a key file: a PEM block of PKCS#8, in any of the forms that tools write.
    ///
    /// # Errors
    ///
    /// Says what else it is.
    pub fn from_file(file: &[u8]) -> Result<PrivateKey, KeyError> {
        let bytes = block(file, "PRIVATE KEY")?;
        let (algorithm, rest) = outer(&bytes).ok_or(KeyError::Structure)?;
        if let Algorithm::Other(kind) = algorithm {
            return Err(KeyError::OtherKey(kind));
        }
        let Inner { seed, public } = inner(rest).ok_or(KeyError::Structure)?;
        let key = PrivateKey::from_seed(&seed);
        if public.is_some_and(|public| public != key.public().as_bytes()) {
            return Err(KeyError::PublicDiffers);
        }
        Ok(key)
    }

    /// The key file: PKCS#8 version 1, as OpenSSL writes it.
    #[must_use]
    pub fn to_pem(&self) -> Zeroizing<String> {
        let mut bytes = Zeroizing::new([0; 48]);
        bytes[..16].copy_from_slice(&PKCS8_PREFIX);
        bytes[16..].copy_from_slice(self.0.as_bytes());
        let body = Zeroizing::new(base64::encode(Form::Standard, bytes.as_slice()));
        let mut pem = Zeroizing::new(String::with_capacity(128));
        pem.push_str("-----BEGIN PRIVATE KEY-----\n");
        pem.push_str(&body);
        pem.push_str("\n-----END PRIVATE KEY-----\n");
        pem
    }

    /// Its public key.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey::from_bytes(self.0.verifying_key().to_bytes())
    }

    /// The signature of a message.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey(of {})", self.public().fingerprint())
    }
}

/// The algorithm of a PKCS#8 key, and what stands behind it.
fn outer(bytes: &[u8]) -> Option<(Algorithm, Reader<'_>)> {
    let mut reader = Reader(bytes);
    let mut content = Reader(reader.element(SEQUENCE)?);
    reader.end()?;
    if !matches!(content.element(INTEGER)?, [0 | 1]) {
        return None;
    }
    let algorithm = der::algorithm(content.element(SEQUENCE)?)?;
    Some((algorithm, content))
}

struct Inner<'a> {
    seed: Zeroizing<[u8; 32]>,
    /// Where it is there too.
    public: Option<&'a [u8]>,
}

fn inner(mut content: Reader<'_>) -> Option<Inner<'_>> {
    let mut wrapped = Reader(content.element(OCTET_STRING)?);
    let mut seed = Zeroizing::new([0; 32]);
    let bytes = wrapped.element(OCTET_STRING).filter(|bytes| bytes.len() == 32)?;
    seed.copy_from_slice(bytes);
    wrapped.end()?;
    content.optional(ATTRIBUTES)?;
    let mut public = content.optional(PUBLIC_KEY)?;
    if let Some(explicit) = content.optional(WRAPPED_PUBLIC_KEY)? {
        let mut bits = Reader(explicit);
        public = Some(bits.element(BIT_STRING)?);
        bits.end()?;
    }
    content.end()?;
    let public = match public {
        Some([0, key @ ..]) => Some(key),
        Some(_) => return None,
        None => None,
    };
    Some(Inner { seed, public })
}
