//! Proving, in one scan and without a copy, that a text is already `ascii` canonical.
//!
//! The proof may give up on a text that is canonical (`None` then means "not shown", never "not
//! canonical"): a caller then parses, re-encodes and compares. What it does prove is exactly
//! what the encoder would write: no white space, keys strictly rising, escapes and numbers in
//! their one form, nesting within the limit.

use alloc::vec::Vec;

use super::float;
use super::number::{MAX_INT_DIGITS, push_python};
use super::parse::MAX_DEPTH;
use super::plain::ascii_run;
use crate::hash::nibble;

/// The end of the canonical value that starts at `at`; `level` is the level of a container there.
/// On the way, `seen` is told up to where the text is proven.
fn value(bytes: &[u8], at: usize, level: usize, seen: &mut impl FnMut(usize)) -> Option<usize> {
    match *bytes.get(at)? {
        b'"' => string(bytes, at).map(|(end, _)| end),
        b'{' => object(bytes, at, level, seen),
        b'[' => array(bytes, at, level, seen),
        b'n' => word(bytes, at, b"null"),
        b't' => word(bytes, at, b"true"),
        b'f' => word(bytes, at, b"false"),
        b'-' | b'0'..=b'9' => number(bytes, at),
        _ => None,
    }
}

/// The end of the canonical object that starts at `at`, as [`value`].
pub(crate) fn object(bytes: &[u8], at: usize, level: usize, seen: &mut impl FnMut(usize)) -> Option<usize> {
    if level > MAX_DEPTH {
        return None;
    }
    let mut at = at + 1;
    if *bytes.get(at)? == b'}' {
        return Some(at + 1);
    }
    let mut last: Option<&[u8]> = None;
    loop {
        if *bytes.get(at)? != b'"' {
            return None;
        }
        let (end, escapes) = string(bytes, at)?;
        let key = &bytes[at + 1..end - 1];
        // Escaped keys order by what they mean, not by their bytes: leave those to the parser.
        if escapes || last.is_some_and(|last| !rises(last, key)) {
            return None;
        }
        last = Some(key);
        if *bytes.get(end)? != b':' {
            return None;
        }
        at = value(bytes, end + 1, level + 1, seen)?;
        seen(at);
        match *bytes.get(at)? {
            b',' => at += 1,
            b'}' => return Some(at + 1),
            _ => return None,
        }
    }
}

/// Whether a key sorts behind the last one: mostly the first bytes tell, without a call.
#[inline]
fn rises(last: &[u8], key: &[u8]) -> bool {
    match (last.first(), key.first()) {
        (Some(last), Some(key)) if last != key => last < key,
        _ => last < key,
    }
}

fn array(bytes: &[u8], at: usize, level: usize, seen: &mut impl FnMut(usize)) -> Option<usize> {
    if level > MAX_DEPTH {
        return None;
    }
    let mut at = at + 1;
    if *bytes.get(at)? == b']' {
        return Some(at + 1);
    }
    loop {
        at = value(bytes, at, level + 1, seen)?;
        seen(at);
        match *bytes.get(at)? {
            b',' => at += 1,
            b']' => return Some(at + 1),
            _ => return None,
        }
    }
}

fn word(bytes: &[u8], at: usize, word: &[u8]) -> Option<usize> {
    bytes[at..].starts_with(word).then_some(at + word.len())
}

/// The end of a canonical string, and whether it has escapes.
#[inline]
fn string(bytes: &[u8], at: usize) -> Option<(usize, bool)> {
    let from = at + 1;
    let end = from + ascii_run(bytes.get(from..)?);
    match *bytes.get(end)? {
        b'"' => Some((end + 1, false)),
        _ => escaped_string(bytes, end).map(|end| (end, true)),
    }
}

/// The end of a canonical string that has an escape at `at`, or does not go on there.
#[inline(never)]
fn escaped_string(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at = escape(bytes, at + 1)?,
            _ => return None,
        }
        at += ascii_run(bytes.get(at..)?);
    }
}

fn escape(bytes: &[u8], at: usize) -> Option<usize> {
    match *bytes.get(at)? {
        b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't' => Some(at + 1),
        b'u' => {
            let mut unit = 0u32;
            for &digit in bytes.get(at + 1..)?.first_chunk::<4>()? {
                unit = unit << 4 | u32::from(nibble(digit)?);
            }
            let has_another_form = matches!(unit, 0x20..=0x7e | 0x08 | 0x09 | 0x0a | 0x0c | 0x0d);
            (!has_another_form).then_some(at + 5)
        }
        _ => None,
    }
}

/// The end of a canonical number.
pub(crate) fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let start = at;
    let negative = usize::from(*bytes.get(at)? == b'-');
    let whole_at = at + negative;
    let whole = digits(bytes, whole_at);
    if whole == 0 || (whole > 1 && bytes[whole_at] == b'0') {
        return None;
    }
    let mut at = whole_at + whole;
    match bytes.get(at) {
        Some(b'.') => {
            let fraction_at = at + 1;
            let fraction = digits(bytes, fraction_at);
            at = fraction_at + fraction;
            if fraction == 0 {
                return None;
            }
            if !matches!(bytes.get(at), Some(b'e' | b'E'))
                && short_decimal(&bytes[whole_at..whole_at + whole], &bytes[fraction_at..at])
            {
                return Some(at);
            }
        }
        Some(b'e' | b'E') => {}
        _ => {
            let minus_zero = negative == 1 && bytes[whole_at] == b'0';
            return (whole <= MAX_INT_DIGITS && !minus_zero).then_some(at);
        }
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1;
        at += usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
        let exponent = digits(bytes, at);
        if exponent == 0 {
            return None;
        }
        at += exponent;
    }
    let token = &bytes[start..at];
    // No double needs more text than this.
    if token.len() > 32 {
        return None;
    }
    let value = float::read(core::str::from_utf8(token).ok()?);
    if !value.is_finite() {
        return None;
    }
    // In Python's plain range the formatter's plain text is Python's, without a copy.
    let mut buffer = zmij::Buffer::new();
    let plain = (1e-4..1e16).contains(&value.abs()) && !token.contains(&b'e');
    if plain && buffer.format_finite(value).as_bytes() == token {
        return Some(at);
    }
    let mut text = Vec::with_capacity(32);
    push_python(&mut text, value);
    (text == token).then_some(at)
}

/// Whether a decimal of at most 15 significant digits is in the form that Python writes. Such
/// decimals are distinct doubles, so the shortest text that reads back is the text itself.
fn short_decimal(whole: &[u8], fraction: &[u8]) -> bool {
    let ends_well = fraction == b"0" || fraction.last() != Some(&b'0');
    let significant = if whole == b"0" {
        let zeros = fraction.iter().take_while(|&&digit| digit == b'0').count();
        // 0.0001 is the smallest that is written without an exponent.
        if zeros > 3 {
            return false;
        }
        fraction.len() - zeros
    } else {
        whole.len() + fraction.len()
    };
    // From 2^29 to 2^33 neighbouring doubles are less than a millionth apart, so that a number of
    // seconds with six decimals is its double's shortest text, too.
    let seconds = whole.len() == 10 && whole[0] < b'8' && fraction.len() <= 6;
    ends_well && (significant <= 15 || seconds || seven_decimals(whole, fraction))
}

/// Whether a number of seconds with seven decimals, not ending in zero, is the shortest text of the
/// double that it reads as. Between 2^30 and 2^31 doubles are 2^-22 apart, so whole numbers tell.
fn seven_decimals(whole: &[u8], fraction: &[u8]) -> bool {
    const SCALE: u64 = 10_000_000;
    let from_2004_to_2036 = matches!(whole, [b'1', b'1'..=b'9', ..] | [b'2', b'0', ..]);
    let Ok(&[a, b, c, d, e, f, g]) = <&[u8; 7]>::try_from(fraction) else { return false };
    if whole.len() != 10 || !from_2004_to_2036 {
        return false;
    }
    let stated = eight_digits([b'0', a, b, c, d, e, f, g]);
    // The double nearest to the text, in steps of 2^-22. The text is never halfway between two.
    let double = ((stated << 23) + SCALE) / (2 * SCALE);
    // Nearer to it than another text with seven decimals? Halfway is left to whoever knows ties.
    let nearest = (stated << 22).abs_diff(double * SCALE) < 1 << 21;
    // One with six is shorter, if it is within half a step of this double.
    let shorter = (stated + 5) / 10 * 10;
    nearest && (shorter << 23).abs_diff(double * 2 * SCALE) > SCALE
}

/// The value of eight decimal digits: pairs, then fours, then all are put together at once.
fn eight_digits(digits: [u8; 8]) -> u64 {
    let ones = u64::from_le_bytes(digits) & 0x0f0f_0f0f_0f0f_0f0f;
    let pairs = (ones.wrapping_mul(10 << 8 | 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100 << 16 | 1) >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000 << 32 | 1) >> 32
}

/// How many digits there are. One by one: a count that is guessed right is not waited for, and what
/// comes behind starts where it says.
fn digits(bytes: &[u8], at: usize) -> usize {
    bytes.get(at..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).count()
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use proptest::prelude::*;

    use super::super::{ascii, parse};
    use super::*;

    fn proven(text: &str) -> bool {
        value(text.as_bytes(), 0, 1, &mut |_| {}) == Some(text.len())
    }

    #[test]
    fn usual_canonical_texts_are_proven() {
        for text in [
            r#"{"a":1,"b":[true,false,null,-1.5,0.0,-0.0,1e+16,1795975359.3843641],"c":{}}"#,
            r#""\u00e9\n\ud83d\ude00\ud800\u007f\\""#,
            "[]",
            "123456789012345678901234567890",
            "0.0001",
            "5e-324",
        ] {
            assert!(proven(text), "{text}");
        }
    }

    #[test]
    fn texts_in_any_other_form_are_not() {
        for text in [
            r#"{"b":1,"a":2}"#,
            r#"{"a":1,"a":2}"#,
            r#"{"a": 1}"#,
            "[1, 2]",
            r#""\u00E9""#,
            "\"é\"",
            r#""\/""#,
            r#""\u0041""#,
            r#""\u000a""#,
            "-0",
            "1.50",
            "1.00",
            "0.00001",
            "1E5",
            "1e5",
            "100000.00",
            "01",
            "1e400",
            "NaN",
            "0.10",
            "00.1",
            "1e+015",
            "\"a\tb\"",
            " 1",
        ] {
            assert!(!proven(text), "{text}");
        }
    }

    /// What Python writes for the double that `text` reads as.
    fn python(text: &str) -> Vec<u8> {
        ascii(&super::super::Value::Float(text.parse().expect("a float")))
    }

    #[test]
    fn seconds_are_proven_in_the_one_form_that_python_writes() {
        // Neighbours of where doubles get further apart, and of where the short ways end.
        let wholes: [u64; 13] = [
            999_999_999,
            1_073_741_823,
            1_073_741_824,
            1_099_999_999,
            1_100_000_000,
            2_099_999_999,
            2_100_000_000,
            2_147_483_648,
            4_294_967_296,
            7_999_999_999,
            8_589_934_591,
            8_589_934_592,
            9_999_999_999,
        ];
        let near_zero = 0..300;
        let spread = (0..600).map(|step| step * 2_654_435_761 % 10_000_000);
        // The doubles that are halfway between two texts with seven decimals.
        let halfway = (0..256).flat_map(|part| [part * 10_000_000 / 256, part * 10_000_000 / 256 + 1]);
        let fractions: Vec<u64> = near_zero.chain(spread).chain(halfway).collect();
        for whole in wholes {
            for fraction in &fractions {
                for text in [
                    alloc::format!("{whole}.{fraction:07}"),
                    alloc::format!("-{whole}.{:07}", 10_000_000 - fraction.max(&1)),
                    alloc::format!("{whole}.{:06}", fraction % 1_000_000),
                    alloc::format!("{whole}.{fraction:08}"),
                ] {
                    assert_eq!(proven(&text), python(&text) == text.as_bytes(), "{text}");
                }
            }
        }
    }

    #[test]
    fn seconds_with_seven_decimals_need_no_double() {
        for fraction in (1..10_000u64).map(|step| step * 2_654_435_761 % 10_000_000) {
            let text = alloc::format!("1795975359.{fraction:07}");
            let short = !text.ends_with('0') && seven_decimals(b"1795975359", &text.as_bytes()[11..]);
            assert_eq!(short, python(&text) == text.as_bytes(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_proven_is_what_the_encoder_writes(
            text in r#"([\[\]{}:,"a\\u00ed8n0-9.eE+-]|"[ab]":|\\u00e9|\\ud83d|[0-9]{1,18}\.[0-9]{1,4}){0,14}"#,
        ) {
            check(&text)?;
        }

        #[test]
        fn every_double_is_proven_in_its_own_form_only(bits: u64) {
            let float = f64::from_bits(bits);
            prop_assume!(float.is_finite());
            let text = ascii(&super::super::Value::Float(float));
            let text = String::from_utf8(text).expect("ascii");
            prop_assert!(proven(&text), "{}", text);
            check(&alloc::format!("{float}"))?;
            check(&alloc::format!("{float:e}"))?;
        }
    }

    fn check(text: &str) -> Result<(), TestCaseError> {
        if proven(text) {
            let value = parse(text.as_bytes())
                .map_err(|error| TestCaseError::fail(alloc::format!("{text}: {error}")))?;
            prop_assert_eq!(ascii(&value), text.as_bytes());
        }
        Ok(())
    }
}
