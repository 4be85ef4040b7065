//! The network, through the user's own `git`: credentials, proxies and SSH just work.
//!
//! What a remote sends lands in a temporary bare repository and stays there until it is verified.
//! The repository's own configuration (remotes, `url.*.insteadOf`, `http.*`, credential helpers)
//! is included there, so that a remote means the same. Arguments are passed as a vector, never
//! through a shell, and a remote's name can't be an option.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use waybill_verifier::anchor::{ObjectId, REF_PREFIX};
use waybill_verifier::id::RunId;

use super::quarantine;
use super::{Error, Store, anchor_ref};
use crate::durable;
use crate::lock::Lock;

/// How many bytes a fetch may bring: 2 GiB.
pub const FETCH_CAP: u64 = 2 << 30;

/// A remote's anchor of a run, fetched and not yet trusted.
#[derive(Debug)]
pub struct Quarantine {
    /// The temporary repository that has it.
    pub store: Store,
    /// The commit that the remote's ref named.
    pub commit: ObjectId,
    _lock: Lock,
    _folder: TempDir,
}

/// The commits that a remote's anchor refs point to now, by run.
///
/// # Errors
///
/// If git can't ask the remote.
pub fn remote_anchors(store: &Store, remote: &str) -> Result<Vec<(RunId, ObjectId)>, Error> {
    list(store, remote, &format!("{REF_PREFIX}*"))
}

/// The commit that a remote's anchor ref of a run points to now.
///
/// # Errors
///
/// If git can't ask the remote.
pub fn remote_anchor(store: &Store, remote: &str, run: &RunId) -> Result<Option<ObjectId>, Error> {
    Ok(list(store, remote, &anchor_ref(run))?.pop().map(|(_, commit)| commit))
}

fn list(store: &Store, remote: &str, pattern: &str) -> Result<Vec<(RunId, ObjectId)>, Error> {
    let mut command = git(store.work_folder());
    command.args(["ls-remote", "--refs", "--"]).arg(named(remote)?).arg(pattern);
    let output = run_git("ls-remote", &mut command)?;
    let mut anchors = Vec::new();
    for line in output.lines() {
        let Some((id, name)) = line.split_once('\t') else { continue };
        let run = name.strip_prefix(REF_PREFIX).map(RunId::new);
        if let (Some(id), Some(Ok(run))) = (ObjectId::from_hex(id.as_bytes()), run) {
            anchors.push((run, id));
        }
    }
    Ok(anchors)
}

/// Fetches a remote's anchor of a run into a temporary repository; `None` if it has none.
///
/// # Errors
///
/// If git can't fetch it, or it is more than [`FETCH_CAP`].
pub fn fetch(store: &Store, remote: &str, run: &RunId) -> Result<Option<Quarantine>, Error> {
    let name = named(remote)?;
    if remote_anchor(store, remote, run)?.is_none() {
        return Ok(None);
    }
    quarantine::sweep(&std::env::temp_dir(), SystemTime::now());
    let (folder, lock) = quarantine::make()?;
    let mut command = git(folder.path());
    run_git("init", command.args(["init", "--quiet", "--bare", "--template=", "."]))?;
    let reference = anchor_ref(run);
    let own = std::path::absolute(store.common_folder().join("config"))
        .map_err(|source| durable::Error::new("can't use", store.common_folder(), source))?;
    let mut command = git(store.work_folder());
    command.arg("--git-dir").arg(folder.path());
    if own.is_file() {
        let mut include = std::ffi::OsString::from("include.path=");
        include.push(&own);
        command.arg("-c").arg(include);
    }
    for setting in ["core.bare=true", "gc.auto=0", "maintenance.auto=false"] {
        command.args(["-c", setting]);
    }
    command
        .args([
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-filter",
            "--no-recurse-submodules",
            "--no-write-fetch-head",
        ])
        .args(["--refmap=", "--"])
        .arg(name)
        .arg(format!("+{reference}:{reference}"));
    run_capped("fetch", &mut command, folder.path())?;
    let quarantined = Store::open(folder.path())?;
    match quarantined.reference(&reference)? {
        Some(commit) => Ok(Some(Quarantine { store: quarantined, commit, _lock: lock, _folder: folder })),
        None => Ok(None),
    }
}

/// Pushes a commit to a remote's anchor ref, if that still points to `expected` (`None`: if there
/// is no such ref).
///
/// # Errors
///
/// If git can't push it, or the remote's ref was moved in between.
pub fn push(
    store: &Store,
    remote: &str,
    run: &RunId,
    expected: Option<&ObjectId>,
    commit: &ObjectId,
) -> Result<(), Error> {
    let reference = anchor_ref(run);
    let expected = expected.map(ObjectId::to_hex).unwrap_or_default();
    let mut command = git(store.work_folder());
    command
        .args(["push", "--porcelain", "--no-follow-tags", "--recurse-submodules=no"])
        .arg(format!("--force-with-lease={reference}:{expected}"))
        .arg("--")
        .arg(named(remote)?)
        .arg(format!("{commit}:{reference}"));
    run_git("push", &mut command).map(drop)
}

/// Replaces a remote's lineage that was set aside here: it goes to `aside` there, in the same
/// push.
///
/// # Errors
///
/// As [`push`]; then neither is done.
pub fn push_settled(
    store: &Store,
    remote: &str,
    run: &RunId,
    aside: &str,
    theirs: &ObjectId,
    ours: &ObjectId,
) -> Result<(), Error> {
    let reference = anchor_ref(run);
    let mut command = git(store.work_folder());
    command
        .args(["push", "--porcelain", "--atomic", "--no-follow-tags", "--recurse-submodules=no"])
        .arg(format!("--force-with-lease={reference}:{theirs}"))
        .arg("--")
        .arg(named(remote)?)
        .arg(format!("{theirs}:{aside}"))
        .arg(format!("+{ours}:{reference}"));
    run_git("push", &mut command).map(drop)
}

/// A remote's name or address, which must not be taken for an option or a command.
fn named(remote: &str) -> Result<&str, Error> {
    if remote.is_empty()
        || remote.starts_with('-')
        || remote.starts_with("ext::")
        || remote.contains(['\n', '\0'])
    {
        let what = remote.escape_debug().to_string();
        return Err(Error::Failed {
            action: "can't use remote",
            what,
            reason: String::from("it is no remote"),
        });
    }
    Ok(remote)
}

/// `git` in a folder, without what a surrounding git command may have put in the environment.
fn git(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(folder).stdin(Stdio::null()).env("LC_ALL", "C");
    for variable in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_NAMESPACE",
        "GIT_PREFIX",
        "GIT_QUARANTINE_PATH",
        "GIT_SHALLOW_FILE",
    ] {
        command.env_remove(variable);
    }
    command
}

fn run_git(name: &'static str, command: &mut Command) -> Result<String, Error> {
    let output = command.output().map_err(|error| not_run(name, &error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Err(Error::Git { command: name, said: last_words(&said) })
}

/// Runs a command that writes into a folder, and ends it if the folder grows beyond the cap.
fn run_capped(name: &'static str, command: &mut Command, folder: &Path) -> Result<(), Error> {
    let errors = tempfile::tempfile().map_err(|error| not_run(name, &error))?;
    let duplicate = errors.try_clone().map_err(|error| not_run(name, &error))?;
    let mut child =
        command.stdout(Stdio::null()).stderr(duplicate).spawn().map_err(|error| not_run(name, &error))?;
    loop {
        match child.try_wait().map_err(|error| not_run(name, &error))? {
            Some(status) if status.success() => return Ok(()),
            Some(_) => {
                let mut said = String::new();
                let mut errors = errors;
                let read = std::io::Seek::rewind(&mut errors)
                    .and_then(|()| std::io::Read::read_to_string(&mut errors, &mut said));
                drop(read);
                return Err(Error::Git { command: name, said: last_words(&said) });
            }
            None if bytes_in(folder) > FETCH_CAP => {
                // It may have ended by itself meanwhile.
                drop(child.kill());
                drop(child.wait());
                return Err(Error::TooMuch { cap: FETCH_CAP });
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

fn bytes_in(folder: &Path) -> u64 {
    let mut total = 0;
    let mut folders = vec![folder.join("objects/pack")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            total += entry.metadata().map_or(0, |metadata| metadata.len());
        }
    }
    total
}

fn not_run(command: &'static str, error: &std::io::Error) -> Error {
    let reason = match error.kind() {
        std::io::ErrorKind::NotFound => String::from("git is not installed"),
        _ => error.to_string(),
    };
    Error::Git { command, said: reason }
}

/// What git said of why, in one line.
fn last_words(said: &str) -> String {
    let meant = |line: &&str| ["fatal:", "error:", "!", "remote:"].iter().any(|lead| line.starts_with(lead));
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let chosen = lines.iter().copied().find(meant).or_else(|| lines.last().copied());
    chosen.unwrap_or("it said nothing").split_whitespace().collect::<Vec<_>>().join(" ")
}
