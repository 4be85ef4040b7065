//! What the base of a check is, and what it says.
//!
//! GitHub says it in variables and in the file of the event that started the workflow (JSON, at
//! `GITHUB_EVENT_PATH`): `merge_group.base_sha`, or `before` of a push. GitLab has variables.

use std::path::Path;

use waybill_verifier::anchor::ObjectId;
use waybill_verifier::gate::{HEADS, POLICY};
use waybill_verifier::json::{self, Value};

use super::super::exit::{Exit, Failure};
use super::super::out;
use super::Args;
use crate::durable;
use crate::git::Store;

/// A policy, heads or event file is not longer.
pub(super) const MAX_FILE: usize = 16 << 20;

/// What the base says.
pub(super) struct Base {
    pub(super) policy: Option<Vec<u8>>,
    pub(super) heads: Option<Vec<u8>>,
}

impl Base {
    pub(super) fn read(store: &Store, args: &Args) -> Result<Base, Failure> {
        let given = |file: Option<&Path>| match file {
            None => Ok(None),
            Some(path) => match read_file(path)? {
                Some(bytes) => Ok(Some(bytes)),
                None => Err(absent(format!("{} is not there: name the file that is", path.display()))),
            },
        };
        let (policy, heads) = (given(args.policy.as_deref())?, given(args.heads.as_deref())?);
        if policy.is_some() && heads.is_some() {
            return Ok(Base { policy, heads });
        }
        let commit = match args.base.clone().map_or_else(of_environment, |name| Ok(Named::Must(name)))? {
            Named::Must(name) => match store.commit(&name)? {
                Some(commit) => Some(commit),
                None => {
                    let name = out::escape(&name);
                    return Err(absent(format!(
                        "the base {name} is not here: fetch it, or name another with --base"
                    )));
                }
            },
            // Before the first commit there is none.
            Named::Head => store.commit("HEAD").ok().flatten(),
        };
        let at_base = |path| match &commit {
            Some(commit) => store.file_at(commit, path, MAX_FILE),
            None => Ok(None),
        };
        Ok(Base {
            policy: policy.map_or_else(|| at_base(POLICY), |bytes| Ok(Some(bytes)))?,
            heads: heads.map_or_else(|| at_base(HEADS), |bytes| Ok(Some(bytes)))?,
        })
    }
}

fn absent(message: String) -> Failure {
    Failure { exit: Exit::Absent, message }
}

/// What the base is.
#[derive(PartialEq, Eq, Debug)]
enum Named {
    /// This, and it must be here.
    Must(String),
    /// What is checked out.
    Head,
}

fn of_environment() -> Result<Named, Failure> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let event = match set("GITHUB_EVENT_PATH").map(|path| read_file(Path::new(&path))) {
        Some(bytes) => bytes?,
        None => None,
    };
    Ok(named(set, event.as_deref()))
}

/// What variables and an event's file say that the base is.
fn named(set: impl Fn(&str) -> Option<String>, event: Option<&[u8]>) -> Named {
    if let Some(branch) = set("GITHUB_BASE_REF") {
        // Whole, so that no tag of such a name stands for it.
        return Named::Must(format!("refs/remotes/origin/{branch}"));
    }
    let event = event.and_then(|bytes| json::parse(bytes).ok());
    let of_event = event.as_ref().and_then(|event| {
        let event = event.as_object()?;
        let group = event.get("merge_group").and_then(Value::as_object);
        group.and_then(|group| group.get("base_sha")).or_else(|| event.get("before"))?.as_str()
    });
    // A push that makes a branch has no commit before it.
    if let Some(id) = of_event.filter(|id| ObjectId::from_hex(id.as_bytes()).is_some() && !is_none(id)) {
        return Named::Must(id.to_owned());
    }
    let gitlab = ["CI_MERGE_REQUEST_TARGET_BRANCH_SHA", "CI_MERGE_REQUEST_DIFF_BASE_SHA"];
    gitlab.into_iter().find_map(set).map_or(Named::Head, Named::Must)
}

/// Whether an id stands for no object.
pub(super) fn is_none(id: &str) -> bool {
    id.bytes().all(|digit| digit == b'0')
}

pub(super) fn read_file(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    use std::io::Read;
    let Some(file) = durable::open_if_there(path)? else { return Ok(None) };
    let failed = |source| durable::Error::new("can't read", path, source);
    let limit = u64::try_from(MAX_FILE).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > MAX_FILE {
        return Err(failed(std::io::Error::other(format!("it has more than {MAX_FILE} bytes"))).into());
    }
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_is_what_ci_says() {
        let id = "ab".repeat(20);
        let event = |text: &str| Some(text.replace("ID", &id));
        for (variables, event, expect) in [
            (vec![("GITHUB_BASE_REF", "main")], None, "refs/remotes/origin/main"),
            (vec![("GITHUB_BASE_REF", "")], event(r#"{"merge_group":{"base_sha":"ID"},"before":"x"}"#), &*id),
            (vec![], event(r#"{"before":"ID"}"#), &id),
            (vec![], event(r#"{"before":"0000000000000000000000000000000000000000"}"#), "HEAD"),
            (vec![], event(r#"{"before":"--upload-pack=x"}"#), "HEAD"),
            (vec![], event("no JSON"), "HEAD"),
            (vec![("CI_MERGE_REQUEST_DIFF_BASE_SHA", "b")], None, "b"),
            (
                vec![("CI_MERGE_REQUEST_DIFF_BASE_SHA", "b"), ("CI_MERGE_REQUEST_TARGET_BRANCH_SHA", "t")],
                None,
                "t",
            ),
            (vec![], None, "HEAD"),
        ] {
            let set = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| String::from(*value)).filter(|value| !value.is_empty())
            };
            let found = match named(set, event.as_deref().map(str::as_bytes)) {
                Named::Must(name) => name,
                Named::Head => String::from("HEAD"),
            };
            assert_eq!(found, expect, "{variables:?} {event:?}");
        }
    }
}
