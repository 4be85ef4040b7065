//! Which run somebody means: its exact id, then digits as a process's number, then the beginning of
//! an id that only one run has. Pure: the records and the processes' fates are given.

use std::fmt;

use super::Record;
use crate::process::Fate;

/// Why no run is meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotMeant {
    /// Nothing fits.
    Nothing(String),
    /// Several begin so.
    Several {
        /// What was given.
        given: String,
        /// The runs that begin so.
        runs: Vec<String>,
    },
    /// The number was a run's, and is another process's now.
    Reused {
        /// The number.
        pid: u32,
        /// The run whose it was.
        run: String,
    },
}

impl fmt::Display for NotMeant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotMeant::Nothing(given) => {
                write!(f, "no run here is meant by {given}: 'waybill jobs list --all' lists them")
            }
            NotMeant::Several { given, runs } => {
                write!(f, "{given} may be any of {}: give more of it", runs.join(", "))
            }
            NotMeant::Reused { pid, run } => {
                let name = crate::process::name_of(*pid);
                write!(
                    f,
                    "process {pid} was of run {run}, and is another one ({name}) now: give the run's id"
                )
            }
        }
    }
}

/// Finds the run that `given` means.
///
/// # Errors
///
/// If none is meant, or not one alone.
pub fn find<'a>(
    given: &str,
    records: &'a [Record],
    fate: impl Fn(&crate::process::Process) -> Fate,
) -> Result<&'a Record, NotMeant> {
    if let Some(record) = records.iter().find(|record| record.run.as_str() == given) {
        return Ok(record);
    }
    let digits = !given.is_empty() && given.bytes().all(|byte| byte.is_ascii_digit());
    if let (true, Ok(pid)) = (digits, given.parse::<u32>()) {
        let mut reused = None;
        for record in records {
            for process in [&record.child, &record.supervisor].into_iter().flatten() {
                match (process.pid == pid).then(|| fate(process)) {
                    Some(Fate::Alive) => return Ok(record),
                    Some(Fate::Reused) => reused = Some(record),
                    Some(Fate::Gone) | None => {}
                }
            }
        }
        if let Some(record) = reused {
            return Err(NotMeant::Reused { pid, run: record.run.to_string() });
        }
    }
    let mut begin = records.iter().filter(|record| record.run.as_str().starts_with(given));
    match (begin.next(), begin.next()) {
        (Some(record), None) if !given.is_empty() => Ok(record),
        (Some(_), Some(_)) if !given.is_empty() => {
            let runs = records.iter().map(|record| record.run.as_str());
            let runs = runs.filter(|run| run.starts_with(given)).map(str::to_owned).collect();
            Err(NotMeant::Several { given: given.to_owned(), runs })
        }
        _ => Err(NotMeant::Nothing(given.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use waybill_verifier::id::RunId;

    use super::*;
    use crate::process::Process;
    use crate::registry::Status;
    use crate::run::policy::Policy;

    fn record(run: &str, pid: u32) -> Record {
        Record {
            run: RunId::new(run).unwrap(),
            project: "/p".into(),
            folder: "/p".into(),
            command: vec![String::from("true")],
            holds_secret: false,
            at_boot: true,
            needs: Vec::new(),
            policy: Policy::default(),
            status: Status::InProgress,
            created: 0,
            started: 0,
            ended: None,
            ending: None,
            forced: false,
            supervisor: None,
            child: Some(Process { pid, started: 1, boot: String::from("b") }),
            socket: None,
        }
    }

    #[track_caller]
    fn check(given: &str, fate: Fate, expect: Result<&str, &str>) {
        let records = [record("77", 1), record("build-a", 77), record("build-b", 78), record("other", 79)];
        let found = find(given, &records, |_| fate);
        match (found, expect) {
            (Ok(found), Ok(expect)) => assert_eq!(found.run.as_str(), expect),
            (Err(error), Err(expect)) => {
                assert!(error.to_string().contains(expect), "{error}");
            }
            (found, _) => panic!("{given}: {found:?}"),
        }
    }

    #[test]
    fn an_exact_id_comes_before_a_number_and_a_number_before_a_prefix() {
        check("77", Fate::Alive, Ok("77"));
        check("78", Fate::Alive, Ok("build-b"));
        check("7", Fate::Alive, Ok("77"));
        check("o", Fate::Alive, Ok("other"));
        check("", Fate::Alive, Err("no run here is meant"));
        check("x", Fate::Alive, Err("no run here is meant"));
    }

    #[test]
    fn an_ambiguous_prefix_and_a_reused_number_are_refused_and_named() {
        check("build", Fate::Alive, Err("build-a, build-b"));
        check("79", Fate::Reused, Err("process 79 was of run other"));
        check("79", Fate::Gone, Err("no run here is meant"));
    }
}
