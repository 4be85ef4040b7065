//! Resume at boot: which runs go on, decided before anything is done.
//!
//! [`facts`] gathers, [`mod@decide`] is pure, [`sweep`] does: one run after the other, each with its
//! facts read again right before its start. [`mod@unit`] writes what starts a sweep at boot.

pub mod decide;
pub mod facts;
pub mod sweep;
pub mod unit;
