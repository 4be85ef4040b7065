//! The user's own trust file: whose receipts they believe, since when, until when.
//!
//! `$XDG_CONFIG_HOME/waybill/trust.toml`, else `~/.config/waybill/trust.toml`:
//!
//! ```toml
//! [[signer]]
//! name = "ann"
//! key = "SHA256:4jSePaNlWcgFv0ZhR4yuHnNcsUSKgmQRTA1Gj2DCn2M"
//! valid_from = "2026-01-01T00:00:00Z"
//! valid_until = "2026-12-31T23:59:59Z"
//! ```
//! A signer is a key under a name; `valid_from`, `valid_until` (both inclusive) and `revoked` may
//! be left out, no other field is known. Several may name one key: if any of them revokes it, it
//! is revoked, whatever a receipt says of its time. So trusting and revoking only ever add to the
//! file, and what a person wrote in it stays.

use std::fmt;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use waybill_verifier::key::Fingerprint;
use waybill_verifier::receipt::{Pin, Trust, TrustEntry};

use crate::durable;
use crate::owner::{self, Loose, Others};

/// A longer file is not read.
const MAX_FILE: u64 = 4 << 20;

/// Why there is nobody to trust.
#[derive(Debug)]
pub enum Error {
    /// No variable says where the file is.
    NoPlace,
    /// Others than its owner can change it.
    Loose(Loose),
    /// It is no trust file.
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file.
    File(durable::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoPlace => {
                f.write_str("neither XDG_CONFIG_HOME nor HOME says where the trust file is: set one of them")
            }
            Error::Loose(error) => error.fmt(f),
            Error::Malformed { path, why } => write!(f, "the trust file {}: {why}", path.display()),
            Error::File(error) => error.fmt(f),
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

impl From<Loose> for Error {
    fn from(error: Loose) -> Error {
        Error::Loose(error)
    }
}

/// Where the trust file is, or would be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TrustFile(Option<PathBuf>);

/// What to add to a trust file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewEntry {
    /// What the user calls them: no control characters.
    pub name: String,
    /// Their key.
    pub key: Fingerprint,
    /// From when on it counts, as `2026-01-01T00:00:00Z`.
    pub valid_from: Option<String>,
    /// The last second in which it counts, likewise.
    pub valid_until: Option<String>,
    /// Whether it no longer counts.
    pub revoked: bool,
}

impl TrustFile {
    /// Where this process's environment says.
    #[must_use]
    pub fn of_environment() -> TrustFile {
        let set =
            |name| std::env::var_os(name).map(PathBuf::from).filter(|value| !value.as_os_str().is_empty());
        let config = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")));
        TrustFile(config.map(|config| config.join("waybill/trust.toml")))
    }

    /// The file, if any variable says where it is.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.as_deref()
    }

    /// What the file says: nothing, if there is none.
    ///
    /// # Errors
    ///
    /// If it can't be read, others can change it, or it is no trust file.
    pub fn read(&self) -> Result<Trust, Error> {
        Ok(match self.entries()? {
            None => Trust::Unpinned,
            Some(entries) => Trust::Store(entries),
        })
    }

    /// Its entries in their order; none if there is no file.
    ///
    /// # Errors
    ///
    /// As [`TrustFile::read`].
    pub fn entries(&self) -> Result<Option<Vec<TrustEntry>>, Error> {
        let Some(path) = self.path() else { return Ok(None) };
        Ok(match read(path)? {
            None => None,
            Some(text) => Some(parse(&text).map_err(|why| Error::Malformed { path: path.to_owned(), why })?),
        })
    }

    /// Adds an entry, and gives the file's path.
    ///
    /// # Errors
    ///
    /// If the file that is there is none, or it can't be written.
    pub fn add(&self, entry: &NewEntry) -> Result<PathBuf, Error> {
        let path = self.path().ok_or(Error::NoPlace)?;
        self.entries()?;
        let mut text = read(path)?.unwrap_or_default();
        if !text.is_empty() {
            text.push_str(if text.ends_with('\n') { "\n" } else { "\n\n" });
        }
        text.push_str(&entry.text());
        parse(&text).map_err(|why| Error::Malformed { path: path.to_owned(), why })?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|source| durable::Error::new("can't make the folder", folder, source))?;
        }
        durable::replace(path, |file| file.write_all(text.as_bytes()))?;
        Ok(path.to_owned())
    }
}

impl NewEntry {
    /// Whether an entry that is there says the same.
    #[must_use]
    pub fn states(&self, entry: &TrustEntry) -> bool {
        let seconds = |time: &Option<String>| time.as_deref().and_then(time_of);
        entry.name == self.name
            && entry.key.fingerprint() == self.key
            && entry.valid_from == seconds(&self.valid_from)
            && entry.valid_until == seconds(&self.valid_until)
            && entry.revoked == self.revoked
    }

    fn text(&self) -> String {
        let mut text = format!("[[signer]]\nname = {}\nkey = \"{}\"\n", quoted(&self.name), self.key);
        for (name, time) in [("valid_from", &self.valid_from), ("valid_until", &self.valid_until)] {
            if let Some(time) = time {
                text.push_str(&format!("{name} = {}\n", quoted(time)));
            }
        }
        if self.revoked {
            text.push_str("revoked = true\n");
        }
        text
    }
}

/// A TOML string of a text without control characters.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn read(path: &Path) -> Result<Option<String>, Error> {
    let Some(file) = durable::open_if_there(path)? else { return Ok(None) };
    owner::refuse_loose::<Error>("the trust file", (path, &file), Others::Change)?;
    let mut text = String::new();
    file.take(MAX_FILE)
        .read_to_string(&mut text)
        .map_err(|source| durable::Error::new("can't read", path, source))?;
    Ok(Some(text))
}

fn parse(text: &str) -> Result<Vec<TrustEntry>, String> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let at = error.span().map_or(0, |span| span.start);
        let line = 1 + text.bytes().take(at).filter(|&byte| byte == b'\n').count();
        format!("line {line}: {}", error.message().lines().next().unwrap_or_default())
    })?;
    let mut entries = Vec::new();
    for (name, value) in table {
        let signers = value.as_array().filter(|_| name == "signer");
        for signer in
            signers.ok_or_else(|| format!("`{name}` is not known: it has [[signer]] tables only"))?
        {
            entries.push(entry(signer).map_err(|why| format!("signer {}: {why}", entries.len() + 1))?);
        }
    }
    Ok(entries)
}

fn entry(signer: &toml::Value) -> Result<TrustEntry, String> {
    let table = signer.as_table().ok_or("is no table")?;
    const FIELDS: [&str; 5] = ["key", "name", "revoked", "valid_from", "valid_until"];
    if let Some(name) = table.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        return Err(format!("`{name}` is not known; there are {}", FIELDS.join(", ")));
    }
    let text = |name: &str| match table.get(name) {
        None => Ok(None),
        Some(toml::Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("`{name}` is not a string")),
    };
    let time =
        |name: &str| text(name)?.map(|time| time_of(&time).ok_or_else(|| wrong_time(name))).transpose();
    let key = text("key")?.ok_or("`key` is missing")?;
    Ok(TrustEntry {
        name: text("name")?.ok_or("`name` is missing")?,
        key: Pin::Fingerprint(key.parse().map_err(|error| format!("`key`: {error}"))?),
        valid_from: time("valid_from")?,
        valid_until: time("valid_until")?,
        revoked: match table.get("revoked") {
            None => false,
            Some(toml::Value::Boolean(revoked)) => *revoked,
            Some(_) => return Err(String::from("`revoked` is not true or false")),
        },
    })
}

fn wrong_time(name: &str) -> String {
    format!("`{name}` is not a time as \"2026-01-01T00:00:00Z\"")
}

/// Seconds since 1970 of a time as `2026-01-01T00:00:00Z`.
fn time_of(text: &str) -> Option<u64> {
    let time: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(time.as_second()).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const KEY: &str = "SHA256:4jSePaNlWcgFv0ZhR4yuHnNcsUSKgmQRTA1Gj2DCn2M";

    #[test]
    fn what_was_added_is_read_back_and_comments_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("waybill/trust.toml");
        let file = TrustFile(Some(path.clone()));
        assert_eq!(file.read().unwrap(), Trust::Unpinned);
        let mut entry = NewEntry {
            name: String::from("ann \"\\ é😀"),
            key: KEY.parse().unwrap(),
            valid_from: Some(String::from("2026-01-01T00:00:00Z")),
            valid_until: None,
            revoked: false,
        };
        file.add(&entry).unwrap();
        std::fs::write(&path, format!("# mine\n{}", std::fs::read_to_string(&path).unwrap())).unwrap();
        entry.revoked = true;
        file.add(&entry).unwrap();
        let entries = file.entries().unwrap().unwrap();
        assert_eq!(entries.len(), 2);
        assert_eq!((entries[0].name.as_str(), entries[0].valid_from), (&*entry.name, Some(1_767_225_600)));
        assert!(!entries[0].revoked && entries[1].revoked);
        assert!(std::fs::read_to_string(&path).unwrap().starts_with("# mine\n"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o664)).unwrap();
        assert!(file.read().unwrap_err().to_string().contains("chmod go-w"));
    }

    #[test]
    fn what_is_no_trust_file_is_refused_with_its_place() {
        for (text, words) in [
            ("x = 1\n", "`x` is not known"),
            ("[[signer]]\nname = \"a\"\n", "signer 1: `key` is missing"),
            (&format!("[[signer]]\nname = \"a\"\nkey = \"{KEY}\"\nnote = \"\"\n"), "`note` is not known"),
            (&format!("[[signer]]\nname = \"a\"\nkey = \"{KEY}\"\nvalid_from = \"soon\"\n"), "`valid_from`"),
            (&format!("[[signer]]\nname = \"a\"\nkey = \"{KEY}\"\nrevoked = \"no\"\n"), "true or false"),
            ("[[signer]]\nname = \"a\"\nkey = \"SHA256:x\"\n", "43 base64"),
            ("[[signer]]\nname = \n", "line 2"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        assert_eq!(parse("").unwrap(), []);
    }
}
