//! The temporary folders in which fetches hold what a remote sent, and what is left of them when
//! a fetch is killed.
//!
//! Each is `waybill-fetch-<random>` in the folder for temporary files, with a lock in it that its
//! process holds to its end: the kernel frees it on any death.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::Error;
use crate::durable;
use crate::lock::{Lock, LockError, Wait};

const PREFIX: &str = "waybill-fetch-";
const LOCK: &str = "waybill.lock";

/// A younger folder may be one whose lock is not taken yet.
const YOUNG: Duration = Duration::from_secs(60);

/// Makes a folder, and takes its lock.
pub(super) fn make() -> Result<(TempDir, Lock), Error> {
    let folder = tempfile::Builder::new()
        .prefix(PREFIX)
        .tempdir()
        .map_err(|source| durable::Error::new("can't make a folder in", &std::env::temp_dir(), source))?;
    let path = folder.path().join(LOCK);
    match Lock::take(&path, Wait::No, |_| {}) {
        Ok(lock) => Ok((folder, lock)),
        Err(LockError::File(error)) => Err(error.into()),
        Err(LockError::Held { path, .. }) => {
            let source = std::io::Error::from(std::io::ErrorKind::WouldBlock);
            Err(durable::Error::new("can't lock", &path, source).into())
        }
    }
}

/// Removes the folders of this user whose process is dead, if they are older than a minute. What
/// can't be removed stays for the next time, and stops nobody.
pub(super) fn sweep(temporary: &Path, now: SystemTime) {
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX)) {
            remove_if_dead(&entry.path(), now);
        }
    }
}

fn remove_if_dead(folder: &Path, now: SystemTime) {
    let Ok(found) = fs::symlink_metadata(folder) else { return };
    let age = found.modified().ok().and_then(|made| now.duration_since(made).ok());
    let own = found.is_dir() && found.uid() == nix::unistd::geteuid().as_raw();
    if !own || age.is_none_or(|age| age < YOUNG) {
        return;
    }
    let lock = folder.join(LOCK);
    if fs::symlink_metadata(&lock).is_ok_and(|lock| lock.is_file()) {
        // Taken, not asked for: nobody else can then be in it, nor remove it.
        if let Ok(_lock) = Lock::take(&lock, Wait::No, |_| {}) {
            // Links in it are removed, not followed.
            drop(fs::remove_dir_all(folder));
        }
    } else {
        // Killed before its lock was made, it is empty; anything else is not ours to judge.
        drop(fs::remove_dir(folder));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn only_old_folders_of_the_dead_are_removed_and_no_link_is_followed() {
        let temporary = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let folder = temporary.path().join(name);
            fs::create_dir(&folder).unwrap();
            folder
        };
        let locked = |name: &str| {
            let folder = make(name);
            let lock = Lock::take(&folder.join(LOCK), Wait::No, |_| {}).unwrap();
            (folder, lock)
        };
        let (live, held) = locked("waybill-fetch-live");
        let (dead, lock) = locked("waybill-fetch-dead");
        drop(lock);
        let (other, lock) = locked("another-fetch");
        drop(lock);
        let empty = make("waybill-fetch-empty");
        let unlocked = make("waybill-fetch-unlocked");
        fs::write(unlocked.join("kept"), "").unwrap();
        let target = make("target");
        fs::write(target.join(LOCK), "").unwrap();
        let link = temporary.path().join("waybill-fetch-link");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        std::os::unix::fs::symlink(&target, dead.join("inner")).unwrap();
        let linked_lock = make("waybill-fetch-linked-lock");
        std::os::unix::fs::symlink(target.join(LOCK), linked_lock.join(LOCK)).unwrap();

        let all = [&live, &dead, &other, &empty, &unlocked, &link, &linked_lock];
        let there = || all.map(|path| path.symlink_metadata().is_ok());
        sweep(temporary.path(), SystemTime::now());
        assert_eq!(there(), [true; 7], "they are young");
        let later = SystemTime::now() + YOUNG + Duration::from_secs(1);
        sweep(temporary.path(), later);
        assert_eq!(there(), [true, false, true, false, true, true, true]);
        assert!(target.join(LOCK).exists());
        drop(held);
        sweep(temporary.path(), later);
        assert!(!live.exists());
    }
}
