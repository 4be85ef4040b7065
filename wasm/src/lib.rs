//! Bindings of the verifier for JavaScript: push named files in pieces, get the report.
//!
//! ```js
//! const verifier = new Verifier("evidence.tar", '{"expected_head":"9f3c…"}');
//! verifier.open("evidence.tar");
//! for await (const piece of stream) verifier.push(piece);
//! const report = verifier.finish(); // the bytes that `waybill verify … --json` prints
//! ```
//!
//! What crosses is text and bytes: reports are JSON bytes as the verifier wrote them, so that
//! no digit of a number in them passes through a JavaScript number. No file, clock or network is
//! touched here. What each file is, is told by its content.

#![forbid(unsafe_code)]

#[cfg(feature = "gate")]
mod gate;
mod options;
mod session;

use options::Error;
use session::Session;
use wasm_bindgen::prelude::{JsError, wasm_bindgen};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** What `options` is the JSON text of. All may be left out. */
export interface Options {
  /** A folder was given, by its name; otherwise files, each by itself. */
  folder?: boolean;
  /** More than one file will come: ledgers of one run are compared. */
  several?: boolean;
  /** The last entry's hash, known from elsewhere: 64 lowercase hex digits. */
  expected_head?: string;
  /** Some entry's hash, known from elsewhere: 64 lowercase hex digits. */
  contains?: string;
  /** The commit of the anchor in a git bundle, known from elsewhere: 40 lowercase hex digits. */
  expected_commit?: string;
  /** Public keys (PEM) or fingerprints (`SHA256:…`) of signers: a receipt by another fails. */
  signers?: string[];
  /** Assurances without which the verdict is `failed`. */
  require?: ("pinned" | "anchored" | "hmac" | "complete")[];
  /** Also gather what a page shows: see `view`. */
  shown?: boolean;
}
"#;

/// A check of some files together.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Verifier(Session);

#[wasm_bindgen]
impl Verifier {
    /// Starts a check: what the report calls the whole (a file's or folder's name), and what is
    /// known of it from elsewhere, as the text of a JSON object (`Options`).
    ///
    /// # Errors
    ///
    /// An unknown option, or one that is not what it should be.
    #[wasm_bindgen(constructor)]
    pub fn new(name: &str, options: Option<String>) -> Result<Verifier, JsError> {
        Session::new(name, options.as_deref()).map(Verifier).map_err(thrown)
    }

    /// Takes the HMAC key, with which tags are checked. It stays here.
    ///
    /// # Errors
    ///
    /// A key that is too short; or the check was finished.
    pub fn key(&mut self, bytes: &[u8]) -> Result<(), JsError> {
        self.0.key(bytes).map_err(thrown)
    }

    /// Starts a file, by its path relative to what was given, with `/` between its parts. A path
    /// that could name something else is a fault of the report.
    ///
    /// # Errors
    ///
    /// The check was finished.
    pub fn open(&mut self, path: &str) -> Result<(), JsError> {
        self.0.open(path).map_err(thrown)
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

    /// Ends the file.
    ///
    /// # Errors
    ///
    /// The check was finished.
    pub fn close(&mut self) -> Result<(), JsError> {
        self.0.close().map_err(thrown)
    }

    /// Ends the check and returns the report: JSON, the same bytes as the command prints.
    ///
    /// # Errors
    ///
    /// The check was finished before.
    pub fn finish(&mut self) -> Result<Vec<u8>, JsError> {
        self.0.finish().map_err(thrown)
    }

    /// What a page shows besides the report of a finished check (option `shown`): JSON with the
    /// `ledgers`' states and last entries, the `journals`' last events, the sides of `forks`.
    ///
    /// # Errors
    ///
    /// The check is not finished, or nobody asked for it.
    pub fn view(&self) -> Result<Vec<u8>, JsError> {
        self.0.view().map_err(thrown)
    }
}

/// Whether a file of a folder, by its path in it, is worth reading: sources, locks, hidden files
/// and private keys of a project are not.
#[wasm_bindgen(js_name = isEvidence)]
#[must_use]
pub fn is_evidence(path: &str) -> bool {
    waybill_verifier::evidence::is_evidence(path)
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
