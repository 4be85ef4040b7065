//! What an end means for a run: its status, its exit code, its resume point. Pure.

use crate::process::number;
use crate::registry::record::Ending;
use crate::registry::{Intent, Status};
use nix::sys::signal::Signal;

/// Why a child ended, as far as its supervisor knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// By itself, or by somebody's signal to it alone.
    Itself,
    /// Somebody's recorded intent was carried out.
    Intent(Intent),
    /// The supervisor got a signal that nobody recorded an intent for, as at a reboot.
    Asked(Signal),
}

/// What becomes of a resume point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Point {
    /// The run can go on from it.
    Kept,
    /// The run ended on purpose.
    Deleted,
}

/// What an end means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The run's status.
    pub status: Status,
    /// What `waybill run` exits with.
    pub exit: u8,
    /// The resume point.
    pub point: Point,
    /// The transition of the root task, if it makes one.
    pub main: Option<&'static str>,
    /// Whether the run is closed in its ledger.
    pub closes: bool,
}

/// What an end means; `parked` says that a question of the run is not answered.
#[must_use]
pub fn outcome(ending: Ending, cause: Cause, parked: bool) -> Outcome {
    let live = if parked { Status::NeedsInput } else { Status::InProgress };
    let interrupted = |signal: i32| Outcome {
        status: live,
        exit: by_signal(signal),
        point: Point::Kept,
        main: None,
        closes: false,
    };
    match (cause, ending) {
        (Cause::Intent(intent), _) => by_intent(intent),
        (Cause::Asked(signal), _) => interrupted(number(signal)),
        (Cause::Itself, Ending::Exited(0)) => Outcome {
            status: Status::Complete,
            exit: 0,
            point: Point::Deleted,
            main: Some("task.completed"),
            closes: true,
        },
        (Cause::Itself, Ending::Exited(code)) => Outcome {
            status: Status::Error,
            exit: u8::try_from(code).unwrap_or(1),
            point: Point::Kept,
            main: Some("task.failed"),
            closes: false,
        },
        (Cause::Itself, Ending::Killed(signal)) => interrupted(signal),
        (Cause::Itself, Ending::Unseen) => interrupted(0),
    }
}

fn by_intent(intent: Intent) -> Outcome {
    let ends = !matches!(intent, Intent::Pause | Intent::Archive);
    Outcome {
        status: Status::after(intent),
        exit: match intent {
            Intent::Interrupt => 130,
            Intent::Policy => 3,
            Intent::Stop | Intent::Pause | Intent::Archive => 143,
        },
        point: if ends { Point::Deleted } else { Point::Kept },
        main: Some(if ends { "task.abandoned" } else { "task.suspended" }),
        closes: ends,
    }
}

/// 128 and the signal's number, as shells have it.
fn by_signal(signal: i32) -> u8 {
    u8::try_from(signal).ok().and_then(|signal| signal.checked_add(128)).unwrap_or(255)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(ending: Ending, cause: Cause, status: Status, exit: u8, point: Point) {
        let outcome = outcome(ending, cause, false);
        assert_eq!((outcome.status, outcome.exit, outcome.point), (status, exit, point));
        assert_eq!(outcome.closes, point == Point::Deleted, "what is closed has no resume point");
    }

    #[test]
    fn each_row_of_the_table() {
        check(Ending::Exited(0), Cause::Itself, Status::Complete, 0, Point::Deleted);
        for code in [1, 2, 3, 125, 255] {
            check(
                Ending::Exited(code),
                Cause::Itself,
                Status::Error,
                u8::try_from(code).unwrap_or(0),
                Point::Kept,
            );
        }
        check(Ending::Killed(9), Cause::Itself, Status::InProgress, 137, Point::Kept);
        check(Ending::Killed(15), Cause::Itself, Status::InProgress, 143, Point::Kept);
        check(Ending::Killed(15), Cause::Asked(Signal::SIGTERM), Status::InProgress, 143, Point::Kept);
        for ending in [Ending::Exited(0), Ending::Exited(1), Ending::Killed(15), Ending::Killed(9)] {
            let by = |intent| Cause::Intent(intent);
            check(ending, by(Intent::Stop), Status::Cancelled, 143, Point::Deleted);
            check(ending, by(Intent::Interrupt), Status::Cancelled, 130, Point::Deleted);
            check(ending, by(Intent::Policy), Status::Stopped, 3, Point::Deleted);
            check(ending, by(Intent::Pause), Status::Paused, 143, Point::Kept);
            check(ending, by(Intent::Archive), Status::Archived, 143, Point::Kept);
            check(ending, Cause::Asked(Signal::SIGTERM), Status::InProgress, 143, Point::Kept);
        }
    }

    #[test]
    fn an_interrupted_run_that_waits_for_an_answer_still_waits() {
        let ended = outcome(Ending::Killed(9), Cause::Itself, true);
        assert_eq!(ended.status, Status::NeedsInput);
    }
}
