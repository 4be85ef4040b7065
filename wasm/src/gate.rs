//! The gate for JavaScript: the same check as `waybill check`, on objects that are handed in.
//!
//! ```js
//! const gate = new Gate(policy, baseHeads, newPolicy, newHeads, ["anchored"]);
//! if (gate.wants(run)) gate.anchor(ref, run, commit, shallow, (id) => objects.get(id));
//! const report = gate.finish(); // the bytes that `waybill check --json` prints
//! ```

use std::collections::BTreeSet;

use wasm_bindgen::prelude::{JsError, JsValue, wasm_bindgen};
use waybill_verifier::anchor::{Completeness, Found, ObjectId, ObjectKind};
use waybill_verifier::chain::LastLine;
use waybill_verifier::gate::{self, Files};
use waybill_verifier::id::RunId;
use waybill_verifier::report::Report;
use waybill_verifier::tag::MasterKey;

use crate::options::{self, Error};
use crate::thrown;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** Gives an object of the repository by its id (40 hex digits), with its header in front
 *  (`blob 12\0…`). The bytes of one that is too large may be left out behind its header. */
export type Source = (id: string) => Uint8Array | undefined;
"#;

#[wasm_bindgen]
extern "C" {
    /// A JavaScript function that gives objects.
    #[wasm_bindgen(typescript_type = "Source")]
    pub type Source;

    #[wasm_bindgen(method, catch, js_name = call)]
    fn call(this: &Source, receiver: &JsValue, id: &str) -> Result<Option<Vec<u8>>, JsValue>;
}

/// A check of a repository under way, or finished.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Gate {
    gate: Option<gate::Gate>,
    finished: Option<(Report, gate::Heads)>,
}

#[wasm_bindgen]
impl Gate {
    /// Starts a check: policy and heads of the base, then those of what asks to be merged, and
    /// assurances to insist on besides the policy's.
    ///
    /// # Errors
    ///
    /// An assurance that is not known.
    #[wasm_bindgen(constructor)]
    pub fn new(
        policy: Option<Vec<u8>>,
        base_heads: Option<Vec<u8>>,
        new_policy: Option<Vec<u8>>,
        new_heads: Option<Vec<u8>>,
        require: Vec<String>,
    ) -> Result<Gate, JsError> {
        let mut gate = gate::Gate::new(&Files {
            policy: policy.as_deref(),
            base_heads: base_heads.as_deref(),
            new_policy: new_policy.as_deref(),
            new_heads: new_heads.as_deref(),
        });
        let require = require.iter().map(|text| options::assurance(text)).collect::<Result<Vec<_>, _>>();
        gate.require(require.map_err(thrown)?);
        Ok(Gate { gate: Some(gate), finished: None })
    }

    /// Whether the policy wants a run to be looked at; of what is no run's name it wants nothing.
    #[must_use]
    pub fn wants(&self, run: &str) -> bool {
        let run = RunId::new(run).ok();
        self.gate.as_ref().zip(run).is_some_and(|(gate, run)| gate.wants(&run))
    }

    /// Whether a file of the project, by its path in it, is to be given.
    #[must_use]
    pub fn takes(&self, path: &str) -> bool {
        self.gate.as_ref().is_some_and(|gate| gate.takes(path))
    }

    /// Takes the anchor of a run: its ref, its commit, and the commits that a shallow clone has no
    /// parents of (none in a clone that has all).
    ///
    /// # Errors
    ///
    /// What the source threw; an id or a name that is none; or the check was finished.
    pub fn anchor(
        &mut self,
        name: &str,
        run: &str,
        commit: &str,
        shallow: Vec<String>,
        source: &Source,
    ) -> Result<(), JsValue> {
        let (run, commit, cut) = (named(run)?, id_of(commit)?, cut(&shallow)?);
        let find = |id: &ObjectId, limit: usize| found(source, id, limit);
        self.under_way()?.anchor((name, &run, commit), completeness(&cut), find)
    }

    /// Takes a lineage that was set aside (`refs/waybill/aside/<run>/<head>`), as `anchor` does.
    ///
    /// # Errors
    ///
    /// As `anchor`.
    pub fn aside(
        &mut self,
        name: &str,
        run: &str,
        commit: &str,
        shallow: Vec<String>,
        source: &Source,
    ) -> Result<(), JsValue> {
        let (run, commit, cut) = (named(run)?, id_of(commit)?, cut(&shallow)?);
        let find = |id: &ObjectId, limit: usize| found(source, id, limit);
        self.under_way()?.aside((name, &run, commit), completeness(&cut), find)
    }

    /// Says that a run has an anchor whose ref names no commit.
    ///
    /// # Errors
    ///
    /// A name that is none; or the check was finished.
    pub fn unreadable(&mut self, run: &str) -> Result<(), JsValue> {
        let run = named(run)?;
        self.under_way()?.unreadable(&run);
        Ok(())
    }

    /// Takes the HMAC key, with which tags are checked.
    ///
    /// # Errors
    ///
    /// A key that is too short; or the check was finished.
    pub fn key(&mut self, bytes: &[u8]) -> Result<(), JsValue> {
        let key = MasterKey::from_file(bytes).map_err(|error| thrown(Error::Key(error.to_string())))?;
        self.under_way()?.session().key(key);
        Ok(())
    }

    /// Starts a file, by its path in the project: one that it takes.
    ///
    /// # Errors
    ///
    /// The check was finished.
    pub fn open(&mut self, path: &str) -> Result<(), JsValue> {
        self.under_way()?.session().open(path);
        Ok(())
    }

    /// Takes the next bytes of the file.
    ///
    /// # Errors
    ///
    /// The check was finished.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), JsValue> {
        self.under_way()?.session().push(piece);
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    ///
    /// The check was finished.
    pub fn close(&mut self) -> Result<(), JsValue> {
        self.under_way()?.session().close(LastLine::Settled);
        Ok(())
    }

    /// Ends the check and returns the report: JSON, the same bytes as the command prints.
    ///
    /// # Errors
    ///
    /// The check was finished before.
    pub fn finish(&mut self) -> Result<Vec<u8>, JsValue> {
        let finished = self.gate.take().ok_or_else(|| thrown(Error::Finished))?.finish();
        let bytes = finished.0.to_json();
        self.finished = Some(finished);
        Ok(bytes)
    }

    /// Workflow commands for GitHub, a line each, and a line of what came out.
    ///
    /// # Errors
    ///
    /// The check is not finished, as for the other forms.
    pub fn github(&self) -> Result<String, JsError> {
        self.of(gate::github_log)
    }

    /// The job summary for GitHub.
    ///
    /// # Errors
    ///
    /// The check is not finished.
    pub fn markdown(&self) -> Result<String, JsError> {
        self.of(gate::markdown)
    }

    /// JUnit XML.
    ///
    /// # Errors
    ///
    /// The check is not finished.
    pub fn junit(&self) -> Result<String, JsError> {
        self.of(gate::junit)
    }

    /// SARIF 2.1.0.
    ///
    /// # Errors
    ///
    /// The check is not finished.
    pub fn sarif(&self) -> Result<Vec<u8>, JsError> {
        self.of(|report| gate::sarif(report, env!("CARGO_PKG_VERSION")))
    }

    /// GitLab's code quality report.
    ///
    /// # Errors
    ///
    /// The check is not finished.
    pub fn gitlab(&self) -> Result<Vec<u8>, JsError> {
        self.of(gate::codequality)
    }

    /// The heads that the ledgers have now, as `.waybill/heads.json` has them.
    ///
    /// # Errors
    ///
    /// The check is not finished.
    pub fn heads(&self) -> Result<Vec<u8>, JsError> {
        let (_, heads) = self.finished.as_ref().ok_or_else(|| thrown(Error::NotFinished))?;
        Ok(heads.to_json())
    }
}

impl Gate {
    fn under_way(&mut self) -> Result<&mut gate::Gate, JsError> {
        self.gate.as_mut().ok_or_else(|| thrown(Error::Finished))
    }

    fn of<T>(&self, form: impl FnOnce(&Report) -> T) -> Result<T, JsError> {
        let (report, _) = self.finished.as_ref().ok_or_else(|| thrown(Error::NotFinished))?;
        Ok(form(report))
    }
}

fn named(run: &str) -> Result<RunId, JsError> {
    RunId::new(run).map_err(|error| JsError::new(&error.to_string()))
}

fn id_of(text: &str) -> Result<ObjectId, JsError> {
    ObjectId::from_hex(text.as_bytes()).ok_or_else(|| JsError::new("an id has 40 lowercase hex digits"))
}

fn cut(shallow: &[String]) -> Result<BTreeSet<ObjectId>, JsError> {
    shallow.iter().map(|id| id_of(id)).collect()
}

fn completeness(cut: &BTreeSet<ObjectId>) -> Completeness<'_> {
    if cut.is_empty() { Completeness::Whole } else { Completeness::Shallow(cut) }
}

/// An object as the verifier asks for it, of bytes that begin with git's header.
fn found(source: &Source, id: &ObjectId, limit: usize) -> Result<Found, JsValue> {
    let Some(mut bytes) = source.call(&JsValue::UNDEFINED, &id.to_hex())? else { return Ok(Found::Missing) };
    let Some((kind, length, start)) = header(&bytes) else {
        return Err(JsError::new("an object does not begin with git's header").into());
    };
    if length > limit {
        return Ok(Found::TooLarge);
    }
    bytes.drain(..start);
    if bytes.len() != length {
        return Err(JsError::new("an object has not the length that its header says").into());
    }
    Ok(Found::Object(kind, bytes))
}

/// The kind and length that a header says, and where the bytes begin.
fn header(bytes: &[u8]) -> Option<(ObjectKind, usize, usize)> {
    let end = bytes.iter().take(40).position(|&byte| byte == 0)?;
    let (kind, length) = std::str::from_utf8(&bytes[..end]).ok()?.split_once(' ')?;
    let kind = match kind {
        "blob" => ObjectKind::Blob,
        "tree" => ObjectKind::Tree,
        "commit" => ObjectKind::Commit,
        "tag" => ObjectKind::Tag,
        _ => return None,
    };
    // A length that does not fit is too large for any limit.
    let length = length.parse::<u64>().ok()?;
    Some((kind, usize::try_from(length).unwrap_or(usize::MAX), end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_gits() {
        assert_eq!(header(b"blob 12\0hello"), Some((ObjectKind::Blob, 12, 8)));
        assert_eq!(header(b"tree 99999999999999\0").map(|(kind, ..)| kind), Some(ObjectKind::Tree));
        for wrong in [&b"blob 12"[..], b"blob\0", b"blub 1\0", b"blob -1\0", b""] {
            assert_eq!(header(wrong), None);
        }
    }
}
