//! Times as the audit log writes them: `2026-11-27T19:00:00.699226Z`, UTC, always 27 characters,
//! so that their text orders as the times do (`strftime` `%Y-%m-%dT%H:%M:%S.%fZ`).

use alloc::format;
use alloc::string::String;
use core::fmt;

/// A time of the years 0000 to 9999, to the microsecond.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Timestamp(String);

impl Timestamp {
    /// Reads exactly the written form; anything else, the 31st of June too, is `None`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Timestamp> {
        let bytes = text.as_bytes();
        let shape = bytes.len() == 27
            && [(10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (26, b'Z')]
                .iter()
                .all(|&(at, byte)| bytes[at] == byte)
            && text.get(..10).is_some_and(is_day);
        let within = |at, most| two(bytes, at).is_some_and(|value| value <= most);
        let fits = shape
            && within(11, 23)
            && within(14, 59)
            && within(17, 59)
            && bytes[20..26].iter().all(u8::is_ascii_digit);
        fits.then(|| Timestamp(String::from(text)))
    }

    /// The time so many microseconds after 1970-01-01T00:00:00Z; `None` after the year 9999.
    #[must_use]
    pub fn from_micros(micros: u64) -> Option<Timestamp> {
        let (seconds, micro) = (micros / 1_000_000, micros % 1_000_000);
        let (days, second) = (seconds / 86_400, seconds % 86_400);
        let (year, month, day) = civil(days);
        if year > 9999 {
            return None;
        }
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        Some(Timestamp(format!(
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micro:06}Z"
        )))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its day, `YYYY-MM-DD`.
    #[must_use]
    pub fn day(&self) -> &str {
        self.0.get(..10).unwrap_or_default()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a text is a day that there is, as `YYYY-MM-DD`.
#[must_use]
pub fn is_day(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || !text.is_ascii() || bytes[4] != b'-' || bytes[7] != b'-' {
        return false;
    }
    let (Some(century), Some(rest), Some(month), Some(day)) =
        (two(bytes, 0), two(bytes, 2), two(bytes, 5), two(bytes, 8))
    else {
        return false;
    };
    let year = century * 100 + rest;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=last).contains(&day)
}

fn two(bytes: &[u8], at: usize) -> Option<u32> {
    let digit = |at: usize| char::from(*bytes.get(at)?).to_digit(10);
    Some(digit(at)? * 10 + digit(at + 1)?)
}

/// The date so many days after 1970-01-01, by counting from 0000-03-01 in eras of 400 years.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days.saturating_add(719_468);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_strftime_writes_them() {
        for (micros, expect) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_400_000_001, "2000-02-29T00:00:00.000001Z"),
            (1_795_806_000_699_226, "2026-11-27T19:00:00.699226Z"),
            (253_402_300_799_999_999, "9999-12-31T23:59:59.999999Z"),
        ] {
            let time = Timestamp::from_micros(micros).expect("before the year 10000");
            assert_eq!(time.as_str(), expect);
            assert_eq!(Timestamp::parse(expect), Some(time));
        }
        assert_eq!(Timestamp::from_micros(253_402_300_800_000_000), None);
        assert_eq!(Timestamp::from_micros(u64::MAX), None);
    }

    #[test]
    fn days_that_there_are_not_and_other_forms_are_refused() {
        for good in ["2026-11-27", "2024-02-29", "2000-02-29"] {
            assert!(is_day(good), "{good}");
        }
        for bad in [
            "2026-02-29",
            "1900-02-29",
            "2026-13-01",
            "2026-00-10",
            "2026-1-010",
            "2026-11-31",
            "zz-notes",
            "",
        ] {
            assert!(!is_day(bad), "{bad}");
        }
        for bad in [
            "2026-11-27T19:00:00Z",
            "2026-11-27T24:00:00.000000Z",
            "2026-11-27 19:00:00.000000Z",
            "2026-11-27T19:00:00.00000éZ",
            "2026-11-27T19:00:60.000000Z",
        ] {
            assert_eq!(Timestamp::parse(bad), None, "{bad}");
        }
    }
}
