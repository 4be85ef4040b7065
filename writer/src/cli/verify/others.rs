//! The checks of what is neither ledger nor step journal: event journals, spines, audit logs,
//! receipts, each as a file or a folder that was given by its path.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use waybill_verifier::audit::{self as audit_format, DayFile, Log, Start, arrange};
use waybill_verifier::chain::{LastLine, Unseen};
use waybill_verifier::gzip::Gunzip;
use waybill_verifier::hash::Digest;
use waybill_verifier::journal::{self, EventRows};
use waybill_verifier::json::{self, Value};
use waybill_verifier::receipt::{self as receipt_format, Evidence, ForkCommit, Scope, Trust};
use waybill_verifier::report::Report;
use waybill_verifier::spine as spine_format;

use super::super::exit::{Exit, Failure};
use super::Subject;
use crate::master::KeyFile;
use crate::project::Project;
use crate::receipt::{Gathered, read_file};
use crate::{audit, durable, read, spine};

/// Longer first lines don't tell where an audit log goes on from.
const MAX_FIRST_LINE: u64 = 16 << 20;

/// The check of a folder: an audit log's or a spine's.
pub(super) fn folder(subject: &Subject) -> Result<Report, Failure> {
    let folder = &subject.path;
    let names: Vec<String> = std::fs::read_dir(folder)
        .map_err(|error| subject.unreadable(error))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    let name = absolute(folder)
        .file_name()
        .map_or_else(|| subject.name.clone(), |name| name.to_string_lossy().into_owned());
    if names.iter().any(|name| name == spine::FILE) {
        return spine_file(&name, &folder.join(spine::FILE));
    }
    let is_audit = names.iter().any(|name| DayFile::of(name).is_some() || name == audit::LOCK)
        || folder.join("archive").is_dir();
    if is_audit {
        let key = KeyFile::of_environment().read()?;
        let outcome = audit::read(folder, key.as_ref(), || Unseen)?;
        return Ok(audit_format::report(&name, "", &outcome));
    }
    Err(Failure::usage(format!(
        "{} is a folder, and no audit log's or spine's: give a run's name (with --workdir), or files",
        folder.display()
    )))
}

pub(super) fn event_journal(
    subject: &Subject,
    file: &File,
    expected_head: Option<Digest>,
) -> Result<Report, Failure> {
    let size = read::size(file).map_err(|error| subject.unreadable(error))?;
    let outcome = read::walk(file, size, EventRows::new(Unseen), LastLine::Settled)
        .map_err(|error| subject.unreadable(error))?;
    Ok(journal::report(&subject.name, &subject.file, &outcome, expected_head))
}

/// The check of a spine's rows, with the head file beside them.
pub(super) fn spine_file(name: &str, path: &Path) -> Result<Report, Failure> {
    let key = KeyFile::of_environment().read()?;
    let Some((outcome, head)) = spine::walk_file(path, key.as_ref(), Unseen)? else {
        let message = format!("{} is not there", path.display());
        return Err(Failure { exit: Exit::Absent, message });
    };
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(spine_format::report(name, (&file, spine::HEAD), &outcome, &head))
}

/// The check of one day of an audit log: its chain goes on from what its first row names.
pub(super) fn audit_day(subject: &Subject, mut file: File) -> Result<Report, Failure> {
    let key = KeyFile::of_environment().read()?;
    let packed = subject.file.ends_with(".gz");
    let name = if packed { format!("archive/{}", subject.file) } else { subject.file.clone() };
    let arranged = arrange([name.as_str()]);
    let start = match first_line(&subject.path, packed)?.as_deref().and_then(goes_on_from) {
        Some(prev) if prev != Digest::ZERO => Start::After(prev),
        _ => Start::Genesis,
    };
    let mut log = Log::new(key.as_ref(), start, Unseen).in_folder(&arranged);
    let mut piece = vec![0; 256 << 10];
    for day in &arranged.days {
        log.open(day);
        loop {
            match file.read(&mut piece).map_err(|error| subject.unreadable(error))? {
                0 => break,
                length => log.push(&piece[..length]),
            }
        }
    }
    Ok(audit_format::report(&subject.name, "", &log.finish(LastLine::Settled)))
}

fn goes_on_from(line: &[u8]) -> Option<Digest> {
    match json::parse(line) {
        Ok(Value::Object(row)) => Digest::from_hex(row.get("prev_hmac")?.as_str()?.as_bytes()),
        _ => None,
    }
}

fn first_line(path: &Path, packed: bool) -> Result<Option<Vec<u8>>, Failure> {
    let mut file = durable::open_regular(path)?;
    let mut gunzip = packed.then(|| Gunzip::new(MAX_FIRST_LINE));
    let mut line = Vec::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        let length =
            file.read(&mut piece).map_err(|source| durable::Error::new("can't read", path, source))?;
        let whole = match &mut gunzip {
            None => {
                line.extend_from_slice(&piece[..length]);
                length == 0
            }
            Some(gunzip) => {
                gunzip.push(&piece[..length], |bytes| line.extend_from_slice(bytes)).is_err() || length == 0
            }
        };
        if let Some(end) = memchr::memchr(b'\n', &line) {
            line.truncate(end);
            return Ok(Some(line));
        }
        if whole || u64::try_from(line.len()).unwrap_or(u64::MAX) > MAX_FIRST_LINE {
            return Ok(None);
        }
    }
}

/// The check of a receipt's file: with all of its project, if it lies in one, or alone.
pub(super) fn receipt(subject: &Subject, trust: &Trust) -> Result<Report, Failure> {
    let file = receipt_format::File::read(&read_file(&subject.path)?);
    if let Some(project) = project_of(&subject.path) {
        let key = KeyFile::of_environment().read()?;
        let path = format!("{}{}", receipt_format::FOLDER, subject.file);
        return Ok(Gathered::of(&project, key.as_ref())?.report(&path, &file, trust)?);
    }
    Ok(receipt_format::report(&Evidence {
        file: &subject.file,
        receipt: &file,
        scope: Scope::Alone,
        journal: None,
        spine: None,
        audit: None,
        identity: None,
        fork_commit: ForkCommit::NotLookedAt,
        trust,
    }))
}

/// The project that a receipt lies in: the folder above `.sdd/escalation/receipts`.
fn project_of(path: &Path) -> Option<Project> {
    let path = absolute(path);
    let root = path.ancestors().nth(4)?;
    let below = path.parent()?.strip_prefix(root).ok()?;
    (below == Path::new(receipt_format::FOLDER)).then(|| Project::at(root))
}

fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
