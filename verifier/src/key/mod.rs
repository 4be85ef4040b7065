//! Ed25519 keys: their files, their fingerprints, and signatures that only one reading fits.
//!
//! A public key file is a PEM block of its SPKI, 44 bytes: `302a300506032b6570032100` and the key.
//!
//! ```text
//! -----BEGIN PUBLIC KEY-----
//! MCowBQYDK2VwAyEAVfGCNTM0DHypzP6YxA6MUn7mk6xlslkgUDCT1JECkZc=
//! -----END PUBLIC KEY-----
//! ```
//! A private key file is one of PKCS#8, version 1 (`302e020100300506032b657004220420` and the
//! seed) or version 2, which also holds the public key. Key *files* may have CR LF line ends, a
//! byte order mark, blank lines around, no final newline, and lines of any length: people's tools
//! write them so. Nothing but white space may stand around the block. Inside a receipt a PEM is
//! exactly the bytes above: it is signed by nobody, so any freedom in it is an unsigned text.
//!
//! A fingerprint is `SHA256:` and the base64, without padding, of the SPKI's hash.
//!
//! Signatures are checked by the strict rules: `S` below the group order, neither the key nor `R`
//! of small order (such a key has one signature that fits every message) nor in a second
//! encoding, the equation without cofactor.
//!
//! Sources: RFC 7468, RFC 5958, RFC 8410, RFC 8032 5.1.7; Chalkias, Garillot, Nikolaenko, "Taming
//! the many EdDSAs". Does not prove who holds a key.

pub(crate) mod base64;
mod der;
mod pem;
mod private;
mod public;

pub use pem::KeyError;
pub use private::PrivateKey;
pub use public::{BadFingerprint, Fingerprint, PublicKey, Refused};
