//! The little of DER that key files are made of.
//!
//! Source: X.690 10: definite lengths in their shortest form.

pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const OID: u8 = 0x06;
pub(super) const SEQUENCE: u8 = 0x30;

/// Reads elements one after another.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    /// The content of the next element, if it has this tag.
    pub(super) fn element(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (&found, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        if found != tag {
            return None;
        }
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81 => {
                let (&length, rest) = rest.split_first()?;
                if length < 0x80 {
                    return None;
                }
                (usize::from(length), rest)
            }
            0x82 => {
                let (bytes, rest) = rest.split_first_chunk::<2>()?;
                let length = u16::from_be_bytes(*bytes);
                if length < 0x100 {
                    return None;
                }
                (usize::from(length), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(content)
    }

    /// The same, where the element may be left out.
    pub(super) fn optional(&mut self, tag: u8) -> Option<Option<&'a [u8]>> {
        if self.0.first() == Some(&tag) { self.element(tag).map(Some) } else { Some(None) }
    }

    /// Whether nothing is left.
    pub(super) fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// Which kind of key an algorithm identifier's content names, and whether it is Ed25519.
pub(super) fn algorithm(identifier: &[u8]) -> Option<Algorithm> {
    let mut reader = Reader(identifier);
    Some(match reader.element(OID)? {
        [0x2b, 0x65, 0x70] => {
            // RFC 8410 3: no parameters.
            reader.end()?;
            Algorithm::Ed25519
        }
        [0x2b, 0x65, 0x6e] => Algorithm::Other("an X25519 key"),
        [0x2b, 0x65, 0x6f] => Algorithm::Other("an X448 key"),
        [0x2b, 0x65, 0x71] => Algorithm::Other("an Ed448 key"),
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, _] => Algorithm::Other("an RSA key"),
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01] => Algorithm::Other("an elliptic curve (EC) key"),
        [0x2a, 0x86, 0x48, 0xce, 0x38, 0x04, 0x01] => Algorithm::Other("a DSA key"),
        _ => Algorithm::Other("a key of another kind"),
    })
}

/// What an algorithm identifier names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Algorithm {
    Ed25519,
    Other(&'static str),
}
