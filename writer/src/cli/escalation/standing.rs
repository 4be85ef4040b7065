//! The receipts of a project at a glance: what their files claim, and nothing checked.

use waybill_verifier::json::{Object, Value};
use waybill_verifier::receipt::{Binding, File, ReceiptId};

use super::super::exit::Failure;
use super::super::out::escape;
use super::list::when;
use super::read;
use crate::project::Project;
use crate::receipt::ids;

/// How many receipts there are, and the one with the latest time that can be read.
pub(in super::super) struct Stalls {
    pub(in super::super) count: usize,
    latest: Option<(ReceiptId, Binding)>,
}

impl Stalls {
    pub(in super::super) fn of(project: &Project) -> Result<Stalls, Failure> {
        let ids = ids(project)?;
        let mut stalls = Stalls { count: ids.len(), latest: None };
        for id in ids {
            let Some(binding) = File::read(&read(project, &id)?).binding else { continue };
            if stalls.latest.as_ref().is_none_or(|(_, latest)| latest.timestamp <= binding.timestamp) {
                stalls.latest = Some((id, binding));
            }
        }
        Ok(stalls)
    }

    /// When, run, worker, reason and action of the latest.
    pub(in super::super) fn latest_text(&self) -> Option<String> {
        self.latest.as_ref().map(|(_, binding)| {
            format!(
                "{} {} {}: {}, {}",
                when(binding),
                binding.run_id,
                escape(&binding.worker_id),
                binding.stall_reason,
                binding.recommended_action
            )
        })
    }

    pub(in super::super) fn document(&self) -> Object {
        let latest = self.latest.as_ref().map(|(id, binding)| {
            Object::of([
                ("receipt_id", Value::from(id.as_str())),
                ("timestamp", Value::from(binding.timestamp)),
                ("run_id", Value::from(binding.run_id.as_str())),
                ("worker_id", Value::from(binding.worker_id.as_str())),
                ("stall_reason", Value::from(binding.stall_reason.name())),
                ("recommended_action", Value::from(binding.recommended_action.name())),
            ])
        });
        let count = u64::try_from(self.count).unwrap_or(u64::MAX);
        Object::of([("receipts", Value::from(count)), ("latest", Value::from(latest))])
    }
}
