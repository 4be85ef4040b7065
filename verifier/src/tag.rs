//! HMAC tags and the keys that make them: who holds the key can write rows, nobody else can.
//!
//! The master key is a file of text, usually 64 hex characters; the characters are the key, not
//! what they decode to, and white space around them is not part of it. Rows of scheme 2 are
//! tagged with a key derived from it, HKDF-SHA256 with no salt, the chain's name (`audit`,
//! `lineage`) as info, 32 bytes; rows of scheme 1 with the master key itself. A tag is
//! HMAC-SHA256, written as 64 lowercase hex digits.
//!
//! Sources: RFC 2104 (HMAC), RFC 5869 (HKDF). Does not prove which holder of the key wrote a row.

use alloc::vec::Vec;
use core::fmt;

use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::hash::Digest;

/// The shortest master key that is accepted, in bytes.
pub const MIN_KEY_LEN: usize = 32;

/// The key from which all tags of a machine are derived.
#[derive(Clone)]
pub struct MasterKey(Zeroizing<Vec<u8>>);

/// A key file that holds no usable master key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShortKey {
    /// How many bytes it has, white space aside.
    pub len: usize,
}

impl fmt::Display for ShortKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a master key of {} bytes: at least {MIN_KEY_LEN} are needed", self.len)
    }
}

impl core::error::Error for ShortKey {}

impl MasterKey {
    /// Takes the bytes of a key file.
    ///
    /// # Errors
    ///
    /// Refuses a key shorter than [`MIN_KEY_LEN`].
    pub fn from_file(bytes: &[u8]) -> Result<MasterKey, ShortKey> {
        let key = bytes.trim_ascii();
        if key.len() < MIN_KEY_LEN {
            return Err(ShortKey { len: key.len() });
        }
        Ok(MasterKey(Zeroizing::new(key.to_vec())))
    }

    /// The key that tags rows of scheme 1.
    pub(crate) fn itself(&self) -> TagKey {
        TagKey::new(&self.0)
    }

    /// The key that tags rows of scheme 2 of the named kind of chain.
    pub(crate) fn derived(&self, info: &str) -> TagKey {
        let mut key = Zeroizing::new([0; 32]);
        Hkdf::<Sha256>::new(None, &self.0)
            .expand(info.as_bytes(), key.as_mut_slice())
            .expect("HKDF-SHA256 gives up to 8160 bytes");
        TagKey::new(key.as_slice())
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKey(…)")
    }
}

/// A key ready to tag.
#[derive(Clone)]
pub(crate) struct TagKey(Hmac<Sha256>);

impl TagKey {
    fn new(key: &[u8]) -> TagKey {
        TagKey(Hmac::new_from_slice(key).expect("HMAC takes a key of any length"))
    }

    /// The tag of a message that is the concatenation of `parts`.
    pub(crate) fn tag(&self, parts: &[&[u8]]) -> Digest {
        Digest::from_bytes(self.mac(parts).finalize().into_bytes().into())
    }

    /// Whether a stated tag is the message's. The right one is never shown: whoever altered a
    /// row would only have to read it in the report.
    pub(crate) fn fits(&self, parts: &[&[u8]], stated: &Digest) -> bool {
        self.mac(parts).verify_slice(stated.as_bytes()).is_ok()
    }

    fn mac(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        for part in parts {
            mac.update(part);
        }
        mac
    }
}

impl fmt::Debug for TagKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TagKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_that_of_rfc_4231_case_2() {
        let key = TagKey::new(b"Jefe");
        let expect = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(key.tag(&[b"what do ya want ", b"for nothing?"]).to_hex(), expect);
        assert!(key.fits(&[b"what do ya want for nothing?"], &key.tag(&[b"what do ya want for nothing?"])));
        assert!(!key.fits(&[b"what do ya want for nothing!"], &key.tag(&[b"what do ya want for nothing?"])));
    }

    #[test]
    fn white_space_around_the_key_is_not_part_of_it_and_a_short_one_is_refused() {
        let text = b"56457cd05a289763297d55fc5681282e551ea32c49e6b0b0dbfa3891b008c147";
        let plain = MasterKey::from_file(text).expect("64 characters");
        let spaced = MasterKey::from_file(&[b" ", &text[..], b"\r\n"].concat()).expect("64 characters");
        assert_eq!(plain.derived("audit").tag(&[b"x"]), spaced.derived("audit").tag(&[b"x"]));
        assert_ne!(plain.derived("audit").tag(&[b"x"]), plain.derived("lineage").tag(&[b"x"]));
        assert_ne!(plain.derived("audit").tag(&[b"x"]), plain.itself().tag(&[b"x"]));
        let short = MasterKey::from_file(&text[..31]).expect_err("31 characters");
        assert_eq!(short, ShortKey { len: 31 });
        assert!(MasterKey::from_file(b"  \n").is_err());
        assert_eq!(alloc::format!("{plain:?}"), "MasterKey(…)");
    }
}
