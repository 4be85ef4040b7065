//! The master key that tags audit rows and spine rows: where it is, reading it, making it.
//!
//! It is the text of a file: `$BERNSTEIN_AUDIT_KEY_PATH`, else
//! `$XDG_STATE_HOME/bernstein/audit.key`, else `~/.local/state/bernstein/audit.key`; a variable
//! that is set and empty counts as unset. The file is for its owner alone, and refused otherwise.
//!
//! It is made (64 hex digits from the operating system's randomness, 0600 in a 0700 folder) only
//! by who records, and never where rows are tagged already: a second key would only hide that the
//! first is lost.

use std::fmt;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use waybill_verifier::tag::{MasterKey, ShortKey};
use zeroize::Zeroizing;

use crate::durable::{self, open_regular};
use crate::owner::{self, Loose};

/// The variable that names the key's file.
pub const VARIABLE: &str = "BERNSTEIN_AUDIT_KEY_PATH";

/// Where the master key is, or would be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyFile(Option<PathBuf>);

/// Why there is no key to use.
#[derive(Debug)]
pub enum Error {
    /// No variable says where it is.
    NoPlace,
    /// Others than its owner can use the file.
    Loose(Loose),
    /// The file holds too little.
    Short {
        /// The file.
        path: PathBuf,
        /// How little.
        source: ShortKey,
    },
    /// There is none, and rows were tagged with one.
    Lost(PathBuf),
    /// The operating system gave no randomness.
    NoRandomness,
    /// A file.
    File(durable::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoPlace => write!(
                f,
                "neither {VARIABLE}, XDG_STATE_HOME nor HOME says where the HMAC key is: set one of them"
            ),
            Error::Loose(error) => error.fmt(f),
            Error::Short { path, .. } => {
                write!(f, "{} is no HMAC key; put the right file there", path.display())
            }
            Error::Lost(path) => write!(
                f,
                "rows here are tagged, and their HMAC key is not at {}: put it back, or name its file in \
                 {VARIABLE}; no second key is made",
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
            Error::Short { source, .. } => Some(source),
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

/// A key that was found or made.
#[derive(Debug)]
pub struct Found {
    /// The key.
    pub key: MasterKey,
    /// Its file, if it was made just now: whoever made it should be told.
    pub made: Option<PathBuf>,
}

/// Whether rows are tagged where a key is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tagged {
    /// There are: with the key that is wanted, which must not be replaced.
    Rows,
    /// There are none.
    Nothing,
}

impl KeyFile {
    /// Where this process's environment says.
    #[must_use]
    pub fn of_environment() -> KeyFile {
        KeyFile::named_by(|name| std::env::var_os(name).map(PathBuf::from))
    }

    /// Where variables say.
    #[must_use]
    pub fn named_by(variable: impl Fn(&str) -> Option<PathBuf>) -> KeyFile {
        let set = |name| variable(name).filter(|value| !value.as_os_str().is_empty());
        let path = set(VARIABLE)
            .or_else(|| Some(set("XDG_STATE_HOME")?.join("bernstein/audit.key")))
            .or_else(|| Some(set("HOME")?.join(".local/state/bernstein/audit.key")));
        KeyFile(path)
    }

    /// The file, if any variable says where it is.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.as_deref()
    }

    /// Reads the key; none if there is no file. For who checks: nothing is ever made.
    ///
    /// # Errors
    ///
    /// If the file can't be read, holds no key, or others can use it.
    pub fn read(&self) -> Result<Option<MasterKey>, Error> {
        let Some(path) = self.path() else { return Ok(None) };
        // A link to a key is fine (secrets are mounted so); what it leads to is what counts.
        let real = match fs::canonicalize(path) {
            Ok(real) => real,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(durable::Error::new("can't read", path, source).into()),
        };
        let bytes = owner::read_secret::<Error>("the HMAC key", (path, &open_regular(&real)?))?;
        let key = MasterKey::from_file(&bytes);
        key.map(Some).map_err(|source| Error::Short { path: path.to_owned(), source })
    }

    /// Reads the key, or makes it where nothing is tagged yet. For who records.
    ///
    /// # Errors
    ///
    /// As [`KeyFile::read`]; if it can't be made; or if it is lost.
    pub fn read_or_make(&self, tagged: Tagged) -> Result<Found, Error> {
        if let Some(key) = self.read()? {
            return Ok(Found { key, made: None });
        }
        let path = self.path().ok_or(Error::NoPlace)?;
        if tagged == Tagged::Rows {
            return Err(Error::Lost(path.to_owned()));
        }
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)
                .map_err(|source| durable::Error::new("can't make the folder", folder, source))?;
        }
        let mut seed = Zeroizing::new([0; 32]);
        getrandom::fill(seed.as_mut_slice()).map_err(|_| Error::NoRandomness)?;
        let mut text = Zeroizing::new(Vec::with_capacity(64));
        for byte in seed.iter() {
            for nibble in [byte >> 4, byte & 15] {
                text.push(b"0123456789abcdef"[usize::from(nibble)]);
            }
        }
        match durable::create_whole(path, &text) {
            Ok(()) => {}
            // Another process was first: its key is the one.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                let key = self.read()?.ok_or_else(|| Error::Lost(path.to_owned()))?;
                return Ok(Found { key, made: None });
            }
            Err(error) => return Err(error.into()),
        }
        let key = MasterKey::from_file(&text).expect("64 digits are enough");
        Ok(Found { key, made: Some(path.to_owned()) })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn named(variables: &[(&str, &str)]) -> KeyFile {
        KeyFile::named_by(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| PathBuf::from(value))
        })
    }

    #[test]
    fn a_variable_that_is_empty_counts_as_unset() {
        let home = ("HOME", "/h");
        for (variables, expect) in [
            (vec![(VARIABLE, "/k"), ("XDG_STATE_HOME", "/s"), home], Some("/k")),
            (vec![(VARIABLE, ""), ("XDG_STATE_HOME", "/s"), home], Some("/s/bernstein/audit.key")),
            (vec![("XDG_STATE_HOME", ""), home], Some("/h/.local/state/bernstein/audit.key")),
            (vec![("HOME", "")], None),
        ] {
            assert_eq!(named(&variables).path(), expect.map(Path::new));
        }
        assert!(matches!(named(&[]).read(), Ok(None)));
        assert!(matches!(named(&[]).read_or_make(Tagged::Nothing), Err(Error::NoPlace)));
    }

    #[test]
    fn a_key_is_made_once_for_its_owner_and_never_where_rows_are_tagged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/bernstein/audit.key");
        let place = KeyFile(Some(path.clone()));
        assert!(matches!(place.read_or_make(Tagged::Rows), Err(Error::Lost(_))));
        assert!(place.read().unwrap().is_none() && !path.exists());
        let made = place.read_or_make(Tagged::Nothing).unwrap().made;
        assert_eq!(made.as_deref(), Some(&*path));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let text = fs::read(&path).unwrap();
        assert_eq!(text.len(), 64);
        assert!(place.read_or_make(Tagged::Rows).unwrap().made.is_none());
        assert_eq!(fs::read(&path).unwrap(), text);

        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let error = place.read().unwrap_err().to_string();
        assert!(error.contains("0640") && error.contains("chmod 600"), "{error}");
    }
}
