//! Where a receipt is anchored (the lineage spine) and mirrored (the audit log).

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::binding::{FOLDER, ReceiptId};
use crate::audit::{self, Escalated, TagsChecked};
use crate::chain::{Outcome, Place, Visit};
use crate::hash::Digest;
use crate::json::Value;
use crate::order;
use crate::report::Check;
use crate::spine::{self, Entry, HeadFile, SpineRows};

/// The spine's entries that hold; a visitor of them.
#[derive(Clone, Debug, Default)]
pub struct SpineIndex {
    entries: Vec<(Entry, Place)>,
}

impl Visit<Entry> for SpineIndex {
    fn visit(&mut self, entry: &Entry, place: Place) {
        self.entries.push((entry.clone(), place));
    }
}

impl SpineIndex {
    /// The entry with a hash.
    #[must_use]
    pub fn find(&self, entry_hash: &Digest) -> Option<&(Entry, Place)> {
        self.entries.iter().find(|(entry, _)| entry.entry_hash == *entry_hash)
    }

    /// The receipts that entries name and that `exists` does not know: somebody took them away.
    #[must_use]
    pub fn receipts_gone(&self, exists: impl Fn(&str) -> bool) -> Vec<ReceiptId> {
        let ids = self.entries.iter().filter_map(|(entry, _)| {
            let name = entry.artifact_path.strip_prefix(FOLDER)?.strip_suffix(".json")?;
            ReceiptId::parse(name).filter(|id| !exists(id.as_str()))
        });
        let mut ids: Vec<_> = ids.collect();
        order::sort(&mut ids);
        ids.dedup();
        ids
    }
}

/// The spine of receipts, walked to its end.
#[derive(Clone, Debug)]
pub struct Spine {
    /// Its path, relative to the root that was given.
    pub file: String,
    /// Its own checks.
    pub checks: [Check; 3],
    /// Its entries.
    pub index: SpineIndex,
    /// How many rows it has, those with faults too.
    pub rows: u64,
    /// How its head file stands to them, by name: `agrees`, `stale`, `missing`, …
    pub head_file: &'static str,
}

impl Spine {
    /// Of a walk; `file` and `head_file` are the paths of `spine.jsonl` and `spine.head`.
    #[must_use]
    pub fn of(
        (file, head_file): (&str, &str),
        outcome: Outcome<SpineRows<SpineIndex>>,
        head: &HeadFile,
    ) -> Spine {
        let checks = spine::checks((file, head_file), &outcome, head);
        Spine {
            file: file.to_string(),
            checks,
            rows: outcome.end.entry,
            head_file: spine::head_standing(&outcome, head),
            index: outcome.rows.visitor,
        }
    }
}

/// The audit log's events on receipts, as far as they hold; a visitor of them.
#[derive(Clone, Debug, Default)]
pub struct AuditIndex {
    events: Vec<audit::Event>,
}

impl Visit<audit::Event> for AuditIndex {
    fn visit(&mut self, event: &audit::Event, _: Place) {
        if event.event_type == *Escalated::EVENT_TYPE {
            self.events.push(event.clone());
        }
    }
}

impl AuditIndex {
    /// The event that mirrors the receipt with a spine entry.
    #[must_use]
    pub fn find(&self, entry_hash: &str) -> Option<&audit::Event> {
        let detail = Value::from(entry_hash);
        self.events.iter().find(|event| {
            event.resource_id == *entry_hash || event.details.get("journal_entry_hash") == Some(&detail)
        })
    }
}

/// The audit log, read to its end.
#[derive(Clone, Debug)]
pub struct Audit {
    /// Its events on receipts.
    pub index: AuditIndex,
    /// What is wrong with it, if something is.
    pub fault: Option<String>,
    /// Whether tags were checked.
    pub tags: TagsChecked,
}

impl Audit {
    /// Of a log.
    #[must_use]
    pub fn of(outcome: audit::Outcome<AuditIndex>) -> Audit {
        let of_file =
            outcome.file_faults.first().map(|fault| alloc::format!("{}: {}", fault.name, fault.detail));
        let of_line = outcome.faults.first().map(|(name, fault)| alloc::format!("{name}: {fault}"));
        Audit { fault: of_file.or(of_line), tags: outcome.tags, index: outcome.visitor }
    }
}
