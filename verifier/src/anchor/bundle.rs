//! Git bundles: refs and a pack in one file, as `git bundle create x.bundle <ref>` makes it.
//!
//! ```text
//! # v2 git bundle                                   or: # v3 git bundle
//! @object-format=sha1                               v3 only, also @filter=…
//! -<40 hex> <comment>                               a commit that the reader should have
//! <40 hex> refs/bernstein/work-ledger/goal-42       a ref
//!                                                   an empty line, then the pack
//! ```
//!
//! Source: gitformat-bundle(5).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::REF_PREFIX;
use super::object::{Found, ObjectId};
use super::pack::{Pack, PackError};
use super::read::Completeness;
use super::tree::shown;
use super::verify::{Expect, Target, verify};
use crate::chain::Place;
use crate::id::RunId;
use crate::json::{Object, Value};
use crate::ledger::Row;
use crate::order;
use crate::report::{Check, Report, Status, Verdict, counted};

/// The most refs that are read.
pub const MAX_REFS: usize = 10_000;

/// The longest line of the header.
const MAX_LINE: usize = 4096;

/// Why a bundle can't be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BundleError {
    /// The bytes are no bundle at all.
    NotABundle,
    /// It is one, but its header can't be read.
    Header(String),
    /// Its pack can't be read.
    Pack(PackError),
}

impl fmt::Display for BundleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BundleError::NotABundle => f.write_str("it does not start as a git bundle does"),
            BundleError::Header(said) => f.write_str(said),
            BundleError::Pack(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for BundleError {}

/// A bundle whose objects all have their ids.
#[derive(Clone, Debug)]
pub struct Bundle<'a> {
    /// The refs and what they name, in the order of the file.
    pub refs: Vec<(String, ObjectId)>,
    /// What is known to be missing from it.
    pub completeness: Completeness<'static>,
    pack: Pack<'a>,
}

impl<'a> Bundle<'a> {
    /// Whether bytes start as a bundle does.
    #[must_use]
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.starts_with(V2) || bytes.starts_with(V3)
    }

    /// Reads a whole bundle.
    ///
    /// # Errors
    ///
    /// It is none, is damaged, or needs objects that are not in it.
    pub fn open(bytes: &'a [u8]) -> Result<Bundle<'a>, BundleError> {
        let (mut rest, v3) = match (bytes.strip_prefix(V2), bytes.strip_prefix(V3)) {
            (Some(rest), _) => (rest, false),
            (_, Some(rest)) => (rest, true),
            (None, None) => return Err(BundleError::NotABundle),
        };
        let mut refs: Vec<(String, ObjectId)> = Vec::new();
        let mut completeness = Completeness::Cut;
        loop {
            let end = rest.iter().take(MAX_LINE).position(|&byte| byte == b'\n');
            let end = end.ok_or_else(|| header("a line of the header does not end", rest))?;
            let line = &rest[..end];
            rest = &rest[end + 1..];
            match line {
                [] => break,
                b"@object-format=sha1" if v3 => {}
                [b'@', ..] if v3 && line.starts_with(b"@filter=") => completeness = Completeness::Partial,
                [b'@', ..] => return Err(header("what the bundle asks for is not known here", line)),
                [b'-', ..] => completeness = Completeness::Partial,
                _ => refs.push(read_ref(line)?),
            }
            if refs.len() > MAX_REFS {
                return Err(BundleError::Header(format!("more than {MAX_REFS} refs")));
            }
        }
        let mut names: Vec<_> = refs.iter().map(|(name, _)| name).collect();
        order::sort(&mut names);
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(header("the ref is there twice", pair[0].as_bytes()));
        }
        let pack = Pack::open(rest).map_err(BundleError::Pack)?;
        Ok(Bundle { refs, completeness, pack })
    }

    /// An object, unless it has more than `limit` bytes.
    ///
    /// # Errors
    ///
    /// More was asked for, over all calls, than any honest history takes.
    pub fn object(&mut self, id: &ObjectId, limit: usize) -> Result<Found, PackError> {
        self.pack.object(id, limit)
    }

    /// The refs of anchors, with the run that each names.
    pub fn anchors(&self) -> impl Iterator<Item = (&str, Option<RunId>, ObjectId)> {
        self.refs.iter().filter_map(|(name, id)| {
            let run = name.strip_prefix(REF_PREFIX)?;
            Some((name.as_str(), RunId::new(run).ok(), *id))
        })
    }

    /// Verifies the anchor of one of its refs.
    ///
    /// # Errors
    ///
    /// As [`Bundle::object`].
    pub fn verify(
        &mut self,
        anchor: (&str, &RunId, ObjectId),
        expect: Expect,
        visit: impl FnMut(&Row<'_>, Place),
    ) -> Result<Report, PackError> {
        let (name, run, commit) = anchor;
        let completeness = self.completeness;
        let target = Target { completeness, expect, ..Target::new(name, commit, Some(run)) };
        verify(&target, |id, limit| self.pack.object(id, limit), visit)
    }
}

/// The report on a bundle: on the bundle itself, and on the anchor of each of its refs, of which
/// there must be one or more.
#[must_use]
pub fn report(name: &str, bytes: &[u8], expect: Expect) -> Report {
    report_with(name, bytes, expect, &mut |_, _, _| {})
}

/// As [`report`]; `visit` is called with each run and each row of its anchor that holds, in order.
#[must_use]
pub fn report_with(
    name: &str,
    bytes: &[u8],
    expect: Expect,
    visit: &mut dyn FnMut(&RunId, &Row<'_>, Place),
) -> Report {
    const ID: &str = "bundle.form";
    let failed = |said: String| {
        let check = Check::new(ID, Status::Fail, said).at(name, None);
        Report::of_parts(name.to_string(), Vec::from([check]), Vec::new(), Verdict::Failed)
    };
    let mut bundle = match Bundle::open(bytes) {
        Ok(bundle) => bundle,
        Err(error) => return failed(format!("the bundle can't be read: {error}")),
    };
    let anchors: Vec<_> =
        bundle.anchors().map(|(name, run, commit)| (name.to_string(), run, commit)).collect();
    let mut parts = Vec::new();
    for (ref_name, run, commit) in &anchors {
        let Some(run) = run else {
            return failed(format!("the ref {} names no run", shown(ref_name.as_bytes())));
        };
        match bundle.verify((ref_name, run, *commit), expect, |row, place| visit(run, row, place)) {
            Ok(report) => parts.push(report),
            Err(error) => return failed(format!("the bundle can't be read: {error}")),
        }
    }
    let objects = bundle.pack.len();
    let others = bundle.refs.len() - parts.len();
    let mut sentence =
        format!("{}, none damaged, and {}", counted(objects, "object"), counted(parts.len(), "anchor"));
    if others > 0 {
        sentence.push_str(&format!("; not looked at: {}", counted(others, "other ref")));
    }
    let check = Check::new(ID, Status::Pass, sentence).at(name, None);
    if parts.is_empty() {
        let said = format!("the bundle has no ref under {REF_PREFIX}");
        let report = Report::of_parts(name.to_string(), Vec::from([check]), parts, Verdict::Absent);
        return Report { summary: said, ..report };
    }
    let mut report = Report::of_parts(name.to_string(), Vec::from([check]), parts, Verdict::Verified);
    report.facts = Object::of([
        ("objects", Value::from(u64::try_from(objects).unwrap_or(u64::MAX))),
        ("other_refs", Value::from(u64::try_from(others).unwrap_or(u64::MAX))),
    ]);
    report
}

const V2: &[u8] = b"# v2 git bundle\n";
const V3: &[u8] = b"# v3 git bundle\n";

fn read_ref(line: &[u8]) -> Result<(String, ObjectId), BundleError> {
    let read = line.split_first_chunk::<40>().and_then(|(id, rest)| {
        let name = core::str::from_utf8(rest.strip_prefix(b" ")?).ok()?;
        Some((name.to_string(), ObjectId::from_hex(id)?))
    });
    read.filter(|(name, _)| !name.is_empty()).ok_or_else(|| header("a line is no ref", line))
}

fn header(said: &str, line: &[u8]) -> BundleError {
    BundleError::Header(format!("{said}: {}", shown(line)))
}
