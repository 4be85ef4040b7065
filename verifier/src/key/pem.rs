//! PEM blocks in the forms that people's tools write.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use zeroize::Zeroizing;

use super::base64::{Form, decode_into};
use crate::find::find;

/// Why a key could not be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeyError {
    /// There is no PEM block.
    NoPem,
    /// Something else than white space stands around the block: another block, or text.
    TextAround,
    /// The block holds something else: it says what.
    OtherBlock(String),
    /// A key, but of another kind: it says which.
    OtherKey(&'static str),
    /// The block's base64 is not base64.
    Base64,
    /// The bytes are not those of such a key.
    Structure,
    /// The public key that stands beside the private one is not its own.
    PublicDiffers,
    /// The 32 bytes are no usable Ed25519 key: it says why.
    Point(&'static str),
    /// It is not exactly the PEM that a receipt must hold.
    NotExact,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::NoPem => f.write_str("no PEM block (-----BEGIN …) in it"),
            KeyError::TextAround => {
                f.write_str("text around the PEM block: one key in a file, and nothing else")
            }
            KeyError::OtherBlock(what) => write!(f, "it holds {what}"),
            KeyError::OtherKey(kind) => write!(f, "it is {kind}, an Ed25519 key is needed"),
            KeyError::Base64 => f.write_str("the PEM block is not base64"),
            KeyError::Structure => f.write_str("the bytes in the PEM block are not those of such a key"),
            KeyError::PublicDiffers => f.write_str("the public key in it is not that of the private key"),
            KeyError::Point(why) => f.write_str(why),
            KeyError::NotExact => f.write_str(
                "it is not exactly the PEM of a key: three lines, LF, one final newline, nothing else",
            ),
        }
    }
}

impl core::error::Error for KeyError {}

/// The bytes in the one PEM block of a key file, which must have the label `wanted`.
pub(super) fn block(file: &[u8], wanted: &str) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    const BEGIN: &[u8] = b"-----BEGIN ";
    let file = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file).trim_ascii();
    let Some(at) = find(file, BEGIN) else {
        return Err(KeyError::NoPem);
    };
    let rest = &file[at + BEGIN.len()..];
    let label_end = find(rest, b"-----").ok_or(KeyError::NoPem)?;
    let (label, rest) = (&rest[..label_end], &rest[label_end + 5..]);
    if label != wanted.as_bytes() {
        return Err(other_block(label));
    }
    let body_end = memchr::memchr(b'-', rest).ok_or(KeyError::NoPem)?;
    let (body, end) = rest.split_at(body_end);
    let tail = end
        .strip_prefix(b"-----END ")
        .and_then(|end| end.strip_prefix(wanted.as_bytes()))
        .and_then(|end| end.strip_prefix(b"-----"))
        .ok_or(KeyError::NoPem)?;
    if at > 0 || !tail.is_empty() {
        return Err(KeyError::TextAround);
    }
    // Allocated once: a buffer that grows leaves copies of a private key behind.
    let mut text = Zeroizing::new(Vec::with_capacity(body.len()));
    text.extend(body.iter().copied().filter(|byte| !byte.is_ascii_whitespace()));
    let mut bytes = Zeroizing::new(Vec::with_capacity(text.len()));
    if decode_into(Form::Standard, &text, &mut bytes) { Ok(bytes) } else { Err(KeyError::Base64) }
}

fn other_block(label: &[u8]) -> KeyError {
    match label {
        b"RSA PRIVATE KEY" | b"RSA PUBLIC KEY" => KeyError::OtherKey("an RSA key"),
        b"EC PRIVATE KEY" => KeyError::OtherKey("an elliptic curve (EC) key"),
        b"DSA PRIVATE KEY" => KeyError::OtherKey("a DSA key"),
        b"PRIVATE KEY" => KeyError::OtherBlock("a private key, where a public one is needed".to_string()),
        b"PUBLIC KEY" => KeyError::OtherBlock("a public key, where a private one is needed".to_string()),
        b"ENCRYPTED PRIVATE KEY" => KeyError::OtherBlock("a private key under a passphrase".to_string()),
        b"OPENSSH PRIVATE KEY" => KeyError::OtherBlock("a private key in OpenSSH's own format".to_string()),
        b"CERTIFICATE" => KeyError::OtherBlock("a certificate, not a key".to_string()),
        _ => KeyError::OtherBlock("a PEM block that is no key".to_string()),
    }
}
