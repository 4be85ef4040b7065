//! Files and folders into the verifier's session: what every surface does with evidence.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

use waybill_verifier::chain::LastLine;
use waybill_verifier::evidence::{MAX_FILES, Options, Session, is_evidence, manifest};
use waybill_verifier::gate::Gate;
use waybill_verifier::report::Report;

use super::super::exit::Failure;
use super::super::out;
use super::{Args, Subject};
use crate::durable::{self, open_regular};
use crate::lock::Lock;
use crate::master::KeyFile;

/// How deep folders are read.
const MAX_DEPTH: usize = 16;
/// How many bytes are read at once.
pub(in super::super) const PIECE: usize = 1 << 20;

/// The report on files and folders, together.
pub(super) fn check(subjects: &[Subject], args: &Args) -> Result<Report, Failure> {
    let mut given = Given::default();
    let name = match subjects {
        [subject] if subject.path.is_dir() => {
            given.folder(&subject.path, "")?;
            folder_name(&subject.path)
        }
        [subject] => {
            given.file(&subject.path, subject.file.clone());
            given.head_beside(&subject.path);
            subject.name.clone()
        }
        several => {
            for subject in several {
                given.subject(subject)?;
            }
            format!("{} subjects", several.len())
        }
    };
    let mut session = Session::new(
        &name,
        Options {
            folder: matches!(subjects, [subject] if subject.path.is_dir()),
            several: subjects.len() > 1 || given.files.len() > 2,
            expect: args.expect.expect(),
            commit: args.expected_commit,
            trust: args.signer.trust()?,
            requirements: Vec::new(),
            together: false,
            shown: false,
        },
    );
    match KeyFile::of_environment().read() {
        Ok(Some(key)) => session.key(key),
        Ok(None) => {}
        Err(error) => out::say(&format!("the HMAC key is not used: {error}")),
    }
    given.feed(&mut session)?;
    Ok(session.finish().report)
}

/// Gives a gate the evidence of a project that it takes: what is below its `.sdd`.
pub(in super::super) fn feed_gate(gate: &mut Gate, root: &Path) -> Result<(), Failure> {
    let mut given = Given::default();
    let folder = root.join(".sdd");
    if is_folder(&folder) {
        given.walk(&folder, ".sdd/", 0)?;
    }
    given.files.retain(|(_, name)| gate.takes(name));
    given.feed(gate.session())
}

/// Gives a session one file, under a name, in pieces of at most so many bytes.
pub(in super::super) fn feed_file(
    session: &mut Session,
    path: &Path,
    name: &str,
    last_line: LastLine,
    piece: &mut [u8],
) -> Result<(), Failure> {
    let mut file = open_regular(path)?;
    session.open(name);
    loop {
        match file.read(piece).map_err(|source| durable::Error::new("can't read", path, source))? {
            0 => break,
            length => session.push(&piece[..length]),
        }
    }
    session.close(last_line);
    Ok(())
}

/// The files to read, and what the session calls each.
#[derive(Default)]
struct Given {
    files: Vec<(PathBuf, String)>,
    names: BTreeSet<String>,
}

impl Given {
    /// Gives a session the files, one after the other.
    fn feed(&self, session: &mut Session) -> Result<(), Failure> {
        let mut piece = vec![0; PIECE];
        for (path, name) in &self.files {
            // The lock is looked at first: a writer that ends in between leaves settled bytes.
            let lock = path.with_file_name(".ledger.lock");
            let held = name.ends_with("/000000.jsonl") && Lock::is_held(&lock);
            let last_line = if held { LastLine::InFlight } else { LastLine::Settled };
            feed_file(session, path, name, last_line, &mut piece)?;
        }
        Ok(())
    }

    fn subject(&mut self, subject: &Subject) -> Result<(), Failure> {
        if subject.path.is_dir() {
            let name = self.free(&folder_name(&subject.path));
            return self.folder(&subject.path, &format!("{name}/"));
        }
        // Its spine came before it, and took it along.
        if subject.name == "spine.head" && self.files.iter().any(|(path, _)| *path == subject.path) {
            return Ok(());
        }
        // A run's ledger keeps its place, which names the run.
        self.file(&subject.path, subject.file.clone());
        self.head_beside(&subject.path);
        Ok(())
    }

    fn file(&mut self, path: &Path, name: String) {
        let name = self.free(&name);
        self.files.push((path.to_owned(), name));
    }

    /// A spine's head file belongs to it, wherever it lies.
    fn head_beside(&mut self, path: &Path) {
        let head = path.with_file_name("spine.head");
        let given = self.files.iter().any(|(path, _)| *path == head);
        if path.file_name().is_some_and(|name| name == "spine.jsonl") && head.is_file() && !given {
            self.file(&head, String::from("spine.head"));
        }
    }

    /// The name, or the name with a number if it is taken.
    fn free(&mut self, name: &str) -> String {
        let mut free = name.to_owned();
        let mut number = 2;
        while !self.names.insert(free.clone()) {
            free = format!("{name} ({number})");
            number += 1;
        }
        free
    }

    /// The evidence in a folder: of a project that is in it, or all of its files. Links are not
    /// followed.
    fn folder(&mut self, folder: &Path, root: &str) -> Result<(), Failure> {
        let is_project = folder_name(folder) == ".sdd";
        let inner = folder.join(".sdd");
        let (folder, root) = match is_project {
            true if root.is_empty() => (folder.to_owned(), String::from(".sdd/")),
            true => (folder.to_owned(), root.to_owned()),
            // Of a project only its evidence; of an unpacked archive everything.
            false if is_folder(&inner) && !folder.join(manifest::NAME).is_file() => {
                (inner, format!("{root}.sdd/"))
            }
            false => (folder.to_owned(), root.to_owned()),
        };
        self.walk(&folder, &root, 0)
    }

    fn walk(&mut self, folder: &Path, root: &str, depth: usize) -> Result<(), Failure> {
        let unreadable = |source| durable::Error::new("can't read", folder, source);
        let mut entries: Vec<_> =
            std::fs::read_dir(folder).map_err(unreadable)?.collect::<Result<_, _>>().map_err(unreadable)?;
        entries.sort_unstable_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let kind = entry.file_type().map_err(unreadable)?;
            let name = format!("{root}{}", entry.file_name().to_string_lossy());
            if kind.is_dir() && depth < MAX_DEPTH && !is_hidden(&entry.file_name()) {
                self.walk(&entry.path(), &format!("{name}/"), depth + 1)?;
            } else if kind.is_file() && is_evidence(&name) {
                if self.files.len() >= MAX_FILES {
                    return Err(Failure::usage(format!(
                        "{} has more than {MAX_FILES} files: give the ones that are evidence",
                        folder.display()
                    )));
                }
                self.file(&entry.path(), name);
            }
        }
        Ok(())
    }
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}

fn is_hidden(name: &OsStr) -> bool {
    name != ".sdd" && name.as_encoded_bytes().starts_with(b".")
}

fn folder_name(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    path.file_name().map_or_else(|| String::from("."), |name| name.to_string_lossy().into_owned())
}
