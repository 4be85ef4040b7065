//! What a receipt's file says of itself: form, signature, signer, name.

use alloc::format;

use super::super::form::Signature;
use super::super::verify::{Evidence, not_checked};
use super::{fail, pass};
use crate::json::Value;
use crate::key::PublicKey;
use crate::ledger::row::shown;
use crate::report::{Check, Status, Voucher};

pub(in super::super) fn form(evidence: &Evidence<'_>) -> Check {
    const ID: &str = "receipt.form";
    let check = match evidence.receipt.faults.as_slice() {
        [] => pass(ID, "the file is the canonical bytes of a receipt, and nothing else"),
        [first] => fail(ID, first.clone()),
        [first, ..] => fail(ID, format!("{first} ({} faults of form in all)", evidence.receipt.faults.len())),
    };
    check.at(evidence.file, None)
}

pub(in super::super) fn signature(evidence: &Evidence<'_>) -> Check {
    const ID: &str = "receipt.signature";
    let receipt = evidence.receipt;
    let check = match (receipt.signature, &receipt.signer, &receipt.signed) {
        (Some(Signature::Unsigned), _, _) => fail(ID, "it is not signed"),
        (Some(Signature::Bytes(signature)), Some(key), Some(bytes)) => match key.verify(bytes, &signature) {
            Ok(()) => pass(ID, "the key in it signed exactly these claims"),
            Err(refused) => fail(ID, format!("the signature does not hold: {refused}")),
        },
        _ => not_checked(ID, "signature, key or claims can't be read"),
    };
    check.at(evidence.file, None)
}

/// Also how the signer stands, by name, and whether they vouch for the receipt.
pub(in super::super) fn signer(evidence: &Evidence<'_>) -> (Check, (&'static str, Voucher)) {
    const ID: &str = "receipt.signer";
    let Some(key) = &evidence.receipt.signer else {
        let check = not_checked(ID, "the key in it can't be read").at(evidence.file, None);
        return (check, ("unread", Voucher::None));
    };
    let time = evidence.binding().map(|binding| binding.timestamp);
    let standing = evidence.trust.judge(key, time);
    let mut check = Check::new(ID, standing.status, standing.sentence).at(evidence.file, None);
    let differs = match evidence.identity.map(PublicKey::from_file) {
        None => None,
        Some(Ok(identity)) if identity == *key => None,
        Some(Ok(identity)) => Some(format!("it is not the identity beside it, {}", identity.fingerprint())),
        Some(Err(error)) => Some(format!("the identity beside it can't be read: {error}")),
    };
    if let Some(differs) = differs {
        check.sentence = format!("{}; {differs}", check.sentence);
        if check.status == Status::Pass {
            check.status = Status::Warn;
        }
    }
    (check, (standing.name, standing.voucher))
}

pub(in super::super) fn id(evidence: &Evidence<'_>) -> Check {
    const ID: &str = "receipt.id";
    let Some(id) = evidence.receipt.id() else {
        return not_checked(ID, "its claims can't be read").at(evidence.file, None);
    };
    let name = evidence.file.rsplit('/').next().unwrap_or_default();
    let check = if evidence.file == "-" {
        not_checked(ID, "it was given without a file name")
    } else if name.strip_suffix(".json") == Some(id.as_str()) {
        pass(ID, format!("its file is named after its claims: {id}"))
    } else {
        fail(ID, format!("its claims make it {id}, its file is named {}", shown(&Value::from(name))))
    };
    check.at(evidence.file, None)
}
