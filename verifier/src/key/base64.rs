//! Base64 with one text for each message: no line breaks, no unused bits that are not zero.
//!
//! Source: RFC 4648 4 and 5.

use alloc::string::String;
use alloc::vec::Vec;

/// Which 64 characters, and whether `=` fills up the last four.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// `+` and `/`, filled up: PEM.
    Standard,
    /// `+` and `/`, not filled up: fingerprints.
    Unpadded,
    /// `-` and `_`, not filled up: signatures.
    Url,
}

impl Form {
    fn alphabet(self) -> &'static [u8; 64] {
        match self {
            Form::Url => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
            _ => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        }
    }

    fn value(self, byte: u8) -> Option<u32> {
        let value = match (byte, self) {
            (b'A'..=b'Z', _) => byte - b'A',
            (b'a'..=b'z', _) => byte - b'a' + 26,
            (b'0'..=b'9', _) => byte - b'0' + 52,
            (b'-', Form::Url) | (b'+', Form::Standard | Form::Unpadded) => 62,
            (b'_', Form::Url) | (b'/', Form::Standard | Form::Unpadded) => 63,
            _ => return None,
        };
        Some(u32::from(value))
    }
}

/// The text of a message.
pub(crate) fn encode(form: Form, bytes: &[u8]) -> String {
    let alphabet = form.alphabet();
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for (at, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            let sextet = usize::try_from(word >> shift & 63).unwrap_or(0);
            if at <= chunk.len() {
                text.push(char::from(alphabet[sextet]));
            } else if form == Form::Standard {
                text.push('=');
            }
        }
    }
    text
}

/// Appends the message of a text to `out`; `false` if it is not the text that [`encode`] gives.
pub(crate) fn decode_into(form: Form, text: &[u8], out: &mut Vec<u8>) -> bool {
    let digits = match (form, text) {
        (Form::Standard, _) if !text.len().is_multiple_of(4) => return false,
        (Form::Standard, [digits @ .., b'=', b'=']) | (Form::Standard, [digits @ .., b'=']) => digits,
        _ => text,
    };
    if digits.len() % 4 == 1 {
        return false;
    }
    for chunk in digits.chunks(4) {
        let mut word = 0;
        for at in 0..4 {
            let value = match chunk.get(at) {
                Some(&byte) => match form.value(byte) {
                    Some(value) => value,
                    None => return false,
                },
                None => 0,
            };
            word = word << 6 | value;
        }
        let [_, bytes @ ..] = u32::to_be_bytes(word);
        let (whole, unused) = bytes.split_at(chunk.len() - 1);
        if unused.iter().any(|&byte| byte != 0) {
            return false;
        }
        out.extend_from_slice(whole);
    }
    true
}

/// The message of a text.
pub(crate) fn decode(form: Form, text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 3);
    decode_into(form, text, &mut out).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_rfc_4648() {
        for (message, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
        ] {
            assert_eq!(encode(Form::Standard, message.as_bytes()), text);
            assert_eq!(decode(Form::Standard, text.as_bytes()).as_deref(), Some(message.as_bytes()));
            let bare = text.trim_end_matches('=');
            assert_eq!(encode(Form::Url, message.as_bytes()), bare);
            assert_eq!(decode(Form::Url, bare.as_bytes()).as_deref(), Some(message.as_bytes()));
        }
        assert_eq!(encode(Form::Url, &[0xfb, 0xff]), "-_8");
        assert_eq!(encode(Form::Unpadded, &[0xfb, 0xff]), "+/8");
    }

    #[test]
    fn a_second_text_of_a_message_is_refused() {
        for text in
            ["Zg", "Zg=", "Zh==", "Zm9=", "Zg==\n", "Z", "=", "====", "Zm9v====", "Zm9v=", "Z===", "-_8="]
        {
            assert_eq!(decode(Form::Standard, text.as_bytes()), None, "{text:?}");
        }
        for text in ["Zg==", "Zh", "Zm9", "+/8", "Z", "Zm9v\n", " Zg"] {
            assert_eq!(decode(Form::Url, text.as_bytes()), None, "{text:?}");
        }
    }
}
