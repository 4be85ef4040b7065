//! A strict reader of one JSON text (RFC 8259), as CPython's `json` reads it, minus what two
//! readers could read differently.
//!
//! The whole text is always read, so that three things stay apart that a log reader must not
//! confuse: a text that is not complete JSON (a torn write), one with a duplicate key (two
//! readers may see two values), and one that is complete but beyond a limit.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::number::{Int, MAX_INT_DIGITS};
use super::text::Text;
use super::{Object, Value, float};
use crate::order;

/// How deep containers may nest; the outermost is level 1.
pub const MAX_DEPTH: usize = 128;

/// Why a text was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// Not one complete JSON text; reading stopped at this byte of it.
    NotJson {
        /// Byte offset in the text.
        at: usize,
    },
    /// A complete JSON text in which an object names a key twice; the second ends here.
    DuplicateKey {
        /// Byte offset in the text.
        at: usize,
    },
    /// A complete JSON text that exceeds a limit.
    Limit {
        /// Byte offset in the text.
        at: usize,
        /// The limit.
        limit: Limit,
    },
}

/// What a complete JSON text may not do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// `NaN`, `Infinity`, or a number whose nearest double is infinite.
    NotFinite,
    /// An integer of more than [`MAX_INT_DIGITS`] digits.
    Digits,
    /// Containers nested deeper than [`MAX_DEPTH`].
    Depth,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseError::NotJson { at } => write!(f, "not one complete JSON text (at byte {at})"),
            ParseError::DuplicateKey { at } => {
                write!(f, "an object key stands twice (at byte {at})")
            }
            ParseError::Limit { at, limit } => write!(f, "{limit} (at byte {at})"),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::NotFinite => f.write_str("a number that is not finite"),
            Limit::Digits => write!(f, "an integer of more than {MAX_INT_DIGITS} digits"),
            Limit::Depth => write!(f, "nesting deeper than {MAX_DEPTH}"),
        }
    }
}

impl core::error::Error for ParseError {}

/// Reads one JSON text; white space may stand around it, nothing else.
///
/// # Errors
///
/// Says which of the three it is, in this order: not complete, a duplicate key, a limit.
pub fn parse(bytes: &[u8]) -> Result<Value, ParseError> {
    let text = match core::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            return Err(ParseError::NotJson { at: error.valid_up_to() });
        }
    };
    let mut parser = Parser::new(text);
    let value = parser.value(1).map_err(|NotJson| ParseError::NotJson { at: parser.at })?;
    parser.white_space();
    if parser.at < text.len() {
        return Err(ParseError::NotJson { at: parser.at });
    }
    match (parser.duplicate, parser.limit) {
        (Some(at), _) => Err(ParseError::DuplicateKey { at }),
        (None, Some((at, limit))) => Err(ParseError::Limit { at, limit }),
        (None, None) => Ok(value),
    }
}

/// Whether the bytes begin with a complete JSON object, whatever follows it.
#[must_use]
pub fn begins_with_object(bytes: &[u8]) -> bool {
    let text = match core::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => core::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    };
    let mut parser = Parser::new(text);
    parser.white_space();
    parser.peek() == Some(b'{') && parser.value(1).is_ok()
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    duplicate: Option<usize>,
    limit: Option<(usize, Limit)>,
}

/// The text ends or breaks the grammar at the parser's position.
struct NotJson;

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parser<'a> {
        Parser { text, at: 0, duplicate: None, limit: None }
    }

    fn value(&mut self, depth: usize) -> Result<Value, NotJson> {
        self.white_space();
        match self.peek().ok_or(NotJson)? {
            b'{' | b'[' if depth > MAX_DEPTH => {
                self.exceeded(Limit::Depth);
                self.skip_container()?;
                Ok(Value::Null)
            }
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            _ => self.scalar(),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, NotJson> {
        self.at += 1;
        let mut members: Vec<(Text, Value)> = Vec::new();
        self.white_space();
        if self.eat(b'}') {
            return Ok(Value::Object(Object::default()));
        }
        loop {
            self.white_space();
            let key = self.string()?;
            let key_end = self.at;
            self.white_space();
            self.expect(b':')?;
            let value = self.value(depth + 1)?;
            match members.last() {
                // Rows are nearly always written in order, so looking for the place is rare.
                Some((last, _)) if *last >= key => {
                    match members.binary_search_by(|(other, _)| other.cmp(&key)) {
                        Ok(_) => self.duplicate = self.duplicate.or(Some(key_end)),
                        Err(place) if members.len() - place < 64 => {
                            members.insert(place, (key, value));
                        }
                        Err(_) => return self.unsorted_object(depth, members, (key, value)),
                    }
                }
                _ => members.push((key, value)),
            }
            if self.object_ends()? {
                members.shrink_to_fit();
                return Ok(Value::Object(Object::from_sorted(members)));
            }
        }
    }

    /// Goes on with an object whose keys are far out of order: collect, then sort once, so that
    /// a hostile order can't make reading quadratic.
    fn unsorted_object(
        &mut self,
        depth: usize,
        mut members: Vec<(Text, Value)>,
        next: (Text, Value),
    ) -> Result<Value, NotJson> {
        members.push(next);
        while !self.object_ends()? {
            self.white_space();
            let key = self.string()?;
            self.white_space();
            self.expect(b':')?;
            let value = self.value(depth + 1)?;
            members.push((key, value));
        }
        order::sort_by(&mut members, |(left, _), (right, _)| left.cmp(right));
        let before = members.len();
        members.dedup_by(|(later, _), (earlier, _)| later == earlier);
        if members.len() < before {
            self.duplicate = self.duplicate.or(Some(self.at));
        }
        Ok(Value::Object(Object::from_sorted(members)))
    }

    fn object_ends(&mut self) -> Result<bool, NotJson> {
        self.white_space();
        if self.eat(b'}') {
            return Ok(true);
        }
        self.expect(b',')?;
        Ok(false)
    }

    fn array(&mut self, depth: usize) -> Result<Value, NotJson> {
        self.at += 1;
        let mut items = Vec::new();
        self.white_space();
        if self.eat(b']') {
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.white_space();
            if self.eat(b']') {
                // Short ones would keep room for four, and a hostile line has millions of them.
                items.shrink_to_fit();
                return Ok(Value::Array(items));
            }
            self.expect(b',')?;
        }
    }

    fn scalar(&mut self) -> Result<Value, NotJson> {
        match self.peek().ok_or(NotJson)? {
            b'"' => self.string().map(Value::String),
            b'n' => self.word("null", Value::Null),
            b't' => self.word("true", Value::Bool(true)),
            b'f' => self.word("false", Value::Bool(false)),
            b'N' => self.not_finite("NaN"),
            b'I' => self.not_finite("Infinity"),
            b'-' if self.rest().starts_with(b"-I") => self.not_finite("-Infinity"),
            b'-' | b'0'..=b'9' => self.number(),
            _ => Err(NotJson),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, NotJson> {
        if !self.rest().starts_with(word.as_bytes()) {
            return Err(NotJson);
        }
        self.at += word.len();
        Ok(value)
    }

    /// CPython reads these words, so a row that has one is complete, and refused.
    fn not_finite(&mut self, word: &str) -> Result<Value, NotJson> {
        self.exceeded(Limit::NotFinite);
        self.word(word, Value::Null)
    }

    fn number(&mut self) -> Result<Value, NotJson> {
        let start = self.at;
        self.eat(b'-');
        let digits_from = self.at;
        match self.digits() {
            0 => return Err(NotJson),
            1 => {}
            _ if self.text.as_bytes()[digits_from] == b'0' => {
                self.at = digits_from + 1;
                return Err(NotJson);
            }
            _ => {}
        }
        let digits = self.at - digits_from;
        let mut float = false;
        if self.eat(b'.') {
            float = true;
            if self.digits() == 0 {
                return Err(NotJson);
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            float = true;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(NotJson);
            }
        }
        let token = self.text_from(start);
        if !float {
            if digits > MAX_INT_DIGITS {
                self.exceeded(Limit::Digits);
                return Ok(Value::Null);
            }
            return Ok(Value::Int(Int::from_token(token)));
        }
        match float::read(token) {
            value if value.is_finite() => Ok(Value::Float(value)),
            _ => {
                self.exceeded(Limit::NotFinite);
                Ok(Value::Null)
            }
        }
    }

    fn digits(&mut self) -> usize {
        let count = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        count
    }

    fn string(&mut self) -> Result<Text, NotJson> {
        self.expect(b'"')?;
        let mut text = Text::default();
        loop {
            let start = self.at;
            self.at += super::plain::text_run(self.rest());
            text.push_str(self.text_from(start));
            match self.peek().ok_or(NotJson)? {
                b'"' => {
                    self.at += 1;
                    return Ok(text);
                }
                b'\\' => self.escape(&mut text)?,
                // A raw control character.
                _ => return Err(NotJson),
            }
        }
    }

    fn escape(&mut self, text: &mut Text) -> Result<(), NotJson> {
        self.at += 1;
        let character = match self.peek().ok_or(NotJson)? {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                let digits = self.text.as_bytes().get(self.at..self.at + 4).ok_or(NotJson)?;
                let unit = hex_unit(digits).ok_or(NotJson)?;
                self.at += 4;
                match char::from_u32(u32::from(unit)) {
                    Some(character) => text.push_char(character),
                    None => text.push_unit(unit),
                }
                return Ok(());
            }
            _ => return Err(NotJson),
        };
        self.at += 1;
        text.push_char(character);
        Ok(())
    }

    /// Reads a container that nests too deep without recursion, only to learn whether the text
    /// is complete JSON.
    fn skip_container(&mut self) -> Result<(), NotJson> {
        // One bit of state a level, as bytes: whether the container is an object.
        let mut open: Vec<bool> = Vec::new();
        loop {
            // A value stands here.
            self.white_space();
            match self.peek().ok_or(NotJson)? {
                opening @ (b'{' | b'[') => {
                    self.at += 1;
                    let object = opening == b'{';
                    self.white_space();
                    if !self.eat(if object { b'}' } else { b']' }) {
                        open.push(object);
                        if object {
                            self.skip_key()?;
                        }
                        continue;
                    }
                }
                _ => drop(self.scalar()?),
            }
            // A value ended here: close what it closes, or go on to the next.
            loop {
                let Some(&object) = open.last() else {
                    return Ok(());
                };
                self.white_space();
                if self.eat(if object { b'}' } else { b']' }) {
                    open.pop();
                    continue;
                }
                self.expect(b',')?;
                if object {
                    self.skip_key()?;
                }
                break;
            }
        }
    }

    fn skip_key(&mut self) -> Result<(), NotJson> {
        self.white_space();
        self.string()?;
        self.white_space();
        self.expect(b':')
    }

    fn exceeded(&mut self, limit: Limit) {
        self.limit = self.limit.or(Some((self.at, limit)));
    }

    fn white_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    /// What was read from a place on. It begins and ends with ASCII, so it is a text.
    fn text_from(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), NotJson> {
        if self.eat(byte) { Ok(()) } else { Err(NotJson) }
    }
}

fn hex_unit(digits: &[u8]) -> Option<u16> {
    digits.iter().try_fold(0, |unit: u16, &digit| {
        let value = char::from(digit).to_digit(16)?;
        Some(unit << 4 | u16::try_from(value).ok()?)
    })
}

/// A text that stands for a value in messages: at most 120 bytes of it.
pub(crate) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(120) {
        Some((end, _)) => alloc::format!("{}…", text.get(..end).unwrap_or_default()),
        None => String::from(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &[u8], expect: fn(&ParseError) -> bool) {
        let error = parse(text).expect_err("the text must be refused");
        assert!(expect(&error), "{error:?}");
    }

    #[test]
    fn a_byte_order_mark_is_not_json() {
        refused(b"\xef\xbb\xbf{}", |error| matches!(error, ParseError::NotJson { at: 0 }));
    }

    #[test]
    fn nesting_of_a_million_is_an_error_and_not_an_overflow() {
        let mut text = alloc::vec![b'['; 1_000_000];
        refused(&text, |error| matches!(error, ParseError::NotJson { .. }));
        text.extend(alloc::vec![b']'; 1_000_000]);
        let deep = |error: &ParseError| matches!(error, ParseError::Limit { at: 128, limit: Limit::Depth });
        refused(&text, deep);
        let mut mixed = "{\"a\":[1,".repeat(5000);
        mixed.push_str("{}");
        mixed.push_str(&"]}".repeat(5000));
        refused(mixed.as_bytes(), |error| matches!(error, ParseError::Limit { limit: Limit::Depth, .. }));
    }

    #[test]
    fn depth_128_is_read_and_129_is_not() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(parse(nested(128).as_bytes()).is_ok());
        refused(nested(129).as_bytes(), |error| matches!(error, ParseError::Limit { .. }));
    }

    #[test]
    fn a_duplicate_key_comes_before_a_limit_and_after_incompleteness() {
        let duplicate = |error: &ParseError| matches!(error, ParseError::DuplicateKey { .. });
        refused(b"[NaN,{\"a\":1,\"a\":2}]", duplicate);
        refused(b"{\"b\":1,\"a\":{\"x\":1,\"x\":1}}", duplicate);
        refused(b"{\"\\u0061\":1,\"a\":2}", duplicate);
        refused(b"{\"a\":1,\"a\":2", |error| matches!(error, ParseError::NotJson { .. }));
    }

    #[test]
    fn many_keys_in_reverse_are_sorted_and_their_duplicates_found() {
        let keys: Vec<String> = (0..10_000).rev().map(|key| alloc::format!("\"{key:05}\":0")).collect();
        let text = alloc::format!("{{{}}}", keys.join(","));
        let Ok(Value::Object(object)) = parse(text.as_bytes()) else { panic!("not an object") };
        assert_eq!(object.len(), 10_000);
        let text = alloc::format!("{{{},\"05000\":1}}", keys.join(","));
        refused(text.as_bytes(), |error| matches!(error, ParseError::DuplicateKey { .. }));
    }

    #[test]
    fn a_raw_byte_that_is_not_utf8_is_not_json() {
        refused(b"\"\xff\"", |error| matches!(error, ParseError::NotJson { at: 1 }));
        assert!(begins_with_object(b" {\"a\":[1]}\xff"));
        assert!(!begins_with_object(b"{\"a\":[1]\xff"));
        assert!(!begins_with_object(b"12 {}"));
    }
}
