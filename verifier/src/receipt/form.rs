//! Reading a receipt's file: what it must look like, and all that can be had of one that doesn't.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::action::{Action, StallReason};
use super::binding::{Binding, ForkRef, JournalState, ReceiptId};
use crate::hash::Digest;
use crate::id::RunId;
use crate::json::{self, Encoding, Object, ParseError, Value};
use crate::key::{PublicKey, base64};
use crate::ledger::row::{known_fields, malformed};
use crate::spine::unprefixed;

/// The longest receipt that is read: 16 MiB.
pub const MAX_FILE: usize = 16 << 20;

const BINDING_FIELDS: [&str; 16] = [
    "extra_binding",
    "fork_ref",
    "from_step",
    "install_rev",
    "journal_head_at_stall",
    "journal_state",
    "recommended_action",
    "respawn_budget_remaining",
    "run_id",
    "session_id",
    "stall_reason",
    "timestamp",
    "v",
    "window_entry_hashes",
    "worker_id",
    "worktree_id",
];
const FILE_FIELDS: [&str; 3] = ["journal_entry_hash", "signature", "signer_public_key_pem"];

/// A signature as a receipt gives it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Signature {
    /// The empty text: it was not signed.
    Unsigned,
    Bytes([u8; 64]),
}

/// A receipt's file, read as far as it can be.
#[derive(Clone, PartialEq, Debug)]
pub struct File {
    /// What is wrong with its form, in the order of its parts.
    pub faults: Vec<String>,
    /// What is signed, if it is all there and of the right types.
    pub binding: Option<Binding>,
    /// The spine entry that it names.
    pub entry_hash: Option<Digest>,
    /// Whose key stands in it.
    pub signer: Option<PublicKey>,
    pub(super) signature: Option<Signature>,
    /// The bytes that the signature is over, if they can be had.
    pub(super) signed: Option<Vec<u8>>,
}

impl File {
    /// Reads a file's bytes.
    #[must_use]
    pub fn read(bytes: &[u8]) -> File {
        let mut file = File {
            faults: Vec::new(),
            binding: None,
            entry_hash: None,
            signer: None,
            signature: None,
            signed: None,
        };
        if bytes.len() > MAX_FILE {
            file.faults.push(format!("it is longer than {MAX_FILE} bytes"));
            return file;
        }
        match json::parse(bytes) {
            Ok(Value::Object(object)) => file.take(bytes, object),
            Ok(_) => file.faults.push(String::from("it is no JSON object")),
            Err(error @ ParseError::NotJson { .. }) => file.faults.push(format!("it is {error}")),
            Err(error) => file.faults.push(error.to_string()),
        }
        file
    }

    /// The id that its binding has.
    #[must_use]
    pub fn id(&self) -> Option<ReceiptId> {
        self.content_hash().as_ref().map(ReceiptId::of)
    }

    /// The hash of what is signed.
    #[must_use]
    pub fn content_hash(&self) -> Option<Digest> {
        self.signed.as_deref().map(Digest::of)
    }

    fn take(&mut self, bytes: &[u8], object: Object) {
        let value = Value::Object(object);
        match json::encode(Encoding::Utf8, &value) {
            Err(error) => self.faults.push(error.to_string()),
            Ok(canonical) if canonical != bytes => {
                let at = canonical.iter().zip(bytes).take_while(|(left, right)| left == right).count();
                self.faults.push(format!("it is not its canonical bytes, from byte {at} on"));
            }
            Ok(_) => {}
        }
        let Value::Object(object) = value else {
            return;
        };
        let known: Vec<&str> = BINDING_FIELDS.into_iter().chain(FILE_FIELDS).collect();
        if let Err((_, detail)) = known_fields(&object, &known) {
            self.faults.push(detail);
        }
        match self.binding_of(&object) {
            Ok(binding) => self.binding = Some(binding),
            Err(detail) => self.faults.push(detail),
        }
        self.file_fields(&object);
        let mut signed = Object::default();
        for (key, value) in object {
            if BINDING_FIELDS.iter().any(|name| key == **name) {
                signed.insert(key, value);
            }
        }
        self.signed = json::encode(Encoding::Utf8, &Value::Object(signed)).ok();
    }

    fn file_fields(&mut self, object: &Object) {
        match field(object, "journal_entry_hash") {
            Ok(value) => match value.as_str().and_then(unprefixed) {
                Some(hash) => self.entry_hash = Some(hash),
                None => {
                    self.faults.push(wrong("journal_entry_hash", "is not sha256: and 64 hex digits", value))
                }
            },
            Err(missing) => self.faults.push(missing),
        }
        match field(object, "signature").map(|value| (value.as_str(), value)) {
            Ok((Some(""), _)) => self.signature = Some(Signature::Unsigned),
            Ok((text, value)) => {
                let bytes = text.and_then(|text| base64::decode(base64::Form::Url, text.as_bytes()));
                match bytes.and_then(|bytes| <[u8; 64]>::try_from(bytes).ok()) {
                    Some(bytes) => self.signature = Some(Signature::Bytes(bytes)),
                    None => {
                        let rule = "is not 64 bytes in canonical base64url without padding";
                        self.faults.push(wrong("signature", rule, value));
                    }
                }
            }
            Err(missing) => self.faults.push(missing),
        }
        match field(object, "signer_public_key_pem").map(|value| (value.as_str(), value)) {
            Ok((Some(pem), _)) => match PublicKey::from_exact_pem(pem) {
                Ok(key) => self.signer = Some(key),
                Err(error) => self.faults.push(format!("`signer_public_key_pem`: {error}")),
            },
            Ok((None, value)) => self.faults.push(wrong("signer_public_key_pem", "is not a string", value)),
            Err(missing) => self.faults.push(missing),
        }
    }

    /// # Errors
    ///
    /// What keeps it from being read: a missing field, a type, a name that is not known.
    fn binding_of(&self, object: &Object) -> Result<Binding, String> {
        let field = |name| field(object, name);
        let natural = |name| natural(object, name);
        let string = |name| string(object, name);
        let run_id = string("run_id")?;
        let reason = string("stall_reason")?;
        let action = string("recommended_action")?;
        let head = field("journal_head_at_stall")?;
        let state = match object.get("journal_state") {
            None => JournalState::Present,
            Some(value) => match value.as_str() {
                Some("missing") => JournalState::Missing,
                Some("empty") => JournalState::Empty,
                _ => return Err(wrong("journal_state", "is not missing or empty", value)),
            },
        };
        let binding = Binding {
            fork_ref: fork_ref(field("fork_ref")?)?,
            from_step: natural("from_step")?,
            install_rev: string("install_rev")?,
            journal_head_at_stall: match head.as_str() {
                Some("") => None,
                _ => Some(hash("journal_head_at_stall", head)?),
            },
            recommended_action: Action::named(&action)
                .ok_or_else(|| wrong("recommended_action", "is none that is known", &Value::from(action)))?,
            respawn_budget_remaining: natural("respawn_budget_remaining")?,
            run_id: RunId::new(&run_id).map_err(|error| format!("`run_id`: {error}"))?,
            session_id: string("session_id")?,
            stall_reason: StallReason::named(&reason)
                .ok_or_else(|| wrong("stall_reason", "is none that is known", &Value::from(reason)))?,
            timestamp: natural("timestamp")?,
            window: window(field("window_entry_hashes")?)?,
            worker_id: string("worker_id")?,
            worktree_id: string("worktree_id")?,
            journal_state: state,
            extra: match object.get("extra_binding") {
                None => None,
                Some(Value::Object(extra)) => Some(extra.clone()),
                Some(other) => return Err(wrong("extra_binding", "is not an object", other)),
            },
        };
        if natural("v")? != 1 {
            return Err(wrong("v", "is not 1, the version this reader knows", field("v")?));
        }
        let degraded = binding.journal_state != JournalState::Present;
        let claims = !binding.window.is_empty()
            || binding.journal_head_at_stall.is_some()
            || binding.from_step != 0
            || binding.fork_ref.is_some();
        if degraded && claims {
            return Err(format!(
                "`journal_state` is {}, and yet there is a window, a head, a step or a fork",
                binding.journal_state.name()
            ));
        }
        Ok(binding)
    }
}

fn field<'a>(object: &'a Object, name: &str) -> Result<&'a Value, String> {
    object.get(name).ok_or_else(|| malformed(name, "is missing", None).1)
}

fn wrong(name: &str, rule: &str, value: &Value) -> String {
    malformed(name, rule, Some(value)).1
}

fn natural(object: &Object, name: &str) -> Result<u64, String> {
    let value = field(object, name)?;
    value.as_u64().ok_or_else(|| wrong(name, "is not an integer of 0 or more", value))
}

fn string(object: &Object, name: &str) -> Result<String, String> {
    let value = field(object, name)?;
    value.as_str().map(ToString::to_string).ok_or_else(|| wrong(name, "is not a string", value))
}

fn hash(name: &str, value: &Value) -> Result<Digest, String> {
    let digest = value.as_str().and_then(|text| Digest::from_hex(text.as_bytes()));
    digest.ok_or_else(|| wrong(name, "is not 64 lowercase hex digits", value))
}

fn window(value: &Value) -> Result<Vec<Digest>, String> {
    match value {
        Value::Array(items) => items.iter().map(|item| hash("window_entry_hashes", item)).collect(),
        other => Err(wrong("window_entry_hashes", "is not an array", other)),
    }
}

fn fork_ref(value: &Value) -> Result<Option<ForkRef>, String> {
    let object = match value {
        Value::Null => return Ok(None),
        Value::Object(object) => object,
        other => return Err(wrong("fork_ref", "is not an object or null", other)),
    };
    let fork = ForkRef {
        fork_step: natural(object, "fork_step")?,
        run_id: string(object, "run_id")?,
        snapshot_sha: string(object, "snapshot_sha")?,
    };
    known_fields(object, &["fork_step", "run_id", "snapshot_sha"]).map_err(|(_, detail)| detail)?;
    Ok(Some(fork))
}
