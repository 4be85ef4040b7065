//! What a run is held to.

use std::time::Duration;

use waybill_verifier::json::{Object, Value};

/// What happens when a run or a worker stalls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnStall {
    /// The verdict and its receipt are written; nothing is harmed.
    Report,
    /// The run is ended between the two.
    Stop,
    /// Then the receipt's recommended action is taken.
    Auto,
}

impl OnStall {
    /// All of them.
    pub const ALL: [OnStall; 3] = [OnStall::Report, OnStall::Stop, OnStall::Auto];

    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            OnStall::Report => "report",
            OnStall::Stop => "stop",
            OnStall::Auto => "auto",
        }
    }
}

/// What a run is held to. Times are kept in milliseconds.
#[derive(Clone, PartialEq, Debug)]
pub struct Policy {
    /// Silence of the run or of one worker that counts as a stall.
    pub stall_after: Duration,
    /// What happens then.
    pub on_stall: OnStall,
    /// How often the command may be started again by itself.
    pub respawns: u64,
    /// How long the child has between TERM and KILL.
    pub grace: Duration,
    /// How long the run may take.
    pub ceiling: Option<Duration>,
    /// How much the run may cost: the sum of `cost` in what it records.
    pub budget: Option<f64>,
    /// How large a console log may grow before it is rotated, in bytes; two are kept.
    pub console_limit: u64,
    /// What is scrubbed besides what always is: regular expressions.
    pub patterns: Vec<String>,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            stall_after: Duration::from_secs(600),
            on_stall: OnStall::Report,
            respawns: 2,
            grace: Duration::from_secs(10),
            ceiling: None,
            budget: None,
            console_limit: 10 << 20,
            patterns: Vec::new(),
        }
    }
}

impl Policy {
    /// As JSON.
    #[must_use]
    pub fn to_document(&self) -> Object {
        let patterns = self.patterns.iter().map(|pattern| Value::from(pattern.as_str()));
        Object::of([
            ("stall_after_ms", Value::from(millis(self.stall_after))),
            ("on_stall", Value::from(self.on_stall.name())),
            ("respawns", Value::from(self.respawns)),
            ("grace_ms", Value::from(millis(self.grace))),
            ("ceiling_ms", Value::from(self.ceiling.map(millis))),
            ("budget", self.budget.map_or(Value::Null, Value::Float)),
            ("console_limit", Value::from(self.console_limit)),
            ("redact_patterns", Value::from(patterns.collect::<Vec<_>>())),
        ])
    }

    /// From JSON.
    #[must_use]
    pub fn from_document(object: &Object) -> Option<Policy> {
        let time = |name: &str| Some(Duration::from_millis(object.get(name)?.as_u64()?));
        let on_stall = object.get("on_stall")?.as_str()?;
        let Value::Array(patterns) = object.get("redact_patterns")? else { return None };
        Some(Policy {
            stall_after: time("stall_after_ms")?,
            on_stall: OnStall::ALL.into_iter().find(|known| known.name() == on_stall)?,
            respawns: object.get("respawns")?.as_u64()?,
            grace: time("grace_ms")?,
            ceiling: time("ceiling_ms"),
            budget: match object.get("budget")? {
                Value::Float(budget) => Some(*budget),
                _ => None,
            },
            console_limit: object.get("console_limit")?.as_u64()?,
            patterns: patterns.iter().map(|text| text.as_str().map(str::to_owned)).collect::<Option<_>>()?,
        })
    }
}

/// A time in whole milliseconds.
#[must_use]
pub fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A time as people write it: a number and `ms`, `s`, `m`, `h` or `d`; without one, seconds.
///
/// # Errors
///
/// Says what a time looks like.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    let wrong = || String::from("a time is a number with ms, s, m, h or d, as 90s or 10m");
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let factor = match unit {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(wrong()),
    };
    number.checked_mul(factor).map(Duration::from_millis).ok_or_else(wrong)
}

/// A time as people read it.
#[must_use]
pub fn show_time(time: Duration) -> String {
    let (seconds, millis) = (time.as_secs(), time.subsec_millis());
    match seconds {
        0 if millis > 0 => format!("{millis} ms"),
        0 => String::from("0 s"),
        1..60 if millis > 0 => format!("{seconds}.{} s", millis / 100),
        1..120 => format!("{seconds} s"),
        120..7200 => format!("{} m", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn times_are_read_with_their_units() {
        for (text, millis) in
            [("90", 90_000), ("250ms", 250), ("2s", 2000), ("10m", 600_000), ("1h", 3_600_000)]
        {
            assert_eq!(parse_time(text).unwrap(), Duration::from_millis(millis));
        }
        for text in ["", "s", "-1s", "1.5s", "1w", "99999999999999999d"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_policy_survives_its_document() {
        let policy = Policy { ceiling: Some(Duration::from_secs(5)), budget: Some(1.5), ..Policy::default() };
        assert_eq!(Policy::from_document(&policy.to_document()), Some(policy));
    }
}
