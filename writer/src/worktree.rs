//! Snapshots of the working tree, and worktrees from them, through the user's own `git`.
//!
//! A snapshot is a commit of all that is not ignored, under
//! `refs/bernstein/snapshots/<run>/<step>`; `.sdd` stays out of it, since it holds keys. It is
//! made in an index of its own: the user's index, HEAD and files are not touched. Names and dates
//! are fixed, so the same tree on the same HEAD is the same commit.
//!
//! Arguments go to git as a vector, never through a shell; hooks are not run.

use std::ffi::OsStr;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use waybill_verifier::id::RunId;

/// Why git did not do it.
#[derive(Debug)]
pub enum Error {
    /// It could not be started.
    NoGit(std::io::Error),
    /// The folder is in no repository's working tree.
    NoWorktree(PathBuf),
    /// The repository has no commit yet.
    NoCommit,
    /// It said no.
    Git {
        /// The command's name.
        command: String,
        /// What it said last.
        said: String,
    },
    /// The snapshot ref of the step names another commit already.
    Taken {
        /// The ref.
        reference: String,
        /// The commit that it names.
        commit: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoGit(_) => f.write_str("can't start git: install it, or put it on the PATH"),
            Error::NoWorktree(folder) => {
                write!(f, "{} is in no git working tree: 'git init' makes one", folder.display())
            }
            Error::NoCommit => {
                f.write_str("the repository has no commit yet, and a snapshot goes on from one: commit once")
            }
            Error::Git { command, said } => write!(f, "git {command} failed: {said}"),
            Error::Taken { reference, commit } => write!(
                f,
                "{reference} is {commit} already, and the working tree is another now: give another --step"
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::NoGit(error) => Some(error),
            _ => None,
        }
    }
}

/// A repository's working tree, as git finds it from a folder.
#[derive(Clone, Debug)]
pub struct Worktree {
    top: PathBuf,
}

/// What variables could make git look elsewhere.
const LOCAL: [&str; 15] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CEILING_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// All of `.sdd`, wherever in the tree it stands.
const RECORDS: &str = ":(top,glob)**/.sdd/**";
const NO_RECORDS: &str = ":(top,exclude,glob)**/.sdd/**";

impl Worktree {
    /// The working tree that a folder is in, if it is in one.
    ///
    /// # Errors
    ///
    /// If git can't be started.
    pub fn find(folder: &Path) -> Result<Option<Worktree>, Error> {
        match run(folder, &[], ["rev-parse", "--show-toplevel"]) {
            Ok(top) if !top.is_empty() => Ok(Some(Worktree { top: PathBuf::from(top) })),
            Ok(_) | Err(Error::Git { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// As [`Worktree::find`], where there must be one.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn at(folder: &Path) -> Result<Worktree, Error> {
        Worktree::find(folder)?.ok_or_else(|| Error::NoWorktree(folder.to_owned()))
    }

    /// Its top folder.
    #[must_use]
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// The file in which this clone alone excludes paths from commits.
    ///
    /// # Errors
    ///
    /// If git does not say.
    pub fn exclude_file(&self) -> Result<PathBuf, Error> {
        Ok(self.top.join(self.git(["rev-parse", "--git-path", "info/exclude"])?))
    }

    /// Commits the working tree as it is now; gives the commit, which no ref names yet.
    ///
    /// # Errors
    ///
    /// If there is no commit to go on from, or git can't.
    pub fn commit(&self, run: &RunId, step: u64) -> Result<String, Error> {
        let head = self
            .git(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
            .map_err(|error| if matches!(error, Error::Git { .. }) { Error::NoCommit } else { error })?;
        let folder = tempfile::Builder::new().prefix("waybill-index-").tempdir().map_err(Error::NoGit)?;
        let index = folder.path().join("index");
        let with_index = [(OsStr::new("GIT_INDEX_FILE"), index.as_os_str())];
        let git = |arguments: &[&str]| self::run(&self.top, &with_index, arguments);
        git(&["read-tree", "HEAD"])?;
        git(&["add", "--all", "--", ":(top)", NO_RECORDS])?;
        git(&["rm", "-r", "--quiet", "--cached", "--ignore-unmatch", "--", RECORDS])?;
        let tree = git(&["write-tree"])?;
        let mut fixed = vec![];
        for who in ["AUTHOR", "COMMITTER"] {
            for (what, value) in [
                ("NAME", "bernstein-snapshot"),
                ("EMAIL", "snapshot@bernstein.local"),
                ("DATE", "946684800 +0000"),
            ] {
                fixed.push((format!("GIT_{who}_{what}"), value));
            }
        }
        let fixed: Vec<_> =
            fixed.iter().map(|(name, value)| (OsStr::new(name.as_str()), OsStr::new(*value))).collect();
        let message = format!("bernstein snapshot run={run} step={step}\n");
        let mut command = command(&self.top, &fixed);
        command.args(["-c", "i18n.commitEncoding=utf-8", "commit-tree", &tree, "-p", &head]);
        finish(command, "commit-tree", message.as_bytes())
    }

    /// The commit that the snapshot ref of a step names, if there is one.
    ///
    /// # Errors
    ///
    /// If git can't be asked.
    pub fn snapshot(&self, run: &RunId, step: u64) -> Result<Option<String>, Error> {
        let reference = reference(run, step);
        let said = self.git(["for-each-ref", "--format=%(objectname)", &reference])?;
        Ok(said.lines().next().map(str::to_owned))
    }

    /// Whether any record of a run is kept in this repository's refs: whether it is theirs.
    ///
    /// # Errors
    ///
    /// If git can't be asked.
    pub fn has_records(&self) -> Result<bool, Error> {
        Ok(!self.git(["for-each-ref", "--count=1", "--format=%(refname)", "refs/bernstein/"])?.is_empty())
    }

    /// Points the snapshot ref of a step to a commit; one that names another is only replaced
    /// where the caller knows that no event names it.
    ///
    /// # Errors
    ///
    /// If it names another commit, or git can't.
    pub fn keep(&self, run: &RunId, step: u64, commit: &str, replaced: Option<&str>) -> Result<(), Error> {
        // The empty old value: there must be no such ref, whatever hash the repository uses.
        const NONE: &str = "";
        let reference = reference(run, step);
        let updated =
            self.git(["update-ref", "--no-deref", &reference, commit, replaced.unwrap_or(NONE)]).map(drop);
        match (updated, self.snapshot(run, step)?) {
            (_, Some(there)) if there == commit => Ok(()),
            (Err(Error::Git { .. }), Some(there)) => Err(Error::Taken { reference, commit: there }),
            (other, _) => other,
        }
    }

    /// Checks a commit out into a new folder, with a detached HEAD.
    ///
    /// # Errors
    ///
    /// If git can't.
    pub fn add(&self, folder: &Path, commit: &str) -> Result<(), Error> {
        let arguments: [&OsStr; 6] = [
            OsStr::new("worktree"),
            OsStr::new("add"),
            OsStr::new("--detach"),
            OsStr::new("--quiet"),
            folder.as_os_str(),
            OsStr::new(commit),
        ];
        self.git(arguments).map(drop)
    }

    /// Whether git tracks a path.
    ///
    /// # Errors
    ///
    /// If git can't be asked.
    pub fn tracks(&self, path: &Path) -> Result<bool, Error> {
        let arguments: [&OsStr; 3] = [OsStr::new("ls-files"), OsStr::new("--"), path.as_os_str()];
        Ok(!self.git(arguments)?.is_empty())
    }

    fn git<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Result<String, Error> {
        self::run(&self.top, &[], arguments)
    }
}

/// The snapshot ref of a step.
#[must_use]
pub fn reference(run: &RunId, step: u64) -> String {
    format!("refs/bernstein/snapshots/{run}/{step}")
}

fn command(folder: &Path, variables: &[(&OsStr, &OsStr)]) -> Command {
    let mut command = Command::new("git");
    for name in LOCAL {
        command.env_remove(name);
    }
    command.current_dir(folder).env("LC_ALL", "C").env("GIT_OPTIONAL_LOCKS", "0").arg("--no-replace-objects");
    for setting in [
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "core.fsync=all",
        "core.fsyncMethod=fsync",
        "gc.auto=0",
    ] {
        command.args(["-c", setting]);
    }
    command.envs(variables.iter().copied());
    command
}

fn run<S: AsRef<OsStr>>(
    folder: &Path,
    variables: &[(&OsStr, &OsStr)],
    arguments: impl IntoIterator<Item = S>,
) -> Result<String, Error> {
    let mut command = command(folder, variables);
    let mut arguments = arguments.into_iter().peekable();
    let name = arguments.peek().map(|name| name.as_ref().to_string_lossy().into_owned());
    command.args(arguments);
    finish(command, &name.unwrap_or_default(), b"")
}

fn finish(mut command: Command, name: &str, input: &[u8]) -> Result<String, Error> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Error::NoGit)?;
    if let Some(mut stdin) = child.stdin.take() {
        // Git may end without reading it; then it says why.
        drop(stdin.write_all(input));
    }
    let output = child.wait_with_output().map_err(Error::NoGit)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it gave no reason");
    Err(Error::Git { command: name.to_owned(), said: said.trim().to_owned() })
}
