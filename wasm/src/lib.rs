//! Bindings of the verifier for JavaScript: push a file in pieces, get the report.
//!
//! ```js
//! const verifier = new Verifier("ledger", "000000.jsonl", '{"expected_head":"9f3c…"}');
//! for await (const piece of stream) verifier.push(piece);
//! const report = verifier.finish(); // the bytes that `waybill … --json` prints
//! ```
//!
//! What crosses is text and bytes: reports are JSON bytes as the verifier wrote them, so that
//! no digit of a number in them passes through a JavaScript number. No file, clock or network is
//! touched here. Does not tell by content what a file is: the caller names its kind.

#![forbid(unsafe_code)]

mod receipt;
mod session;

use receipt::ReceiptSession;
use session::{Error, Session};
use wasm_bindgen::prelude::{JsError, wasm_bindgen};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** What a file is. */
export type Kind = "ledger" | "step-journal";

/** What `options` is the JSON text of. All may be left out; none but `file` fits a step journal. */
export interface Options {
  /** The file's path in the report, relative to a root; the name if not given. */
  file?: string;
  /** The run that the ledger must name. */
  run_id?: string;
  /** The last entry's hash, known from elsewhere: 64 lowercase hex digits. */
  expected_head?: string;
  /** Some entry's hash, known from elsewhere: 64 lowercase hex digits. */
  contains?: string;
  /** Also replay the ledger to its state, which costs a fifth more time: see `state`. */
  replay?: boolean;
}
"#;

/// One check of one file.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Verifier(Session);

#[wasm_bindgen]
impl Verifier {
    /// Starts the check of a file: its kind, the subject's name, and what is known of it from
    /// elsewhere, as the text of a JSON object (`Options`).
    ///
    /// # Errors
    ///
    /// An unknown kind or option, or an option that is not what it should be.
    #[wasm_bindgen(constructor)]
    pub fn new(
        #[wasm_bindgen(unchecked_param_type = "Kind")] kind: &str,
        name: &str,
        options: Option<String>,
    ) -> Result<Verifier, JsError> {
        Session::new(kind, name, options.as_deref()).map(Verifier).map_err(thrown)
    }

    /// Takes the next bytes of the file. Pieces may be of any size; each is copied once, so
    /// pieces of about a megabyte keep memory small.
    ///
    /// # Errors
    ///
    /// The check was finished.
    pub fn push(&mut self, piece: &[u8]) -> Result<(), JsError> {
        self.0.push(piece).map_err(thrown)
    }

    /// Ends the check at the end of the file and returns the report: JSON, the same bytes as
    /// the command prints.
    ///
    /// # Errors
    ///
    /// The check was finished before.
    pub fn finish(&mut self) -> Result<Vec<u8>, JsError> {
        self.0.finish().map_err(thrown)
    }

    /// The state that a finished ledger replays to, as JSON (option `replay`); of a torn one,
    /// that of the entries before the torn tail.
    ///
    /// # Errors
    ///
    /// The check is not finished, nobody asked for a replay, or the chain does not hold.
    pub fn state(&self) -> Result<Vec<u8>, JsError> {
        self.0.state().map_err(thrown)
    }
}

/// The check of one escalation receipt, with what of its project is given.
#[wasm_bindgen]
#[derive(Debug)]
pub struct ReceiptVerifier(ReceiptSession);

#[wasm_bindgen]
impl ReceiptVerifier {
    /// Starts the check of the receipt at a path, relative to its project's folder
    /// (`.sdd/escalation/receipts/<id>.json`). With `alone` nothing else is expected to be there;
    /// otherwise a missing journal or spine fails. `signer` pins a public key (PEM) or its
    /// fingerprint (`SHA256:…`).
    ///
    /// # Errors
    ///
    /// A signer that is neither.
    #[wasm_bindgen(constructor)]
    pub fn new(path: &str, alone: bool, signer: Option<String>) -> Result<ReceiptVerifier, JsError> {
        ReceiptSession::new(path, alone, signer.as_deref()).map(ReceiptVerifier).map_err(thrown)
    }

    /// Takes the next bytes of one of the project's files, by its path relative to the project's
    /// folder: the receipt, `.sdd/runs/<run>/journal.jsonl`, `.sdd/lineage/escalations/…`,
    /// `.sdd/audit/…`, `.sdd/identity/…-public.pem`. A private key is never asked for.
    ///
    /// # Errors
    ///
    /// More bytes than are held at most.
    pub fn push(&mut self, path: &str, piece: &[u8]) -> Result<(), JsError> {
        self.0.push(path, piece).map_err(thrown)
    }

    /// Takes the HMAC key, with which tags are checked. It stays here.
    ///
    /// # Errors
    ///
    /// A key that is too short.
    pub fn key(&mut self, bytes: &[u8]) -> Result<(), JsError> {
        self.0.key(bytes).map_err(thrown)
    }

    /// Ends the check and returns the report: JSON, the same bytes as the command prints.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.0.finish()
    }
}

/// The version of this package, and so of the code that checks.
#[wasm_bindgen]
#[must_use]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").into()
}

fn thrown(error: Error) -> JsError {
    JsError::new(&error.to_string())
}
