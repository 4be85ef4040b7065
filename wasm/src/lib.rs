//! Bindings of the verifier for JavaScript.
