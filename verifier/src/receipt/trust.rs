//! Whom the reader trusts: never told by the evidence.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::key::{Fingerprint, PublicKey};
use crate::report::{Status, Voucher};

/// A signer whom the reader expects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pin {
    /// By the key.
    Key(PublicKey),
    /// By its fingerprint.
    Fingerprint(Fingerprint),
}

impl Pin {
    /// The fingerprint of the key.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        match self {
            Pin::Key(key) => key.fingerprint(),
            Pin::Fingerprint(fingerprint) => *fingerprint,
        }
    }

    fn is(&self, key: &PublicKey) -> bool {
        match self {
            Pin::Key(pinned) => pinned == key,
            Pin::Fingerprint(pinned) => *pinned == key.fingerprint(),
        }
    }
}

/// A signer whom the reader's own trust file names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TrustEntry {
    /// What the reader calls them.
    pub name: String,
    /// Their key.
    pub key: Pin,
    /// From when on it counts, in seconds since 1970 UTC.
    pub valid_from: Option<u64>,
    /// The last second in which it counts.
    pub valid_until: Option<u64>,
    /// Whether it no longer counts, whatever a receipt says of its time.
    pub revoked: bool,
}

/// What the reader knows of signers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Trust {
    /// Nothing.
    #[default]
    Unpinned,
    /// It must be one of these.
    Pinned(Vec<Pin>),
    /// The reader's own trust file.
    Store(Vec<TrustEntry>),
}

/// How a signer stands to what the reader knows.
pub(super) struct Standing {
    pub(super) status: Status,
    pub(super) sentence: String,
    pub(super) name: &'static str,
    pub(super) voucher: Voucher,
}

impl Trust {
    /// Judges the signer of a receipt that states a time.
    pub(super) fn judge(&self, key: &PublicKey, time: Option<u64>) -> Standing {
        let shown = key.fingerprint();
        let standing = |status, name, sentence| {
            let voucher = if status == Status::Pass { Voucher::Outside } else { Voucher::None };
            Standing { status, sentence, name, voucher }
        };
        match self {
            Trust::Unpinned => standing(
                Status::Warn,
                "unpinned",
                format!(
                    "signed by {shown}, whom nothing outside the evidence names: compare it by another way"
                ),
            ),
            Trust::Pinned(pins) if pins.iter().any(|pin| pin.is(key)) => {
                standing(Status::Pass, "pinned", format!("signed by the pinned {shown}"))
            }
            Trust::Pinned(_) => {
                standing(Status::Fail, "other", format!("signed by {shown}, which is not the pinned signer"))
            }
            Trust::Store(entries) => {
                let known: Vec<_> = entries.iter().filter(|entry| entry.key.is(key)).collect();
                let Some(first) = known.first() else {
                    return standing(
                        Status::Warn,
                        "unknown",
                        format!("signed by {shown}, whom your trust file does not know"),
                    );
                };
                let name = quoted(&first.name);
                if known.iter().any(|entry| entry.revoked) {
                    let sentence =
                        format!("signed by {name} ({shown}), whose key is revoked in your trust file");
                    return standing(Status::Fail, "revoked", sentence);
                }
                let valid = |entry: &&&TrustEntry| {
                    time.is_some_and(|time| {
                        entry.valid_from.is_none_or(|from| time >= from)
                            && entry.valid_until.is_none_or(|until| time <= until)
                    })
                };
                match known.iter().find(valid) {
                    Some(entry) => standing(
                        Status::Pass,
                        "trusted",
                        format!("signed by {} ({shown})", quoted(&entry.name)),
                    ),
                    None => standing(
                        Status::Fail,
                        "not_valid",
                        format!(
                            "signed by {name} ({shown}) at a time for which your trust file does not trust it"
                        ),
                    ),
                }
            }
        }
    }
}

/// A name in quotes. Not by `Debug`, which knows of every character whether it is visible: that is
/// 10 KB of code and tables.
fn quoted(name: &str) -> String {
    let mut quoted = String::from("\"");
    for character in name.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            _ if character.is_control() => quoted.extend(character.escape_default()),
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_as_debug_does() {
        for name in ["", "ann", "Ren\u{e9} 7", "a \"b\" \\", "a\nb\tc\rd\u{7f}\u{9b}", "it's"] {
            assert_eq!(quoted(name), format!("{name:?}"));
        }
    }
}
