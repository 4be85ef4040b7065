//! `.waybill/policy.toml`: what a repository asks of its runs.
//!
//! ```toml
//! runs = ["*"]                 # which runs are looked at: names, `*` stands for any characters
//! require = ["anchored"]       # assurances each must have: pinned, anchored, hmac, complete
//! signers = ["SHA256:4jSe…"]   # who may sign receipts: fingerprints, or public keys (PEM)
//! missing = "fail"             # what a ledger that should be there and is not means
//! settled = "warn"             # what a lineage that was set aside by `ledger diff --keep` means
//! ```
//! Each may be left out; these are the defaults, but that nothing is required and no signer named.
//! `missing` and `settled` are `fail`, `warn` or `pass`. No other field is known: a mistyped one
//! would be a gate that stands open.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use toml::{Table, Value};

use crate::key::{Fingerprint, PublicKey};
use crate::receipt::{Pin, Trust};
use crate::report::Requirement;

/// A longer file is not read.
const MAX_FILE: usize = 1 << 20;

/// What something that is not as it was means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lack {
    /// The gate fails.
    Fail,
    /// It is said.
    Warn,
    /// It is all right.
    Pass,
}

/// A repository's policy.
#[derive(Clone, PartialEq, Debug)]
pub struct Policy {
    runs: Vec<String>,
    /// The assurances that everything must have.
    pub require: Vec<Requirement>,
    /// Who may sign receipts.
    pub trust: Trust,
    /// What a missing ledger means.
    pub missing: Lack,
    /// What a settled divergence means.
    pub settled: Lack,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            runs: vec![String::from("*")],
            require: Vec::new(),
            trust: Trust::Unpinned,
            missing: Lack::Fail,
            settled: Lack::Warn,
        }
    }
}

impl Policy {
    /// Reads a policy.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn read(bytes: &[u8]) -> Result<Policy, String> {
        if bytes.len() > MAX_FILE {
            return Err(format!("it has more than {MAX_FILE} bytes"));
        }
        let text = core::str::from_utf8(bytes).map_err(|_| "it is not UTF-8")?;
        let table: Table = text.parse().map_err(|error: toml::de::Error| error.message().to_string())?;
        let mut policy = Policy::default();
        for (name, value) in &table {
            match name.as_str() {
                "runs" => policy.runs = some(name, texts(name, value)?)?,
                "require" => {
                    policy.require =
                        texts(name, value)?.iter().map(|text| requirement(text)).collect::<Result<_, _>>()?;
                }
                "signers" => {
                    let signers = some(name, texts(name, value)?)?;
                    let pins = signers.iter().map(|text| pin(text)).collect::<Result<_, _>>()?;
                    policy.trust = Trust::Pinned(pins);
                }
                "missing" => policy.missing = lack(name, value)?,
                "settled" => policy.settled = lack(name, value)?,
                _ => return Err(format!("{} is no field of it", name.escape_debug())),
            }
        }
        Ok(policy)
    }

    /// Whether a run is looked at.
    #[must_use]
    pub fn wants(&self, run: &str) -> bool {
        self.runs.iter().any(|pattern| fits(pattern.as_bytes(), run.as_bytes()))
    }

    /// The runs that are named one by one.
    pub fn named_runs(&self) -> impl Iterator<Item = &str> {
        self.runs.iter().map(String::as_str).filter(|pattern| !pattern.contains('*'))
    }
}

fn texts(name: &str, value: &Value) -> Result<Vec<String>, String> {
    let wrong = || format!("{name} is no list of texts");
    let items = value.as_array().ok_or_else(wrong)?;
    items.iter().map(|item| item.as_str().map(String::from).ok_or_else(wrong)).collect()
}

/// A list that names nothing would let everything through.
fn some(name: &str, texts: Vec<String>) -> Result<Vec<String>, String> {
    if texts.is_empty() { Err(format!("{name} names nothing: leave it out")) } else { Ok(texts) }
}

fn lack(name: &str, value: &Value) -> Result<Lack, String> {
    match value.as_str() {
        Some("fail") => Ok(Lack::Fail),
        Some("warn") => Ok(Lack::Warn),
        Some("pass") => Ok(Lack::Pass),
        _ => Err(format!("{name} is none of fail, warn and pass")),
    }
}

fn requirement(text: &str) -> Result<Requirement, String> {
    match text {
        "pinned" => Ok(Requirement::Pinned),
        "anchored" => Ok(Requirement::Anchored),
        "hmac" => Ok(Requirement::Hmac),
        "complete" => Ok(Requirement::Complete),
        _ => Err(String::from("require knows pinned, anchored, hmac and complete")),
    }
}

fn pin(text: &str) -> Result<Pin, String> {
    if let Ok(fingerprint) = text.trim().parse::<Fingerprint>() {
        return Ok(Pin::Fingerprint(fingerprint));
    }
    match PublicKey::from_file(text.as_bytes()) {
        Ok(key) => Ok(Pin::Key(key)),
        Err(error) => Err(format!("a signer is neither a fingerprint nor a public key: {error}")),
    }
}

/// Whether a pattern, in which `*` stands for any characters, fits a text.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    let mut star = None;
    while from < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(byte) if *byte == text[from] => {
                at += 1;
                from += 1;
            }
            _ => match star {
                Some((back, seen)) => {
                    at = back + 1;
                    from = seen + 1;
                    star = Some((back, from));
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn every_field_is_read() {
        let policy = Policy::read(
            b"runs = [\"goal-*\", \"x\"]\nrequire = [\"anchored\", \"complete\"]\nmissing = \"warn\"\nsettled = \"fail\"\n\
              signers = [\"SHA256:n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg\"]\n",
        )
        .unwrap();
        assert!(policy.wants("goal-42") && policy.wants("x") && !policy.wants("other"));
        assert_eq!(policy.named_runs().collect::<Vec<_>>(), ["x"]);
        assert_eq!(policy.require, [Requirement::Anchored, Requirement::Complete]);
        assert_eq!((policy.missing, policy.settled), (Lack::Warn, Lack::Fail));
        assert!(matches!(policy.trust, Trust::Pinned(_)));
        assert_eq!(Policy::read(b"").unwrap(), Policy::default());
    }

    #[test]
    fn what_is_mistyped_is_refused() {
        for text in [
            "require = [\"all\"]",
            "require = \"pinned\"",
            "missing = \"ignore\"",
            "missing = true",
            "run = [\"*\"]",
            "signers = [\"ann\"]",
            "runs = [1]",
            "runs = []",
            "signers = []",
            "missing = \"fail\"\nmissing = \"pass\"",
            "= 1",
        ] {
            assert!(Policy::read(text.as_bytes()).is_err(), "{text}");
        }
        assert!(Policy::read(b"\xff").is_err());
    }

    #[test]
    fn patterns_fit_whole_names() {
        for (pattern, text, fit) in [
            ("*", "", true),
            ("*", "any", true),
            ("a*c", "abbc", true),
            ("a*c", "abcd", false),
            ("a*b*c", "axbxbxc", true),
            ("abc", "abc", true),
            ("abc", "abcd", false),
            ("", "a", false),
            ("**a", "ba", true),
        ] {
            assert_eq!(fits(pattern.as_bytes(), text.as_bytes()), fit, "{pattern} {text}");
        }
    }
}
