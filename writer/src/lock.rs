//! One writer at a time: a lock that the kernel frees on any death.
//!
//! The lock is an open-file-description lock (`F_OFD_SETLK`) on a file that is never replaced.
//! Asking whether it is held (`F_OFD_GETLK`) does not take it, so readers disturb nobody. The
//! file's text names its holder to whoever waits; it is a note, not the lock.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, Flock, FlockArg, OFlag, fcntl};
use nix::libc;
use waybill_verifier::chain::LastLine;

use crate::durable::Error;

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Whether to wait for a lock that another holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Until it is free.
    Yes,
    /// Not at all.
    No,
}

/// Why a lock was not taken.
#[derive(Debug)]
pub enum LockError {
    /// Somebody else holds it.
    Held {
        /// The lock's file.
        path: PathBuf,
        /// What the holder wrote of itself.
        holder: String,
    },
    /// The file can't be used.
    File(Error),
}

impl std::fmt::Display for LockError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LockError::Held { path, holder } => write!(f, "{} is held by {holder}", path.display()),
            LockError::File(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LockError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LockError::Held { .. } => None,
            LockError::File(error) => error.source(),
        }
    }
}

impl Lock {
    /// Takes the lock; `waiting` is told the holder before a wait begins.
    ///
    /// # Errors
    ///
    /// If it is held and not to be waited for, or the file can't be used.
    pub fn take(path: &Path, wait: Wait, waiting: impl FnOnce(&str)) -> Result<Lock, LockError> {
        let failed = |source: io::Error| LockError::File(Error::new("can't lock", path, source));
        let mut file = open(path).map_err(failed)?;
        match fcntl(&file, FcntlArg::F_OFD_SETLK(&whole_file(libc::F_WRLCK))) {
            Ok(_) => {}
            Err(Errno::EAGAIN | Errno::EACCES) => {
                let holder = holder(&mut file);
                if wait == Wait::No {
                    return Err(LockError::Held { path: path.to_owned(), holder });
                }
                waiting(&holder);
                fcntl(&file, FcntlArg::F_OFD_SETLKW(&whole_file(libc::F_WRLCK)))
                    .map_err(|errno| failed(errno.into()))?;
            }
            Err(errno) => return Err(failed(errno.into())),
        }
        // The note is for people; that it can't be written (a full disk) stops nobody.
        drop(note(&mut file));
        Ok(Lock { _file: file })
    }

    /// Whether somebody holds the lock. Never takes it; a file that can't be read is not held.
    #[must_use]
    pub fn is_held(path: &Path) -> bool {
        let Ok(file) = crate::durable::open_regular(path) else { return false };
        let mut probe = whole_file(libc::F_WRLCK);
        match fcntl(&file, FcntlArg::F_OFD_GETLK(&mut probe)) {
            Ok(_) => i32::from(probe.l_type) != libc::F_UNLCK,
            Err(_) => false,
        }
    }

    /// What the last line of what it guards is, for who reads without it.
    #[must_use]
    pub fn last_line(path: &Path) -> LastLine {
        if Lock::is_held(path) { LastLine::InFlight } else { LastLine::Settled }
    }

    /// What the holder of a lock wrote of itself.
    #[must_use]
    pub fn holder_of(path: &Path) -> Option<String> {
        let mut file = crate::durable::open_regular(path).ok()?;
        Self::is_held(path).then(|| holder(&mut file))
    }
}

/// A lock by `flock`, on a file that other programs lock the same way: the audit log's and the
/// spine's. Nothing is written into the file.
#[derive(Debug)]
pub struct FileLock {
    _file: Flock<File>,
}

impl FileLock {
    /// Takes the lock; `waiting` is called before a wait begins.
    ///
    /// # Errors
    ///
    /// If it is held and not to be waited for, or the file can't be used.
    pub fn take(path: &Path, wait: Wait, waiting: impl FnOnce()) -> Result<FileLock, LockError> {
        let failed = |source: io::Error| LockError::File(Error::new("can't lock", path, source));
        let file = open(path).map_err(failed)?;
        let file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(file) => file,
            Err((file, Errno::EAGAIN)) => {
                if wait == Wait::No {
                    let holder = String::from("another process");
                    return Err(LockError::Held { path: path.to_owned(), holder });
                }
                waiting();
                Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, errno)| failed(errno.into()))?
            }
            Err((_, errno)) => return Err(failed(errno.into())),
        };
        Ok(FileLock { _file: file })
    }

    /// Whether somebody holds the lock. `flock` can't be asked without being taken: it is taken
    /// shared, and let go at once, which makes nobody fail who waits.
    #[must_use]
    pub fn is_held(path: &Path) -> bool {
        let Ok(file) = crate::durable::open_regular(path) else { return false };
        matches!(Flock::lock(file, FlockArg::LockSharedNonblock), Err((_, Errno::EAGAIN)))
    }

    /// What the last line of what it guards is, for who reads without it.
    #[must_use]
    pub fn last_line(path: &Path) -> LastLine {
        if FileLock::is_held(path) { LastLine::InFlight } else { LastLine::Settled }
    }
}

/// The lock's file, made if it is missing.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlag::O_NOFOLLOW.bits())
        .open(path)
}

fn whole_file(kind: i32) -> libc::flock {
    libc::flock {
        l_type: i16::try_from(kind).unwrap_or_default(),
        l_whence: i16::try_from(libc::SEEK_SET).unwrap_or_default(),
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

fn note(file: &mut File) -> io::Result<()> {
    let program = std::env::args().take(3).collect::<Vec<_>>().join(" ");
    file.set_len(0)?;
    file.rewind()?;
    write!(file, "pid {} ({program})", std::process::id())
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.take(200).read_to_string(&mut text));
    match read {
        Ok(1..) => text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect(),
        _ => String::from("a process that left no note"),
    }
}
