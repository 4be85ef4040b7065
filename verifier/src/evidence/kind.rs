//! Tells what a piece of evidence is: by its content, unless its name or place is that of a part of
//! something.

use super::{manifest, project, tar};
use crate::anchor::META_NAME;
use crate::anchor::bundle::Bundle;
use crate::find::find;
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
    /// A tar archive.
    Archive,
    /// A git bundle.
    Bundle,
    /// A public key, PEM.
    PublicKey,
    /// Somebody's private key, PEM: nothing that belongs among evidence.
    PrivateKey,
    /// `spine.head`, told by its name.
    SpineHead,
    /// A chunk of an anchor's tree, told by its name.
    Chunk,
    /// `LEDGER.json` of an anchor's tree, told by its name.
    AnchorMeta,
    /// `MANIFEST.json` of an archive, told by its name.
    Manifest,
    /// None of these.
    Unknown,
}

impl Kind {
    /// What it is called, in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Empty => "empty",
            Kind::Ledger => "ledger",
            Kind::StepJournal => "step_journal",
            Kind::EventJournal => "event_journal",
            Kind::Spine => "spine",
            Kind::AuditDay => "audit_day",
            Kind::Receipt => "receipt",
            Kind::Packed => "packed",
            Kind::Archive => "archive",
            Kind::Bundle => "bundle",
            Kind::PublicKey => "public_key",
            Kind::PrivateKey => "private_key",
            Kind::SpineHead => "spine_head",
            Kind::Chunk => "chunk",
            Kind::AnchorMeta => "anchor_meta",
            Kind::Manifest => "manifest",
            Kind::Unknown => "unknown",
        }
    }
}

/// Tells what a file is: from its path where that says it, else from its first [`ENOUGH`] bytes.
///
/// Being told is no check.
#[must_use]
pub fn tell(path: &str, beginning: &[u8]) -> Kind {
    named(path).unwrap_or_else(|| by_content(beginning))
}

/// The kind of a file that its path tells, whatever is in it: it has no rows, is a part of
/// something, or lies where a project keeps files of one kind.
fn named(path: &str) -> Option<Kind> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let digits = name.strip_prefix("chunk-").and_then(|rest| rest.strip_suffix(".jsonl"));
    match name {
        "spine.head" => return Some(Kind::SpineHead),
        META_NAME => return Some(Kind::AnchorMeta),
        manifest::NAME => return Some(Kind::Manifest),
        _ if digits.is_some_and(is_number) => return Some(Kind::Chunk),
        _ => {}
    }
    let (_, below) = project::split(path)?;
    let in_folder = |folder: &str| below.starts_with(folder);
    match name {
        _ if in_folder(".sdd/audit/") && name.ends_with(".jsonl") => Some(Kind::AuditDay),
        _ if in_folder(".sdd/audit/archive/") && name.ends_with(".gz") => Some(Kind::Packed),
        _ if in_folder(".sdd/escalation/receipts/") && name.ends_with(".json") => Some(Kind::Receipt),
        "spine.jsonl" if in_folder(".sdd/lineage/") => Some(Kind::Spine),
        "journal.jsonl" if in_folder(".sdd/runs/") => Some(Kind::EventJournal),
        "000000.jsonl" if in_folder(".sdd/runtime/ledger/") => Some(Kind::Ledger),
        "000000.jsonl" if in_folder(".sdd/runtime/journal/") => Some(Kind::StepJournal),
        _ => None,
    }
}

fn is_number(digits: &str) -> bool {
    digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// By the fields of the first line that can be read, so that nothing recorded in a row makes it
/// something else. A damaged file is told by what is left of it: the name of a field that only its
/// kind has.
fn by_content(beginning: &[u8]) -> Kind {
    if beginning.iter().all(u8::is_ascii_whitespace) {
        return Kind::Empty;
    }
    if beginning.starts_with(&[0x1f, 0x8b]) {
        return Kind::Packed;
    }
    if Bundle::is_one(beginning) {
        return Kind::Bundle;
    }
    if tar::is_one(beginning) {
        return Kind::Archive;
    }
    if let Some(kind) = pem(beginning) {
        return kind;
    }
    // A row's names may be written with escapes, so a whole row is read before text is searched.
    let rows = beginning.split(|&byte| byte == b'\n').take(64);
    for row in rows.filter_map(|line| json::parse(line).ok()) {
        let kind = row.as_object().map(|row| by_fields(|field| row.get(field).is_some()));
        if let Some(kind) = kind.filter(|kind| *kind != Kind::Unknown) {
            return kind;
        }
    }
    by_fields(|field| find(beginning, alloc::format!("\"{field}\"").as_bytes()).is_some())
}

fn pem(beginning: &[u8]) -> Option<Kind> {
    let label = beginning.trim_ascii_start().strip_prefix(b"-----BEGIN ")?;
    let label = &label[..find(label, b"-----")?];
    Some(match label {
        b"PUBLIC KEY" => Kind::PublicKey,
        _ if label.ends_with(b"PRIVATE KEY") => Kind::PrivateKey,
        _ => Kind::Unknown,
    })
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
        assert_eq!(by_content(b" \n"), Kind::Empty);
        assert_eq!(by_content(b"\xff\n{\"entry_hash\":\"\",\"kind\":\"\",\"task_id\":\"\"}"), Kind::Ledger);
        assert_eq!(by_content(b"{\"step_hash\":\"\"}"), Kind::StepJournal);
        assert_eq!(by_content(b"{\"\\u0073tep_hash\":\"\"}"), Kind::StepJournal);
        assert_eq!(by_content(b"{\"event_hash\":\"\",\"payload_hash\":\"\"}"), Kind::EventJournal);
        assert_eq!(by_content(b"{\"artifact_path\":\"\",\"entry_hash\":\"\"}"), Kind::Spine);
        assert_eq!(by_content(b"{\"details\": {}, \"prev_hmac\": \"\"}"), Kind::AuditDay);
        assert_eq!(by_content(b"{\"run_id\":\"\",\"window_entry_hashes\":[]}"), Kind::Receipt);
        assert_eq!(by_content(b"\x1f\x8b\x08"), Kind::Packed);
        assert_eq!(by_content(b"# a readme"), Kind::Unknown);
        assert_eq!(by_content(b"# v2 git bundle\n"), Kind::Bundle);
        assert_eq!(by_content(b"-----BEGIN PUBLIC KEY-----\n"), Kind::PublicKey);
        assert_eq!(by_content(b"\n-----BEGIN OPENSSH PRIVATE KEY-----\n"), Kind::PrivateKey);
        assert_eq!(by_content(b"-----BEGIN CERTIFICATE-----\n"), Kind::Unknown);
        let row = b"{\"entry_hash\":\"\",\"kind\":\"\",\"payload\":{\"step_hash\":1},\"task_id\":\"\"}";
        assert_eq!(by_content(row), Kind::Ledger);
    }
}
