//! The check of a receipt with the files of its project, without JavaScript.

use std::fmt;

use waybill_verifier::key::{Fingerprint, PublicKey};
use waybill_verifier::receipt::{Files, Pin, Scope, Trust, report_files};
use waybill_verifier::tag::MasterKey;

use crate::session::Error;

/// How many bytes a project's files may have together.
const MAX_BYTES: usize = 256 << 20;

/// A check under way.
pub(crate) struct ReceiptSession {
    path: String,
    scope: Scope,
    trust: Trust,
    key: Option<MasterKey>,
    files: Files,
    bytes: usize,
}

impl fmt::Debug for ReceiptSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiptSession").field("path", &self.path).finish_non_exhaustive()
    }
}

impl ReceiptSession {
    pub(crate) fn new(path: &str, alone: bool, signer: Option<&str>) -> Result<ReceiptSession, Error> {
        Ok(ReceiptSession {
            path: path.into(),
            scope: if alone { Scope::Alone } else { Scope::Project },
            trust: signer.map_or(Ok(Trust::Unpinned), pinned)?,
            key: None,
            files: Files::new(),
            bytes: 0,
        })
    }

    pub(crate) fn push(&mut self, path: &str, piece: &[u8]) -> Result<(), Error> {
        self.bytes = self.bytes.saturating_add(piece.len());
        if self.bytes > MAX_BYTES {
            return Err(Error::TooMuch);
        }
        self.files.entry(path.into()).or_default().extend_from_slice(piece);
        Ok(())
    }

    pub(crate) fn key(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let key = MasterKey::from_file(bytes).map_err(|error| Error::Key(error.to_string()))?;
        self.key = Some(key);
        Ok(())
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        report_files(&self.path, &self.files, self.scope, self.key.as_ref(), &self.trust).to_json()
    }
}

fn pinned(signer: &str) -> Result<Trust, Error> {
    let pin = match signer.trim().parse::<Fingerprint>() {
        Ok(fingerprint) => Pin::Fingerprint(fingerprint),
        Err(_) => {
            let key = PublicKey::from_file(signer.as_bytes());
            Pin::Key(key.map_err(|error| Error::Option { name: "signer", rule: error.to_string() })?)
        }
    };
    Ok(Trust::Pinned(vec![pin]))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn a_signer_is_a_key_or_a_fingerprint() {
        assert!(pinned("somebody").is_err());
        assert!(pinned("SHA256:n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg").is_ok());
    }

    #[test]
    fn a_receipt_without_its_project_is_incomplete_alone_and_fails_in_it() {
        for (alone, exit) in [(true, "\"exit_code\": 2"), (false, "\"exit_code\": 2")] {
            let mut session = ReceiptSession::new("r.json", alone, None).unwrap();
            session.push("r.json", b"{}").unwrap();
            let report = String::from_utf8(session.finish()).unwrap();
            assert!(report.contains(exit) && report.contains("receipt.form"), "{report}");
        }
    }
}
