//! What a run prints: passed on as it is, and kept scrubbed, up to a bound.
//!
//! The log is cut into whole lines, since a secret does not care for the size of a read; a private
//! key's block is kept together. Two files are kept, each up to the limit: when `console.log` is
//! full, it becomes `console.log.1`. The log is no evidence: it is neither hashed nor synced.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;

use crate::redact::Scrubber;

/// What is held back at most to find a line's or a key block's end, in bytes.
const HELD: usize = 64 << 10;

/// A console log that is written to.
#[derive(Debug)]
pub struct Console {
    path: PathBuf,
    file: Option<File>,
    length: u64,
    limit: u64,
}

impl Console {
    /// Opens a log to go on with.
    #[must_use]
    pub fn open(path: &Path, limit: u64) -> Console {
        let file = open(path).ok();
        let length = file.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |found| found.len());
        Console { path: path.to_owned(), file, length, limit: limit.max(4096) }
    }

    /// Writes scrubbed bytes. A log that can't be written stops nothing.
    fn write(&mut self, bytes: &[u8]) {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if self.length > 0 && self.length.saturating_add(length) > self.limit {
            let mut older = self.path.clone().into_os_string();
            older.push(".1");
            drop(fs::rename(&self.path, older));
            self.file = open(&self.path).ok();
            self.length = 0;
        }
        if let Some(file) = &mut self.file
            && file.write_all(bytes).is_ok()
        {
            self.length += length;
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits())
        .open(path)
}

/// What the readers of a child's output share with who watches it.
#[derive(Clone, Debug)]
pub struct Output {
    console: Arc<Mutex<Console>>,
    scrubber: Arc<Scrubber>,
    last: Arc<AtomicU64>,
    zero: Instant,
}

impl Output {
    /// An output whose times are counted from `zero`.
    #[must_use]
    pub fn new(console: Console, scrubber: Arc<Scrubber>, zero: Instant) -> Output {
        Output { console: Arc::new(Mutex::new(console)), scrubber, last: Arc::default(), zero }
    }

    /// When something was printed last, in milliseconds behind `zero`; 0 for never.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.last.load(Ordering::Relaxed)
    }

    /// Reads a stream to its end in a thread of its own, and passes it on.
    pub fn follow(
        &self,
        mut stream: impl Read + Send + 'static,
        mut to: Option<Box<dyn Write + Send>>,
    ) -> JoinHandle<()> {
        let output = self.clone();
        thread::spawn(move || {
            let mut piece = vec![0; 16 << 10];
            let mut held = Vec::new();
            loop {
                let count = match stream.read(&mut piece) {
                    Ok(0) => break,
                    Ok(count) => count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(_) => break,
                };
                let now = u64::try_from(output.zero.elapsed().as_millis()).unwrap_or(u64::MAX);
                output.last.fetch_max(now.max(1), Ordering::Relaxed);
                held.extend_from_slice(&piece[..count]);
                let whole = complete(&held);
                output.keep(&held[..whole]);
                held.drain(..whole);
                // Where nobody reads any more, the run goes on.
                if let Some(stream) = &mut to
                    && stream.write_all(&piece[..count]).and_then(|()| stream.flush()).is_err()
                {
                    to = None;
                }
            }
            output.keep(&held);
        })
    }

    fn keep(&self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let (scrubbed, _) = self.scrubber.scrub_bytes(bytes);
        if let Ok(mut console) = self.console.lock() {
            console.write(&scrubbed);
        }
    }
}

/// How many of these bytes can be scrubbed by themselves: up to the last line's end, and not beyond
/// a key block that has not ended.
fn complete(held: &[u8]) -> usize {
    let whole = memchr::memrchr(b'\n', held).map_or(0, |end| end + 1);
    let begun = memchr::memmem::rfind(held, b"-----BEGIN ");
    let whole = match begun {
        Some(begin) if memchr::memmem::find(&held[begin..], b"-----END ").is_none() => {
            let line = memchr::memrchr(b'\n', &held[..begin]).map_or(0, |end| end + 1);
            whole.min(line)
        }
        _ => whole,
    };
    if whole == 0 && held.len() >= HELD { held.len() } else { whole }
}

/// Waits for readers to reach their streams' ends, but not for ever: whoever the child left behind
/// may keep a stream open.
pub fn drain(readers: Vec<JoinHandle<()>>, patience: Duration) {
    let deadline = Instant::now() + patience;
    for reader in readers {
        while !reader.is_finished() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(2));
        }
        if reader.is_finished() {
            // A reader has nothing to say but that it is done.
            drop(reader.join());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn log(limit: u64, text: &[u8]) -> (tempfile::TempDir, Vec<u8>) {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("console.log");
        let scrubber = Arc::new(Scrubber::builder().build());
        let output = Output::new(Console::open(&path, limit), scrubber, Instant::now());
        output.follow(io::Cursor::new(text.to_vec()), None).join().unwrap();
        let kept = fs::read(&path).unwrap();
        (folder, kept)
    }

    #[test]
    fn secrets_are_scrubbed_also_over_the_ends_of_reads() {
        let secret = format!("{}{}", "ghp", "_16C7e42F292c6912E7710c838347Ae178B4a");
        let line = format!("{}{secret}\n", "x".repeat((16 << 10) - 10));
        let (_folder, kept) = log(1 << 20, line.as_bytes());
        let text = String::from_utf8(kept).unwrap();
        assert!(!text.contains(&secret[8..]) && text.contains("***REDACTED***"));
        let block = format!(
            "a\n-----BEGIN {0} KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END {0} KEY-----\nb\n",
            "PRIVATE"
        );
        let (_folder, kept) = log(1 << 20, block.as_bytes());
        let text = String::from_utf8(kept).unwrap();
        assert!(!text.contains("MIIEvQ") && text.starts_with("a\n") && text.ends_with("b\n"), "{text}");
    }

    #[test]
    fn the_log_is_bounded_and_ends_with_what_was_printed_last() {
        let text: String = (0..10_000).map(|n| format!("line {n}\n")).collect();
        let (folder, kept) = log(4096, text.as_bytes());
        let older = fs::read(folder.path().join("console.log.1")).unwrap();
        assert!(kept.len() <= 16 << 10 && older.len() <= 16 << 10);
        assert!(kept.ends_with(b"line 9999\n"));
    }
}
