//! Commits, and the two forms that an anchor's commit has.
//!
//! A commit is lines: `tree <40 hex>`, any number of `parent <40 hex>`, `author <ident>`,
//! `committer <ident>`, further headers, an empty line, the message to the end. A header line
//! that starts with a space goes on with the one before it (`gpgsig` does). An ident is
//! `<name> SP <<mail>> SP <seconds since 1970 UTC> SP <+ or -><hhmm>`.
//!
//! ```text
//! tree 6382bc24942969a8e4fc699e89365f8d52be83ce
//! author bernstein-work-ledger <work-ledger@bernstein.invalid> 1795979429 +0000
//! committer bernstein-work-ledger <work-ledger@bernstein.invalid> 1795979429 +0000
//!
//! bernstein work ledger anchor
//!
//! run_id=goal-42
//! head=73888fa51431c46479b13147d54841cdb0c75aceb156985dcf31f3277ec20931
//! entries=11
//! ```
//!
//! The parent is the previous anchor. A gc leaves one commit without a parent, of the same tree,
//! whose message is `bernstein work ledger anchor (gc squash)`, an empty line and the `run_id`.
//!
//! Does not prove who made it, or when: names and times are whatever the writer says, and a
//! `gpgsig` is not looked at.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::object::ObjectId;
use super::tree::shown;
use crate::hash::Digest;
use crate::id::RunId;

/// The longest commit that is read: 1 MiB.
pub const MAX_COMMIT: usize = 1 << 20;

/// Who an anchor says that it is from, as author and as committer.
pub const IDENT: &str = "bernstein-work-ledger <work-ledger@bernstein.invalid>";

/// A commit by its parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Commit<'a> {
    pub(super) tree: ObjectId,
    pub(super) parents: Vec<ObjectId>,
    pub(super) author: &'a [u8],
    pub(super) committer: &'a [u8],
    pub(super) message: &'a [u8],
}

/// The tree and the parents that a commit names; `None` if it is no commit as git writes one.
#[must_use]
pub fn links_of(commit: &[u8]) -> Option<(ObjectId, Vec<ObjectId>)> {
    Commit::parse(commit).ok().map(|commit| (commit.tree, commit.parents))
}

/// Which of the two forms a commit has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    Anchor,
    Squash,
}

/// The message of an anchor.
#[must_use]
pub fn anchor_message(run: &RunId, head: &Digest, entries: u64) -> String {
    format!("bernstein work ledger anchor\n\nrun_id={run}\nhead={head}\nentries={entries}\n")
}

/// The message of the one anchor that a gc leaves.
#[must_use]
pub fn squash_message(run: &RunId) -> String {
    format!("{SQUASH}\n\nrun_id={run}\n")
}

const SQUASH: &str = "bernstein work ledger anchor (gc squash)";

/// The bytes of a commit of one of the two messages, made at `seconds` since 1970 UTC.
#[must_use]
pub(super) fn commit(tree: &ObjectId, parent: Option<&ObjectId>, message: &str, seconds: u64) -> Vec<u8> {
    let parent = parent.map(|parent| format!("parent {parent}\n")).unwrap_or_default();
    format!(
        "tree {tree}\n{parent}author {IDENT} {seconds} +0000\ncommitter {IDENT} {seconds} +0000\n\n{message}"
    )
    .into_bytes()
}

impl<'a> Commit<'a> {
    /// # Errors
    ///
    /// Says what of it is not as a commit is.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Commit<'a>, &'static str> {
        let mut lines = Lines { rest: bytes };
        let id = |line: &[u8]| ObjectId::from_hex(line);
        let tree = lines.header(b"tree ").and_then(id).ok_or("it does not start with its tree")?;
        let mut parents = Vec::new();
        while let Some(parent) = lines.header(b"parent ") {
            parents.push(id(parent).ok_or("a parent is no object id")?);
        }
        let author = lines.header(b"author ").ok_or("it names no author where one belongs")?;
        let committer = lines.header(b"committer ").ok_or("it names no committer where one belongs")?;
        loop {
            let line = lines.next().ok_or("it breaks off in its headers")?;
            if line.is_empty() {
                break;
            }
            let again = [&b"tree "[..], b"parent ", b"author ", b"committer "];
            if again.iter().any(|key| line.starts_with(key)) {
                return Err("a tree, parent, author or committer is named out of its place");
            }
            if line.contains(&0) {
                return Err("a header has a zero byte");
            }
        }
        Ok(Commit { tree, parents, author, committer, message: lines.rest })
    }

    /// Which form the commit has, given what its tree holds.
    ///
    /// # Errors
    ///
    /// Says what does not fit either form.
    pub(super) fn form(&self, run: Option<&RunId>, head: &Digest, entries: u64) -> Result<Form, String> {
        for (role, ident) in [("author", self.author), ("committer", self.committer)] {
            if !is_ours(ident) {
                return Err(format!("the {role} is {}, expected \"{IDENT}\" and a time", shown(ident)));
            }
        }
        let squash = self.message.starts_with(SQUASH.as_bytes());
        let expected = match run {
            Some(run) if squash => squash_message(run),
            Some(run) => anchor_message(run, head, entries),
            None => return Err(String::from("nothing names the run that its message must name")),
        };
        if self.message != expected.as_bytes() {
            let expected = shown(expected.as_bytes());
            return Err(format!("the message is {}, expected {expected}", shown(self.message)));
        }
        match (squash, self.parents.len()) {
            (true, 0) => Ok(Form::Squash),
            (true, count) => Err(format!("a gc squash starts anew, but it has {count} parent(s)")),
            (false, 0 | 1) => Ok(Form::Anchor),
            (false, count) => Err(format!("it has {count} parents: an anchor has at most one")),
        }
    }
}

fn is_ours(ident: &[u8]) -> bool {
    let Some(time) = ident.strip_prefix(IDENT.as_bytes()).and_then(|rest| rest.strip_prefix(b" ")) else {
        return false;
    };
    let Some(space) = time.iter().position(|&byte| byte == b' ') else {
        return false;
    };
    let (seconds, zone) = (&time[..space], &time[space + 1..]);
    let digits = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
    (1..=19).contains(&seconds.len())
        && digits(seconds)
        && zone.len() == 5
        && matches!(zone[0], b'+' | b'-')
        && digits(&zone[1..])
}

struct Lines<'a> {
    rest: &'a [u8],
}

impl<'a> Lines<'a> {
    fn header(&mut self, key: &[u8]) -> Option<&'a [u8]> {
        self.rest.starts_with(key).then(|| self.next()).flatten().map(|line| &line[key.len()..])
    }

    fn next(&mut self) -> Option<&'a [u8]> {
        let end = memchr::memchr(b'\n', self.rest)?;
        let line = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    const TREE: ObjectId = ObjectId::from_bytes([0xab; 20]);

    fn run() -> RunId {
        RunId::new("goal-42").expect("a run id")
    }

    fn form(bytes: &[u8]) -> Result<Form, String> {
        let commit = Commit::parse(bytes).map_err(str::to_string)?;
        commit.form(Some(&run()), &Digest::ZERO, 7)
    }

    fn anchor() -> String {
        let message = anchor_message(&run(), &Digest::ZERO, 7);
        String::from_utf8(commit(&TREE, Some(&TREE), &message, 1_795_979_429)).expect("text")
    }

    #[test]
    fn what_is_written_reads_as_its_form() {
        assert_eq!(form(anchor().as_bytes()), Ok(Form::Anchor));
        let message = squash_message(&run());
        assert_eq!(form(&commit(&TREE, None, &message, 0)), Ok(Form::Squash));
        let read = anchor();
        let read = Commit::parse(read.as_bytes()).expect("a commit");
        assert_eq!((read.tree, read.parents), (TREE, alloc::vec![TREE]));
    }

    #[test]
    fn other_headers_are_ignored_even_over_several_lines() {
        let signature = "encoding UTF-8\ngpgsig -----BEGIN\n \n parent no\n tree no\n -----END\n\n";
        assert_eq!(
            form(anchor().replacen("\n\n", &["\n", signature].concat(), 1).as_bytes()),
            Ok(Form::Anchor)
        );
    }

    #[track_caller]
    fn refused(from: &str, to: &str, expect: &str) {
        let text = anchor();
        assert!(text.contains(from));
        let error = form(text.replacen(from, to, 1).as_bytes()).expect_err(expect);
        assert!(error.contains(expect), "{error}");
    }

    #[test]
    fn a_commit_that_is_none_of_the_two_forms_says_why() {
        refused("tree ", "Tree ", "start with its tree");
        refused("tree abab", "tree ABab", "start with its tree");
        refused("parent abab", "parent xxxx", "parent is no object id");
        refused("author ", "", "no author");
        refused("committer", "author bernstein\ncommitter", "no committer");
        refused("\n\n", "\ntree x\n\n", "out of its place");
        refused("\n\n", "\nx \0\n\n", "zero byte");
        refused("author bernstein", "author mallory", "the author is");
        refused("committer bernstein", "committer  bernstein", "the committer is");
        refused("+0000\ncommitter", "+000\ncommitter", "the author is");
        refused("1795979429 +", "1e9 +", "the author is");
        refused("entries=7", "entries=8", "the message is");
        refused("run_id=goal-42", "run_id=goal-43", "the message is");
        refused("entries=7\n", "entries=7", "the message is");
        refused("entries=7\n", "entries=7\n\n", "the message is");
        refused("parent", &["parent ", &TREE.to_hex(), "\nparent"].concat(), "2 parents");
        let squash = squash_message(&run());
        let error = form(&commit(&TREE, Some(&TREE), &squash, 0)).expect_err("a parent");
        assert!(error.contains("starts anew"), "{error}");
    }

    #[test]
    fn every_cut_is_refused() {
        let text = anchor();
        for cut in 0..text.len() {
            assert!(form(&text.as_bytes()[..cut]).is_err(), "{cut}");
        }
    }
}
