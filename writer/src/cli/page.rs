//! `waybill page`: the page that checks evidence in a browser, where this binary has it inside.

use super::exit::{Exit, Failure};

pub(super) const HELP: &str = "\
Examples:
  waybill page > waybill-verify.html     then open it, and drop evidence on it

Exit codes: 0 printed; 1 this binary was built without the page";

/// The single file of `make page`.
#[cfg(feature = "page")]
const PAGE: Option<&[u8]> =
    Some(include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/page/waybill-verify.html")));
#[cfg(not(feature = "page"))]
const PAGE: Option<&[u8]> = None;

pub(super) fn run() -> Result<Exit, Failure> {
    match PAGE {
        Some(page) => super::put(page).map(|()| Exit::Done),
        None => Err(Failure {
            exit: Exit::Absent,
            message: String::from(
                "this binary was built without the page: in a clone, 'make page' writes it to \
                 target/page/waybill-verify.html",
            ),
        }),
    }
}
