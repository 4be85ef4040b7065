//! `waybill verify`: any evidence in, one report out.

mod evidence;
mod others;

pub(super) use evidence::{PIECE, feed_file, feed_gate};

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use waybill_verifier::anchor::ObjectId;
use waybill_verifier::chain::{LastLine, Unseen};
use waybill_verifier::evidence::{ENOUGH, Kind, tell};
use waybill_verifier::hash::Digest;
use waybill_verifier::id::RunId;
use waybill_verifier::ledger::{self, Expect, LedgerRows};
use waybill_verifier::report::{Report, Requirement, Verdict};

use super::Global;
use super::escalation::SignerArgs;
use super::exit::{Exit, Failure};
use super::out::{self, Form};
use crate::durable::{self, open_regular};
use crate::lock::Lock;
use crate::read;

const AFTER: &str = "\
Examples:
  waybill verify goal-42                      a run of this project
  waybill verify ledger.jsonl --expected-head 73888fa5…
  waybill verify ours.jsonl theirs.jsonl      two ledgers of one run are compared, too
  waybill verify goal-42 --require complete,pinned
  waybill verify .sdd/audit .sdd/lineage/escalations
  waybill verify evidence.tar .sdd goal-42.bundle      an archive, a folder, a git bundle
  waybill verify 793c8e6b….json --signer ann.pem      a receipt, with its project if it lies in one

Exit codes: 0 holds, 1 absent, 2 failed, 3 diverged; 64 wrong arguments, 74 I/O";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(super) struct Args {
    /// A run of this project, or files: what each is, is told by its content, unless its name is that of
    /// a part of something (chunk-000000.jsonl, LEDGER.json)
    #[arg(required = true, value_name = "RUN|PATH")]
    subjects: Vec<String>,
    #[command(flatten)]
    expect: ExpectArgs,
    /// The anchor's commit in a git bundle, known from elsewhere
    #[arg(long, value_name = "COMMIT", value_parser = commit)]
    expected_commit: Option<ObjectId>,
    #[command(flatten)]
    signer: SignerArgs,
}

#[derive(Clone, Debug, clap::Args)]
pub(super) struct ExpectArgs {
    /// The last entry's hash, known from elsewhere
    #[arg(long, value_name = "HASH", value_parser = digest)]
    expected_head: Option<Digest>,
    /// Some entry's hash, known from elsewhere
    #[arg(long, value_name = "HASH", value_parser = digest)]
    contains: Option<Digest>,
    /// Fail unless the report has these assurances
    #[arg(long, value_delimiter = ',', value_enum)]
    require: Vec<Assurance>,
    /// How many threads verify a large ledger [default: one a core]
    #[arg(long, value_name = "N", hide = true)]
    threads: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Assurance {
    /// Something outside the evidence vouches for it
    Pinned,
    /// An anchor in a repository vouches for it
    Anchored,
    /// The authentication tags were checked with the key
    Hmac,
    /// Nothing was left unchecked
    Complete,
}

pub(super) fn digest(text: &str) -> Result<Digest, String> {
    Digest::from_hex(text.as_bytes()).ok_or_else(|| String::from("a hash has 64 lowercase hex digits"))
}

fn commit(text: &str) -> Result<ObjectId, String> {
    ObjectId::from_hex(text.as_bytes())
        .ok_or_else(|| String::from("a commit's id has 40 lowercase hex digits"))
}

impl ExpectArgs {
    pub(super) fn expect(&self) -> Expect {
        Expect { head: self.expected_head, contains: self.contains }
    }

    pub(super) fn require(&self, report: &mut Report) {
        require(report, &self.require);
    }

    /// Refuses hashes of entries where there is nothing that has them.
    fn not_of(&self, subject: &Subject, what: &str) -> Result<(), Failure> {
        if self.expected_head.is_some() || self.contains.is_some() {
            return Err(Failure::usage(format!(
                "{} is {what}: --expected-head and --contains go with ledgers",
                subject.name
            )));
        }
        Ok(())
    }

    fn threads(&self, size: u64) -> usize {
        self.threads.unwrap_or_else(|| read::threads(size)).clamp(1, 64)
    }
}

impl Assurance {
    pub(super) const fn requirement(self) -> Requirement {
        match self {
            Assurance::Pinned => Requirement::Pinned,
            Assurance::Anchored => Requirement::Anchored,
            Assurance::Hmac => Requirement::Hmac,
            Assurance::Complete => Requirement::Complete,
        }
    }
}

/// Insists on assurances.
pub(super) fn require(report: &mut Report, assurances: &[Assurance]) {
    report.require(assurances.iter().map(|assurance| assurance.requirement()));
}

/// One thing to check: where it is, and what reports call it.
struct Subject {
    path: PathBuf,
    /// The file's name in reports: relative to the root that was given.
    file: String,
    name: String,
    run: Option<RunId>,
    lock: Option<PathBuf>,
}

impl Subject {
    fn run(global: &Global, run: &RunId) -> Result<Subject, Failure> {
        let project = global.project()?;
        durable::refuse_links(project.root(), &project.ledger_folder(run))?;
        Ok(Subject {
            path: project.ledger(run),
            file: format!(".sdd/runtime/ledger/{run}/000000.jsonl"),
            name: run.to_string(),
            run: Some(run.clone()),
            lock: Some(project.ledger_lock(run)),
        })
    }

    fn file(path: &Path) -> Subject {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Subject { path: path.to_owned(), file: name.clone(), name, run: None, lock: None }
    }

    fn last_line(&self) -> LastLine {
        match &self.lock {
            Some(lock) => Lock::last_line(lock),
            None => LastLine::Settled,
        }
    }

    fn unreadable(&self, source: std::io::Error) -> Failure {
        durable::Error::new("can't read", &self.path, source).into()
    }
}

pub(super) fn run(global: &Global, args: &Args) -> Result<Exit, Failure> {
    let mut subjects = Vec::new();
    for name in &args.subjects {
        let path = Path::new(name);
        let subject = match (path.symlink_metadata(), RunId::new(name)) {
            (Ok(_), _) => Subject::file(path),
            (Err(_), Ok(run)) => {
                let subject = Subject::run(global, &run)?;
                if !subject.path.exists() {
                    let message =
                        format!("there is no file and no run {name} here: look at --workdir, or the path");
                    return Err(Failure { exit: Exit::Absent, message });
                }
                subject
            }
            (Err(_), Err(_)) => {
                let message = format!("there is no file {name}, and it is no run id: give one of the two");
                return Err(Failure { exit: Exit::Absent, message });
            }
        };
        subjects.push(subject);
    }
    let mut report = match subjects.as_slice() {
        [subject] if subject.run.is_some() => run_report(global, subject, args)?,
        [subject] => match one_file(subject, args)? {
            Some(report) => report,
            None => evidence::check(&subjects, args)?,
        },
        _ => evidence::check(&subjects, args)?,
    };
    args.expect.require(&mut report);
    show(global, &report)
}

/// The report on a run of this project: its ledger, and what else there is of it.
fn run_report(global: &Global, subject: &Subject, args: &Args) -> Result<Report, Failure> {
    let project = global.project()?;
    let Some(run) = &subject.run else { return check_ledger(subject, &args.expect) };
    let mut ledger = check_ledger(subject, &args.expect)?;
    super::ledger::add_anchored(&mut ledger, &project, run, None)?;
    let mut parts = vec![ledger];
    if let Some(outcome) = crate::journal::walk(&project, run, Unseen)? {
        let file = format!(".sdd/runs/{run}/journal.jsonl");
        parts.push(waybill_verifier::journal::report(&file, &file, &outcome, None));
    }
    parts.extend(others::receipts_of(&project, run, &args.signer.trust()?)?);
    if parts.len() > 1 {
        return Ok(Report::of_parts(run.to_string(), Vec::new(), parts, Verdict::Verified));
    }
    parts.pop().ok_or_else(|| Failure { exit: Exit::Internal, message: String::from("no report was made") })
}

/// The report on one file, where a file by itself is read in another way than several are: a
/// large ledger on all cores, a receipt with the project that it lies in.
fn one_file(subject: &Subject, args: &Args) -> Result<Option<Report>, Failure> {
    if subject.path.is_dir() {
        return Ok(None);
    }
    let file = open_regular(&subject.path)?;
    match tell(&subject.file, &beginning(&file).map_err(|error| subject.unreadable(error))?) {
        Kind::Ledger | Kind::Empty => check_ledger(subject, &args.expect).map(Some),
        Kind::Receipt => {
            args.expect.not_of(subject, "a receipt")?;
            others::receipt(subject, &args.signer.trust()?)
        }
        _ => Ok(None),
    }
}

/// `waybill ledger verify`: the same report, for what is said to be a ledger.
pub(super) fn run_ledger(
    global: &Global,
    run: Option<&RunId>,
    file: Option<&Path>,
    remote: Option<&str>,
    expect: &ExpectArgs,
) -> Result<Exit, Failure> {
    let subject = match (run, file) {
        (_, Some(path)) => Subject { run: run.cloned(), ..Subject::file(path) },
        (Some(run), None) => Subject::run(global, run)?,
        (None, None) => return Err(Failure::usage("give a run, or --file with a ledger's path")),
    };
    let mut report = check_ledger(&subject, expect)?;
    if let (Some(run), None) = (run, file) {
        super::ledger::add_anchored(&mut report, &global.project()?, run, remote)?;
    }
    expect.require(&mut report);
    show(global, &report)
}

pub(super) fn show(global: &Global, report: &Report) -> Result<Exit, Failure> {
    match global.form() {
        Form::Json => super::put(&report.to_json())?,
        Form::Text => super::put(out::report(report).as_bytes())?,
        Form::Quiet if report.verdict.exit_code() == 0 => {}
        Form::Quiet => out::say(&format!("{}: {}", report.verdict.name(), report.summary)),
    }
    Ok(Exit::Verdict(report.verdict))
}

fn beginning(file: &File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(ENOUGH).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn check_ledger(subject: &Subject, expect: &ExpectArgs) -> Result<Report, Failure> {
    // The lock is looked at first: a writer that ends in between leaves settled bytes.
    let last_line = subject.last_line();
    let file = match (open_regular(&subject.path), &subject.run) {
        (Ok(file), _) => file,
        (Err(error), Some(run)) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(crate::log::Error::Absent(run.clone()).into());
        }
        (Err(error), _) => return Err(error.into()),
    };
    let expected = expect.expect();
    let size = read::size(&file).map_err(|error| subject.unreadable(error))?;
    let rows = LedgerRows::unvisited(subject.run.as_ref()).looking_for(expected.hashes());
    let outcome = read::walk_ledger(&file, size, rows, last_line, expect.threads(size))
        .map_err(|error| subject.unreadable(error))?;
    Ok(ledger::report(&subject.name, &subject.file, &outcome, &expected))
}
