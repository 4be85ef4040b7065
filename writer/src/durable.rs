//! The only module that writes files: append and sync, atomic replace, folder sync.
//!
//! What is acknowledged is on disk. `fdatasync` covers a file's bytes and length; a new name, a
//! `rename` or a removal is only durable once its folder was synced too. After a failed sync the
//! page cache can't be trusted (the kernel marks the pages clean), so a handle that failed is
//! not used again: see [`AppendFile`].

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, PosixFadviseAdvice, posix_fadvise};

/// A file operation that failed: what was tried, on which path, and the system's reason.
#[derive(Debug)]
pub struct Error {
    /// What was tried, as "can't write".
    pub action: &'static str,
    /// On which path.
    pub path: PathBuf,
    source: io::Error,
}

impl Error {
    pub(crate) fn new(action: &'static str, path: &Path, source: io::Error) -> Error {
        Error { action, path: path.to_owned(), source }
    }

    /// The kind of the system's error.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.action, self.path.display())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Opens a regular file to read: no links followed, no device or pipe waited for.
///
/// # Errors
///
/// If it can't be opened, or is something else than a regular file.
pub fn open_regular(path: &Path) -> Result<File, Error> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path)
        .map_err(|source| Error::new("can't read", path, source))?;
    let kind = file.metadata().map_err(|source| Error::new("can't read", path, source))?.file_type();
    if !kind.is_file() {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
        return Err(Error::new("can't read", path, source));
    }
    Ok(file)
}

/// As [`open_regular`]; none if there is nothing.
///
/// # Errors
///
/// As [`open_regular`].
pub fn open_if_there(path: &Path) -> Result<Option<File>, Error> {
    match open_regular(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Creates the folders on the way to `path` below `root` that are missing, owner-only, each
/// synced into its parent.
///
/// # Errors
///
/// If one can't be made, or a link or a file stands where a folder should.
pub fn create_private_folders(root: &Path, path: &Path) -> Result<(), Error> {
    let below = path.strip_prefix(root).unwrap_or(path);
    let mut folder = root.to_owned();
    for part in below.components() {
        let parent = folder.clone();
        folder.push(part);
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => sync_folder(&parent)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => refuse_link(&folder)?,
            Err(source) => return Err(Error::new("can't make the folder", &folder, source)),
        }
    }
    Ok(())
}

/// Checks that no part of `path` below `root` is a link.
///
/// # Errors
///
/// Names the first that is. A part that does not exist is no error.
pub fn refuse_links(root: &Path, path: &Path) -> Result<(), Error> {
    let below = path.strip_prefix(root).unwrap_or(path);
    let mut folder = root.to_owned();
    for part in below.components() {
        folder.push(part);
        refuse_link(&folder)?;
    }
    Ok(())
}

fn refuse_link(path: &Path) -> Result<(), Error> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_symlink() => {
            let source =
                io::Error::new(io::ErrorKind::InvalidInput, "it is a link, and links are not followed");
            Err(Error::new("can't use", path, source))
        }
        _ => Ok(()),
    }
}

/// Makes names in a folder durable: files that were created, renamed or removed in it.
///
/// # Errors
///
/// If the folder can't be opened or synced.
pub fn sync_folder(folder: &Path) -> Result<(), Error> {
    let sync = |folder: &Path| File::open(folder)?.sync_all();
    sync(folder).map_err(|source| Error::new("can't sync the folder", folder, source))
}

/// Writes a new owner-only file, synced, with its name synced; fails if the name is taken.
///
/// # Errors
///
/// If any step fails; a half-written file is removed again.
pub fn create(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    create_with(path, |file| file.write_all(bytes))
}

/// The same, for what is written in pieces.
///
/// # Errors
///
/// As [`create`].
pub fn create_with(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), Error> {
    let mut file = new_file(path)?;
    let written = write(&mut file).and_then(|()| file.sync_all());
    if let Err(source) = written {
        // Best effort: the error that matters is the first one.
        drop(fs::remove_file(path));
        return Err(Error::new("can't write", path, source));
    }
    sync_folder(folder_of(path))
}

/// Writes a new owner-only file that is there whole or not at all, synced, with its name synced;
/// fails if the name is taken.
///
/// # Errors
///
/// If any step fails; nothing is then left under either name.
pub fn create_whole(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let temporary = temporary(path)?;
    create(&temporary, bytes)?;
    let linked = fs::hard_link(&temporary, path);
    let removed = fs::remove_file(&temporary);
    linked.and(removed).map_err(|source| Error::new("can't create", path, source))?;
    sync_folder(folder_of(path))
}

/// Removes a file, durably.
///
/// # Errors
///
/// If it can't be removed, or its folder not be synced.
pub fn remove(path: &Path) -> Result<(), Error> {
    fs::remove_file(path).map_err(|source| Error::new("can't remove", path, source))?;
    sync_folder(folder_of(path))
}

/// Replaces a file by new bytes: a reader sees the old or the new, also after a power cut.
///
/// # Errors
///
/// If any step fails; the old file then still stands.
pub fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), Error> {
    let temporary = temporary(path)?;
    let mut file = new_file(&temporary)?;
    let replaced =
        write(&mut file).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&temporary, path));
    if let Err(source) = replaced {
        drop(fs::remove_file(&temporary));
        return Err(Error::new("can't write", path, source));
    }
    sync_folder(folder_of(path))
}

/// Replaces a file that is worth nothing after a power cut: a reader sees the old or the new, and
/// nothing is synced.
///
/// # Errors
///
/// If any step fails; the old file then still stands.
pub fn replace_lightly(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let temporary = temporary(path)?;
    let replaced = new_file(&temporary)?.write_all(bytes).and_then(|()| fs::rename(&temporary, path));
    replaced.map_err(|source| {
        drop(fs::remove_file(&temporary));
        Error::new("can't write", path, source)
    })
}

/// Gives a file another name in its folder, durably; the name must be free.
///
/// # Errors
///
/// If it can't be renamed or the folder can't be synced.
pub fn rename(path: &Path, to: &Path) -> Result<(), Error> {
    fs::rename(path, to).map_err(|source| Error::new("can't rename", path, source))?;
    sync_folder(folder_of(path))
}

/// A name of this process's own beside a file, and free: what stands there is left over from a
/// process that had the same number and died.
fn temporary(path: &Path) -> Result<PathBuf, Error> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".new-{}", std::process::id()));
    let temporary = path.with_file_name(name);
    match fs::remove_file(&temporary) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(Error::new("can't remove", &temporary, source))
        }
        _ => Ok(temporary),
    }
}

fn new_file(path: &Path) -> Result<File, Error> {
    OpenOptions::new()
        .read(true)
        .append(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(OFlag::O_NOFOLLOW.bits())
        .open(path)
        .map_err(|source| Error::new("can't create", path, source))
}

pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A file that only grows, by whole records, and of which the durable length is known.
///
/// A record that could not be written or synced is taken back: the file is cut to the length
/// before it and synced again, so that a retry neither reuses nor skips a number. The handle
/// refuses everything from then on: open the file again, which re-reads it.
#[derive(Debug)]
pub struct AppendFile {
    file: File,
    path: PathBuf,
    length: u64,
    failed: bool,
}

/// Reads a part of a file, whatever else reads it.
#[derive(Debug)]
pub struct From<'a> {
    file: &'a File,
    at: u64,
    end: u64,
}

impl<'a> From<'a> {
    /// The same, but not beyond an offset.
    #[must_use]
    pub fn to(self, end: u64) -> From<'a> {
        From { end: end.min(self.end), ..self }
    }
}

impl io::Read for From<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let length = bytes.len().min(left);
        let count = self.file.read_at(&mut bytes[..length], self.at)?;
        self.at += u64::try_from(count).unwrap_or(0);
        Ok(count)
    }
}

/// Whether and when an append waits for the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sync {
    /// Data and length are on disk before the call returns.
    Data,
    /// The kernel has it: it survives the process, not a power cut.
    None,
}

impl AppendFile {
    /// Opens a regular file to read and append; creates it owner-only, and its name durably.
    ///
    /// # Errors
    ///
    /// If it can't be opened or created, or is a link or no regular file.
    pub fn open(path: &Path) -> Result<AppendFile, Error> {
        let opened = OpenOptions::new()
            .read(true)
            .append(true)
            .custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits())
            .open(path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let file = new_file(path)?;
                sync_folder(folder_of(path))?;
                file
            }
            Err(source) => return Err(Error::new("can't open", path, source)),
        };
        let metadata = file.metadata().map_err(|source| Error::new("can't open", path, source))?;
        if !metadata.is_file() {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
            return Err(Error::new("can't open", path, source));
        }
        // Whatever an earlier failed sync left in the page cache is dropped where it can be, so
        // that what is read is what is stored.
        let _advice_only = posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
        Ok(AppendFile { file, path: path.to_owned(), length: metadata.len(), failed: false })
    }

    /// The open file, to read from.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// How many bytes the file has, as far as this handle wrote or found it.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Whether the last line is complete; an empty file has none that is not.
    ///
    /// # Errors
    ///
    /// If the file can't be read.
    pub fn ends_with_newline(&self) -> Result<bool, Error> {
        let Some(last) = self.length.checked_sub(1) else { return Ok(true) };
        let mut byte = [0];
        self.file
            .read_exact_at(&mut byte, last)
            .map_err(|source| Error::new("can't read", &self.path, source))?;
        Ok(byte == *b"\n")
    }

    /// A reader of the bytes from an offset to the end.
    #[must_use]
    pub fn from(&self, offset: u64) -> From<'_> {
        From { file: &self.file, at: offset, end: self.length }
    }

    /// Appends records in one write.
    ///
    /// # Errors
    ///
    /// If it can't be written or synced, or the file is not as this handle left it. Nothing of
    /// `records` is then in the file, unless the error says that it could not be taken back.
    pub fn append(&mut self, records: &[u8], sync: Sync) -> Result<(), Error> {
        let failed = |source| Error::new("can't write", &self.path, source);
        if self.failed {
            return Err(failed(io::Error::other("an earlier write failed; open it again")));
        }
        let found = self.file.metadata().map_err(failed)?.len();
        if found != self.length {
            let reason = format!("it has {found} bytes, not {}: another program writes to it", self.length);
            return Err(failed(io::Error::other(reason)));
        }
        let mut file = &self.file;
        let written = file.write_all(records).and_then(|()| match sync {
            Sync::Data => self.file.sync_data(),
            Sync::None => Ok(()),
        });
        match written {
            Ok(()) => {
                self.length += u64::try_from(records.len()).unwrap_or(u64::MAX);
                Ok(())
            }
            Err(source) => {
                self.failed = true;
                let taken_back = self.file.set_len(self.length).and_then(|()| self.file.sync_all());
                let source = match taken_back {
                    Ok(()) => source,
                    Err(second) => io::Error::new(
                        source.kind(),
                        format!("{source}; and what was written of it could not be taken back: {second}"),
                    ),
                };
                Err(Error::new("can't write", &self.path, source))
            }
        }
    }

    /// Cuts the file, durably.
    ///
    /// # Errors
    ///
    /// If it can't be cut or synced.
    pub fn truncate(&mut self, length: u64) -> Result<(), Error> {
        let cut = self.file.set_len(length).and_then(|()| self.file.sync_all());
        cut.map_err(|source| Error::new("can't cut", &self.path, source))?;
        self.length = length;
        Ok(())
    }
}
