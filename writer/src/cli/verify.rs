//! `waybill verify`: any evidence in, one report out.

mod others;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use waybill_verifier::chain::LastLine;
use waybill_verifier::compare::{Comparison, Stamp, compare};
use waybill_verifier::evidence::{self, Kind};
use waybill_verifier::hash::Digest;
use waybill_verifier::id::RunId;
use waybill_verifier::ledger::{self, Expect, LedgerRows, Row};
use waybill_verifier::report::{Check, Report, Requirement, Status, Verdict, counted};
use waybill_verifier::step::{self, StepRows};

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
  waybill verify 793c8e6b….json --signer ann.pem      a receipt, with its project if it lies in one

Exit codes: 0 holds, 1 absent, 2 failed, 3 diverged; 64 wrong arguments, 74 I/O";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(super) struct Args {
    /// A run of this project, or files: what each is, is told by its content
    #[arg(required = true, value_name = "RUN|PATH")]
    subjects: Vec<String>,
    #[command(flatten)]
    expect: ExpectArgs,
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

/// Insists on assurances.
pub(super) fn require(report: &mut Report, assurances: &[Assurance]) {
    report.require(assurances.iter().map(|assurance| match assurance {
        Assurance::Pinned => Requirement::Pinned,
        Assurance::Anchored => Requirement::Anchored,
        Assurance::Hmac => Requirement::Hmac,
        Assurance::Complete => Requirement::Complete,
    }));
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
    let mut reports = Vec::new();
    for subject in &subjects {
        let mut report = check(subject, &args.expect, &args.signer)?;
        if let Some(run) = &subject.run {
            super::ledger::add_anchored(&mut report, &global.project()?, run, None)?;
        }
        reports.push(report);
    }
    let mut report = match <[Report; 1]>::try_from(reports) {
        Ok([report]) => report,
        Err(reports) => {
            let comparisons = comparisons(&subjects, &reports)?;
            let name = format!("{} subjects", reports.len());
            let verdict = comparisons.iter().map(|(_, verdict)| *verdict).max_by_key(|one| one.badness());
            let checks = comparisons.into_iter().map(|(check, _)| check).collect();
            Report::of_parts(name, checks, reports, verdict.unwrap_or(Verdict::Verified))
        }
    };
    args.expect.require(&mut report);
    show(global, &report)
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

fn check(subject: &Subject, expect: &ExpectArgs, signer: &SignerArgs) -> Result<Report, Failure> {
    if subject.run.is_some() {
        return check_ledger(subject, expect);
    }
    if subject.path.is_dir() {
        expect.not_of(subject, "a folder")?;
        return others::folder(subject);
    }
    let file = open_regular(&subject.path)?;
    match evidence::tell(&beginning(&file).map_err(|error| subject.unreadable(error))?) {
        Kind::Ledger | Kind::Empty => check_ledger(subject, expect),
        Kind::StepJournal => {
            expect.not_of(subject, "a step journal")?;
            check_steps(subject, &file)
        }
        Kind::EventJournal if expect.contains.is_none() => {
            others::event_journal(subject, &file, expect.expected_head)
        }
        Kind::EventJournal => Err(Failure::usage("--contains goes with ledgers")),
        Kind::Spine => {
            expect.not_of(subject, "a spine")?;
            others::spine_file(&subject.name, &subject.path)
        }
        Kind::AuditDay | Kind::Packed => {
            expect.not_of(subject, "a day of an audit log")?;
            others::audit_day(subject, open_regular(&subject.path)?)
        }
        Kind::Receipt => {
            expect.not_of(subject, "a receipt")?;
            others::receipt(subject, &signer.trust()?)
        }
        Kind::Unknown => Err(Failure {
            exit: Exit::Failed,
            message: format!(
                "{} is no evidence that this program knows, by its content; 'waybill ledger verify --file' \
                 reads it as a ledger all the same",
                subject.path.display()
            ),
        }),
    }
}

fn beginning(file: &File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(evidence::ENOUGH).read_to_end(&mut bytes)?;
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

fn check_steps(subject: &Subject, file: &File) -> Result<Report, Failure> {
    let size = read::size(file).map_err(|error| subject.unreadable(error))?;
    let outcome = read::walk(file, size, StepRows::default(), LastLine::Settled)
        .map_err(|error| subject.unreadable(error))?;
    Ok(step::report(&subject.name, &subject.file, &outcome))
}

/// Compares each ledger with the ones before it that name the same run.
fn comparisons(subjects: &[Subject], reports: &[Report]) -> Result<Vec<(Check, Verdict)>, Failure> {
    let mut found = Vec::new();
    let mut earlier: Vec<(usize, Vec<Stamp>)> = Vec::new();
    for (index, (subject, report)) in subjects.iter().zip(reports).enumerate() {
        let run = |report: &Report| {
            let run = report.facts.get("run_id").filter(|_| report.subject.0 == "ledger")?;
            run.as_str().map(str::to_owned)
        };
        let Some(run_id) = run(report) else { continue };
        if report.verdict == Verdict::Failed {
            if reports.iter().filter(|other| run(other).as_deref() == Some(run_id.as_str())).count() > 1 {
                let sentence = format!(
                    "{} does not hold, so it was not compared with the others of run {run_id}",
                    subject.name
                );
                found.push((Check::new("ledger.compare", Status::NotChecked, sentence), Verdict::Incomplete));
            }
            continue;
        }
        let stamps = stamps(subject)?;
        for (other, theirs) in &earlier {
            if run(&reports[*other]).as_deref() == Some(run_id.as_str()) {
                let names = (subjects[*other].name.as_str(), subject.name.as_str());
                found.push(comparison(names, &run_id, compare(theirs, &stamps)));
            }
        }
        earlier.push((index, stamps));
    }
    Ok(found)
}

fn stamps(subject: &Subject) -> Result<Vec<Stamp>, Failure> {
    let file = open_regular(&subject.path)?;
    let size = read::size(&file).map_err(|error| subject.unreadable(error))?;
    let mut stamps = Vec::new();
    let rows = LedgerRows::new(None, |row: &Row<'_>, _| stamps.push(Stamp::of(row)));
    read::walk(&file, size, rows, subject.last_line()).map_err(|error| subject.unreadable(error))?;
    Ok(stamps)
}

fn comparison((first, second): (&str, &str), run: &str, comparison: Comparison) -> (Check, Verdict) {
    const ID: &str = "ledger.compare";
    let (status, verdict, sentence) = match comparison {
        Comparison::Identical => (
            Status::Pass,
            Verdict::Verified,
            format!("{first} and {second} are the same ledger of run {run}"),
        ),
        Comparison::LocalAhead(more) => (
            Status::Pass,
            Verdict::Verified,
            format!("{first} goes on from {second}, by {}, as run {run}", counted(more, "entry")),
        ),
        Comparison::RemoteAhead(more) => (
            Status::Pass,
            Verdict::Verified,
            format!("{second} goes on from {first}, by {}, as run {run}", counted(more, "entry")),
        ),
        Comparison::Diverged { entry, local, remote } => (
            Status::Fail,
            Verdict::Diverged,
            format!(
                "run {run} diverged at entry {entry}: {first} has {local}, {second} has {remote}; nothing \
                 is merged, somebody has to keep one"
            ),
        ),
        Comparison::UnhashedFieldsDiffer { entry } => (
            Status::Fail,
            Verdict::Failed,
            format!(
                "{first} and {second} have the same hashes, but the unhashed fields of entry {entry} (`ts`, \
                 `redactions`) differ: one of them was edited"
            ),
        ),
    };
    let mut check = Check::new(ID, status, sentence);
    check.fault = match comparison {
        Comparison::Diverged { .. } => Some("diverged"),
        Comparison::UnhashedFieldsDiffer { .. } => Some("unhashed_fields_differ"),
        _ => None,
    };
    (check, verdict)
}
