//! Evidence archives: all that is known of a run or a receipt, in one deterministic tar.
//!
//! What fails its checks is taken along as it is: a postmortem needs it most. Private keys and the
//! HMAC key never are.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use waybill_verifier::audit::{Event, Log, Start, arrange};
use waybill_verifier::chain::{LastLine, Place, Visit};
use waybill_verifier::evidence::manifest::{self, Manifest, Seal, Subject};
use waybill_verifier::evidence::tar;
use waybill_verifier::hash::{Digest, Hasher};
use waybill_verifier::id::RunId;
use waybill_verifier::receipt::{self as receipt_format, ReceiptId};
use waybill_verifier::spine;
use waybill_verifier::table::Table;

use crate::anchoring;
use crate::audit;
use crate::durable;
use crate::git::Store;
use crate::identity;
use crate::lock::{FileLock, Lock};
use crate::project::Project;
use crate::receipt;

const PIECE: usize = 1 << 20;

/// Why there is no archive.
#[derive(Debug)]
pub enum Error {
    /// There is nothing of such a run or receipt.
    Absent(String),
    /// A file is too large, or its path too long, for the form.
    DoesNotFit(String),
    /// A file grew shorter while it was read.
    Changed(PathBuf),
    /// A file can't be read.
    File(durable::Error),
    /// The archive can't be written.
    Write(io::Error),
    /// The repository can't be read.
    Anchor(Box<anchoring::Error>),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Absent(what) => write!(f, "there is no run and no receipt {} here", what.escape_debug()),
            Error::DoesNotFit(path) => {
                write!(f, "{} does not fit into an archive: 8 GiB a file at most", path.escape_debug())
            }
            Error::Changed(path) => write!(f, "{} got shorter while it was read", path.display()),
            Error::File(error) => error.fmt(f),
            Error::Write(error) => write!(f, "can't write the archive: {error}"),
            Error::Anchor(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::File(error) => error.source(),
            Error::Anchor(error) => error.source(),
            _ => None,
        }
    }
}

impl From<durable::Error> for Error {
    fn from(error: durable::Error) -> Error {
        Error::File(error)
    }
}

impl From<anchoring::Error> for Error {
    fn from(error: anchoring::Error) -> Error {
        Error::Anchor(Box::new(error))
    }
}

/// What goes into an archive, by its path there.
#[derive(Debug)]
pub struct Evidence {
    subject: Subject,
    audit_starts_after: Option<Digest>,
    files: BTreeMap<String, Source>,
}

/// Where the bytes of one file come from.
#[derive(Debug)]
enum Source {
    /// So many bytes of an open file: what a writer appends meanwhile is left out.
    File(PathBuf, File, u64),
    Bytes(Vec<u8>),
}

/// What was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Written {
    /// How many files are in it, its manifest among them.
    pub files: usize,
    /// How many bytes it has.
    pub bytes: u64,
    /// Their SHA-256.
    pub sha256: Digest,
}

impl Evidence {
    /// Gathers what there is of a run, or of a receipt by its id.
    ///
    /// # Errors
    ///
    /// If there is nothing, or something can't be read.
    pub fn of(project: &Project, name: &str) -> Result<Evidence, Error> {
        match (RunId::new(name), ReceiptId::parse(name)) {
            (_, Some(id)) if receipt::ids(project)?.contains(&id) => Evidence::of_receipt(project, &id),
            (Ok(run), _) => Evidence::of_run(project, &run),
            (Err(_), _) => Err(Error::Absent(name.to_owned())),
        }
    }

    fn new(subject: Subject) -> Evidence {
        Evidence { subject, audit_starts_after: None, files: BTreeMap::new() }
    }

    fn of_run(project: &Project, run: &RunId) -> Result<Evidence, Error> {
        let mut evidence = Evidence::new(Subject::Run(run.to_string()));
        durable::refuse_links(project.root(), &project.ledger_folder(run))?;
        let lock = project.ledger_lock(run);
        evidence.take(project, &format!(".sdd/runtime/ledger/{run}/000000.jsonl"), Lock::is_held(&lock))?;
        evidence.journal(project, run)?;
        let lineage = format!(".sdd/lineage/{run}/");
        durable::refuse_links(project.root(), &project.root().join(&lineage))?;
        evidence.take(project, &format!("{lineage}spine.jsonl"), false)?;
        evidence.take(project, &format!("{lineage}spine.head"), false)?;
        let mut known = Known { run: Some(run.to_string()), ..Known::default() };
        for (id, file) in receipt::of_run(project, run)? {
            evidence.receipt(project, &id, &file, &mut known)?;
        }
        if let Some(store) = Store::discover(project.root()).map_err(anchoring::Error::from)?
            && let Some(bundle) = anchoring::bundle(&store, run)?
        {
            evidence.files.insert(format!("anchors/{run}/anchor.bundle"), Source::Bytes(bundle));
        }
        if evidence.files.is_empty() {
            return Err(Error::Absent(run.to_string()));
        }
        evidence.audit(project, &known)?;
        Ok(evidence)
    }

    fn of_receipt(project: &Project, id: &ReceiptId) -> Result<Evidence, Error> {
        let mut evidence = Evidence::new(Subject::Receipt(id.to_string()));
        let mut known = Known::default();
        let file = receipt::read(project, id)?;
        evidence.receipt(project, id, &file, &mut known)?;
        if let Some(binding) = &file.binding {
            evidence.journal(project, &binding.run_id)?;
        }
        evidence.audit(project, &known)?;
        Ok(evidence)
    }

    fn journal(&mut self, project: &Project, run: &RunId) -> Result<(), Error> {
        durable::refuse_links(project.root(), &project.journal_folder(run))?;
        let held = FileLock::is_held(&project.journal_lock(run));
        self.take(project, &format!(".sdd/runs/{run}/journal.jsonl"), held)
    }

    /// Takes a receipt along, and what all receipts need.
    fn receipt(
        &mut self,
        project: &Project,
        id: &ReceiptId,
        file: &receipt_format::File,
        known: &mut Known,
    ) -> Result<(), Error> {
        self.take(project, &id.path(), false)?;
        known.receipts.push(id.to_string());
        known.receipts.extend(file.entry_hash.as_ref().map(spine::prefixed));
        let spine = ".sdd/lineage/escalations/spine.jsonl";
        if !self.files.contains_key(spine) {
            durable::refuse_links(project.root(), &project.receipt_spine())?;
            self.take(project, spine, false)?;
            self.take(project, ".sdd/lineage/escalations/spine.head", false)?;
            if let Some(key) = identity::public_bytes(project)? {
                let path = ".sdd/identity/escalation-identity-public.pem";
                self.files.insert(path.to_owned(), Source::Bytes(key));
            }
        }
        Ok(())
    }

    /// Takes a file of the project along, if it is there. While its writer is at work, what
    /// stands behind the last newline is not part of it.
    fn take(&mut self, project: &Project, path: &str, held: bool) -> Result<(), Error> {
        let full = project.root().join(path);
        let Some(file) = durable::open_if_there(&full)? else { return Ok(()) };
        let unreadable = |source| durable::Error::new("can't read", &full, source);
        let mut size = file.metadata().map_err(unreadable)?.len();
        if held {
            size = whole_lines(&file, size).map_err(unreadable)?;
        }
        self.files.insert(path.to_owned(), Source::File(full, file, size));
        Ok(())
    }

    /// Takes the days of the audit log along from the first that speaks of what is exported, and
    /// says where they go on from. A log that does not hold is taken along whole.
    fn audit(&mut self, project: &Project, known: &Known) -> Result<(), Error> {
        let folder = project.audit();
        durable::refuse_links(project.root(), &folder)?;
        if !folder.is_dir() {
            return Ok(());
        }
        let names = audit::names(&folder)?;
        let arranged = arrange(names.iter().map(String::as_str));
        let mut link = Digest::ZERO;
        let mut first = None;
        let mut broken = !arranged.faults.is_empty();
        for (index, day) in arranged.days.iter().enumerate() {
            let start = if link == Digest::ZERO { Start::Genesis } else { Start::After(link) };
            let mut log = Log::new(None, start, Mentions { known, found: false });
            log.open(day);
            audit::push_day(&mut log, &folder.join(day.name))?;
            let outcome = log.finish(LastLine::Settled);
            broken |= outcome.fault_count > 0 && index + 1 < arranged.days.len();
            if outcome.visitor.found && first.is_none() {
                first = Some((index, link));
            }
            link = outcome.head;
        }
        let Some((mut from, link)) = first else { return Ok(()) };
        if broken {
            from = 0;
        } else {
            self.audit_starts_after = Some(link).filter(|link| *link != Digest::ZERO);
        }
        let held = FileLock::is_held(&folder.join(audit::LOCK));
        for day in &arranged.days[from..] {
            self.take(project, &format!(".sdd/audit/{}", day.name), held && !day.archived())?;
        }
        for fault in arranged.faults.iter().filter(|_| broken) {
            self.take(project, &format!(".sdd/audit/{}", fault.name), false)?;
        }
        Ok(())
    }

    /// Writes the archive: the same evidence, the same bytes.
    ///
    /// # Errors
    ///
    /// If a file can't be read any more, or the archive can't be written.
    pub fn write(self, out: impl Write) -> Result<Written, Error> {
        let mut out = Tar { out, hasher: Hasher::new(), bytes: 0 };
        let mut seals = Table::new();
        let (before, after): (Vec<_>, Vec<_>) =
            self.files.into_iter().partition(|(path, _)| path.as_str() < manifest::NAME);
        // The manifest has its place among the sorted paths; what comes behind it is in memory.
        for (path, source) in &after {
            if let Source::Bytes(bytes) = source {
                seals.insert(path, Seal { bytes: length(bytes), sha256: Digest::of(bytes) });
            }
        }
        for (path, source) in before {
            let seal = out.file(&path, source)?;
            seals.insert(&path, seal);
        }
        let files = seals.len() + 1;
        let manifest =
            Manifest { subject: self.subject, audit_starts_after: self.audit_starts_after, files: seals };
        out.file(manifest::NAME, Source::Bytes(manifest.to_json()))?;
        for (path, source) in after {
            out.file(&path, source)?;
        }
        out.put(&[0; 1024])?;
        out.out.flush().map_err(Error::Write)?;
        Ok(Written { files, bytes: out.bytes, sha256: out.hasher.finish() })
    }
}

/// What an audit event must speak of to be of interest.
#[derive(Clone, Debug, Default)]
struct Known {
    run: Option<String>,
    receipts: Vec<String>,
}

struct Mentions<'a> {
    known: &'a Known,
    found: bool,
}

impl Visit<Event> for Mentions<'_> {
    fn visit(&mut self, event: &Event, _: Place) {
        let names = |wanted: &str| {
            event.resource_id == *wanted
                || event.details.iter().any(|(_, detail)| detail.as_str() == Some(wanted))
        };
        self.found |=
            self.known.run.as_deref().is_some_and(names) || self.known.receipts.iter().any(|id| names(id));
    }
}

struct Tar<W> {
    out: W,
    hasher: Hasher,
    bytes: u64,
}

impl<W: Write> Tar<W> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.out.write_all(bytes).map_err(Error::Write)?;
        self.hasher.update(bytes);
        self.bytes += length(bytes);
        Ok(())
    }

    fn file(&mut self, path: &str, source: Source) -> Result<Seal, Error> {
        let size = match &source {
            Source::File(_, _, size) => *size,
            Source::Bytes(bytes) => length(bytes),
        };
        let header = tar::header(path, size).ok_or_else(|| Error::DoesNotFit(path.to_owned()))?;
        self.put(&header)?;
        let sha256 = match source {
            Source::Bytes(bytes) => {
                self.put(&bytes)?;
                Digest::of(&bytes)
            }
            Source::File(path, file, size) => self.copy(path, file, size)?,
        };
        let filling = usize::try_from(size.next_multiple_of(512) - size).unwrap_or(0);
        self.put(&[0; 512][..filling])?;
        Ok(Seal { bytes: size, sha256 })
    }

    fn copy(&mut self, path: PathBuf, file: File, size: u64) -> Result<Digest, Error> {
        let mut hasher = Hasher::new();
        let mut piece = vec![0; PIECE];
        let mut left = size;
        let mut file = file.take(size);
        while left > 0 {
            let count =
                file.read(&mut piece).map_err(|source| durable::Error::new("can't read", &path, source))?;
            if count == 0 {
                return Err(Error::Changed(path));
            }
            hasher.update(&piece[..count]);
            self.put(&piece[..count])?;
            left -= u64::try_from(count).unwrap_or(0);
        }
        Ok(hasher.finish())
    }
}

/// How many of a file's bytes are whole lines.
fn whole_lines(file: &File, size: u64) -> io::Result<u64> {
    use std::os::unix::fs::FileExt;
    let mut end = size;
    let mut piece = vec![0; 64 << 10];
    while end > 0 {
        let count = piece.len().min(usize::try_from(end).unwrap_or(usize::MAX));
        let start = end - u64::try_from(count).unwrap_or(0);
        file.read_exact_at(&mut piece[..count], start)?;
        if let Some(at) = memchr::memrchr(b'\n', &piece[..count]) {
            return Ok(start + u64::try_from(at).unwrap_or(0) + 1);
        }
        end = start;
    }
    Ok(0)
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
