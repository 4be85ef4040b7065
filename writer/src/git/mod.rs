//! Git repositories: objects and refs through `gix`, the network through the user's own `git`.
//!
//! `gix` syncs nothing, so this module does: objects before a ref names them, the ref before it
//! is told of. Replace refs are ignored, and nothing that is read is trusted: the verifier hashes
//! every object again.

mod files;
pub mod network;
mod quarantine;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

use gix::objs::{Find, FindHeader, Write as _};
use gix::refs::Target;
use gix::refs::transaction::{Change, LogChange, PreviousValue, RefEdit};
use waybill_verifier::anchor::{Found, ObjectId, ObjectKind, REF_PREFIX};
use waybill_verifier::id::RunId;

use crate::durable;
pub(crate) use files::ASIDE;

/// Why a repository could not do what was asked.
#[derive(Debug)]
pub enum Error {
    /// It can't be opened, as SHA-256 and reftable repositories can't.
    Unusable {
        /// Its folder.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A ref's file is empty, as a crash leaves it.
    EmptyRef {
        /// The file.
        path: PathBuf,
        /// The ref.
        name: String,
    },
    /// A ref is not what it was when it was looked at: another process moved it.
    Moved {
        /// The ref.
        name: String,
    },
    /// Something else.
    Failed {
        /// What was tried.
        action: &'static str,
        /// On what.
        what: String,
        /// Why it failed.
        reason: String,
    },
    /// A file.
    File(durable::Error),
    /// The user's `git` did not do it.
    Git {
        /// Which of its commands.
        command: &'static str,
        /// What it said last.
        said: String,
    },
    /// A remote sent more than is taken.
    TooMuch {
        /// The cap, in bytes.
        cap: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unusable { path, reason } => {
                write!(f, "can't use the repository {}: {reason}", path.display())
            }
            Error::EmptyRef { path, name } => write!(
                f,
                "{} is empty, as a crash leaves it: delete that file, and 'waybill ledger anchor' or 'fetch' \
                 makes {name} again",
                path.display()
            ),
            Error::Moved { name } => write!(f, "{name} was moved by another process: try again"),
            Error::Failed { action, what, reason } => write!(f, "{action} {what}: {reason}"),
            Error::File(error) => error.fmt(f),
            Error::Git { command, said } => write!(f, "git {command} failed: {said}"),
            Error::TooMuch { cap } => write!(f, "the remote sent more than {cap} bytes: nothing was taken"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::File(error) => error.source(),
            _ => None,
        }
    }
}

impl From<durable::Error> for Error {
    fn from(error: durable::Error) -> Error {
        Error::File(error)
    }
}

/// A run that has an anchor ref, and the commit that it names or why it can't be read.
pub type Listed = (RunId, Result<ObjectId, Error>);

/// A repository.
pub struct Store {
    repository: gix::Repository,
    /// Objects of a push that is not taken yet.
    incoming: Option<gix::odb::Handle>,
    /// Loose objects that were written and are not synced yet.
    unsynced: RefCell<Vec<PathBuf>>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("git_dir", &self.repository.git_dir()).finish_non_exhaustive()
    }
}

impl Store {
    /// The repository that a folder is in, if it is in one.
    ///
    /// # Errors
    ///
    /// If there is one and it can't be used.
    pub fn discover(folder: &Path) -> Result<Option<Store>, Error> {
        let mut at =
            std::path::absolute(folder).map_err(|source| durable::Error::new("can't use", folder, source))?;
        loop {
            let inside = at.join(".git").exists();
            let bare = at.join("HEAD").is_file() && at.join("objects").is_dir() && at.join("refs").is_dir();
            if inside || bare {
                return Store::open(&at).map(Some);
            }
            if !at.pop() {
                return Ok(None);
            }
        }
    }

    /// Opens the repository at a folder.
    ///
    /// # Errors
    ///
    /// If it can't be used.
    pub fn open(folder: &Path) -> Result<Store, Error> {
        let unusable = |reason: String| Error::Unusable { path: folder.to_owned(), reason };
        let options = gix::open::Options::default().config_overrides(["gitoxide.objects.noReplace=true"]);
        let repository = gix::open_opts(folder, options).map_err(|error| {
            let reason = one_line(&error);
            let format = extension(folder, "objectformat").filter(|format| format != "sha1");
            let refs = extension(folder, "refstorage").filter(|storage| storage != "files");
            match (format, refs) {
                (Some(format), _) => {
                    unusable(format!("its objects are {format}; anchors need a SHA-1 repository"))
                }
                (_, Some(storage)) => {
                    unusable(format!("its refs are stored as {storage}, which is not supported yet"))
                }
                _ => unusable(reason),
            }
        })?;
        for (key, expected) in [("objectformat", "sha1"), ("refstorage", "files")] {
            if let Some(found) = extension(repository.common_dir(), key).filter(|found| found != expected) {
                return Err(unusable(format!("its {key} is {found}; anchors need {expected}")));
            }
        }
        Ok(Store { repository, incoming: None, unsynced: RefCell::default() })
    }

    /// The folder with the repository's objects and refs.
    #[must_use]
    pub fn common_folder(&self) -> &Path {
        self.repository.common_dir()
    }

    /// Whether it has no working folder.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        self.repository.workdir().is_none()
    }

    /// Where the user's `git` is to run for this repository.
    #[must_use]
    pub fn work_folder(&self) -> &Path {
        self.repository.workdir().unwrap_or_else(|| self.repository.git_dir())
    }

    /// What a ref points to; `None` if there is no such ref.
    ///
    /// # Errors
    ///
    /// If it is there and can't be read, or points to no object.
    pub fn reference(&self, name: &str) -> Result<Option<ObjectId>, Error> {
        let failed = |reason| Error::Failed { action: "can't read", what: name.to_owned(), reason };
        match self.repository.try_find_reference(name) {
            Ok(None) => Ok(None),
            Ok(Some(reference)) => match reference.target().try_id() {
                Some(id) => Ok(Some(from_gix(id))),
                None => Err(failed(String::from("it is a symbolic ref, which no anchor is"))),
            },
            Err(error) => {
                let path = self.common_folder().join(name);
                match std::fs::symlink_metadata(&path) {
                    Ok(found) if found.len() == 0 => Err(Error::EmptyRef { path, name: name.to_owned() }),
                    _ => Err(failed(one_line(&error))),
                }
            }
        }
    }

    /// The runs that have an anchor, sorted, with their commits; a ref that can't be read comes
    /// with the reason instead.
    ///
    /// # Errors
    ///
    /// If refs can't be listed at all.
    pub fn anchors(&self) -> Result<Vec<Listed>, Error> {
        let failed = |error: &dyn std::error::Error| Error::Failed {
            action: "can't list",
            what: REF_PREFIX.to_owned(),
            reason: one_line(error),
        };
        let mut runs = BTreeSet::new();
        // Loose refs are listed by their files, so that one that can't be read hides no other.
        let folder = self.common_folder().join(REF_PREFIX);
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let named = entry.file_name().to_str().map(RunId::new);
            if let Some(Ok(run)) = named.filter(|_| entry.file_type().is_ok_and(|kind| kind.is_file())) {
                runs.insert(run);
            }
        }
        if let Some(packed) = self.repository.refs.cached_packed_buffer().map_err(|error| failed(&error))? {
            for reference in
                packed.iter_prefixed(REF_PREFIX.into()).map_err(|error| failed(&error))?.flatten()
            {
                let name = std::str::from_utf8(reference.name.as_bstr()).unwrap_or_default();
                if let Some(Ok(run)) = name.strip_prefix(REF_PREFIX).map(RunId::new) {
                    runs.insert(run);
                }
            }
        }
        let mut anchors = Vec::new();
        for run in runs {
            match self.reference(&anchor_ref(&run)) {
                Ok(Some(commit)) => anchors.push((run, Ok(commit))),
                Ok(None) => {}
                Err(error) => anchors.push((run, Err(error))),
            }
        }
        Ok(anchors)
    }

    /// The same repository, with the objects in another folder as well: where git holds those of
    /// a push (`GIT_OBJECT_DIRECTORY`) until a hook has let it through.
    ///
    /// # Errors
    ///
    /// If the folder can't be read.
    pub fn with_incoming(mut self, folder: &Path) -> Result<Store, Error> {
        self.incoming = Some(objects_at(folder)?);
        Ok(self)
    }

    /// An object of at most `limit` bytes, as the verifier asks for it.
    ///
    /// # Errors
    ///
    /// If the store can't be read.
    pub fn object(&self, id: &ObjectId, limit: usize) -> Result<Found, Error> {
        let found = match (read(&self.repository.objects, id, limit)?, &self.incoming) {
            (Found::Missing, Some(incoming)) => read(incoming, id, limit)?,
            (found, _) => found,
        };
        match found {
            // A `git gc` moves objects from file to file: what was listed a moment ago may be
            // elsewhere by now, so what seems to be missing is looked for without that list.
            Found::Missing => read(&objects_at(&self.common_folder().join("objects"))?, id, limit),
            found => Ok(found),
        }
    }

    /// Whether there is such an object.
    #[must_use]
    pub fn has(&self, id: &ObjectId) -> bool {
        self.repository.has_object(to_gix(id))
    }

    /// Writes an object, if it is not there yet; gives back whether it was written. It is durable
    /// after [`Store::sync_objects`].
    ///
    /// # Errors
    ///
    /// If it can't be written.
    pub fn write(&self, kind: ObjectKind, id: &ObjectId, bytes: &[u8]) -> Result<bool, Error> {
        if self.has(id) {
            return Ok(false);
        }
        // A `git gc` prunes a folder that is empty at the moment, between its making and the
        // object's coming into it: once more, then.
        let mut attempts = 0;
        let written = loop {
            match self.repository.objects.write_buf(kind_to_gix(kind), bytes) {
                Ok(written) => break written,
                Err(error) if attempts == 20 || !one_line(&error).contains("No such file or directory") => {
                    let (action, reason) = ("can't write object", one_line(&error));
                    return Err(Error::Failed { action, what: id.to_hex(), reason });
                }
                Err(_) => attempts += 1,
            }
        };
        debug_assert_eq!(written, to_gix(id));
        let hex = id.to_hex();
        let (folder, name) = hex.split_at(2);
        self.unsynced.borrow_mut().push(self.common_folder().join("objects").join(folder).join(name));
        Ok(true)
    }

    /// Makes all objects durable that were written.
    ///
    /// # Errors
    ///
    /// If one can't be synced.
    pub fn sync_objects(&self) -> Result<(), Error> {
        let paths = std::mem::take(&mut *self.unsynced.borrow_mut());
        if paths.is_empty() {
            return Ok(());
        }
        let objects = self.common_folder().join("objects");
        if paths.len() > 32 {
            // One call for the whole file system beats hundreds of single ones.
            let sync = File::open(&objects).and_then(|folder| Ok(nix::unistd::syncfs(folder)?));
            return Ok(sync.map_err(|source| durable::Error::new("can't sync", &objects, source))?);
        }
        let mut folders = BTreeSet::from([objects]);
        for path in &paths {
            match File::open(path).and_then(|file| file.sync_all()) {
                Ok(()) => {}
                // A `git gc` in between has packed it, and synced the pack.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(source) => return Err(durable::Error::new("can't sync", path, source).into()),
            }
            folders.extend(path.parent().map(Path::to_owned));
        }
        for folder in folders.iter().filter(|folder| folder.exists()) {
            durable::sync_folder(folder)?;
        }
        Ok(())
    }

    /// Points a ref to a commit, if it still points to what it is expected to (`None`: if there
    /// is no such ref), durably.
    ///
    /// # Errors
    ///
    /// [`Error::Moved`] if it does not; or if it can't be written.
    pub fn update(&self, name: &str, expected: Option<&ObjectId>, new: &ObjectId) -> Result<(), Error> {
        let failed = |reason| Error::Failed { action: "can't write", what: name.to_owned(), reason };
        let full: gix::refs::FullName =
            name.try_into().map_err(|_| failed(String::from("it is no valid name of a ref")))?;
        let edit = |full| RefEdit {
            change: Change::Update {
                log: LogChange::default(),
                expected: match expected {
                    Some(id) => PreviousValue::MustExistAndMatch(Target::Object(to_gix(id))),
                    None => PreviousValue::MustNotExist,
                },
                new: Target::Object(to_gix(new)),
            },
            name: full,
            deref: false,
        };
        let committer = gix::actor::SignatureRef {
            name: "bernstein-work-ledger".into(),
            email: "work-ledger@bernstein.invalid".into(),
            time: "0 +0000",
        };
        // Another process may prune the folder just when this one writes into it: once more, then.
        let mut attempts = 0;
        while let Err(error) = self.repository.edit_references_as([edit(full.clone())], Some(committer)) {
            attempts += 1;
            if self.reference(name)?.as_ref() != expected {
                return Err(Error::Moved { name: name.to_owned() });
            }
            if attempts == 20 {
                return Err(failed(one_line(&error)));
            }
            std::thread::sleep(std::time::Duration::from_millis(10 * attempts));
        }
        let path = self.common_folder().join(name);
        let synced = File::open(&path).and_then(|file| file.sync_all());
        match synced {
            Ok(()) => {}
            // `git pack-refs` in between has moved it into packed-refs.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(durable::Error::new("can't sync", &path, source).into()),
        }
        let mut folder = path.parent();
        while let Some(parent) = folder.filter(|folder| folder.starts_with(self.common_folder())) {
            match durable::sync_folder(parent) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
            folder = parent.parent();
        }
        Ok(())
    }

    /// The commits whose parents a shallow clone lacks; `None` in a clone that has all.
    ///
    /// # Errors
    ///
    /// If git's list of them can't be read.
    pub fn shallow(&self) -> Result<Option<BTreeSet<ObjectId>>, Error> {
        let commits = self.repository.shallow_commits().map_err(|error| Error::Failed {
            action: "can't read",
            what: String::from("the list of shallow commits"),
            reason: one_line(&error),
        })?;
        Ok(commits.map(|commits| commits.iter().map(|id| from_gix(id)).collect()))
    }
}

/// A folder of objects, with nothing remembered of what is in it.
fn objects_at(folder: &Path) -> Result<gix::odb::Handle, durable::Error> {
    gix::odb::at(folder, gix::hash::Kind::Sha1)
        .map_err(|source| durable::Error::new("can't read", folder, source))
}

/// An object of at most `limit` bytes of a database.
fn read(objects: &(impl Find + FindHeader), id: &ObjectId, limit: usize) -> Result<Found, Error> {
    let gix_id = to_gix(id);
    let failed = |reason| Error::Failed { action: "can't read object", what: id.to_hex(), reason };
    let header = match objects.try_header(&gix_id) {
        Ok(Some(header)) => header,
        Ok(None) => return Ok(Found::Missing),
        Err(error) => return Err(failed(one_line(&error))),
    };
    if header.size > u64::try_from(limit).unwrap_or(u64::MAX) {
        return Ok(Found::TooLarge);
    }
    let mut bytes = Vec::new();
    let kind = match objects.try_find(&gix_id, &mut bytes) {
        Ok(Some(object)) => object.kind,
        Ok(None) => return Ok(Found::Missing),
        Err(error) => return Err(failed(one_line(&error))),
    };
    Ok(Found::Object(kind_from_gix(kind), bytes))
}

/// The ref that a run's anchors are under.
#[must_use]
pub fn anchor_ref(run: &RunId) -> String {
    format!("{REF_PREFIX}{run}")
}

/// A value of `[extensions]` in a repository's configuration, read without `gix`, which does not
/// open what it does not know.
fn extension(folder: &Path, key: &str) -> Option<String> {
    let config =
        [folder.join(".git/config"), folder.join("config")].into_iter().find(|path| path.is_file())?;
    let text = std::fs::read_to_string(config).ok()?;
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = line.eq_ignore_ascii_case("[extensions]");
        } else if let Some((name, value)) = line.split_once('=').filter(|_| inside)
            && name.trim().eq_ignore_ascii_case(key)
        {
            return Some(value.trim().trim_matches('"').to_ascii_lowercase());
        }
    }
    None
}

fn one_line(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn to_gix(id: &ObjectId) -> gix::ObjectId {
    gix::ObjectId::from_bytes_or_panic(id.as_bytes())
}

fn from_gix(id: &gix::oid) -> ObjectId {
    ObjectId::from_hex(id.to_hex().to_string().as_bytes()).expect("only SHA-1 repositories are opened")
}

fn kind_from_gix(kind: gix::objs::Kind) -> ObjectKind {
    match kind {
        gix::objs::Kind::Blob => ObjectKind::Blob,
        gix::objs::Kind::Tree => ObjectKind::Tree,
        gix::objs::Kind::Commit => ObjectKind::Commit,
        gix::objs::Kind::Tag => ObjectKind::Tag,
    }
}

fn kind_to_gix(kind: ObjectKind) -> gix::objs::Kind {
    match kind {
        ObjectKind::Blob => gix::objs::Kind::Blob,
        ObjectKind::Tree => gix::objs::Kind::Tree,
        ObjectKind::Commit => gix::objs::Kind::Commit,
        ObjectKind::Tag => gix::objs::Kind::Tag,
    }
}
