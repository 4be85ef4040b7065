//! Names that reach paths, refs and terminals: checked once, safe ever after.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;

use crate::find::has;

/// A run's id: `^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`, and a valid component of a git ref.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RunId(String);

/// A task's id: `^[A-Za-z0-9_.-]{0,64}$`; the empty one is the run itself.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskId(String);

/// What kind of transition an entry records: `^[a-z][a-z0-9_.-]{0,63}$`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Kind(String);

/// A name that does not fit its pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadName(&'static str);

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl core::error::Error for BadName {}

impl RunId {
    /// Takes a run id.
    ///
    /// # Errors
    ///
    /// Says the rule, if the name is not safe as a folder and in a ref.
    pub fn new(name: &str) -> Result<RunId, BadName> {
        let bytes = name.as_bytes();
        let safe = (1..=64).contains(&bytes.len())
            && bytes.iter().all(|&byte| is_id_byte(byte))
            && !matches!(bytes[0], b'.' | b'-')
            && !has(name, "..")
            && !name.ends_with('.')
            && !name.ends_with(".lock");
        if safe {
            Ok(RunId(name.to_owned()))
        } else {
            Err(BadName(
                "a run id is 1 to 64 of A-Z a-z 0-9 _ . -, starts with a letter, digit or _, has no \
                 '..' and does not end with '.' or '.lock'",
            ))
        }
    }

    /// The id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TaskId {
    /// Takes a task id.
    ///
    /// # Errors
    ///
    /// Says the rule.
    pub fn new(name: &str) -> Result<TaskId, BadName> {
        if is_task_id(name.as_bytes()) {
            Ok(TaskId(name.to_owned()))
        } else {
            Err(BadName("a task id is at most 64 of A-Z a-z 0-9 _ . -"))
        }
    }

    /// The id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Kind {
    /// Takes a kind.
    ///
    /// # Errors
    ///
    /// Says the rule.
    pub fn new(name: &str) -> Result<Kind, BadName> {
        if is_kind(name.as_bytes()) {
            Ok(Kind(name.to_owned()))
        } else {
            Err(BadName("a kind is 1 to 64 of a-z 0-9 _ . - and starts with a letter, as task.started"))
        }
    }

    /// The kind.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

macro_rules! name_traits {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl core::str::FromStr for $name {
            type Err = BadName;

            fn from_str(name: &str) -> Result<$name, BadName> {
                $name::new(name)
            }
        }
    )*};
}

name_traits!(RunId, TaskId, Kind);

pub(crate) fn is_kind(name: &[u8]) -> bool {
    (1..=64).contains(&name.len())
        && name[0].is_ascii_lowercase()
        && name.iter().all(|&byte| is_id_byte(byte) && !byte.is_ascii_uppercase())
}

pub(crate) fn is_task_id(name: &[u8]) -> bool {
    name.len() <= 64 && name.iter().all(|&byte| is_id_byte(byte))
}

fn is_id_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_that_paths_or_refs_could_misread_are_refused() {
        for bad in ["a.lock", "a..b", "abc.", "abc\n", "../x", "-x", "", ".x", "a/b", "ä", "a b"] {
            assert!(RunId::new(bad).is_err(), "{bad:?}");
        }
        assert!(RunId::new(&"a".repeat(65)).is_err());
        for good in ["goal-42", "_x", "a.b", "A", "a-", "lock", &"a".repeat(64)] {
            assert!(RunId::new(good).is_ok(), "{good:?}");
        }
    }

    #[test]
    fn kinds_and_task_ids_keep_to_their_patterns() {
        assert!(Kind::new("task.started").is_ok() && Kind::new("a").is_ok());
        for bad in ["", "Task.started", "9a", ".a", "task started", "task\u{e9}", &"a".repeat(65)] {
            assert!(Kind::new(bad).is_err(), "{bad:?}");
        }
        assert!(TaskId::new("").is_ok() && TaskId::new("A..b-").is_ok());
        for bad in ["a b", "a\n", "é", &"a".repeat(65)] {
            assert!(TaskId::new(bad).is_err(), "{bad:?}");
        }
    }
}
