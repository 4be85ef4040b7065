//! What one check of an anchor found, before it is a check of a report.

use alloc::format;
use alloc::string::{String, ToString};

use super::object::ObjectId;
use crate::chain::{FaultKind, Place};
use crate::report::{At, Check, Status};

/// Something that does not hold, or that could not be looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Finding {
    /// The fault; `None` for what could not be looked at.
    pub(super) fault: Option<FaultKind>,
    pub(super) sentence: String,
    pub(super) at: Option<At>,
}

impl Finding {
    pub(super) fn fault(kind: FaultKind, sentence: String) -> Finding {
        Finding { fault: Some(kind), sentence, at: None }
    }

    pub(super) fn not_checked(sentence: String) -> Finding {
        Finding { fault: None, sentence, at: None }
    }

    pub(super) fn at(self, file: &str, place: Option<Place>) -> Finding {
        Finding { at: Some(At { file: file.to_string(), place }), ..self }
    }

    /// The same, said of another commit than the one that is checked.
    pub(super) fn of_commit(self, commit: &ObjectId) -> Finding {
        let (file, place) = match &self.at {
            Some(at) => (format!("{commit}:{}", at.file), at.place),
            None => (commit.to_hex(), None),
        };
        let sentence = format!("commit {commit}: {}", self.sentence);
        Finding { sentence, fault: self.fault, at: Some(At { file, place }) }
    }

    pub(super) fn check(&self, id: &'static str) -> Check {
        let status = if self.fault.is_some() { Status::Fail } else { Status::NotChecked };
        let fault = self.fault.map(FaultKind::name);
        Check { fault, at: self.at.clone(), ..Check::new(id, status, self.sentence.as_str()) }
    }
}
