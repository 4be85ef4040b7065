//! `waybill jobs logs`: what a run printed.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use super::super::exit::{Exit, Failure};
use super::super::out;
use crate::durable::open_regular;
use crate::registry::{Record, Registry, RunFolder};

/// How often a growing log is looked at.
const LOOK: Duration = Duration::from_millis(100);

pub(super) fn run(
    registry: &Registry,
    record: &Record,
    follow: bool,
    last: Option<usize>,
) -> Result<Exit, Failure> {
    let folder = registry.run(&record.run);
    let mut log = Log::of(&folder);
    log.show(last)?;
    if !follow {
        return Ok(Exit::Done);
    }
    loop {
        let alive = folder.is_locked();
        log.show_more()?;
        if !alive {
            return Ok(Exit::Done);
        }
        std::thread::sleep(LOOK);
    }
}

/// A console log, and how far it was shown.
pub(super) struct Log {
    path: PathBuf,
    older: PathBuf,
    /// Which file was shown, and how far.
    at: Option<(u64, u64)>,
}

impl Log {
    pub(super) fn of(folder: &RunFolder) -> Log {
        Log { path: folder.file("console.log"), older: folder.file("console.log.1"), at: None }
    }

    /// Shows what is there, or the last lines of it.
    pub(super) fn show(&mut self, last: Option<usize>) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        for path in [&self.older, &self.path] {
            match open_regular(path) {
                Ok(mut file) => {
                    let read = file.read_to_end(&mut bytes);
                    let read = u64::try_from(read.unwrap_or(0)).unwrap_or(u64::MAX);
                    self.at = inode(&file).map(|inode| (inode, read));
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        let lines = bytes.split_inclusive(|byte| *byte == b'\n');
        let skip = last.map_or(0, |last| lines.clone().count().saturating_sub(last));
        let wanted: Vec<u8> = lines.skip(skip).flatten().copied().collect();
        put(&wanted)
    }

    /// Shows what came since; a log that was rotated is read on in the file that it is now.
    pub(super) fn show_more(&mut self) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        let (inode_before, from) = self.at.unwrap_or_default();
        let current = open_regular(&self.path).ok();
        let same = current.as_ref().and_then(inode) == Some(inode_before);
        if !same
            && let Ok(mut older) = open_regular(&self.older)
            && inode(&older) == Some(inode_before)
        {
            read_from(&mut older, from, &mut bytes);
        }
        if let Some(mut file) = current {
            let start = if same { from } else { 0 };
            let read = read_from(&mut file, start, &mut bytes);
            self.at = inode(&file).map(|inode| (inode, start + read));
        }
        put(&bytes)
    }
}

fn inode(file: &File) -> Option<u64> {
    Some(file.metadata().ok()?.ino())
}

fn read_from(file: &mut File, at: u64, bytes: &mut Vec<u8>) -> u64 {
    let read = file.seek(SeekFrom::Start(at)).and_then(|_| file.read_to_end(bytes));
    u64::try_from(read.unwrap_or(0)).unwrap_or(0)
}

/// Prints what a run printed: its lines stay lines, and nothing of it steers the terminal.
fn put(bytes: &[u8]) -> Result<(), Failure> {
    if bytes.is_empty() {
        return Ok(());
    }
    let mut text = String::new();
    for line in String::from_utf8_lossy(bytes).split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let line = line.strip_suffix('\r').unwrap_or(line);
        for (number, part) in line.split('\t').enumerate() {
            text.push_str(if number > 0 { "\t" } else { "" });
            text.push_str(&out::escape(part));
        }
        text.push_str(end);
    }
    super::super::put(text.as_bytes())
}
