//! The runs that are known on this machine: a folder each below the user's data folder.
//!
//! ```text
//! <data>/runs/<run>/            0700; made whole under another name, then renamed
//!   record.json                 what runs, where, its standing; only who holds `lock` writes it
//!   lock                        held by the supervisor for as long as it lives
//!   attempts.json               {"attempts":n}: how often a boot has continued it
//!   resume-point.json           {"entries":n,"head":"…"}: what a resume goes on from
//!   intent.json                 {"intent":"stop",…}: written before the signal that carries it out
//!   questions.json              what the run asked, and what was answered
//!   liveness.json               last signs of life, by worker; not synced
//!   console.log, console.log.1  what it printed, scrubbed, up to a bound
//! <data>/boot.lock              held by a sweep
//! ```
//!
//! All files are JSON, owner-only, and replaced whole. A file that others can read or write, a
//! link, or a file that is not what it should be is never believed.

pub mod address;
pub mod files;
pub mod record;

use std::fmt;
use std::fs::{self, DirBuilder};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use waybill_verifier::id::RunId;
use waybill_verifier::json::{self, Object, Value};

use crate::durable::{self, open_regular};
use crate::lock::{Lock, LockError, Wait};
pub use files::{Attempts, Intent, Intention, Question, Questions, ResumePoint};
pub use record::{Record, Status};

/// No file here is longer.
const MAX_FILE: u64 = 4 << 20;

/// Why the registry can't be used.
#[derive(Debug)]
pub enum Error {
    /// There is no folder for it: neither a home nor a setting.
    NoFolder,
    /// No record of this run.
    Absent(String),
    /// A record of this name is there already.
    Taken(RunId),
    /// A file is not what it should be.
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The run is supervised by somebody else now.
    Lock(LockError),
    /// A file.
    File(durable::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoFolder => {
                f.write_str("there is no folder for this user's records: set --data-dir or WAYBILL_DATA_DIR")
            }
            Error::Absent(run) => {
                write!(f, "no run {run} is recorded on this machine: 'waybill jobs list' lists them")
            }
            Error::Taken(run) => write!(
                f,
                "run {run} is recorded already: give another --id, or go on with it ('waybill jobs resume \
                 {run}', 'waybill run --resume {run} -- CMD')"
            ),
            Error::Damaged { path, reason } => write!(f, "{} is damaged: {reason}", path.display()),
            Error::Lock(error) => error.fmt(f),
            Error::File(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::File(error) => error.source(),
            Error::Lock(error) => error.source(),
            _ => None,
        }
    }
}

impl From<durable::Error> for Error {
    fn from(error: durable::Error) -> Error {
        Error::File(error)
    }
}

impl From<LockError> for Error {
    fn from(error: LockError) -> Error {
        Error::Lock(error)
    }
}

/// The user's own records.
#[derive(Clone, Debug)]
pub struct Registry {
    folder: PathBuf,
}

/// What is in the runs' folder.
#[derive(Clone, Debug)]
pub enum Entry {
    /// A run whose record can be read.
    Run(Box<Record>),
    /// A folder whose record can't be believed; it is kept.
    Damaged {
        /// Its name.
        name: String,
        /// What is wrong.
        reason: String,
    },
}

impl Registry {
    /// The registry in `data_dir`, else `$WAYBILL_DATA_DIR`, else `waybill` in the XDG state folder.
    ///
    /// # Errors
    ///
    /// If none of them, nor a home, is set.
    pub fn of_environment(data_dir: Option<&Path>) -> Result<Registry, Error> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let folder = data_dir
            .map(Path::to_owned)
            .or_else(|| variable("WAYBILL_DATA_DIR").map(PathBuf::from))
            .or_else(|| Some(absolute("XDG_STATE_HOME")?.join("waybill")))
            .or_else(|| Some(absolute("HOME")?.join(".local/state/waybill")))
            .ok_or(Error::NoFolder)?;
        let folder = std::path::absolute(&folder)
            .map_err(|source| durable::Error::new("can't use", &folder, source))?;
        Ok(Registry { folder })
    }

    /// Its folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder of the runs.
    #[must_use]
    pub fn runs(&self) -> PathBuf {
        self.folder.join("runs")
    }

    /// The sweep's lock.
    #[must_use]
    pub fn sweep_lock(&self) -> PathBuf {
        self.folder.join("boot.lock")
    }

    /// A run's folder, which need not be there.
    #[must_use]
    pub fn run(&self, run: &RunId) -> RunFolder {
        RunFolder { path: self.runs().join(run.as_str()) }
    }

    /// Makes the folders that are missing.
    ///
    /// # Errors
    ///
    /// If one can't be made, is a link, or is open to others.
    pub fn prepare(&self) -> Result<(), Error> {
        // What lies above the data folder is the user's own arrangement, links too.
        let above = self.folder.ancestors().skip(1).find(|path| path.is_dir()).unwrap_or(Path::new("/"));
        let runs = self.runs();
        durable::create_private_folders(above, &runs)?;
        let mode = fs::symlink_metadata(&runs)
            .map_err(|source| durable::Error::new("can't read", &runs, source))?
            .permissions()
            .mode();
        if mode & 0o077 != 0 {
            let reason = String::from("others can reach it; 'chmod 700' mends that");
            return Err(Error::Damaged { path: runs, reason });
        }
        Ok(())
    }

    /// All that is there, sorted by name.
    ///
    /// # Errors
    ///
    /// If the folder is there and can't be listed.
    pub fn list(&self) -> Result<Vec<Entry>, Error> {
        let runs = self.runs();
        durable::refuse_links(&self.folder, &runs)?;
        let entries = match fs::read_dir(&runs) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(durable::Error::new("can't list", &runs, source).into()),
        };
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        let shown = names.into_iter().filter(|name| !name.as_encoded_bytes().starts_with(b"."));
        Ok(shown
            .map(|name| {
                let text = name.to_string_lossy().into_owned();
                let read = match name.to_str().map(RunId::new) {
                    Some(Ok(run)) => self.run(&run).record().map_err(|error| error.to_string()),
                    _ => Err(String::from("its name is no run's")),
                };
                match read {
                    Ok(record) => Entry::Run(Box::new(record)),
                    Err(reason) => Entry::Damaged { name: text, reason },
                }
            })
            .collect())
    }

    /// The records that can be read.
    ///
    /// # Errors
    ///
    /// As [`Registry::list`].
    pub fn records(&self) -> Result<Vec<Record>, Error> {
        let entries = self.list()?.into_iter();
        Ok(entries
            .filter_map(|entry| match entry {
                Entry::Run(record) => Some(*record),
                Entry::Damaged { .. } => None,
            })
            .collect())
    }

    /// Makes a run's folder, whole or not at all, and gives it with its lock held.
    ///
    /// # Errors
    ///
    /// If the name is taken or a file can't be written.
    pub fn create(&self, record: &Record) -> Result<(RunFolder, Lock), Error> {
        self.prepare()?;
        let to = self.run(&record.run);
        let made = self.runs().join(format!(".new-{}-{}", record.run, std::process::id()));
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::File(durable::Error::new("can't make the folder", &path, source))
        };
        DirBuilder::new().mode(0o700).create(&made).map_err(failed(&made))?;
        let new = RunFolder { path: made.clone() };
        let filled = new.lock().and_then(|lock| {
            new.write_record(record)?;
            new.write_attempts(0)?;
            Ok(lock)
        });
        let renamed = filled.and_then(|lock| match fs::rename(&made, &to.path) {
            Ok(()) => Ok(lock),
            Err(_) if to.path.symlink_metadata().is_ok() => Err(Error::Taken(record.run.clone())),
            Err(source) => Err(failed(&to.path)(source)),
        });
        match renamed {
            Ok(lock) => {
                durable::sync_folder(&self.runs())?;
                Ok((to, lock))
            }
            Err(error) => {
                drop(fs::remove_dir_all(&made));
                Err(error)
            }
        }
    }
}

/// A run's folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file in it.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Takes the lock that says that the run is supervised.
    ///
    /// # Errors
    ///
    /// If somebody has it, or the file can't be used.
    pub fn lock(&self) -> Result<Lock, Error> {
        Ok(Lock::take(&self.file("lock"), Wait::No, |_| ())?)
    }

    /// Whether the run is supervised now; asking does not disturb it.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        Lock::is_held(&self.file("lock"))
    }

    /// The record.
    ///
    /// # Errors
    ///
    /// If it is not there or can't be believed.
    pub fn record(&self) -> Result<Record, Error> {
        let name = self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let path = self.file("record.json");
        match self.read("record.json")? {
            Some(document) => Record::from_document(&document, name)
                .map_err(|reason| Error::Damaged { path: path.clone(), reason }),
            None if self.path.symlink_metadata().is_ok() => {
                Err(Error::Damaged { path, reason: String::from("it is gone, and its folder is there") })
            }
            None => Err(Error::Absent(name.to_owned())),
        }
    }

    /// Replaces the record. Only who holds the lock does.
    ///
    /// # Errors
    ///
    /// If it can't be written.
    pub fn write_record(&self, record: &Record) -> Result<(), Error> {
        self.write("record.json", record.to_document())
    }

    /// Reads a file of this folder: a regular one, of this user alone. None if it is not there.
    fn read(&self, name: &str) -> Result<Option<Object>, Error> {
        let path = self.file(name);
        let damaged = |reason: &str| Error::Damaged { path: path.clone(), reason: reason.to_owned() };
        match fs::symlink_metadata(&self.path) {
            Ok(folder) if folder.file_type().is_symlink() => {
                return Err(damaged("its folder is a link, and links are not followed"));
            }
            Ok(folder) if !folder.is_dir() => return Err(damaged("its folder is a file")),
            _ => {}
        }
        match fs::symlink_metadata(&path) {
            Ok(found) if found.file_type().is_symlink() => {
                return Err(damaged("it is a link, and links are not followed"));
            }
            _ => {}
        }
        let file = match open_regular(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let unreadable = |source| durable::Error::new("can't read", &path, source);
        let metadata = file.metadata().map_err(unreadable)?;
        if metadata.permissions().mode() & 0o077 != 0 || metadata.uid() != nix::unistd::getuid().as_raw() {
            return Err(damaged("others can reach it, so what it says is not believed"));
        }
        let mut bytes = Vec::new();
        file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        match json::parse(&bytes) {
            Ok(Value::Object(object)) => Ok(Some(object)),
            Ok(_) => Err(damaged("it is no JSON object")),
            Err(error) => Err(damaged(&error.to_string())),
        }
    }

    fn write(&self, name: &str, object: Object) -> Result<(), Error> {
        let mut text = json::ascii_indented(&Value::from(object));
        text.push(b'\n');
        Ok(durable::replace(&self.file(name), |file| file.write_all(&text))?)
    }

    fn remove(&self, name: &str) -> Result<(), Error> {
        match durable::remove(&self.file(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }
}
