//! What the spine and the audit log say of a receipt.

use alloc::format;
use alloc::string::{String, ToString};

use super::super::binding::ReceiptId;
use super::super::draft;
use super::super::verify::{Evidence, not_checked};
use super::{ACTOR, MODEL, UNREAD, fail, not_applicable, pass, warn};
use crate::audit::TagsChecked;
use crate::json::Value;
use crate::ledger::row::shown;
use crate::report::Check;
use crate::spine as lineage;

/// `spine.chain`, `spine.hmac` and `spine.head`.
pub(in super::super) fn spine(evidence: &Evidence<'_>) -> [Check; 3] {
    match evidence.spine {
        Some(spine) => spine.checks.clone(),
        None => [
            evidence.missing("spine.chain", "the lineage spine of receipts"),
            not_checked("spine.hmac", "there is no spine"),
            not_checked("spine.head", "there is no spine"),
        ],
    }
}

pub(in super::super) fn anchor(evidence: &Evidence<'_>) -> Check {
    const ID: &str = "receipt.anchor";
    let Some(spine) = evidence.spine else {
        return not_checked(ID, "there is no spine");
    };
    let (Some(binding), Some(hash), Some(content)) =
        (evidence.binding(), &evidence.receipt.entry_hash, evidence.receipt.content_hash())
    else {
        return not_checked(ID, UNREAD);
    };
    let Some((entry, place)) = spine.index.find(hash) else {
        let sentence = match spine.rows {
            0 => String::from("the spine is empty"),
            _ => format!("no entry of the spine that holds has the hash {}", lineage::prefixed(hash)),
        };
        return fail(ID, sentence).at(&spine.file, None);
    };
    let expected = [
        ("content_hash", lineage::prefixed(&entry.content_hash), lineage::prefixed(&content)),
        ("artifact_path", entry.artifact_path.clone(), ReceiptId::of(&content).path()),
        ("actor", entry.actor.clone(), ACTOR.to_string()),
        ("step_id", entry.step_id.clone(), binding.head_text()),
        ("model", entry.model.clone(), MODEL.to_string()),
        ("timestamp", entry.timestamp.as_str().to_string(), binding.timestamp.to_string()),
    ];
    let check = match expected.into_iter().find(|(_, stored, expected)| stored != expected) {
        Some((name, stored, expected)) => fail(
            ID,
            format!(
                "the spine entry's {name} is {}, the receipt makes it {expected}",
                shown(&Value::from(stored))
            ),
        ),
        None => pass(ID, format!("entry {} of the spine anchors exactly this receipt", place.entry)),
    };
    check.at(&spine.file, Some(*place))
}

pub(in super::super) fn mirror(evidence: &Evidence<'_>) -> Check {
    const ID: &str = "audit.mirror";
    let Some(audit) = evidence.audit else {
        return not_applicable(ID, "there is no audit log");
    };
    let (Some(binding), Some(hash)) = (evidence.binding(), &evidence.receipt.entry_hash) else {
        return not_checked(ID, UNREAD);
    };
    let event = audit.index.find(&lineage::prefixed(hash));
    match (event, &audit.fault) {
        (None, Some(fault)) => fail(
            ID,
            format!("the audit log has no event of this receipt that holds, and is damaged: {fault}"),
        ),
        (None, None) => warn(ID, "the audit log has no event of this receipt"),
        (Some(event), fault) => {
            let mirror = draft::mirror(binding, hash).details();
            let differs = mirror.iter().find_map(|(name, value)| {
                let name = name.as_str()?;
                let stated = event.details.get(name)?;
                (stated != value).then(|| format!("`{name}` {}, not {}", shown(stated), shown(value)))
            });
            match (differs, fault) {
                (Some(differs), _) => {
                    warn(ID, format!("the audit log's event of this receipt says {differs}"))
                }
                (None, Some(fault)) => {
                    warn(ID, format!("the audit log has its event, and is damaged elsewhere: {fault}"))
                }
                (None, None) if audit.tags == TagsChecked::NoKey => {
                    not_checked(ID, "the audit log has its event; what it says needs the HMAC key")
                }
                (None, None) => pass(ID, format!("the audit log has its event, of {}", event.timestamp)),
            }
        }
    }
}
