//! What the run's journal says of a receipt: window, fork point, action.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::super::action::{Reading, possible, recommend};
use super::super::binding::Binding;
use super::super::verify::{Evidence, ForkCommit, Scope, not_checked};
use super::super::window::WINDOW;
use super::{UNREAD, fail, not_applicable, pass, warn};
use crate::json::Value;
use crate::ledger::row::shown;
use crate::report::{Check, Status, counted, hold};

pub(in super::super) fn journal(evidence: &Evidence<'_>) -> Check {
    const ID: &str = "journal.chain";
    let Some(binding) = evidence.binding() else {
        return not_checked(ID, UNREAD);
    };
    let Some(journal) = evidence.journal else {
        if evidence.degraded() && evidence.scope == Scope::Project {
            return not_applicable(ID, "there is no journal, as the receipt says");
        }
        return evidence.missing(ID, &format!("the journal of run {}", binding.run_id));
    };
    let outcome = &journal.outcome;
    let entries = outcome.end.entry;
    match (outcome.faults.first(), &outcome.recovery) {
        (None, _) if entries == 0 => not_applicable(ID, "the journal has no events").at(&journal.file, None),
        (None, _) => pass(ID, format!("{} hashed and linked from the first", counted(entries, "event")))
            .at(&journal.file, None),
        (Some(_), Some(recovery)) if binding.end().is_some_and(|end| end <= recovery.place.entry) => warn(
            ID,
            format!(
                "the journal ends in a torn line, behind the window: {}, and the next append sets the torn \
                 {} aside",
                hold(recovery.place.entry, "event"),
                counted(recovery.torn_bytes, "byte")
            ),
        )
        .at(&journal.file, Some(recovery.place)),
        (Some(first), _) => Check::failed(ID, &journal.file, first, outcome.fault_count),
    }
}

pub(in super::super) fn window(evidence: &Evidence<'_>) -> Check {
    const ID: &str = "receipt.window";
    let Some(binding) = evidence.binding() else {
        return not_checked(ID, UNREAD);
    };
    if evidence.degraded() {
        return degraded_window(evidence, binding);
    }
    let at = |check: Check| check.at(evidence.file, None);
    let Some(last) = binding.window.last() else {
        return at(fail(ID, "the window is empty, and the receipt does not say that there was no journal"));
    };
    if binding.journal_head_at_stall != Some(*last) {
        let head = binding.head_text();
        return at(fail(
            ID,
            format!("the head at the stall is \"{head}\", the window's last event is {last}"),
        ));
    }
    let Some(end) = binding.end() else {
        return at(fail(ID, "the window ends behind every number"));
    };
    let Some(journal) = evidence.journal else {
        return not_checked(ID, "there is no journal");
    };
    let entries = journal.outcome.end.entry;
    let from = binding.from_step;
    if end > entries {
        let sentence = format!("the window is events {from} to {}, the journal holds {entries}", end - 1);
        return fail(ID, sentence).at(&journal.file, None);
    }
    let events = &journal.view.events;
    let seen = |index: u64| events.iter().find(|event| event.index == index);
    for (index, hash) in (from..).zip(&binding.window) {
        match seen(index) {
            Some(event) if event.hash == *hash => {}
            Some(event) => {
                let sentence = format!("event {index} is {}, the window has {hash} there", event.hash);
                return fail(ID, sentence).at(&journal.file, Some(event.place));
            }
            None => {
                let sentence = format!("event {index} of the window does not hold in the journal");
                return fail(ID, sentence).at(&journal.file, None);
            }
        }
    }
    let first = events.first().map(|event| event.place);
    let last_sixteen = end.saturating_sub(WINDOW);
    if from != last_sixteen {
        let sentence = format!(
            "the window is in the journal, but starts with event {from}; the last {WINDOW} before its end \
             start with {last_sixteen}"
        );
        return warn(ID, sentence).at(&journal.file, first);
    }
    let grown = match entries - end {
        0 => String::new(),
        1 => String::from(", and 1 more follows"),
        more => format!(", and {more} more follow"),
    };
    pass(ID, format!("events {from} to {} of the journal are the window{grown}", end - 1))
        .at(&journal.file, first)
}

fn degraded_window(evidence: &Evidence<'_>, binding: &Binding) -> Check {
    const ID: &str = "receipt.window";
    let state = binding.journal_state.name();
    match (evidence.journal, evidence.scope) {
        (Some(journal), _) if journal.outcome.end.entry > 0 => {
            let events = counted(journal.outcome.end.entry, "event");
            let sentence = format!("the receipt says that the journal was {state}, and it holds {events}");
            fail(ID, sentence).at(&journal.file, None)
        }
        (None, Scope::Alone) => {
            not_checked(ID, "there is no journal to see whether it still holds no events")
        }
        _ => pass(ID, format!("the journal was {state}, and holds no events now")),
    }
}

pub(in super::super) fn fork(evidence: &Evidence<'_>) -> Check {
    const ID: &str = "receipt.fork";
    let Some(binding) = evidence.binding() else {
        return not_checked(ID, UNREAD);
    };
    let Some(fork) = &binding.fork_ref else {
        return not_applicable(ID, "it names no fork point");
    };
    if fork.run_id != binding.run_id.as_str() {
        let sentence = format!(
            "the fork point is of run {}, the receipt of {}",
            shown(&Value::from(&*fork.run_id)),
            binding.run_id
        );
        return fail(ID, sentence).at(evidence.file, None);
    }
    let Some(journal) = evidence.journal else {
        return not_checked(ID, "there is no journal");
    };
    let step = fork.fork_step;
    let at = |check: Check| check.at(&journal.file, None);
    let event = match (journal.view.fork_at, &journal.view.other_sha) {
        (Some(index), _) if binding.end().is_some_and(|end| index < end) => index,
        (Some(index), _) => {
            let sentence = format!("the snapshot of step {step} is event {index}, taken after the window");
            return at(fail(ID, sentence));
        }
        (None, Some(sha)) => {
            let sentence = format!(
                "the journal's snapshot of step {step} is {}, not the receipt's",
                shown(&Value::from(&**sha))
            );
            return at(fail(ID, sentence));
        }
        (None, None) => return at(fail(ID, format!("the journal has no snapshot of step {step}"))),
    };
    match &evidence.fork_commit {
        ForkCommit::NotLookedAt => {
            at(pass(ID, format!("event {event} is the snapshot of step {step}; no repository was looked at")))
        }
        ForkCommit::Missing => at(fail(ID, format!("the repository has no snapshot ref of step {step}"))),
        ForkCommit::At(sha) if *sha == fork.snapshot_sha => {
            at(pass(ID, format!("event {event} is the snapshot of step {step}, and the repository has it")))
        }
        ForkCommit::At(sha) => {
            at(fail(ID, format!("the repository's snapshot ref of step {step} is {sha}, not the receipt's")))
        }
    }
}

/// Also which reading of event types the action follows.
pub(in super::super) fn action(evidence: &Evidence<'_>, window: &Check) -> (Check, Option<&'static str>) {
    const ID: &str = "receipt.action";
    let Some(binding) = evidence.binding() else {
        return (not_checked(ID, UNREAD), None);
    };
    let (reason, budget, action) =
        (binding.stall_reason, binding.respawn_budget_remaining, binding.recommended_action);
    let at = |check: Check| check.at(evidence.file, None);
    let possible = possible(reason, budget);
    if !possible.contains(&action) {
        let sentence = format!("{reason} with a budget of {budget} never makes it {action}");
        return (at(fail(ID, sentence)), None);
    }
    let holds = matches!(window.status, Status::Pass | Status::Warn);
    if !holds && possible.len() > 1 {
        return (not_checked(ID, "it depends on the window's events, which are not established"), None);
    }
    let types: Vec<_> = match evidence.journal {
        Some(journal) if holds => journal.view.events.iter().map(|event| event.event_type).collect(),
        _ => Vec::new(),
    };
    let ours = recommend(reason, budget, &types, Reading::Ours);
    let reference = recommend(reason, budget, &types, Reading::Reference);
    let (check, reading) = if action == ours && action == reference {
        (pass(ID, format!("{reason} with a budget of {budget} and these events makes it {action}")), "both")
    } else if action == ours {
        let sentence =
            format!("{action}, reading types from {} (otherwise {reference})", Reading::Ours.name());
        (pass(ID, sentence), Reading::Ours.name())
    } else if action == reference {
        let sentence =
            format!("{action}, reading types from {} (otherwise {ours})", Reading::Reference.name());
        (pass(ID, sentence), Reading::Reference.name())
    } else {
        let sentence =
            format!("{reason} with a budget of {budget} and these events makes it {ours}, not {action}");
        return (at(fail(ID, sentence)), None);
    };
    (at(check), Some(reading))
}
