//! JSON strings, which need not be Unicode: `"\ud800"` is legal JSON and is hashed as written.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// A JSON string's value in WTF-8: UTF-8 in which a surrogate that has no partner stands as the
/// three bytes of its code point.
///
/// Two adjacent surrogates that make a pair are always held as the one character they mean, so
/// equal texts have equal bytes, and byte order is code point order (U+D800 < U+FB33 < U+1F600).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Text(Vec<u8>);

impl Text {
    /// The text as a string, if it has no lone surrogate.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        core::str::from_utf8(&self.0).ok()
    }

    /// The WTF-8 bytes.
    #[must_use]
    pub fn as_wtf8(&self) -> &[u8] {
        &self.0
    }

    /// Takes bytes that are WTF-8 by construction: a [`Text`]'s own, cut or replaced at
    /// character borders. Anything that is not is replaced, character by character.
    #[must_use]
    pub fn from_wtf8_lossy(bytes: &[u8]) -> Text {
        let mut text = Text::default();
        let mut rest = bytes;
        while !rest.is_empty() {
            match core::str::from_utf8(rest) {
                Ok(good) => {
                    text.push_str(good);
                    break;
                }
                Err(error) => {
                    let (good, bad) = rest.split_at(error.valid_up_to());
                    text.0.extend_from_slice(good);
                    rest = match bad {
                        [0xed, high @ 0xa0..=0xbf, low @ 0x80..=0xbf, tail @ ..] => {
                            let unit = 0xd000 | u16::from(high & 0x3f) << 6 | u16::from(low & 0x3f);
                            text.push_unit(unit);
                            tail
                        }
                        _ => {
                            text.push_str("\u{fffd}");
                            &bad[error.error_len().unwrap_or(bad.len())..]
                        }
                    };
                }
            }
        }
        text
    }

    /// The UTF-16 code units, lone surrogates as themselves.
    pub fn utf16(&self) -> impl Iterator<Item = u16> + '_ {
        self.code_points().flat_map(|point| {
            let (first, second) = units(point);
            core::iter::once(first).chain(second)
        })
    }

    /// The code points, lone surrogates as themselves.
    pub(super) fn code_points(&self) -> impl Iterator<Item = u32> + '_ {
        let mut rest = self.0.as_slice();
        core::iter::from_fn(move || {
            let (point, len) = decode(rest)?;
            rest = &rest[len..];
            Some(point)
        })
    }

    pub(super) fn push_str(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    /// Appends a surrogate; one that completes a pair joins it to a character.
    pub(super) fn push_unit(&mut self, unit: u16) {
        if (0xdc00..=0xdfff).contains(&unit)
            && let [.., 0xed, high @ 0xa0..=0xaf, low] = self.0[..]
        {
            let first = 0xd000 | u32::from(high & 0x3f) << 6 | u32::from(low & 0x3f);
            let point = 0x1_0000 + ((first - 0xd800) << 10) + (u32::from(unit) - 0xdc00);
            self.0.truncate(self.0.len() - 3);
            if let Some(character) = char::from_u32(point) {
                self.push_char(character);
            }
            return;
        }
        let [high, low] = unit.to_be_bytes();
        self.0.extend_from_slice(&[
            0xe0 | high >> 4,
            0x80 | (high & 0x0f) << 2 | low >> 6,
            0x80 | low & 0x3f,
        ]);
    }

    pub(super) fn push_char(&mut self, character: char) {
        self.push_str(character.encode_utf8(&mut [0; 4]));
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text(text.as_bytes().to_vec())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text(text.into_bytes())
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_str() {
            Some(text) => text.fmt(f),
            None => write!(f, "Text({:?})", self.0),
        }
    }
}

/// The UTF-16 units of a code point.
pub(super) fn units(point: u32) -> (u16, Option<u16>) {
    match u16::try_from(point) {
        Ok(unit) => (unit, None),
        Err(_) => {
            let offset = point - 0x1_0000;
            let high = u16::try_from(offset >> 10).unwrap_or(u16::MAX) & 0x3ff | 0xd800;
            let low = u16::try_from(offset & 0x3ff).unwrap_or(u16::MAX) & 0x3ff | 0xdc00;
            (high, Some(low))
        }
    }
}

/// Decodes the first code point of WTF-8 bytes, and says how many bytes it took.
fn decode(bytes: &[u8]) -> Option<(u32, usize)> {
    let tail = |index: usize| u32::from(bytes.get(index).copied().unwrap_or(0) & 0x3f);
    let first = *bytes.first()?;
    let lead = u32::from(first);
    Some(match first {
        0..=0x7f => (lead, 1),
        0x80..=0xdf => ((lead & 0x1f) << 6 | tail(1), 2.min(bytes.len())),
        0xe0..=0xef => ((lead & 0x0f) << 12 | tail(1) << 6 | tail(2), 3.min(bytes.len())),
        0xf0..=0xff => ((lead & 0x07) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3), 4.min(bytes.len())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_pushed_in_halves_is_one_character() {
        let mut halves = Text::default();
        halves.push_unit(0xd83d);
        assert_eq!(halves.as_str(), None);
        halves.push_unit(0xde00);
        assert_eq!(halves, Text::from("😀"));
        let mut reversed = Text::default();
        reversed.push_unit(0xde00);
        reversed.push_unit(0xd83d);
        assert_eq!(reversed.as_str(), None);
        assert_eq!(reversed.utf16().collect::<Vec<_>>(), [0xde00, 0xd83d]);
        assert_eq!(Text::from_wtf8_lossy(reversed.as_wtf8()), reversed);
    }

    #[test]
    fn order_is_by_code_point_with_surrogates_as_themselves() {
        let mut lone = Text::default();
        lone.push_unit(0xd800);
        let mut keys = [Text::from("😀"), Text::from("\u{fb33}"), lone.clone()];
        keys.sort();
        assert_eq!(keys, [lone, Text::from("\u{fb33}"), Text::from("😀")]);
    }

    #[test]
    fn bytes_that_are_not_wtf8_are_replaced() {
        assert_eq!(Text::from_wtf8_lossy(b"a\xffb"), Text::from("a\u{fffd}b"));
        assert_eq!(Text::from_wtf8_lossy(b"a\xed\xa0"), Text::from("a\u{fffd}\u{fffd}"));
    }
}
