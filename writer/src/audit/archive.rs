//! Packing the older days of a log: gzip with nothing of the moment in it, so that the same day
//! packs to the same bytes, and the day's file goes only when the packed one was read back.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use miniz_oxide::deflate::core::{CompressorOxide, create_comp_flags_from_zip_params};
use miniz_oxide::deflate::stream::deflate;
use miniz_oxide::{DataFormat, MZFlush, MZStatus};
use waybill_verifier::audit::{DayFile, MAX_DAY};
use waybill_verifier::chain::{LastLine, Unseen};
use waybill_verifier::gzip::{Gunzip, HEADER, Trailer};
use waybill_verifier::hash::{Digest, Hasher};

use super::{Error, LOCK, holds, list, mend, read, tagged};
use crate::durable::{self, open_regular};
use crate::lock::{FileLock, Wait};
use crate::master::{self, KeyFile};
use crate::project::Project;

/// What packing did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Archived {
    /// The packed files that were made, in order.
    pub packed: Vec<PathBuf>,
    /// Where the bytes of a row that was never acknowledged are now.
    pub set_aside: Option<PathBuf>,
}

/// Packs the days before `before` (`YYYY-MM-DD`), the oldest first. A log that does not hold is
/// left as it is.
///
/// # Errors
///
/// If there is no log, it does not hold, the key is missing, or a file can't be written.
pub fn archive(project: &Project, key: &KeyFile, before: &str) -> Result<Archived, Error> {
    let folder = project.audit();
    durable::refuse_links(project.root(), &folder)?;
    if !folder.is_dir() {
        return Err(Error::Absent);
    }
    let _lock = FileLock::take(&folder.join(LOCK), Wait::Yes, || {})?;
    finish_interrupted(&folder)?;
    let Some(key) = key.read()? else {
        return match (tagged(project)?, key.path()) {
            (master::Tagged::Nothing, _) => Ok(Archived::default()),
            (master::Tagged::Rows, Some(path)) => Err(master::Error::Lost(path.to_owned()).into()),
            (master::Tagged::Rows, None) => Err(master::Error::NoPlace.into()),
        };
    };
    let outcome = read::walk(&folder, Some(&key), LastLine::Settled, Unseen)?;
    let set_aside = mend(&folder, holds(&outcome)?)?;
    let mut packed = Vec::new();
    for name in &outcome.days {
        match DayFile::of(name) {
            Some(day) if !day.archived() && day.date < before => packed.push(pack(&folder, &day)?),
            _ => {}
        }
    }
    Ok(Archived { packed, set_aside })
}

/// Ends what a crash interrupted between the packed file's name and the plain file's removal: a
/// day that is there twice, the same both times.
pub(super) fn finish_interrupted(folder: &Path) -> Result<(), Error> {
    for path in list(&folder.join("archive"))? {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let Some(plain) = name.strip_suffix(".gz").map(|name| folder.join(name)) else { continue };
        if fs::symlink_metadata(&plain).is_ok_and(|metadata| metadata.is_file())
            && unpacked_hash(&path)?.is_some_and(|hash| file_hash(&plain).is_ok_and(|plain| plain == hash))
        {
            durable::remove(&plain)?;
        }
    }
    Ok(())
}

fn pack(folder: &Path, day: &DayFile<'_>) -> Result<PathBuf, Error> {
    let archive = folder.join("archive");
    durable::create_private_folders(folder, &archive)?;
    let plain = folder.join(day.name);
    let path = archive.join(format!("{}.gz", day.name));
    let source = open_regular(&plain)?;
    durable::replace(&path, |file| gzip(source, file))?;
    if unpacked_hash(&path)? != Some(file_hash(&plain)?) {
        durable::remove(&path)?;
        return Err(Error::NotPacked(path));
    }
    durable::remove(&plain)?;
    Ok(path)
}

/// Packs a file: one member, no name, no time.
fn gzip(mut source: File, out: &mut impl Write) -> io::Result<()> {
    const LEVEL: i32 = 9;
    let flags = create_comp_flags_from_zip_params(LEVEL, 0, 0);
    let mut compressor = Box::new(CompressorOxide::new(flags));
    compressor.set_format_and_level(DataFormat::Raw, 9);
    let mut trailer = Trailer::default();
    let (mut piece, mut packed) = (vec![0; 256 << 10], vec![0; 256 << 10]);
    out.write_all(&HEADER)?;
    loop {
        let length = source.read(&mut piece)?;
        trailer.push(&piece[..length]);
        let flush = if length == 0 { MZFlush::Finish } else { MZFlush::None };
        let mut rest = &piece[..length];
        loop {
            let step = deflate(&mut compressor, rest, &mut packed, flush);
            out.write_all(&packed[..step.bytes_written])?;
            rest = &rest[step.bytes_consumed..];
            match step.status {
                Ok(MZStatus::StreamEnd) => return out.write_all(&trailer.bytes()),
                Ok(_) if rest.is_empty() && length > 0 && step.bytes_written < packed.len() => break,
                Ok(_) => {}
                Err(_) => return Err(io::Error::other("packing made no progress")),
            }
        }
    }
}

fn file_hash(path: &Path) -> Result<Digest, durable::Error> {
    let mut hasher = Hasher::new();
    each_piece(path, |piece| hasher.update(piece))?;
    Ok(hasher.finish())
}

/// The hash of what a packed file holds; none if it is no whole gzip member.
fn unpacked_hash(path: &Path) -> Result<Option<Digest>, durable::Error> {
    let mut hasher = Hasher::new();
    let mut gunzip = Gunzip::new(MAX_DAY);
    // An error comes again at the end.
    each_piece(path, |piece| {
        let _comes_again = gunzip.push(piece, |bytes| hasher.update(bytes));
    })?;
    Ok(gunzip.finish().is_ok().then(|| hasher.finish()))
}

fn each_piece(path: &Path, mut take: impl FnMut(&[u8])) -> Result<(), durable::Error> {
    let mut file = open_regular(path)?;
    let mut piece = vec![0; 256 << 10];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(length) => take(&piece[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(durable::Error::new("can't read", path, source)),
        }
    }
}
