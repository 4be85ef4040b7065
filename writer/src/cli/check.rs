//! `waybill check`: the gate for CI.

mod base;
mod pre_receive;
mod text;

use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use waybill_verifier::anchor::Completeness;
use waybill_verifier::gate::{self, Files, Gate, HEADS, Heads, POLICY};
use waybill_verifier::report::{Report, counted};

use super::Global;
use super::exit::{Exit, Failure};
use super::out;
use super::verify::{Assurance, feed_gate};
use crate::durable;
use crate::git::{Store, anchor_ref};
use crate::master::KeyFile;
use crate::project::Project;
use base::Base;

const HELP: &str = "\
Policy (.waybill/policy.toml) and heads (.waybill/heads.json) are read from the base, so that what
asks to be merged can't loosen its own gate. Each entry that the base's heads name must still be one.
Without --base the base is the first of these that is set:
  GITHUB_BASE_REF                        that branch at origin
  GITHUB_EVENT_PATH                      a merge group's base; the commit before a push
  CI_MERGE_REQUEST_TARGET_BRANCH_SHA     GitLab's merged results
  CI_MERGE_REQUEST_DIFF_BASE_SHA         GitLab's merge requests
  HEAD
Ledgers are the anchors (refs/bernstein/work-ledger/*), which a checkout does not fetch by itself:
  git fetch origin '+refs/bernstein/work-ledger/*:refs/bernstein/work-ledger/*'

As a pre-receive hook, --pre-receive refuses a push that rewrites or deletes a ledger's anchor.

Examples:
  waybill check                                 before a push
  waybill check --update                        then commit .waybill/heads.json
  waybill check --base origin/main --format github --format sarif=waybill.sarif

Exit codes: 0 holds, 1 no repository or base, 2 failed, 3 diverged; 64 wrong arguments, 74 I/O";

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
    /// Fail unless the repository has these assurances, too
    #[arg(long, value_delimiter = ',', value_enum)]
    require: Vec<Assurance>,
    /// Write .waybill/heads.json, if all holds
    #[arg(long)]
    update: bool,
    /// How to say it: text, json, github, gitlab, junit, sarif or markdown; =FILE writes a file
    #[arg(long, value_name = "FORMAT[=FILE]", value_parser = output)]
    format: Vec<Output>,
    /// Judge a push instead: reads `old new ref` lines, as git gives them to a pre-receive hook
    #[arg(long, conflicts_with_all = ["base", "policy", "heads", "require", "update", "format"])]
    pre_receive: bool,
    /// Let a push settle a divergence, if the lineage that it replaces is kept aside in the repository
    #[arg(long, requires = "pre_receive")]
    allow_settled: bool,
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
    if args.pre_receive {
        return pre_receive::run(global, store, args.allow_settled);
    }
    let outputs = outputs(global, args)?;
    if args.update && store.is_bare() {
        return Err(Failure::usage("a bare repository has no files: run --update in a clone"));
    }
    let base = Base::read(&store, args)?;
    let (new_policy, new_heads) = (now(&store, POLICY)?, now(&store, HEADS)?);
    let files = Files {
        policy: base.policy.as_deref(),
        base_heads: base.heads.as_deref(),
        new_policy: new_policy.as_deref(),
        new_heads: new_heads.as_deref(),
    };
    let mut gate = Gate::new(&files);
    gate.require(args.require.iter().map(|assurance| assurance.requirement()));
    if args.update {
        gate.only_what_is_there();
    }
    let (mut report, heads) = gather(gate, &project, &store)?;
    if args.update {
        update(store.work_folder(), &mut report, &heads)?;
    }
    put(global, &outputs, &report)?;
    Ok(Exit::Verdict(report.verdict))
}

/// A file of what asks to be merged: in the working folder, or in a bare repository at HEAD.
fn now(store: &Store, path: &str) -> Result<Option<Vec<u8>>, Failure> {
    if !store.is_bare() {
        durable::refuse_links(store.work_folder(), &store.work_folder().join(path))?;
        return base::read_file(&store.work_folder().join(path));
    }
    match store.commit("HEAD")? {
        Some(commit) => Ok(store.file_at(&commit, path, base::MAX_FILE)?),
        None => Ok(None),
    }
}

fn gather(mut gate: Gate, project: &Project, store: &Store) -> Result<(Report, Heads), Failure> {
    let shallow = store.shallow()?;
    let completeness = || shallow.as_ref().map_or(Completeness::Whole, Completeness::Shallow);
    for (run, commit) in store.anchors()? {
        match commit {
            Ok(commit) => {
                let name = anchor_ref(&run);
                gate.anchor((&name, &run, commit), completeness(), |id, limit| store.object(id, limit))?;
            }
            Err(error) => {
                out::say(&error.to_string());
                gate.unreadable(&run);
            }
        }
    }
    for (name, run, commit) in store.asides()? {
        gate.aside((&name, &run, commit), completeness(), |id, limit| store.object(id, limit))?;
    }
    match KeyFile::of_environment().read() {
        Ok(Some(key)) => gate.session().key(key),
        Ok(None) => {}
        Err(error) => out::say(&format!("the HMAC key is not used: {error}")),
    }
    feed_gate(&mut gate, project.root())?;
    Ok(gate.finish())
}

fn update(root: &Path, report: &mut Report, heads: &Heads) -> Result<(), Failure> {
    if report.verdict.exit_code() != 0 {
        report.summary = format!("{HEADS} was not written: {}", report.summary);
        return Ok(());
    }
    let path = root.join(HEADS);
    durable::refuse_links(root, &path)?;
    if let Some(folder) = path.parent() {
        let failed = |source| durable::Error::new("can't make the folder", folder, source);
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let bytes = heads.to_json();
    if base::read_file(&path)?.as_deref() != Some(&bytes) {
        durable::replace(&path, |file| std::io::Write::write_all(file, &bytes))?;
    }
    let runs = counted(heads.0.len(), "run");
    report.summary = format!("{HEADS} names {runs}; {}", report.summary);
    Ok(())
}

/// What is to be said, and where: what goes to standard output comes last.
fn outputs(global: &Global, args: &Args) -> Result<Vec<Output>, Failure> {
    let default = match global.form() {
        out::Form::Json => Some(Form::Json),
        out::Form::Text => Some(Form::Text),
        out::Form::Quiet => None,
    };
    let (mut outputs, shown): (Vec<_>, Vec<_>) =
        args.format.iter().cloned().partition(|output| output.file.is_some());
    match shown.as_slice() {
        [] => outputs.extend(default.map(|form| Output { form, file: None })),
        [one] if global.form() != out::Form::Json || one.form == Form::Json => outputs.extend(shown),
        _ => return Err(Failure::usage("one form can go to standard output: give the others a file, =FILE")),
    }
    Ok(outputs)
}

fn put(global: &Global, outputs: &[Output], report: &Report) -> Result<(), Failure> {
    for Output { form, file } in outputs {
        let bytes = match form {
            Form::Text => text::of(report).into_bytes(),
            Form::Json => report.to_json(),
            Form::Github => gate::github_log(report).into_bytes(),
            Form::Gitlab => gate::codequality(report),
            Form::Junit => gate::junit(report).into_bytes(),
            Form::Sarif => gate::sarif(report, env!("CARGO_PKG_VERSION")),
            Form::Markdown => gate::markdown(report).into_bytes(),
        };
        match file {
            None => super::put(&bytes)?,
            Some(path) => {
                fs::write(path, bytes).map_err(|source| durable::Error::new("can't write", path, source))?
            }
        }
    }
    if global.form() == out::Form::Quiet && report.verdict.exit_code() != 0 {
        out::say(&format!("{}: {}", report.verdict.name(), report.summary));
    }
    Ok(())
}
