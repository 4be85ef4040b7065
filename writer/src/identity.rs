//! The signing identity of a project: an Ed25519 key pair in `.sdd/identity`.
//!
//! `escalation-identity-key.pem` (PKCS#8, 0600) and `escalation-identity-public.pem` (SPKI). Keys
//! that OpenSSL made are as good. Nothing here replaces a private key: what it signed could then
//! no longer be told from what somebody else signed.

use std::fmt;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use waybill_verifier::key::{KeyError, PrivateKey, PublicKey};
use zeroize::Zeroizing;

use crate::durable::{self, open_regular};
use crate::owner::{self, Loose, MAX_KEY};
use crate::project::Project;

/// The private key's file.
pub const PRIVATE: &str = "escalation-identity-key.pem";
/// The public key's file.
pub const PUBLIC: &str = "escalation-identity-public.pem";

/// Why there is no identity to use.
#[derive(Debug)]
pub enum Error {
    /// Others than its owner can use the private key.
    Loose(Loose),
    /// A file holds no such key.
    Key {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        source: KeyError,
    },
    /// The public key is there and the private one is not.
    Lost {
        /// Where it should be.
        private: PathBuf,
        /// What is there.
        public: PathBuf,
    },
    /// The public key beside the private one is another's.
    Differ(PathBuf),
    /// The operating system gave no randomness.
    NoRandomness,
    /// A file.
    File(durable::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Loose(error) => error.fmt(f),
            Error::Key { path, .. } => write!(f, "{} is not the key that it should be", path.display()),
            Error::Lost { private, public } => write!(
                f,
                "the private key {} is missing: put it back, or move {} away to begin as another signer",
                private.display(),
                public.display()
            ),
            Error::Differ(path) => write!(
                f,
                "{} is not the public key of the private key beside it: move the wrong one of the two away",
                path.display()
            ),
            Error::NoRandomness => f.write_str("the operating system gave no randomness for a key"),
            Error::File(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Key { source, .. } => Some(source),
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

impl From<Loose> for Error {
    fn from(error: Loose) -> Error {
        Error::Loose(error)
    }
}

/// Whether an identity was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Init {
    /// It was made now.
    Made,
    /// It was there.
    There,
}

/// Makes the identity, or completes one whose public key is missing. An identity that is there is
/// left as it is.
///
/// # Errors
///
/// If a key that is there can't be used, or a file can't be written.
pub fn init(project: &Project) -> Result<(PublicKey, Init), Error> {
    let folder = project.identity();
    durable::create_private_folders(project.root(), &folder)?;
    // Git commits nothing in this folder, in whatever repository it comes to stand.
    match durable::create(&folder.join(".gitignore"), b"*\n") {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error.into()),
    }
    if let Some(key) = private(project)? {
        complete(project, &key)?;
        return Ok((key.public(), Init::There));
    }
    let (path, public) = (folder.join(PRIVATE), folder.join(PUBLIC));
    if public.exists() {
        return Err(Error::Lost { private: path, public });
    }
    let mut seed = Zeroizing::new([0; 32]);
    getrandom::fill(seed.as_mut_slice()).map_err(|_| Error::NoRandomness)?;
    let key = PrivateKey::from_seed(&seed);
    match durable::create_whole(&path, key.to_pem().as_bytes()) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let there = private(project)?.map(|key| key.public());
            return there.map(|key| (key, Init::There)).ok_or_else(|| error.into());
        }
        Err(error) => return Err(error.into()),
    }
    write_public(&public, &key.public())?;
    Ok((key.public(), Init::Made))
}

/// Writes the public key's file, if it is missing.
///
/// # Errors
///
/// If it can't be written.
pub fn complete(project: &Project, key: &PrivateKey) -> Result<(), durable::Error> {
    let path = project.identity().join(PUBLIC);
    if path.symlink_metadata().is_ok() { Ok(()) } else { write_public(&path, &key.public()) }
}

/// The private key, if there is one, for who signs.
///
/// # Errors
///
/// If others can use it, it can't be read, or the public key beside it is another's.
pub fn private(project: &Project) -> Result<Option<PrivateKey>, Error> {
    let folder = project.identity();
    durable::refuse_links(project.root(), &folder)?;
    let path = folder.join(PRIVATE);
    let Some(file) = durable::open_if_there(&path)? else { return Ok(None) };
    let bytes = owner::read_secret::<Error>("the private key", (&path, &file))?;
    let key = PrivateKey::from_file(&bytes).map_err(|source| Error::Key { path: path.clone(), source })?;
    let beside = folder.join(PUBLIC);
    match public(project)? {
        Some(public) if public != key.public() => Err(Error::Differ(beside)),
        _ => Ok(Some(key)),
    }
}

/// The public key, if there is one.
///
/// # Errors
///
/// If it can't be read, or is no such key.
pub fn public(project: &Project) -> Result<Option<PublicKey>, Error> {
    let path = project.identity().join(PUBLIC);
    match public_bytes(project)? {
        None => Ok(None),
        Some(bytes) => PublicKey::from_file(&bytes).map(Some).map_err(|source| Error::Key { path, source }),
    }
}

/// The bytes of the public key's file, if there is one.
///
/// # Errors
///
/// If it can't be read.
pub fn public_bytes(project: &Project) -> Result<Option<Vec<u8>>, durable::Error> {
    durable::refuse_links(project.root(), &project.identity())?;
    match read_key_file(&project.identity().join(PUBLIC)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads a public key's file.
///
/// # Errors
///
/// If it can't be read.
pub fn read_key_file(path: &Path) -> Result<Vec<u8>, durable::Error> {
    let mut bytes = Vec::new();
    open_regular(path)?
        .take(MAX_KEY)
        .read_to_end(&mut bytes)
        .map_err(|source| durable::Error::new("can't read", path, source))?;
    Ok(bytes)
}

fn write_public(path: &Path, key: &PublicKey) -> Result<(), durable::Error> {
    match durable::create(path, key.to_pem().as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        other => other?,
    }
    // It is public: who verifies may be somebody else.
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))
        .map_err(|source| durable::Error::new("can't set the mode of", path, source))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn an_identity_is_made_once_completed_and_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path());
        assert!(private(&project).unwrap().is_none());
        let (key, made) = init(&project).unwrap();
        assert_eq!(made, Init::Made);
        let (path, public) = (project.identity().join(PRIVATE), project.identity().join(PUBLIC));
        let bytes = fs::read(&path).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&public), bytes.len()), (0o600, 0o644, 119));

        fs::remove_file(&public).unwrap();
        assert_eq!(init(&project).unwrap(), (key, Init::There));
        assert!(public.exists());
        assert_eq!(fs::read(&path).unwrap(), bytes);

        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(init(&project).unwrap_err().to_string().contains("chmod 600"));
        fs::remove_file(&path).unwrap();
        assert!(matches!(init(&project), Err(Error::Lost { .. })));
        assert!(!path.exists());
    }

    #[test]
    fn a_public_key_of_another_is_refused() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for folder in [&one, &other] {
            init(&Project::at(folder.path())).unwrap();
        }
        let public = Project::at(one.path()).identity().join(PUBLIC);
        fs::copy(Project::at(other.path()).identity().join(PUBLIC), public).unwrap();
        assert!(matches!(private(&Project::at(one.path())), Err(Error::Differ(_))));
    }
}
