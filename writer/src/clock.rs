//! The clock, for those who pass the time on: decisions take it as an argument.

use std::time::{SystemTime, UNIX_EPOCH};

use waybill_verifier::time::Timestamp;

/// Microseconds since 1970 UTC; 0 where the clock is set before that.
#[must_use]
pub fn micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Now, as the audit log writes it.
///
/// # Panics
///
/// Behind the year 9999.
#[must_use]
pub fn timestamp() -> Timestamp {
    Timestamp::from_micros(micros()).expect("a year below 10000")
}

/// Seconds since 1970 UTC, to the microsecond.
#[must_use]
pub fn seconds() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (since.as_secs_f64() * 1e6).round() / 1e6
}

/// A moment, for commits, which count seconds, and for the audit log, which writes it out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    micros: u64,
}

impl Moment {
    /// Now.
    #[must_use]
    pub fn now() -> Moment {
        Moment { micros: micros() }
    }

    /// Seconds since 1970 UTC.
    #[must_use]
    pub fn seconds(self) -> u64 {
        self.micros / 1_000_000
    }

    /// As the audit log writes it.
    ///
    /// # Panics
    ///
    /// Behind the year 9999.
    #[must_use]
    pub fn timestamp(self) -> Timestamp {
        Timestamp::from_micros(self.micros).expect("a year below 10000")
    }
}
