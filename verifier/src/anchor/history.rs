//! The anchors before an anchor: each is judged as one of its own, and its rows must be a byte
//! prefix of those of the anchor after it.
//!
//! A chunk that an anchor shares with the one after it is not read again: in a history that was
//! only appended to, each earlier anchor costs its tree and at most its last chunk. The walk ends
//! at the first thing that is wrong, so that a history that is made to alternate between
//! lineages costs no more.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;

use super::commit::Form;
use super::finding::Finding;
use super::judge::{Anchored, worst};
use super::layout::{CHUNK_ROWS, MAX_CHUNK};
use super::object::{ObjectId, ObjectKind};
use super::read::{Body, CommitRead, Known, Store, Unread};
use super::tree::chunk_name;
use crate::chain::{FaultKind, Place};
use crate::id::RunId;

/// What the walk to the first anchor found.
pub(super) struct History {
    /// How many anchors were seen, the one that is checked included.
    pub(super) length: u64,
    /// Where it ended: at a first anchor, or at what is wrong.
    pub(super) end: Result<Form, Finding>,
}

/// Walks from an anchor to the first one.
pub(super) fn walk(
    store: &mut Store<'_>,
    tip: CommitRead,
    body: Body,
    run: Option<&RunId>,
    limit: u64,
) -> Result<History, Unread> {
    let (mut child, mut body) = (tip, body);
    let mut form = Anchored { commit: Some(&child), body: &body, run }.commit().unwrap_or(Form::Anchor);
    let mut length = 1;
    loop {
        let end = |end| Ok(History { length, end });
        let of_child = |finding: Finding| if length == 1 { finding } else { finding.of_commit(&child.id) };
        let parent = match child.parents[..] {
            [] => return end(Ok(form)),
            [parent] => parent,
            _ => {
                let said = String::from("several parents, and nothing says which is the previous anchor");
                return end(Err(of_child(Finding::not_checked(said))));
            }
        };
        if length >= limit {
            let said = format!("the anchors from {parent} on were not looked at: the limit is {limit}");
            return end(Err(Finding::not_checked(said)));
        }
        let commit = match CommitRead::load(store, parent, Some(&child.id))? {
            Ok(commit) => commit,
            Err(Finding { fault: None, .. }) => {
                let said = format!("the previous anchor {parent} is not there: the history is cut off");
                return end(Err(of_child(Finding::not_checked(said))));
            }
            Err(finding) => return end(Err(finding.at(&parent.to_hex(), None))),
        };
        let same = commit.tree == child.tree && body.clean_rows();
        let read = if same {
            None
        } else {
            let known = Known { run, like: Some(&body), wanted: [None; 2] };
            Some(Body::load(store, &commit.tree, known, &mut |_, _| {})?)
        };
        let judged = Anchored { commit: Some(&commit), body: read.as_ref().unwrap_or(&body), run };
        let own = worst(judged.judge());
        if let Some(finding @ Finding { fault: Some(_), .. }) = own {
            return end(Err(finding.of_commit(&parent)));
        }
        if let Some(read) = &read
            && let Some(finding) = prefix(store, &body, read, &parent)?
        {
            return end(Err(of_child(finding)));
        }
        if let Some(finding) = own {
            return end(Err(finding.of_commit(&parent)));
        }
        form = judged.commit().unwrap_or(Form::Anchor);
        length += 1;
        child = commit;
        body = read.unwrap_or(body);
    }
}

/// What is wrong, if the rows of `earlier` are no byte prefix of those of `later`.
fn prefix<'b>(
    store: &mut Store<'_>,
    later: &'b Body,
    earlier: &'b Body,
    commit: &ObjectId,
) -> Result<Option<Finding>, Unread> {
    let (Some(after), Some(before)) = (&later.shape, &earlier.shape) else {
        return Ok(None);
    };
    let same = after.chunks.iter().zip(&before.chunks).take_while(|(left, right)| left == right).count();
    let Some(chunk) = before.chunks.get(same) else {
        return Ok(None);
    };
    let mut bytes = |body: &'b Body, chunks: &[ObjectId], id: &ObjectId| match &body.last {
        Some(bytes) if chunks.len() == same + 1 => Ok(Ok(Cow::Borrowed(&bytes[..]))),
        _ => Ok(store.load(id, ObjectKind::Blob, MAX_CHUNK, None)?.map(Cow::Owned)),
    };
    let old = match bytes(earlier, &before.chunks, chunk)? {
        Ok(bytes) => bytes,
        Err(gap) => return Ok(Some(gap)),
    };
    let new = match after.chunks.get(same) {
        None => Cow::Borrowed(&[][..]),
        Some(chunk) => match bytes(later, &after.chunks, chunk)? {
            Ok(bytes) => bytes,
            Err(gap) => return Ok(Some(gap)),
        },
    };
    let common = old.iter().zip(&*new).take_while(|(left, right)| left == right).count();
    if common == old.len() && before.chunks.len() == same + 1 {
        return Ok(None);
    }
    let place = place(&old[..common], same);
    let name = chunk_name(same);
    let sentence =
        format!("{name}: {place}: the previous anchor {commit} has another row there, or one more");
    Ok(Some(Finding::fault(FaultKind::HistoryRewritten, sentence).at(&name, Some(place))))
}

/// Where the line behind some bytes of a chunk starts.
fn place(before: &[u8], chunk: usize) -> Place {
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let lines = count(memchr::memchr_iter(b'\n', before).count());
    let byte = memchr::memrchr(b'\n', before).map_or(0, |end| count(end + 1));
    Place { entry: count(chunk).saturating_mul(CHUNK_ROWS) + lines, line: lines + 1, byte }
}
