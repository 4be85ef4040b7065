//! Each check of a receipt, by its id.

mod anchored;
mod itself;
mod journal;

use alloc::string::String;

pub(super) use anchored::{anchor, mirror, spine};
pub(super) use itself::{form, id, signature, signer};
pub(super) use journal::{action, fork, journal, window};

use crate::report::{Check, Status};

/// Who receipts' spine entries are by.
pub(super) const ACTOR: &str = "bernstein.escalation_receipt";
/// Which model made a receipt.
pub(super) const MODEL: &str = "none";

const UNREAD: &str = "the receipt's form does not let its claims be read";

fn pass(id: &'static str, sentence: impl Into<String>) -> Check {
    Check::new(id, Status::Pass, sentence)
}

fn fail(id: &'static str, sentence: impl Into<String>) -> Check {
    Check::new(id, Status::Fail, sentence)
}

fn warn(id: &'static str, sentence: impl Into<String>) -> Check {
    Check::new(id, Status::Warn, sentence)
}

fn not_applicable(id: &'static str, sentence: &str) -> Check {
    Check::new(id, Status::NotApplicable, sentence)
}
