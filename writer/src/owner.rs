//! Files that are for their owner alone: keys, and whom the owner trusts.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::durable;

/// Longer files are no keys: 64 KiB.
pub(crate) const MAX_KEY: u64 = 64 << 10;

/// What others than its owner must not be able to do with a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Others {
    /// Anything.
    Use,
    /// Change it; they may read it.
    Change,
}

/// Others than its owner can use or change a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loose {
    what: &'static str,
    path: PathBuf,
    mode: u32,
    others: Others,
}

impl fmt::Display for Loose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Loose { what, path, mode, others } = self;
        let path = path.display();
        let (can, mend) = match others {
            Others::Use => ("use", "chmod 600"),
            Others::Change => ("change", "chmod go-w"),
        };
        write!(f, "{what} {path} has mode {mode:04o}, others than its owner can {can} it: {mend} {path}")
    }
}

/// Refuses a file whose mode lets others do that; `path` is what messages call it.
pub(crate) fn refuse_loose<E: From<Loose> + From<durable::Error>>(
    what: &'static str,
    (path, file): (&Path, &File),
    others: Others,
) -> Result<(), E> {
    let metadata = file.metadata().map_err(|source| durable::Error::new("can't read", path, source))?;
    let mode = metadata.permissions().mode() & 0o7777;
    let refused = match others {
        Others::Use => 0o077,
        Others::Change => 0o022,
    };
    if mode & refused == 0 { Ok(()) } else { Err(Loose { what, path: path.to_owned(), mode, others }.into()) }
}

/// Reads a key's file, which is refused if others can use it, and wiped from memory when dropped.
pub(crate) fn read_secret<E: From<Loose> + From<durable::Error>>(
    what: &'static str,
    (path, file): (&Path, &File),
) -> Result<Zeroizing<Vec<u8>>, E> {
    refuse_loose::<E>(what, (path, file), Others::Use)?;
    // With room for all of it: a copy that grew would be left behind unwiped.
    let mut bytes = Zeroizing::new(Vec::with_capacity(usize::try_from(MAX_KEY).unwrap_or(0)));
    file.take(MAX_KEY)
        .read_to_end(&mut bytes)
        .map_err(|source| durable::Error::new("can't read", path, source))?;
    Ok(bytes)
}
