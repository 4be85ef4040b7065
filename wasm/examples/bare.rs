//! Bare SHA-256 over a ledger's preimages, for measuring against: `tests/wasm/bench.mjs`.

use wasm_bindgen::prelude::wasm_bindgen;
use waybill_verifier::chain::{LastLine, Walk};
use waybill_verifier::hash::Digest;
use waybill_verifier::ledger::{LedgerRows, Row};

/// What the rows of a ledger hash, one after the other.
#[wasm_bindgen]
#[derive(Debug, Default)]
pub struct Preimages {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

#[wasm_bindgen]
impl Preimages {
    /// Takes them out of a whole ledger.
    #[wasm_bindgen(constructor)]
    #[must_use]
    pub fn new(ledger: &[u8]) -> Preimages {
        let mut preimages = Preimages::default();
        let mut walk = Walk::new(LedgerRows::new(None, |row: &Row<'_>, _| {
            preimages.bytes.extend_from_slice(row.preimage().as_bytes());
            preimages.ends.push(preimages.bytes.len());
        }));
        walk.push(ledger);
        drop(walk.finish(LastLine::Settled));
        preimages
    }

    /// How many bytes they are.
    #[must_use]
    pub fn length(&self) -> String {
        self.bytes.len().to_string()
    }

    /// Hashes each; the exclusive or of the first bytes, so that no hash can be left out.
    #[must_use]
    pub fn hash(&self) -> u8 {
        let mut from = 0;
        self.ends.iter().fold(0, |all, &end| {
            let digest = Digest::of(&self.bytes[from..end]);
            from = end;
            all ^ digest.as_bytes()[0]
        })
    }
}
