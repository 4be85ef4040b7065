//! What a boot does with a run: a pure function of facts.

use crate::registry::{Attempts, Status};

/// A boot continues a run this often until it ends on purpose.
pub const MAX_ATTEMPTS: u64 = 3;

/// What of a run's resume point was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Point {
    /// There is none.
    None,
    /// There is one, and the ledger does not hold up to it: why.
    Broken(String),
    /// There is one, and the run's anchor knows that it went on elsewhere: how far.
    Elsewhere(String),
    /// The ledger holds, and has it.
    Holds,
}

/// What is known of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    /// Whether boots may continue it.
    pub supervised: bool,
    /// Whether its supervisor is alive.
    pub locked: bool,
    /// Whether anything of its session or group is.
    pub alive: bool,
    /// Its status, with an intent that nobody carried out yet counted as carried out.
    pub status: Status,
    /// Whether a question is not answered.
    pub parked: bool,
    /// Its resume point.
    pub point: Point,
    /// The folder that is gone, if one is.
    pub gone: Option<String>,
    /// What it needs and is not there.
    pub missing: Vec<String>,
    /// How often boots have continued it.
    pub attempts: Attempts,
}

/// What a boot does with a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    /// It was started with `--no-boot`.
    NotSupervised,
    /// Something of it is alive.
    StillRunning,
    /// It ended, and not by an error.
    EndedDeliberately,
    /// It waits for an answer.
    NeedsInput,
    /// There is nothing to go on from.
    NoResumePoint,
    /// A folder is gone.
    WorkspaceGone,
    /// Something that it needs is not there; no attempt is spent.
    NotReady,
    /// It was continued often enough.
    Exhausted,
    /// It goes on: the number of the attempt, from 1.
    Continue(u64),
}

impl Decision {
    /// As it is shown.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Decision::NotSupervised => "not supervised",
            Decision::StillRunning => "still running",
            Decision::EndedDeliberately => "ended deliberately",
            Decision::NeedsInput => "needs input",
            Decision::NoResumePoint => "no resume point",
            Decision::WorkspaceGone => "workspace gone",
            Decision::NotReady => "not ready",
            Decision::Exhausted => "exhausted",
            Decision::Continue(_) => "continue",
        }
    }
}

/// Decides: the first rule that fits.
#[must_use]
pub fn decide(facts: &Facts) -> Decision {
    if !facts.supervised {
        Decision::NotSupervised
    } else if facts.locked || facts.alive {
        Decision::StillRunning
    } else if !facts.status.is_live() && facts.status != Status::Error {
        Decision::EndedDeliberately
    } else if facts.parked {
        Decision::NeedsInput
    } else if facts.point != Point::Holds {
        Decision::NoResumePoint
    } else if facts.gone.is_some() {
        Decision::WorkspaceGone
    } else if !facts.missing.is_empty() {
        Decision::NotReady
    } else {
        match facts.attempts {
            Attempts::Spent(spent) if spent < MAX_ATTEMPTS => Decision::Continue(spent + 1),
            _ => Decision::Exhausted,
        }
    }
}

/// Why it is so, for people.
#[must_use]
pub fn reason(facts: &Facts, decision: &Decision) -> String {
    match decision {
        Decision::NotSupervised => String::from("it was started with --no-boot"),
        Decision::StillRunning if facts.locked => String::from("its supervisor is alive"),
        Decision::StillRunning => String::from("its processes are alive without a supervisor"),
        Decision::EndedDeliberately => format!("its status is {}", facts.status.name()),
        Decision::NeedsInput => String::from("a question is not answered: 'waybill jobs answer' does"),
        Decision::NoResumePoint => match &facts.point {
            Point::Broken(why) => format!("its ledger does not hold up to it: {why}"),
            Point::Elsewhere(line) => line.clone(),
            _ => String::from("it never got to its first transition"),
        },
        Decision::WorkspaceGone => format!("{} is gone", facts.gone.as_deref().unwrap_or_default()),
        Decision::NotReady => format!("missing: {}", facts.missing.join(", ")),
        Decision::Exhausted => match facts.attempts {
            Attempts::Spent(spent) => {
                format!("continued {spent} times already; 'waybill jobs resume' goes on by hand")
            }
            Attempts::Lost => {
                String::from("its attempts file is gone or damaged; 'waybill jobs resume' goes on by hand")
            }
        },
        Decision::Continue(attempt) => format!("attempt {attempt} of {MAX_ATTEMPTS}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every combination of the facts, once.
    fn all() -> Vec<Facts> {
        let mut all = Vec::new();
        let points = [
            Point::None,
            Point::Broken(String::from("cut")),
            Point::Elsewhere(String::from("more")),
            Point::Holds,
        ];
        let attempts = [0, 1, 2, 3, 4, u64::MAX]
            .map(Attempts::Spent)
            .into_iter()
            .chain([Attempts::Lost])
            .collect::<Vec<_>>();
        for bits in 0..64_u32 {
            let bit = |at: u32| bits >> at & 1 == 1;
            for status in Status::ALL {
                for point in &points {
                    for &attempts in &attempts {
                        all.push(Facts {
                            supervised: bit(0),
                            locked: bit(1),
                            alive: bit(2),
                            status,
                            parked: bit(3),
                            point: point.clone(),
                            gone: bit(4).then(|| String::from("/w")),
                            missing: if bit(5) { vec![String::from("KEY")] } else { Vec::new() },
                            attempts,
                        });
                    }
                }
            }
        }
        all
    }

    #[test]
    fn a_run_goes_on_only_from_a_point_with_nothing_alive_and_live_or_failed() {
        let mut continued = 0;
        for facts in all() {
            let decision = decide(&facts);
            let may = facts.supervised
                && facts.point == Point::Holds
                && !facts.locked
                && !facts.alive
                && (facts.status.is_live() || facts.status == Status::Error)
                && !facts.parked
                && facts.gone.is_none()
                && facts.missing.is_empty()
                && matches!(facts.attempts, Attempts::Spent(0..=2));
            assert_eq!(matches!(decision, Decision::Continue(1..=3)), may, "{facts:?}: {decision:?}");
            assert!(!reason(&facts, &decision).is_empty());
            continued += u32::from(may);
        }
        // Three statuses, three counts of attempts.
        assert_eq!(continued, 9);
    }

    #[test]
    fn the_rules_have_their_order() {
        // Each rule's fact, with all rules behind it broken, too.
        let worst = Facts {
            supervised: false,
            locked: true,
            alive: true,
            status: Status::Complete,
            parked: true,
            point: Point::None,
            gone: Some(String::from("/w")),
            missing: vec![String::from("KEY")],
            attempts: Attempts::Lost,
        };
        let mut facts = worst;
        let mut seen = Vec::new();
        let mends: [fn(&mut Facts); 9] = [
            |facts| facts.supervised = true,
            |facts| facts.locked = false,
            |facts| facts.alive = false,
            |facts| facts.status = Status::Error,
            |facts| facts.parked = false,
            |facts| facts.point = Point::Holds,
            |facts| facts.gone = None,
            |facts| facts.missing.clear(),
            |facts| facts.attempts = Attempts::Spent(2),
        ];
        for mend in mends {
            seen.push(decide(&facts));
            mend(&mut facts);
        }
        seen.push(decide(&facts));
        use Decision::*;
        let expect = [
            NotSupervised,
            StillRunning,
            StillRunning,
            EndedDeliberately,
            NeedsInput,
            NoResumePoint,
            WorkspaceGone,
            NotReady,
            Exhausted,
            Continue(3),
        ];
        assert_eq!(seen, expect);
    }
}
