//! Where a run listens: a folder of this user alone, gone after a reboot.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use waybill_verifier::hash::Digest;
use waybill_verifier::id::RunId;

use crate::durable;
use crate::registry::Registry;

/// Makes the runtime folder of a run: `waybill/<hash>` below `$XDG_RUNTIME_DIR`, else below
/// `/tmp/waybill-<uid>`. Its name is short: a socket's address has at most 107 bytes.
///
/// # Errors
///
/// If it can't be made, or somebody else's folder or a link stands there.
pub fn folder(registry: &Registry, run: &RunId) -> Result<PathBuf, durable::Error> {
    let name = format!("{}\0{run}", registry.folder().display());
    let name = &Digest::of(name.as_bytes()).to_hex()[..16];
    let uid = nix::unistd::getuid().as_raw();
    let given = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let fits = |path: &PathBuf| path.is_absolute() && path.as_os_str().len() <= 60 && is_own(path, uid);
    let base = match given.filter(fits) {
        Some(path) => path.join("waybill"),
        None => std::env::temp_dir().join(format!("waybill-{uid}")),
    };
    let base = if base.as_os_str().len() <= 70 { base } else { PathBuf::from(format!("/tmp/waybill-{uid}")) };
    private(&base, uid)?;
    let folder = base.join(name);
    private(&folder, uid)?;
    Ok(folder)
}

/// Makes a folder, or checks that the one that is there is this user's alone.
fn private(path: &Path, uid: u32) -> Result<(), durable::Error> {
    let failed = |source| durable::Error::new("can't use the folder", path, source);
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    if is_own(path, uid) {
        return Ok(());
    }
    let reason = "it is a link, somebody else's, or open to others";
    Err(failed(std::io::Error::new(std::io::ErrorKind::PermissionDenied, reason)))
}

fn is_own(path: &Path, uid: u32) -> bool {
    fs::symlink_metadata(path)
        .is_ok_and(|found| found.is_dir() && found.uid() == uid && found.permissions().mode() & 0o077 == 0)
}

/// Removes a run's runtime folder with what is known to be in it.
pub fn remove(folder: &Path) {
    for name in ["s", "x", "state.json"] {
        drop(fs::remove_file(folder.join(name)));
    }
    drop(fs::remove_dir(folder));
}
