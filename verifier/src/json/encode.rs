//! The four encoders: one JSON text for one value, byte for byte as the formats hash it.

use alloc::vec::Vec;
use core::fmt;

use super::number::{push_ecmascript, push_python};
use super::text::{Text, units};
use super::{Object, Value};
use crate::order;

/// A canonical form of JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    /// CPython `json.dumps(v, sort_keys=True, separators=(",", ":"))`: ledger, step journal,
    /// event journal.
    Ascii,
    /// CPython `json.dumps(v, sort_keys=True)`: the audit log.
    AsciiSpaced,
    /// As `Ascii` with `ensure_ascii=False`: receipts and the lineage spine.
    Utf8,
    /// RFC 8785, except that integers of any size stay exact: event journals that name it.
    JcsV2,
}

/// A text that has no form in an encoding: a lone surrogate, in `utf8` or `jcs-v2`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoneSurrogate;

impl fmt::Display for LoneSurrogate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a lone surrogate has no UTF-8 form")
    }
}

impl core::error::Error for LoneSurrogate {}

/// The `ascii` text of a value; every value has one.
#[must_use]
pub fn ascii(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    push_ascii(&mut out, value);
    out
}

/// Appends the `ascii` text of a value.
pub fn push_ascii(out: &mut Vec<u8>, value: &Value) {
    // Only a lone surrogate can fail, and `ascii` escapes it.
    let encoded = Encoder { encoding: Encoding::Ascii, indent: None, out }.value(value, 0);
    debug_assert!(encoded.is_ok(), "ascii has a form for every value");
}

/// The `ascii` text of a value with line breaks and two spaces a level, for people and for files
/// that are written so (CPython `json.dumps(v, sort_keys=True, indent=2)`).
#[must_use]
pub fn ascii_indented(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = Encoder { encoding: Encoding::AsciiSpaced, indent: Some(2), out: &mut out };
    let encoded = encoder.value(value, 0);
    debug_assert!(encoded.is_ok(), "ascii has a form for every value");
    out
}

/// Appends an `ascii` string token.
pub fn push_ascii_string(out: &mut Vec<u8>, text: &Text) {
    let encoded = Encoder { encoding: Encoding::Ascii, indent: None, out }.string(text);
    debug_assert!(encoded.is_ok(), "ascii has a form for every text");
}

/// The canonical text of a value.
///
/// # Errors
///
/// `Utf8` and `JcsV2` have no form for a lone surrogate.
pub fn encode(encoding: Encoding, value: &Value) -> Result<Vec<u8>, LoneSurrogate> {
    let mut out = Vec::new();
    Encoder { encoding, indent: None, out: &mut out }.value(value, 0)?;
    Ok(out)
}

struct Encoder<'a> {
    encoding: Encoding,
    indent: Option<usize>,
    out: &'a mut Vec<u8>,
}

impl Encoder<'_> {
    fn value(&mut self, value: &Value, level: usize) -> Result<(), LoneSurrogate> {
        match value {
            Value::Null => self.out.extend_from_slice(b"null"),
            Value::Bool(true) => self.out.extend_from_slice(b"true"),
            Value::Bool(false) => self.out.extend_from_slice(b"false"),
            Value::Int(int) => self.out.extend_from_slice(int.as_str().as_bytes()),
            Value::Float(float) if self.encoding == Encoding::JcsV2 => {
                push_ecmascript(self.out, *float);
            }
            Value::Float(float) => push_python(self.out, *float),
            Value::String(text) => self.string(text)?,
            Value::Array(items) => {
                self.out.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    self.separate(index, level);
                    self.value(item, level + 1)?;
                }
                self.close(items.is_empty(), level);
                self.out.push(b']');
            }
            Value::Object(object) => self.object(object, level)?,
        }
        Ok(())
    }

    fn object(&mut self, object: &Object, level: usize) -> Result<(), LoneSurrogate> {
        self.out.push(b'{');
        if self.encoding == Encoding::JcsV2 {
            let mut members: Vec<_> = object.iter().collect();
            order::sort_by(&mut members, |(left, _), (right, _)| left.utf16().cmp(right.utf16()));
            self.members(members.into_iter(), level)?;
        } else {
            self.members(object.iter(), level)?;
        }
        self.close(object.is_empty(), level);
        self.out.push(b'}');
        Ok(())
    }

    fn members<'v>(
        &mut self,
        members: impl Iterator<Item = (&'v Text, &'v Value)>,
        level: usize,
    ) -> Result<(), LoneSurrogate> {
        for (index, (key, value)) in members.enumerate() {
            self.separate(index, level);
            self.string(key)?;
            self.out.push(b':');
            if self.encoding == Encoding::AsciiSpaced {
                self.out.push(b' ');
            }
            self.value(value, level + 1)?;
        }
        Ok(())
    }

    fn separate(&mut self, index: usize, level: usize) {
        if index > 0 {
            self.out.push(b',');
        }
        match self.indent {
            Some(width) => self.line(width * (level + 1)),
            None if index > 0 && self.encoding == Encoding::AsciiSpaced => self.out.push(b' '),
            None => {}
        }
    }

    fn close(&mut self, empty: bool, level: usize) {
        if let (Some(width), false) = (self.indent, empty) {
            self.line(width * level);
        }
    }

    fn line(&mut self, spaces: usize) {
        self.out.push(b'\n');
        self.out.resize(self.out.len() + spaces, b' ');
    }

    fn string(&mut self, text: &Text) -> Result<(), LoneSurrogate> {
        self.out.push(b'"');
        match self.encoding {
            Encoding::Ascii | Encoding::AsciiSpaced => self.ascii_string(text),
            Encoding::Utf8 | Encoding::JcsV2 => {
                self.utf8_string(text.as_str().ok_or(LoneSurrogate)?);
            }
        }
        self.out.push(b'"');
        Ok(())
    }

    fn ascii_string(&mut self, text: &Text) {
        let bytes = text.as_wtf8();
        let run = super::plain::ascii_run(bytes);
        self.out.extend_from_slice(&bytes[..run]);
        if run == bytes.len() {
            return;
        }
        // The run is ASCII, so what follows it starts a character.
        for point in Text::from_wtf8_lossy(&bytes[run..]).code_points() {
            match u8::try_from(point) {
                Ok(byte @ (b'"' | b'\\')) => self.out.extend_from_slice(&[b'\\', byte]),
                Ok(byte @ 0x20..=0x7e) => self.out.push(byte),
                _ => {
                    let (first, second) = units(point);
                    self.escape(first);
                    second.into_iter().for_each(|unit| self.escape(unit));
                }
            }
        }
    }

    fn utf8_string(&mut self, text: &str) {
        let mut rest = text.as_bytes();
        loop {
            let run = super::plain::text_run(rest);
            self.out.extend_from_slice(&rest[..run]);
            match rest.get(run) {
                None => return,
                Some(&byte @ (b'"' | b'\\')) => self.out.extend_from_slice(&[b'\\', byte]),
                Some(&byte) => self.escape(u16::from(byte)),
            }
            rest = &rest[run + 1..];
        }
    }

    fn escape(&mut self, unit: u16) {
        let short = match unit {
            0x08 => b'b',
            0x09 => b't',
            0x0a => b'n',
            0x0c => b'f',
            0x0d => b'r',
            _ => {
                self.out.extend_from_slice(b"\\u");
                for byte in unit.to_be_bytes() {
                    for nibble in [byte >> 4, byte & 15] {
                        self.out.push(if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 });
                    }
                }
                return;
            }
        };
        self.out.extend_from_slice(&[b'\\', short]);
    }
}
