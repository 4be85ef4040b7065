//! Files of a commit, read from its objects: what a base has, without a checkout of it.

use waybill_verifier::anchor::ObjectId;
use waybill_verifier::id::RunId;

use super::{Error, Store, from_gix, one_line};

/// Where lineages that were set aside are, without run and head.
pub(crate) const ASIDE: &str = "refs/waybill/aside/";

impl Store {
    /// The commit that a name stands for: a ref in any of git's short forms, or a commit's id.
    /// `None` if there is no such.
    ///
    /// # Errors
    ///
    /// If it is there and can't be read.
    pub fn commit(&self, name: &str) -> Result<Option<ObjectId>, Error> {
        let failed = |reason| Error::Failed { action: "can't read", what: name.to_owned(), reason };
        if let Some(id) = ObjectId::from_hex(name.as_bytes()) {
            return match self.repository.try_find_object(super::to_gix(&id)) {
                Ok(None) => Ok(None),
                Ok(Some(object)) => {
                    let commit = object.peel_to_kind(gix::object::Kind::Commit);
                    commit.map(|commit| Some(from_gix(&commit.id))).map_err(|error| failed(one_line(&error)))
                }
                Err(error) => Err(failed(one_line(&error))),
            };
        }
        match self.repository.try_find_reference(name) {
            Ok(None) => Ok(None),
            Ok(Some(mut reference)) => {
                let id = reference.peel_to_id().map_err(|error| failed(one_line(&error)))?;
                Ok(Some(from_gix(&id)))
            }
            Err(error) => Err(failed(one_line(&error))),
        }
    }

    /// A file of a commit, of at most `limit` bytes; `None` if it has no such file.
    ///
    /// # Errors
    ///
    /// If the commit can't be read, or the file is too large or no regular file.
    pub fn file_at(&self, commit: &ObjectId, path: &str, limit: usize) -> Result<Option<Vec<u8>>, Error> {
        let what = || format!("{path} of {}", commit.to_hex());
        let failed = |reason| Error::Failed { action: "can't read", what: what(), reason };
        let found =
            self.repository.find_commit(super::to_gix(commit)).map_err(|error| failed(one_line(&error)))?;
        let tree = found.tree().map_err(|error| failed(one_line(&error)))?;
        let Some(entry) = tree.lookup_entry_by_path(path).map_err(|error| failed(one_line(&error)))? else {
            return Ok(None);
        };
        if !entry.mode().is_blob() {
            return Err(failed(String::from("it is no regular file")));
        }
        let id = from_gix(&entry.object_id());
        match self.object(&id, limit)? {
            waybill_verifier::anchor::Found::Object(_, bytes) => Ok(Some(bytes)),
            waybill_verifier::anchor::Found::Missing => {
                Err(failed(String::from("it is not in the repository")))
            }
            waybill_verifier::anchor::Found::TooLarge => {
                Err(failed(format!("it has more than {limit} bytes")))
            }
        }
    }

    /// The lineages that were set aside, sorted: the ref's name, its run, its commit.
    ///
    /// # Errors
    ///
    /// If refs can't be listed.
    pub fn asides(&self) -> Result<Vec<(String, RunId, ObjectId)>, Error> {
        let failed = |reason| Error::Failed { action: "can't list", what: ASIDE.to_owned(), reason };
        let references = self.repository.references().map_err(|error| failed(one_line(&error)))?;
        let below = references.prefixed(ASIDE).map_err(|error| failed(one_line(&error)))?;
        let mut found = Vec::new();
        for reference in below.flatten() {
            let name = String::from_utf8_lossy(reference.name().as_bstr()).into_owned();
            let run = name.strip_prefix(ASIDE).and_then(|rest| rest.split_once('/'));
            let run = run.and_then(|(run, _)| RunId::new(run).ok());
            if let (Some(run), Some(id)) = (run, reference.target().try_id()) {
                found.push((name, run, from_gix(id)));
            }
        }
        found.sort_by(|left, right| left.0.cmp(&right.0));
        Ok(found)
    }
}
