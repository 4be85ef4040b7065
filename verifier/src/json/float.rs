//! The double that is nearest to a decimal number: to the even one, where two are as near.
//!
//! `f64::from_str` gives the same and needs a table of 10 KB, which no packing makes smaller.
//! Here numbers of up to 19 digits that are not far from 1 are read by arithmetic that is exact.
//! For others a near double is guessed, and moved to its neighbour until the number is between the
//! points halfway to the neighbours; whole numbers of any length tell that.

use alloc::vec::Vec;
use core::cmp::Ordering;

/// The most significant digits that are looked at. The point halfway between two doubles has at
/// most 767, so that of what follows only matters whether it is zero.
const MAX_DIGITS: usize = 768;

/// How many digits surely fit 64 bits.
const SHORT: usize = 19;

/// Reads a JSON number token; one that is too large is infinite.
pub(super) fn read(token: &str) -> f64 {
    let (negative, token) = match token.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, token),
    };
    let value = Decimal::read(token.as_bytes()).nearest();
    if negative { -value } else { value }
}

/// A number that is `0.d1d2d3… × 10^magnitude`; `d1` is not zero.
struct Decimal<'a> {
    /// The text before the exponent.
    text: &'a [u8],
    digits: usize,
    /// The first of them, at most [`SHORT`], as a whole number.
    first: u64,
    magnitude: i64,
}

impl Decimal<'_> {
    fn read(token: &[u8]) -> Decimal<'_> {
        let at_e = token.iter().position(|byte| matches!(byte, b'e' | b'E')).unwrap_or(token.len());
        let (text, exponent) = token.split_at(at_e);
        let mut number = Decimal { text, digits: 0, first: 0, magnitude: stated(exponent) };
        let mut behind_point = false;
        for &byte in text {
            if byte == b'.' {
                behind_point = true;
            } else if byte == b'0' && number.digits == 0 {
                number.magnitude -= i64::from(behind_point);
            } else {
                number.digits += 1;
                number.magnitude += i64::from(!behind_point);
                if number.digits <= SHORT {
                    number.first = number.first * 10 + u64::from(byte - b'0');
                }
            }
        }
        number
    }

    fn nearest(&self) -> f64 {
        match i32::try_from(self.magnitude) {
            _ if self.digits == 0 || self.magnitude < -400 => 0.0,
            Ok(magnitude) if magnitude <= 400 => {
                let short = i32::try_from(self.digits).ok().filter(|_| self.digits <= SHORT);
                let near = short.and_then(|digits| near(self.first, magnitude - digits));
                near.unwrap_or_else(|| self.far(magnitude))
            }
            _ => f64::INFINITY,
        }
    }

    fn far(&self, magnitude: i32) -> f64 {
        let (digits, count) = self.whole();
        let exact = Exact::of(digits, magnitude - count);
        let mut guess = exact.guess();
        loop {
            match exact.beside_the_point_above(guess) {
                Ordering::Greater if guess == f64::MAX => return f64::INFINITY,
                Ordering::Greater => guess = guess.next_up(),
                Ordering::Equal if odd(guess) => return guess.next_up(),
                Ordering::Equal => return guess,
                Ordering::Less if guess == 0.0 => return guess,
                Ordering::Less => match exact.beside_the_point_above(guess.next_down()) {
                    Ordering::Greater => return guess,
                    Ordering::Equal if odd(guess) => return guess.next_down(),
                    Ordering::Equal => return guess,
                    Ordering::Less => guess = guess.next_down(),
                },
            }
        }
    }

    /// The digits as a whole number, and how many they are. Where there are more than can matter,
    /// a last 1 stands for those that are not all zero.
    fn whole(&self) -> (Whole, i32) {
        let mut whole = Whole(Vec::new());
        let digits = self.text.iter().filter(|byte| byte.is_ascii_digit()).skip_while(|byte| **byte == b'0');
        let (mut part, mut scale, mut count) = (0, 1, 0);
        let mut cut_off = false;
        for (at, byte) in digits.enumerate() {
            if at >= MAX_DIGITS {
                cut_off |= *byte != b'0';
                continue;
            }
            part = part * 10 + u64::from(byte - b'0');
            scale *= 10;
            count += 1;
            if count % 18 == 0 {
                whole.multiply_add(scale, part);
                (part, scale) = (0, 1);
            }
        }
        whole.multiply_add(scale, part);
        if cut_off {
            whole.multiply_add(10, 1);
            count += 1;
        }
        (whole, count)
    }
}

fn stated(exponent: &[u8]) -> i64 {
    let (sign, digits) = match exponent {
        [_, b'-', digits @ ..] => (-1, digits),
        [_, b'+', digits @ ..] | [_, digits @ ..] => (1, digits),
        [] => return 0,
    };
    let add = |value: i64, digit: &u8| value * 10 + i64::from(digit - b'0');
    // Beyond every double, whatever the digits are: a line has fewer.
    sign * digits.iter().fold(0, |value, digit| add(value, digit).min(1 << 40))
}

/// `digits × 10^exponent`, where 128 bits hold all that decides; `None` if they may not.
fn near(digits: u64, exponent: i32) -> Option<f64> {
    const EXACT: u64 = 1 << 53;
    let power = exponent.unsigned_abs();
    if digits <= EXACT && power <= 22 {
        // Both are doubles, and one operation on doubles rounds as it must.
        let ten = double(10_u64.pow(power.min(11))) * double(10_u64.pow(power.saturating_sub(11)));
        return Some(if exponent < 0 { double(digits) / ten } else { double(digits) * ten });
    }
    if exponent >= 0 || power > 27 {
        return None;
    }
    let shift = digits.leading_zeros();
    let dividend = u128::from(digits << shift) << 64;
    let five = u128::from(5_u64.pow(power));
    let quotient = dividend / five;
    // It has 64 bits or more. Its first 53 are kept, and rounded to even.
    let drop = 128 - 53 - quotient.leading_zeros();
    let (kept, rest, half) = (quotient >> drop, quotient & ((1 << drop) - 1), 1 << (drop - 1));
    let remainder = quotient * five != dividend;
    let up = rest > half || (rest == half && (remainder || kept & 1 == 1));
    let kept = u64::try_from(kept).ok()? + u64::from(up);
    let scale = i32::try_from(drop).ok()? - 64 - i32::try_from(shift).ok()? + exponent;
    Some(double(kept) * two(scale))
}

/// A number as `number ÷ five × 2^exponent`; `five` is a power of five.
struct Exact {
    number: Whole,
    five: Whole,
    exponent: i32,
}

impl Exact {
    fn of(digits: Whole, exponent: i32) -> Exact {
        let mut exact = Exact { number: digits, five: Whole(Vec::from([1])), exponent };
        let raised = if exponent < 0 { &mut exact.five } else { &mut exact.number };
        raised.multiply_by_power_of_five(exponent.unsigned_abs());
        exact
    }

    /// A double that is at most some neighbours off.
    fn guess(&self) -> f64 {
        let (number, number_exponent) = self.number.first_bits();
        let (five, five_exponent) = self.five.first_bits();
        let quotient = (u128::from(number) << 64) / u128::from(five);
        let drop = 128 - 53 - quotient.leading_zeros();
        let digits = u64::try_from(quotient >> drop).unwrap_or(0);
        let drop = i32::try_from(drop).unwrap_or(0);
        let exponent = number_exponent - five_exponent - 64 + drop + self.exponent;
        // In two steps: the power alone may be too small for a double.
        let guess = double(digits) * two(exponent.clamp(-1000, 1000));
        (guess * two((exponent + 1000).min(0))).min(f64::MAX)
    }

    /// How the number stands to the point halfway between a double and the next one.
    fn beside_the_point_above(&self, double: f64) -> Ordering {
        let (digits, exponent) = parts(double);
        let mut point = self.five.clone();
        point.multiply_add(2 * digits + 1, 0);
        let shift = self.exponent - (exponent - 1);
        if shift < 0 {
            point.shift(shift.unsigned_abs());
            return self.number.compare(&point);
        }
        let mut number = self.number.clone();
        number.shift(shift.unsigned_abs());
        number.compare(&point)
    }
}

/// A whole number of any length: 32 bits each, the lowest first, the last not zero.
#[derive(Clone)]
struct Whole(Vec<u32>);

impl Whole {
    fn multiply_add(&mut self, factor: u64, more: u64) {
        let mut carry = u128::from(more);
        for limb in &mut self.0 {
            carry += u128::from(*limb) * u128::from(factor);
            (*limb, carry) = (low(carry), carry >> 32);
        }
        while carry > 0 {
            self.0.push(low(carry));
            carry >>= 32;
        }
    }

    fn multiply_by_power_of_five(&mut self, power: u32) {
        for _ in 0..power / 27 {
            self.multiply_add(5_u64.pow(27), 0);
        }
        self.multiply_add(5_u64.pow(power % 27), 0);
    }

    fn shift(&mut self, bits: u32) {
        self.multiply_add(1 << (bits % 32), 0);
        let zeros = core::iter::repeat_n(0, usize::try_from(bits / 32).unwrap_or(0));
        self.0.splice(0..0, zeros);
    }

    /// The first 64 bits, of which the first is set, and the power of two that they are multiplied
    /// with.
    fn first_bits(&self) -> (u64, i32) {
        let first = self.0.iter().rev().chain([&0, &0]).take(3);
        let first = first.fold(0, |bits, limb| bits << 32 | u128::from(*limb));
        let shift = first.leading_zeros();
        let limbs = i32::try_from(self.0.len()).unwrap_or(i32::MAX);
        let exponent = (limbs - 3) * 32 + 64 - i32::try_from(shift).unwrap_or(0);
        (u64::try_from(first << shift >> 64).unwrap_or(1), exponent)
    }

    fn compare(&self, other: &Whole) -> Ordering {
        let length = self.0.len().cmp(&other.0.len());
        length.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

/// The lowest 32 bits.
fn low(value: u128) -> u32 {
    u32::try_from(value & u128::from(u32::MAX)).unwrap_or(0)
}

/// A whole number of at most 53 bits.
fn double(value: u64) -> f64 {
    let value = u128::from(value);
    f64::from(low(value >> 32)) * 4_294_967_296.0 + f64::from(low(value))
}

/// A power of two that is a normal double.
fn two(exponent: i32) -> f64 {
    f64::from_bits(u64::try_from(1023 + exponent).unwrap_or(0) << 52)
}

/// A double as a whole number and the power of two that it is multiplied with.
fn parts(double: f64) -> (u64, i32) {
    let bits = double.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    match i32::try_from(bits >> 52).unwrap_or(0) {
        0 => (fraction, -1074),
        exponent => (1 << 52 | fraction, exponent - 1075),
    }
}

fn odd(double: f64) -> bool {
    double.to_bits() & 1 == 1
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::{String, ToString};

    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(token: &str) {
        let expected: f64 = token.parse().expect("a number");
        assert_eq!(read(token).to_bits(), expected.to_bits(), "{token}");
    }

    /// The point halfway between a double and the next one, with all its digits.
    fn halfway(double: f64) -> String {
        // Twice the precision's decimals are enough for any: 1074 binary places and one more.
        let (digits, exponent) = parts(double);
        let mut decimal = Whole(Vec::new());
        decimal.multiply_add(0, 2 * digits + 1);
        let exponent = exponent - 1;
        let places = exponent.min(0).unsigned_abs();
        decimal.multiply_by_power_of_five(places);
        decimal.shift(exponent.max(0).unsigned_abs());
        let mut text = String::new();
        while !decimal.0.is_empty() {
            let mut rest = 0;
            for limb in decimal.0.iter_mut().rev() {
                let value = rest << 32 | u128::from(*limb);
                (*limb, rest) = (low(value / 10), value % 10);
            }
            while decimal.0.last() == Some(&0) {
                decimal.0.pop();
            }
            text.insert_str(0, &rest.to_string());
        }
        format!("{text}e-{places}")
    }

    #[test]
    fn borders_are_read_right() {
        for token in [
            "0.0",
            "0e9",
            "0.000e-999",
            "1e0",
            "1e22",
            "1e23",
            "8.5e22",
            "9007199254740993e0",
            "9007199254740993.00000000000000000000000000001",
            "9007199254740992.999999",
            "1e308",
            "1.7976931348623157e308",
            "1.7976931348623158e308",
            "1.7976931348623159e308",
            "1e309",
            "1e400",
            "1e401",
            "1e99999999999999999999",
            "1e-99999999999999999999",
            "2.2250738585072011e-308",
            "2.2250738585072014e-308",
            "2.2250738585072012e-308",
            "4.9406564584124654e-324",
            "5e-324",
            "2.4703282292062327e-324",
            "2.4703282292062328e-324",
            "2e-324",
            "1e-330",
            "1e-400",
            "1e-401",
            "0.1",
            "0.30000000000000004",
            "1795975310.384364",
            "123456789012345678.9",
            "1e27",
            "1e-27",
            "9999999999999999999e-27",
            "9223372036854775808.0",
            "18446744073709551615.5",
        ] {
            check(token);
            check(&format!("-{token}"));
        }
        check(&format!("0.{}1", "0".repeat(5000)));
        check(&format!("{}.5", "1".repeat(5000)));
        check(&format!("0.{}1e5000", "0".repeat(5000)));
        check(&format!("1{}e-5000", "0".repeat(5000)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn doubles_and_what_is_halfway_are_read_right(bits in 0..f64::MAX.to_bits()) {
            let double = f64::from_bits(bits);
            check(&format!("{double:e}"));
            check(&format!("{double}e0"));
            let halfway = halfway(double);
            check(&halfway);
            let (digits, power) = halfway.split_once('e').expect("a power");
            check(&format!("{digits}.{}1e{power}", "0".repeat(800)));
            check(&format!("{digits}.0e{power}"));
        }

        #[test]
        fn numbers_as_people_write_them_are_read_right(
            whole in 0..u64::MAX, zeros in 0_usize..25, fraction in 0..u64::MAX, cut in 1_u32..20, power in -40_i32..40
        ) {
            let fraction = fraction % 10_u64.pow(cut.min(19));
            let whole = whole % 10_u64.pow(20 - cut.min(19));
            check(&format!("{whole}.{}{fraction}", "0".repeat(zeros)));
            check(&format!("{whole}.{fraction}e{power}"));
            check(&format!("{fraction}e{power}"));
            check(&format!("{fraction}e-{cut}"));
        }

        #[test]
        fn any_number_is_read_right(token in "(0|[1-9][0-9]{0,30})(\\.[0-9]{1,40})?e[+-]?[0-9]{1,3}") {
            check(&token);
        }
    }
}
