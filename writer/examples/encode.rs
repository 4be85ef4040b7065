//! What the verifier makes of JSON texts, a line each, for the differential test against
//! CPython's `json` (`tests/interop/encoders.py`).
//!
//! A line in is a JSON string whose value is the text to read, lone surrogates as themselves
//! (so in WTF-8), or `{"hex":"…"}` with the text's bytes. The line out is `{"ascii":…,
//! "ascii_spaced":…,"utf8":…,"jcs_v2":…}`, where `"utf8_refused":true` and
//! `"jcs_v2_refused":true` stand for an encoding that the value has no form in; or
//! `{"refused":"not_json"}`, `"duplicate_key"` or `"limit"`.
#![allow(clippy::unwrap_used, reason = "a test's tool: what it can't read is a fault of the test")]

use std::io::{self, BufRead, BufWriter, Write};

use waybill_verifier::json::{self, Encoding, Object, ParseError, Text, Value};

fn main() {
    let mut out = BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().split(b'\n') {
        let mut answer = json::ascii(&Value::from(answer(&text(&line.unwrap()))));
        answer.push(b'\n');
        out.write_all(&answer).unwrap();
    }
    out.flush().unwrap();
}

/// The bytes of the text that a line names.
fn text(line: &[u8]) -> Vec<u8> {
    match json::parse(line).unwrap() {
        Value::String(text) => text.as_wtf8().to_vec(),
        Value::Object(object) => {
            let digits = object.get("hex").and_then(Value::as_str).unwrap();
            digits.as_bytes().chunks(2).map(byte).collect()
        }
        _ => panic!("a line is a string or an object"),
    }
}

fn byte(digits: &[u8]) -> u8 {
    u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap()
}

fn answer(text: &[u8]) -> Object {
    let value = match json::parse(text) {
        Ok(value) => value,
        Err(error) => {
            let refused = match error {
                ParseError::NotJson { .. } => "not_json",
                ParseError::DuplicateKey { .. } => "duplicate_key",
                ParseError::Limit { .. } => "limit",
            };
            return Object::of([("refused", Value::from(refused))]);
        }
    };
    let mut object = Object::default();
    for (name, encoding) in [
        ("ascii", Encoding::Ascii),
        ("ascii_spaced", Encoding::AsciiSpaced),
        ("utf8", Encoding::Utf8),
        ("jcs_v2", Encoding::JcsV2),
    ] {
        match json::encode(encoding, &value) {
            Ok(bytes) => {
                let encoded = String::from_utf8(bytes).unwrap();
                object.insert(Text::from(name), Value::from(encoded));
            }
            Err(json::LoneSurrogate) => {
                object.insert(Text::from(format!("{name}_refused")), Value::from(true));
            }
        }
    }
    object
}
