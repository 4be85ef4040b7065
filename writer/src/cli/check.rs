//! `waybill check`: the gate for CI.

use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use waybill_verifier::anchor::Completeness;
use waybill_verifier::gate::{self, Files, Gate, HEADS, Heads, POLICY};
use waybill_verifier::report::{Check, Report, Status, Verdict};

use super::Global;
use super::exit::{Exit, Failure};
use super::out;
use super::verify::feed_project;
use crate::durable;
use crate::git::{Store, anchor_ref};
use crate::master::KeyFile;
use crate::project::Project;

/// A policy or heads file of a base is not longer.
const MAX_FILE: usize = 16 << 20;

const HELP: &str = "\
Policy (.waybill/policy.toml) and heads (.waybill/heads.json) are read from the base, so that what
asks to be merged can't loosen its own gate. Without --base the base is, in this order: what
GITHUB_BASE_REF names at origin, CI_MERGE_REQUEST_DIFF_BASE_SHA, HEAD. Each entry that the base's
heads name must still be one. Ledgers are the anchors (refs/bernstein/work-ledger/*), which a CI
checkout does not fetch by itself:
  git fetch origin 'refs/bernstein/work-ledger/*:refs/bernstein/work-ledger/*'

Examples:
  waybill check                                 before a push
  waybill check --update                        then commit .waybill/heads.json
  waybill check --base origin/main --format github --format sarif=waybill.sarif

Exit codes: 0 holds, 2 failed, 3 diverged; 64 wrong arguments, 74 I/O";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Args {
    /// The commit that policy and heads are read from: a ref, or a commit's id
    #[arg(long, value_name = "REF")]
    base: Option<String>,
    /// Read the policy from this file instead
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Read the base's heads from this file instead
    #[arg(long, value_name = "FILE")]
    heads: Option<PathBuf>,
    /// Write .waybill/heads.json, if all holds
    #[arg(long)]
    update: bool,
    /// How to say it: text, json, github, gitlab, junit, sarif or markdown; =FILE to write a file
    #[arg(long, value_name = "FORMAT[=FILE]", value_parser = output)]
    format: Vec<Output>,
}

#[derive(Clone, Debug)]
struct Output {
    form: Form,
    file: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Form {
    Text,
    Json,
    Github,
    Gitlab,
    Junit,
    Sarif,
    Markdown,
}

fn output(text: &str) -> Result<Output, String> {
    let (form, file) = text.split_once('=').map_or((text, None), |(form, file)| (form, Some(file)));
    let form = Form::from_str(form, false)
        .map_err(|_| String::from("a format is text, json, github, gitlab, junit, sarif or markdown"))?;
    match file {
        Some("") => Err(String::from("a file's name is missing behind =")),
        file => Ok(Output { form, file: file.map(PathBuf::from) }),
    }
}

pub(super) fn run(global: &Global, args: &Args) -> Result<Exit, Failure> {
    let project = global.project()?;
    let Some(store) = Store::discover(project.root())? else {
        let message = String::from("this folder is in no git repository, and a gate is a repository's");
        return Err(Failure { exit: Exit::Absent, message });
    };
    let base = Base::read(&store, args)?;
    let root = store.work_folder().to_owned();
    let new = |path| if store.is_bare() { Ok(None) } else { read_file(&root.join(path)) };
    let (new_policy, new_heads) = (new(POLICY)?, new(HEADS)?);
    let files = Files {
        policy: base.policy.as_deref(),
        base_heads: base.heads.as_deref(),
        new_policy: new_policy.as_deref(),
        // What is to be written is not held against what is there.
        new_heads: new_heads.as_deref().filter(|_| !args.update),
    };
    let (mut report, heads) = gather(&project, &store, &files, args.update)?;
    if args.update {
        update(&root, &mut report, &heads)?;
    }
    put(global, args, &report)?;
    Ok(Exit::Verdict(report.verdict))
}

/// What the base says.
struct Base {
    policy: Option<Vec<u8>>,
    heads: Option<Vec<u8>>,
}

impl Base {
    fn read(store: &Store, args: &Args) -> Result<Base, Failure> {
        let given = |file: &Option<PathBuf>| match file {
            Some(path) => match read_file(path)? {
                Some(bytes) => Ok(Some(bytes)),
                None => {
                    Err(Failure { exit: Exit::Absent, message: format!("{} is not there", path.display()) })
                }
            },
            None => Ok(None),
        };
        let (policy, heads) = (given(&args.policy)?, given(&args.heads)?);
        let commit = match (&args.base, base_of_environment()) {
            (Some(name), _) | (None, Some(name)) => match store.commit(&name.clone())? {
                Some(commit) => Some(commit),
                None => {
                    let shown = out::escape(name);
                    let message =
                        format!("the base {shown} is not here: fetch it, or name another with --base");
                    return Err(Failure { exit: Exit::Absent, message });
                }
            },
            (None, None) => store.commit("HEAD").ok().flatten(),
        };
        let at_base = |path| match &commit {
            Some(commit) => store.file_at(commit, path, MAX_FILE),
            None => Ok(None),
        };
        Ok(Base {
            policy: policy.map_or_else(|| at_base(POLICY), |bytes| Ok(Some(bytes)))?,
            heads: heads.map_or_else(|| at_base(HEADS), |bytes| Ok(Some(bytes)))?,
        })
    }
}

/// What CI says that the base is.
fn base_of_environment() -> Option<&'static String> {
    static BASE: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    BASE.get_or_init(|| {
        set("GITHUB_BASE_REF")
            .map(|branch| format!("origin/{branch}"))
            .or_else(|| set("CI_MERGE_REQUEST_DIFF_BASE_SHA"))
    })
    .as_ref()
}

fn read_file(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    use std::io::Read;
    let Some(file) = durable::open_if_there(path)? else { return Ok(None) };
    let limit = u64::try_from(MAX_FILE).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| durable::Error::new("can't read", path, source))?;
    Ok(Some(bytes))
}

fn gather(
    project: &Project,
    store: &Store,
    files: &Files<'_>,
    update: bool,
) -> Result<(Report, Heads), Failure> {
    let mut gate = Gate::new(files);
    if update {
        gate.only_what_is_there();
    }
    let shallow = store.shallow()?;
    let completeness = || shallow.as_ref().map_or(Completeness::Whole, Completeness::Shallow);
    let mut unread = Vec::new();
    for (run, commit) in store.anchors()? {
        match commit {
            Ok(commit) => {
                let name = anchor_ref(&run);
                gate.anchor((&name, &run, commit), completeness(), |id, limit| store.object(id, limit))?;
            }
            Err(error) => unread.push(format!("the anchor of run {run} can't be read: {error}")),
        }
    }
    for (name, run, commit) in store.asides()? {
        gate.aside((&name, &run, commit), completeness(), |id, limit| store.object(id, limit))?;
    }
    if let Ok(Some(key)) = KeyFile::of_environment().read() {
        gate.session().key(key);
    }
    feed_project(gate.session(), project.root())?;
    let (mut report, heads) = gate.finish();
    for sentence in unread {
        report.add((
            Check::new("gate.runs", Status::Fail, sentence),
            Some(Verdict::Failed),
            waybill_verifier::report::Voucher::None,
        ));
    }
    Ok((report, heads))
}

fn update(root: &Path, report: &mut Report, heads: &Heads) -> Result<(), Failure> {
    if report.verdict.exit_code() != 0 {
        report.summary = format!("{HEADS} was not written: {}", report.summary);
        return Ok(());
    }
    let path = root.join(HEADS);
    let failed = |source| Failure::from(durable::Error::new("can't make", &path, source));
    fs::create_dir_all(root.join(".waybill")).map_err(failed)?;
    durable::refuse_links(root, &path)?;
    let bytes = heads.to_json();
    if read_file(&path)?.as_deref() != Some(&bytes) {
        durable::replace(&path, |file| std::io::Write::write_all(file, &bytes))?;
    }
    let runs = waybill_verifier::report::counted(heads.0.len(), "run");
    report.summary = format!("{HEADS} names {runs}; {}", report.summary);
    Ok(())
}

fn put(global: &Global, args: &Args, report: &Report) -> Result<(), Failure> {
    let of_global = match global.form() {
        out::Form::Json => Some(Form::Json),
        out::Form::Text => Some(Form::Text),
        out::Form::Quiet => None,
    };
    let default = of_global.map(|form| Output { form, file: None });
    let outputs = if args.format.is_empty() { default.into_iter().collect() } else { args.format.clone() };
    for Output { form, file } in outputs {
        let bytes = match form {
            Form::Text => out::report(report).into_bytes(),
            Form::Json => report.to_json(),
            Form::Github => {
                let line = format!("waybill: {}: {}\n", report.verdict.name(), gate::plain(&report.summary));
                (gate::github(report).lines + &line).into_bytes()
            }
            Form::Gitlab => gate::codequality(report),
            Form::Junit => gate::junit(report).into_bytes(),
            Form::Sarif => gate::sarif(report, env!("CARGO_PKG_VERSION")),
            Form::Markdown => gate::markdown(report).into_bytes(),
        };
        match file {
            None => super::put(&bytes)?,
            Some(path) => {
                fs::write(&path, bytes).map_err(|source| durable::Error::new("can't write", &path, source))?
            }
        }
    }
    if global.form() == out::Form::Quiet && report.verdict.exit_code() != 0 {
        out::say(&format!("{}: {}", report.verdict.name(), report.summary));
    }
    Ok(())
}
