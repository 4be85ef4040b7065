//! Tells by content what a piece of evidence is.

/// How many bytes from a file's start are enough to tell.
pub const ENOUGH: u64 = 256 << 10;

/// What a file is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Nothing is in it.
    Empty,
    /// A work ledger.
    Ledger,
    /// A step journal.
    StepJournal,
    /// None of these.
    Unknown,
}

/// Tells what a file is from its first [`ENOUGH`] bytes.
///
/// A damaged file is told by what is left of it: the name of the field that only its kind has.
/// Being told is no check.
#[must_use]
pub fn tell(beginning: &[u8]) -> Kind {
    let has = |field: &[u8]| memchr::memmem::find(beginning, field).is_some();
    if beginning.iter().all(u8::is_ascii_whitespace) {
        Kind::Empty
    } else if has(b"\"step_hash\"") {
        Kind::StepJournal
    } else if has(b"\"entry_hash\"") && has(b"\"kind\"") && has(b"\"task_id\"") {
        Kind::Ledger
    } else {
        Kind::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_the_fields_only_they_have() {
        assert_eq!(tell(b" \n"), Kind::Empty);
        assert_eq!(tell(b"\xff\n{\"entry_hash\":\"\",\"kind\":\"\",\"task_id\":\"\"}"), Kind::Ledger);
        assert_eq!(tell(b"{\"step_hash\":\"\"}"), Kind::StepJournal);
        assert_eq!(tell(b"# a readme"), Kind::Unknown);
    }
}
