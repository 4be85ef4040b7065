//! Number texts: exact integers, and floats as Python's `repr` or as ECMAScript writes them.

use alloc::string::String;
use alloc::vec::Vec;

/// CPython refuses to convert integers of more digits (`sys.set_int_max_str_digits`).
pub const MAX_INT_DIGITS: usize = 4300;

/// An integer of up to [`MAX_INT_DIGITS`] digits, held as its canonical decimal text.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Int(String);

impl Int {
    /// Takes a JSON integer token; `-0` is `0`.
    pub(super) fn from_token(token: &str) -> Int {
        Int(String::from(if token == "-0" { "0" } else { token }))
    }

    /// The decimal text: no leading zeros, no `+`, never `-0`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value, if it fits.
    #[must_use]
    pub fn to_u64(&self) -> Option<u64> {
        self.0.parse().ok()
    }

    /// Whether the value is below zero.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.0.starts_with('-')
    }
}

impl From<u64> for Int {
    fn from(value: u64) -> Int {
        Int(alloc::format!("{value}"))
    }
}

impl From<i64> for Int {
    fn from(value: i64) -> Int {
        Int(alloc::format!("{value}"))
    }
}

/// Appends Python's `repr` of a finite float: the shortest digits that round-trip, exponent form
/// below 1e-4 and from 1e16 on, at least two exponent digits, `.0` where integral.
pub(super) fn push_python(out: &mut Vec<u8>, value: f64) {
    let shortest = Shortest::of(value);
    let Shortest { negative, digits, point } = &shortest;
    if *negative {
        out.push(b'-');
    }
    if (-3..=16).contains(point) {
        push_fixed(out, digits, *point);
        if usize::try_from(*point).is_ok_and(|point| point >= digits.len()) {
            out.extend_from_slice(b".0");
        }
    } else {
        push_exponent(out, digits, point - 1, 2);
    }
}

/// Appends ECMAScript's `Number::toString` of a finite float (RFC 8785 3.2.2.3).
pub(super) fn push_ecmascript(out: &mut Vec<u8>, value: f64) {
    if value == 0.0 {
        out.push(b'0');
        return;
    }
    let shortest = Shortest::of(value);
    let Shortest { negative, digits, point } = &shortest;
    if *negative {
        out.push(b'-');
    }
    if (-5..=21).contains(point) {
        push_fixed(out, digits, *point);
    } else {
        push_exponent(out, digits, point - 1, 1);
    }
}

/// The shortest decimal digits of a float: `0.d1d2d3… × 10^point`.
struct Shortest {
    negative: bool,
    digits: Vec<u8>,
    point: i32,
}

impl Shortest {
    /// Reads the digits out of the formatter's text, whatever notation it chose.
    fn of(value: f64) -> Shortest {
        let mut buffer = zmij::Buffer::new();
        let text = buffer.format_finite(value).as_bytes();
        let (negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            _ => (false, text),
        };
        let (mantissa, exponent) = match text.iter().position(|&byte| byte == b'e') {
            Some(at) => (&text[..at], exponent(&text[at + 1..])),
            None => (text, 0),
        };
        let mut digits = Vec::with_capacity(24);
        let mut point = exponent;
        let mut before_point = true;
        for &byte in mantissa {
            if byte == b'.' {
                before_point = false;
            } else if !(byte == b'0' && digits.is_empty()) {
                digits.push(byte);
                point += i32::from(before_point);
            } else {
                point -= i32::from(!before_point);
            }
        }
        while digits.last() == Some(&b'0') {
            digits.pop();
        }
        if digits.is_empty() {
            digits.push(b'0');
            point = 1;
        }
        Shortest { negative, digits, point }
    }
}

fn exponent(text: &[u8]) -> i32 {
    let (sign, digits) = match text {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        _ => (1, text),
    };
    sign * digits.iter().fold(0, |sum, &digit| sum * 10 + i32::from(digit - b'0'))
}

fn push_fixed(out: &mut Vec<u8>, digits: &[u8], point: i32) {
    match usize::try_from(point) {
        Ok(0) | Err(_) => {
            out.extend_from_slice(b"0.");
            out.extend((point..0).map(|_| b'0'));
            out.extend_from_slice(digits);
        }
        Ok(point) if point >= digits.len() => {
            out.extend_from_slice(digits);
            out.extend((digits.len()..point).map(|_| b'0'));
        }
        Ok(point) => {
            out.extend_from_slice(&digits[..point]);
            out.push(b'.');
            out.extend_from_slice(&digits[point..]);
        }
    }
}

fn push_exponent(out: &mut Vec<u8>, digits: &[u8], exponent: i32, least: usize) {
    out.push(digits[0]);
    if digits.len() > 1 {
        out.push(b'.');
        out.extend_from_slice(&digits[1..]);
    }
    out.push(b'e');
    out.push(if exponent < 0 { b'-' } else { b'+' });
    out.extend_from_slice(alloc::format!("{:0least$}", exponent.unsigned_abs()).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn python(value: f64) -> String {
        let mut out = Vec::new();
        push_python(&mut out, value);
        String::from_utf8(out).expect("number texts are ascii")
    }

    fn ecmascript(value: f64) -> String {
        let mut out = Vec::new();
        push_ecmascript(&mut out, value);
        String::from_utf8(out).expect("number texts are ascii")
    }

    #[test]
    fn floats_print_as_python_prints_them() {
        for (value, expect) in [
            (10.0, "10.0"),
            (-0.0, "-0.0"),
            (0.0, "0.0"),
            (1e-7, "1e-07"),
            (1e20, "1e+20"),
            (0.00001, "1e-05"),
            (0.0001, "0.0001"),
            (0.001_234, "0.001234"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (9_999_999_999_999_998.0, "9999999999999998.0"),
            (1.234_567_890_123_456_8e17, "1.2345678901234568e+17"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e100, "1e+100"),
        ] {
            assert_eq!(python(value), expect);
        }
    }

    #[test]
    fn floats_print_as_ecmascript_prints_them() {
        for (value, expect) in [
            (10.0, "10"),
            (-0.0, "0"),
            (1e-7, "1e-7"),
            (1e-6, "0.000001"),
            (0.00001, "0.00001"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (123.456, "123.456"),
            (-1.5e-9, "-1.5e-9"),
        ] {
            assert_eq!(ecmascript(value), expect);
        }
    }
}
