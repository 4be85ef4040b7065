//! Tells by content what a piece of evidence is.

use crate::json;

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
    /// An event journal.
    EventJournal,
    /// A lineage spine.
    Spine,
    /// A day of an audit log.
    AuditDay,
    /// An escalation receipt.
    Receipt,
    /// A gzip file: a packed day of an audit log.
    Packed,
    /// None of these.
    Unknown,
}

/// Tells what a file is from its first [`ENOUGH`] bytes: by the fields of the first line that can
/// be read, so that nothing recorded in a row makes it something else.
///
/// A damaged file is told by what is left of it: the name of a field that only its kind has.
/// Being told is no check.
#[must_use]
pub fn tell(beginning: &[u8]) -> Kind {
    if beginning.iter().all(u8::is_ascii_whitespace) {
        return Kind::Empty;
    }
    if beginning.starts_with(&[0x1f, 0x8b]) {
        return Kind::Packed;
    }
    // A row's names may be written with escapes, so a whole row is read before text is searched.
    let rows = beginning.split(|&byte| byte == b'\n').take(64);
    for row in rows.filter_map(|line| json::parse(line).ok()) {
        let kind = row.as_object().map(|row| by_fields(|field| row.get(field).is_some()));
        if let Some(kind) = kind.filter(|kind| *kind != Kind::Unknown) {
            return kind;
        }
    }
    by_fields(|field| memchr::memmem::find(beginning, alloc::format!("\"{field}\"").as_bytes()).is_some())
}

fn by_fields(has: impl Fn(&str) -> bool) -> Kind {
    if has("step_hash") {
        Kind::StepJournal
    } else if has("entry_hash") && has("kind") && has("task_id") {
        Kind::Ledger
    } else if has("window_entry_hashes") || has("signer_public_key_pem") {
        Kind::Receipt
    } else if has("prev_hmac") {
        Kind::AuditDay
    } else if has("event_hash") && has("payload_hash") {
        Kind::EventJournal
    } else if has("entry_hash") && has("artifact_path") {
        Kind::Spine
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
        assert_eq!(tell(b"{\"\\u0073tep_hash\":\"\"}"), Kind::StepJournal);
        assert_eq!(tell(b"{\"event_hash\":\"\",\"payload_hash\":\"\"}"), Kind::EventJournal);
        assert_eq!(tell(b"{\"artifact_path\":\"\",\"entry_hash\":\"\"}"), Kind::Spine);
        assert_eq!(tell(b"{\"details\": {}, \"prev_hmac\": \"\"}"), Kind::AuditDay);
        assert_eq!(tell(b"{\"run_id\":\"\",\"window_entry_hashes\":[]}"), Kind::Receipt);
        assert_eq!(tell(b"\x1f\x8b\x08"), Kind::Packed);
        assert_eq!(tell(b"# a readme"), Kind::Unknown);
        let row = b"{\"entry_hash\":\"\",\"kind\":\"\",\"payload\":{\"step_hash\":1},\"task_id\":\"\"}";
        assert_eq!(tell(row), Kind::Ledger);
    }
}
